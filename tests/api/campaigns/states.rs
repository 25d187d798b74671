//! The states of a campaign, and what each allows.

use std::time::Duration;

use futures_util::future::join;
use hotline_actors::clock;
use reqwest::Method;
use serde_json::{Value, json};

use super::{contacts, counts, create_campaign, fast, list, post_verb, recipients, shown, text, wait_for_status};
use crate::plain::deleted;
use crate::steps::{close, id};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Reply, TestApp, eventually, until_blocked};

/// A campaign with this status. A completed one has an empty list; the others are for one contact, on a channel that is
/// not connected.
async fn campaign_with_status(app: &TestApp, status: &str) -> i64 {
    let api = &app.api;
    let contacts = if status == "completed" { Vec::new() } else { vec![app.contact("5511900000001").await.0] };
    let list = list(api, &contacts).await;
    let campaign = create_campaign(api, text(list, app.company.phone.0, "hello")).await;
    let verbs: &[&str] = match status {
        "scheduled" => &[],
        "processing" | "completed" => &["start"],
        "paused" => &["start", "pause"],
        _ => &["start", "cancel"],
    };
    for verb in verbs {
        post_verb(api, campaign, verb).await;
    }
    wait_for_status(api, campaign, status).await;
    if status == "canceled" {
        // The waiting message is withdrawn.
        let is_settled = || async { shown(api, campaign).await["counts"]["pending"] == 0 };
        eventually("no recipient is pending", is_settled).await;
    }
    campaign
}

/// Asserts that a canceled campaign ends although its message waits for the channel behind `others` messages and the
/// message of another campaign.
async fn cancel_behind_others(app: &TestApp, others: usize) {
    let (api, channel) = (&app.api, app.company.phone.0);
    let contact = app.contact("5511900000001").await.0;
    let to_contact = text(list(api, &[contact]).await, channel, "hello");
    for _ in 0..others {
        let message = json!({"channelId": channel, "contactId": contact, "type": "text", "body": "other"});
        api.post("/messages", message).await.data(202);
    }
    let [other, canceled] = [create_campaign(api, to_contact.clone()).await, create_campaign(api, to_contact).await];
    let is_queued = async |count: usize| api.all("/messages?status=queued").await.len() == count;
    for (campaign, count) in [(other, others + 1), (canceled, others + 2)] {
        post_verb(api, campaign, "start").await;
        eventually("its message is queued", || is_queued(count)).await;
    }
    post_verb(api, canceled, "cancel").await;
    eventually("no recipient is pending", || async { shown(api, canceled).await["counts"]["pending"] == 0 }).await;
    let error = &recipients(api, canceled).await[0]["error"];
    assert_eq!(error["code"], "ERR_CAMPAIGN_CANCELED");
    assert!(is_queued(others + 1).await, "not only its own message was withdrawn");
    assert_eq!(shown(api, other).await["status"], "processing");
    assert_eq!(api.delete(&format!("/campaigns/{canceled}")).await.status, 204);
}

