//! A reader that continues from the last id misses no event and gets none twice, while others write.

use futures_util::future::join_all;
use serde_json::json;

use super::{after, ids, newest};
use crate::support::{Reader, TestApp};

/// Writers: half of them write live records, half plain ones.
const WRITERS: usize = 16;
const WRITES: usize = 12;

/// Readers: half of them have streams, half held answers.
const READERS: usize = 20;

#[actix_web::test]
async fn twenty_readers_read_every_event_once_and_in_order_while_sixteen_write() {
    let app = TestApp::shared().await;
    let sessions = join_all((0..WRITERS).map(|number| {
        let app = &app;
        async move { app.session(&format!("visitor-{number}")).await.0 }
    }))
    .await;
    let begin = newest(&app.api).await;
    let writers = sessions.iter().enumerate().map(async |(number, session)| {
        for write in 0..WRITES {
            let name = format!("{number}-{write}");
            if number % 2 == 0 {
                let message = json!({"body": name});
                app.api.post(&format!("/webchat/sessions/{session}/messages"), message).await.data(201);
            } else {
                app.api.post("/contacts", json!({"name": name})).await.data(201);
            }
        }
    });
    // Each first message opens a ticket as well.
    let events = WRITERS * WRITES + WRITERS / 2;
    let readers = (0..READERS).map(async |number| {
        let mut seen = Vec::new();
        if number % 2 == 0 {
            let mut stream = Reader::open(&app.api, "", Some(begin)).await;
            return ids(&stream.take(events).await);
        }
        let mut last = begin;
        while seen.len() < events {
            let reply = app.api.get(&format!("/events?after={last}&limit={}&wait=30", number + 1)).await;
            seen.extend(ids(reply.data(200).as_array().expect("a list")));
            last = reply.body["meta"]["lastId"].as_i64().expect("an id");
        }
        seen
    });
    let (_, seen) = tokio::join!(join_all(writers), join_all(readers));
    let expected: Vec<i64> = (begin + 1..=begin + i64::try_from(events).expect("few")).collect();
    for (reader, seen) in seen.iter().enumerate() {
        assert_eq!(seen, &expected, "reader {reader}");
    }
    assert_eq!(ids(&after(&app.api, begin).await), expected);
    app.stop().await;
}
