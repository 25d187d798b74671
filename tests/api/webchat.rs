//! Visitor sessions: who a visitor is, what they say and see, and how a session ends.

use std::time::Duration;

use futures_util::future::join_all;
use hotline_actors::EngineOptions;
use hotline_persistence::tables::channels::ChannelType;
use serde_json::{Value, json};

use crate::check_list::check_list;
use crate::steps::{NOBODY, assert_timestamp, channel, id, listed, restarted, sent, ticket};
use crate::support::service::TestOptions;
use crate::support::{Api, TestApp, eventually};

/// Opens a session and answers it.
async fn open(app: &TestApp, visitor: Value) -> Value {
    let body = json!({"channelId": app.company.webchat, "visitor": visitor});
    app.api.post("/webchat/sessions", body).await.data(201).clone()
}

fn contact_of(session: &Value) -> i64 {
    id(&session["contact"])
}

fn session_of(session: &Value) -> String {
    session["id"].as_str().expect("id").to_owned()
}

async fn say(api: &Api, session: &str, body: Value) -> Value {
    api.post(&format!("/webchat/sessions/{session}/messages"), body).await.data(201).clone()
}

/// What the visitor sees.
async fn seen(api: &Api, session: &str) -> Vec<i64> {
    listed(api, &format!("/webchat/sessions/{session}/messages")).await
}

#[actix_web::test]
async fn an_opened_session_shows_its_contact_and_its_token_once() {
    let app = TestApp::start().await;
    let body = json!({
        "channelId": app.company.webchat,
        "visitor": {"name": " Vera ", "email": "vera@example.com", "number": "+55 11 98765-4321", "externalId": "v-1"},
        "page": {"url": "https://example.com/a", "title": "A", "referrer": "https://example.org/"},
        "utm": {"source": "s", "medium": "m", "campaign": "c", "id": "i"},
    });
    let opened = app.api.post("/webchat/sessions", body).await.data(201).clone();
    assert!(opened["token"].as_str().is_some_and(|token| token.len() >= 32), "{opened}");
    assert!(session_of(&opened).len() >= 32, "the id can be guessed: {opened}");
    assert_eq!(opened["channelId"], app.company.webchat.0);
    assert_eq!(opened["ticketId"], Value::Null);
    assert_eq!(opened["status"], "active");
    assert_eq!(opened["endedAt"], Value::Null);
    assert_timestamp(&opened["createdAt"]);
    assert_eq!(opened["lastSeenAt"], opened["createdAt"]);
    let contact = app.api.get(&format!("/contacts/{}", contact_of(&opened))).await;
    let contact = contact.data(200);
    assert_eq!(&opened["contact"], contact);
    for (field, value) in [
        ("name", "Vera"),
        ("email", "vera@example.com"),
        ("number", "5511987654321"),
        ("utmSource", "s"),
        ("utmMedium", "m"),
        ("utmCampaign", "c"),
        ("utmId", "i"),
        ("sourceUrl", "https://example.com/a"),
    ] {
        assert_eq!(contact[field], value, "{field}");
    }
    let shown = app.api.get(&format!("/webchat/sessions/{}", session_of(&opened))).await;
    let mut expected = opened.clone();
    expected.as_object_mut().expect("object").remove("token");
    assert_eq!(shown.data(200), &expected);
    assert_eq!(listed(&app.api, "/tickets").await, [0; 0], "a session without a word opened a ticket");
    app.stop().await;
}

