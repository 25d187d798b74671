//! Lists read by cursor while they change: each record that stays is read exactly once, on every list of the API.

mod lists;
mod panel;

use std::collections::BTreeSet;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{Api, Reply};

/// The fewest rows a list has before it is read; a page has [`PER_PAGE`].
const ROWS_MIN: usize = 8;
const PER_PAGE: usize = 3;
/// Additions and removals during one read of a list, of which at most two follow a page.
const CHANGES_MAX: usize = 6;

/// A request: its method, its path and its body.
type Request = (Method, String, Value);

type Ask<'a> = Box<dyn Fn(Method, &str) -> RequestBuilder + 'a>;
type Remove<'a> = Box<dyn Fn(&str) -> Request + 'a>;

/// A list, and how it changes.
struct List<'a> {
    /// Its operation in the API document.
    operation: &'static str,
    path: String,
    /// Queries to read it with, besides the empty one.
    queries: Vec<String>,
    /// What identifies a row.
    key: fn(&Value) -> String,
    /// Starts a request of someone who may read and change the list.
    ask: Ask<'a>,
    /// Adds the row of this number.
    add: Option<Box<dyn Fn(usize) -> Request + 'a>>,
    /// Removes the row with this key, or makes it match no longer.
    remove: Option<Remove<'a>>,
    /// Rows added so far.
    added: usize,
    /// The state of the random numbers that decide what changes between two pages.
    random: u64,
}

fn field_text(row: &Value, name: &str) -> String {
    row[name].to_string()
}

impl<'a> List<'a> {
    fn new(
        operation: &'static str,
        path: impl Into<String>,
        ask: impl Fn(Method, &str) -> RequestBuilder + 'a,
    ) -> Self {
        let random =
            operation.bytes().fold(0x9e37_79b9_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        println!("{operation}: seed {random}");
        let (path, ask) = (path.into(), Box::new(ask));
        let key = |row: &Value| field_text(row, "id");
        Self { operation, path, queries: Vec::new(), key, ask, add: None, remove: None, added: 0, random }
    }

    /// The list as a token reads it.
    fn of(api: &'a Api, operation: &'static str, path: impl Into<String>) -> Self {
        Self::new(operation, path, |method, path| api.request(method, path))
    }

    /// The list of records that are created and deleted at its own path.
    fn plain(api: &'a Api, operation: &'static str, path: &'static str, body: fn(usize) -> Value) -> Self {
        Self::of(api, operation, path)
            .adds(move |number| (Method::POST, path.to_owned(), body(number)))
            .removes(move |id| (Method::DELETE, format!("{path}/{id}"), Value::Null))
    }

    fn adds(mut self, add: impl Fn(usize) -> Request + 'a) -> Self {
        self.add = Some(Box::new(add));
        self
    }

    fn removes(mut self, remove: impl Fn(&str) -> Request + 'a) -> Self {
        self.remove = Some(Box::new(remove));
        self
    }

    /// Reads the rows at another path than the one they are created at.
    fn at(mut self, path: &str) -> Self {
        self.path = path.to_owned();
        self
    }

    fn known_by(mut self, key: fn(&Value) -> String) -> Self {
        self.key = key;
        self
    }

    fn read_with(mut self, queries: &[&str]) -> Self {
        self.queries.extend(queries.iter().map(|query| (*query).to_owned()));
        self
    }

    fn random_below(&mut self, end: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.random >> 33).expect("a number") % end
    }

    async fn get(&self, query: &str, more: &str) -> Reply {
        let parts: Vec<&str> = [query, more].into_iter().filter(|part| !part.is_empty()).collect();
        let path = format!("{}{}{}", self.path, if self.path.contains('?') { '&' } else { '?' }, parts.join("&"));
        Reply::of((self.ask)(Method::GET, &path)).await
    }

    /// The keys of a page, and its `meta`.
    async fn page(&self, query: &str, more: &str) -> (Vec<String>, Value) {
        let reply = self.get(query, more).await;
        let rows = reply.data(200).as_array().unwrap_or_else(|| panic!("{}: {}", self.path, reply.body));
        (rows.iter().map(self.key).collect(), reply.body["meta"].clone())
    }

    /// All keys, read by page number while nothing changes.
    async fn all(&self, query: &str) -> Vec<String> {
        let mut all = Vec::new();
        for number in 1.. {
            let (keys, meta) = self.page(query, &format!("page={number}")).await;
            all.extend(keys);
            if meta["hasMore"] == false {
                break;
            }
        }
        all
    }

    async fn send(&self, (method, path, body): Request) {
        let mut request = (self.ask)(method.clone(), &path);
        if !body.is_null() {
            request = request.json(&body);
        }
        let reply = Reply::of(request).await;
        // Some records cannot be deleted, and the number of some is limited.
        assert!(
            reply.status.is_success() || reply.status == 409,
            "{method} {path} {body}: {} {}",
            reply.status,
            reply.body
        );
    }

    async fn add(&mut self) {
        let Some(add) = &self.add else { return };
        self.added += 1;
        self.send(add(self.added)).await;
    }

