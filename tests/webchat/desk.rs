//! Typing, both ways.

use hotline_persistence::tables::tokens::{self, NewToken, Permissions};
use reqwest::Method;
use serde_json::{Value, json};

use crate::door::only_ticket;
use crate::support::{Api, Reply, TestApp, eventually};
use crate::visitor::Browser;

fn path(browser: &Browser, ticket: i64) -> String {
    format!("/webchat/{}/tickets/{ticket}/typing", browser.key)
}

async fn asked(api: &Api, key: &str, method: Method, path: &str, body: Option<Value>) -> Reply {
    let request = api.anonymous(method, path).bearer_auth(key);
    Reply::of(match body {
        Some(body) => request.json(&body),
        None => request,
    })
    .await
}

#[actix_web::test]
async fn a_visitor_sees_an_agent_type_and_the_desk_sees_the_visitor() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.say(&session, "hello").await;
    let ticket = only_ticket(&app.api).await;
    let path = path(&browser, ticket);
    let key = app.company.key.clone();
    let state = || async { asked(&app.api, &key, Method::GET, &path, None).await.data(200).clone() };
    let types = |body: Option<Value>| asked(&app.api, &key, Method::POST, &path, body);
    assert_eq!(state().await, json!({"online": false, "typing": false}));
    assert_eq!(types(None).await.status, 204, "nobody is there to see it");

    let mut socket = browser.socket(&session).await;
    assert_eq!(types(Some(json!({"userId": app.company.ana}))).await.status, 204);
    assert_eq!(socket.next_of("typing").await, json!({"type": "typing", "typing": true, "agent": {"name": "Ana"}}));
    assert_eq!(types(Some(json!({"typing": false}))).await.status, 204);
    assert_eq!(socket.next_of("typing").await, json!({"type": "typing", "typing": false, "agent": null}));

    assert_eq!(state().await, json!({"online": true, "typing": false}));
    socket.send(json!({"type": "typing", "typing": true})).await;
    eventually("the desk sees it", || async { state().await == json!({"online": true, "typing": true}) }).await;
    socket.send(json!({"type": "typing", "typing": false})).await;
    eventually("the desk sees the end of it", || async { state().await == json!({"online": true, "typing": false}) })
        .await;
    drop(socket);
    eventually("the desk sees them go", || async { state().await == json!({"online": false, "typing": false}) }).await;
    app.stop().await;
}

#[actix_web::test]
async fn the_desks_calls_are_for_those_whose_ticket_it_is() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.say(&session, "hello").await;
    let ticket = only_ticket(&app.api).await;
    let (other, _) = app.another_company().await;
    let by_phone = app.ticket("5511999990001").await;
    let own = path(&browser, ticket);
    for method in [Method::GET, Method::POST] {
        let refused = Reply::of(app.api.anonymous(method.clone(), &own)).await;
        refused.error(401, "ERR_API_UNAUTHORIZED");
        asked(&app.api, &session.token, method.clone(), &own, None).await.error(401, "ERR_API_UNAUTHORIZED");
        for (key, path) in [
            (&app.company.key, path(&browser, 999_999_999)),
            (&app.company.key, path(&browser, by_phone.0)),
            (&app.company.key, format!("/webchat/{}/tickets/x/typing", browser.key)),
            (&app.company.key, format!("/webchat/ch_none/tickets/{ticket}/typing")),
        ] {
            asked(&app.api, key, method.clone(), &path, None).await.error(404, "ERR_API_NOT_FOUND");
        }
        asked(&app.api, &other.key, method, &own, None).await.error(404, "ERR_API_NOT_FOUND");
    }
    let unknown = asked(&app.api, &app.company.key, Method::POST, &own, Some(json!({"userId": 999_999_999}))).await;
    unknown.error(404, "ERR_API_NOT_FOUND");
    let wrong = asked(&app.api, &app.company.key, Method::POST, &own, Some(json!({"typing": "yes"}))).await;
    assert_eq!(wrong.invalid_fields(), ["typing"]);
    let reads: Permissions = [("tickets".to_owned(), ["GET".to_owned()].into())].into();
    let new = NewToken { name: "reads", permissions: reads, ..NewToken::default() };
    let (_, reader) = tokens::insert(&app.db, app.company.id, new).await.expect("token");
    let get = || asked(&app.api, &reader, Method::GET, &own, None);
    eventually("the token is seen", || async { get().await.status == 200 }).await;
    asked(&app.api, &reader, Method::POST, &own, None).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    app.stop().await;
}
