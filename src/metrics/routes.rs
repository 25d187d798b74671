//! Maps a request's path to its path in the route table. The framework's router knows this too, but only for requests
//! that reach it; requests refused earlier would have no route.

use matchit::Router;

/// The paths of the route table, with their indexes.
#[derive(Clone, Debug)]
pub(super) struct Routes(Router<usize>);

impl Routes {
    /// Creates the map. A segment in braces matches any text without `/`.
    pub(super) fn of(paths: &[String]) -> Self {
        let mut routes = Router::new();
        for (route, path) in paths.iter().enumerate() {
            // Conflicting and invalid paths are refused. The table has none: a test looks up each of its paths.
            let _ = routes.insert(path, route);
        }
        Self(routes)
    }

    /// The index of the matching path.
    pub(super) fn find(&self, path: &str) -> Option<usize> {
        self.0.at(path).ok().map(|matched| *matched.value)
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
            let segments: Vec<&str> =
                path.split('/').map(|part| if part.starts_with('{') { "7" } else { part }).collect();
            assert_eq!(routes.find(&segments.join("/")), Some(route), "{path}");
            assert_eq!(routes.find(&format!("{path}/")), None, "{path}/");
        }
        for path in ["", "/", "/api/v1", "/api/v1/nothing", "/api/v1/tickets//messages", "tickets"] {
            assert_eq!(routes.find(path), None, "{path}");
        }
    }

    #[test]
    fn a_literal_segment_takes_precedence_over_an_id_if_the_rest_matches() {
        let routes = Routes::of(&["/a/{id}", "/a/b/c", "/a/{id}/d"].map(str::to_owned));
        assert_eq!(routes.find("/a/7"), Some(0));
        assert_eq!(routes.find("/a/b"), Some(0));
        assert_eq!(routes.find("/a/b/c"), Some(1));
        assert_eq!(routes.find("/a/b/d"), Some(2));
    }
}
