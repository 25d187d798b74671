//! Every way in which a provider does not take a message.

use std::time::{Duration, Instant};

use hotline::providers::ProviderOptions;
use hotline_actors::channels::SendingOptions;
use hotline_actors::clock;
use serde_json::json;

use super::{Office, fast, number, patient};
use crate::support::eventually;
use crate::support::metrics::ScrapedMetrics;
use crate::support::provider::Answer;

/// Calls time out soon; on a slow machine, even one that the provider would have answered.
fn short_calls() -> ProviderOptions {
    ProviderOptions { call_time_max: Duration::from_millis(300), ..ProviderOptions::default() }
}

#[actix_web::test]
async fn a_temporary_failure_is_retried_until_the_message_is_sent() {
    let office = Office::open().await;
    let channel = office.phone("1201").await;
    let kinds = [
        ("server error", Answer::status(500)),
        ("bad gateway", Answer::status(502)),
        ("overloaded", Answer::refuse(503, 131_016, "Service unavailable")),
        ("something went wrong", Answer::refuse(400, 131_000, "Something went wrong")),
        ("too many requests", Answer::status(429)),
        ("number too fast", Answer::channel_rate_limited()),
        ("app too fast", Answer::refuse(400, 4, "Application request limit reached")),
        ("recipient too fast", Answer::recipient_rate_limited()),
    ];
    for (index, (kind, answer)) in kinds.into_iter().enumerate() {
        let (before, to) = (office.provider.calls("1201").len(), number(index));
        office.provider.next("1201", [answer.clone(), answer]);
        let job = office.text(channel, &to, kind).await;
        office.wait_for_status(&job, "sent").await;
        let calls = office.provider.calls("1201").split_off(before);
        assert_eq!(calls.len(), 3, "{kind}: {calls:#?}");
        assert!(calls.iter().all(|call| call.to == to && call.text() == kind), "{kind}: {calls:#?}");
    }
    office.close().await;
}

#[actix_web::test]
async fn a_call_without_an_answer_in_time_is_retried_until_the_message_is_sent() {
    let office = Office::open_with(fast(), short_calls()).await;
    let channel = office.phone("1208").await;
    let kinds = [("no answer", Answer::Hang), ("late answer", Answer::Accept.held())];
    for (index, (kind, answer)) in kinds.into_iter().enumerate() {
        let (before, to) = (office.provider.calls("1208").len(), number(index));
        office.provider.next("1208", [answer.clone(), answer]);
        let job = office.text(channel, &to, kind).await;
        office.wait_for_status(&job, "sent").await;
        let calls = office.provider.calls("1208").split_off(before);
        assert!(calls.len() >= 3, "{kind}: {calls:#?}");
        assert!(calls.iter().all(|call| call.to == to && call.text() == kind), "{kind}: {calls:#?}");
    }
    office.close().await;
}

#[actix_web::test]
async fn reports_count_a_failed_message_once() {
    let office = Office::open().await;
    let channel = office.phone("1207").await;
    office.provider.next("1207", [Answer::refuse(400, 131_026, "Message undeliverable")]);
    let failed = office.text(channel, &number(1), "one").await;
    office.wait_for_status(&failed, "failed").await;
    let sent = office.text(channel, &number(2), "two").await;
    office.wait_for_status(&sent, "sent").await;
    let reply = office.app.api.get("/reports/messages?groupBy=channel").await;
    let expected = json!([{"key": channel, "label": "1207", "inbound": 0, "outbound": 2, "failed": 1}]);
    assert_eq!(reply.data(200), &expected);
    office.close().await;
}

/// A provider that does not answer may have the message or not: the message arrives at least once.
#[actix_web::test]
async fn a_message_whose_acceptance_was_not_answered_is_sent_again() {
    let office = Office::open_with(fast(), short_calls()).await;
    let channel = office.phone("1206").await;
    office.provider.next("1206", [Answer::Lost]);
    let job = office.text(channel, &number(1), "once more").await;
    office.wait_for_status(&job, "sent").await;
    assert!(office.provider.accepted_count("1206") >= 2);
    office.close().await;
}