#[actix_web::test]
async fn a_canceled_campaign_ends_although_its_message_waits_behind_others() {
    let app = TestApp::shared().await;
    cancel_behind_others(&app, 2).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_canceled_campaign_ends_although_its_message_is_only_in_the_tables() {
    let mut options = TestOptions::default();
    options.engine.sending.memory_messages_max = 4;
    let app = OwnApp::start_with(options).await;
    cancel_behind_others(&app, 6).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_canceled_campaign_ends_although_the_contact_of_its_message_was_deleted() {
    let mut options = TestOptions::default();
    options.engine.sending.memory_messages_max = 4;
    let app = OwnApp::start_with(options).await;
    let (api, channel) = (&app.api, app.company.phone.0);
    let [other, contact] = [app.contact("5511900000001").await.0, app.contact("5511900000002").await.0];
    for _ in 0..6 {
        let body = json!({"channelId": channel, "contactId": other, "type": "text", "body": "other"});
        api.post("/messages", body).await.data(202);
    }
    let campaign = create_campaign(api, text(list(api, &[contact]).await, channel, "hello")).await;
    post_verb(api, campaign, "start").await;
    // Its message is only in the tables, so the sender does not learn that it is deleted.
    let is_queued = || async { api.all("/messages?status=queued").await.len() == 7 };
    eventually("its message waits behind the others", is_queued).await;
    let tickets = api.all("/tickets?status=open").await;
    let ticket = tickets.iter().find(|ticket| ticket["contact"]["id"] == contact).expect("the contact's ticket");
    close(api, id(ticket)).await;
    deleted(api, &format!("/contacts/{contact}")).await;
    post_verb(api, campaign, "cancel").await;
    let has_retired = || async {
        // Messages that have been in transit for a while are looked up in the tables.
        clock::advance(Duration::from_secs(1));
        app.service.app.engine.stats().campaigns.hot == 0
    };
    eventually("its actor has retired", has_retired).await;
    app.stop().await;
}

#[actix_web::test]
async fn each_state_allows_what_the_contract_says_and_nothing_else() {
    let app = TestApp::shared().await;
    let api = &app.api;
    for (status, state, allowed) in [
        ("scheduled", "the campaign has not started", &["start", "cancel", "change", "delete"][..]),
        ("processing", "the campaign is being sent", &["pause", "cancel"]),
        ("paused", "the campaign is paused", &["resume", "cancel"]),
        ("completed", "the campaign is completed", &["delete"]),
        ("canceled", "the campaign was canceled", &["delete"]),
    ] {
        for verb in ["start", "pause", "resume", "cancel", "change", "delete"] {
            let campaign = campaign_with_status(&app, status).await;
            let path = format!("/campaigns/{campaign}");
            let reply = match verb {
                "change" => api.put(&path, json!({"name": "other"})).await,
                "delete" => api.delete(&path).await,
                verb => api.post(&format!("{path}/{verb}"), json!({})).await,
            };
            let status_after = match verb {
                "start" | "resume" => "processing",
                "pause" => "paused",
                "cancel" => "canceled",
                _ => status,
            };
            if allowed.contains(&verb) {
                assert_eq!(
                    reply.status,
                    if verb == "delete" { 204 } else { 200 },
                    "{verb} in {status}: {}",
                    reply.body
                );
                if verb == "delete" {
                    api.get(&path).await.error(404, "ERR_API_NOT_FOUND");
                } else {
                    assert_eq!(reply.data(200)["status"], status_after, "{verb} in {status}");
                    assert_eq!(shown(api, campaign).await["status"], status_after, "{verb} in {status}");
                }
            } else {
                let conflict = reply.error(409, "ERR_API_CONFLICT");
                assert_eq!(conflict["reason"], status, "{verb} in {status}");
                assert_eq!((&conflict["field"], &conflict["id"]), (&json!("campaignId"), &json!(campaign)));
                assert_eq!(conflict["state"], state, "{verb} in {status}");
                assert_eq!(shown(api, campaign).await["status"], status, "{verb} in {status}");
            }
        }
    }
    app.stop().await;
}

/// Adds 999 scheduled campaigns for this list: one fewer than a company may have unfinished.
async fn fill_but_one(app: &TestApp, list: i64) {
    let fill = "insert into campaigns (company_id, name, contact_list_id, channel_id, scheduled_at, message)
        select $1, 'Campaign ' || number, $2, $3, '2099-01-31T12:00:00Z', 'hello' from generate_series(1, 999) number";
    let fill = sqlx::query(fill).bind(app.company.id).bind(list).bind(app.company.phone);
    fill.execute(&app.db).await.expect("campaigns");
}

/// Asserts that the request was refused because the company has as many unfinished campaigns as it may have.
#[track_caller]
fn assert_limit_reached(reply: Reply) {
    let details = reply.error(409, "ERR_API_CONFLICT");
    let count = json!([{"type": "campaign", "count": 1000}]);
    assert_eq!((&details["reason"], &details["by"]), (&json!("limit"), &count));
}

#[actix_web::test]
async fn the_unfinished_campaigns_of_a_company_are_limited() {
    let app = TestApp::shared().await;
    let (api, channel) = (&app.api, app.company.phone.0);
    let paused = campaign_with_status(&app, "paused").await;
    let everybody = list(api, &[]).await;
    let last = create_campaign(api, text(everybody, channel, "hello")).await;
    fill_but_one(&app, everybody).await;
    let resume = format!("/campaigns/{paused}/resume");
    assert_limit_reached(api.post("/campaigns", text(everybody, channel, "hello")).await);
    assert_limit_reached(api.post(&resume, json!({})).await);
    deleted(api, &format!("/campaigns/{last}")).await;
    api.post(&resume, json!({})).await.data(200);
    assert_limit_reached(api.post("/campaigns", text(everybody, channel, "hello")).await);
    // Another company has its own limit.
    let (company, neighbour) = app.another_company().await;
    create_campaign(&neighbour, text(list(&neighbour, &[]).await, company.phone.0, "hello")).await;
    app.stop().await;
}

#[actix_web::test]
async fn campaigns_made_and_resumed_at_the_same_time_do_not_exceed_the_limit() {
    let app = TestApp::shared().await;
    let (api, channel) = (&app.api, app.company.phone.0);
    let resume = format!("/campaigns/{}/resume", campaign_with_status(&app, "paused").await);
    let everybody = list(api, &[]).await;
    fill_but_one(&app, everybody).await;
    // The first creation waits for the lock on its list, after it has counted the other campaigns.
    let mut held = app.db.begin().await.expect("a transaction");
    let lock = sqlx::query("select from contact_lists where company_id = $1 and id = $2 for update");
    lock.bind(app.company.id).bind(everybody).execute(&mut *held).await.expect("a lock");
    let create = || api.post("/campaigns", text(everybody, channel, "hello"));
    let rivals = async {
        until_blocked(1, &mut held, &app.db).await;
        let release = async {
            until_blocked(3, &mut held, &app.db).await;
            held.rollback().await.expect("a rollback");
        };
        join(join(create(), api.post(&resume, json!({}))), release).await.0
    };
    let (first, (second, resumed)) = join(create(), rivals).await;
    first.data(201);
    assert_limit_reached(second);
    assert_limit_reached(resumed);
    app.stop().await;
}

#[actix_web::test]
async fn a_retry_of_a_verb_gets_the_first_response() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let contacts = contacts(&app, 2).await;
    let campaign = create_campaign(api, text(list(api, &contacts).await, app.company.phone.0, "hello")).await;
    for verb in ["start", "pause", "resume", "cancel"] {
        let path = format!("/campaigns/{campaign}/{verb}");
        let send = || Reply::of(api.keyed(Method::POST, &path, verb, "{}"));
        let (first, retry) = (send().await, send().await);
        assert_eq!((first.data(200), retry.is_replay()), (retry.data(200), true), "{verb}");
        api.post(&path, json!({})).await.error(409, "ERR_API_CONFLICT");
    }
    app.stop().await;
}

#[actix_web::test]
async fn only_one_of_many_concurrent_starts_succeeds() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let contacts = contacts(&app, 20).await;
    let campaign = create_campaign(api, text(list(api, &contacts).await, app.company.phone.0, "hello")).await;
    let path = format!("/campaigns/{campaign}/start");
    let replies = futures_util::future::join_all((0..10).map(|_| api.post(&path, json!({})))).await;
    let started = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!((started, replies.iter().filter(|reply| reply.status == 409).count()), (1, 9));
    assert_eq!(recipients(api, campaign).await.len(), 20);
    app.stop().await;
}

