//! News of an account: a template's new state counts at once, and a channel that can no longer send says so.

use std::sync::Arc;

use chrono::{SecondsFormat, TimeDelta};
use hotline_actors::clock;
use hotline_persistence::tables::channels::ChannelType::Whatsapp;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{ProviderChannel, Setup, Tally, all_taken};
use crate::campaigns::{contacts, create_campaign, list, post_verb, wait_for_status};
use crate::events::{after, newest};
use crate::support::provider::Answer;
use crate::support::{OwnApp, Provider, Reply, eventually};

async fn connected_channel(app: &OwnApp, provider: &Provider) -> ProviderChannel {
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    ProviderChannel::create(app, &app.company, Whatsapp, setup).await
}

fn template(name: &str, status: &str) -> Value {
    let components = json!([{"type": "BODY", "text": "Hi"}]);
    json!({"id": "1", "name": name, "language": "en", "category": "MARKETING", "status": status, "components": components})
}

/// The names of the channel's approved templates.
async fn approved(app: &OwnApp, channel: &ProviderChannel) -> Vec<Value> {
    let reply = app.api.get(&format!("/channels/{}/templates", channel.id)).await;
    let templates = reply.data(200).as_array().expect("a list").clone();
    templates
        .into_iter()
        .filter(|template| template["status"] == "APPROVED")
        .map(|shown| shown["name"].clone())
        .collect()
}

async fn send(app: &OwnApp, channel: &ProviderChannel, name: &str) -> Reply {
    let template = json!({"name": name, "parameters": {}});
    let body = json!({"channelId": channel.id, "number": "5511900000001", "type": "template", "template": template});
    app.api.post("/messages", body).await
}

