//! One person is one contact: by every spelling of a number, by the ids that a provider has of them, and by what they
//! had before. A group is a contact of its own.

use futures_util::future::join_all;
use hotline_persistence::tables::channels::ChannelType::Whatsapp;
use serde_json::{Value, json};

use super::{MARIA, ProviderChannel, Setup, all_taken, contact, messages, tickets};
use crate::steps::{id, listed};
use crate::support::provider::Provider;
use crate::support::provider::hooks::text;
use crate::support::{TestApp, check_events, eventually};

/// One number of Brazil in both spellings: with the ninth digit and without it.
const WITH_NINTH_DIGIT: &str = "5531987654321";
const WITHOUT_NINTH_DIGIT: &str = "553187654321";
const USER_ID: &str = "US.13491208655302741918";
const NEW_USER_ID: &str = "US.23491208655302741918";

/// A call with a message whose sender has this number and this user id, if given.
pub(super) fn call_of_sender(
    channel: &ProviderChannel,
    mid: &str,
    body: &str,
    number: Option<&str>,
    user_id: Option<&str>,
) -> Value {
    let mut call = channel.phone_account().message("", "Maria", text(mid, body));
    let value = &mut call["entry"][0]["changes"][0]["value"];
    value["messages"][0].as_object_mut().expect("a message").remove("from");
    value["contacts"] = json!([{"profile": {"name": "Maria"}}]);
    for (of_message, of_contact, identity) in [("from", "wa_id", number), ("from_user_id", "user_id", user_id)] {
        if let Some(identity) = identity {
            value["messages"][0][of_message] = identity.into();
            value["contacts"][0][of_contact] = identity.into();
        }
    }
    call
}

/// A call with a system message about the sender who is identified by these fields.
fn system_call(channel: &ProviderChannel, mid: &str, at_s: i64, from: Value, system: Value) -> Value {
    let mut message = json!({"id": mid, "timestamp": at_s.to_string(), "type": "system", "system": system});
    for (field, identity) in from.as_object().expect("fields") {
        message[field] = identity.clone();
    }
    channel.phone_account().call_body(json!({"messages": [message]}))
}

fn now_s() -> i64 {
    chrono::Utc::now().timestamp()
}

