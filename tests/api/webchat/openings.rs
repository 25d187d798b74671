//! Opening a session: which contact the visitor is, and what the answer shows.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{contact_of, open, session_id};
use crate::steps::{NOBODY, assert_timestamp, listed};
use crate::support::TestApp;

#[actix_web::test]
async fn an_opened_session_shows_its_contact_and_its_token_once() {
    let app = TestApp::shared().await;
    let body = json!({
        "channelId": app.company.webchat,
        "visitor": {"name": " Vera ", "email": "vera@example.com", "number": "+55 11 98765-4321", "externalId": "v-1"},
        "page": {"url": "https://example.com/a", "title": "A", "referrer": "https://example.org/"},
        "utm": {"source": "s", "medium": "m", "campaign": "c", "id": "i"},
    });
    let opened = app.api.post("/webchat/sessions", body).await.data(201).clone();
    assert!(opened["token"].as_str().is_some_and(|token| token.len() >= 32), "{opened}");
    assert!(session_id(&opened).len() >= 32, "the id can be guessed: {opened}");
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
    let shown = app.api.get(&format!("/webchat/sessions/{}", session_id(&opened))).await;
    let mut expected = opened.clone();
    expected.as_object_mut().expect("object").remove("token");
    assert_eq!(shown.data(200), &expected);
    assert_eq!(listed(&app.api, "/tickets").await, [0; 0], "a session without a message opened a ticket");
    app.stop().await;
}

#[actix_web::test]
async fn a_returning_visitor_is_found_by_external_id_then_number_then_email() {
    let app = TestApp::shared().await;
    let identities =
        json!({"name": "Vera", "externalId": "v-1", "number": "5511900000001", "email": "vera@example.com"});
    let vera = contact_of(&open(&app, identities).await);
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

    // When the identities disagree, the external id has precedence over the number, and the number over the e-mail.
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

    // A visitor without any identity is a new contact each time.
    let (first, second) = (open(&app, json!({})).await, open(&app, json!({})).await);
    assert_ne!(contact_of(&first), contact_of(&second));
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_found_by_number_is_known_by_the_external_id_from_then_on() {
    let app = TestApp::shared().await;
    let contact = app.contact("5511900000001").await.0;
    let first = open(&app, json!({"number": "5511900000001", "externalId": "v-1"})).await;
    assert_eq!(contact_of(&first), contact);
    assert_eq!(contact_of(&open(&app, json!({"externalId": "v-1"})).await), contact);
    app.stop().await;
}

#[actix_web::test]
async fn a_session_can_be_opened_for_a_contact_of_the_company_in_a_webchat_of_the_company() {
    let app = TestApp::shared().await;
    let (other, other_api) = app.another_company().await;
    let contact = app.contact("5511900000001").await;
    let foreign =
        other_api.post("/webchat/sessions", json!({"channelId": other.webchat, "visitor": {"externalId": "v"}})).await;
    let foreign = foreign.data(201);
    let open_with = async |body: Value| app.api.post("/webchat/sessions", body).await;
    let webchat = app.company.webchat;
    assert_eq!(contact_of(open_with(json!({"channelId": webchat, "contactId": contact})).await.data(201)), contact.0);
    let own = open(&app, json!({"externalId": "v"})).await;
    assert_ne!(contact_of(&own), contact_of(foreign), "the other company's contact was found");

    let absent = app.api.get(&format!("/tickets/{NOBODY}")).await.body;
    for body in [
        json!({"channelId": webchat, "contactId": contact_of(foreign)}),
        json!({"channelId": webchat, "contactId": NOBODY}),
        json!({"channelId": other.webchat}),
        json!({"channelId": NOBODY}),
    ] {
        let reply = open_with(body.clone()).await;
        reply.error(404, "ERR_API_NOT_FOUND");
        assert_eq!(reply.body, absent, "{body}");
    }
    assert_eq!(open_with(json!({"channelId": app.company.phone})).await.invalid_fields(), ["channelId"]);

    let foreign_session = session_id(foreign);
    assert_eq!(app.api.get(&format!("/webchat/sessions/{foreign_session}")).await.body, absent);
    assert_eq!(app.api.get(&format!("/webchat/sessions/{foreign_session}/messages")).await.body, absent);
    assert_eq!(
        app.api.post(&format!("/webchat/sessions/{foreign_session}/messages"), json!({"body": "x"})).await.body,
        absent
    );
    assert_eq!(app.api.post(&format!("/webchat/sessions/{foreign_session}/end"), json!({})).await.body, absent);
    assert_eq!(other_api.get(&format!("/webchat/sessions/{foreign_session}")).await.data(200)["status"], "active");
    app.stop().await;
}

#[actix_web::test]
async fn concurrent_openings_of_one_visitor_make_one_contact() {
    let app = TestApp::shared().await;
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
        let mut ids: Vec<String> = sessions.iter().map(session_id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 32, "two sessions share an id");
    }
    app.stop().await;
}

#[actix_web::test]
async fn openings_that_share_identities_crosswise_do_not_block_each_other() {
    let app = TestApp::shared().await;
    // A website that uses phone numbers as its external ids may have them crossed.
    let (one, two) = ("5511900000001", "5511900000002");
    let visitors = [json!({"externalId": one, "number": two}), json!({"externalId": two, "number": one})];
    for _ in 0..8 {
        join_all((0..32).map(|index| open(&app, visitors[index % 2].clone()))).await;
    }
    assert_eq!(listed(&app.api, "/contacts").await.len(), 2);
    app.stop().await;
}