#[actix_web::test]
async fn a_refused_message_fails_with_the_providers_code_and_the_next_one_is_sent() {
    let office = Office::open().await;
    let channel = office.phone("1202").await;
    office.provider.next("1202", [Answer::refuse(400, 131_026, "Message undeliverable"), Answer::Accept]);
    let refused = office.text(channel, &number(1), "one").await;
    let accepted = office.text(channel, &number(1), "two").await;
    let message = office.wait_for_status(&refused, "failed").await;
    assert_eq!(message["error"], json!({"code": "131026", "message": "Message undeliverable"}));
    assert_eq!((&message["sentAt"], &message["deliveredAt"]), (&json!(null), &json!(null)));
    assert_eq!(office.job(&refused).await["error"]["code"], "131026");
    office.wait_for_status(&accepted, "sent").await;
    assert_eq!(office.provider.calls("1202").len(), 2, "a refused message was tried again");
    // Without a code from the provider, the HTTP status is the code.
    office.provider.next("1202", [Answer::status(404)]);
    let lost = office.text(channel, &number(1), "three").await;
    let message = office.wait_for_status(&lost, "failed").await;
    assert_eq!(message["error"], json!({"code": "404", "message": "no reason given"}));
    office.close().await;
}

#[actix_web::test]
async fn a_message_is_given_up_when_its_time_is_over() {
    let office = Office::open().await;
    let channel = office.phone("1203").await;
    office.provider.always("1203", Answer::status(500));
    clock::stop();
    let job = office.text(channel, &number(1), "never").await;
    clock::advance(fast().give_up_after - Duration::from_millis(1));
    // More attempts than could be under way when the clock was advanced.
    office.provider.called_times("1203", office.provider.calls("1203").len() + 3).await;
    assert_eq!(office.job(&job).await["status"], "queued", "given up too early");
    clock::advance(Duration::from_millis(1));
    let message = office.wait_for_status(&job, "failed").await;
    let reason = "the provider responded with status 500: no reason given";
    assert_eq!(message["error"], json!({"code": "ERR_GIVEN_UP", "message": reason}));
    // A later message has its own time.
    office.provider.always("1203", Answer::Accept);
    let next = office.text(channel, &number(1), "later").await;
    office.wait_for_status(&next, "sent").await;
    office.close().await;
}

#[actix_web::test]
async fn a_rate_limited_recipient_waits_alone_and_as_long_as_the_provider_says() {
    let office = Office::open().await;
    let channel = office.phone("1204").await;
    office.provider.next("1204", [asks_to_wait(131_056, LONG_S)]);
    let slowed = office.text(channel, &number(1), "slowed").await;
    office.provider.called_times("1204", 1).await;
    let behind = office.text(channel, &number(1), "behind").await;
    let other = office.text(channel, &number(2), "other").await;
    office.wait_for_status(&other, "sent").await;
    // Another recipient's message waits for as long as the provider says.
    office.provider.next("1204", [asks_to_wait(131_056, 2)]);
    let begin = Instant::now();
    let soon = office.text(channel, &number(3), "soon").await;
    office.wait_for_status(&soon, "sent").await;
    let calls = office.provider.calls("1204");
    let order: Vec<&str> = calls.iter().map(|call| call.text()).collect();
    assert_eq!(order, ["slowed", "other", "soon", "soon"]);
    assert!(calls[3].at - begin >= Duration::from_secs(2), "tried again after {:?}", calls[3].at - begin);
    for waiting in [slowed, behind] {
        assert_eq!(office.job(&waiting).await["status"], "queued");
    }
    office.close().await;
}

