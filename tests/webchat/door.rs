//! Sessions and messages, as a visitor's browser requests them.

use futures_util::future::join;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::service::TestOptions;
use crate::support::{Api, OwnApp, Reply, TestApp, eventually};
use crate::visitor::{Browser, Session, signed};

/// The open ticket of the company's only visitor.
pub async fn only_ticket(api: &Api) -> i64 {
    let tickets = api.all("/tickets?status=open").await;
    assert_eq!(tickets.len(), 1, "{tickets:?}");
    tickets[0]["id"].as_i64().expect("id")
}

/// An agent writes in a ticket.
pub async fn answer(api: &Api, ticket: i64, body: &str) {
    api.post_while_busy("/messages", &json!({"ticketId": ticket, "type": "text", "body": body})).await.data(202);
}

async fn listed(browser: &Browser, session: &Session, query: &str) -> Vec<Value> {
    let reply = browser.get(session, &format!("/messages{query}")).await;
    reply.data(200).as_array().expect("a list").clone()
}

fn bodies(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["body"].as_str().unwrap_or_default()).collect()
}

#[actix_web::test]
async fn a_session_is_opened_resumed_and_ended_with_its_own_token() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let opened = browser.try_open(json!({"name": "Vera", "email": "vera@example.com"})).await;
    let opened = opened.data(201).clone();
    let token = opened["token"].as_str().expect("token").to_owned();
    assert!(token.starts_with("vt_") && token.len() == 35, "{token}");
    let mut shown = opened.as_object().expect("object").clone();
    shown.remove("token");
    let session = Session { id: opened["id"].as_str().expect("id").to_owned(), token };
    assert_eq!(browser.get(&session, "/session").await.data(200), &Value::Object(shown));
    assert_eq!(opened["status"], "active");

    let sent = browser.say(&session, "hello").await;
    assert_eq!(
        (&sent["direction"], &sent["status"], &sent["agent"]),
        (&json!("inbound"), &json!("received"), &Value::Null)
    );
    let ended = browser.post(&session, "/end", json!({})).await.data(200).clone();
    assert_eq!(ended["status"], "ended");
    assert_eq!(browser.post(&session, "/end", json!({})).await.data(200), &ended, "ending twice has another result");
    assert_eq!(browser.get(&session, "/session").await.data(200), &ended);
    let refused = browser.post(&session, "/messages", json!({"body": "too late"})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["state"], "the session has ended");
    assert_eq!(
        bodies(&listed(&browser, &session, "").await),
        ["hello"],
        "the messages of an ended session cannot be read"
    );
    assert_eq!(app.api.all("/messages").await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn a_visitor_reads_while_another_change_of_the_company_waits_for_the_disk() {
    // A process of a cluster has no journal.
    let app = OwnApp::start_with(TestOptions { member: false, ..TestOptions::default() }).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.say(&session, "hello").await;
    let send = json!({"channelId": app.company.phone, "number": "5511987654321", "type": "text", "body": "later"});
    let log = &app.service.app.engine.store().log;
    fail::cfg("journal_before_sync", "pause").expect("failpoint");
    let reading = async {
        eventually("the change waits for the disk", || async { log.appended() > log.durable() }).await;
        let read = browser.get(&session, "/messages").await;
        fail::remove("journal_before_sync");
        read
    };
    let (sent, read) = join(app.api.post("/messages", send), reading).await;
    sent.data(202);
    assert_eq!(bodies(read.data(200).as_array().expect("a list")), ["hello"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_visitor_is_not_shown_the_data_of_their_contact() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let secret =
        json!({"name": "Vera Secret", "number": "5511987654321", "email": "vera@example.com", "externalId": "v-1"});
    let known = json!({"channelId": app.company.webchat, "visitor": secret});
    let contact = app.api.post("/webchat/sessions", known).await.data(201)["contact"]["id"].clone();
    app.api.put(&format!("/contacts/{contact}"), json!({"cpfCnpj": "52998224725"})).await.data(200);
    let opened = browser.try_open_as(&signed("v-1", json!({}))).await;
    let session = Session::of(opened.data(201));
    let sent = browser.say(&session, "hello").await;
    assert_eq!(app.api.all("/messages").await[0]["contactId"], contact, "another contact was used");
    let shown = browser.get(&session, "/session").await.body;
    for (what, text) in
        [("opening", opened.body.to_string()), ("session", shown.to_string()), ("message", sent.to_string())]
    {
        for hidden in ["Secret", "5511987654321", "52998224725", "contact", "ticket", "company", "source"] {
            assert!(!text.contains(hidden), "{what} shows {hidden}: {text}");
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_message_sent_again_with_its_client_id_returns_the_first_one() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let first = browser.post(&session, "/messages", json!({"body": "once", "clientId": "c-1"})).await.data(201).clone();
    assert_eq!(first["clientId"], "c-1");
    let again =
        browser.post(&session, "/messages", json!({"body": "twice", "clientId": "c-1"})).await.data(201).clone();
    assert_eq!(again, first);
    browser.post(&session, "/end", json!({})).await.data(200);
    let late = browser.post(&session, "/messages", json!({"body": "once", "clientId": "c-1"})).await;
    assert_eq!(late.data(201), &first, "the repeated message has another result after the end");
    assert_eq!(app.api.all("/messages").await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn the_list_has_later_messages_without_notes_and_marks_them_as_delivered() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let hello = browser.say(&session, "hello").await;
    let ticket = only_ticket(&app.api).await;
    app.api.post(&format!("/tickets/{ticket}/notes"), json!({"body": "a note"})).await.data(201);
    answer(&app.api, ticket, "yes?").await;
    let after = listed(&browser, &session, &format!("?after={}", hello["id"])).await;
    assert_eq!(bodies(&after), ["yes?"]);
    assert_eq!((&after[0]["direction"], &after[0]["status"]), (&json!("outbound"), &json!("sent")));
    assert_eq!(bodies(&listed(&browser, &session, "").await), ["hello", "yes?"]);
    eventually("the answer is delivered", || async {
        app.api.all("/messages?direction=outbound").await[0]["status"] == "delivered"
    })
    .await;
    let page = browser.get(&session, "/messages?perPage=1").await;
    assert_eq!(page.body["meta"], json!({"page": 1, "perPage": 1, "hasMore": true}));
    app.stop().await;
}

#[actix_web::test]
async fn a_reply_names_an_option_of_a_message_that_was_shown() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let sent = browser.say(&session, "hello").await;
    for (reply, status) in [
        (json!({"messageId": sent["id"], "id": "yes"}), 422),
        (json!({"messageId": 999_999_999, "id": "yes"}), 404),
        (json!({"id": "yes"}), 422),
    ] {
        let refused = browser.post(&session, "/messages", json!({"reply": reply})).await;
        assert_eq!(refused.status.as_u16(), status, "{reply}: {}", refused.body);
    }
    app.stop().await;
}

#[actix_web::test]
async fn only_a_token_of_this_webchat_opens_anything() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let (other, other_api) = app.another_company().await;
    let elsewhere = Browser::on(&app, &other, other.webchat).await;
    let stranger = elsewhere.open("v").await;
    let unknown = Session { id: String::new(), token: "vt_00000000000000000000000000000000".to_owned() };
    let malformed = Session { id: String::new(), token: "vt_short".to_owned() };
    let api_key_session = Session { id: String::new(), token: app.company.key.clone() };
    let calls =
        [(Method::GET, "/session"), (Method::GET, "/messages"), (Method::POST, "/messages"), (Method::POST, "/end")];
    for (method, path) in calls {
        for outsider in [&stranger, &unknown, &malformed, &api_key_session] {
            // The body of a request without permission is not even read.
            let request = browser.with(outsider, method.clone(), path).body("no JSON");
            Reply::of(request).await.error(401, "ERR_API_UNAUTHORIZED");
        }
        Reply::of(browser.request(method.clone(), path)).await.error(401, "ERR_API_UNAUTHORIZED");
    }
    for token in [&session.token, &stranger.token] {
        let refused = app.api.with_key(token).get("/tickets").await;
        refused.error(401, "ERR_API_UNAUTHORIZED");
    }
    // Each token still opens its own session.
    assert_eq!(browser.get(&session, "/session").await.data(200)["id"], session.id);
    assert_eq!(elsewhere.get(&stranger, "/session").await.data(200)["id"], stranger.id);
    assert_eq!(other_api.all("/messages").await.len() + app.api.all("/messages").await.len(), 0);
    app.stop().await;
}

#[actix_web::test]
async fn channels_other_than_webchats_are_not_found() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let phone = app.api.all("/channels").await.into_iter().find(|channel| channel["type"] == "whatsapp");
    let phone: String = sqlx::query_scalar("select public_key from channels where company_id = $1 and id = $2")
        .bind(app.company.id)
        .bind(phone.expect("a phone channel")["id"].as_i64())
        .fetch_one(&app.db)
        .await
        .expect("key");
    for key in [phone.as_str(), "ch_00000000000000000000000000000000", "x"] {
        let nowhere = Browser::at(app.address, key);
        nowhere.try_open(json!({})).await.error(404, "ERR_API_NOT_FOUND");
        Reply::of(nowhere.request(Method::GET, "/config")).await.error(404, "ERR_API_NOT_FOUND");
        // The author of a page would not notice a refusal, so the service sends a script that warns.
        let script = nowhere.bare(Method::GET, "/widget.js").send().await.expect("answer");
        assert_eq!(
            (script.status().as_u16(), &script.headers()["cache-control"]),
            (200, &"no-store".parse().expect("header"))
        );
        let script = script.text().await.expect("text");
        assert!(script.starts_with("console.warn(") && !script.contains(key), "{script}");
    }
    Reply::of(browser.request(Method::GET, "/nothing")).await.error(404, "ERR_API_NOT_FOUND");
    let refused = Reply::of(browser.request(Method::DELETE, "/sessions")).await;
    refused.error(405, "ERR_API_METHOD_NOT_ALLOWED");
    assert_eq!(refused.headers["allow"], "POST");
    app.stop().await;
}

#[actix_web::test]
async fn the_webchat_of_an_inactive_company_is_refused() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let inactive = "update companies set active = $2 where id = $1";
    sqlx::query(inactive).bind(app.company.id).bind(false).execute(&app.db).await.expect("update");
    eventually("the inactive company is refused", || async { browser.get(&session, "/session").await.status == 403 })
        .await;
    for path in ["/session", "/messages", "/config", "/widget.js"] {
        let refused = browser.get(&session, path).await;
        refused.error(403, "ERR_API_COMPANY_INACTIVE");
    }
    let (status, body) = browser.try_socket(&session.token).await.err().expect("refused");
    assert_eq!((status, &body["error"]["code"]), (403, &json!("ERR_API_COMPANY_INACTIVE")));
    app.stop().await;
}

#[actix_web::test]
async fn invalid_bodies_are_refused_and_a_request_id_is_returned() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let say = || browser.with(&session, Method::POST, "/messages");
    let typed = |kind: &str| say().header("content-type", kind);
    Reply::of(typed("application/json").body("{")).await.error(400, "ERR_API_BAD_REQUEST");
    Reply::of(typed("text/plain").body("{\"body\":\"x\"}")).await.error(415, "ERR_API_UNSUPPORTED_MEDIA_TYPE");
    let large = "x".repeat(1024 * 1024 + 1);
    Reply::of(typed("application/json").body(large)).await.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
    let cases = [
        (json!({}), "body"),
        (json!({"body": " "}), "body"),
        (json!({"body": "x".repeat(65_537)}), "body"),
        (json!({"body": "x", "clientId": "c".repeat(65)}), "clientId"),
        (json!({"body": "x", "reply": {"messageId": 1, "id": "a"}}), "reply"),
    ];
    for (body, field) in cases {
        let refused = browser.post(&session, "/messages", body).await;
        assert_eq!(refused.invalid_fields(), [field]);
    }
    let refused = browser.try_open(json!({"email": "nobody", "number": "1"})).await;
    assert_eq!(refused.invalid_fields(), ["visitor.number", "visitor.email"]);
    let with_request_id = Reply::of(say().header("x-request-id", "mine-1").json(&json!({"body": "x"}))).await;
    assert_eq!(
        (with_request_id.status.as_u16(), &with_request_id.headers["x-request-id"]),
        (201, &"mine-1".parse().expect("header"))
    );
    app.stop().await;
}
