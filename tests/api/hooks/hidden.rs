//! A contact who hides their number receives messages by user id, also those of schedules and campaigns, but no
//! one-time codes. Campaigns do not write to groups.

use chrono::TimeDelta;
use hotline_actors::clock;
use hotline_persistence::tables::channels::ChannelType::Whatsapp;
use serde_json::{Value, json};

use super::identities::call_of_sender;
use super::{MARIA, ProviderChannel, Setup, all_taken, messages};
use crate::campaigns::{create_campaign, fast, list, post_verb, wait_for_status};
use crate::schedules::move_clock_to;
use crate::support::{OwnApp, Provider, TestApp, check_events};

const HIDDEN: &str = "US.33491208655302741918";
const GROUP: &str = "Y2FwaV9ncm91cDoy";

async fn create_channel(app: &TestApp, provider: &Provider) -> ProviderChannel {
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    ProviderChannel::create(app, &app.company, Whatsapp, setup).await
}

/// Delivers a message from a person who hides their number, and returns the id of their contact.
async fn hidden_contact(app: &TestApp, channel: &ProviderChannel) -> Value {
    assert_eq!(
        channel.deliver(&app.api, &call_of_sender(channel, "wamid.hidden", "hi", None, Some(HIDDEN))).await,
        all_taken(1)
    );
    messages(&app.api, channel.id).await.remove(0)["contactId"].clone()
}

#[actix_web::test]
async fn one_time_codes_are_not_sent_to_a_contact_who_hides_their_number() {
    let app = TestApp::shared().await;
    let provider = Provider::start().await;
    let channel = create_channel(&app, &provider).await;
    let components = json!([
        {"type": "BODY", "text": "*{{1}}* is your code."},
        {"type": "BUTTONS", "buttons": [{"type": "URL", "text": "Copy code",
            "url": "https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code=otp{{1}}"}]},
    ]);
    let template = |name: &str, category: &str, components: Value| {
        json!({"id": "1", "name": name, "language": "en", "category": category, "status": "APPROVED",
            "components": components})
    };
    let greeting = json!([{"type": "BODY", "text": "Hello"}]);
    let templates = vec![template("code", "AUTHENTICATION", components), template("hello", "UTILITY", greeting)];
    provider.has_templates(&channel.account, templates);
    let contact = hidden_contact(&app, &channel).await;
    let ticket = messages(&app.api, channel.id).await[0]["ticketId"].clone();
    let code = json!({"name": "code", "parameters": {"body": ["123456"], "buttons": ["123456"]}});
    let by_contact = json!({"channelId": channel.id, "contactId": contact, "type": "template", "template": code});
    let by_ticket = json!({"ticketId": ticket, "type": "template", "template": code});
    for body in [by_contact, by_ticket] {
        let refused = app.api.post("/messages", body).await;
        assert_eq!(refused.error(422, "ERR_API_CONTACT_UNREACHABLE")["reason"], "no_number_for_code");
    }
    // Other templates are sent, and so is a code to a number.
    let hello = json!({"name": "hello", "parameters": {}});
    let to_hidden = json!({"channelId": channel.id, "contactId": contact, "type": "template", "template": hello});
    let to_number = json!({"channelId": channel.id, "number": MARIA, "type": "template", "template": code});
    for body in [to_hidden, to_number] {
        app.api.post("/messages", body).await.data(202);
    }
    let calls = provider.accepts(&channel.account, 2).await;
    let sent: Vec<(&Value, &Value)> =
        calls.iter().map(|call| (&call.body["recipient"], &call.body["template"]["name"])).collect();
    assert!(sent.contains(&(&json!(HIDDEN), &json!("hello"))), "{sent:?}");
    // A message to a number has no `recipient`.
    assert!(sent.contains(&(&Value::Null, &json!("code"))), "{sent:?}");
    app.stop().await;
}

#[actix_web::test]
async fn a_schedule_and_a_campaign_write_by_id_to_a_contact_who_hides_their_number() {
    let app = OwnApp::start().await;
    let provider = Provider::start().await;
    let channel = create_channel(&app, &provider).await;
    let contact = hidden_contact(&app, &channel).await;
    let at = clock::now() + TimeDelta::minutes(10);
    let schedule =
        json!({"contactId": contact, "channelId": channel.id, "body": "as agreed", "sendAt": at.to_rfc3339()});
    app.api.post("/schedules", schedule).await.data(201);
    move_clock_to(at);
    let everybody = list(&app.api, &[contact.as_i64().expect("an id")]).await;
    let campaign = create_campaign(&app.api, fast(everybody, channel.id.0, "news")).await;
    post_verb(&app.api, campaign, "start").await;
    let completed = wait_for_status(&app.api, campaign, "completed").await;
    assert_eq!(completed["counts"]["skipped"], 0);
    let calls = provider.accepts(&channel.account, 2).await;
    let mut texts: Vec<&str> = calls.iter().map(|call| call.text()).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["as agreed", "news"]);
    for call in &calls {
        assert_eq!((&call.body["recipient"], call.body.get("to")), (&json!(HIDDEN), None));
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_campaign_skips_groups_and_records_the_reason() {
    let app = TestApp::shared().await;
    let provider = Provider::start().await;
    let channel = create_channel(&app, &provider).await;
    channel.deliver(&app.api, &call_of_sender(&channel, "wamid.1", "private", Some(MARIA), None)).await;
    let mut to_group = call_of_sender(&channel, "wamid.2", "to all", Some(MARIA), None);
    to_group["entry"][0]["changes"][0]["value"]["messages"][0]["group_id"] = GROUP.into();
    assert_eq!(channel.deliver(&app.api, &to_group).await, all_taken(1));
    let all = messages(&app.api, channel.id).await;
    let contacts: Vec<i64> = all.iter().map(|message| message["contactId"].as_i64().expect("an id")).collect();
    let everybody = list(&app.api, &contacts).await;
    let campaign = create_campaign(&app.api, fast(everybody, channel.id.0, "news")).await;
    post_verb(&app.api, campaign, "start").await;
    wait_for_status(&app.api, campaign, "completed").await;
    let skipped = app.api.all(&format!("/campaigns/{campaign}/recipients?status=skipped")).await;
    let [recipient] = &skipped[..] else { panic!("not exactly one is skipped: {skipped:?}") };
    // The second message was sent in the group, which is a contact of its own.
    assert_eq!(recipient["contact"]["id"], contacts[1]);
    assert_eq!(recipient["error"]["code"], "ERR_GROUP");
    assert_eq!(recipient["messageId"], Value::Null);
    let calls = provider.accepts(&channel.account, 1).await;
    assert_eq!(calls.iter().map(|call| call.to.as_str()).collect::<Vec<_>>(), [MARIA]);
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}
