//! A merge happens completely or not at all, whenever the process or the database fails.

use hotline_persistence::PgPool;
use reqwest::Method;
use serde_json::{Value, json};

use crate::process::{Process, with_database};
use crate::stoppable_service::StoppableService;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Reply, check_events, check_plain_events, eventually};

const NUMBERS: [&str; 2] = ["5511900000001", "5511900000002"];

fn text(company: &Company, number: &str, body: &str) -> Value {
    json!({"channelId": company.phone, "number": number, "type": "text", "body": body})
}

/// Two contacts with an open ticket each, and messages that may not be in the tables yet; the ids of contact and
/// ticket.
async fn create_two(api: &Api, company: &Company) -> [(i64, i64); 2] {
    let mut pairs = [(0, 0); 2];
    for (pair, number) in pairs.iter_mut().zip(NUMBERS) {
        let contact = api.post("/contacts", json!({"name": number, "number": number})).await;
        let contact = contact.data(201)["id"].as_i64().expect("a contact");
        let open = json!({"channelId": company.phone, "contactId": contact, "userId": null});
        let ticket = api.post("/tickets", open).await.data(201)["id"].as_i64().expect("a ticket");
        for body in ["one", "two"] {
            api.post("/messages", text(company, number, body)).await.data(202);
        }
        *pair = (contact, ticket);
    }
    pairs
}

async fn counts(db: &PgPool, contact: i64) -> (i64, i64, i64) {
    let count =
        "select (select count(*) from contacts where id = $1), (select count(*) from tickets where contact_id = $1),
        (select count(*) from messages where contact_id = $1)";
    sqlx::query_as(count).bind(contact).fetch_one(db).await.expect("counts")
}

#[actix_web::test]
async fn a_killed_merge_happened_or_not_and_a_retry_completes_it() {
    for (point, happened) in [
        ("contacts_merged", false),
        ("once_written", false),
        ("once_committed", true),
        ("contact_merge_committed", true),
    ] {
        let folder = prepared_folder();
        let mut process = Process::serve(folder.path());
        let company = with_database(folder.path(), async |db| Company::create(db, "Acme").await).await;
        let api = Api::new(process.address, &company.key);
        eventually("the company is known", || async { api.get("/channels").await.status == 200 }).await;
        let [(into, into_ticket), (from, from_ticket)] = create_two(&api, &company).await;
        process.kill();
        // When the merge begins, none of these records is in memory, and some may not be in the tables yet.
        process = Process::serve_with_failpoint(folder.path(), &[], point);
        let api = Api::new(process.address, &company.key);
        api.post("/messages", text(&company, NUMBERS[1], "three")).await.data(202);
        let path = format!("/contacts/{into}/merge");
        let keyed = |api: &Api| {
            let body = json!({"fromContactId": from});
            api.request(Method::POST, &path).header("idempotency-key", "merge").json(&body)
        };
        assert!(Reply::try_of(keyed(&api)).await.is_none(), "{point}: the process ends");
        assert!(!process.wait().success());
        process = Process::serve(folder.path());
        let api = Api::new(process.address, &company.key);
        assert_eq!(api.get(&format!("/contacts/{from}")).await.status == 404, happened, "{point}");
        let merged = Reply::of(keyed(&api)).await;
        assert_eq!(merged.data(200)["id"], into, "{point}");
        assert_eq!(merged.is_replay(), happened, "{point}");
        let merged_ticket = api.get(&format!("/tickets/{from_ticket}")).await;
        assert_eq!(merged_ticket.error(404, "ERR_API_NOT_FOUND"), &json!({"mergedInto": into_ticket}), "{point}");
        let fourth = json!({"ticketId": into_ticket, "type": "text", "body": "four"});
        api.post("/messages", fourth).await.data(202);
        assert_eq!(api.all(&format!("/tickets/{into_ticket}/messages")).await.len(), 6, "{point}");
        process.terminate();
        assert!(process.wait().success(), "the stop was not clean: {}", process.log());
        with_database(folder.path(), async |db| {
            assert_eq!(counts(db, into).await, (1, 1, 6), "{point}");
            assert_eq!(counts(db, from).await, (0, 0, 0), "{point}");
            check_events(db, company.id).await;
            check_plain_events(db, company.id).await;
            let rejected: i64 =
                sqlx::query_scalar("select count(*) from rejected_changes").fetch_one(db).await.expect("a count");
            assert_eq!(rejected, 0, "{point}");
        })
        .await;
    }
}

#[actix_web::test]
async fn without_the_database_a_merge_is_refused_and_conversations_continue() {
    let (mut service, ()) = StoppableService::open(&[], async |_, _, _| ()).await;
    let company_phone = service.company.phone;
    let api = service.api();
    let [(into, into_ticket), (from, from_ticket)] = create_two(&api, &service.company).await;
    service.stop_database().await;
    let path = format!("/contacts/{into}/merge");
    api.post(&path, json!({"fromContactId": from})).await.error(503, "ERR_API_UNAVAILABLE");
    // The refused merge has marked neither contact: both still get messages.
    for ticket in [into_ticket, from_ticket] {
        let body = json!({"ticketId": ticket, "type": "text", "body": "meanwhile"});
        api.post("/messages", body).await.data(202);
    }
    service.start_database().await;
    let is_merged = || async { api.post(&path, json!({"fromContactId": from})).await.status == 200 };
    eventually("the database is back", is_merged).await;
    assert_eq!(api.all(&format!("/tickets/{into_ticket}/messages")).await.len(), 6);
    let body = json!({"channelId": company_phone, "contactId": into, "type": "text", "body": "after"});
    api.post("/messages", body).await.data(202);
    assert_eq!(api.all(&format!("/tickets/{into_ticket}/messages")).await.len(), 7);
    service.close().await;
}