#[actix_web::test]
async fn a_returning_visitor_is_found_by_external_id_then_number_then_email() {
    let app = TestApp::start().await;
    let all = json!({"name": "Vera", "externalId": "v-1", "number": "5511900000001", "email": "vera@example.com"});
    let vera = contact_of(&open(&app, all).await);
    for visitor in [
        json!({"externalId": "v-1"}),
        json!({"number": "+55 (11) 90000-0001"}),
        json!({"email": "VERA@Example.com"}),
        json!({"externalId": "v-1", "name": "Somebody else"}),
    ] {
        assert_eq!(contact_of(&open(&app, visitor.clone()).await), vera, "{visitor}");
    }
    assert_eq!(
        app.api.get(&format!("/contacts/{vera}")).await.data(200)["name"],
        "Vera",
        "a visitor renamed a contact"
    );

    // When they disagree, the external id has precedence over the number, and the number over the e-mail.
    let nils = contact_of(&open(&app, json!({"number": "5511900000002", "email": "nils@example.com"})).await);
    let olga = contact_of(&open(&app, json!({"email": "olga@example.com"})).await);
    assert!(vera != nils && nils != olga);
    let first = open(&app, json!({"externalId": "v-1", "number": "5511900000002", "email": "olga@example.com"})).await;
    assert_eq!(contact_of(&first), vera);
    let second =
        open(&app, json!({"externalId": "unknown", "number": "5511900000002", "email": "olga@example.com"})).await;
    assert_eq!(contact_of(&second), nils);
    let third = open(&app, json!({"number": "5511900000003", "email": "olga@example.com"})).await;
    assert_eq!(contact_of(&third), olga);

    // Who says nothing of themselves is somebody new each time.
    let (nobody, again) = (open(&app, json!({})).await, open(&app, json!({})).await);
    assert_ne!(contact_of(&nobody), contact_of(&again));
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_found_by_number_is_known_by_the_external_id_from_then_on() {
    let app = TestApp::start().await;
    let contact = app.contact("5511900000001").await.0;
    let first = open(&app, json!({"number": "5511900000001", "externalId": "v-1"})).await;
    assert_eq!(contact_of(&first), contact);
    assert_eq!(contact_of(&open(&app, json!({"externalId": "v-1"})).await), contact);
    app.stop().await;
}

#[actix_web::test]
async fn a_session_can_be_opened_for_a_contact_of_the_company_in_a_webchat_of_the_company() {
    let app = TestApp::start().await;
    let (other, other_api) = app.another_company().await;
    let contact = app.contact("5511900000001").await;
    let foreign =
        other_api.post("/webchat/sessions", json!({"channelId": other.webchat, "visitor": {"externalId": "v"}})).await;
    let foreign = foreign.data(201);
    let ask = async |body: Value| app.api.post("/webchat/sessions", body).await;
    let webchat = app.company.webchat;
    assert_eq!(contact_of(ask(json!({"channelId": webchat, "contactId": contact})).await.data(201)), contact.0);
    let mine = open(&app, json!({"externalId": "v"})).await;
    assert_ne!(contact_of(&mine), contact_of(foreign), "the other company's contact was found");

    let nobody = app.api.get(&format!("/tickets/{NOBODY}")).await.body;
    for body in [
        json!({"channelId": webchat, "contactId": contact_of(foreign)}),
        json!({"channelId": webchat, "contactId": NOBODY}),
        json!({"channelId": other.webchat}),
        json!({"channelId": NOBODY}),
    ] {
        let reply = ask(body.clone()).await;
        reply.error(404, "ERR_API_NOT_FOUND");
        assert_eq!(reply.body, nobody, "{body}");
    }
    assert_eq!(ask(json!({"channelId": app.company.phone})).await.invalid_fields(), ["channelId"]);

    let theirs = session_of(foreign);
    assert_eq!(app.api.get(&format!("/webchat/sessions/{theirs}")).await.body, nobody);
    assert_eq!(app.api.get(&format!("/webchat/sessions/{theirs}/messages")).await.body, nobody);
    assert_eq!(app.api.post(&format!("/webchat/sessions/{theirs}/messages"), json!({"body": "x"})).await.body, nobody);
    assert_eq!(app.api.post(&format!("/webchat/sessions/{theirs}/end"), json!({})).await.body, nobody);
    assert_eq!(other_api.get(&format!("/webchat/sessions/{theirs}")).await.data(200)["status"], "active");
    app.stop().await;
}

#[actix_web::test]
async fn concurrent_openings_of_one_visitor_make_one_contact() {
    let app = TestApp::start().await;
    for visitor in [
        json!({"externalId": "v-1"}),
        json!({"number": "5511900000001"}),
        json!({"email": "vera@example.com"}),
        json!({"externalId": "v-2", "number": "5511900000002", "email": "nils@example.com"}),
    ] {
        let before = listed(&app.api, "/contacts").await.len();
        let sessions = join_all((0..32).map(|_| open(&app, visitor.clone()))).await;
        assert!(sessions.iter().all(|session| contact_of(session) == contact_of(&sessions[0])), "{visitor}");
        assert_eq!(listed(&app.api, "/contacts").await.len(), before + 1, "{visitor}");
        let mut ids: Vec<String> = sessions.iter().map(session_of).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 32, "two sessions share an id");
    }
    app.stop().await;
}

