//! The rows of reports and dashboards, their periods, and what is refused.

use chrono::{DateTime, TimeDelta, Utc};
use hotline_actors::clock;
use serde_json::{Value, json};

use super::rows;
use crate::steps::{close, id, sent};
use crate::support::{Reply, TestApp, ensure_time_left_in, eventually};

/// Starts a visitor's session, and sends its first message. Returns the session and the ticket that this opens.
async fn start_conversation(app: &TestApp, name: &str) -> (String, i64) {
    let (session, _) = app.session(name).await;
    let message = app.api.post(&format!("/webchat/sessions/{}/messages", session.0), json!({"body": "hello"})).await;
    (session.0, message.data(201)["ticketId"].as_i64().expect("ticket"))
}

async fn wait_a_little() {
    let now = Utc::now();
    eventually("a moment has passed", || async { Utc::now() > now + TimeDelta::milliseconds(20) }).await;
}

fn ms_between(from: &Value, to: &Value) -> i64 {
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<DateTime<Utc>>().ok()).expect("a time");
    (time(to) - time(from)).num_milliseconds()
}

#[allow(clippy::cast_precision_loss)] // A few seconds in milliseconds fit an `f64` exactly.
fn seconds(ms: i64) -> Value {
    json!(ms as f64 / 1000.0)
}

#[actix_web::test]
async fn the_first_response_of_each_opening_is_a_persons_message_not_an_automatic_one() {
    let app = TestApp::shared().await;
    let support = app.company.support;
    app.api.put(&format!("/queues/{support}"), json!({"greeting": "Hello!"})).await.data(200);
    let (_, answered) = start_conversation(&app, "answered").await;
    start_conversation(&app, "never answered").await;
    wait_a_little().await;
    sent(&app.api, json!({"ticketId": answered, "type": "text", "body": "first"})).await;
    wait_a_little().await;
    sent(&app.api, json!({"ticketId": answered, "type": "text", "body": "second"})).await;
    let wrapup = json!({"wrapupTypeId": app.company.solved});
    app.api.post(&format!("/tickets/{answered}/close"), wrapup.clone()).await.data(200);
    app.api.post(&format!("/tickets/{answered}/reopen"), json!({})).await.data(200);
    wait_a_little().await;
    sent(&app.api, json!({"ticketId": answered, "type": "text", "body": "after it was reopened"})).await;
    // In a ticket that the company opens, no contact waits.
    let own = app.ticket("5511900000001").await;
    sent(&app.api, json!({"ticketId": own, "type": "text", "body": "we open"})).await;

    let messages = app.api.all(&format!("/tickets/{answered}/messages")).await;
    let bodies: Vec<&str> = messages.iter().filter_map(|message| message["body"].as_str()).collect();
    assert_eq!(bodies, ["hello", "Hello!", "first", "second", "after it was reopened"]);
    let events = app.api.all(&format!("/tickets/{answered}/events")).await;
    let at = |kind: &str| events.iter().find(|event| event["type"] == kind).expect("it happened")["createdAt"].clone();
    let answers_ms =
        ms_between(&at("opened"), &messages[2]["createdAt"]) + ms_between(&at("reopened"), &messages[4]["createdAt"]);
    let resolution_ms = ms_between(&at("opened"), &at("closed"));
    let shown = rows(&app, "/reports/tickets?groupBy=queue").await;
    let expected = json!([
        {"key": support, "label": "Support", "opened": 2, "closed": 1, "reopened": 1,
            "avgFirstResponseSeconds": seconds((answers_ms + 1) / 2), "avgResolutionSeconds": seconds(resolution_ms)},
        {"key": null, "label": null, "opened": 1, "closed": 0, "reopened": 0,
            "avgFirstResponseSeconds": null, "avgResolutionSeconds": null},
    ]);
    assert_eq!(json!(shown), expected);
    app.stop().await;
}

