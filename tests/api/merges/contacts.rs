//! What a contact has after another was merged into it, and when two are not merged.

use hotline_persistence::tables::channels::ChannelType::Whatsapp;
use reqwest::Method;
use serde_json::{Value, json};

use super::{assert_is_gone, create_contact, deliver_text, merge, shown, texts};
use crate::hooks::{ProviderChannel, Setup};
use crate::steps::{NOBODY, history, id, listed, sent, ticket};
use crate::support::provider::Provider;
use crate::support::{Reply, TestApp, check_events, check_plain_events};

const ANA: &str = "5511900000001";
const OTHER: &str = "5511900000002";

#[actix_web::test]
async fn a_merge_keeps_fields_that_are_set_and_fills_missing_ones() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let tag = async |name: &str| id(api.post("/tags", json!({"name": name})).await.data(201));
    let (vip, new) = (tag("VIP").await, tag("New").await);
    for name in ["Size", "Plan"] {
        let body = json!({"name": name, "application": "contact", "type": "text"});
        api.post("/custom-fields", body).await.data(201);
    }
    let body = json!({"name": "Ana", "number": ANA, "email": "ana@example.com", "tagIds": [vip],
        "customFields": [{"key": "size", "value": "40"}]});
    let into = create_contact(api, body).await;
    let body = json!({"name": "Ana Lima", "number": OTHER, "email": "lima@example.com", "code": "C-1",
        "tagIds": [vip, new], "marketingOptOut": true,
        "customFields": [{"key": "size", "value": "42"}, {"key": "plan", "value": "gold"}]});
    let from = create_contact(api, body).await;
    let before = shown(api, into).await;
    let merged = merge(api, into, from).await;
    let merged = merged.data(200).clone();
    assert_eq!(merged, shown(api, into).await);
    for (field, value) in [
        ("name", json!("Ana")),
        ("number", json!(ANA)),
        ("email", json!("ana@example.com")),
        ("code", json!("C-1")),
        ("marketingOptOut", json!(true)),
    ] {
        assert_eq!(merged[field], value, "{field}");
    }
    let values_of = |list: &str, field: &str| -> Vec<Value> {
        merged[list].as_array().expect("a list").iter().map(|row| row[field].clone()).collect()
    };
    assert_eq!(values_of("tags", "id"), [json!(vip), json!(new)]);
    assert_eq!(values_of("customFields", "value"), [json!("40"), json!("gold")]);
    // The other contact's number still finds the contact.
    assert_eq!(values_of("identities", "value"), [json!(ANA), json!(OTHER)]);
    assert!(!merged["identities"][1]["until"].is_null() && merged["identities"][0]["until"].is_null());
    assert_eq!(listed(api, &format!("/contacts?number={OTHER}")).await, [into]);
    assert_eq!(listed(api, "/contacts").await, [into]);
    assert_is_gone(&app, from, into).await;

    let events = api.get("/events?types=contact.merged,contact.updated,contact.deleted,contact.tagged").await;
    let [event] = &events.data(200).as_array().expect("events")[..] else { panic!("not one event: {}", events.body) };
    let mut data = event["data"].clone();
    assert_eq!(data.as_object_mut().expect("a contact").remove("mergedFrom"), Some(json!(from)));
    assert_eq!((data, &event["previous"]["code"]), (merged, &Value::Null));
    assert_eq!(event["previous"]["tags"], before["tags"]);
    assert_eq!(event["by"]["type"], "integration");
    check_plain_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_without_number_or_name_gets_those_of_the_other() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let into = create_contact(api, json!({"name": "Visitor"})).await;
    let from = create_contact(api, json!({"name": "Ana", "number": ANA})).await;
    let merged = merge(api, into, from).await;
    let merged = merged.data(200);
    assert_eq!(
        (&merged["name"], &merged["number"], &merged["numberCountry"]),
        (&json!("Ana"), &json!(ANA), &json!("BR"))
    );
    assert_eq!(merged["identities"].as_array().map(Vec::len), Some(1));
    // The number can be written to, and finds the conversation.
    let body = json!({"channelId": app.company.phone, "number": ANA, "type": "text", "body": "hello"});
    assert_eq!(sent(api, body).await["contactId"], into);
    app.stop().await;
}