#[actix_web::test]
async fn a_template_that_the_provider_has_paused_is_refused_at_once() {
    let app = OwnApp::start().await;
    let provider = Provider::start().await;
    let channel = connected_channel(&app, &provider).await;
    let phone = channel.phone_account();
    provider.has_templates(&channel.account, vec![template("promo", "APPROVED"), template("fresh", "PENDING")]);
    assert_eq!(approved(&app, &channel).await, ["promo"]);
    send(&app, &channel, "promo").await.data(202);
    provider.has_templates(&channel.account, vec![template("promo", "PAUSED"), template("fresh", "APPROVED")]);
    assert_eq!(approved(&app, &channel).await, ["promo"], "nothing was reported yet");

    let news = json!({"event": "PAUSED", "message_template_id": 1, "message_template_name": "promo",
        "message_template_language": "en", "reason": "LOW_QUALITY"});
    let paused = phone.call_body_of("message_template_status_update", news);
    assert_eq!(channel.deliver(&app.api, &paused).await, all_taken(1));
    send(&app, &channel, "promo").await.error(422, "ERR_API_VALIDATION");
    assert_eq!(approved(&app, &channel).await, ["fresh"]);
    send(&app, &channel, "fresh").await.data(202);
    let fields = ["message_template_quality_update", "template_category_update", "message_template_components_update"];
    for field in fields {
        let reads = provider.template_reads(&channel.account);
        assert_eq!(channel.deliver(&app.api, &phone.call_body_of(field, json!({}))).await, all_taken(1));
        approved(&app, &channel).await;
        assert_eq!(provider.template_reads(&channel.account), reads + 1, "{field}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_channel_whose_account_was_disabled_says_so_once() {
    let app = OwnApp::start().await;
    let provider = Provider::start().await;
    let channel = connected_channel(&app, &provider).await;
    let phone = channel.phone_account();
    let begin = newest(&app.api).await;
    let shown = || async { app.api.get(&format!("/channels/{}", channel.id)).await.data(200).clone() };
    for other in [json!({"event": "VERIFIED_ACCOUNT"}), json!({})] {
        let tally = channel.deliver(&app.api, &phone.call_body_of("account_update", other)).await;
        assert_eq!(tally, Tally { ignored: 1, ..Tally::default() });
    }
    assert_eq!(shown().await["status"], "connected");
    let disabled = json!({"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "DISABLE"}});
    let disabled = phone.call_body_of("account_update", disabled);
    for _ in 0..2 {
        assert_eq!(channel.deliver(&app.api, &disabled).await, all_taken(1));
        let shown = shown().await;
        assert_eq!(shown["status"], "error");
        assert_eq!(shown["lastError"], "the provider has disabled the account");
    }
    let events = after(&app.api, begin).await;
    assert_eq!(events.iter().filter(|event| event["type"] == "channel.error").count(), 1);
    // The account is enabled again.
    let enabled = json!({"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "REINSTATE"}});
    assert_eq!(channel.deliver(&app.api, &phone.call_body_of("account_update", enabled)).await, all_taken(1));
    let shown = shown().await;
    assert_eq!((&shown["status"], &shown["lastError"]), (&json!("connected"), &Value::Null));
    let last = after(&app.api, begin).await.pop().expect("an event");
    assert_eq!((&last["type"], &last["data"]), (&json!("channel.connected"), &shown));
    app.stop().await;
}

#[actix_web::test]
async fn an_alert_of_the_provider_is_the_channels_last_error() {
    let app = OwnApp::start().await;
    let provider = Provider::start().await;
    let channel = connected_channel(&app, &provider).await;
    let phone = channel.phone_account();
    let begin = newest(&app.api).await;
    let shown = || async { app.api.get(&format!("/channels/{}", channel.id)).await.data(200).clone() };
    let news = [
        ("account_alerts", json!({"alert_severity": "CRITICAL", "alert_description": "Verify the business."})),
        ("account_alerts", json!({"alert_severity": "CRITICAL", "alert_description": "Verify the business."})),
        ("account_update", json!({"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "SCHEDULE_FOR_DISABLE"}})),
        (
            "account_update",
            json!({"event": "ACCOUNT_RESTRICTION", "restriction_info": [
                {"restriction_type": "RESTRICTED_BIZ_INITIATED_MESSAGING"},
                {"restriction_type": "RESTRICTED_ADD_PHONE_NUMBER_ACTION"},
                {"restriction_type": "RESTRICTED_BIZ_INITIATED_MESSAGING"},
            ]}),
        ),
    ];
    for (field, value) in news {
        assert_eq!(channel.deliver(&app.api, &phone.call_body_of(field, value)).await, all_taken(1));
    }
    let informational = json!({"alert_severity": "INFORMATIONAL", "alert_type": "OBA_APPROVED"});
    let tally = channel.deliver(&app.api, &phone.call_body_of("account_alerts", informational)).await;
    assert_eq!(tally, Tally { ignored: 1, ..Tally::default() });
    let errors: Vec<Value> = after(&app.api, begin)
        .await
        .into_iter()
        .filter(|event| event["type"] == "channel.error")
        .map(|event| json!([event["previous"]["lastError"], event["data"]["lastError"], event["data"]["status"]]))
        .collect();
    let [first, second, third] = [
        "the provider warns: Verify the business.",
        "the provider is going to disable the account",
        "the provider has restricted the account: RESTRICTED_BIZ_INITIATED_MESSAGING, RESTRICTED_ADD_PHONE_NUMBER_ACTION",
    ];
    let expected =
        [json!([null, first, "connected"]), json!([first, second, "connected"]), json!([second, third, "connected"])];
    assert_eq!(errors, expected);
    assert_eq!(shown().await["lastError"], third);
    // The channel sends as before.
    provider.has_templates(&channel.account, vec![template("promo", "APPROVED")]);
    send(&app, &channel, "promo").await.data(202);
    provider.accepts(&channel.account, 1).await;
    app.stop().await;
}

#[actix_web::test]
async fn the_quality_and_the_limit_of_a_number_are_shown() {
    let app = OwnApp::start().await;
    let provider = Provider::start().await;
    let channel = connected_channel(&app, &provider).await;
    let phone = channel.phone_account();
    let shown = || async {
        let shown = app.api.get(&format!("/channels/{}", channel.id)).await.data(200).clone();
        json!([shown["quality"], shown["messagingLimit"], shown["status"]])
    };
    assert_eq!(shown().await, json!([null, null, "connected"]));
    let number = "+1 555-078-3881";
    for (event, limit, expected) in [
        ("FLAGGED", "TIER_1K", json!(["low", "TIER_1K", "connected"])),
        ("DOWNGRADE", "TIER_250", json!(["low", "TIER_250", "connected"])),
        ("UNFLAGGED", "TIER_250", json!(["normal", "TIER_250", "connected"])),
    ] {
        let news = json!({"display_phone_number": number, "event": event, "current_limit": limit});
        let tally = channel.deliver(&app.api, &phone.call_body_of("phone_number_quality_update", news)).await;
        assert_eq!((tally, shown().await), (all_taken(1), expected));
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_campaign_whose_template_the_provider_pauses_is_paused_with_the_reason() {
    let app = OwnApp::start().await;
    let (api, provider) = (&app.api, Provider::start().await);
    let channel = connected_channel(&app, &provider).await;
    let phone = channel.phone_account();
    provider.has_templates(&channel.account, vec![template("promo", "APPROVED"), template("other", "APPROVED")]);
    let everybody = list(api, &contacts(&app, 30).await).await;
    let mut campaigns = Vec::new();
    for name in ["promo", "other"] {
        let body = json!({"name": name, "contactListId": everybody, "channelId": channel.id, "ratePerMinute": 1,
            "template": {"name": name, "parameters": {}}, "scheduledAt": "2099-01-31T12:00:00Z"});
        let campaign = create_campaign(api, body).await;
        post_verb(api, campaign, "start").await;
        campaigns.push(campaign);
    }
    let begin = newest(api).await;
    let news = |name: &str, event: &str| {
        let value = json!({"event": event, "message_template_name": name, "message_template_language": "en",
            "reason": "LOW_QUALITY"});
        phone.call_body_of("message_template_status_update", value)
    };
    // The first is no reason to pause, the second names a template that no campaign sends, the third pauses.
    for (name, event) in [("promo", "FLAGGED"), ("another", "PAUSED"), ("promo", "PAUSED")] {
        assert_eq!(channel.deliver(api, &news(name, event)).await, all_taken(1));
    }
    let paused = wait_for_status(api, campaigns[0], "paused").await;
    assert_eq!(paused["pausedReason"], "template_paused");
    let other = wait_for_status(api, campaigns[1], "processing").await;
    assert_eq!(other["pausedReason"], Value::Null);
    let events = after(api, begin).await;
    let changed: Vec<&Value> = events.iter().filter(|event| event["type"] == "channel.template_changed").collect();
    assert_eq!(changed.len(), 3);
    let expected = json!({"name": "promo", "language": "en", "status": "PAUSED", "category": null, "quality": null,
        "reason": "LOW_QUALITY"});
    assert_eq!((&changed[2]["data"]["template"], &changed[2]["data"]["id"]), (&expected, &json!(channel.id)));
    assert_eq!(changed[2]["by"]["type"], "system");
    let pauses: Vec<&Value> = events.iter().filter(|event| event["type"] == "campaign.paused").collect();
    assert_eq!(pauses.len(), 1);
    let data = &pauses[0]["data"];
    assert_eq!((&data["id"], &data["pausedReason"]), (&paused["id"], &paused["pausedReason"]));
    assert_eq!(pauses[0]["by"]["type"], "system");
    assert_eq!(pauses[0]["previous"], json!({"status": "processing", "pausedReason": null}));
    // Resumed and paused by a request, the campaign has no reason.
    assert_eq!(post_verb(api, campaigns[0], "resume").await["pausedReason"], Value::Null);
    assert_eq!(post_verb(api, campaigns[0], "pause").await["pausedReason"], Value::Null);
    let last = after(api, begin).await;
    let resumed = last.iter().find(|event| event["type"] == "campaign.resumed").expect("an event");
    assert_eq!(resumed["previous"], json!({"status": "paused", "pausedReason": "template_paused"}));
    for campaign in campaigns {
        post_verb(api, campaign, "cancel").await;
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_campaign_does_not_start_with_a_template_that_is_paused_and_is_paused_at_its_first_refusal() {
    let app = OwnApp::start().await;
    let (api, provider) = (&app.api, Provider::start().await);
    let channel = connected_channel(&app, &provider).await;
    let phone = channel.phone_account();
    provider.has_templates(&channel.account, vec![template("promo", "APPROVED")]);
    let everybody = list(api, &contacts(&app, 30).await).await;
    let body = json!({"name": "promo", "contactListId": everybody, "channelId": channel.id, "ratePerMinute": 600,
        "template": {"name": "promo", "parameters": {}}, "scheduledAt": "2099-01-31T12:00:00Z"});
    let campaign = create_campaign(api, body).await;
    let news = json!({"event": "PAUSED", "message_template_name": "promo", "message_template_language": "en"});
    let news = phone.call_body_of("message_template_status_update", news);
    provider.has_templates(&channel.account, vec![template("promo", "PAUSED")]);
    assert_eq!(channel.deliver(api, &news).await, all_taken(1));
    let start = api.post(&format!("/campaigns/{campaign}/start"), json!({})).await;
    assert_eq!(start.invalid_fields(), ["template.name"]);
    wait_for_status(api, campaign, "scheduled").await;

    // The provider's list still shows the template as approved.
    provider.has_templates(&channel.account, vec![template("promo", "APPROVED")]);
    assert_eq!(channel.deliver(api, &news).await, all_taken(1));
    provider.always(&channel.account, Answer::refuse(400, 132_015, "(#132015) Template is Paused"));
    let begin = newest(api).await;
    post_verb(api, campaign, "start").await;
    let paused = wait_for_status(api, campaign, "paused").await;
    assert_eq!(paused["pausedReason"], "template_paused");
    assert!(paused["counts"]["pending"].as_i64().is_some_and(|pending| pending > 0), "{paused}");
    let events = after(api, begin).await;
    let pause = events.iter().find(|event| event["type"] == "campaign.paused").expect("an event");
    assert_eq!(pause["by"]["type"], "system");
    // A resume while the template is paused is refused in the same way.
    provider.has_templates(&channel.account, vec![template("promo", "PAUSED")]);
    assert_eq!(channel.deliver(api, &news).await, all_taken(1));
    let resume = api.post(&format!("/campaigns/{campaign}/resume"), json!({})).await;
    assert_eq!(resume.invalid_fields(), ["template.name"]);
    provider.has_templates(&channel.account, vec![template("promo", "APPROVED")]);
    provider.always(&channel.account, Answer::Accept);
    assert_eq!(channel.deliver(api, &news).await, all_taken(1));
    post_verb(api, campaign, "resume").await;
    wait_for_status(api, campaign, "completed").await;
    app.stop().await;
}

/// The number of recipients of [`create_to_all_at_once`]: fewer than a campaign may have in transit at its rate.
const RECIPIENTS: usize = 20;

/// Creates a campaign that sends the template `promo` to all its recipients at once.
async fn create_to_all_at_once(app: &OwnApp, provider: &Provider, channel: &ProviderChannel) -> i64 {
    provider.has_templates(&channel.account, vec![template("promo", "APPROVED")]);
    let everybody = list(&app.api, &contacts(app, RECIPIENTS as i64).await).await;
    let body = json!({"name": "promo", "contactListId": everybody, "channelId": channel.id, "ratePerMinute": 6000,
        "template": {"name": "promo", "parameters": {}}, "scheduledAt": "2099-01-31T12:00:00Z"});
    create_campaign(&app.api, body).await
}

#[actix_web::test]
async fn a_campaign_with_nobody_left_to_write_to_is_not_paused_at_a_refusal_of_its_template() {
    let app = OwnApp::start().await;
    let (api, provider) = (&app.api, Provider::start().await);
    let channel = connected_channel(&app, &provider).await;
    let campaign = create_to_all_at_once(&app, &provider, &channel).await;
    let tasks = Arc::new(Mutex::new(Vec::new()));
    for task in ["campaign_updated", "campaign_read"] {
        let tasks = tasks.clone();
        fail::cfg_callback(task, move || tasks.lock().push(task)).expect("failpoint");
    }
    // The last call is refused while all others wait for their answers: every recipient has a message by then.
    provider.next(&channel.account, vec![Answer::Accept.held(); RECIPIENTS - 1]);
    let refusal = Answer::refuse(400, 132_001, "(#132001) Template name does not exist in the translation");
    provider.always(&channel.account, refusal);
    post_verb(api, campaign, "start").await;
    // The campaign is read again after the attempt to pause it.
    let has_tried = || async {
        let tasks = tasks.lock();
        tasks.iter().skip_while(|task| **task != "campaign_updated").any(|task| *task == "campaign_read")
    };
    eventually("the refusal is handled", has_tried).await;
    provider.release();
    let completed = wait_for_status(api, campaign, "completed").await;
    assert_eq!(completed["counts"]["sent"], RECIPIENTS - 1, "{completed}");
    assert_eq!((&completed["counts"]["failed"], &completed["pausedReason"]), (&json!(1), &Value::Null));
    fail::remove("campaign_updated");
    fail::remove("campaign_read");
    app.stop().await;
}

#[actix_web::test]
async fn a_campaign_with_nobody_left_to_write_to_is_not_paused_with_its_template() {
    let app = OwnApp::start().await;
    let (api, provider) = (&app.api, Provider::start().await);
    let channel = connected_channel(&app, &provider).await;
    let campaign = create_to_all_at_once(&app, &provider, &channel).await;
    provider.always(&channel.account, Answer::Accept.held());
    post_verb(api, campaign, "start").await;
    provider.called_times(&channel.account, RECIPIENTS).await;
    let news = json!({"event": "PAUSED", "message_template_name": "promo", "message_template_language": "en"});
    let news = channel.phone_account().call_body_of("message_template_status_update", news);
    assert_eq!(channel.deliver(api, &news).await, all_taken(1));
    provider.release();
    let completed = wait_for_status(api, campaign, "completed").await;
    assert_eq!(completed["counts"]["sent"], RECIPIENTS, "{completed}");
    app.stop().await;
}

#[actix_web::test]
async fn a_campaign_that_starts_by_itself_is_paused_before_its_first_message_if_its_template_is() {
    let app = OwnApp::start().await;
    let (api, provider) = (&app.api, Provider::start().await);
    let channel = connected_channel(&app, &provider).await;
    let phone = channel.phone_account();
    let names = ["promo", "gone", "fine"];
    provider.has_templates(&channel.account, names.map(|name| template(name, "APPROVED")).to_vec());
    let everybody = list(api, &contacts(&app, 1).await).await;
    let at = clock::now() + TimeDelta::minutes(10);
    let mut campaigns = Vec::new();
    for name in names {
        let body = json!({"name": name, "contactListId": everybody, "channelId": channel.id, "ratePerMinute": 600,
            "template": {"name": name, "parameters": {}},
            "scheduledAt": at.to_rfc3339_opts(SecondsFormat::Millis, true)});
        campaigns.push(create_campaign(api, body).await);
    }
    provider.has_templates(&channel.account, vec![template("promo", "PAUSED"), template("fine", "APPROVED")]);
    let news = json!({"event": "PAUSED", "message_template_name": "promo", "message_template_language": "en"});
    let news = phone.call_body_of("message_template_status_update", news);
    assert_eq!(channel.deliver(api, &news).await, all_taken(1));
    clock::stop();
    clock::advance((at - clock::now()).to_std().expect("a future time"));
    for (campaign, reason) in [(campaigns[0], "template_paused"), (campaigns[1], "template_deleted")] {
        let paused = wait_for_status(api, campaign, "paused").await;
        assert_eq!((&paused["pausedReason"], &paused["counts"]["pending"]), (&json!(reason), &json!(1)));
    }
    wait_for_status(api, campaigns[2], "completed").await;
    let sent: Vec<Value> =
        provider.calls(&channel.account).iter().map(|call| call.body["template"]["name"].clone()).collect();
    assert_eq!(sent, ["fine"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_campaign_is_not_paused_if_its_template_is_beyond_the_number_of_those_that_are_read() {
    /// How many templates are read: 24 pages, and this provider has two on a page.
    const READ_MAX: usize = 48;
    let app = OwnApp::start().await;
    let (api, provider) = (&app.api, Provider::start().await);
    let channel = connected_channel(&app, &provider).await;
    let phone = channel.phone_account();
    provider.has_templates(&channel.account, vec![template("promo", "APPROVED")]);
    let everybody = list(api, &contacts(&app, 1).await).await;
    let at = clock::now() + TimeDelta::minutes(10);
    let body = json!({"name": "promo", "contactListId": everybody, "channelId": channel.id, "ratePerMinute": 600,
        "template": {"name": "promo", "parameters": {}},
        "scheduledAt": at.to_rfc3339_opts(SecondsFormat::Millis, true)});
    let campaign = create_campaign(api, body).await;
    let others = (0..READ_MAX).map(|number| template(&format!("other_{number}"), "APPROVED"));
    provider.has_templates(&channel.account, others.chain([template("promo", "APPROVED")]).collect());
    let news = json!({"event": "APPROVED", "message_template_name": "other_0", "message_template_language": "en"});
    let news = phone.call_body_of("message_template_status_update", news);
    assert_eq!(channel.deliver(api, &news).await, all_taken(1));
    assert_eq!(approved(&app, &channel).await.len(), READ_MAX, "one is beyond the limit");
    clock::stop();
    clock::advance((at - clock::now()).to_std().expect("a future time"));
    wait_for_status(api, campaign, "completed").await;
    app.stop().await;
}