#[actix_web::test]
async fn openings_that_share_identities_crosswise_do_not_block_each_other() {
    let app = TestApp::start().await;
    // A website that uses numbers as its own ids may cross them.
    let (one, two) = ("5511900000001", "5511900000002");
    let visitors = [json!({"externalId": one, "number": two}), json!({"externalId": two, "number": one})];
    for _ in 0..8 {
        join_all((0..32).map(|index| open(&app, visitors[index % 2].clone()))).await;
    }
    assert_eq!(listed(&app.api, "/contacts").await.len(), 2);
    app.stop().await;
}

#[actix_web::test]
async fn the_first_word_opens_the_ticket_in_the_channels_queue() {
    let app = TestApp::start().await;
    let opened = open(&app, json!({"name": "Vera"})).await;
    let session = session_of(&opened);
    let first = say(&app.api, &session, json!({"body": "  hello "})).await;
    assert_timestamp(&first["createdAt"]);
    assert_eq!(
        first,
        json!({
            "id": id(&first), "jobId": null, "ticketId": first["ticketId"], "contactId": contact_of(&opened),
            "channelId": app.company.webchat, "direction": "inbound", "type": "text", "body": "hello", "media": null,
            "template": null, "interactive": null, "quotedMessageId": null, "status": "received", "error": null,
            "user": null, "integration": null, "source": "contact", "createdAt": first["createdAt"], "sentAt": null, "deliveredAt": null,
            "readAt": null,
        })
    );
    let second = say(&app.api, &session, json!({"body": "anybody there?"})).await;
    assert_eq!(second["ticketId"], first["ticketId"]);
    let opened = ticket(&app.api, first["ticketId"].as_i64().expect("ticket")).await;
    assert_eq!(opened["queue"], json!({"id": app.company.support, "name": "Support"}));
    assert_eq!(opened["creationSource"], "contact");
    assert_eq!(opened["unreadCount"], 2);
    let shown = app.api.get(&format!("/webchat/sessions/{session}")).await;
    assert_eq!(shown.data(200)["ticketId"], first["ticketId"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_word_after_the_ticket_was_closed_opens_another_one() {
    let app = TestApp::start().await;
    let session = session_of(&open(&app, json!({})).await);
    let first = say(&app.api, &session, json!({"body": "hello"})).await["ticketId"].clone();
    let body = json!({"wrapupTypeId": app.company.solved});
    app.api.post(&format!("/tickets/{first}/close"), body).await.data(200);
    let second = say(&app.api, &session, json!({"body": "one more thing"})).await["ticketId"].clone();
    assert_ne!(first, second);
    assert_eq!(app.api.get(&format!("/webchat/sessions/{session}")).await.data(200)["ticketId"], second);
    assert_eq!(seen(&app.api, &session).await.len(), 2, "the visitor lost what they had said");
    app.stop().await;
}

/// Puts an interactive message into a ticket.
async fn ask(app: &TestApp, said: &Value, question: i64, action: Value) -> i64 {
    app.api.get("/messages").await.data(200); // The ticket is in the tables now.
    sqlx::query(
        "insert into messages (company_id, id, ticket_id, contact_id, channel_id, direction, type, interactive, status,
             source, created_at)
         values ($1, $2, $3, $4, $5, 'outbound', 'interactive', $6, 'sent', 'api', now())",
    )
    .bind(app.company.id)
    .bind(question)
    .bind(said["ticketId"].as_i64())
    .bind(said["contactId"].as_i64())
    .bind(said["channelId"].as_i64())
    .bind(json!({"body": {"text": "Which?"}, "action": action}))
    .execute(&app.database.db)
    .await
    .expect("a question");
    question
}

#[actix_web::test]
async fn a_choice_is_a_text_with_the_options_title_quoting_the_question() {
    let app = TestApp::start().await;
    let session = session_of(&open(&app, json!({})).await);
    let said = say(&app.api, &session, json!({"body": "hello"})).await;
    let longest = "i".repeat(256);
    let buttons = json!({"buttons": [
        {"type": "reply", "reply": {"id": "y", "title": "Yes"}},
        {"type": "reply", "reply": {"id": longest, "title": "Longest"}},
    ]});
    let rows = json!({"button": "Open", "sections": [
        {"title": "Fruit", "rows": [{"id": "a", "title": "Apples"}]},
        {"title": "Other", "rows": [{"id": "b", "title": "Bread"}]},
    ]});
    let button = ask(&app, &said, 1_000_000_000, buttons).await;
    let list = ask(&app, &said, 1_000_000_001, rows).await;
    for (question, option, title) in
        [(button, "y", "Yes"), (list, "a", "Apples"), (list, "b", "Bread"), (button, &longest, "Longest")]
    {
        let chosen = say(&app.api, &session, json!({"reply": {"messageId": question, "id": option}})).await;
        assert_eq!(chosen["type"], "text");
        assert_eq!(chosen["body"], title);
        assert_eq!(chosen["quotedMessageId"], question);
        assert_eq!(chosen["direction"], "inbound");
        assert_eq!(chosen["ticketId"], said["ticketId"]);
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_choice_that_the_question_does_not_offer_is_refused() {
    let app = TestApp::start().await;
    let session = session_of(&open(&app, json!({})).await);
    let said = say(&app.api, &session, json!({"body": "hello"})).await;
    let another = session_of(&open(&app, json!({})).await);
    let elsewhere = say(&app.api, &another, json!({"body": "hello"})).await;
    let buttons = json!({"buttons": [{"type": "reply", "reply": {"id": "y", "title": "Yes"}}]});
    let question = ask(&app, &said, 1_000_000_000, buttons.clone()).await;
    let not_asked_here = ask(&app, &elsewhere, 1_000_000_001, buttons).await;
    let path = format!("/webchat/sessions/{session}/messages");
    let choose = async |message: i64, option: &str| {
        app.api.post(&path, json!({"reply": {"messageId": message, "id": option}})).await
    };
    assert_eq!(choose(question, "n").await.invalid_fields(), ["reply.id"]);
    assert_eq!(choose(question, "Yes").await.invalid_fields(), ["reply.id"]);
    assert_eq!(choose(id(&said), "y").await.invalid_fields(), ["reply.id"], "a text has options");
    for absent in [NOBODY, not_asked_here] {
        choose(absent, "y").await.error(404, "ERR_API_NOT_FOUND");
    }
    let both = json!({"body": "x", "reply": {"messageId": question, "id": "y"}});
    assert_eq!(app.api.post(&path, both).await.invalid_fields(), ["reply"]);
    assert_eq!(ticket(&app.api, said["ticketId"].as_i64().expect("id")).await["unreadCount"], 1, "something was taken");
    app.stop().await;
}

#[actix_web::test]
async fn a_message_sent_again_under_its_client_id_is_the_first_one() {
    let app = TestApp::start().await;
    let session = session_of(&open(&app, json!({})).await);
    let first = say(&app.api, &session, json!({"body": "hello", "clientId": "c-1"})).await;
    let again = say(&app.api, &session, json!({"body": "hello", "clientId": "c-1"})).await;
    assert_eq!(again, first);
    let other = say(&app.api, &session, json!({"body": "hello", "clientId": "c-2"})).await;
    assert_ne!(id(&other), id(&first));

    let racing = join_all((0..24).map(|_| say(&app.api, &session, json!({"body": "racing", "clientId": "c-3"})))).await;
    assert!(racing.iter().all(|message| message == &racing[0]), "a message was doubled");
    assert_eq!(seen(&app.api, &session).await, [id(&first), id(&other), id(&racing[0])]);
    assert_eq!(ticket(&app.api, first["ticketId"].as_i64().expect("id")).await["unreadCount"], 3);

    // Another visitor's ids are their own.
    let another = session_of(&open(&app, json!({})).await);
    let theirs = say(&app.api, &another, json!({"body": "hello", "clientId": "c-1"})).await;
    assert_ne!(id(&theirs), id(&first));

    let app = restarted(app).await;
    assert_eq!(say(&app.api, &session, json!({"body": "hello", "clientId": "c-1"})).await, first);
    let new = say(&app.api, &session, json!({"body": "new", "clientId": "c-4"})).await;
    assert_eq!(seen(&app.api, &session).await, [id(&first), id(&other), id(&racing[0]), id(&new)]);
    app.stop().await;
}

#[actix_web::test]
async fn a_client_id_is_remembered_however_much_was_said_since() {
    let app = TestApp::start().await;
    let session = session_of(&open(&app, json!({})).await);
    let first = say(&app.api, &session, json!({"body": "first", "clientId": "first"})).await;
    for round in 0..10 {
        let said = (0..32).map(|index| {
            let body = json!({"body": "more", "clientId": format!("{round}-{index}")});
            say(&app.api, &session, body)
        });
        join_all(said).await;
    }
    assert_eq!(say(&app.api, &session, json!({"body": "first", "clientId": "first"})).await, first);
    assert_eq!(ticket(&app.api, first["ticketId"].as_i64().expect("id")).await["unreadCount"], 321);
    app.stop().await;
}

#[actix_web::test]
async fn a_visitor_sees_both_sides_of_the_conversation_and_no_notes() {
    let app = TestApp::start().await;
    let session = session_of(&open(&app, json!({})).await);
    let said = say(&app.api, &session, json!({"body": "hello"})).await;
    let open_ticket = said["ticketId"].clone();
    app.api.post(&format!("/tickets/{open_ticket}/notes"), json!({"body": "difficult"})).await.data(201);
    let answer = sent(&app.api, json!({"ticketId": open_ticket, "type": "text", "body": "welcome"})).await;
    let more = say(&app.api, &session, json!({"body": "thanks"})).await;
    app.api.post(&format!("/tickets/{open_ticket}/notes"), json!({"body": "very difficult"})).await.data(201);

    let shown = [id(&said), id(&answer), id(&more)];
    let path = format!("/webchat/sessions/{session}/messages");
    assert_eq!(listed(&app.api, &format!("{path}?after={}", shown[0])).await, shown[1..]);
    assert_eq!(listed(&app.api, &format!("{path}?after={}", shown[2])).await, [0; 0]);
    assert_eq!(listed(&app.api, &format!("{path}?after=0")).await, shown);
    assert_eq!(listed(&app.api, &format!("{path}?after={}&order=desc", shown[0])).await, [shown[2], shown[1]]);
    check_list(&app, &path, &shown, &[]).await;
    app.stop().await;
}

#[actix_web::test]
async fn what_a_visitor_sees_is_narrowed_by_time_as_every_list_is() {
    let app = TestApp::start().await;
    let session = session_of(&open(&app, json!({})).await);
    for body in ["one", "two", "three"] {
        say(&app.api, &session, json!({"body": body})).await;
    }
    crate::check_list::check_span(&app, &format!("/webchat/sessions/{session}/messages"), "created").await;
    app.stop().await;
}

#[actix_web::test]
async fn nothing_from_before_the_session_is_shown_in_it() {
    let app = TestApp::start().await;
    let visitor = json!({"externalId": "v-1"});
    let before = session_of(&open(&app, visitor.clone()).await);
    let said = say(&app.api, &before, json!({"body": "my secret"})).await;
    let ticket = said["ticketId"].clone();
    let answer = sent(&app.api, json!({"ticketId": ticket, "type": "text", "body": "your secret"})).await;
    let buttons = json!({"buttons": [{"type": "reply", "reply": {"id": "y", "title": "Yes"}}]});
    let question = ask(&app, &said, 1_000_000_000, buttons).await;
    app.api.post(&format!("/webchat/sessions/{before}/end"), json!({})).await.data(200);

    let now = session_of(&open(&app, visitor).await);
    assert_eq!(seen(&app.api, &now).await, [0; 0]);
    let reply = json!({"reply": {"messageId": question, "id": "y"}});
    app.api.post(&format!("/webchat/sessions/{now}/messages"), reply).await.error(404, "ERR_API_NOT_FOUND");
    let again = say(&app.api, &now, json!({"body": "it is me"})).await;
    assert_eq!(again["ticketId"], ticket, "the conversation goes on");
    let reply = sent(&app.api, json!({"ticketId": ticket, "type": "text", "body": "welcome back"})).await;
    assert_eq!(seen(&app.api, &now).await, [id(&again), id(&reply)]);
    let everything = listed(&app.api, &format!("/tickets/{ticket}/messages")).await;
    assert!(everything.contains(&id(&said)) && everything.contains(&id(&answer)), "the company lost its history");
    app.stop().await;
}

#[actix_web::test]
async fn a_message_is_delivered_once_the_visitor_has_listed_it() {
    let app = TestApp::start().await;
    let session = session_of(&open(&app, json!({})).await);
    let ticket = say(&app.api, &session, json!({"body": "hello"})).await["ticketId"].clone();
    let first = id(&sent(&app.api, json!({"ticketId": ticket, "type": "text", "body": "one"})).await);
    let second = id(&sent(&app.api, json!({"ticketId": ticket, "type": "text", "body": "two"})).await);
    // A page that ends with the first message tells nothing of the second.
    app.api.get(&format!("/webchat/sessions/{session}/messages?perPage=2")).await.data(200);
    let status = async |message: i64| app.api.get(&format!("/messages/{message}")).await.data(200).clone();
    eventually("the first is delivered", || async { status(first).await["status"] == "delivered" }).await;
    let delivered = status(first).await;
    assert_timestamp(&delivered["deliveredAt"]);
    assert_timestamp(&delivered["sentAt"]);
    assert_eq!(delivered["readAt"], Value::Null);
    assert_eq!(status(second).await["status"], "sent");
    let job = delivered["jobId"].as_str().expect("job");
    assert_eq!(app.api.get(&format!("/messages/jobs/{job}")).await.data(200)["status"], "delivered");

    assert_eq!(seen(&app.api, &session).await.len(), 3);
    eventually("the second is delivered", || async { status(second).await["status"] == "delivered" }).await;
    assert_eq!(status(first).await, delivered, "it was delivered twice");
    app.stop().await;
}

#[actix_web::test]
async fn a_session_ends_once_and_takes_nothing_more() {
    let app = TestApp::start().await;
    let opened = open(&app, json!({})).await;
    let session = session_of(&opened);
    let said = say(&app.api, &session, json!({"body": "hello"})).await;
    let end = async || app.api.post(&format!("/webchat/sessions/{session}/end"), json!({})).await.data(200).clone();
    let ended = end().await;
    assert_eq!(ended["status"], "ended");
    assert_timestamp(&ended["endedAt"]);
    assert!(ended.get("token").is_none(), "the token is shown again");
    assert_eq!(end().await, ended);
    assert!(join_all((0..8).map(|_| end())).await.iter().all(|again| again == &ended));
    assert_eq!(app.api.get(&format!("/webchat/sessions/{session}")).await.data(200), &ended);

    for body in [json!({"body": "too late"}), json!({"body": "too late", "clientId": "c-1"})] {
        app.api.post(&format!("/webchat/sessions/{session}/messages"), body).await.error(409, "ERR_API_CONFLICT");
    }
    assert_eq!(seen(&app.api, &session).await, [id(&said)]);
    let ticket = ticket(&app.api, said["ticketId"].as_i64().expect("id")).await;
    assert_eq!((&ticket["status"], &ticket["unreadCount"]), (&json!("open"), &json!(1)));
    let app = restarted(app).await;
    assert_eq!(app.api.get(&format!("/webchat/sessions/{session}")).await.data(200), &ended);
    app.stop().await;
}

#[actix_web::test]
async fn a_session_nobody_uses_ends_by_itself_and_its_ticket_stays() {
    let engine = EngineOptions {
        session_idle_after: Duration::from_millis(400),
        sweep_every: Duration::from_millis(50),
        ..TestOptions::default().engine
    };
    let app = TestApp::start_with(TestOptions { engine, ..TestOptions::default() }).await;
    let silent = session_of(&open(&app, json!({})).await);
    let opened = open(&app, json!({})).await;
    let session = session_of(&opened);
    let said = say(&app.api, &session, json!({"body": "hello"})).await;
    let shown = async |session: &str| app.api.get(&format!("/webchat/sessions/{session}")).await.data(200).clone();
    for session in [&silent, &session] {
        eventually("the session has ended", || async { shown(session).await["status"] == "ended" }).await;
    }
    let ended = shown(&session).await;
    assert_timestamp(&ended["endedAt"]);
    assert!(ended["endedAt"].as_str() > ended["lastSeenAt"].as_str(), "{ended}");
    app.api
        .post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "x"}))
        .await
        .error(409, "ERR_API_CONFLICT");
    let ticket = ticket(&app.api, said["ticketId"].as_i64().expect("id")).await;
    assert_eq!((&ticket["status"], &ticket["closedAt"]), (&json!("open"), &Value::Null));
    sent(&app.api, json!({"ticketId": id(&ticket), "type": "text", "body": "still there?"})).await;
    app.stop().await;
}

#[actix_web::test]
async fn sessions_in_two_webchats_are_two_conversations() {
    let app = TestApp::start().await;
    let another = channel(&app, "Another website", ChannelType::Webchat).await;
    let here = open(&app, json!({"externalId": "v-1"})).await;
    let body = json!({"channelId": another, "visitor": {"externalId": "v-1"}});
    let there = app.api.post("/webchat/sessions", body).await.data(201).clone();
    assert_eq!(contact_of(&here), contact_of(&there));
    let said_here = say(&app.api, &session_of(&here), json!({"body": "here"})).await;
    let said_there = say(&app.api, &session_of(&there), json!({"body": "there"})).await;
    assert_ne!(said_here["ticketId"], said_there["ticketId"]);
    assert_eq!(seen(&app.api, &session_of(&here)).await, [id(&said_here)]);
    assert_eq!(seen(&app.api, &session_of(&there)).await, [id(&said_there)]);
    app.stop().await;
}