#[actix_web::test]
async fn every_spelling_of_a_number_is_the_same_contact_wherever_it_is_given() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let known = id(app.api.post("/contacts", json!({"name": "Ana", "number": WITH_NINTH_DIGIT})).await.data(201));
    let other = id(app.api.post("/contacts", json!({"name": "Bia"})).await.data(201));
    // Writes are refused, with the contact that has the number.
    let created = app.api.post("/contacts", json!({"name": "Ana", "number": WITHOUT_NINTH_DIGIT})).await;
    let changed = app.api.put(&format!("/contacts/{other}"), json!({"number": WITHOUT_NINTH_DIGIT})).await;
    for refused in [created, changed] {
        let details = refused.error(409, "ERR_API_CONFLICT");
        assert_eq!((&details["field"], &details["id"]), (&json!("number"), &json!(known)));
    }
    // A contact may take the other spelling of its own number.
    let changed = app.api.put(&format!("/contacts/{known}"), json!({"number": WITHOUT_NINTH_DIGIT})).await;
    assert_eq!(changed.data(200)["number"], WITHOUT_NINTH_DIGIT);
    for spelling in [WITH_NINTH_DIGIT, WITHOUT_NINTH_DIGIT] {
        assert_eq!(listed(&app.api, &format!("/contacts?number={spelling}")).await, [known]);
    }
    channel.deliver(&app.api, &channel.phone_account().message(WITH_NINTH_DIGIT, "Ana", text("wamid.1", "hi"))).await;
    let body = json!({"channelId": channel.id, "number": WITH_NINTH_DIGIT, "type": "text", "body": "hello"});
    app.api.post("/messages", body).await.data(202);
    let all = messages(&app.api, channel.id).await;
    assert_eq!(
        all.iter().map(|message| message["contactId"].clone()).collect::<Vec<_>>(),
        [json!(known), json!(known)]
    );
    let rows = json!([{"name": "A", "number": WITH_NINTH_DIGIT}, {"name": "B", "number": WITHOUT_NINTH_DIGIT},
        {"name": "C", "number": "541112345678"}, {"name": "D", "number": "5491112345678"}]);
    let imported = app.api.post("/contacts/import", json!({"contacts": rows, "onConflict": "skip"})).await;
    assert_eq!((&imported.data(200)["created"], &imported.data(200)["skipped"]), (&json!(1), &json!(3)));
    let session = json!({"channelId": app.company.webchat, "visitor": {"name": "Ana", "number": WITH_NINTH_DIGIT}});
    let session = app.api.post("/webchat/sessions", session).await;
    assert_eq!(session.data(201)["contact"]["id"], known);
    assert_eq!(listed(&app.api, "/contacts").await.len(), 3);
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn both_spellings_at_once_make_one_contact() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    for attempt in 0..5 {
        let pair = [format!("55319876543{attempt}1"), format!("5531876543{attempt}1")];
        let calls = (0..6).map(|number| {
            let (app, channel, from) = (&app, &channel, pair[number % 2].clone());
            async move {
                let mid = format!("wamid.{attempt}.{number}");
                if number == 5 {
                    let body = json!({"name": "Ana", "number": from});
                    let status = app.api.post("/contacts", body).await.status;
                    assert!(status == 201 || status == 409, "{status}");
                    return;
                }
                assert_eq!(
                    channel.deliver(&app.api, &channel.phone_account().message(&from, "Ana", text(&mid, "hi"))).await,
                    all_taken(1)
                );
            }
        });
        join_all(calls).await;
        assert_eq!(listed(&app.api, &format!("/contacts?number={}", pair[0])).await.len(), 1);
        assert_eq!(listed(&app.api, "/contacts").await.len(), attempt + 1);
    }
    assert_eq!(tickets(&app.api, channel.id).await.len(), 5);
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_who_hides_their_number_is_answered_by_id_until_it_is_known() {
    let app = TestApp::shared().await;
    let provider = Provider::start().await;
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Whatsapp, setup).await;
    channel.deliver(&app.api, &call_of_sender(&channel, "wamid.1", "hi", None, Some(USER_ID))).await;
    let first = messages(&app.api, channel.id).await.remove(0);
    let by_ticket = json!({"ticketId": first["ticketId"], "type": "text", "body": "one"});
    let by_contact = json!({"channelId": channel.id, "contactId": first["contactId"], "type": "text", "body": "two"});
    for body in [by_ticket, by_contact] {
        app.api.post("/messages", body).await.data(202);
    }
    for call in provider.accepts(&channel.account, 2).await {
        assert_eq!((&call.body["recipient"], &call.body["recipient_type"]), (&json!(USER_ID), &json!("individual")));
        assert_eq!(call.body.get("to"), None, "the provider drops a message with a user id in `to`");
    }
    // The number is shown, and contact and ticket stay the same.
    channel.deliver(&app.api, &call_of_sender(&channel, "wamid.2", "my number", Some(MARIA), Some(USER_ID))).await;
    channel.deliver(&app.api, &call_of_sender(&channel, "wamid.3", "by number", Some(MARIA), None)).await;
    channel.deliver(&app.api, &call_of_sender(&channel, "wamid.4", "by id", None, Some(USER_ID))).await;
    let all = messages(&app.api, channel.id).await;
    assert_eq!(all.len(), 6);
    assert!(all.iter().all(|message| message["ticketId"] == first["ticketId"]), "{all:?}");
    let shown = contact(&app.api, &first["contactId"]).await;
    assert_eq!(shown["number"], MARIA);
    let identities = shown["identities"].as_array().expect("identities");
    let known: Vec<_> = identities.iter().map(|identity| (&identity["kind"], &identity["value"])).collect();
    assert_eq!(known, [(&json!("number"), &json!(MARIA)), (&json!("userId"), &json!(USER_ID))]);
    assert_eq!(
        (&identities[1]["channelType"], &identities[1]["scope"]),
        (&json!("whatsapp"), &json!(channel.id.to_string()))
    );
    let body = json!({"channelId": channel.id, "contactId": first["contactId"], "type": "text", "body": "three"});
    app.api.post("/messages", body).await.data(202);
    let call = provider.accepts(&channel.account, 3).await.remove(2);
    assert_eq!((call.to.as_str(), call.body.get("recipient")), (MARIA, None));
    let identified = app.api.get("/events?types=contact.identified").await;
    let [event] = &identified.data(200).as_array().expect("events")[..] else {
        panic!("not exactly one event: {}", identified.body)
    };
    assert_eq!((&event["data"]["number"], &event["previous"]["number"]), (&json!(MARIA), &Value::Null));
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_whose_number_or_id_changes_stays_the_same_and_the_old_one_still_finds_it() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let (new, newer, start) = ("5511900000077", "5511900000078", now_s() - 100);
    let mut hello = call_of_sender(&channel, "wamid.1", "hi", Some(MARIA), Some(USER_ID));
    hello["entry"][0]["changes"][0]["value"]["messages"][0]["timestamp"] = start.to_string().into();
    channel.deliver(&app.api, &hello).await;
    let first = messages(&app.api, channel.id).await.remove(0);
    let changed = |mid: &str, at_s: i64, from: &str, to: &str| {
        let part = json!({"type": "user_changed_number", "wa_id": to, "user_id": NEW_USER_ID,
            "previous_user_id": USER_ID, "body": "changed"});
        system_call(&channel, mid, start + at_s, json!({"from": from}), part)
    };
    // The first change twice, and once more after the second.
    for call in [
        changed("wamid.2", 1, MARIA, new),
        changed("wamid.2", 1, MARIA, new),
        changed("wamid.3", 2, new, newer),
        changed("wamid.2", 1, MARIA, new),
    ] {
        assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    }
    assert_eq!(contact(&app.api, &first["contactId"]).await["number"], newer);
    for (number, user_id) in
        [(Some(newer), None), (Some(new), None), (Some(MARIA), None), (None, Some(USER_ID)), (None, Some(NEW_USER_ID))]
    {
        let mid = format!("wamid.{number:?}{user_id:?}");
        channel.deliver(&app.api, &call_of_sender(&channel, &mid, "it is me", number, user_id)).await;
    }
    let all = messages(&app.api, channel.id).await;
    assert_eq!(all.len(), 6, "a change is stored as a message");
    assert!(all.iter().all(|message| message["ticketId"] == first["ticketId"]), "{all:?}");
    let [ticket] = &tickets(&app.api, channel.id).await[..] else { panic!("not exactly one ticket") };
    assert_eq!(ticket["unreadCount"], 6);
    let shown = contact(&app.api, &first["contactId"]).await;
    let identities = shown["identities"].as_array().expect("identities").iter();
    let mut former: Vec<_> = identities.filter(|one| !one["until"].is_null()).map(|one| one["value"].clone()).collect();
    former.sort_by_key(ToString::to_string);
    assert_eq!(former, [json!(new), json!(MARIA), json!(USER_ID)]);
    // A change of an unknown sender creates nothing.
    let part = json!({"type": "user_changed_number", "wa_id": "5511900000081"});
    channel.deliver(&app.api, &system_call(&channel, "wamid.4", start, json!({"from": "5511900000080"}), part)).await;
    channel
        .deliver(
            &app.api,
            &system_call(
                &channel,
                "wamid.5",
                start,
                json!({"from_user_id": "US.9"}),
                json!({"type": "user_changed_user_id", "previous_user_id": "US.9", "user_id": "US.10"}),
            ),
        )
        .await;
    assert_eq!(listed(&app.api, "/contacts").await.len(), 1);
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn two_contacts_of_one_person_are_suggested_for_a_merge_and_not_merged() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    channel.deliver(&app.api, &call_of_sender(&channel, "wamid.1", "hi", None, Some(USER_ID))).await;
    let hidden = messages(&app.api, channel.id).await.remove(0)["contactId"].clone();
    let numbered = app.api.post("/contacts", json!({"name": "Maria", "number": MARIA})).await.data(201)["id"].clone();
    for mid in ["wamid.2", "wamid.3"] {
        channel.deliver(&app.api, &call_of_sender(&channel, mid, "both", Some(MARIA), Some(USER_ID))).await;
    }
    let all = messages(&app.api, channel.id).await;
    assert!(all.iter().all(|message| message["contactId"] == hidden), "{all:?}");
    for (one, other) in [(&hidden, &numbered), (&numbered, &hidden)] {
        let shown = contact(&app.api, one).await;
        let suggestions = shown["mergeSuggestions"].as_array().expect("suggestions");
        assert_eq!(suggestions.len(), 1);
        assert_eq!((&suggestions[0]["contactId"], &suggestions[0]["value"]), (other, &json!(MARIA)));
    }
    // One of them is deleted, and the suggestion with it.
    assert_eq!(app.api.delete(&format!("/contacts/{numbered}")).await.status, 204);
    assert_eq!(contact(&app.api, &hidden).await["mergeSuggestions"], json!([]));
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_group_is_a_contact_of_its_own_and_answers_go_to_the_group() {
    let app = TestApp::shared().await;
    let provider = Provider::start().await;
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Whatsapp, setup).await;
    let group = "Y2FwaV9ncm91cDox";
    channel.deliver(&app.api, &call_of_sender(&channel, "wamid.1", "private", Some(MARIA), None)).await;
    for (mid, number, user_id) in [("wamid.2", Some(MARIA), None), ("wamid.3", None, Some(USER_ID))] {
        let mut call = call_of_sender(&channel, mid, "to all", number, user_id);
        call["entry"][0]["changes"][0]["value"]["messages"][0]["group_id"] = group.into();
        assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    }
    let all = messages(&app.api, channel.id).await;
    assert_eq!(all[0]["author"], Value::Null);
    assert_eq!(all[1]["author"], json!({"name": "Maria", "number": MARIA, "address": null}));
    assert_eq!(all[2]["author"], json!({"name": "Maria", "number": null, "address": USER_ID}));
    assert_ne!(all[1]["ticketId"], all[0]["ticketId"]);
    assert_eq!(all[1]["ticketId"], all[2]["ticketId"]);
    let shown = contact(&app.api, &all[1]["contactId"]).await;
    assert_eq!((&shown["isGroup"], &shown["number"]), (&json!(true), &Value::Null));
    assert_eq!((&shown["identities"][0]["kind"], &shown["identities"][0]["value"]), (&json!("groupId"), &json!(group)));
    assert_eq!(listed(&app.api, "/contacts").await.len(), 2, "a person who writes in a group became a contact");
    let answer = json!({"ticketId": all[1]["ticketId"], "type": "text", "body": "hello all"});
    app.api.post("/messages", answer).await.data(202);
    let call = provider.accepts(&channel.account, 1).await.remove(0);
    assert_eq!((&call.body["to"], &call.body["recipient_type"]), (&json!(group), &json!("group")));
    eventually("its id is recorded", || async { messages(&app.api, channel.id).await[3]["status"] == "sent" }).await;
    let status = channel.phone_account().status(call.accepted.as_deref().expect("an id"), group, "delivered", now_s());
    assert_eq!(channel.deliver(&app.api, &status).await, all_taken(1));
    // A quote within the group, and the status of the answer.
    let mut quote = call_of_sender(&channel, "wamid.4", "thanks", Some(MARIA), None);
    let message = &mut quote["entry"][0]["changes"][0]["value"]["messages"][0];
    message["group_id"] = group.into();
    message["context"] = json!({"id": call.accepted});
    channel.deliver(&app.api, &quote).await;
    let all = messages(&app.api, channel.id).await;
    assert_eq!((&all[3]["status"], &all[4]["quotedMessageId"]), (&json!("delivered"), &all[3]["id"]));
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}