    /// One random addition or removal.
    async fn change(&mut self, query: &str) {
        let (is_removal, at) = (self.random_below(2) == 0, self.random_below(1000));
        match &self.remove {
            Some(remove) if is_removal => {
                let all = self.all(query).await;
                if all.len() > PER_PAGE {
                    self.send(remove(&all[at % all.len()])).await;
                }
            }
            _ => self.add().await,
        }
    }

    /// Reads the list by cursor while it changes, with each query and in both orders. Returns its operation.
    async fn check(mut self) -> &'static str {
        let queries: Vec<String> = [String::new()].into_iter().chain(self.queries.clone()).collect();
        for query in &queries {
            for order in ["order=asc", "order=desc"] {
                let query = if query.is_empty() { order.to_owned() } else { format!("{query}&{order}") };
                while self.add.is_some() && self.all(&query).await.len() < ROWS_MIN {
                    self.add().await;
                }
                self.check_read(&query).await;
            }
        }
        self.check_refused_cursors().await;
        self.operation
    }

    async fn check_read(&mut self, query: &str) {
        let before = self.all(query).await;
        assert!(before.len() > PER_PAGE, "{}?{query} has too few rows: {before:?}", self.path);
        let (mut seen, mut cursor, mut changes) = (Vec::new(), String::new(), 0);
        loop {
            let (keys, meta) = self.page(query, &format!("perPage={PER_PAGE}&cursor={cursor}")).await;
            assert!(keys.len() <= PER_PAGE, "{}?{query}", self.path);
            seen.extend(keys);
            if meta["hasMore"] == false {
                let last = json!({"perPage": PER_PAGE, "hasMore": false, "nextCursor": null});
                assert_eq!(meta, last, "{}?{query}", self.path);
                break;
            }
            cursor = meta["nextCursor"].as_str().unwrap_or_else(|| panic!("{}?{query}: {meta}", self.path)).to_owned();
            assert_eq!(meta, json!({"perPage": PER_PAGE, "hasMore": true, "nextCursor": cursor}));
            for _ in 0..2 {
                if changes < CHANGES_MAX {
                    self.change(query).await;
                    changes += 1;
                }
            }
        }
        let after: BTreeSet<String> = self.all(query).await.into_iter().collect();
        let each: BTreeSet<&String> = seen.iter().collect();
        assert_eq!(each.len(), seen.len(), "{}?{query}: a row was read twice: {seen:?}", self.path);
        let stayed = before.iter().filter(|key| after.contains(*key));
        let missed: Vec<&String> = stayed.filter(|key| !each.contains(key)).collect();
        assert!(missed.is_empty(), "{}?{query}: {missed:?} of {before:?} were not read: {seen:?}", self.path);
        let numbers: Vec<i64> = seen.iter().filter_map(|key| key.parse().ok()).collect();
        let is_sorted = numbers.is_sorted_by(|a, b| if query.ends_with("desc") { a > b } else { a < b });
        assert!(is_sorted, "{}?{query} is not sorted by id: {seen:?}", self.path);
    }

    /// A cursor continues the list it was given for, and no other.
    async fn check_refused_cursors(&self) {
        let (_, meta) = self.page("", "perPage=1&cursor=").await;
        let cursor = meta["nextCursor"].as_str().expect("a cursor").to_owned();
        let other = if cursor.starts_with('A') { 'B' } else { 'A' };
        for more in [
            format!("cursor={cursor}&page=1"),
            "cursor=&page=2".to_owned(),
            format!("cursor={cursor}&order=desc"),
            format!("cursor={other}{}", &cursor[1..]),
            format!("cursor={}", &cursor[1..]),
            "cursor=7".to_owned(),
            "cursor=null".to_owned(),
            format!("cursor={cursor}&cursor={cursor}"),
        ] {
            let refused = self.get("", &more).await;
            assert_eq!(refused.invalid_fields(), ["cursor"], "{}?{more}", self.path);
        }
        let (keys, _) = self.page("", &format!("perPage=2&cursor={cursor}&unknown=1")).await;
        assert!(!keys.is_empty(), "{}: another page size or an unknown parameter empties the page", self.path);
    }
}

/// The lists that the API documents name, by their operations.
fn documented_lists() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for document in [hotline::routes::document(), hotline::routes::panel_document()] {
        for item in document["paths"].as_object().expect("paths").values() {
            let Some(operation) = item.get("get") else { continue };
            let name = operation["operationId"].as_str().expect("an id").to_owned();
            let takes = |name: &str| {
                let parameters = operation["parameters"].as_array();
                parameters.is_some_and(|all| all.iter().any(|parameter| parameter["name"] == name))
            };
            let is_list = operation["summary"].as_str().expect("a summary").starts_with("List ");
            // The events are a log, which continues by `after`.
            let is_expected = is_list && name != "listEvents";
            assert_eq!(takes("cursor"), takes("page"), "{name}");
            assert_eq!(takes("cursor"), is_expected, "{name}");
            if is_expected {
                found.insert(name);
            }
        }
    }
    found
}

#[test]
fn every_list_is_read_by_cursor_in_a_test() {
    let checked: BTreeSet<String> = lists::LISTS.iter().chain(&panel::LISTS).map(|name| (*name).to_owned()).collect();
    assert_eq!(documented_lists(), checked);
}
