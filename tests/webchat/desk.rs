//! Typing: the visitor sees that an agent types, and the desk (the company's agents) sees that the visitor does.

use hotline_actors::clock;
use hotline_persistence::tables::tokens::{self, NewToken, Permissions};
use reqwest::Method;
use serde_json::{Value, json};

use crate::door::only_ticket;
use crate::support::{Api, OwnApp, Reply, TestApp, eventually};
use crate::visitor::Browser;

fn typing_path(browser: &Browser, ticket: i64) -> String {
    format!("/webchat/{}/tickets/{ticket}/typing", browser.key)
}

async fn send_request(api: &Api, key: &str, method: Method, path: &str, body: Option<Value>) -> Reply {
    let request = api.anonymous(method, path).bearer_auth(key);
    Reply::of(match body {
        Some(body) => request.json(&body),
        None => request,
    })
    .await
}

#[actix_web::test]
async fn a_visitor_sees_an_agent_type_and_the_desk_sees_the_visitor() {
    let app = OwnApp::start().await;
    // The clock stands still, so that nobody is taken to have stopped typing.
    clock::stop();
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.say(&session, "hello").await;
    let ticket = only_ticket(&app.api).await;
    let path = typing_path(&browser, ticket);
    let key = app.company.key.clone();
    let state = || async { send_request(&app.api, &key, Method::GET, &path, None).await.data(200).clone() };
    let post_typing = |body: Option<Value>| send_request(&app.api, &key, Method::POST, &path, body);
    assert_eq!(state().await, json!({"online": false, "typing": false}));
    assert_eq!(post_typing(None).await.status, 204, "typing is refused while no socket is open");

    let mut socket = browser.socket(&session).await;
    assert_eq!(post_typing(Some(json!({"userId": app.company.ana}))).await.status, 204);
    assert_eq!(socket.next_of("typing").await, json!({"type": "typing", "typing": true, "agent": {"name": "Ana"}}));
    assert_eq!(post_typing(Some(json!({"typing": false}))).await.status, 204);
    assert_eq!(socket.next_of("typing").await, json!({"type": "typing", "typing": false, "agent": null}));

    assert_eq!(state().await, json!({"online": true, "typing": false}));
    socket.send(json!({"type": "typing", "typing": true})).await;
    eventually("the desk sees it", || async { state().await == json!({"online": true, "typing": true}) }).await;
    socket.send(json!({"type": "typing", "typing": false})).await;
    eventually("the desk sees the end of it", || async { state().await == json!({"online": true, "typing": false}) })
        .await;
    drop(socket);
    eventually("the desk sees that the visitor has left", || async {
        state().await == json!({"online": false, "typing": false})
    })
    .await;
    app.stop().await;
}

#[actix_web::test]
async fn only_tokens_of_its_company_read_and_set_the_typing_of_a_ticket() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.say(&session, "hello").await;
    let ticket = only_ticket(&app.api).await;
    let (other, _) = app.another_company().await;
    let by_phone = app.ticket("5511999990001").await;
    let ticket_path = typing_path(&browser, ticket);
    for method in [Method::GET, Method::POST] {
        let refused = Reply::of(app.api.anonymous(method.clone(), &ticket_path)).await;
        refused.error(401, "ERR_API_UNAUTHORIZED");
        send_request(&app.api, &session.token, method.clone(), &ticket_path, None)
            .await
            .error(401, "ERR_API_UNAUTHORIZED");
        for (key, path) in [
            (&app.company.key, typing_path(&browser, 999_999_999)),
            (&app.company.key, typing_path(&browser, by_phone.0)),
            (&app.company.key, format!("/webchat/{}/tickets/x/typing", browser.key)),
            (&app.company.key, format!("/webchat/ch_none/tickets/{ticket}/typing")),
        ] {
            send_request(&app.api, key, method.clone(), &path, None).await.error(404, "ERR_API_NOT_FOUND");
        }
        send_request(&app.api, &other.key, method, &ticket_path, None).await.error(404, "ERR_API_NOT_FOUND");
    }
    let unknown =
        send_request(&app.api, &app.company.key, Method::POST, &ticket_path, Some(json!({"userId": 999_999_999})))
            .await;
    unknown.error(404, "ERR_API_NOT_FOUND");
    let wrong =
        send_request(&app.api, &app.company.key, Method::POST, &ticket_path, Some(json!({"typing": "yes"}))).await;
    assert_eq!(wrong.invalid_fields(), ["typing"]);
    let reads: Permissions = [("tickets".to_owned(), ["GET".to_owned()].into())].into();
    let new = NewToken { name: "reads", permissions: reads, ..NewToken::default() };
    let (_, reader) = tokens::insert(&app.db, app.company.id, new).await.expect("token");
    let get = || send_request(&app.api, &reader, Method::GET, &ticket_path, None);
    eventually("the token is seen", || async { get().await.status == 200 }).await;
    send_request(&app.api, &reader, Method::POST, &ticket_path, None).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    app.stop().await;
}
