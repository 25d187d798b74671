//! An identity that a website has signed: it finds a contact by its external id, and by nothing else.

use hotline_actors::clock;
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings, Secret};
use reqwest::Method;
use serde_json::{Value, json};

use super::{change_settings, now_s, session_of};
use crate::support::{OwnApp, Reply, TestApp, keys};
use crate::visitor::{Browser, SECRET, Session, sign_with, signed};

#[actix_web::test]
async fn a_signed_identity_finds_a_contact_by_its_external_id_and_by_nothing_else() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let customer = json!({"name": "Somebody", "number": "5511987654321", "email": "vera@example.com"});
    let other = app.api.post("/contacts", customer).await.data(201)["id"].clone();

    let more = json!({"name": "Vera", "email": "vera@example.com", "number": "5511987654321"});
    let vera = Session::of(browser.try_open_as(&signed("v-1", more)).await.data(201));
    let vera_session = session_of(&app, &vera).await;
    assert_ne!(vera_session["contact"]["id"], other, "an e-mail or a number found a contact");
    assert_eq!(
        (&vera_session["contact"]["name"], &vera_session["contact"]["email"]),
        (&json!("Vera"), &json!("vera@example.com"))
    );
    assert_eq!(vera_session["contact"]["number"], Value::Null, "another contact's number was taken over");
    assert_eq!(
        (&vera_session["verified"], &vera_session["contact"]["verified"], &vera_session["claimed"]),
        (&json!(true), &json!(true), &Value::Null)
    );
    assert_eq!(browser.get(&vera, "/session").await.data(200)["verified"], true);
    let sent = browser.say(&vera, "hello").await;

    let elsewhere = browser.open("v-1").await;
    assert_eq!(session_of(&app, &elsewhere).await["contact"]["id"], vera_session["contact"]["id"]);
    let again = browser.say(&elsewhere, "from my phone").await;
    let tickets = app.api.all("/tickets").await;
    assert_eq!(tickets.len(), 1, "another conversation began");
    assert_eq!((&tickets[0]["verified"], &tickets[0]["lastMessage"]["id"]), (&json!(true), &again["id"]));
    assert_eq!(
        app.api.get(&format!("/messages/{}", sent["id"])).await.data(200)["contactId"],
        vera_session["contact"]["id"]
    );
    app.stop().await;
}

#[actix_web::test]
async fn new_data_of_a_verified_visitor_fills_empty_fields() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let bare = Session::of(browser.try_open_as(&signed("v-1", json!({}))).await.data(201));
    assert_eq!(session_of(&app, &bare).await["contact"]["name"], "Visitor");
    browser.say(&bare, "hello").await;
    let more = json!({"name": "Vera", "email": "vera@example.com", "number": "5511987654321"});
    let utm = json!({"source": "news", "medium": "mail", "campaign": "spring", "id": "7"});
    let body = json!({"identity": signed("v-1", more), "page": {"url": "https://shop.example/a"}, "utm": utm});
    let full = Reply::of(browser.request(Method::POST, "/sessions").json(&body)).await;
    let contact = session_of(&app, &Session::of(full.data(201))).await["contact"].clone();
    for (field, value) in [
        ("name", "Vera"),
        ("email", "vera@example.com"),
        ("number", "5511987654321"),
        ("numberCountry", "BR"),
        ("sourceUrl", "https://shop.example/a"),
        ("utmSource", "news"),
        ("utmMedium", "mail"),
        ("utmCampaign", "spring"),
        ("utmId", "7"),
    ] {
        assert_eq!(contact[field], value, "{field}");
    }
    assert_eq!(app.api.all("/tickets").await[0]["contact"]["name"], "Vera", "the hot ticket shows the old name");
    // Existing values stay.
    let other = json!({"name": "Nobody", "email": "other@example.com", "number": "5511900000001"});
    let again = Session::of(browser.try_open_as(&signed("v-1", other)).await.data(201));
    assert_eq!(session_of(&app, &again).await["contact"], contact);
    // The company's own server is trusted likewise.
    let webchat = app.company.webchat;
    let open = json!({"channelId": webchat, "visitor": {"externalId": "v-3"}});
    let first = app.api.post("/webchat/sessions", open).await.data(201).clone();
    let open = json!({"channelId": webchat, "visitor": {"externalId": "v-3", "name": "Nils", "email": "nils@example.com"},
        "utm": {"source": "ad"}});
    let second = app.api.post("/webchat/sessions", open).await.data(201)["contact"].clone();
    assert_eq!(second["id"], first["contact"]["id"]);
    assert_eq!(
        (&second["name"], &second["email"], &second["utmSource"]),
        (&json!("Nils"), &json!("nils@example.com"), &json!("ad"))
    );
    app.stop().await;
}

