//! The limit of a company's streams and answers held until there is an event, and readers who are too slow.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hotline::api::events::READERS_PER_COMPANY_MAX;
use hotline::web::connections::Limits;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::{comments_due, ids, newest, types};
use crate::support::service::TestOptions;
use crate::support::{Api, OwnApp, Reader, Reply, TestApp, eventually};

/// Asserts that one more reader is refused, with the time after which to retry.
fn check_refused(reply: &Reply) {
    reply.error(429, "ERR_API_RATE_LIMITED");
    assert_eq!(reply.body["error"]["message"], "too many event streams are open");
    assert_eq!(reply.headers["retry-after"], "30");
}

#[actix_web::test]
async fn streams_and_held_answers_of_a_company_are_limited_and_one_that_ends_makes_room() {
    let app = OwnApp::start().await;
    let (_, other) = app.another_company().await;
    let last = newest(&app.api).await;
    let open = (1..READERS_PER_COMPANY_MAX).map(|_| Reader::open(&app.api, "", Some(last)));
    let mut streams = join_all(open).await;
    // An answer is held for at most thirty seconds, so it is requested last.
    let held = tokio::spawn({
        let api = app.api.clone();
        async move { api.get(&format!("/events?after={last}&wait=30")).await }
    });
    let news = app.service.app.engine.store().events.clone().expect("events are kept");
    eventually("an answer is held", || async { news.listener_count() == READERS_PER_COMPANY_MAX }).await;
    check_refused(&app.api.get("/events/stream").await);
    check_refused(&app.api.get(&format!("/events?after={last}&wait=1")).await);
    // A request that does not wait is served, and so is another company.
    app.api.get("/events").await.data(200);
    let mut theirs = Reader::open(&other, "", None).await;
    other.post("/contacts", json!({"name": "Ana"})).await.data(201);
    assert_eq!(types(&theirs.take(1).await), ["contact.created"]);

    let made = app.api.post("/contacts", json!({"name": "Maria"})).await.data(201).clone();
    let received = join_all(streams.iter_mut().map(|stream| stream.take(1))).await;
    assert!(received.iter().all(|events| ids(events) == [last + 1] && events[0]["data"] == made), "{:?}", received[0]);
    assert_eq!(held.await.expect("an answer").data(200)[0]["data"], made);
    // The held answer has made room for one.
    streams.push(Reader::open(&app.api, "", None).await);
    check_refused(&app.api.get("/events/stream").await);
    drop(streams.pop());
    // A closed connection is noticed when something is sent on it.
    let has_room = || async {
        app.api.post("/contacts", json!({"name": "Ana"})).await.data(201);
        app.api.get(&format!("/events?after={last}&wait=30")).await.status == 200
    };
    eventually("a closed stream makes room", has_room).await;
    drop((streams, theirs));
    app.stop().await;
}

/// The ids of the complete events in an answer that was cut off.
fn complete_event_ids(answer: &[u8]) -> Vec<i64> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    // Chunk sizes and chunks alternate; one-line JSON contains no `\r\n`.
    let body: String = body.split("\r\n").skip(1).step_by(2).collect();
    let Some((blocks, _)) = body.rsplit_once("\n\n") else { return Vec::new() };
    let events = blocks.split("\n\n").filter_map(|block| {
        let data = block.lines().find_map(|line| line.strip_prefix("data: "))?;
        let event: Value = serde_json::from_str(data).expect("JSON");
        event["id"].as_i64()
    });
    events.collect()
}

/// Contacts of 16 KB each: more than both sides' windows hold.
const CONTACTS: usize = 600;

/// Opens a stream, of which nothing is read.
async fn open_and_read_nothing(app: &OwnApp, after: i64) -> TcpStream {
    /// Small, yet large enough that data in transit at a close arrives soon.
    const WINDOW_BYTES: u32 = 64 << 10;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(WINDOW_BYTES).expect("a small window");
    let mut slow = socket.connect(app.address).await.expect("connected");
    let request = format!(
        "GET /api/v1/events/stream?after={after} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
        // The host that the other readers send: streams share what is read for the same site.
        app.address,
        app.company.key
    );
    slow.write_all(request.as_bytes()).await.expect("asked");
    let metrics = app.service.app.metrics.clone();
    eventually("it streams", || async { metrics.events.open() == 1 }).await;
    slow
}

async fn import_contacts(app: &TestApp) {
    let long = ("x".repeat(7_900), "y".repeat(7_900));
    let row = |number: usize| json!({"name": format!("{number}"), "headline": long.0, "sourceUrl": long.1});
    let rows: Vec<Value> = (0..CONTACTS).map(row).collect();
    assert_eq!(app.api.post("/contacts/import", json!({"contacts": rows})).await.data(200)["created"], CONTACTS);
}

