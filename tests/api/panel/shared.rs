//! People use the endpoints of the API as integrations do, in their own name.

use reqwest::Method;
use serde_json::{Value, json};

use crate::steps::{id, listed};
use crate::support::{OwnApp, Person, Reply};

#[actix_web::test]
async fn records_created_by_a_person_show_their_name() {
    let app = OwnApp::start().await;
    let company = &app.company;
    let ana = Person::user(&app, company.ana, "ana@example.com").await;
    let named = json!({"id": company.ana, "name": "Ana"});
    let created = ana.post("/contacts", json!({"name": "Maria", "number": "5511987654321"})).await;
    let contact = id(created.data(201));
    let opened = ana.post("/tickets", json!({"channelId": company.phone, "contactId": contact})).await;
    assert_eq!(opened.data(201)["creationSource"], "user");
    let ticket = id(opened.data(201));
    let note = ana.post(&format!("/tickets/{ticket}/notes"), json!({"body": "calls back"})).await;
    assert_eq!((&note.data(201)["user"], &note.data(201)["integration"]), (&named, &Value::Null));
    let sent = ana.post("/messages", json!({"ticketId": ticket, "type": "text", "body": "Hello"})).await;
    assert_eq!(sent.status, 202, "{}", sent.body);
    // A note in another's name is refused; naming oneself is allowed.
    let other = json!({"body": "x", "userId": company.ben});
    ana.post(&format!("/tickets/{ticket}/notes"), other).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    let own = json!({"body": "x", "userId": company.ana});
    assert_eq!(ana.post(&format!("/tickets/{ticket}/notes"), own).await.data(201)["user"], named);

    let messages = app.api.get(&format!("/tickets/{ticket}/messages")).await;
    for message in messages.data(200).as_array().expect("messages") {
        assert_eq!((&message["user"], &message["integration"]), (&named, &Value::Null), "{message}");
    }
    // An administrator of the installation is not a user of the company: neither a user nor an integration is shown.
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(company.id);
    let note = admin.post(&format!("/tickets/{ticket}/notes"), json!({"body": "from an admin"})).await;
    assert_eq!((&note.data(201)["user"], &note.data(201)["integration"]), (&Value::Null, &Value::Null));
    let own = json!({"body": "x", "userId": company.ana});
    admin.post(&format!("/tickets/{ticket}/notes"), own).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    assert_eq!(ana.post(&format!("/tickets/{ticket}/close"), json!({})).await.status, 200);
    let events = app.api.get(&format!("/tickets/{ticket}/events")).await;
    let closed =
        events.data(200).as_array().expect("events").iter().find(|event| event["type"] == "closed").expect("closed");
    assert_eq!((&closed["user"], &closed["integration"]), (&named, &Value::Null));
    app.stop().await;
}

#[actix_web::test]
async fn idempotency_keys_and_validation_are_those_of_the_api() {
    let app = OwnApp::start().await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let request =
        || ana.request(Method::POST, "/contacts").header("idempotency-key", "k-1").json(&json!({"name": "Once"}));
    let first = Reply::of(request()).await;
    let second = Reply::of(request()).await;
    assert_eq!((first.data(201), second.is_replay()), (second.data(201), true));
    let other = ana.request(Method::POST, "/contacts").header("idempotency-key", "k-1").json(&json!({"name": "Twice"}));
    Reply::of(other).await.error(409, "ERR_API_IDEMPOTENCY_CONFLICT");
    let of_person = ana.post("/contacts", json!({"name": 7, "number": "x"})).await;
    let of_token = app.api.post("/contacts", json!({"name": 7, "number": "x"})).await;
    assert_eq!((of_person.status, &of_person.body), (of_token.status, &of_token.body));
    app.stop().await;
}

#[actix_web::test]
async fn an_administrator_of_the_installation_works_in_the_company_they_name() {
    let app = OwnApp::start().await;
    let (other, _) = app.another_company().await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    admin.get("/contacts").await.error(400, "ERR_API_BAD_REQUEST");
    admin.in_company(hotline_persistence::CompanyId::new(999)).get("/contacts").await.error(404, "ERR_API_NOT_FOUND");
    let wrong = admin.request(Method::GET, "/contacts").header("hotline-company", "x");
    Reply::of(wrong).await.error(404, "ERR_API_NOT_FOUND");
    let admin_in_company = admin.in_company(app.company.id);
    let tag = id(admin_in_company.post("/tags", json!({"name": "VIP"})).await.data(201));
    admin_in_company.get(&format!("/tags/{tag}")).await.data(200);
    admin.in_company(other.id).get(&format!("/tags/{tag}")).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(listed(&app.api, "/tags").await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn a_stream_ends_with_the_session_that_opened_it() {
    let app = OwnApp::start().await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(app.company.id);
    let request = admin.request(Method::GET, "/events/stream").header("accept", "text/event-stream");
    let mut stream = request.send().await.expect("a stream");
    assert_eq!(stream.status(), 200);
    admin.post("/tags", json!({"name": "first"})).await.data(201);
    let contact = json!({"name": "Maria"});
    admin.post("/contacts", contact.clone()).await.data(201);
    let mut received = String::new();
    while !received.contains("contact.created") {
        let piece = stream.chunk().await.expect("a piece").expect("the stream continues");
        received.push_str(&String::from_utf8_lossy(&piece));
    }
    assert_eq!(admin.delete("/session").await.status, 204);
    // The stream ends without this event.
    app.api.post("/contacts", contact).await.data(201);
    let mut rest = String::new();
    while let Ok(Some(piece)) = stream.chunk().await {
        rest.push_str(&String::from_utf8_lossy(&piece));
    }
    assert!(!rest.contains("contact.created"), "{rest}");
    app.stop().await;
}
