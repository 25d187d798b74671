//! Messages of a ticket arrive in the order in which they were accepted.

use std::time::Duration;

use futures_util::future::join_all;

use super::{Office, number};
use crate::support::eventually;
use crate::support::provider::Answer;

const RECIPIENTS: usize = 12;
const MESSAGES: usize = 15;

#[actix_web::test]
async fn every_ticket_keeps_its_order_while_some_calls_fail_or_take_longer() {
    let office = Office::open().await;
    let channel = office.phone("1001").await;
    // Answers of every kind, so that no two messages take the same time or number of tries.
    let answers = (0..RECIPIENTS * MESSAGES).map(|index| match index % 7 {
        0 => Answer::status(503),
        1 => Answer::Accept.after(Duration::from_millis((index % 13) as u64)),
        2 => Answer::refuse(400, 131_000, "Something went wrong"),
        3 => Answer::recipient_rate_limited(),
        _ => Answer::Accept,
    });
    office.provider.next("1001", answers);
    let sends = (0..RECIPIENTS).map(|recipient| {
        let office = &office;
        async move {
            let mut jobs = Vec::new();
            for message in 0..MESSAGES {
                jobs.push(office.text(channel, &number(recipient), &format!("{recipient}/{message}")).await);
            }
            jobs
        }
    });
    let jobs = join_all(sends).await;
    let accepted = office.provider.accepts("1001", RECIPIENTS * MESSAGES).await;
    for recipient in 0..RECIPIENTS {
        let texts: Vec<&str> =
            accepted.iter().filter(|call| call.to == number(recipient)).map(|call| call.text()).collect();
        let expected: Vec<String> = (0..MESSAGES).map(|message| format!("{recipient}/{message}")).collect();
        assert_eq!(texts, expected);
    }
    for job in jobs.iter().flatten() {
        let message = office.wait_for_status(job, "sent").await;
        assert!(message["sentAt"].is_string() && message["error"].is_null(), "{message}");
    }
    let provider_ids: i64 = sqlx::query_scalar(
        "select count(distinct provider_message_id) from messages where company_id = $1 and channel_id = $2",
    )
    .bind(office.app.company.id)
    .bind(channel)
    .fetch_one(&office.app.db)
    .await
    .expect("count");
    assert_eq!(provider_ids, (RECIPIENTS * MESSAGES) as i64, "not each message has a provider's id of its own");
    office.close().await;
}

#[actix_web::test]
async fn messages_beyond_the_memory_limit_wait_in_the_tables_and_keep_their_order() {
    let sending = hotline_actors::channels::SendingOptions { memory_messages_max: 8, ..super::fast() };
    let office = Office::open_with(sending, super::patient()).await;
    let channel = office.phone("1002").await;
    office.provider.always("1002", Answer::status(503));
    for message in 0..60 {
        office.text(channel, &number(message % 3), &format!("{message}")).await;
    }
    office.provider.always("1002", Answer::Accept);
    let accepted = office.provider.accepts("1002", 60).await;
    for recipient in 0..3 {
        let texts: Vec<&str> =
            accepted.iter().filter(|call| call.to == number(recipient)).map(|call| call.text()).collect();
        let expected: Vec<String> =
            (0..60).filter(|message| message % 3 == recipient).map(|message| message.to_string()).collect();
        assert_eq!(texts, expected);
    }
    eventually("no message is queued", || async {
        office.app.api.get("/messages?status=queued").await.data(200) == &serde_json::json!([])
    })
    .await;
    assert_eq!(office.provider.accepted_count("1002"), 60, "a message was sent twice");
    office.close().await;
}
