//! A provider that no longer answers delays only its own channel.

use std::time::{Duration, Instant};

use hotline::providers::ProviderOptions;
use hotline_persistence::ChannelId;

use super::{Office, fast, number};
use crate::support::provider::Answer;

/// The timeout of a call in these tests.
const CALL_TIME_MAX: Duration = Duration::from_secs(8);

/// How long the provider hangs: twice as long as a call may take, so that calls end and are repeated meanwhile.
const HANGS_FOR: Duration = Duration::from_secs(16);

/// Messages for the provider that hangs, and their recipients: each gets two messages.
const STUCK_MESSAGES: usize = 200;
const STUCK_RECIPIENTS: usize = 100;

/// How often the healthy channel sends while it is watched, and for how long before the other hangs.
const SAMPLE_EVERY: Duration = Duration::from_millis(50);
const WATCHED_BEFORE: Duration = Duration::from_secs(3);

/// The longest time a message of the healthy channel may take from the request to its provider; on an idle machine it
/// takes a few milliseconds. A channel that waited for another would take as long as a call may.
const LATENCY_MAX: Duration = Duration::from_secs(5);

/// The healthy channel's median beside the hanging one is at most this many times its median before, plus this slack.
/// A channel that shared anything with one that hangs would wait for seconds.
const MEDIAN_FACTOR: u32 = 4;
const MEDIAN_SLACK: Duration = Duration::from_millis(20);

/// Recipients of the healthy channel, one after the other.
const HEALTHY_RECIPIENTS: usize = 50;

/// Watches one channel by sending through it.
struct Watch<'a> {
    office: &'a Office,
    channel: ChannelId,
    account: &'a str,
    sent: usize,
}

impl Watch<'_> {
    /// Sends messages one after the other for this time. Returns how long each took from the request to the provider,
    /// sorted.
    async fn latencies(&mut self, time: Duration) -> Vec<Duration> {
        let end = Instant::now() + time;
        let mut clock = tokio::time::interval(SAMPLE_EVERY);
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut latencies = Vec::new();
        while Instant::now() < end {
            clock.tick().await;
            let begin = Instant::now();
            self.office.text(self.channel, &number(self.sent % HEALTHY_RECIPIENTS), &format!("{}", self.sent)).await;
            latencies
                .push(self.office.provider.arrival_of(self.account, self.sent).await.saturating_duration_since(begin));
            self.sent += 1;
        }
        latencies.sort();
        latencies
    }
}

/// The value below which this percentage of values lies.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

/// Ends the hang, and waits until the messages of both channels have arrived, each once and in order.
async fn check_all_arrive(office: Office, sent: usize) {
    office.provider.always("1301", Answer::Accept);
    office.provider.release();
    let accepted = office.provider.accepts("1301", STUCK_MESSAGES).await;
    for recipient in 0..STUCK_RECIPIENTS {
        let to = number(1000 + recipient);
        let texts: Vec<&str> = accepted.iter().filter(|call| call.to == to).map(|call| call.text()).collect();
        assert_eq!(texts, [recipient.to_string(), (recipient + STUCK_RECIPIENTS).to_string()]);
    }
    let healthy = office.provider.accepted("1302");
    let texts: Vec<String> = healthy.iter().map(|call| call.text().to_owned()).collect();
    assert_eq!(texts, (0..sent).map(|message| message.to_string()).collect::<Vec<_>>());
    office.wait_until_all_sent().await;
    office.close().await;
}

#[actix_web::test]
async fn a_provider_that_hangs_delays_its_own_channel_only_and_loses_nothing() {
    let office = Office::open().await;
    let (stuck, healthy) = (office.phone("1301").await, office.phone("1302").await);
    office.provider.always("1301", Answer::Hang);
    for message in 0..STUCK_MESSAGES {
        office.text(stuck, &number(1000 + message % STUCK_RECIPIENTS), &format!("{message}")).await;
    }
    office.provider.called_times("1301", 1).await;
    for message in 0..HEALTHY_RECIPIENTS {
        office.text(healthy, &number(message), &format!("{message}")).await;
    }
    office.provider.accepts("1302", HEALTHY_RECIPIENTS).await;
    // As many calls hang as may be under way at once.
    let hanging = office.provider.in_flight_max("1301");
    assert!((1..=64).contains(&hanging), "{hanging} calls at once");
    assert_eq!(office.provider.accepted_count("1301"), 0);
    check_all_arrive(office, HEALTHY_RECIPIENTS).await;
}

#[actix_web::test]
async fn a_provider_that_hangs_does_not_slow_another_channel_measured() {
    let office =
        Office::open_with(fast(), ProviderOptions { call_time_max: CALL_TIME_MAX, ..ProviderOptions::default() }).await;
    let (stuck, healthy) = (office.phone("1301").await, office.phone("1302").await);
    let mut watch = Watch { office: &office, channel: healthy, account: "1302", sent: 0 };
    let before = watch.latencies(WATCHED_BEFORE).await;

    office.provider.always("1301", Answer::Hang);
    let hangs_since = Instant::now();
    // All recipients' messages are sent at once: even on a slow machine, no call has ended when calls are counted.
    let office_ref = &office;
    let stuck_messages = (0..STUCK_RECIPIENTS).map(|recipient| async move {
        for message in (recipient..STUCK_MESSAGES).step_by(STUCK_RECIPIENTS) {
            office_ref.text(stuck, &number(1000 + recipient), &format!("{message}")).await;
        }
    });
    futures_util::future::join_all(stuck_messages).await;
    let mut during = watch.latencies(WATCHED_BEFORE).await;
    // No call has ended yet: as many hang as may be under way at once.
    let hanging = office.provider.in_flight_max("1301");
    assert!((1..=64).contains(&hanging), "{hanging} calls at once");
    during.extend(watch.latencies(HANGS_FOR.saturating_sub(hangs_since.elapsed())).await);
    during.sort();
    assert!(hangs_since.elapsed() >= HANGS_FOR);
    assert_eq!(office.provider.accepted_count("1301"), 0);
    let attempts = office.provider.calls("1301").len();
    assert!(attempts > hanging, "calls without an answer in time were not repeated: {attempts}");

    for (when, latencies) in [("before", &before), ("beside a channel that hangs", &during)] {
        let [median, high, longest] = [50, 99, 100].map(|percent| percentile(latencies, percent));
        println!("{} messages {when}: median {median:?}, 99 % {high:?}, longest {longest:?}", latencies.len());
    }
    let (calm, hung) = (percentile(&before, 50), percentile(&during, 50));
    assert!(hung <= calm * MEDIAN_FACTOR + MEDIAN_SLACK, "the median moved from {calm:?} to {hung:?}");
    assert!(percentile(&during, 100) < LATENCY_MAX, "a message waited for another channel: {during:?}");
    let sent = watch.sent;
    check_all_arrive(office, sent).await;
}
