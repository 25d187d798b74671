//! Question: how long after the answer to a change does its event reach a stream, and the receiver of a webhook; and
//! how much more does a send cost when events are kept?
//!
//! `cargo bench --bench events`; `HOTLINE_BENCH_RATE` changes how many changes a second are asked for, and
//! `HOTLINE_BENCH_MESSAGES` how many there are.
//!
//! Messages are sent over HTTP in many tickets, at an even rate. Meanwhile a stream of the company's events is open in
//! the same process, and records when each `message.created` arrives. The output has the time from the answer to a send
//! to its event, zero if the event arrives first. Then the same with a webhook in place of the stream; its receiver is
//! a thread of this process.
//!
//! Then as many messages are sent, 64 at once, alternately to a service that keeps events and to one that keeps none;
//! nothing reads the events. The processor time of PostgreSQL is compared, and that of this process (Hotline with its
//! client). The journal is in the temporary directory, so `TMPDIR` chooses the disk.
//!
//! Aim: half of the events within 30 ms at 1,000 changes a second; a send costs PostgreSQL at most 15 % more, and
//! Hotline 10 %.

// A bench whose setup fails cannot continue.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use support::Postgres;
use support::receiver::{self, Received};
use support::stage::Stage;
use support::usage::{POSTGRES, Usage};

/// Changes a second while their events are timed.
const RATE: usize = 1000;

/// Messages of each part.
const MESSAGES: usize = 10_000;

/// Tickets they are sent in.
const TICKETS: usize = 200;

/// Concurrent sends while the cost is measured.
const AT_ONCE: usize = 64;

/// Measured turns of each side.
const TURNS: usize = 3;

fn main() {
    if !support::is_bench() {
        return;
    }
    actix_rt::System::new().block_on(run());
}

async fn run() {
    let (rate, messages) =
        (support::size("HOTLINE_BENCH_RATE", RATE), support::size("HOTLINE_BENCH_MESSAGES", MESSAGES));
    let postgres = Postgres::start().await;
    let allow = |settings: &mut hotline::service::Settings| {
        settings.webhooks.allowed_networks = vec!["127.0.0.0/8".parse().expect("a network")];
    };
    let publishing = Rc::new(Stage::start(&postgres, "publishing", (1, TICKETS), allow).await);
    measure_stream(&publishing, rate, messages).await;
    measure_webhook(&publishing, rate, messages).await;

    let silent =
        Rc::new(Stage::start(&postgres, "silent", (1, TICKETS), |settings| settings.events.enabled = false).await);
    let (mut with, mut without) = (Cost::default(), Cost::default());
    for turn in 0..=TURNS {
        let (more, less) = (cost(&publishing, &postgres, messages).await, cost(&silent, &postgres, messages).await);
        // The first turn, which opens the connections, does not count.
        if turn > 0 {
            with.add(more);
            without.add(less);
        }
    }
    println!("{:>10} {:>22} {:>22}", "", "PostgreSQL / send", "Hotline+client / send");
    let each = |ticks: u64| 10_000.0 * ticks as f64 / (TURNS * messages) as f64;
    for (name, cost) in [("events", &with), ("no events", &without)] {
        println!("{name:>10} {:>19.1} us {:>19.1} us", each(cost.postgres), each(cost.own));
    }
    let ratio = |with: u64, without: u64| with as f64 / without.max(1) as f64;
    let (postgres_ratio, own_ratio) = (ratio(with.postgres, without.postgres), ratio(with.own, without.own));
    println!("{:>10} {postgres_ratio:>22.3} {own_ratio:>22.3}", "ratio");
    for stage in [publishing, silent] {
        let stage = Rc::into_inner(stage).expect("nobody else has it");
        stage.service.stop().await.expect("the service stops");
    }
}