#[actix_web::test]
async fn the_period_is_the_last_thirty_days_unless_another_is_asked_for() {
    let app = TestApp::shared().await;
    ensure_time_left_in(TimeDelta::days(1)).await;
    let today = Utc::now().date_naive();
    for report in ["tickets", "messages", "sales"] {
        let shown = rows(&app, &format!("/reports/{report}?timeZone=UTC")).await;
        // The first of thirty days begins at this time of day, so a part of one more day is shown.
        assert_eq!(shown.len(), 31, "{report}");
        assert_eq!(shown[30]["key"], today.to_string(), "{report}");
        let shown =
            rows(&app, &format!("/reports/{report}?timeZone=UTC&from=2025-01-01T00:00:00Z&to=2026-01-02T00:00:00Z"))
                .await;
        assert_eq!(shown.len(), 366, "{report}");
        assert!(shown.windows(2).all(|days| days[0]["key"].as_str() < days[1]["key"].as_str()), "{report}");
        let shown = rows(
            &app,
            &format!("/reports/{report}?timeZone=Asia/Kathmandu&from=2026-02-28T18:00:00Z&to=2026-02-28T18:30:00Z"),
        )
        .await;
        let days: Vec<&Value> = shown.iter().map(|row| &row["key"]).collect();
        assert_eq!(days, ["2026-02-28", "2026-03-01"], "{report}: a quarter of an hour of each");
    }
    assert_eq!(rows(&app, "/reports/wrapups").await, Vec::<Value>::new());
    app.stop().await;
}

#[actix_web::test]
async fn an_invalid_report_is_refused_with_every_wrong_field() {
    let app = TestApp::shared().await;
    for (query, fields) in [
        ("from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z", vec!["to"]),
        ("from=2025-01-01T00:00:00Z&to=2026-01-02T00:00:00.001Z", vec!["from"]),
        ("from=2020-01-01T00:00:00Z", vec!["from"]),
        ("from=yesterday&to=now&timeZone=Mars/Olympus", vec!["from", "to", "timeZone"]),
        ("timeZone=&from=1", vec!["from", "timeZone"]),
    ] {
        for report in ["tickets", "messages", "wrapups", "sales"] {
            assert_eq!(app.api.get(&format!("/reports/{report}?{query}")).await.invalid_fields(), fields, "{query}");
        }
    }
    for (report, group) in [("tickets", "type"), ("messages", "queue"), ("sales", "channel")] {
        let reply = app.api.get(&format!("/reports/{report}?groupBy={group}&from=x")).await;
        assert_eq!(reply.invalid_fields(), ["from", "groupBy"], "{report}");
    }
    for query in ["wrapups?queueId=999999999", "sales?boardId=999999999"] {
        app.api.get(&format!("/reports/{query}")).await.error(404, "ERR_API_NOT_FOUND");
    }
    let (other, _) = app.another_company().await;
    app.api.get(&format!("/reports/wrapups?queueId={}", other.support)).await.error(404, "ERR_API_NOT_FOUND");
    app.stop().await;
}

#[actix_web::test]
async fn deleted_queues_and_users_keep_their_label() {
    let app = TestApp::shared().await;
    let queue = id(app.api.post("/queues", json!({"name": "Fair 2026"})).await.data(201));
    let user = json!({"name": "Zoe", "email": "zoe@example.com", "queueIds": [queue]});
    let user = id(app.api.post("/users", user).await.data(201));
    let contact = app.contact("5511900000001").await;
    let open = json!({"channelId": app.company.phone, "contactId": contact, "queueId": queue, "userId": user});
    let ticket = id(app.api.post("/tickets", open).await.data(201));
    sent(&app.api, json!({"ticketId": ticket, "type": "text", "body": "hi", "userId": user})).await;
    close(&app.api, ticket).await;
    app.api.delete(&format!("/users/{user}")).await;
    app.api.delete(&format!("/queues/{queue}")).await;
    app.api.get(&format!("/queues/{queue}")).await.error(404, "ERR_API_NOT_FOUND");
    app.api.get(&format!("/users/{user}")).await.error(404, "ERR_API_NOT_FOUND");
    for (report, group, key, label) in
        [("tickets", "queue", queue, "Fair 2026"), ("tickets", "user", user, "Zoe"), ("messages", "user", user, "Zoe")]
    {
        let shown = rows(&app, &format!("/reports/{report}?groupBy={group}")).await;
        let labels: Vec<(&Value, &Value)> = shown.iter().map(|row| (&row["key"], &row["label"])).collect();
        assert_eq!(labels, [(&json!(key), &json!(label))], "{report} by {group}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_report_is_csv_for_a_client_that_accepts_it() {
    let app = TestApp::shared().await;
    let name = "=HYPERLINK(\"http://evil.example\")";
    let queue = id(app.api.post("/queues", json!({"name": name})).await.data(201));
    let contact = app.contact("5511900000001").await;
    let open = json!({"channelId": app.company.phone, "contactId": contact, "queueId": queue});
    app.api.post("/tickets", open).await.data(201);
    let request = |accept: &'static str| {
        let path = "/reports/tickets?groupBy=queue";
        app.api.request(reqwest::Method::GET, path).header("accept", accept).send()
    };
    let response = request("text/csv").await.expect("an answer");
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/csv; charset=utf-8");
    assert!(response.headers().get_all("vary").iter().any(|value| value == "Accept"), "{:?}", response.headers());
    let text = response.text().await.expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "key,label,opened,closed,reopened,avgFirstResponseSeconds,avgResolutionSeconds",
            &format!("{queue},\"'=HYPERLINK(\"\"http://evil.example\"\")\",1,0,0,,"),
        ]
    );
    let json = Reply::of(app.api.request(reqwest::Method::GET, "/reports/tickets?groupBy=queue")).await;
    assert_eq!(json.data(200)[0]["label"], name);
    let refused = app.api.request(reqwest::Method::GET, "/reports/tickets?groupBy=x").header("accept", "text/csv");
    assert_eq!(Reply::of(refused).await.invalid_fields(), ["groupBy"], "an error is JSON");
    app.stop().await;
}

