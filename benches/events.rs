//! Question: how long after a change is answered does who streams events hear of it, and the receiver of a webhook; and what does
//! a send cost more for being told?
//!
//! `cargo bench --bench events`; `HOTLINE_BENCH_RATE` changes how many changes a second are asked for, and
//! `HOTLINE_BENCH_MESSAGES` how many there are.
//!
//! Messages are sent over HTTP in many tickets, at an even rate. A stream of the company's events is open meanwhile in the same
//! process, and notes when each `message.created` comes. What is printed is the time from the answer to a send to its event, which
//! is none where the event comes first. The same again with a webhook in place of the stream, whose receiver is a thread of this
//! process.
//!
//! Then as many are sent as fast as 64 at once are answered, by a service that keeps events and by one that keeps none, in
//! turns, with nobody listening; what the processes of PostgreSQL have computed is compared, and what this one has, which is
//! Hotline with its client. The journal lies in the temporary directory, so `TMPDIR` chooses the disk.
//!
//! Aim: half of the events within 30 ms at 1,000 changes a second; a send costs PostgreSQL at most 15 % more, and Hotline 10 %.

// A bench that cannot be set up has nothing to go on with.
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

/// Changes a second that are listened to.
const RATE: usize = 1000;

/// Messages of each part.
const MESSAGES: usize = 10_000;

/// Tickets they are sent in.
const TICKETS: usize = 200;

/// Sends at once, where the cost is measured.
const AT_ONCE: usize = 64;

/// Turns of each side.
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
    let told = Rc::new(Stage::start(&postgres, "told", (1, TICKETS), allow).await);
    listen(&told, rate, messages).await;
    receive(&told, rate, messages).await;

    let silent =
        Rc::new(Stage::start(&postgres, "silent", (1, TICKETS), |settings| settings.events.enabled = false).await);
    let (mut with, mut without) = (Cost::default(), Cost::default());
    for turn in 0..=TURNS {
        let (more, less) = (cost(&told, &postgres, messages).await, cost(&silent, &postgres, messages).await);
        // The first turn opens the connections.
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
    for stage in [told, silent] {
        let stage = Rc::into_inner(stage).expect("nobody else has it");
        stage.service.stop().await.expect("the service stops");
    }
}

/// The time from the answers to the stream.
async fn listen(stage: &Rc<Stage>, rate: usize, messages: usize) {
    let url = stage.url("/events/stream?types=message.created");
    let response = stage.client.get(url).bearer_auth(&stage.companies[0].key).send().await.expect("a stream");
    let mut body = response.bytes_stream();
    // The first piece says that it is there.
    assert!(body.next().await.is_some());
    let heard = actix_rt::spawn(async move {
        let (mut heard, mut text) = (HashMap::with_capacity(messages), String::new());
        while heard.len() < messages {
            let piece = body.next().await.expect("the stream goes on").expect("a piece");
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
    tell("a stream", &answered, &heard.await.expect("all events"));
}

/// The time from the answers to the receiver of a webhook.
async fn receive(stage: &Rc<Stage>, rate: usize, messages: usize) {
    let received = Arc::new(Received::default());
    received.keep();
    let receiver = receiver::serve(received.clone());
    let key = &stage.companies[0].key;
    let hook = json!({"url": format!("http://{receiver}/"), "types": ["message.created"]});
    let made = stage.post(key, "/webhooks", &hook).await;
    let answered = send_all(stage, rate, messages).await;
    received.reach(messages).await;
    let id = |body: &[u8]| serde_json::from_slice::<Value>(body).ok()?["data"]["id"].as_i64();
    let kept = received.kept();
    // Of one that came twice, the first time.
    let heard = kept.iter().rev().filter_map(|(at, body)| Some((id(body)?, *at))).collect();
    tell("a webhook", &answered, &heard);
    let hook = stage.url(&format!("/webhooks/{}", made["data"]["id"]));
    let removed = stage.client.delete(hook).bearer_auth(key).send().await.expect("an answer");
    assert!(removed.status().is_success(), "{}", removed.status());
}

/// What was sent, each with its answer's time; and how long all of it took.
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

fn tell(who: &str, (answered, took): &Answered, heard: &HashMap<i64, Instant>) {
    let mut times: Vec<Duration> = answered.iter().map(|(id, at)| heard[id].saturating_duration_since(*at)).collect();
    times.sort_unstable();
    let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let (count, reached) = (times.len(), times.len() as f64 / took.as_secs_f64());
    println!("{count} changes at {reached:.0}/s: {who} hears {median:.1?} after the answer (median), {p99:.1?} (p99)");
}

/// What was computed, in hundredths of a second.
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

/// What so many sends cost, up to their being in the tables.
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
