//! What a browser claims without a signature: it is shown to the company, and finds no contact.

use serde_json::{Value, json};

use super::{bodies, messages_of, session_of};
use crate::door::answer;
use crate::support::TestApp;
use crate::visitor::{Browser, Session, signed};

#[actix_web::test]
async fn a_visitor_who_claims_a_customers_data_gets_another_contact() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let vera = json!({"name": "Vera", "email": "vera@example.com", "number": "5511987654321", "externalId": "v-1"});
    let open = json!({"channelId": app.company.webchat, "visitor": vera});
    let vera_session = app.api.post("/webchat/sessions", open.clone()).await.data(201).clone();
    let path = format!("/webchat/sessions/{}/messages", vera_session["id"].as_str().expect("id"));
    let ticket = app.api.post(&path, json!({"body": "my secret"})).await.data(201)["ticketId"].clone();

    for claim in [
        json!({"email": "vera@example.com"}),
        json!({"email": "VERA@Example.com"}),
        json!({"number": "+55 11 98765-4321"}),
        json!({"externalId": "v-1"}),
        vera.clone(),
    ] {
        let session = browser.open_unknown(claim.clone()).await;
        let mut socket = browser.socket(&session).await;
        let sent = browser.say(&session, "it is me").await;
        socket.message().await;
        answer(&app.api, ticket.as_i64().expect("id"), "only for Vera").await;
        // The next message of this visitor is the next push: nothing of hers came in between.
        let again = browser.say(&session, "hello?").await;
        assert_eq!(socket.message().await["id"], again["id"], "{claim}");
        assert_eq!(bodies(&messages_of(&browser, &session).await), ["it is me", "hello?"], "{claim}");

        let theirs = session_of(&app, &session).await;
        assert_ne!(theirs["contact"]["id"], vera_session["contact"]["id"], "{claim}");
        assert_ne!(theirs["ticketId"], ticket, "{claim}");
        assert_eq!((&theirs["verified"], &theirs["contact"]["verified"]), (&json!(false), &json!(false)));
        assert_eq!((&theirs["contact"]["email"], &theirs["contact"]["number"]), (&Value::Null, &Value::Null));
        let number = claim["number"].as_str().map(|_| "5511987654321");
        let expected = json!({"name": claim["name"], "email": claim["email"], "number": number,
            "externalId": claim["externalId"]});
        assert_eq!(theirs["claimed"], expected, "the claims are not shown");
        let theirs = app.api.get(&format!("/tickets/{}", theirs["ticketId"])).await.data(200).clone();
        assert_eq!(theirs["verified"], false, "{theirs}");
        assert_eq!(theirs["id"], app.api.get(&format!("/messages/{}", sent["id"])).await.data(200)["ticketId"]);
    }
    let ticket = app.api.get(&format!("/tickets/{ticket}")).await.data(200).clone();
    assert_eq!((&ticket["verified"], &ticket["unreadCount"]), (&json!(true), &json!(1)), "a claim changed her ticket");
    // The company finds her, not those who claimed to be her.
    for visitor in
        [json!({"number": "5511987654321"}), json!({"email": "vera@example.com"}), json!({"externalId": "v-1"})]
    {
        let open = json!({"channelId": app.company.webchat, "visitor": visitor});
        let found = app.api.post("/webchat/sessions", open).await.data(201).clone();
        assert_eq!(found["contact"]["id"], vera_session["contact"]["id"]);
        assert_eq!((&found["verified"], &found["claimed"]), (&json!(true), &Value::Null));
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_claim_made_beforehand_captures_nothing() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let claim = json!({"name": "Vera", "externalId": "v-1", "number": "5511987654321", "email": "vera@example.com"});
    let attacker = browser.open_unknown(claim.clone()).await;
    browser.say(&attacker, "I was here first").await;
    let captured = session_of(&app, &attacker).await["contact"]["id"].clone();

    let vera = Session::of(browser.try_open_as(&signed("v-1", claim.clone())).await.data(201));
    let vera_session = session_of(&app, &vera).await;
    assert_ne!(vera_session["contact"]["id"], captured);
    let contact = &vera_session["contact"];
    assert_eq!(
        (&contact["verified"], &contact["number"], &contact["email"]),
        (&json!(true), &json!("5511987654321"), &json!("vera@example.com")),
        "the claims took her data"
    );
    // Nor does the claim catch what the company sends to her number, or imports under her e-mail.
    let imported = json!({"contacts": [{"name": "Vera Lima", "email": "vera@example.com", "code": "C-1"}]});
    app.api.post("/contacts/import", imported).await.data(200);
    let captured = app.api.get(&format!("/contacts/{captured}")).await.data(200).clone();
    assert_eq!(
        (&captured["code"], &captured["number"], &captured["email"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(captured["name"], "Vera", "the name of the claim is not shown");
    app.stop().await;
}

#[actix_web::test]
async fn a_claim_of_an_earlier_release_gives_way_to_a_signature() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let old: i64 = sqlx::query_scalar(
        "insert into contacts (company_id, name, external_id, email) values ($1, 'Old', 'v-1', 'old@example.com')
         returning id",
    )
    .bind(app.company.id)
    .fetch_one(&app.db)
    .await
    .expect("a contact of an earlier release");
    let first = browser.open("v-1").await;
    assert_ne!(session_of(&app, &first).await["contact"]["id"], old);
    // An old contact is found once the company has given it the external id.
    sqlx::query("update contacts set external_id = 'v-2' where id = $1")
        .bind(old)
        .execute(&app.db)
        .await
        .expect("the external id is set");
    let open = json!({"channelId": app.company.webchat, "visitor": {"externalId": "v-2"}});
    assert_eq!(app.api.post("/webchat/sessions", open).await.data(201)["contact"]["id"], old);
    let second = browser.open("v-2").await;
    assert_eq!(session_of(&app, &second).await["contact"]["id"], old);
    app.stop().await;
}
