//! The event log: the events of each change, and how they are read.

mod changes;
pub mod days;
mod ends;
mod failing;
mod limits;
mod load;
mod moved;
mod plain;
mod readers;
mod records;
pub mod removed;
mod replayed;
mod resumed;
mod sent;
mod sizes;
mod stream;

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::Api;

/// All events of a company after this id, read in small pages.
pub async fn after(api: &Api, last: i64) -> Vec<Value> {
    let (mut events, mut last) = (Vec::new(), last);
    loop {
        let reply = api.get(&format!("/events?after={last}&limit=7")).await;
        let page = reply.data(200).as_array().expect("a list").clone();
        let meta = &reply.body["meta"];
        let next = meta["lastId"].as_i64().expect("an id");
        assert_eq!(page.last().map_or(next, |event| event["id"].as_i64().expect("an id")), next, "{meta}");
        last = next;
        events.extend(page);
        let times: Vec<&str> = events.iter().filter_map(|event: &Value| event["createdAt"].as_str()).collect();
        assert!(times.is_sorted(), "times of events never go back: {times:?}");
        if meta["hasMore"] == json!(false) {
            return events;
        }
    }
}

/// The id of the newest event.
pub async fn newest(api: &Api) -> i64 {
    after(api, 0).await.last().map_or(0, |event| event["id"].as_i64().expect("an id"))
}

/// The most comments that a stream opened after this time has sent by now: each follows fifteen seconds of silence. A
/// further one shows that nothing but the clock has woken the stream.
fn comments_due(opened: Instant) -> u64 {
    opened.elapsed().as_secs() / 15
}

/// The types of events, in their order.
pub fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().expect("a type")).collect()
}

/// The ids of events, in their order.
pub fn ids(events: &[Value]) -> Vec<i64> {
    events.iter().map(|event| event["id"].as_i64().expect("an id")).collect()
}
