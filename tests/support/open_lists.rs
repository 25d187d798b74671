//! The lists of open tickets, from memory and from the tables.

use super::Api;

/// A filter that every ticket matches, and that only the tables can evaluate.
pub const FROM_TABLES: &str = "createdFrom=2000-01-01T00:00:00Z";

/// Each order in which open tickets are listed.
pub const SORTS: [&str; 5] =
    ["sort=id", "sort=activity", "sort=activity&order=asc", "sort=waiting", "sort=waiting&order=desc"];

/// Fails unless memory and the tables list the same tickets. `filter` is empty or starts with `&`. While the company's
/// tickets are not in memory, both lists are read from the tables; the first call starts to load the tickets.
pub async fn check_open_lists(api: &Api, filter: &str) {
    for sort in SORTS {
        let path = format!("/tickets?status=open&{sort}{filter}");
        let listed = api.get(&path).await.data(200).clone();
        assert_eq!(&listed, api.get(&format!("{path}&{FROM_TABLES}")).await.data(200), "{path}");
    }
}
