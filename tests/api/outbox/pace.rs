//! A channel keeps within its rate limits: one for all recipients together, and one for each.

use std::time::{Duration, Instant};

use hotline_persistence::tables::channels::ChannelType;

use super::{Office, number};

#[actix_web::test]
async fn a_channel_sends_no_faster_than_its_pace() {
    const PER_SECOND: u32 = 40;
    /// A twentieth of the rate: the channel sends that much slower, and up to this many at once after a pause.
    const SPARE: u32 = 2;
    let office = Office::open().await;
    let paced = |settings: &mut hotline_persistence::tables::channels::ChannelSettings| {
        settings.sends_per_second = Some(PER_SECOND);
    };
    let channel = office.channel(ChannelType::Whatsapp, "1101", paced).await.id;
    let begin = Instant::now();
    for recipient in 0..50 {
        office.text(channel, &number(recipient), "hello").await;
    }
    let accepted = office.provider.accepts("1101", 50).await;
    for (index, call) in accepted.iter().enumerate() {
        let earliest = Duration::from_secs(1) / (PER_SECOND - SPARE) * (index as u32).saturating_sub(SPARE - 1);
        assert!(call.at >= begin + earliest, "message {index} came after {:?}, not {earliest:?}", call.at - begin);
    }
    office.close().await;
}

#[actix_web::test]
async fn a_recipient_receives_a_burst_and_then_one_message_per_interval_and_delays_no_other() {
    const INTERVAL: Duration = Duration::from_millis(300);
    /// Longer than the test.
    const LONG: Duration = Duration::from_secs(3600);
    const BURST: usize = 3;
    let office = Office::open().await;
    let paced = |account: &'static str, interval: Duration| {
        office.channel(ChannelType::Whatsapp, account, move |settings| {
            settings.recipient_interval_ms = Some(interval.as_millis() as u32);
            settings.recipient_burst = Some(BURST as u32);
        })
    };
    let channel = paced("1102", INTERVAL).await.id;
    let begin = Instant::now();
    for message in 0..6 {
        office.text(channel, &number(0), &format!("{message}")).await;
    }
    for (index, call) in office.provider.accepts("1102", 6).await.iter().enumerate() {
        assert_eq!(call.text(), index.to_string());
        let earliest = INTERVAL * index.saturating_sub(BURST - 1) as u32;
        assert!(call.at >= begin + earliest, "message {index} came after {:?}, not {earliest:?}", call.at - begin);
    }
    let channel = paced("1103", LONG).await.id;
    for message in 0..6 {
        office.text(channel, &number(0), &format!("{message}")).await;
    }
    for other in 1..=5 {
        office.text(channel, &number(other), "hello").await;
    }
    let accepted = office.provider.accepts("1103", BURST + 5).await;
    let first: Vec<&str> = accepted.iter().filter(|call| call.to == number(0)).map(|call| call.text()).collect();
    assert_eq!(first, ["0", "1", "2"], "the recipient received more or other messages than its burst");
    office.close().await;
}
