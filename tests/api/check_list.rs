//! The checks that every list passes: pages, order, cursors, spans of time, and no rows of other companies.

use serde_json::Value;

use crate::steps::ids;
use crate::support::TestApp;

/// Checks a list that must hold exactly the rows with these ids, at least three, in ascending order.
/// `spans` are the timestamps it can be filtered by: `created` stands for `createdFrom` and `createdTo`.
pub async fn check_list(app: &TestApp, path: &str, expected: &[i64], spans: &[&str]) {
    assert!(expected.len() >= 3, "{path}: too few rows to see pages");
    assert!(expected.is_sorted(), "{path}: {expected:?}");
    let list = List { app, path };

    let (whole, meta) = list.get("").await;
    assert_eq!(ids(&whole), expected, "{path}");
    assert_eq!(meta, serde_json::json!({"page": 1, "perPage": 100, "hasMore": false}), "{path}");

    check_pages(&list, expected).await;
    check_order(&list, expected).await;
    check_cursors(&list, expected, spans).await;
    for span in spans {
        check_span(app, path, span).await;
    }

    let (ignored, _) = list.get("unknown=1&companyId=999&Order=up").await;
    assert_eq!(ids(&ignored), expected, "{path}: an unknown parameter is not ignored");
}

struct List<'a> {
    app: &'a TestApp,
    path: &'a str,
}

impl List<'_> {
    fn path(&self, query: &str) -> String {
        let separator = if self.path.contains('?') { '&' } else { '?' };
        format!("{}{separator}{query}", self.path)
    }

    async fn get(&self, query: &str) -> (Vec<Value>, Value) {
        let reply = self.app.api.get(&self.path(query)).await;
        let rows = reply.data(200).as_array().unwrap_or_else(|| panic!("{}: {}", self.path, reply.body)).clone();
        (rows, reply.body["meta"].clone())
    }

    async fn refused_fields(&self, query: &str) -> Vec<String> {
        self.app.api.get(&self.path(query)).await.invalid_fields()
    }
}

async fn check_pages(list: &List<'_>, expected: &[i64]) {
    let path = list.path;
    for size in [1, 2, expected.len() - 1, expected.len(), expected.len() + 1] {
        let mut seen = Vec::new();
        for page in 1.. {
            let (rows, meta) = list.get(&format!("page={page}&perPage={size}")).await;
            assert_eq!(meta["page"], page, "{path}");
            assert_eq!(meta["perPage"], size, "{path}");
            seen.extend(ids(&rows));
            assert_eq!(meta["hasMore"], seen.len() < expected.len(), "{path}: page {page} of {size}");
            if seen.len() >= expected.len() || rows.is_empty() {
                break;
            }
        }
        assert_eq!(seen, expected, "{path}: pages of {size}");
    }
    for page in ["0", "-1", "abc", "1.5", "", "99999999999999999999"] {
        let (rows, meta) = list.get(&format!("page={page}")).await;
        assert_eq!(meta["page"], 1, "{path}: page={page}");
        assert_eq!(ids(&rows), expected, "{path}: page={page}");
    }
    for size in ["0", "-1", "abc", "1.5", "", "101", "1000000", "99999999999999999999"] {
        let (rows, meta) = list.get(&format!("perPage={size}")).await;
        assert_eq!(meta["perPage"], 100, "{path}: perPage={size}");
        assert_eq!(ids(&rows), expected, "{path}: perPage={size}");
    }
    for page in ["2", "1000000", "9223372036854775807"] {
        let (rows, meta) = list.get(&format!("page={page}")).await;
        assert!(rows.is_empty(), "{path}: page={page}: {rows:?}");
        assert_eq!(meta["hasMore"], false, "{path}: page={page}");
    }
}

