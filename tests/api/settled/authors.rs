//! Who did what: the agent and the integration that a record names. Also users who leave queues, and URLs of files.

use reqwest::Method;
use serde_json::{Value, json};

use crate::plain::deleted;
use crate::steps::{NOBODY, id, ids, ticket};
use crate::support::form::Form;
use crate::support::{Reply, TestApp, eventually};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

async fn open_ticket(app: &TestApp, number: &str, more: Value) -> i64 {
    let mut body = json!({"channelId": app.company.phone, "contactId": app.contact(number).await});
    body.as_object_mut().expect("object").extend(more.as_object().expect("object").clone());
    id(app.api.post("/tickets", body).await.data(201))
}

#[actix_web::test]
async fn a_message_and_a_note_name_the_agent_of_the_request_and_the_integration() {
    let app = TestApp::shared().await;
    let (other, _) = app.another_company().await;
    let ana = json!({"id": app.company.ana, "name": "Ana"});
    let token: (i64, String) = sqlx::query_as("select id, name from tokens where company_id = $1")
        .bind(app.company.id)
        .fetch_one(&app.db)
        .await
        .expect("the token");
    let integration = json!({"id": token.0, "name": token.1});
    let (session, contact) = app.session("visitor").await;
    let posted = app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hello"})).await;
    let ticket_id = posted.data(201)["ticketId"].clone();
    assert_eq!(
        (&posted.data(201)["user"], &posted.data(201)["integration"]),
        (&Value::Null, &Value::Null),
        "a contact's message names a user or an integration"
    );

    let send = json!({"ticketId": ticket_id, "type": "text", "body": "hi", "userId": app.company.ana});
    app.api.post("/messages", send.clone()).await.data(202);
    let form = Form::default().text("type", "media").text("ticketId", &ticket_id).text("userId", app.company.ana);
    app.api.send_form(form.file("a.png", "image/png", PNG)).await.data(202);
    let path = format!("/tickets/{ticket_id}/notes");
    let note = app.api.post(&path, json!({"body": "call back", "userId": app.company.ana})).await;
    assert_eq!((&note.data(201)["user"], &note.data(201)["integration"]), (&ana, &integration));
    app.api.post("/messages", json!({"ticketId": ticket_id, "type": "text", "body": "nobody's"})).await.data(202);

    for absent in [json!(other.ana), json!(NOBODY), json!(1e30)] {
        let mut body = send.clone();
        body["userId"] = absent.clone();
        app.api.post("/messages", body).await.error(404, "ERR_API_NOT_FOUND");
        app.api.post(&path, json!({"body": "x", "userId": absent})).await.error(404, "ERR_API_NOT_FOUND");
    }
    app.api.post(&path, json!({"body": "x", "userId": "ana"})).await.error(422, "ERR_API_VALIDATION");

    let written = app.api.all(&format!("/tickets/{ticket_id}/messages")).await;
    let authors = |message: &Value| (message["user"].clone(), message["integration"].clone());
    assert_eq!(
        written.iter().map(authors).collect::<Vec<_>>(),
        [
            (Value::Null, Value::Null),
            (ana.clone(), integration.clone()),
            (ana.clone(), integration.clone()),
            (ana.clone(), integration.clone()),
            (Value::Null, integration.clone()),
        ]
    );
    let events = app.api.all(&format!("/tickets/{ticket_id}/events")).await;
    let noted = events.iter().find(|event| event["type"] == "note_added").expect("the note's event");
    assert_eq!((&noted["user"], &noted["integration"]), (&ana, &integration));
    let opened = &events[0];
    assert_eq!(
        (&opened["type"], &opened["integration"]),
        (&json!("opened"), &Value::Null),
        "the contact's opening names an integration"
    );

    // History keeps the name.
    deleted(&app.api, &format!("/users/{}", app.company.ana)).await;
    let kept = app.api.all(&format!("/messages?contactId={contact}")).await;
    assert_eq!(kept[1]["user"], ana);
    app.stop().await;
}

