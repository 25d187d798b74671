//! Each event is in the log exactly once, even if the process crashes before it commits.

use serde_json::json;

use crate::process::{Process, with_database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, check_events, eventually};

/// How often the process crashes with events that are written but not committed.
const CRASHES: usize = 4;

#[actix_web::test]
async fn events_written_but_not_committed_are_logged_once_by_the_next_start() {
    let folder = prepared_folder();
    let mut process = Process::serve(folder.path());
    let company = with_database(folder.path(), async |db| Company::create(db, "Acme").await).await;
    let mut api = Api::new(process.address, &company.key);
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    let visitor = json!({"channelId": company.webchat, "visitor": {"externalId": "visitor"}});
    let session = api.post("/webchat/sessions", visitor).await.data(201)["id"].as_str().expect("id").to_owned();
    process.terminate();
    assert!(process.wait().success());
    for crash in 0..CRASHES {
        let mut crashing = Process::serve_with_failpoint(folder.path(), &[], "events_appended");
        api = Api::new(crashing.address, &company.key);
        // The process may crash before it answers, so these calls may fail.
        for text in ["hello", "is anybody there"] {
            let message = json!({"body": text, "clientId": format!("{text} {crash}")});
            api.try_post(&format!("/webchat/sessions/{session}/messages"), &message).await;
        }
        assert!(!crashing.wait().success(), "the process should have crashed");
        // The browser repeats messages that were not answered: the `clientId` makes them the same messages.
        process = Process::serve(folder.path());
        api = Api::new(process.address, &company.key);
        for text in ["hello", "is anybody there"] {
            let message = json!({"body": text, "clientId": format!("{text} {crash}")});
            let message = api.post(&format!("/webchat/sessions/{session}/messages"), message).await;
            let ticket = message.data(201)["ticketId"].clone();
            api.post("/messages", json!({"ticketId": ticket, "type": "text", "body": "welcome"})).await.data(202);
        }
        process.terminate();
        assert!(process.wait().success(), "{}", process.log());
        with_database(folder.path(), async |db| check_events(db, company.id).await).await;
    }
}
