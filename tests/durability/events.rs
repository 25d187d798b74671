//! Each event is in the log once, whenever the process ends.

use serde_json::json;

use crate::process::{Process, with_database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, check_events, eventually};

/// How often the process dies with events that are written and not committed.
const DEATHS: usize = 4;

#[actix_web::test]
async fn what_was_written_and_not_committed_is_told_once_by_the_next_start() {
    let folder = prepared_folder();
    let mut process = Process::serve(folder.path());
    let company = with_database(folder.path(), async |db| Company::create(db, "Acme").await).await;
    let mut api = Api::new(process.address, &company.key);
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    let visitor = json!({"channelId": company.webchat, "visitor": {"externalId": "visitor"}});
    let session = api.post("/webchat/sessions", visitor).await.data(201)["id"].as_str().expect("id").to_owned();
    process.terminate();
    assert!(process.wait().success());
    for death in 0..DEATHS {
        let mut dying = Process::serve_failing(folder.path(), &[], "events_told");
        api = Api::new(dying.address, &company.key);
        // An answered message is durable. The process may end before the answer.
        for word in ["hello", "is anybody there"] {
            let message = json!({"body": word, "clientId": format!("{word} {death}")});
            api.try_post(&format!("/webchat/sessions/{session}/messages"), &message).await;
        }
        assert!(!dying.wait().success(), "it has died");
        // The next process gets the same messages again, since they may not have been answered.
        process = Process::serve(folder.path());
        api = Api::new(process.address, &company.key);
        for word in ["hello", "is anybody there"] {
            let message = json!({"body": word, "clientId": format!("{word} {death}")});
            let message = api.post(&format!("/webchat/sessions/{session}/messages"), message).await;
            let ticket = message.data(201)["ticketId"].clone();
            api.post("/messages", json!({"ticketId": ticket, "type": "text", "body": "welcome"})).await.data(202);
        }
        process.terminate();
        assert!(process.wait().success(), "{}", process.log());
        with_database(folder.path(), async |db| check_events(db, company.id).await).await;
    }
}
