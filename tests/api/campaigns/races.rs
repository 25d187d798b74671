//! Opt-outs, pauses and cancellations that are answered while a campaign's messages are sent.

use std::sync::mpsc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::skipped::send_stop_word;
use super::time::time;
use super::{counts, create_campaign, fast, numbers, office, post_verb, recipients, shown};
use crate::outbox::Office;
use crate::support::provider::Answer;
use crate::support::service::TestOptions;
use crate::support::{TestApp, eventually};

/// Applies `change` to a paused campaign whose messages are queued, when the first message has been checked and its
/// call is about to begin, and asserts that the change prevents every call. Returns the campaign's counts and the error
/// code of the first recipient.
async fn change_between_check_and_call(account: &str, change: impl AsyncFnOnce(&TestApp, i64, &[i64])) -> Value {
    let (office, channel, all, everybody) = office(account, 3).await;
    office.provider.always(account, Answer::refuse(503, 2, "not now"));
    let api = office.app.api.clone();
    let campaign = create_campaign(&api, fast(everybody, channel, "hello")).await;
    post_verb(&api, campaign, "start").await;
    let are_all_queued = || async { api.all("/messages?status=queued").await.len() == 3 };
    eventually("all wait for the provider", are_all_queued).await;
    // After a restart, no actor tracks the messages of a paused campaign.
    post_verb(&api, campaign, "pause").await;
    let Office { app, provider } = office;
    let (check_started, checks) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let wait_for_release = move || {
        let _ = check_started.send(());
        // Ends once `release` is dropped.
        let _ = released.lock().recv();
    };
    let app = app
        .restarted(&TestOptions::default(), async |_| {
            fail::cfg_callback("campaign_message_looked_at", wait_for_release).expect("failpoint");
            provider.always(account, Answer::Accept);
        })
        .await;
    eventually("the first message is checked", || async { checks.try_recv().is_ok() }).await;
    change(&app.app, campaign, &all).await;
    drop(release);
    let is_settled = || async { app.api.get("/messages?status=queued").await.data(200) == &json!([]) };
    eventually("no message is queued", is_settled).await;
    fail::remove("campaign_message_looked_at");
    assert_eq!(provider.accepted_count(account), 0);
    let counted = counts(&shown(&app.api, campaign).await);
    let rows = recipients(&app.api, campaign).await;
    assert!(rows.iter().all(|row| row["messageId"].is_i64()), "{rows:?}");
    drop(provider);
    app.stop().await;
    json!([counted, rows[0]["error"]["code"]])
}

#[actix_web::test]
async fn an_opt_out_between_the_check_of_a_message_and_its_call_prevents_the_call() {
    let opt_out = async |app: &TestApp, _: i64, all: &[i64]| {
        app.api.put(&format!("/contacts/{}", all[0]), json!({"marketingOptOut": true})).await.data(200);
        let row = json!({"number": numbers(app, &all[1..2]).await[0], "marketingOptOut": true});
        app.api.post("/contacts/import", json!({"contacts": [row]})).await.data(200);
        send_stop_word(app, all[2]).await;
    };
    let outcome = change_between_check_and_call("1810", opt_out).await;
    assert_eq!(outcome, json!([{"skipped": 3}, "ERR_MARKETING_OPT_OUT"]));
}

#[actix_web::test]
async fn a_cancellation_between_the_check_of_a_message_and_its_call_prevents_the_call() {
    let cancel = async |app: &TestApp, campaign: i64, _: &[i64]| {
        post_verb(&app.api, campaign, "cancel").await;
    };
    let outcome = change_between_check_and_call("1811", cancel).await;
    assert_eq!(outcome, json!([{"skipped": 3}, "ERR_CAMPAIGN_CANCELED"]));
}

/// How often a campaign is paused while its messages arrive.
const PAUSES: usize = 8;

/// How many messages arrive one after the other, from the moment of a command until after its answer.
const ARRIVALS: usize = 20;

/// The time between two of these arrivals.
const ARRIVAL_INTERVAL: Duration = Duration::from_millis(10);

/// Holds the answers to a campaign's messages, so that a campaign with more recipients than may wait at once is not
/// over before the next command, however long a busy machine takes until then.
fn hold_answers(office: &Office, account: &str) {
    let later = (1_u32..).take(ARRIVALS).map(|number| Answer::Accept.after(number * ARRIVAL_INTERVAL).held());
    office.provider.next(account, later);
    office.provider.always(account, Answer::Accept.after(ARRIVAL_INTERVAL).held());
}

/// Sends the command `verb` to a campaign whose answers are held, when some of them begin to arrive. Those that are
/// held afterwards are left to the caller to release; further ones are given at once.
async fn post_verb_amid_arrivals(office: &Office, account: &str, campaign: i64, verb: &str) -> Value {
    // Every call that is not accepted yet is one whose answer is held.
    office.provider.called_times(account, office.provider.accepted_count(account) + ARRIVALS).await;
    office.provider.release();
    let shown = post_verb(&office.app.api, campaign, verb).await;
    office.provider.always(account, Answer::Accept);
    shown
}

#[actix_web::test]
async fn messages_that_arrive_while_a_campaign_is_paused_cause_no_new_message() {
    // At most 64 messages wait when the answers are released, and as many when the pause is answered: 128 each time.
    let (office, channel, _, everybody) = office("1806", 1200).await;
    let api = &office.app.api;
    let campaign = create_campaign(api, fast(everybody, channel, "hello")).await;
    // A delay between the release of messages and the notice of it to the campaign's actor.
    fail::cfg("campaign_released", "sleep(60)").expect("failpoint");
    for round in 0..PAUSES {
        hold_answers(&office, "1806");
        post_verb(api, campaign, if round == 0 { "start" } else { "resume" }).await;
        let paused = post_verb_amid_arrivals(&office, "1806", campaign, "pause").await;
        let settled = || async {
            office.provider.release();
            api.all("/messages?status=queued").await.is_empty()
        };
        eventually("what was on its way has arrived", settled).await;
        let last: DateTime<Utc> = sqlx::query_scalar("select max(created_at) from messages where company_id = $1")
            .bind(office.app.company.id)
            .fetch_one(&office.app.db)
            .await
            .expect("the last message");
        assert!(
            last <= time(&paused["updatedAt"]),
            "the message of {last} was written after the pause of {}",
            paused["updatedAt"]
        );
    }
    fail::remove("campaign_released");
    office.close().await;
}

#[actix_web::test]
async fn messages_that_arrive_while_a_campaign_is_canceled_cause_no_message_without_a_recipient() {
    let (office, channel, _, everybody) = office("1807", 150).await;
    let api = &office.app.api;
    fail::cfg("campaign_released", "sleep(60)").expect("failpoint");
    for _ in 0..PAUSES {
        let campaign = create_campaign(api, fast(everybody, channel, "hello")).await;
        let before = api.all(&format!("/messages?channelId={channel}")).await.len();
        hold_answers(&office, "1807");
        post_verb(api, campaign, "start").await;
        post_verb_amid_arrivals(&office, "1807", campaign, "cancel").await;
        let settled = || async {
            office.provider.release();
            let shown = shown(api, campaign).await;
            shown["counts"]["pending"] == 0 && api.all("/messages?status=queued").await.is_empty()
        };
        eventually("all are settled", settled).await;
        let written = api.all(&format!("/messages?channelId={channel}")).await.len() - before;
        let linked = recipients(api, campaign).await.iter().filter(|row| row["messageId"].is_i64()).count();
        assert_eq!(written, linked, "a message has no recipient");
    }
    fail::remove("campaign_released");
    office.close().await;
}
