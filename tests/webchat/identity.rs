//! Who a visitor is: what a browser claims, and what its website has signed.

use std::time::Duration;

use futures_util::future::join_all;
use hotline_actors::EngineOptions;
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings, ChannelType, NewChannel, Secret};
use reqwest::Method;
use serde_json::{Value, json};

use crate::door::answer;
use crate::support::service::TestOptions;
use crate::support::{Reply, TestApp, eventually, keys};
use crate::visitor::{Browser, SECRET, Session, sign_with, signed};

/// A session, as the company sees it.
async fn shown(app: &TestApp, session: &Session) -> Value {
    app.api.get(&format!("/webchat/sessions/{}", session.id)).await.data(200).clone()
}

fn now_s() -> i64 {
    hotline_actors::clock::now().timestamp()
}

fn bodies(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["body"].as_str().unwrap_or_default()).collect()
}

async fn said_in(browser: &Browser, session: &Session) -> Vec<Value> {
    browser.get(session, "/messages").await.data(200).as_array().expect("a list").clone()
}

async fn change(app: &TestApp, change: impl FnOnce(&mut ChannelSettings)) {
    let settings = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), hotline_persistence::Error> {
        change(settings);
        Ok(())
    };
    let webchat = app.company.webchat;
    let changed = channels::update(&app.database.db, &keys(), webchat, settings).await.expect("changed").updated_at;
    eventually("the change is seen", || async {
        let organization = app.service.app.engine.directory().company(app.company.id).expect("company");
        organization.channels[&webchat].updated_at == changed
    })
    .await;
}

