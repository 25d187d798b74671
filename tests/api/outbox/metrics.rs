//! What is on its way to providers, as `/metrics` shows it.

use super::{Office, fast, number, patient};
use crate::steps::sql;
use crate::support::eventually;
use crate::support::metrics::ScrapedMetrics;
use crate::support::provider::Answer;

pub async fn metrics(office: &Office) -> ScrapedMetrics {
    ScrapedMetrics::of(office.app.service.metrics_listener.as_ref().expect("metrics are served").address).await
}

fn messages(state: &str) -> String {
    format!("hotline_outbox_messages{{state=\"{state}\"}}")
}

fn channels(state: &str) -> String {
    format!("hotline_outbox_channels{{state=\"{state}\"}}")
}

fn attempts(end: &str) -> String {
    format!("hotline_outbox_attempts_total{{end=\"{end}\"}}")
}

#[actix_web::test]
async fn waiting_messages_and_outcomes_of_attempts_are_shown() {
    let sending = hotline_actors::channels::SendingOptions { memory_messages_max: 4, ..fast() };
    let office = Office::open_with_metrics(sending, patient()).await;
    let channel = office.phone("1401").await;
    let seen = metrics(&office).await;
    // `noting`: the outcome is being recorded.
    for state in ["waiting", "calling", "noting"] {
        assert_eq!(seen.value(&messages(state)), 0.0, "{state}");
    }
    for end in ["taken", "failed", "retried", "channel_paced", "recipient_paced", "token_refused"] {
        assert_eq!(seen.value(&attempts(end)), 0.0, "{end}");
    }

    // One message is refused, one is retried, a recipient and a channel are rate-limited; then all are accepted.
    let answers = [
        Answer::refuse(400, 131_026, "Message undeliverable"),
        Answer::status(503),
        Answer::recipient_rate_limited(),
        Answer::channel_rate_limited(),
    ];
    office.provider.next("1401", answers);
    for recipient in 0..3 {
        office.text(channel, &number(recipient), "hello").await;
    }
    office.provider.accepts("1401", 2).await;
    eventually("all outcomes are recorded", || async {
        let seen = metrics(&office).await;
        let is_empty = ["waiting", "calling", "noting"].iter().all(|state| seen.value(&messages(state)) == 0.0);
        seen.value(&attempts("taken")) == 2.0 && is_empty
    })
    .await;
    let seen = metrics(&office).await;
    for end in ["failed", "retried", "channel_paced", "recipient_paced"] {
        assert_eq!(seen.value(&attempts(end)), 1.0, "{end}");
    }

    // A provider that hangs has one message of each recipient; memory holds four, the tables the others.
    office.provider.always("1401", Answer::Hang);
    for message in 0..8 {
        office.text(channel, &number(message % 2), &format!("{message}")).await;
    }
    eventually("two hang, two wait, and the tables hold the others", || async {
        let seen = metrics(&office).await;
        let of = |state: &str| seen.value(&messages(state));
        (of("calling"), of("waiting"), seen.value(&channels("behind"))) == (2.0, 2.0, 1.0)
    })
    .await;
    assert_eq!(metrics(&office).await.value(&channels("held")), 0.0);

    // Its token is refused: the channel is held.
    office.provider.always("1401", Answer::token_refused());
    office.provider.release();
    eventually("the channel is held, and all that memory holds waits", || async {
        let seen = metrics(&office).await;
        (seen.value(&channels("held")), seen.value(&messages("waiting"))) == (1.0, 4.0)
    })
    .await;
    assert!(metrics(&office).await.value(&attempts("token_refused")) >= 1.0);

    // Once its token is renewed, the channel sends again.
    office.provider.always("1401", Answer::Accept);
    let renew = "update channels set status = 'connected', updated_at = clock_timestamp() where id = $1";
    sql(&office.app, renew, channel.0).await;
    office.provider.accepts("1401", 10).await;
    eventually("nothing waits", || async {
        let seen = metrics(&office).await;
        ["waiting", "calling", "noting"].iter().all(|state| seen.value(&messages(state)) == 0.0)
            && seen.value(&channels("behind")) == 0.0
            && seen.value(&channels("held")) == 0.0
    })
    .await;
    let seen = metrics(&office).await;
    assert_eq!(seen.value(&attempts("taken")), 10.0);
    assert_eq!(seen.value("hotline_outbox_given_up_total"), 0.0);
    // No label contains a channel, a number or a company.
    for label in ["1401", "channel=", "company"] {
        assert!(seen.with("outbox").iter().all(|(sample, _)| !sample.contains(label)), "{label}");
    }
    office.close().await;
}
