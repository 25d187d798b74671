//! A provider that answers nothing any more is the trouble of its own channel.

use std::time::{Duration, Instant};

use hotline_persistence::ChannelId;

use super::{Office, number};
use crate::support::provider::Answer;

const STUCK: usize = 200;
const SENDS: usize = 60;

/// Longest a message of a healthy channel may take from the request to its provider; on an idle machine it takes some
/// milliseconds. A channel that waited for another would take as long as a call may: 30 seconds.
const LATENCY_MAX: Duration = Duration::from_secs(2);

/// How long each of some messages takes from the request to the provider.
async fn latencies(office: &Office, channel: ChannelId, account: &str, from: usize) -> Vec<Duration> {
    let mut latencies = Vec::with_capacity(SENDS);
    for index in from..from + SENDS {
        let begin = Instant::now();
        office.text(channel, &number(index), &format!("{index}")).await;
        let accepted = office.provider.accepts(account, index + 1).await;
        latencies.push(accepted[index].at - begin);
    }
    latencies.sort();
    latencies
}

#[actix_web::test]
async fn a_provider_that_hangs_delays_its_own_channel_only_and_loses_nothing() {
    let office = Office::open().await;
    let (stuck, well) = (office.phone("1301").await, office.phone("1302").await);
    let before = latencies(&office, well, "1302", 0).await;
    office.provider.always("1301", Answer::Hang);
    for message in 0..STUCK {
        office.text(stuck, &number(message % 100), &format!("{message}")).await;
    }
    let begin = Instant::now();
    let during = latencies(&office, well, "1302", SENDS).await;
    println!(
        "median and longest: {:?} and {:?} before, {:?} and {:?} beside a channel that hangs for {:?}",
        before[SENDS / 2],
        before[SENDS - 1],
        during[SENDS / 2],
        during[SENDS - 1],
        begin.elapsed()
    );
    assert!(during[SENDS - 1] < LATENCY_MAX, "the other channel waited: {during:?}");
    let hanging = office.provider.in_flight_max("1301");
    assert!((1..=64).contains(&hanging), "{hanging} calls at once");
    assert_eq!(office.provider.accepted_count("1301"), 0);

    office.provider.always("1301", Answer::Accept);
    office.provider.release();
    let accepted = office.provider.accepts("1301", STUCK).await;
    for recipient in 0..100 {
        let texts: Vec<&str> =
            accepted.iter().filter(|call| call.to == number(recipient)).map(|call| call.text()).collect();
        assert_eq!(texts, [recipient.to_string(), (recipient + 100).to_string()]);
    }
    office.close().await;
}