#[actix_web::test]
async fn a_rate_limited_channel_waits_as_a_whole_and_as_long_as_the_provider_says() {
    let office = Office::open_with_metrics(fast(), patient()).await;
    let channel = office.phone("1205").await;
    office.provider.next("1205", [asks_to_wait(130_429, 2)]);
    let begin = Instant::now();
    let slowed = office.text(channel, &number(1), "slowed").await;
    let metrics = office.app.service.metrics_listener.as_ref().expect("metrics are served").address;
    eventually("the channel has the refusal", || async {
        ScrapedMetrics::of(metrics).await.value("hotline_outbox_attempts_total{end=\"channel_paced\"}") == 1.0
    })
    .await;
    let others: Vec<String> = {
        let mut jobs = Vec::new();
        for recipient in 2..6 {
            jobs.push(office.text(channel, &number(recipient), "other").await);
        }
        jobs
    };
    for job in others.iter().chain([&slowed]) {
        office.wait_for_status(job, "sent").await;
    }
    let early = office.provider.calls("1205").iter().filter(|call| call.at - begin < Duration::from_secs(2)).count();
    assert_eq!(early, 1, "the channel made other calls within the pause");
    office.close().await;
}

#[actix_web::test]
async fn after_any_pause_requested_by_a_provider_a_message_is_retried_before_it_is_given_up() {
    let give_up_after = Duration::from_millis(500);
    let office = Office::open_with(SendingOptions { give_up_after, ..fast() }, patient()).await;
    let channel = office.phone("1208").await;
    let engine = &office.app.service.app.engine;
    // No message is too old for a retry when its first attempt ends, however late that is.
    clock::stop();
    for (index, seconds) in [LONG_S, u64::MAX].into_iter().enumerate() {
        office.provider.next("1208", [asks_to_wait(131_056, seconds)]);
        let job = office.text(channel, &number(index), "slowed").await;
        office.provider.called_times("1208", 2 * index + 1).await;
        eventually("the first attempt has ended", || async { engine.sending.stats().calling == 0 }).await;
        // At the next attempt, the message is old enough to be given up.
        clock::advance(give_up_after);
        office.wait_for_status(&job, "sent").await;
    }
    assert_eq!(office.provider.calls("1208").len(), 4);
    // A channel waits as it is asked to, for an hour at most.
    office.provider.next("1208", [asks_to_wait(130_429, u64::MAX)]);
    let job = office.text(channel, &number(3), "stopped").await;
    office.provider.called_times("1208", 5).await;
    office.text(channel, &number(4), "behind").await;
    assert_eq!(office.job(&job).await["status"], "queued");
    assert_eq!(office.provider.calls("1208").len(), 5);
    office.close().await;
}

/// A pause in seconds, longer than any test.
const LONG_S: u64 = 3600;

/// A provider's refusal because calls come too fast, with a `Retry-After` of this many seconds.
fn asks_to_wait(code: i64, seconds: u64) -> Answer {
    Answer::Refuse { status: 429, code: Some(code), message: "too fast", retry_after_s: Some(seconds) }
}

/// The id that a provider gives a message is stored in an index, and the text of a failure in a JSON document:
/// PostgreSQL must accept both, whatever a provider answers.
#[actix_web::test]
async fn any_answer_of_a_provider_can_be_stored_and_an_accepted_message_is_sent_once() {
    let office = Office::open().await;
    let channel = office.phone("1207").await;
    let (_, other) = office.app.another_company().await;
    // Random, so that it does not compress: the size of an index entry counts after compression.
    let long: String = (0..6000).map(|_| char::from(rand::random_range(b'!'..=b'z'))).collect();
    let provider_ids = [long, "with\0in".to_owned(), String::new(), "\u{10ffff}".repeat(200)];
    for (index, provider_id) in provider_ids.iter().enumerate() {
        office.provider.next("1207", [Answer::AcceptAs(provider_id.clone())]);
        let job = office.text(channel, &number(index), "hello").await;
        office.wait_for_status(&job, "sent").await;
    }
    office.provider.next("1207", [Answer::refuse(400, 131_026, "un\0deliverable")]);
    let job = office.text(channel, &number(provider_ids.len()), "hello").await;
    office.wait_for_status(&job, "failed").await;
    // Lists of another company are answered, and what waited for the tables is in them.
    other.get("/tickets").await.data(200);
    assert_eq!(office.app.api.all("/tickets").await.len(), provider_ids.len() + 1);
    assert_eq!(office.provider.accepted_count("1207"), provider_ids.len(), "a message was sent again");
    // The database refused no row: closing checks that.
    office.close().await;
}
