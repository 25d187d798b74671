//! Which path of the route table a request's path is. The router knows as well, but only of requests it has reached:
//! those refused before it would have no route.

/// The paths of the route table, as a tree of their parts.
#[derive(Debug, Default)]
pub(super) struct Routes {
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    /// The path that ends here.
    route: Option<usize>,
    /// What may follow by its word, sorted.
    words: Vec<(Vec<u8>, Self)>,
    /// What follows where an id stands.
    id: Option<Box<Self>>,
}

impl Routes {
    /// The tree of these paths, each by its place in the list. A part in braces stands for any text without `/`.
    pub(super) fn of(paths: &[String]) -> Self {
        let mut routes = Self::default();
        for (route, path) in paths.iter().enumerate() {
            let mut node = &mut routes.root;
            for part in path.trim_start_matches('/').split('/') {
                node = node.child(part);
            }
            node.route = Some(route);
        }
        routes
    }

    /// The place of the path in the list.
    pub(super) fn find(&self, path: &str) -> Option<usize> {
        self.root.find(Some(path.as_bytes().strip_prefix(b"/")?))
    }
}

impl Node {
    fn child(&mut self, part: &str) -> &mut Self {
        if part.starts_with('{') {
            return self.id.get_or_insert_default();
        }
        let index = match self.word(part.as_bytes()) {
            Ok(index) => index,
            Err(index) => {
                self.words.insert(index, (part.as_bytes().to_vec(), Self::default()));
                index
            }
        };
        &mut self.words[index].1
    }

    /// Where the word is, or would be. By length first, which tells most words apart.
    fn word(&self, part: &[u8]) -> Result<usize, usize> {
        self.words.binary_search_by(|(word, _)| word.len().cmp(&part.len()).then_with(|| word.as_slice().cmp(part)))
    }

    /// The path that the rest leads to; none is the end of the path, and an empty one an empty part.
    fn find(&self, rest: Option<&[u8]>) -> Option<usize> {
        let Some(rest) = rest else { return self.route };
        let (part, rest) = match rest.iter().position(|byte| *byte == b'/') {
            Some(end) => (&rest[..end], Some(&rest[end + 1..])),
            None => (rest, None),
        };
        if let Ok(index) = self.word(part)
            && let Some(route) = self.words[index].1.find(rest)
        {
            return Some(route);
        }
        self.id.as_ref().filter(|_| !part.is_empty())?.find(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_the_route_table_is_found_by_its_own_requests() {
        let paths = crate::routes::paths();
        let routes = Routes::of(&paths);
        for (route, path) in paths.iter().enumerate() {
            let asked: Vec<&str> = path.split('/').map(|part| if part.starts_with('{') { "7" } else { part }).collect();
            assert_eq!(routes.find(&asked.join("/")), Some(route), "{path}");
            assert_eq!(routes.find(&format!("{path}/")), None, "{path}/");
        }
        for path in ["", "/", "/api/v1", "/api/v1/nothing", "/api/v1/tickets//messages", "tickets"] {
            assert_eq!(routes.find(path), None, "{path}");
        }
    }

    #[test]
    fn a_word_comes_before_an_id_and_an_id_where_no_word_leads_on() {
        let routes = Routes::of(&["/a/{id}", "/a/b/c", "/a/{id}/d"].map(str::to_owned));
        assert_eq!(routes.find("/a/7"), Some(0));
        assert_eq!(routes.find("/a/b"), Some(0));
        assert_eq!(routes.find("/a/b/c"), Some(1));
        assert_eq!(routes.find("/a/b/d"), Some(2));
    }
}