/// Prints the time from the answers to the events in a stream.
async fn measure_stream(stage: &Rc<Stage>, rate: usize, messages: usize) {
    let url = stage.url("/events/stream?types=message.created");
    let response = stage.client.get(url).bearer_auth(&stage.companies[0].key).send().await.expect("a stream");
    let mut body = response.bytes_stream();
    // The first piece says that the stream is open.
    assert!(body.next().await.is_some());
    let heard = actix_rt::spawn(async move {
        let (mut heard, mut text) = (HashMap::with_capacity(messages), String::new());
        while heard.len() < messages {
            let piece = body.next().await.expect("the stream continues").expect("a piece");
            let now = Instant::now();
            text.push_str(std::str::from_utf8(&piece).expect("text"));
            while let Some((block, rest)) = text.split_once("\n\n") {
                if let Some(data) = block.lines().find_map(|line| line.strip_prefix("data: ")) {
                    let event: Value = serde_json::from_str(data).expect("JSON");
                    heard.insert(event["data"]["id"].as_i64().expect("an id"), now);
                }
                text = rest.to_owned();
            }
        }
        heard
    });
    let answered = send_all(stage, rate, messages).await;
    print_times("a stream", &answered, &heard.await.expect("all events"));
}

/// Prints the time from the answers to the events at the receiver of a webhook.
async fn measure_webhook(stage: &Rc<Stage>, rate: usize, messages: usize) {
    let received = Arc::new(Received::default());
    received.keep_bodies();
    let receiver = receiver::serve(received.clone());
    let key = &stage.companies[0].key;
    let hook = json!({"url": format!("http://{receiver}/"), "types": ["message.created"]});
    let made = stage.post(key, "/webhooks", &hook).await;
    let answered = send_all(stage, rate, messages).await;
    received.wait_for(messages).await;
    let id = |body: &[u8]| serde_json::from_slice::<Value>(body).ok()?["data"]["id"].as_i64();
    let kept = received.take_bodies();
    // Reversed, so that an event that arrived twice keeps its first time.
    let heard = kept.iter().rev().filter_map(|(at, body)| Some((id(body)?, *at))).collect();
    print_times("a webhook", &answered, &heard);
    let hook = stage.url(&format!("/webhooks/{}", made["data"]["id"]));
    let removed = stage.client.delete(hook).bearer_auth(key).send().await.expect("an answer");
    assert!(removed.status().is_success(), "{}", removed.status());
}

/// The ids of the messages with the times of their answers, and the time until the last answer.
type Answered = (Vec<(i64, Instant)>, Duration);

/// Sends messages at an even rate.
async fn send_all(stage: &Rc<Stage>, rate: usize, messages: usize) -> Answered {
    let began = Instant::now();
    let mut sends = Vec::with_capacity(messages);
    for number in 0..messages {
        let due = began + Duration::from_secs_f64(number as f64 / rate as f64);
        tokio::time::sleep_until(due.into()).await;
        let stage = stage.clone();
        sends.push(actix_rt::spawn(async move { stage.send(&stage.companies[0], number).await }));
    }
    let mut answered = Vec::with_capacity(messages);
    for send in sends {
        answered.push(send.await.expect("an answer"));
    }
    let took = answered.iter().map(|(_, at)| at.duration_since(began)).max().unwrap_or_default();
    (answered, took)
}

fn print_times(who: &str, (answered, took): &Answered, heard: &HashMap<i64, Instant>) {
    let mut times: Vec<Duration> = answered.iter().map(|(id, at)| heard[id].saturating_duration_since(*at)).collect();
    times.sort_unstable();
    let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let (count, reached) = (times.len(), times.len() as f64 / took.as_secs_f64());
    println!("{count} changes at {reached:.0}/s: {who} hears {median:.1?} after the answer (median), {p99:.1?} (p99)");
}

/// Processor time, in hundredths of a second.
#[derive(Clone, Copy, Default)]
struct Cost {
    postgres: u64,
    own: u64,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.postgres += other.postgres;
        self.own += other.own;
    }

    fn since(before: &Usage, postgres: &Postgres) -> Self {
        let used = Usage::now(postgres).since(before);
        Self { postgres: used.of(POSTGRES), own: used.total() - used.of(POSTGRES) }
    }
}

/// The processor time of this many sends, until the tables have them.
async fn cost(stage: &Rc<Stage>, postgres: &Postgres, messages: usize) -> Cost {
    let before = Usage::now(postgres);
    let company = &stage.companies[0];
    stream::iter(0..messages)
        .map(|number| stage.send(company, number))
        .buffer_unordered(AT_ONCE)
        .for_each(|_| async {})
        .await;
    stage.drain().await;
    Cost::since(&before, postgres)
}