#[actix_web::test]
async fn whoever_types_a_customers_data_gets_a_contact_of_their_own() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let vera = json!({"name": "Vera", "email": "vera@example.com", "number": "5511987654321", "externalId": "v-1"});
    let open = json!({"channelId": app.company.webchat, "visitor": vera});
    let hers = app.api.post("/webchat/sessions", open.clone()).await.data(201).clone();
    let path = format!("/webchat/sessions/{}/messages", hers["id"].as_str().expect("id"));
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
        let said = browser.say(&session, "it is me").await;
        socket.message().await;
        answer(&app.api, ticket.as_i64().expect("id"), "only for Vera").await;
        // What is said next is the next that is pushed: nothing of hers came in between.
        let again = browser.say(&session, "hello?").await;
        assert_eq!(socket.message().await["id"], again["id"], "{claim}");
        assert_eq!(bodies(&said_in(&browser, &session).await), ["it is me", "hello?"], "{claim}");

        let theirs = shown(&app, &session).await;
        assert_ne!(theirs["contact"]["id"], hers["contact"]["id"], "{claim}");
        assert_ne!(theirs["ticketId"], ticket, "{claim}");
        assert_eq!((&theirs["verified"], &theirs["contact"]["verified"]), (&json!(false), &json!(false)));
        assert_eq!((&theirs["contact"]["email"], &theirs["contact"]["number"]), (&Value::Null, &Value::Null));
        let number = claim["number"].as_str().map(|_| "5511987654321");
        let expected = json!({"name": claim["name"], "email": claim["email"], "number": number,
            "externalId": claim["externalId"]});
        assert_eq!(theirs["claimed"], expected, "what was claimed is shown");
        let theirs = app.api.get(&format!("/tickets/{}", theirs["ticketId"])).await.data(200).clone();
        assert_eq!(theirs["verified"], false, "{theirs}");
        assert_eq!(theirs["id"], app.api.get(&format!("/messages/{}", said["id"])).await.data(200)["ticketId"]);
    }
    let ticket = app.api.get(&format!("/tickets/{ticket}")).await.data(200).clone();
    assert_eq!(
        (&ticket["verified"], &ticket["unreadCount"]),
        (&json!(true), &json!(1)),
        "somebody wrote in her ticket"
    );
    // The company finds her, not those who said that they were her.
    for visitor in
        [json!({"number": "5511987654321"}), json!({"email": "vera@example.com"}), json!({"externalId": "v-1"})]
    {
        let open = json!({"channelId": app.company.webchat, "visitor": visitor});
        let found = app.api.post("/webchat/sessions", open).await.data(201).clone();
        assert_eq!(found["contact"]["id"], hers["contact"]["id"]);
        assert_eq!((&found["verified"], &found["claimed"]), (&json!(true), &Value::Null));
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_claim_made_beforehand_captures_nothing() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let claim = json!({"name": "Vera", "externalId": "v-1", "number": "5511987654321", "email": "vera@example.com"});
    let attacker = browser.open_unknown(claim.clone()).await;
    browser.say(&attacker, "I was here first").await;
    let captured = shown(&app, &attacker).await["contact"]["id"].clone();

    let vera = Session::of(browser.try_open_as(&signed("v-1", claim.clone())).await.data(201));
    let hers = shown(&app, &vera).await;
    assert_ne!(hers["contact"]["id"], captured);
    let contact = &hers["contact"];
    assert_eq!(
        (&contact["verified"], &contact["number"], &contact["email"]),
        (&json!(true), &json!("5511987654321"), &json!("vera@example.com")),
        "the claims stood in her way"
    );
    // Nor does it catch what the company sends to her number, or imports under her e-mail.
    let imported = json!({"contacts": [{"name": "Vera Lima", "email": "vera@example.com", "code": "C-1"}]});
    app.api.post("/contacts/import", imported).await.data(200);
    let captured = app.api.get(&format!("/contacts/{captured}")).await.data(200).clone();
    assert_eq!(
        (&captured["code"], &captured["number"], &captured["email"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(captured["name"], "Vera", "a name finds nobody, and may be shown");
    app.stop().await;
}

#[actix_web::test]
async fn a_claim_of_an_earlier_release_gives_way_to_a_signature() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let old: i64 = sqlx::query_scalar(
        "insert into contacts (company_id, name, external_id, email) values ($1, 'Old', 'v-1', 'old@example.com')
         returning id",
    )
    .bind(app.company.id)
    .fetch_one(&app.database.db)
    .await
    .expect("a contact of an earlier release");
    let first = browser.open("v-1").await;
    assert_ne!(shown(&app, &first).await["contact"]["id"], old);
    // One the company has vouched for since is found.
    sqlx::query("update contacts set external_id = 'v-2' where id = $1")
        .bind(old)
        .execute(&app.database.db)
        .await
        .expect("named");
    let open = json!({"channelId": app.company.webchat, "visitor": {"externalId": "v-2"}});
    assert_eq!(app.api.post("/webchat/sessions", open).await.data(201)["contact"]["id"], old);
    let second = browser.open("v-2").await;
    assert_eq!(shown(&app, &second).await["contact"]["id"], old);
    app.stop().await;
}

#[actix_web::test]
async fn a_signed_identity_joins_by_its_external_id_and_by_nothing_else() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let customer = json!({"name": "Somebody", "number": "5511987654321", "email": "vera@example.com"});
    let other = app.api.post("/contacts", customer).await.data(201)["id"].clone();

    let more = json!({"name": "Vera", "email": "vera@example.com", "number": "5511987654321"});
    let vera = Session::of(browser.try_open_as(&signed("v-1", more)).await.data(201));
    let hers = shown(&app, &vera).await;
    assert_ne!(hers["contact"]["id"], other, "an e-mail or a number joined");
    assert_eq!((&hers["contact"]["name"], &hers["contact"]["email"]), (&json!("Vera"), &json!("vera@example.com")));
    assert_eq!(hers["contact"]["number"], Value::Null, "a number is one contact's");
    assert_eq!(
        (&hers["verified"], &hers["contact"]["verified"], &hers["claimed"]),
        (&json!(true), &json!(true), &Value::Null)
    );
    assert_eq!(browser.get(&vera, "/session").await.data(200)["verified"], true);
    let said = browser.say(&vera, "hello").await;

    let elsewhere = browser.open("v-1").await;
    assert_eq!(shown(&app, &elsewhere).await["contact"]["id"], hers["contact"]["id"]);
    let again = browser.say(&elsewhere, "from my phone").await;
    let ticket = app.api.all("/tickets").await;
    assert_eq!(ticket.len(), 1, "one conversation");
    assert_eq!((&ticket[0]["verified"], &ticket[0]["lastMessage"]["id"]), (&json!(true), &again["id"]));
    assert_eq!(app.api.get(&format!("/messages/{}", said["id"])).await.data(200)["contactId"], hers["contact"]["id"]);
    app.stop().await;
}

#[actix_web::test]
async fn what_a_verified_visitor_says_anew_fills_what_is_empty() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let bare = Session::of(browser.try_open_as(&signed("v-1", json!({}))).await.data(201));
    assert_eq!(shown(&app, &bare).await["contact"]["name"], "Visitor");
    browser.say(&bare, "hello").await;
    let more = json!({"name": "Vera", "email": "vera@example.com", "number": "5511987654321"});
    let utm = json!({"source": "news", "medium": "mail", "campaign": "spring", "id": "7"});
    let body = json!({"identity": signed("v-1", more), "page": {"url": "https://shop.example/a"}, "utm": utm});
    let full = Reply::of(browser.request(Method::POST, "/sessions").json(&body)).await;
    let contact = shown(&app, &Session::of(full.data(201))).await["contact"].clone();
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
    // What is there stays.
    let other = json!({"name": "Nobody", "email": "other@example.com", "number": "5511900000001"});
    let again = Session::of(browser.try_open_as(&signed("v-1", other)).await.data(201));
    assert_eq!(shown(&app, &again).await["contact"], contact);
    // The company's own server is believed alike.
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
async fn an_identity_that_is_none_opens_nothing() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let (other, _) = app.another_company().await;
    let there = "ids_of another webchat, whose owner may be anybody";
    let set = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), hotline_persistence::Error> {
        settings.identity_secrets = vec![Secret(there.to_owned())];
        Ok(())
    };
    channels::update(&app.database.db, &keys(), other.webchat, set).await.expect("a secret");
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
        ("another channel's", sign_with(there, &claims(json!({})))),
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
        ("no token", "hello".to_owned()),
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
    assert_eq!(app.api.all("/contacts").await.len(), before, "something was opened");
    assert_eq!(browser.get(&unknown, "/session").await.data(200)["verified"], false);
    let fields = signed("v-1", json!({"email": "nobody", "number": "1"}));
    assert_eq!(browser.try_open_as(&fields).await.invalid_fields(), ["identity.email", "identity.number"]);
    for body in [json!({"identity": 7}), json!({"identity": {}})] {
        let refused = Reply::of(browser.request(Method::POST, "/sessions").json(&body)).await;
        assert_eq!(refused.invalid_fields(), ["identity"]);
    }
    assert_eq!(browser.post(&unknown, "/identify", json!({})).await.invalid_fields(), ["identity"]);
    // Without a session there is nobody to identify; an identity alone opens one.
    let nobody = Session { id: String::new(), token: "vt_00000000000000000000000000000000".to_owned() };
    browser.identify(&nobody, &good).await.error(401, "ERR_API_UNAUTHORIZED");
    // Within a minute of difference between the clocks it is good.
    browser.try_open_as(&sign_with(SECRET, &claims(json!({"exp": now_s() - 30})))).await.data(201);
    app.stop().await;
}

