//! A contact who writes a stop word gets no campaigns until opted in again.

use chrono::{SecondsFormat, Utc};
use hotline_persistence::tables::companies::{self, CompanyChanges};
use serde_json::{Value, json};

use super::statuses::sent;
use super::{MARIA, ProviderChannel, Tally, all_taken, contact, messages};
use crate::events::{after, newest};
use crate::steps::restarted;
use crate::support::provider::hooks::{image, text};
use crate::support::{Api, OwnApp, TestApp};

async fn put_contact(api: &Api, contact: &Value, body: Value) -> Value {
    api.put(&format!("/contacts/{contact}"), body).await.data(200).clone()
}

#[actix_web::test]
async fn a_stop_word_opts_its_contact_out_once_and_the_api_opts_in_again() {
    let app = OwnApp::start().await;
    let (_, other) = app.another_company().await;
    let theirs = other.post("/contacts", json!({"name": "Maria", "number": MARIA})).await.data(201)["id"].clone();
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    for (mid, body) in [("wamid.1", "please stop"), ("wamid.2", "stopwatch"), ("wamid.3", "sair agora")] {
        assert_eq!(channel.deliver(&app.api, &phone.message(MARIA, "Maria", text(mid, body))).await, all_taken(1));
    }
    let captioned = image("wamid.4", "media 1", Some("STOP"));
    assert_eq!(channel.deliver(&app.api, &phone.message(MARIA, "Maria", captioned)).await, all_taken(1));
    let all = messages(&app.api, channel.id).await;
    assert_eq!((all.len(), &all[3]["body"]), (4, &json!("STOP")));
    let maria = all[0]["contactId"].clone();
    let before = contact(&app.api, &maria).await;
    assert_eq!(before["marketingOptOut"], false);

    let stop = phone.message(MARIA, "Maria", text("wamid.5", " Stóp\n"));
    assert_eq!(channel.deliver(&app.api, &stop).await, all_taken(1));
    let opted_out = contact(&app.api, &maria).await;
    assert_eq!(opted_out["marketingOptOut"], true);
    assert!(opted_out["updatedAt"].as_str() >= before["updatedAt"].as_str());
    assert_eq!(messages(&app.api, channel.id).await[4]["body"], " Stóp\n");
    // A second stop word changes nothing.
    assert_eq!(channel.deliver(&app.api, &phone.message(MARIA, "Maria", text("wamid.6", "SAIR"))).await, all_taken(1));
    assert_eq!(contact(&app.api, &maria).await, opted_out);

    assert_eq!(contact(&other, &theirs).await["marketingOptOut"], false);

    // A repeated call does not opt the contact out again.
    assert_eq!(put_contact(&app.api, &maria, json!({"marketingOptOut": false})).await["marketingOptOut"], false);
    assert_eq!(channel.deliver(&app.api, &stop).await, Tally { repeated: 1, ..Tally::default() });
    assert_eq!(contact(&app.api, &maria).await["marketingOptOut"], false);
    let app = restarted(app).await;
    assert_eq!(contact(&app.api, &maria).await["marketingOptOut"], false);
    assert_eq!(channel.deliver(&app.api, &stop).await, Tally { repeated: 1, ..Tally::default() });

    // An import right after the word takes precedence.
    for round in 0..10 {
        let stop = text(&format!("wamid.again.{round}"), "parar");
        assert_eq!(channel.deliver(&app.api, &phone.message(MARIA, "Maria", stop)).await, all_taken(1));
        let rows = json!({"contacts": [{"number": MARIA, "marketingOptOut": false}]});
        assert_eq!(app.api.post("/contacts/import", rows).await.data(200)["updated"], 1);
        assert_eq!(contact(&app.api, &maria).await["marketingOptOut"], false);
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_company_has_stop_words_of_its_own_which_count_on_a_webchat_as_well() {
    let app = TestApp::shared().await;
    let (other, their_api) = app.another_company().await;
    let words = CompanyChanges { stop_words: Some(vec!["basta".to_owned()]), ..CompanyChanges::default() };
    companies::update(&app.db, app.company.id, words).await.expect("changed");
    app.refreshed().await;
    for (api, webchat, word, opts_out) in [
        (&app.api, app.company.webchat, "STOP", false),
        (&app.api, app.company.webchat, "BASTA", true),
        (&their_api, other.webchat, "STOP", true),
        (&their_api, other.webchat, "Basta", false),
    ] {
        let session = api.post("/webchat/sessions", json!({"channelId": webchat})).await.data(201).clone();
        let path = format!("/webchat/sessions/{}/messages", session["id"].as_str().expect("id"));
        api.post(&path, json!({"body": word})).await.data(201);
        let shown = contact(api, &session["contact"]["id"]).await;
        assert_eq!(shown["marketingOptOut"], opts_out, "{word}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn punctuation_and_emoji_around_a_stop_word_are_ignored_and_a_sentence_opts_nobody_out() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    let texts = [
        ("Sair.", true),
        ("parar!", true),
        ("\"STOP\"", true),
        ("🛑 stop", true),
        ("stop 🙏🏽", true),
        ("stop, o Zé não vem", false),
        ("please do not stop", false),
        ("!", false),
    ];
    for (index, (body, opts_out)) in texts.into_iter().enumerate() {
        let number = format!("55119000000{index:02}");
        let call = phone.message(&number, "Somebody", text(&format!("wamid.around.{index}"), body));
        assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
        let found = app.api.get(&format!("/contacts?number={number}")).await.data(200)[0].clone();
        assert_eq!(contact(&app.api, &found["id"]).await["marketingOptOut"], opts_out, "{body}");
    }
    app.stop().await;
}

/// How many events after `begin` opt this contact out.
async fn opt_outs_since(api: &Api, begin: i64, id: &Value) -> usize {
    let events = after(api, begin).await;
    let is_theirs = |event: &&Value| event["type"] == "contact.updated" && event["data"]["id"] == *id;
    events.iter().filter(is_theirs).filter(|event| event["data"]["marketingOptOut"] == true).count()
}

#[actix_web::test]
async fn a_contact_who_stops_marketing_messages_at_the_provider_is_opted_out() {
    const JOSE: &str = "5511991234000";
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    let call = phone.message(MARIA, "Maria", text("wamid.1", "hi"));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    let maria = messages(&app.api, channel.id).await[0]["contactId"].clone();
    let jose = app.api.post("/contacts", json!({"name": "José", "number": JOSE})).await.data(201)["id"].clone();
    let begin = newest(&app.api).await;

    // The first is José's number in its other spelling; no contact has the second. A `resume` is ignored: only the
    // company opts a contact in again.
    let preferences = phone.preferences(&[("551191234000", "stop"), ("5511999990000", "stop"), (MARIA, "resume")]);
    assert_eq!(channel.deliver(&app.api, &preferences).await, Tally { taken: 2, ignored: 1, ..Tally::default() });
    let preferences = phone.preferences(&[(JOSE, "stop")]);
    assert_eq!(channel.deliver(&app.api, &preferences).await, all_taken(1));
    assert_eq!(contact(&app.api, &jose).await["marketingOptOut"], true);
    assert_eq!(contact(&app.api, &maria).await["marketingOptOut"], false);
    assert_eq!(app.api.get("/contacts?number=5511999990000").await.data(200), &json!([]));
    assert_eq!(opt_outs_since(&app.api, begin, &jose).await, 1);

    // A message that fails because of an opt-out at the provider opts the contact out; another failure does not.
    sent(&app, &channel, &maria, "news", "wamid.news").await;
    for (code, opts_out) in [(131_026, false), (131_050, true)] {
        let failed = phone.failed("wamid.news", MARIA, code, "not delivered", Utc::now().timestamp());
        assert_eq!(channel.deliver(&app.api, &failed).await, all_taken(1));
        assert_eq!(contact(&app.api, &maria).await["marketingOptOut"], opts_out, "{code}");
    }
    assert_eq!(opt_outs_since(&app.api, begin, &maria).await, 1);
    let app = restarted(app).await;
    for id in [&jose, &maria] {
        assert_eq!(contact(&app.api, id).await["marketingOptOut"], true);
    }
    app.stop().await;
}

/// In the past, the contact had the time of the provider, and a reader of what has changed since never got it.
#[actix_web::test]
async fn an_opt_out_that_is_reported_late_is_a_change_of_now() {
    const JOSE: &str = "5511991234000";
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let jose = app.api.post("/contacts", json!({"name": "José", "number": JOSE})).await.data(201)["id"].clone();
    let begin = newest(&app.api).await;
    let since = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
    let mut call = channel.phone_account().preferences(&[(JOSE, "stop")]);
    let an_hour_ago = Utc::now().timestamp() - 3600;
    call["entry"][0]["changes"][0]["value"]["user_preferences"][0]["timestamp"] = an_hour_ago.to_string().into();
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));

    let changed = app.api.get(&format!("/contacts?updatedFrom={since}")).await.data(200).clone();
    let ids: Vec<&Value> = changed.as_array().expect("a list").iter().map(|contact| &contact["id"]).collect();
    assert_eq!(ids, [&jose]);
    let events = after(&app.api, begin).await;
    let opted_out = events.iter().find(|event| event["data"]["marketingOptOut"] == true).expect("an event");
    assert_eq!((&opted_out["type"], &opted_out["data"]["id"]), (&json!("contact.updated"), &jose));
    assert!(opted_out["createdAt"].as_str() >= Some(since.as_str()), "{opted_out}");
    app.stop().await;
}
