//! `make fixture` keeps what a release leaves when it is killed under load, with changes that only its journal has.
//! `HOTLINE_TEST_BINARY` names the release's binary, which makes everything here.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::{join, join_all};
use reqwest::Method;
use serde_json::{Value, json};

use super::snapshot::Snapshot;
use super::{Expected, STATE, check, files, fixtures, rows, wait_until_seen};
use crate::load::{Conversation, LoadProgress};
use crate::process::{command, hotline, is_other_binary};
use crate::support::form::Form;
use crate::support::{Api, Company, Reply, eventually};

/// Conversations at the same time, and how many of their requests are answered in all.
const CONVERSATIONS: usize = 8;
const ANSWERS: usize = 240;

/// Messages that are sent while the database is stopped, so that only the journal has them.
const LATE: usize = 40;

/// The largest size of a release's folder.
const FIXTURE_BYTES_MAX: u64 = 1 << 20;

/// Runs a command of the release; returns what it prints.
fn run_command(snapshot: &Snapshot, arguments: &[&str]) -> Value {
    let url = snapshot.url();
    let output =
        command(snapshot.path(), arguments).args(["--json", "--database-url", &url]).output().expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Creates a record; returns its id.
async fn create_record(api: &Api, path: &str, body: Value) -> Value {
    api.post(path, body).await.data(201)["id"].clone()
}

/// A company with everything conversations need.
async fn create_company(snapshot: &Snapshot, id: &Value, key: &str, api: &Api) -> Company {
    let support = create_record(api, "/queues", json!({"name": "Support", "wrapupRequired": true})).await;
    let sales = create_record(api, "/queues", json!({"name": "Sales", "greeting": "Hello"})).await;
    let user = async |name: &str, queues: Value| {
        let email = format!("{}@example.com", name.to_lowercase());
        create_record(api, "/users", json!({"name": name, "email": email, "queueIds": queues})).await
    };
    let ana = user("Ana", json!([support])).await;
    let ben = user("Ben", json!([support, sales])).await;
    let category = create_record(api, "/wrapup-categories", json!({"name": "Outcome"})).await;
    let wrapup = async |name: &str, queue: &Value| {
        create_record(api, "/wrapup-types", json!({"name": name, "categoryId": category, "queueIds": [queue]})).await
    };
    let (solved, sold) = (wrapup("Solved", &support).await, wrapup("Sold", &sales).await);
    let company_id = id.to_string();
    let channel = |name: &str, kind: &str, more: &[&str]| {
        let create = ["channel", "create", name, "--company", &company_id, "--type", kind];
        run_command(snapshot, &[&create[..], more].concat())["id"].clone()
    };
    let queue = support.to_string();
    let phone = channel("Phone", "whatsapp", &["--access-token", "access-token"]);
    let webchat = channel("Website", "webchat", &["--queue", &queue, "--allow-origin", "https://shop.example"]);
    run_command(snapshot, &["channel", "rotate-identity-secret", &webchat.to_string()]);
    let company = json!({
        "id": id, "key": key, "phone": phone, "webchat": webchat, "support": support, "sales": sales,
        "ana": ana, "ben": ben, "solved": solved, "sold": sold,
    });
    serde_json::from_value(company).expect("a company")
}

/// Creates the records that conversations do not need.
async fn create_other_records(api: &Api, company: &Company) {
    let tag = create_record(api, "/tags", json!({"name": "VIP", "color": "#FF8800"})).await;
    let field = json!({"name": "Size", "application": "contact", "type": "text"});
    let field = api.post("/custom-fields", field).await.data(201)["key"].clone();
    let mut contacts = Vec::new();
    for number in 0..12 {
        let contact = json!({
            "name": format!("Maria {number} ção 😀"), "number": format!("55119812300{number:02}"),
            "email": format!("maria{number}@example.com"), "tagIds": [tag],
            "customFields": [{"key": field, "value": format!("size {number}")}],
        });
        contacts.push(create_record(api, "/contacts", contact).await);
    }
    create_record(api, "/quick-messages", json!({"shortcut": "hi", "message": "Hello {{name}}"})).await;
    create_record(api, "/global-variables", json!({"key": "hours", "value": "9 to 5"})).await;
    let category = create_record(api, "/product-categories", json!({"name": "Shoes"})).await;
    let product = json!({"name": "Boot", "categoryId": category, "price": 129.9, "sku": "B-1"});
    let product = create_record(api, "/products", product).await;
    let board = create_record(api, "/crm/boards", json!({"name": "Deals", "monthlyGoal": 1000.5})).await;
    let business = create_record(api, "/crm/businesses", json!({"name": "Shop"})).await;
    let origin = create_record(api, "/crm/origins", json!({"name": "Fair"})).await;
    for (number, contact) in contacts.iter().take(5).enumerate() {
        let products = json!([{"productId": product, "quantity": 2}]);
        let card = json!({
            "boardId": board, "name": format!("Deal {number}"), "contactIds": [contact], "businessId": business,
            "originId": origin, "assignedToUserId": company.ben, "products": products,
        });
        create_record(api, "/crm/cards", card).await;
        let later = json!({
            "contactId": contact, "channelId": company.phone, "body": format!("later {number}"),
            "sendAt": "2099-01-31T12:00:00Z",
        });
        create_record(api, "/schedules", later).await;
    }
    let list = create_record(api, "/contact-lists", json!({"name": "Customers"})).await;
    let members = json!({"contactIds": contacts});
    let added = api.post(&format!("/contact-lists/{list}/contacts"), members).await;
    assert!(added.status.is_success(), "{}", added.body);
    let campaign = json!({
        "name": "Spring", "contactListId": list, "channelId": company.phone, "scheduledAt": "2099-03-01T12:00:00Z",
        "message": "Hello {{name}}",
    });
    create_record(api, "/campaigns", campaign).await;
}

/// Three files in a ticket.
async fn upload(api: &Api, ticket: i64) {
    for number in 0..3 {
        let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01".to_vec();
        picture.extend((0..2000_u32).map(|byte| (byte * 7 + number) as u8));
        let form = Form::default().text("type", "media").text("ticketId", ticket);
        api.send_form(form.file(&format!("{number}.png"), "image/png", &picture)).await.data(202);
    }
}

/// Runs conversations at the same time; returns the ids of all messages by their texts.
async fn talk(api: &Api, company: &Company) -> HashMap<String, i64> {
    let names = (0..CONVERSATIONS).map(|number| format!("visitor-{number}"));
    let beginnings = names.map(async |name| Conversation::begin(api, company, &name).await);
    let mut conversations = join_all(beginnings).await;
    let progress = Arc::new(LoadProgress::default());
    let talk = conversations.iter_mut().map(|conversation| conversation.run(api, company, progress.clone()));
    let ended = async {
        let is_enough = || progress.answered.load(Ordering::Acquire) >= ANSWERS;
        eventually("enough messages are answered", || async { is_enough() }).await;
        progress.must_end.store(true, Ordering::Release);
    };
    join(ended, join_all(talk)).await;
    let mut ids = HashMap::new();
    for conversation in conversations {
        conversation.check(api).await;
        ids.extend(conversation.acknowledged);
    }
    ids
}

/// Sends messages while the database is away; returns their ids by their texts.
async fn send_late(api: &Api, tickets: &[i64]) -> HashMap<String, i64> {
    let mut ids = HashMap::new();
    for (number, ticket) in (0..LATE).zip(tickets.iter().cycle()) {
        let body = format!("late {number}");
        let sent = api.post("/messages", json!({"ticketId": ticket, "type": "text", "body": body})).await;
        let job = sent.data(202)["jobId"].as_str().expect("a job").trim_start_matches("job_").to_owned();
        ids.insert(body, job.parse().expect("a number"));
    }
    ids
}

/// Writes the API document that the release serves.
fn keep_document(document: &Value, folder: &Path) {
    use std::io::Write;
    let file = std::fs::File::create(folder.join("openapi.json.gz")).expect("a file");
    let mut file = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    file.write_all(document.to_string().as_bytes()).expect("written");
    file.finish().expect("written");
}

#[actix_web::test]
#[ignore = "make fixture"]
async fn a_release_is_kept() {
    assert!(is_other_binary(), "HOTLINE_TEST_BINARY names the binary of the release");
    let version = String::from_utf8(hotline().arg("--version").output().expect("it runs").stdout).expect("text");
    let version = version.split_whitespace().nth(1).expect("a version").to_owned();
    let folder = fixtures().join(&version);
    std::fs::create_dir_all(&folder).expect("a folder");

    let mut snapshot = Snapshot::create().await;
    let id = run_command(&snapshot, &["company", "create", "Acme"])["id"].clone();
    let token = run_command(&snapshot, &["token", "create", "kept", "--company", &id.to_string(), "--all"]);
    let key = token["key"].as_str().expect("a key").to_owned();
    let process = snapshot.serve();
    let api = Api::new(process.address, &key);
    wait_until_seen(&api).await;
    let company = create_company(&snapshot, &id, &key, &api).await;
    eventually("the channels are seen", || async { api.all("/channels").await.len() == 2 }).await;
    create_other_records(&api, &company).await;
    let mut acknowledged = talk(&api, &company).await;
    let tickets = api.all("/tickets?status=open").await;
    let tickets: Vec<i64> = tickets.iter().map(|ticket| ticket["id"].as_i64().expect("an id")).collect();
    upload(&api, tickets[0]).await;
    let document = Reply::of(api.anonymous(Method::GET, "/api/v1/openapi.json")).await.body;
    api.all("/messages").await;
    let only_in_the_journal = snapshot
        .without_database(async || {
            let late = send_late(&api, &tickets).await;
            process.kill();
            late
        })
        .await;
    assert_eq!(only_in_the_journal.len(), LATE);
    acknowledged.extend(only_in_the_journal);
    snapshot.dump();

    // The expected rows are what the release itself shows after it starts on the archive.
    let mut expected = Expected { company, acknowledged, rows: HashMap::new(), files: HashMap::new() };
    let archive = folder.join(STATE);
    snapshot.pack(&archive, &expected);
    let again = Snapshot::unpack(&archive).await;
    let process = again.serve();
    assert!(process.replayed() >= LATE as u64, "{} were replayed", process.replayed());
    let api = Api::new(process.address, &key);
    wait_until_seen(&api).await;
    expected.rows = rows(&api).await;
    expected.files = files(&api, &expected.rows["/messages"]).await;
    assert_eq!(expected.files.len(), 3);
    let empty: Vec<&String> = expected.rows.iter().filter(|(_, rows)| rows.is_empty()).map(|(list, _)| list).collect();
    assert!(empty.is_empty(), "nothing in {empty:?}");
    check(&expected, &expected.rows);
    process.kill();
    again.close().await;
    snapshot.pack(&archive, &expected);
    keep_document(&document, &folder);
    snapshot.close().await;
    let files = std::fs::read_dir(&folder).expect("a folder").map(|file| file.expect("a file"));
    let bytes: u64 = files.map(|file| file.metadata().expect("a size").len()).sum();
    println!("tests/fixtures/{version}: {bytes} bytes");
    assert!(bytes < FIXTURE_BYTES_MAX, "{bytes} bytes");
}