#[actix_web::test]
async fn two_secrets_are_good_while_one_takes_the_place_of_the_other() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let by = |secret: &str| sign_with(secret, &json!({"sub": "v-1", "exp": now_s() + 60}));
    let mut made = Vec::new();
    for _ in 0..2 {
        change(&app, |settings| made.push(settings.rotate_identity_secret(true).0)).await;
    }
    browser.try_open_as(&by(&made[1])).await.data(201);
    browser.try_open_as(&by(&made[0])).await.data(201);
    browser.try_open_as(&by(SECRET)).await.error(401, "ERR_API_UNAUTHORIZED");
    change(&app, |settings| made.push(settings.rotate_identity_secret(false).0)).await;
    browser.try_open_as(&by(&made[2])).await.data(201);
    browser.try_open_as(&by(&made[1])).await.error(401, "ERR_API_UNAUTHORIZED");
    app.stop().await;
}

#[actix_web::test]
async fn a_webchat_that_requires_an_identity_lets_in_nobody_without_one() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let before = browser.open_unknown(json!({})).await;
    change(&app, |settings| settings.require_identity = true).await;
    let config = Reply::of(browser.request(Method::GET, "/config")).await;
    assert_eq!(config.data(200)["identityRequired"], true);
    for visitor in [json!({}), json!({"email": "vera@example.com", "externalId": "v-1"})] {
        browser.try_open(visitor).await.error(401, "ERR_API_UNAUTHORIZED");
    }
    let continued = browser.with(&before, Method::POST, "/sessions").json(&json!({}));
    Reply::of(continued).await.error(401, "ERR_API_UNAUTHORIZED");
    assert_eq!(app.api.all("/contacts").await.len(), 1, "a contact was made");
    browser.open("v-1").await;
    // A session that was there goes on, and so does the company's own server.
    browser.say(&before, "still here").await;
    app.session("v-2").await;
    app.stop().await;
}