async fn check_order(list: &List<'_>, expected: &[i64]) {
    let path = list.path;
    let descending: Vec<i64> = expected.iter().rev().copied().collect();
    assert_eq!(ids(&list.get("order=asc").await.0), expected, "{path}");
    assert_eq!(ids(&list.get("order=desc").await.0), descending, "{path}");
    let (second, meta) = list.get("order=desc&perPage=1&page=2").await;
    assert_eq!(ids(&second), descending[1..2], "{path}");
    assert_eq!(meta["hasMore"], true, "{path}");
    for bad in ["up", "", "ASC;", "id"] {
        assert_eq!(list.refused_fields(&format!("order={bad}")).await, ["order"], "{path}: order={bad}");
    }
}

async fn check_cursors(list: &List<'_>, expected: &[i64], spans: &[&str]) {
    let path = list.path;
    for (order, expected) in [("asc", expected.to_vec()), ("desc", expected.iter().rev().copied().collect())] {
        for size in [1, 2, expected.len(), expected.len() + 1] {
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let (rows, meta) = list.get(&format!("order={order}&perPage={size}&cursor={cursor}")).await;
                assert!(rows.len() <= size, "{path}");
                seen.extend(ids(&rows));
                let next = meta["nextCursor"].clone();
                let has_more = seen.len() < expected.len();
                assert_eq!(
                    meta,
                    serde_json::json!({"perPage": size, "hasMore": has_more, "nextCursor": next}),
                    "{path}"
                );
                assert_eq!(next.is_string(), has_more, "{path}");
                let Some(next) = next.as_str() else { break };
                next.clone_into(&mut cursor);
            }
            assert_eq!(seen, expected, "{path}: by cursor, {size} a page, {order}");
        }
    }
    let (_, meta) = list.get("perPage=1&cursor=").await;
    let cursor = meta["nextCursor"].as_str().expect("a cursor");
    if let Some(span) = spans.first() {
        // A cursor is valid only with the filters it was given for.
        let query = format!("{span}From=2000-01-01T00:00:00Z&cursor={cursor}");
        assert_eq!(list.refused_fields(&query).await, ["cursor"], "{path}");
    }
}

/// Checks that `<span>From` and `<span>To` narrow a list to the rows whose `<span>At`, as shown, lies between them,
/// both ends included.
pub async fn check_span(app: &TestApp, path: &str, span: &str) {
    let list = List { app, path };
    let field = format!("{span}At");
    let (whole, _) = list.get("").await;
    let at = |row: &Value| row[&field].as_str().map(str::to_owned);
    let mut times: Vec<String> = whole.iter().filter_map(at).collect();
    times.sort();
    let check_narrowed = async |query: String, holds: &dyn Fn(&str) -> bool| {
        let held = |row: &&Value| at(row).is_some_and(|at| holds(&at));
        let wanted: Vec<Value> = whole.iter().filter(held).cloned().collect();
        assert_eq!(ids(&list.get(&query).await.0), ids(&wanted), "{path} with {query} of {times:?}");
    };
    let (first, last) = (times.first().expect("a row has the time"), times.last().expect("a row has the time"));
    for time in [first, last, &times[times.len() / 2]] {
        check_narrowed(format!("{span}From={time}"), &|at| at >= time.as_str()).await;
        check_narrowed(format!("{span}To={time}"), &|at| at <= time.as_str()).await;
        check_narrowed(format!("{span}From={time}&{span}To={time}"), &|at| at == time).await;
    }
    check_narrowed(format!("{span}From=2000-01-01T00:00:00Z&{span}To=2999-12-31T23:59:59.999-03:00"), &|_| true).await;
    check_narrowed(format!("{span}From=2999-01-01T00:00:00Z"), &|_| false).await;
    check_narrowed(format!("{span}To=2000-01-01T00:00:00Z"), &|_| false).await;
    for bad in ["yesterday", "2026-01-31", "2026-13-01T00:00:00Z", "1767225600", ""] {
        for end in ["From", "To"] {
            let name = format!("{span}{end}");
            assert_eq!(
                list.refused_fields(&format!("{name}={bad}")).await,
                std::slice::from_ref(&name),
                "{path}: {name}={bad}"
            );
        }
    }
}