/// If the deletion of a user removed the name, the message would change without an event.
#[actix_web::test]
async fn a_scheduled_message_keeps_the_name_of_a_deleted_user() {
    let app = TestApp::shared().await;
    let contact = app.contact("5511900000001").await;
    let body = json!({
        "contactId": contact, "channelId": app.company.phone, "body": "hello", "sendAt": "2099-01-31T12:00:00.000Z",
        "userId": app.company.ana,
    });
    let scheduled = app.api.post("/schedules", body).await.data(201).clone();
    assert_eq!(scheduled["userCreated"], json!({"id": app.company.ana, "name": "Ana"}));
    deleted(&app.api, &format!("/users/{}", app.company.ana)).await;
    let path = format!("/schedules/{}", scheduled["id"]);
    assert_eq!(app.api.get(&path).await.data(200), &scheduled);
    let events = async || app.api.get("/events?types=schedule.created,schedule.updated").await.data(200).clone();
    let is_listed = || async { events().await.as_array().is_some_and(|events| !events.is_empty()) };
    eventually("the creation is in the list of events", is_listed).await;
    let events = events().await;
    assert_eq!(events.as_array().map(Vec::len), Some(1), "{events}");
    assert_eq!(events[0]["data"], scheduled);
    app.stop().await;
}

#[actix_web::test]
async fn an_agent_who_leaves_a_queue_loses_its_open_tickets_with_an_event() {
    let app = TestApp::shared().await;
    let company = app.company.clone();
    let (support, sales, ben) = (company.support, company.sales, company.ben);
    let open_for_ben =
        async |number: &str, queue: Value| open_ticket(&app, number, json!({"queueId": queue, "userId": ben})).await;
    let (one, two) =
        (open_for_ben("5511900000001", json!(support)).await, open_for_ben("5511900000002", json!(support)).await);
    let elsewhere = open_for_ben("5511900000003", json!(sales)).await;
    let closed = open_for_ben("5511900000004", json!(sales)).await;
    app.api.post(&format!("/tickets/{closed}/close"), json!({})).await.data(200);

    // A refused change unassigns no ticket.
    let refused = app.api.put(&format!("/users/{ben}"), json!({"queueIds": [NOBODY]})).await;
    refused.error(404, "ERR_API_NOT_FOUND");
    let taken = app.api.put(&format!("/users/{ben}"), json!({"queueIds": [], "email": "ana@example.com"})).await;
    taken.error(409, "ERR_API_CONFLICT");
    for ticket_id in [one, two, elsewhere] {
        assert_eq!(ticket(&app.api, ticket_id).await["assignedTo"]["id"], json!(ben));
    }

    deleted(&app.api, &format!("/queues/{support}/users/{ben}")).await;
    for ticket_id in [one, two] {
        let shown = ticket(&app.api, ticket_id).await;
        assert_eq!((&shown["assignedTo"], &shown["queue"]["id"]), (&Value::Null, &json!(support)));
        let last = app.api.all(&format!("/tickets/{ticket_id}/events")).await.pop().expect("an event");
        assert_eq!((&last["type"], &last["from"]["assignedTo"]["name"]), (&json!("transferred"), &json!("Ben")));
    }
    assert_eq!(
        ticket(&app.api, elsewhere).await["assignedTo"]["id"],
        json!(ben),
        "a ticket of another queue was unassigned"
    );

    app.api.put(&format!("/users/{ben}"), json!({"queueIds": []})).await.data(200);
    assert_eq!(ticket(&app.api, elsewhere).await["assignedTo"], Value::Null);
    assert_eq!(ticket(&app.api, closed).await["assignedTo"]["id"], json!(ben), "a closed ticket was unassigned");
    // A second removal changes nothing: no ticket is left to unassign.
    let before = app.api.all(&format!("/tickets/{one}/events")).await;
    deleted(&app.api, &format!("/queues/{support}/users/{ben}")).await;
    assert_eq!(app.api.all(&format!("/tickets/{one}/events")).await, before);
    app.stop().await;
}