#[actix_web::test]
async fn who_signs_in_where_nobody_is_goes_on_as_they_are() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let session = browser.open_unknown(json!({"name": "V", "email": "claimed@example.com"})).await;
    let mut socket = browser.socket(&session).await;
    let said = browser.say(&session, "where is my order?").await;
    socket.message().await;
    let before = shown(&app, &session).await;

    let identity = signed("v-1", json!({"name": "Vera", "email": "vera@example.com"}));
    let identified = browser.identify(&session, &identity).await;
    let identified = identified.data(200);
    assert_eq!((&identified["id"], &identified["verified"]), (&json!(session.id), &json!(true)));
    assert!(identified.get("token").is_none(), "{identified}");
    let after = shown(&app, &session).await;
    assert_eq!(after["contact"]["id"], before["contact"]["id"]);
    assert_eq!(
        (&after["verified"], &after["status"], &after["contact"]["verified"]),
        (&json!(true), &json!("active"), &json!(true))
    );
    assert_eq!((&after["contact"]["name"], &after["contact"]["email"]), (&json!("Vera"), &json!("vera@example.com")));
    assert_eq!(after["claimed"]["email"], "claimed@example.com", "what was claimed is kept");
    let ticket = app.api.all("/tickets").await;
    assert_eq!((&ticket[0]["verified"], &ticket[0]["contact"]["name"]), (&json!(true), &json!("Vera")));
    assert_eq!(app.api.all("/messages?type=note").await.len(), 0);
    // The conversation goes on, in the same socket.
    answer(&app.api, ticket[0]["id"].as_i64().expect("id"), "On its way, Vera").await;
    assert_eq!(socket.message().await["body"], "On its way, Vera");

    // A second time changes nothing; a restart finds it.
    assert_eq!(browser.identify(&session, &identity).await.data(200)["id"], json!(session.id));
    let mine = browser.open("v-1").await;
    assert_eq!(shown(&app, &mine).await["contact"]["id"], before["contact"]["id"]);
    assert_eq!(app.api.get(&format!("/messages/{}", said["id"])).await.data(200)["contactId"], before["contact"]["id"]);
    app.stop().await;
}

#[actix_web::test]
async fn who_signs_in_as_somebody_who_is_there_goes_on_as_them() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let at_home = Session::of(browser.try_open_as(&signed("v-1", json!({"name": "Vera"}))).await.data(201));
    browser.say(&at_home, "from home").await;
    let known = shown(&app, &at_home).await;

    let unknown = browser.open_unknown(json!({"name": "Somebody"})).await;
    let mut socket = browser.socket(&unknown).await;
    browser.say(&unknown, "where is my order?").await;
    socket.message().await;
    let ticket = shown(&app, &unknown).await["ticketId"].clone();
    let identity = signed("v-1", json!({}));
    let identified = browser.identify(&unknown, &identity).await.data(200).clone();
    let mine = Session::of(&identified);
    assert_eq!((&mine.id, &identified["verified"]), (&at_home.id, &json!(true)), "her active one");
    assert_ne!(mine.token, at_home.token);

    // The other one is over, and its ticket says why.
    assert_eq!(socket.next_of("ended").await["type"], "ended");
    assert_eq!(socket.code().await, Some(4410));
    assert_eq!(shown(&app, &unknown).await["status"], "ended");
    let notes = app.api.all("/messages?type=note").await;
    assert_eq!(notes.len(), 1, "{notes:?}");
    let body = notes[0]["body"].as_str().expect("body");
    assert!(body.contains("Vera") && body.contains(&known["contact"]["id"].to_string()), "{body}");
    assert_eq!((&notes[0]["ticketId"], &notes[0]["direction"]), (&ticket, &json!("internal")));
    assert_eq!(app.api.get(&format!("/tickets/{ticket}")).await.data(200)["verified"], false);

    // Both browsers are in it.
    browser.say(&mine, "from the shop").await;
    for session in [&mine, &at_home] {
        assert_eq!(bodies(&said_in(&browser, session).await), ["from home", "from the shop"]);
    }
    // A retry whose answer was lost comes to the same end, also after a restart of the session's actor.
    let again = Session::of(browser.identify(&unknown, &identity).await.data(200));
    assert_eq!(again.id, mine.id);
    assert_eq!(app.api.all("/messages?type=note").await.len(), 1, "the note is there twice");
    assert_eq!(app.api.all("/contacts").await.len(), 2);
    assert_eq!(browser.get(&again, "/session").await.data(200)["id"], json!(mine.id));
    app.stop().await;
}

