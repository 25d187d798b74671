//! References to a deleted record are removed from many others, once from each, whenever the process is killed.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::process::{Process, database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Reply, eventually};

/// Contacts with a tag: more than a step takes.
const CONTACTS: usize = 600;

/// Rows of one import.
const ROWS: usize = 200;

/// Cards of a user: more than a step takes.
const CARDS: usize = 120;

/// Kills at random moments, while steps are taken.
const KILLS: usize = 3;

/// The events of a type after the one whose id is `last`, in order.
async fn events(api: &Api, kind: &str, last: i64) -> Vec<Value> {
    let (mut events, mut last) = (Vec::new(), last);
    loop {
        let reply = api.get(&format!("/events?after={last}&types={kind}&limit=1000")).await;
        events.extend(reply.data(200).as_array().expect("a list").iter().cloned());
        last = reply.body["meta"]["lastId"].as_i64().expect("an id");
        if reply.body["meta"]["hasMore"] == json!(false) {
            return events;
        }
    }
}

/// How many events each record has. Fails unless each event names an integration as its cause.
fn count_by_record(events: &[Value]) -> BTreeMap<i64, usize> {
    let mut counted = BTreeMap::new();
    for event in events {
        assert_eq!(event["by"]["type"], "integration", "{event}");
        assert!(event["by"]["id"].is_i64(), "{event}");
        *counted.entry(event["data"]["id"].as_i64().expect("an id")).or_default() += 1;
    }
    counted
}

fn id(record: &Value) -> i64 {
    record["id"].as_i64().expect("an id")
}

#[actix_web::test]
async fn the_references_to_a_deleted_record_are_removed_once_after_any_kill() {
    let folder = prepared_folder();
    let mut process = Process::serve(folder.path());
    let db = database(folder.path()).await;
    let company = Company::create(&db, "Acme").await;
    let api = Api::new(process.address, &company.key);
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    let tag = id(api.post("/tags", json!({"name": "VIP"})).await.data(201));
    for from in (0..CONTACTS).step_by(ROWS) {
        let row = |nth: usize| json!({"name": format!("Contact {nth}"), "tagIds": [tag]});
        let rows: Vec<Value> = (from..from + ROWS).map(row).collect();
        api.post("/contacts/import", json!({"contacts": rows})).await.data(200);
    }
    let contacts = api.all("/contacts").await;
    assert_eq!(contacts.len(), CONTACTS);
    let board = id(api.post("/crm/boards", json!({"name": "Sales"})).await.data(201));
    let mut cards = Vec::new();
    for nth in 0..CARDS {
        let card = json!({"boardId": board, "name": format!("Card {nth}"), "assignedToUserId": company.ben});
        cards.push(id(api.post("/crm/cards", card).await.data(201)));
    }
    let last = api.get("/events?after=latest").await.body["meta"]["lastId"].as_i64().expect("an id");
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());

    let unfinished = async || count_cascades(&db).await;
    // Right before the first step is committed, and right after. The record itself is deleted by then.
    for (path, point) in
        [(format!("/tags/{tag}"), "cascade_step"), (format!("/users/{}", company.ben), "cascade_stepped")]
    {
        // The remaining steps of the previous deletion would reach the failpoint before this one.
        let mut process = Process::serve(folder.path());
        eventually("no cascade is unfinished", || async { unfinished().await == 0 }).await;
        process.terminate();
        assert!(process.wait().success(), "{}", process.log());
        let mut dying = Process::serve_with_failpoint(folder.path(), &[], point);
        let api = Api::new(dying.address, &company.key);
        assert!(Reply::try_of(api.request(Method::DELETE, &path)).await.is_none(), "it answered before it died");
        assert!(!dying.wait().success(), "it did not die");
        assert_eq!(unfinished().await, 1, "the table of cascades does not have the unfinished one");

        // Killed at a random moment after the start.
        for round in 0..KILLS {
            let process = Process::serve(folder.path());
            let api = Api::new(process.address, &company.key);
            api.get(&path).await.error(404, "ERR_API_NOT_FOUND");
            let moment = Duration::from_millis(rand::random_range(1..300));
            tokio::time::sleep(moment).await;
            process.kill();
            println!("kill {round} of {path} after {moment:?}: {} unfinished", unfinished().await);
        }
    }

    let mut process = Process::serve(folder.path());
    let api = Api::new(process.address, &company.key);
    api.post("/tags", json!({"name": "VIP"})).await.data(201);
    eventually("no cascade is unfinished", || async { unfinished().await == 0 }).await;
    let untagged = count_by_record(&events(&api, "contact.untagged", last).await);
    assert_eq!(untagged, contacts.iter().map(|contact| (id(contact), 1)).collect());
    let updated = count_by_record(&events(&api, "card.updated", last).await);
    assert_eq!(updated, cards.iter().map(|card| (*card, 1)).collect());
    let now = api.all("/contacts").await;
    for (contact, shown) in contacts.iter().zip(&now) {
        assert_eq!(id(contact), id(shown));
        assert_eq!(shown["tags"], json!([]));
        assert!(shown["updatedAt"].as_str() > contact["updatedAt"].as_str(), "{shown}");
    }
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

/// The number of deleted records that others may still refer to.
async fn count_cascades(db: &hotline_persistence::PgPool) -> i64 {
    sqlx::query_scalar("select count(*) from cascades").fetch_one(db).await.expect("a count")
}