#[actix_web::test]
async fn a_transfer_to_a_tickets_own_queue_and_agent_adds_no_event() {
    let app = TestApp::shared().await;
    let place = json!({"queueId": app.company.support, "userId": app.company.ana});
    let open = open_ticket(&app, "5511900000001", place.clone()).await;
    let before = ticket(&app.api, open).await;
    let moved = app.api.post(&format!("/tickets/{open}/transfer"), place).await;
    assert_eq!(moved.data(200), &before);
    assert_eq!(app.api.all(&format!("/tickets/{open}/events")).await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn a_channel_whose_queue_is_inactive_opens_tickets_without_a_queue() {
    let app = TestApp::shared().await;
    let queue = format!("/queues/{}", app.company.support);
    app.api.put(&queue, json!({"active": false, "distribution": "round_robin", "greeting": "Hi"})).await.data(200);
    let (session, _) = app.session("visitor").await;
    let posted = app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hello"})).await;
    let shown = ticket(&app.api, posted.data(201)["ticketId"].as_i64().expect("a ticket")).await;
    assert_eq!((&shown["queue"], &shown["assignedTo"]), (&Value::Null, &Value::Null));
    assert_eq!(shown["lastMessage"]["body"], "hello", "an inactive queue greeted");
    app.api.put(&queue, json!({"active": true})).await.data(200);
    let (session, _) = app.session("another").await;
    let posted = app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hello"})).await;
    let shown = ticket(&app.api, posted.data(201)["ticketId"].as_i64().expect("a ticket")).await;
    assert_eq!(shown["queue"]["name"], "Support");
    app.stop().await;
}

#[actix_web::test]
async fn the_metrics_of_users_are_paged_like_every_list() {
    let app = TestApp::shared().await;
    sqlx::query(
        "insert into users (company_id, name, email) select $1, 'U' || n, 'u' || n || '@example.com'
         from generate_series(1, 203) n",
    )
    .bind(app.company.id)
    .execute(&app.db)
    .await
    .expect("users");
    let first = app.api.get("/users/metrics").await;
    assert_eq!(first.data(200).as_array().map(Vec::len), Some(100));
    assert_eq!(first.body["meta"], json!({"page": 1, "perPage": 100, "hasMore": true}));
    let all = app.api.all("/users/metrics").await;
    assert_eq!(all.len(), 205);
    let last = app.api.get("/users/metrics?page=3").await;
    assert_eq!((last.data(200).as_array().map(Vec::len), &last.body["meta"]["hasMore"]), (Some(5), &json!(false)));
    app.stop().await;
}

#[actix_web::test]
async fn a_user_without_a_profile_gets_the_agent_profile() {
    let app = TestApp::shared().await;
    let user = app.api.post("/users", json!({"name": "Dora", "email": "dora@example.com", "profileId": null})).await;
    assert_eq!(user.data(201)["profile"]["name"], "Agent");
    let path = format!("/users/{}", id(user.data(201)));
    let profiles = app.api.all("/profiles").await;
    let supervisor = ids(&profiles)[1];
    let changed = app.api.put(&path, json!({"profileId": supervisor})).await;
    assert_eq!(changed.data(200)["profile"]["id"], supervisor);
    assert_eq!(app.api.put(&path, json!({"profileId": null})).await.data(200)["profile"]["name"], "Agent");
    app.stop().await;
}

#[actix_web::test]
async fn the_url_of_a_file_has_the_host_of_the_request() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await;
    let form = Form::default().text("type", "media").text("ticketId", open);
    app.api.send_form(form.file("backup.dat", "application/octet-stream", &[0, 0x9c, 0xff, 1])).await.data(202);
    let path = format!("/tickets/{open}/messages");
    let request_media = async |host: Option<&str>| {
        let mut request = app.api.request(Method::GET, &path);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        // The caller is not a trusted proxy, so these headers are ignored.
        let reply =
            Reply::of(request.header("x-forwarded-proto", "https").header("x-forwarded-host", "evil.example")).await;
        reply.data(200)[0]["media"].clone()
    };
    let media = request_media(None).await;
    assert_eq!((&media["fileName"], &media["mimeType"]), (&json!("backup.dat"), &json!("application/octet-stream")));
    let url = media["url"].as_str().expect("an address").to_owned();
    assert!(url.starts_with(&format!("http://{}/media/", app.address)), "{url}");
    let named = request_media(Some("support.example:8443")).await;
    assert!(named["url"].as_str().expect("an address").starts_with("http://support.example:8443/media/"), "{named}");
    // The address can be requested as it is.
    eventually("the file is served", || async {
        app.api.anonymous(Method::GET, &url).send().await.is_ok_and(|served| served.status() == 200)
    })
    .await;
    app.stop().await;
}