#[actix_web::test]
async fn the_tokens_of_a_session_outlive_its_actor() {
    let engine = EngineOptions {
        idle_after: Duration::from_millis(50),
        sweep_every: Duration::from_millis(20),
        ..TestOptions::default().engine
    };
    let app = TestApp::start_with(TestOptions { engine, ..TestOptions::default() }).await;
    let browser = Browser::of(&app).await;
    let first = browser.open("v-1").await;
    let unknown = browser.open_unknown(json!({})).await;
    let second = Session::of(browser.identify(&unknown, &signed("v-1", json!({}))).await.data(200));
    eventually("nobody is hot", || async { app.service.app.engine.hot().1 == 0 }).await;
    for session in [&first, &second] {
        let found = browser.get(session, "/session").await;
        assert_eq!((&found.data(200)["id"], &found.data(200)["verified"]), (&json!(first.id), &json!(true)));
    }
    app.stop().await;
}

#[actix_web::test]
async fn somebody_known_without_a_session_gets_one() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let earlier = browser.open("v-1").await;
    browser.say(&earlier, "hello").await;
    let ticket = shown(&app, &earlier).await["ticketId"].as_i64().expect("ticket");
    browser.post(&earlier, "/end", json!({})).await.data(200);
    answer(&app.api, ticket, "too late?").await;
    let unknown = browser.open_unknown(json!({})).await;
    let identified = browser.identify(&unknown, &signed("v-1", json!({}))).await.data(200).clone();
    let mine = Session::of(&identified);
    assert!(mine.id != earlier.id && mine.id != unknown.id);
    assert_eq!(bodies(&said_in(&browser, &mine).await), ["too late?"]);
    assert_eq!(app.api.all("/messages?type=note").await.len(), 0, "it had no ticket to note it in");
    assert_eq!(shown(&app, &unknown).await["status"], "ended");
    app.stop().await;
}

#[actix_web::test]
async fn twins_that_sign_in_at_once_come_to_one_end() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    // One session, many at once: nobody is there yet.
    let session = browser.open_unknown(json!({})).await;
    browser.say(&session, "hello").await;
    let identity = signed("v-1", json!({"name": "Vera"}));
    let all = join_all((0..16).map(|_| browser.identify(&session, &identity))).await;
    assert!(all.iter().all(|reply| reply.data(200)["id"] == json!(session.id)));
    assert_eq!(app.api.all("/contacts").await.len(), 1);
    // Many sessions, one identity: one of them, or a new one, is hers; each of the others is over.
    let sessions = join_all((0..16).map(|_| browser.open_unknown(json!({})))).await;
    for session in &sessions {
        browser.say(session, "hello").await;
    }
    let identity = signed("v-2", json!({"name": "Nils"}));
    let ends = join_all(sessions.iter().map(|session| browser.identify(session, &identity))).await;
    let ids: Vec<&Value> = ends.iter().map(|reply| &reply.data(200)["id"]).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let mut active = 0;
    for session in &sessions {
        active += usize::from(shown(&app, session).await["status"] == "active");
    }
    assert_eq!(active, usize::from(sessions.iter().any(|session| json!(session.id) == *ids[0])));
    let notes = app.api.all("/messages?type=note").await;
    assert_eq!(notes.len(), 16 - active, "each other ticket has one note");
    // One session, many at once, somebody is there: one session is opened, one note written.
    let unknown = browser.open_unknown(json!({})).await;
    browser.say(&unknown, "hello").await;
    let all = join_all((0..16).map(|_| browser.identify(&unknown, &identity))).await;
    assert!(all.iter().all(|reply| reply.data(200)["id"] == *ids[0]));
    assert_eq!(app.api.all("/messages?type=note").await.len(), notes.len() + 1);
    app.stop().await;
}