#[actix_web::test]
async fn of_two_open_tickets_the_older_stays_with_the_messages_of_both() {
    let app = TestApp::shared().await;
    let provider = Provider::start().await;
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Whatsapp, setup).await;
    let api = &app.api;
    // The older ticket belongs to the contact that is merged into the other.
    for (number, body) in [(OTHER, "one"), (ANA, "two"), (OTHER, "three")] {
        deliver_text(api, &channel, number, body).await;
    }
    let found = async |number: &str| listed(api, &format!("/contacts?number={number}")).await[0];
    let (into, from) = (found(ANA).await, found(OTHER).await);
    let tickets_of = async |contact: i64| listed(api, &format!("/tickets?contactId={contact}")).await;
    let (goes, stays) = (tickets_of(into).await[0], tickets_of(from).await[0]);
    let queue = json!({"queueId": app.company.support, "userId": app.company.ana});
    api.post(&format!("/tickets/{goes}/transfer"), queue).await.data(200);
    merge(api, into, from).await.data(200);
    assert_eq!(tickets_of(into).await, [stays]);
    assert_eq!(texts(api, stays).await, ["one", "two", "three"]);
    let merged = ticket(api, stays).await;
    assert_eq!((&merged["contact"]["id"], &merged["status"]), (&json!(into), &json!("open")));
    assert_eq!((&merged["unreadCount"], &merged["lastMessage"]["body"]), (&json!(3), &json!("three")));
    assert_eq!(merged["assignedTo"]["id"], json!(app.company.ana));
    let kinds: Vec<String> = history(api, stays).await.into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(kinds, ["opened", "opened", "transferred", "merged"]);
    for path in ["", "/messages", "/events"] {
        let reply = api.get(&format!("/tickets/{goes}{path}")).await;
        assert_eq!(reply.error(404, "ERR_API_NOT_FOUND"), &json!({"mergedInto": stays}), "{path}");
    }
    let body = json!({"ticketId": goes, "type": "text", "body": "x"});
    assert_eq!(api.post("/messages", body).await.error(404, "ERR_API_NOT_FOUND"), &json!({"mergedInto": stays}));
    let events = api.get("/events?types=ticket.merged").await;
    let [event] = &events.data(200).as_array().expect("events")[..] else { panic!("not one event: {}", events.body) };
    assert_eq!((&event["data"]["id"], &event["data"]["mergedFrom"]), (&json!(stays), &json!(goes)));
    assert_eq!(event["previous"]["unreadCount"], 2);
    // Messages from either number, and messages to the contact, are in the ticket that stays.
    deliver_text(api, &channel, OTHER, "four").await;
    deliver_text(api, &channel, ANA, "five").await;
    let body = json!({"channelId": channel.id, "contactId": into, "type": "text", "body": "six"});
    assert_eq!(sent(api, body).await["ticketId"], stays);
    assert_eq!(texts(api, stays).await[3..], ["four", "five", "six"]);
    assert_eq!(provider.accepts(&channel.account, 1).await[0].to, ANA);
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_merge_moves_the_suggestions_of_the_merged_contact() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let make = async |name: &str| create_contact(api, json!({"name": name})).await;
    let (into, from, third) = (make("A").await, make("B").await, make("C").await);
    for (one, other) in [(into, from), (from, into), (from, third), (third, from)] {
        let insert = "insert into contact_merge_suggestions (company_id, contact_id, other_id, kind, value)
            values ($1, $2, $3, 'number', '5511900000009')";
        let insert = sqlx::query(insert).bind(app.company.id).bind(one).bind(other);
        insert.execute(&app.db).await.expect("a suggestion");
    }
    merge(api, into, from).await.data(200);
    for (one, other) in [(into, third), (third, into)] {
        let suggestions = shown(api, one).await["mergeSuggestions"].clone();
        assert_eq!(suggestions.as_array().map(Vec::len), Some(1), "{suggestions}");
        assert_eq!(suggestions[0]["contactId"], other);
    }
    merge(api, third, into).await.data(200);
    assert_eq!(shown(api, third).await["mergeSuggestions"], json!([]));
    // The id of the contact that was merged first is answered with that of the last one.
    let details = api.get(&format!("/contacts/{from}")).await;
    assert_eq!(details.error(404, "ERR_API_NOT_FOUND"), &json!({"mergedInto": third}));
    app.stop().await;
}

#[actix_web::test]
async fn contacts_that_cannot_be_one_person_are_not_merged() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let ana = create_contact(api, json!({"name": "Ana", "number": ANA})).await;
    let group = create_contact(api, json!({"name": "Friends", "isGroup": true})).await;
    let ((_, one), (_, other)) = (app.session("one").await, app.session("other").await);
    let reply = merge(api, ana, ana).await;
    assert_eq!(reply.invalid_fields(), ["fromContactId"]);
    for (into, from) in [(ana, NOBODY), (NOBODY, ana)] {
        let reply = merge(api, into, from).await;
        assert_eq!(reply.error(404, "ERR_API_NOT_FOUND"), &Value::Null);
    }
    for (into, from, reason) in [(ana, group, "group"), (one.0, other.0, "two_external_ids")] {
        let reply = merge(api, into, from).await;
        let details = reply.error(409, "ERR_API_CONFLICT");
        assert_eq!((&details["reason"], &details["id"]), (&json!(reason), &json!(from)));
    }
    let (_, neighbour) = app.another_company().await;
    let theirs = create_contact(&neighbour, json!({"name": "Theirs"})).await;
    for (api, into, from) in [(api, ana, theirs), (&neighbour, theirs, ana), (&neighbour, ana, group)] {
        merge(api, into, from).await.error(404, "ERR_API_NOT_FOUND");
    }
    // None of them has changed, and requests for them are served.
    let body = json!({"channelId": app.company.phone, "contactId": ana, "type": "text", "body": "hello"});
    assert_eq!(sent(api, body).await["contactId"], ana);
    assert_eq!(api.get("/events?types=contact.merged").await.data(200), &json!([]));
    app.stop().await;
}

#[actix_web::test]
async fn a_merge_happens_once_and_only_if_its_precondition_holds() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let into = create_contact(api, json!({"name": "Ana", "number": ANA})).await;
    let from = create_contact(api, json!({"name": "Ana", "number": OTHER})).await;
    let (path, body) = (format!("/contacts/{into}/merge"), json!({"fromContactId": from}));
    let shown = api.get(&format!("/contacts/{into}")).await;
    let etag = shown.headers["etag"].to_str().expect("text").to_owned();
    let request_if_match = |tag: &str| api.request(Method::POST, &path).header("if-match", tag.to_owned()).json(&body);
    let refused = Reply::of(request_if_match("\"2020-01-01T00:00:00.000Z\"")).await;
    refused.error(412, "ERR_API_PRECONDITION_FAILED");
    let keyed = || request_if_match(&etag).header("idempotency-key", "merge-once");
    let first = Reply::of(keyed()).await;
    let again = Reply::of(keyed()).await;
    assert_eq!((first.data(200), again.is_replay()), (again.data(200), true));
    assert_eq!(merge(api, into, from).await.error(404, "ERR_API_NOT_FOUND"), &json!({"mergedInto": into}));
    app.stop().await;
}
