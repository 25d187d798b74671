//! Which path of the route table a request's path is. The framework's router knows as well, but only of requests it has
//! reached: those refused before it would have no route.

use matchit::Router;

/// The paths of the route table, each with its place in the list.
#[derive(Clone, Debug)]
pub(super) struct Routes(Router<usize>);

impl Routes {
    /// These paths. A part in braces stands for any text without `/`.
    pub(super) fn of(paths: &[String]) -> Self {
        let mut routes = Router::new();
        for (route, path) in paths.iter().enumerate() {
            // Refused when it is there already: the table has each once, and a test asks for every one.
            let _ = routes.insert(path, route);
        }
        Self(routes)
    }

    /// The place of the path in the list.
    pub(super) fn find(&self, path: &str) -> Option<usize> {
        self.0.at(path).ok().map(|found| *found.value)
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