#[actix_web::test]
async fn a_list_cannot_be_deleted_before_its_campaigns_have_ended() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let contacts = contacts(&app, 1).await;
    let everybody = list(api, &contacts).await;
    let path = format!("/contact-lists/{everybody}");
    let mut campaigns = Vec::new();
    for _ in 0..3 {
        campaigns.push(create_campaign(api, text(everybody, app.company.phone.0, "hello")).await);
    }
    post_verb(api, campaigns[1], "start").await;
    post_verb(api, campaigns[2], "start").await;
    post_verb(api, campaigns[2], "pause").await;
    for (index, campaign) in campaigns.iter().enumerate() {
        let conflict = api.delete(&path).await;
        let conflict = conflict.error(409, "ERR_API_CONFLICT");
        assert_eq!(conflict["reason"], "in_use");
        assert_eq!(conflict["by"], json!([{"type": "campaign", "count": 3 - index}]), "{conflict}");
        post_verb(api, *campaign, "cancel").await;
    }
    assert_eq!(api.delete(&path).await.status, 204);
    assert_eq!(shown(api, campaigns[0]).await["contactListId"], everybody);
    app.stop().await;
}

#[actix_web::test]
async fn recipients_are_the_contacts_of_the_list_at_the_start() {
    let app = OwnApp::start().await;
    let api = &app.api;
    let (_, contact) = app.session("visitor").await;
    let (_, late) = app.session("late").await;
    let everybody = list(api, &[contact.0]).await;
    let campaign = create_campaign(api, fast(everybody, app.company.webchat.0, "Hello {{name}}")).await;
    let started = post_verb(api, campaign, "start").await;
    assert_eq!(counts(&started), json!({"pending": 1}));
    api.post(&format!("/contact-lists/{everybody}/contacts"), json!({"contactIds": [late]})).await.data(200);
    let completed = wait_for_status(api, campaign, "completed").await;
    assert_eq!(counts(&completed), json!({"sent": 1}));
    assert!(completed["completedAt"].is_string(), "{completed}");
    let all = recipients(api, campaign).await;
    assert_eq!(all.len(), 1);
    let expected = json!({
        "contact": {"id": contact, "name": "visitor", "number": null}, "status": "sent",
        "messageId": all[0]["messageId"], "error": null, "updatedAt": all[0]["updatedAt"],
    });
    assert_eq!(all[0], expected);
    let message = api.get(&format!("/messages/{}", all[0]["messageId"])).await.data(200).clone();
    assert_eq!((&message["body"], &message["source"]), (&json!("Hello visitor"), &json!("campaign")));
    // The messages of a deleted campaign remain.
    assert_eq!(api.delete(&format!("/campaigns/{campaign}")).await.status, 204);
    api.get(&format!("/campaigns/{campaign}/recipients")).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(api.get(&format!("/messages/{}", message["id"])).await.data(200)["body"], "Hello visitor");
    assert_eq!(Value::Null, shown_or_null(&app, campaign).await);
    eventually("its recipients are gone", || async {
        let left = "select (select count(*) from campaign_recipients) + (select count(*) from removals)";
        let left: i64 = sqlx::query_scalar(left).fetch_one(&app.db).await.expect("count");
        left == 0
    })
    .await;
    app.stop().await;
}

async fn shown_or_null(app: &TestApp, campaign: i64) -> Value {
    app.api.get(&format!("/campaigns/{campaign}")).await.body["data"].clone()
}