#[actix_web::test]
async fn an_invalid_identity_opens_no_session() {
    let app = OwnApp::start().await;
    // The clock stands still, so that identities do not age between signature and use.
    clock::stop();
    let browser = Browser::of(&app).await;
    let (other, _) = app.another_company().await;
    let other_secret = "ids_of another webchat, whose owner may be anybody";
    let set_secret = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), hotline_persistence::Error> {
        settings.identity_secrets = vec![Secret(other_secret.to_owned())];
        Ok(())
    };
    channels::update(&app.db, &keys(), other.id, other.webchat, set_secret).await.expect("a secret");
    let claims = |more: Value| {
        let mut claims = json!({"sub": "v-1", "exp": now_s() + 3600});
        claims.as_object_mut().expect("object").extend(more.as_object().expect("object").clone());
        claims
    };
    let good = signed("v-1", json!({}));
    let parts: Vec<&str> = good.split('.').collect();
    // {"alg":"none"} and {"alg":"HS512"}
    let (none, hs512) = ("eyJhbGciOiJub25lIn0", "eyJhbGciOiJIUzUxMiJ9");
    let tampered = sign_with("x", &claims(json!({"sub": "admin"})));
    let tampered: Vec<&str> = tampered.split('.').collect();
    let cases = [
        ("another channel's", sign_with(other_secret, &claims(json!({})))),
        ("expired", sign_with(SECRET, &claims(json!({"exp": now_s() - 61})))),
        ("25 hours ahead", sign_with(SECRET, &claims(json!({"exp": now_s() + 25 * 3600})))),
        ("without exp", sign_with(SECRET, &json!({"sub": "v-1"}))),
        ("without sub", sign_with(SECRET, &json!({"exp": now_s() + 3600}))),
        ("alg none", format!("{none}.{}.", parts[1])),
        ("alg none, signed", format!("{none}.{}.{}", parts[1], parts[2])),
        ("alg HS512", format!("{hs512}.{}.{}", parts[1], parts[2])),
        ("tampered", format!("{}.{}.{}", parts[0], tampered[1], parts[2])),
        ("cut", format!("{}.{}.{}", parts[0], parts[1], &parts[2][..parts[2].len() - 1])),
        ("oversized", sign_with(SECRET, &claims(json!({"more": "x".repeat(5000)})))),
        ("not a token", "hello".to_owned()),
        ("for another", sign_with(SECRET, &claims(json!({"aud": "ch_another"})))),
        ("empty", String::new()),
    ];
    let unknown = browser.open_unknown(json!({})).await;
    let before = app.api.all("/contacts").await.len();
    for (what, identity) in &cases {
        let opened = browser.try_open_as(identity).await;
        assert_eq!(opened.status.as_u16(), 401, "{what}: {}", opened.body);
        let details = opened.error(401, "ERR_API_UNAUTHORIZED");
        assert_eq!(details[0]["field"], "identity", "{what}: {}", opened.body);
        let identified = browser.identify(&unknown, identity).await;
        identified.error(401, "ERR_API_UNAUTHORIZED");
    }
    assert_eq!(app.api.all("/contacts").await.len(), before, "a refused identity left a contact");
    assert_eq!(browser.get(&unknown, "/session").await.data(200)["verified"], false);
    let fields = signed("v-1", json!({"email": "nobody", "number": "1"}));
    assert_eq!(browser.try_open_as(&fields).await.invalid_fields(), ["identity.email", "identity.number"]);
    for body in [json!({"identity": 7}), json!({"identity": {}})] {
        let refused = Reply::of(browser.request(Method::POST, "/sessions").json(&body)).await;
        assert_eq!(refused.invalid_fields(), ["identity"]);
    }
    assert_eq!(browser.post(&unknown, "/identify", json!({})).await.invalid_fields(), ["identity"]);
    // Without a session there is no visitor to identify; an identity alone opens one.
    let stranger = Session { id: String::new(), token: "vt_00000000000000000000000000000000".to_owned() };
    browser.identify(&stranger, &good).await.error(401, "ERR_API_UNAUTHORIZED");
    // If the clocks differ by less than a minute, the identity is valid.
    browser.try_open_as(&sign_with(SECRET, &claims(json!({"exp": now_s() - 30})))).await.data(201);
    app.stop().await;
}

#[actix_web::test]
async fn two_secrets_are_valid_while_one_replaces_the_other() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let identity_by = |secret: &str| sign_with(secret, &json!({"sub": "v-1", "exp": now_s() + 3600}));
    let mut secrets = Vec::new();
    for _ in 0..2 {
        change_settings(&app, |settings| secrets.push(settings.rotate_identity_secret(true).0)).await;
    }
    browser.try_open_as(&identity_by(&secrets[1])).await.data(201);
    browser.try_open_as(&identity_by(&secrets[0])).await.data(201);
    browser.try_open_as(&identity_by(SECRET)).await.error(401, "ERR_API_UNAUTHORIZED");
    change_settings(&app, |settings| secrets.push(settings.rotate_identity_secret(false).0)).await;
    browser.try_open_as(&identity_by(&secrets[2])).await.data(201);
    browser.try_open_as(&identity_by(&secrets[1])).await.error(401, "ERR_API_UNAUTHORIZED");
    app.stop().await;
}

#[actix_web::test]
async fn a_webchat_that_requires_an_identity_lets_in_nobody_without_one() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let before = browser.open_unknown(json!({})).await;
    change_settings(&app, |settings| settings.require_identity = true).await;
    let config = Reply::of(browser.request(Method::GET, "/config")).await;
    assert_eq!(config.data(200)["identityRequired"], true);
    for visitor in [json!({}), json!({"email": "vera@example.com", "externalId": "v-1"})] {
        browser.try_open(visitor).await.error(401, "ERR_API_UNAUTHORIZED");
    }
    let continued = browser.with(&before, Method::POST, "/sessions").json(&json!({}));
    Reply::of(continued).await.error(401, "ERR_API_UNAUTHORIZED");
    assert_eq!(app.api.all("/contacts").await.len(), 1, "a refused visitor left a contact");
    browser.open("v-1").await;
    // An earlier session continues, and the company's own server still opens sessions.
    browser.say(&before, "still here").await;
    app.session("v-2").await;
    app.stop().await;
}