#[actix_web::test]
async fn a_stream_that_begins_at_the_end_receives_events_at_once_however_far_another_one_lags() {
    let app = OwnApp::start().await;
    let begin = newest(&app.api).await;
    let slow = open_and_read_nothing(&app, begin).await;
    for _ in 0..2 {
        import_contacts(&app).await;
    }
    let last = newest(&app.api).await;
    let opened = Instant::now();
    let mut new = Reader::open(&app.api, "", None).await;
    let mut beyond = Reader::open(&app.api, &format!("?after={}", last + 1_000_000), None).await;
    for name in ["Maria", "Ana"] {
        app.api.post("/contacts", json!({"name": name})).await.data(201);
    }
    let comments_max = comments_due(opened);
    let (mut received, mut comments) = (Vec::<Value>::new(), 0);
    while received.len() < 2 {
        let block = new.next_block().await.expect("the stream has not ended");
        match block.lines().find_map(|line| line.strip_prefix("data: ")) {
            Some(event) => received.push(serde_json::from_str(event).expect("JSON")),
            // A stream that only the clock wakes sends a comment before it looks for events.
            None => {
                comments += 1;
                assert!(comments <= comments_max, "only the clock has woken it");
            }
        }
    }
    assert_eq!(ids(&received), [last + 1, last + 2]);
    // A reader with a position beyond the end disturbs no other.
    let mut another = Reader::open(&app.api, "", Some(last)).await;
    app.api.post("/contacts", json!({"name": "Clara"})).await.data(201);
    assert_eq!(ids(&another.take(3).await), [last + 1, last + 2, last + 3]);
    assert_eq!(ids(&new.take(1).await), [last + 3]);
    // The reader beyond the end is sent what happens after its stream has begun.
    let received = tokio::spawn(async move { beyond.next().await.expect("an event") });
    eventually("it is sent an event", || async {
        app.api.post("/contacts", json!({"name": "Eva"})).await.data(201);
        received.is_finished()
    })
    .await;
    let received = received.await.expect("an event");
    assert!(received["id"].as_i64().is_some_and(|id| id > last && id < last + 1_000_000), "{received}");
    drop((slow, new, another));
    app.stop().await;
}

#[actix_web::test]
async fn a_stream_that_lags_shows_a_queue_that_was_created_after_it_began() {
    /// Longer than what is sent at once.
    const TAIL_BYTES: usize = 256 << 10;
    let app = OwnApp::start().await;
    let begin = newest(&app.api).await;
    let contact = app.contact("5511900000001").await;
    let mut slow = open_and_read_nothing(&app, begin).await;
    import_contacts(&app).await;
    let queue = app.api.post("/queues", json!({"name": "Billing"})).await.data(201)["id"].clone();
    let opened = json!({"channelId": app.company.phone, "contactId": contact, "queueId": queue});
    app.api.post("/tickets", opened).await.data(201);
    import_contacts(&app).await;
    // By now, what the streams share no longer includes the ticket's event.
    let end = app.api.get("/events?after=latest").await.body["meta"]["lastId"].as_i64().expect("an id");
    let (_, quick) = take_all(&app.api, begin, usize::try_from(end - begin).expect("few")).await;

    let (mut answer, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    let shown = loop {
        let count = slow.read(&mut piece).await.expect("more is sent");
        assert!(count > 0, "the stream ended before the ticket's event");
        answer.extend_from_slice(&piece[..count]);
        let tail = String::from_utf8_lossy(&answer[answer.len().saturating_sub(TAIL_BYTES)..]).into_owned();
        let event = tail.split_once("event: ticket.opened\ndata: ").and_then(|(_, rest)| rest.split_once("\n\n"));
        if let Some((event, _)) = event {
            let event: Value = serde_json::from_str(event).expect("JSON");
            break event["data"]["queue"].clone();
        }
    };
    assert_eq!(shown, json!({"id": queue, "name": "Billing"}));
    drop((slow, quick));
    app.stop().await;
}

/// Reads `count` events after this one; returns their ids and the reader. A reader that a busy machine delays until it
/// is cut off continues from its last event.
async fn take_all(api: &Api, after: i64, count: usize) -> (Vec<i64>, Reader) {
    let mut taken: Vec<i64> = Vec::new();
    loop {
        let mut reader = Reader::open(api, "", Some(taken.last().copied().unwrap_or(after))).await;
        while taken.len() < count
            && let Some(event) = reader.next().await
        {
            taken.extend(ids(&[event]));
        }
        if taken.len() == count {
            return (taken, reader);
        }
    }
}

#[actix_web::test]
async fn a_reader_who_reads_nothing_is_cut_off_and_continues_after_the_last_id_they_have_read() {
    let defaults = TestOptions::default();
    let limits = Limits { write: Duration::from_millis(500), ..defaults.limits };
    let app = OwnApp::start_with(TestOptions { limits, ..defaults }).await;
    let begin = newest(&app.api).await;
    let metrics = app.service.app.metrics.clone();
    let mut slow = open_and_read_nothing(&app, begin).await;
    import_contacts(&app).await;
    let (all, quick) = take_all(&app.api, begin, CONTACTS).await;
    assert!(all.is_sorted_by(|one, next| one + 1 == *next), "the quick reader missed an event");
    eventually("the slow one is cut off", || async { metrics.events.open() == 1 }).await;

    // What was in transit, up to the end of the connection, whether or not that is an error.
    let mut answer = Vec::new();
    drop(slow.read_to_end(&mut answer).await);
    let read = complete_event_ids(&answer);
    assert!(read.len() < CONTACTS, "the slow reader was not cut off");
    assert_eq!(read, all[..read.len()], "the slow reader did not get each event once, in order");
    let last = read.last().copied().unwrap_or(begin);
    let (rest, resumed) = take_all(&app.api, last, CONTACTS - read.len()).await;
    assert_eq!(rest, all[read.len()..], "the reader did not continue after its last event");
    drop((quick, resumed));
    app.stop().await;
}
