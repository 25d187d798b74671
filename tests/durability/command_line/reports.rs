//! `hotline report`.

use serde_json::json;

use super::{failure, json as run_json};
use crate::process::{Process, with_database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, eventually};

#[actix_web::test]
async fn wrong_report_figures_are_rebuilt_beside_a_running_service() {
    let folder = prepared_folder();
    let mut process = Process::serve(folder.path());
    let company = with_database(folder.path(), async |db| Company::create(db, "Acme").await).await;
    let id = company.id.to_string();
    let api = Api::new(process.address, &company.key);
    let ready = || async { api.get("/channels").await.body["data"].as_array().is_some_and(|rows| rows.len() == 2) };
    eventually("the company is seen", ready).await;
    let visitor = json!({"channelId": company.webchat, "visitor": {"externalId": "visitor"}});
    let session = api.post("/webchat/sessions", visitor).await.data(201)["id"].as_str().expect("id").to_owned();
    api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hello"})).await.data(201);
    let reported = async || {
        let reply = api.get("/reports/messages?groupBy=type").await;
        reply.data(200).clone()
    };
    let expected = json!([{"key": "text", "label": "text", "inbound": 1, "outbound": 0, "failed": 0}]);
    assert_eq!(reported().await, expected);
    let unchanged_company =
        json!({"company": company.id, "name": "Acme", "corrected": false, "tickets": 0, "messages": 0, "wrapups": 0});
    assert_eq!(run_json(folder.path(), &["report", "rebuild"]), json!({"companies": [unchanged_company]}));

    with_database(folder.path(), async |db| {
        for statement in ["update report_messages set inbound = inbound + 7, failed = 1", "delete from report_tickets"]
        {
            sqlx::query(statement).execute(db).await.expect("a wrong figure");
        }
    })
    .await;
    assert_ne!(reported().await, expected);
    let rebuilt = run_json(folder.path(), &["report", "rebuild", "--company", &id]);
    // Rows of four dimensions (company, channel, user, and type or queue), each in quarters of an hour and in days.
    let corrected_company =
        json!({"company": company.id, "name": "Acme", "corrected": true, "tickets": 8, "messages": 8, "wrapups": 0});
    assert_eq!(rebuilt, json!({"companies": [corrected_company]}));
    assert_eq!(reported().await, expected);
    assert_eq!(run_json(folder.path(), &["report", "rebuild"]), json!({"companies": [unchanged_company]}));
    assert!(failure(folder.path(), &["report", "rebuild", "--company", "999999"]).contains("no such company: 999999"));
    process.terminate();
    assert!(process.wait().success());
}
