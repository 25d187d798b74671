//! Each release that is kept in `tests/fixtures/` is started by this one: its tables, its journal as a kill left it,
//! its files and its keys. Nothing that the earlier release had acknowledged is lost, and this one continues.

mod make;
mod snapshot;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::snapshot::Snapshot;
use crate::support::{Api, Company, eventually};

/// The folder of the releases, each in a folder named after its version.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// The archive of a release's state, in its folder.
const STATE: &str = "state.tar.gz";

/// The lists whose rows are compared.
const LISTS: &[&str] = &[
    "/campaigns",
    "/channels",
    "/contact-lists",
    "/contacts",
    "/crm/boards",
    "/crm/businesses",
    "/crm/cards",
    "/crm/origins",
    "/custom-fields",
    "/global-variables",
    "/messages",
    "/product-categories",
    "/products",
    "/profiles",
    "/queues",
    "/quick-messages",
    "/schedules",
    "/tags",
    "/tickets",
    "/users",
    "/wrapup-categories",
    "/wrapup-types",
];

/// Fields that change by themselves: addresses of files expire, and users show when they were last seen.
const VOLATILE: [&str; 3] = ["url", "lastSeenAt", "online"];

/// What must be found of an earlier release.
struct Expected {
    company: Company,
    /// The ids of the acknowledged messages, by their texts.
    acknowledged: HashMap<String, i64>,
    /// The rows of each list.
    rows: HashMap<String, Vec<Value>>,
    /// The SHA-256 of the files of messages, by the id of the message.
    files: HashMap<i64, String>,
}

impl Expected {
    fn json(&self) -> Value {
        json!({"company": self.company, "acknowledged": self.acknowledged, "rows": self.rows, "files": self.files})
    }

    fn of(text: &str) -> Self {
        let mut value: Value = serde_json::from_str(text).expect("JSON");
        fn part<T: serde::de::DeserializeOwned>(value: &mut Value, name: &str) -> T {
            serde_json::from_value(value[name].take()).unwrap_or_else(|error| panic!("{name}: {error}"))
        }
        let value = &mut value;
        Self {
            company: part(value, "company"),
            acknowledged: part(value, "acknowledged"),
            rows: part(value, "rows"),
            files: part(value, "files"),
        }
    }
}

/// Waits until the service answers for the company.
async fn wait_until_seen(api: &Api) {
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
}

/// Every row of every list.
async fn rows(api: &Api) -> HashMap<String, Vec<Value>> {
    let mut found = HashMap::new();
    for list in LISTS {
        found.insert((*list).to_owned(), api.all(list).await);
    }
    found
}

/// The SHA-256 of the file of each message, by the id of the message.
async fn files(api: &Api, messages: &[Value]) -> HashMap<i64, String> {
    let mut found = HashMap::new();
    for message in messages.iter().filter(|message| message["media"].is_object()) {
        let url = message["media"]["url"].as_str().expect("an address");
        let url = &url[url.find("/media/").expect("the path of a file")..];
        let served = api.anonymous(Method::GET, url).send().await.expect("an answer");
        assert_eq!(served.status(), 200, "{url}");
        let bytes = served.bytes().await.expect("a file");
        found.insert(message["id"].as_i64().expect("an id"), hex::encode(Sha256::digest(bytes)));
    }
    found
}

/// The first place where `new` does not have the value of `old`, or `None`. `new` may have more fields.
fn difference(old: &Value, new: &Value, place: &str) -> Option<String> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => old.iter().find_map(|(name, value)| {
            if VOLATILE.contains(&name.as_str()) {
                return None;
            }
            difference(value, new.get(name).unwrap_or(&Value::Null), &format!("{place}.{name}"))
        }),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            let pairs = old.iter().zip(new).enumerate();
            pairs.into_iter().find_map(|(index, (old, new))| difference(old, new, &format!("{place}[{index}]")))
        }
        _ => (old != new).then(|| format!("{place} was {old}, and is {new}")),
    }
}

/// Fails unless everything expected is found, once.
fn check(expected: &Expected, found: &HashMap<String, Vec<Value>>) {
    let mut shown = HashMap::new();
    for message in &found["/messages"] {
        let Some(body) = message["body"].as_str() else { continue };
        assert!(shown.insert(body, message["id"].as_i64().expect("an id")).is_none(), "twice: {body}");
    }
    for (body, id) in &expected.acknowledged {
        assert_eq!(shown.get(body.as_str()), Some(id), "acknowledged and lost: {body}");
    }
    for (list, rows) in &expected.rows {
        let by_id: HashMap<String, &Value> = found[list].iter().map(|row| (row["id"].to_string(), row)).collect();
        for row in rows {
            let id = row["id"].to_string();
            let now = by_id.get(&id).unwrap_or_else(|| panic!("{list} has lost {id}: {row}"));
            assert_eq!(difference(row, now, list), None, "{id}");
        }
    }
}

#[actix_web::test]
async fn this_release_starts_on_what_each_earlier_one_left_and_loses_nothing() {
    let folders = std::fs::read_dir(fixtures()).expect("the fixtures").map(|entry| entry.expect("an entry").path());
    let archives: Vec<PathBuf> = folders.map(|folder| folder.join(STATE)).filter(|state| state.is_file()).collect();
    assert!(!archives.is_empty(), "no release is kept");
    for archive in archives {
        let snapshot = Snapshot::unpack(&archive).await;
        let expected = snapshot.expected();
        let mut process = snapshot.serve();
        assert!(process.replayed() > 0, "{}: nothing was left in the journal", archive.display());
        let api = Api::new(process.address, &expected.company.key);
        wait_until_seen(&api).await;
        let found = rows(&api).await;
        check(&expected, &found);
        assert_eq!(files(&api, &found["/messages"]).await, expected.files);

        // It continues: an old conversation, and a new one.
        let open = found["/tickets"].iter().find(|ticket| ticket["status"] == "open").expect("an open ticket");
        let send = json!({"ticketId": open["id"], "type": "text", "body": "after the upgrade"});
        api.post("/messages", send).await.data(202);
        let send =
            json!({"channelId": expected.company.phone, "number": "5511987650000", "type": "text", "body": "new"});
        api.post("/messages", send).await.data(202);
        let messages = api.all("/messages").await;
        assert_eq!(messages.len(), found["/messages"].len() + 2);
        process.terminate();
        assert!(process.wait().success(), "the stop was not clean: {}", process.log());
        let db = snapshot.database();
        let rejected: i64 =
            sqlx::query_scalar("select count(*) from rejected_changes").fetch_one(&db).await.expect("a count");
        assert_eq!(rejected, 0);
        db.close().await;
        snapshot.close().await;
    }
}
