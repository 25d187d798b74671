//! `kill -9` while thousands of messages are on their way.

use std::collections::HashMap;

use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};

use super::{Office, number};
use crate::process::with_database;
use crate::support::eventually;
use crate::support::provider::{Answer, Call};

/// Messages to each recipient: ten thousand in all with KILLS_LONG, which `make kills` sets.
fn messages_each() -> usize {
    if std::env::var_os("KILLS_LONG").is_some() { 100 } else { 30 }
}

const RECIPIENTS: usize = 100;

/// Requests at once, which share the journal's syncs.
const AT_ONCE: usize = 50;

/// The percentage of messages that the provider has accepted at each kill.
const KILLED_AT: [usize; 3] = [0, 25, 60];

/// How many messages a kill may double: those of calls under way, and those whose acceptance is not synced yet.
const DOUBLED_MAX: usize = 64 + 256;

/// How long the whole outbox may take on a busy machine.
const DRAIN_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(240);

/// Waits until the provider has accepted this many messages.
async fn wait_until_accepted(office: &Office, account: &str, count: usize) {
    let deadline = std::time::Instant::now() + crate::support::patience(DRAIN_TIME_MAX);
    // The texts are compared only once there are enough messages: some have arrived twice.
    while office.provider.accepted_count(account) < count
        || counts_by_text(&office.provider.accepted(account)).len() < count
    {
        assert!(std::time::Instant::now() < deadline, "{} of {count}", office.provider.accepted_count(account));
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// How often the message with each text was accepted.
fn counts_by_text(accepted: &[Call]) -> HashMap<&str, usize> {
    let mut counts = HashMap::with_capacity(accepted.len());
    for call in accepted {
        *counts.entry(call.text()).or_insert(0) += 1;
    }
    counts
}

#[actix_web::test]
async fn thousands_of_messages_survive_kills_and_few_arrive_twice() {
    let (each, messages) = (messages_each(), messages_each() * RECIPIENTS);
    let mut office = Office::open("2001").await;
    office.provider.always("2001", Answer::status(503));
    // The messages to one recipient are sent one after the other, so that their order is known.
    stream::iter(0..RECIPIENTS)
        .map(|recipient| {
            let office = &office;
            async move {
                for message in 0..each {
                    office.send(&number(recipient), &format!("{recipient}/{message}"), json!({})).await;
                }
            }
        })
        .buffer_unordered(AT_ONCE)
        .collect::<()>()
        .await;
    assert_eq!(office.provider.accepted_count("2001"), 0);
    // Killed before anything was accepted, and then in the middle of it.
    office.kill();
    office.provider.always("2001", Answer::Accept);
    for killed_at in KILLED_AT {
        office.start();
        wait_until_accepted(&office, "2001", (messages * killed_at / 100).max(1)).await;
        office.kill();
    }
    office.start();
    wait_until_accepted(&office, "2001", messages).await;
    eventually("no message is queued", || async {
        office.api.get("/messages?status=queued").await.body["data"] == json!([])
    })
    .await;

    let accepted = office.provider.accepted("2001");
    let doubles = accepted.len() - messages;
    println!("{doubles} of {messages} messages were accepted twice in {} kills", KILLED_AT.len());
    assert!(doubles <= KILLED_AT.len() * DOUBLED_MAX, "{doubles} messages were accepted twice");
    for recipient in 0..RECIPIENTS {
        let mut order: Vec<&str> = Vec::new();
        for call in accepted.iter().filter(|call| call.to == number(recipient)) {
            if !order.contains(&call.text()) {
                order.push(call.text());
            }
        }
        let expected: Vec<String> = (0..each).map(|message| format!("{recipient}/{message}")).collect();
        assert_eq!(order, expected);
    }
    let (sent, rejected): (i64, i64) = with_database(office.path(), async |db| {
        sqlx::query_as(
            "select (select count(*) from messages where company_id = $1 and channel_id = $2 and status = 'sent'
                 and provider_message_id is not null), (select count(*) from rejected_changes)",
        )
        .bind(office.company.id)
        .bind(office.channel.id)
        .fetch_one(db)
        .await
        .expect("counts")
    })
    .await;
    assert_eq!((sent, rejected), (messages as i64, 0));
    office.close();
}

/// The kill comes when it may double a message: the provider has it, and its acceptance is not recorded yet.
#[actix_web::test]
async fn a_message_is_doubled_only_when_the_kill_falls_between_its_acceptance_and_the_journal() {
    let mut office = Office::open("2002").await;
    office.provider.always("2002", Answer::status(503));
    let job = office.send(&number(1), "once or twice", json!({})).await;
    office.kill();
    office.provider.always("2002", Answer::Accept);
    office.start_until("message_taken");
    assert_eq!(office.provider.accepted_count("2002"), 1);
    office.start();
    office.wait_for_status(&job, "sent").await;
    assert_eq!(office.provider.accepted_count("2002"), 2);
    // Once the acceptance is recorded, no restart sends the message again.
    office.kill();
    office.start();
    let next = office.send(&number(1), "the next", json!({})).await;
    office.wait_for_status(&next, "sent").await;
    assert_eq!(office.provider.accepted_count("2002"), 3);
    office.close();
}

/// Sets the status of the channel, while no service runs.
async fn set_channel(office: &Office, status: &str) {
    with_database(office.path(), async |db| {
        sqlx::query("update channels set status = $2 where id = $1")
            .bind(office.channel.id)
            .bind(status)
            .execute(db)
            .await
            .expect("a channel");
    })
    .await;
}

/// A service that was killed at this point while it sent a campaign's only message, and runs again. The provider had
/// accepted `accepted` messages at the kill. Also returns the campaign's id.
async fn killed_while_sending(account: &str, point: &str, accepted: usize) -> (Office, i64) {
    let mut office = Office::open(account).await;
    office.kill();
    set_channel(&office, "error").await;
    office.start();
    let api = office.api.clone();
    let create = async |path: &str, body: Value| api.post(path, body).await.data(201)["id"].as_i64().expect("an id");
    let contact = create("/contacts", json!({"name": "Ana", "number": number(1)})).await;
    let list = create("/contact-lists", json!({"name": "Everybody"})).await;
    let members = json!({"contactIds": [contact]});
    api.post(&format!("/contact-lists/{list}/contacts"), members).await.data(200);
    let campaign = json!({"name": "Sale", "contactListId": list, "channelId": office.channel.id, "message": "hello",
        "scheduledAt": "2099-01-01T00:00:00Z"});
    let campaign = create("/campaigns", campaign).await;
    api.post(&format!("/campaigns/{campaign}/start"), json!({})).await.data(200);
    let is_queued = || async { api.all("/messages?status=queued").await.len() == 1 };
    eventually("the message waits for its channel", is_queued).await;
    office.kill();
    set_channel(&office, "connected").await;
    office.start_until(point);
    assert_eq!(office.provider.accepted_count(account), accepted);
    office.start();
    (office, campaign)
}

async fn campaign_of(office: &Office, campaign: i64) -> Value {
    office.api.get(&format!("/campaigns/{campaign}")).await.data(200).clone()
}

#[actix_web::test]
async fn a_campaigns_message_is_not_doubled_even_if_the_kill_falls_between_its_acceptance_and_the_journal() {
    let (mut office, campaign) = killed_while_sending("2003", "message_taken", 1).await;
    let is_completed = || async { campaign_of(&office, campaign).await["status"] == "completed" };
    eventually("the campaign is completed", is_completed).await;
    assert_eq!(campaign_of(&office, campaign).await["counts"]["unknown"], 1);
    let message = office.api.all(&format!("/campaigns/{campaign}/recipients")).await[0]["messageId"].to_string();
    let job = office.job(&format!("job_{message}")).await;
    assert_eq!((&job["status"], &job["outcome"]), (&json!("queued"), &json!("unknown")));
    // Nor does another restart send it, and a status settles it.
    office.kill();
    office.start();
    let mut report =
        office.phone("2003").status("wamid.taken", &number(1), "delivered", chrono::Utc::now().timestamp());
    report["entry"][0]["changes"][0]["value"]["statuses"][0]["biz_opaque_callback_data"] = json!(message);
    office.call_hook(&report).await;
    office.wait_for_status(&format!("job_{message}"), "delivered").await;
    let counts = campaign_of(&office, campaign).await["counts"].clone();
    assert_eq!((&counts["unknown"], &counts["delivered"]), (&json!(0), &json!(1)));
    let next = office.send(&number(1), "the next", json!({})).await;
    office.wait_for_status(&next, "sent").await;
    assert_eq!(office.provider.accepted_count("2003"), 2, "the campaign's message was sent twice");
    office.close();
}

#[actix_web::test]
async fn a_campaigns_message_that_a_kill_interrupts_before_its_call_stays_in_doubt() {
    let (office, campaign) = killed_while_sending("2006", "attempt_begun", 0).await;
    let is_completed = || async { campaign_of(&office, campaign).await["status"] == "completed" };
    eventually("the campaign is completed", is_completed).await;
    assert_eq!(campaign_of(&office, campaign).await["counts"]["unknown"], 1);
    let next = office.send(&number(2), "the next", json!({})).await;
    office.wait_for_status(&next, "sent").await;
    assert_eq!(office.provider.accepted_count("2006"), 1);
    office.close();
}