#[actix_web::test]
async fn the_service_desk_is_shown_as_it_is_now() {
    let app = TestApp::shared().await;
    ensure_time_left_in(TimeDelta::days(1)).await;
    let (ana, ben, support, sales) = (app.company.ana, app.company.ben, app.company.support, app.company.sales);
    let empty = json!({
        "openTickets": 0, "unassignedTickets": 0, "waitingContact": 0, "waitingAgent": 0, "oldestWaitingSeconds": null,
        "queues": [{"id": support, "name": "Support", "open": 0, "unassigned": 0},
            {"id": sales, "name": "Sales", "open": 0, "unassigned": 0}],
        "users": [{"id": ana, "name": "Ana", "open": 0}, {"id": ben, "name": "Ben", "open": 0}],
        "today": {"opened": 0, "closed": 0, "inbound": 0, "outbound": 0, "avgFirstResponseSeconds": null},
    });
    assert_eq!(app.api.get("/dashboards/service").await.data(200), &empty);

    let (session, waiting) = start_conversation(&app, "waiting").await;
    let (_, answered) = start_conversation(&app, "answered").await;
    let quiet = app.ticket("5511900000001").await;
    let closed = app.ticket("5511900000002").await;
    close(&app.api, closed.0).await;
    app.api.post(&format!("/tickets/{answered}/transfer"), json!({"userId": ana})).await.data(200);
    app.api.post(&format!("/tickets/{quiet}/transfer"), json!({"queueId": sales})).await.data(200);
    wait_a_little().await;
    sent(&app.api, json!({"ticketId": answered, "type": "text", "body": "yes?"})).await;
    app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "anybody?"})).await.data(201);
    app.api.post(&format!("/tickets/{waiting}/notes"), json!({"body": "a note is no answer"})).await.data(201);

    let first = &app.api.all(&format!("/tickets/{waiting}/messages")).await[0]["createdAt"];
    let answer = app.api.all(&format!("/tickets/{answered}/messages")).await;
    let answer_ms = ms_between(&answer[0]["createdAt"], &answer[1]["createdAt"]);
    // In whole milliseconds, like all times of the service.
    let asked = clock::now();
    let reply = app.api.get("/dashboards/service").await;
    let mut shown = reply.data(200).clone();
    let waited = shown["oldestWaitingSeconds"].take().as_i64().expect("somebody waits");
    let [least, most] = [asked, clock::now()].map(|at| ms_between(first, &json!(at)) / 1000);
    assert!((least..=most).contains(&waited), "{waited} s, {least} to {most} s after the first words");
    let today =
        json!({"opened": 4, "closed": 1, "inbound": 3, "outbound": 1, "avgFirstResponseSeconds": seconds(answer_ms)});
    let expected = json!({
        "openTickets": 3, "unassignedTickets": 2, "waitingContact": 2, "waitingAgent": 1, "oldestWaitingSeconds": null,
        "queues": [{"id": support, "name": "Support", "open": 2, "unassigned": 1},
            {"id": sales, "name": "Sales", "open": 1, "unassigned": 1}],
        "users": [{"id": ana, "name": "Ana", "open": 1}, {"id": ben, "name": "Ben", "open": 0}],
        "today": today,
    });
    assert_eq!(shown, expected);
    sent(&app.api, json!({"ticketId": waiting, "type": "text", "body": "here"})).await;
    let reply = app.api.get("/dashboards/service").await;
    assert_eq!(reply.data(200)["oldestWaitingSeconds"], Value::Null, "nobody waits any more");
    assert_eq!(reply.data(200)["waitingContact"], 3);
    app.stop().await;
}