#[actix_web::test]
async fn somebody_else_on_the_same_computer_takes_nothing_along() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let vera = browser.open("v-1").await;
    browser.say(&vera, "my secret").await;
    let nils = Session::of(browser.identify(&vera, &signed("v-2", json!({"name": "Nils"}))).await.data(200));
    assert_ne!(nils.id, vera.id);
    assert_ne!(shown(&app, &nils).await["contact"]["id"], shown(&app, &vera).await["contact"]["id"]);
    assert_eq!(said_in(&browser, &nils).await.len(), 0);
    assert_eq!(shown(&app, &vera).await["status"], "active", "she may be in it elsewhere");
    app.stop().await;
}

#[actix_web::test]
async fn what_is_sent_after_a_session_has_ended_is_shown_in_the_next() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let session = browser.open_unknown(json!({"name": "Vera"})).await;
    browser.say(&session, "hello").await;
    let before = shown(&app, &session).await;
    let ticket = before["ticketId"].as_i64().expect("ticket");
    answer(&app.api, ticket, "yes?").await;
    assert_eq!(said_in(&browser, &session).await.len(), 2);
    browser.post(&session, "/end", json!({})).await.data(200);
    answer(&app.api, ticket, "are you there?").await;

    // Whoever holds the old token is the same unknown person; without it nobody is.
    let stranger = browser.open_unknown(json!({"name": "Vera"})).await;
    assert_ne!(shown(&app, &stranger).await["contact"]["id"], before["contact"]["id"]);
    let again = browser.with(&session, Method::POST, "/sessions").json(&json!({"visitor": {"name": "Vera"}}));
    let again = Session::of(Reply::of(again).await.data(201));
    assert_eq!(shown(&app, &again).await["contact"]["id"], before["contact"]["id"]);
    let (mut socket, frames) = browser.socket_after(&again, None).await;
    assert_eq!(bodies(&frames), ["are you there?"]);
    eventually("it is delivered", || async {
        app.api.all("/messages?direction=outbound").await.iter().all(|message| message["status"] == "delivered")
    })
    .await;
    let said = browser.say(&again, "back again").await;
    assert_eq!(socket.message().await["id"], said["id"]);
    assert_eq!(shown(&app, &again).await["ticketId"], json!(ticket), "the conversation goes on");

    // Not once it is known who the contact is.
    browser.identify(&again, &signed("v-1", json!({}))).await.data(200);
    let old = browser.with(&session, Method::POST, "/sessions").json(&json!({}));
    let old = Session::of(Reply::of(old).await.data(201));
    assert_ne!(
        shown(&app, &old).await["contact"]["id"],
        before["contact"]["id"],
        "an old token opens a verified contact"
    );
    // A verified one is found by its identity.
    browser.post(&again, "/end", json!({})).await.data(200);
    answer(&app.api, ticket, "one more thing").await;
    let next = browser.open("v-1").await;
    assert_eq!(bodies(&said_in(&browser, &next).await), ["one more thing"]);
    eventually("it is delivered as well", || async {
        app.api.all("/messages?direction=outbound").await.iter().all(|message| message["status"] == "delivered")
    })
    .await;
    let beside = browser.open("v-1").await;
    assert_eq!(said_in(&browser, &beside).await.len(), 0, "it was shown where she is");
    app.stop().await;
}

#[actix_web::test]
async fn what_came_while_nobody_was_there_is_shown_in_the_next_also_when_that_was_never_looked_at() {
    let engine = EngineOptions {
        session_idle_after: Duration::from_millis(400),
        sweep_every: Duration::from_millis(50),
        ..TestOptions::default().engine
    };
    let app = TestApp::start_with(TestOptions { engine, ..TestOptions::default() }).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v-1").await;
    browser.say(&session, "hello").await;
    let ticket = shown(&app, &session).await["ticketId"].as_i64().expect("ticket");
    // The visitor has gone, and their session does not know it yet.
    answer(&app.api, ticket, "sent to nobody").await;
    eventually("it ends by itself", || async { shown(&app, &session).await["status"] == "ended" }).await;
    // The answer to this opening is lost.
    let lost = browser.open("v-1").await;
    eventually("it ends as well", || async { shown(&app, &lost).await["status"] == "ended" }).await;
    let next = browser.open("v-1").await;
    assert_eq!(bodies(&said_in(&browser, &next).await), ["sent to nobody"]);
    app.stop().await;
}

#[actix_web::test]
async fn whoever_is_in_a_contact_the_company_names_later_is_out_of_it() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let attacker = browser.open_unknown(json!({"email": "vera@example.com"})).await;
    browser.say(&attacker, "I am Vera").await;
    let contact = shown(&app, &attacker).await["contact"]["id"].clone();
    // An agent believes it.
    app.api.put(&format!("/contacts/{contact}"), json!({"email": "vera@example.com"})).await.data(200);
    let open = json!({"channelId": app.company.webchat, "visitor": {"email": "vera@example.com"}});
    let opened = app.api.post("/webchat/sessions", open).await.data(201).clone();
    assert_eq!(opened["contact"]["id"], contact, "the company's token vouches for what it says");
    assert_eq!((&opened["verified"], &opened["contact"]["verified"]), (&json!(true), &json!(true)));
    assert_eq!(shown(&app, &attacker).await["status"], "ended");
    browser.post(&attacker, "/messages", json!({"body": "as Vera"})).await.error(409, "ERR_API_CONFLICT");
    let continued = browser.with(&attacker, Method::POST, "/sessions").json(&json!({}));
    let continued = Session::of(Reply::of(continued).await.data(201));
    assert_ne!(shown(&app, &continued).await["contact"]["id"], contact);
    // The same with the contact's id.
    let other = browser.open_unknown(json!({})).await;
    let contact = shown(&app, &other).await["contact"]["id"].clone();
    let open = json!({"channelId": app.company.webchat, "contactId": contact});
    assert_eq!(app.api.post("/webchat/sessions", open).await.data(201)["verified"], true);
    assert_eq!(shown(&app, &other).await["status"], "ended");
    app.stop().await;
}

#[actix_web::test]
async fn an_identity_is_good_in_each_webchat_for_itself() {
    let app = TestApp::start().await;
    let browser = Browser::of(&app).await;
    let settings = ChannelSettings { allowed_origins: vec![browser.origin.clone()], ..ChannelSettings::default() };
    let new = NewChannel { name: "Another", kind: ChannelType::Webchat, number: None, queue_id: None, settings };
    let there = channels::insert(&app.database.db, &keys(), app.company.id, new).await.expect("a webchat");
    let there = Browser::on(&app, app.company.id, there.id).await;
    let set = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), hotline_persistence::Error> {
        settings.identity_secrets = vec![Secret("ids_of that one".to_owned())];
        Ok(())
    };
    let key = there.key.clone();
    let id: i64 = sqlx::query_scalar("select id from channels where public_key = $1")
        .bind(&key)
        .fetch_one(&app.database.db)
        .await
        .expect("id");
    channels::update(&app.database.db, &keys(), hotline_persistence::ChannelId::new(id), set).await.expect("a secret");
    let own = sign_with("ids_of that one", &json!({"sub": "v-1", "exp": now_s() + 60}));
    eventually("its secret is seen", || async { there.try_open_as(&own).await.status == 201 }).await;
    there.try_open_as(&signed("v-1", json!({}))).await.error(401, "ERR_API_UNAUTHORIZED");
    browser.try_open_as(&own).await.error(401, "ERR_API_UNAUTHORIZED");
    // The company has one contact for one external id, whichever of its webchats it comes by.
    let (here, elsewhere) = (browser.open("v-1").await, Session::of(there.try_open_as(&own).await.data(201)));
    assert_eq!(shown(&app, &here).await["contact"]["id"], shown(&app, &elsewhere).await["contact"]["id"]);
    app.stop().await;
}
