//! Question: how many events a second are delivered to one webhook and to 100, and what fraction is that of the posts
//! that a bare loop of the same HTTP client makes to the same receiver?
//!
//! `cargo bench --bench deliveries`; `HOTLINE_BENCH_MESSAGES` changes how many deliveries a round has.
//!
//! Events of messages wait in the log. The dispatcher is asked to deliver all of them again: it reads, serializes,
//! signs, posts and records each. The loop makes as many posts of the same size, as many of them at once. The two
//! alternate. Five companies have 20 webhooks each, as many as a company may have. The receiver is a thread of this
//! process, and accepts everything.
//!
//! Aim: at least half of the loop.

// A bench whose setup fails cannot continue.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use serde_json::json;
use support::Postgres;
use support::receiver::{self, Received};
use support::stage::{Stage, Tenant};
use support::usage::Usage;

/// Deliveries of a round.
const DELIVERIES: usize = 20_000;

/// Measured turns of each side.
const TURNS: usize = 3;

const TICKETS: usize = 50;

/// Concurrent sends, which fill the log before the measurement.
const FILL_CONCURRENCY: usize = 64;

/// Companies, and webhooks of each.
const SHAPES: [(usize, usize); 2] = [(1, 1), (5, 20)];

/// The service's limits of concurrent attempts: of a webhook, and of a company.
const ATTEMPTS_PER_WEBHOOK: usize = 32;
const ATTEMPTS_PER_COMPANY: usize = 96;

fn main() {
    if !support::is_bench() {
        return;
    }
    actix_rt::System::new().block_on(run());
}

async fn run() {
    let deliveries = support::size("HOTLINE_BENCH_MESSAGES", DELIVERIES);
    let received = Arc::new(Received::default());
    let receiver = receiver::serve(received.clone());
    let postgres = Postgres::start().await;
    println!("{:>10} {:>14} {:>14} {:>7}", "webhooks", "loop", "delivered", "ratio");
    for (index, (companies, webhooks)) in SHAPES.into_iter().enumerate() {
        let count = companies * webhooks;
        // Events of each company; each of its webhooks gets all of them.
        let events = deliveries / count;
        let name = format!("deliveries{index}");
        let stage = Stage::start(&postgres, &name, (companies, TICKETS), |settings| {
            settings.webhooks.allowed_networks = vec!["127.0.0.0/8".parse().expect("a network")];
        })
        .await;
        let mut hooks = Vec::with_capacity(count);
        for company in &stage.companies {
            for _ in 0..webhooks {
                let hook = json!({"url": format!("http://{receiver}/"), "types": ["message.created"]});
                let made = stage.post(&company.key, "/webhooks", &hook).await;
                hooks.push((company, made["data"]["id"].as_i64().expect("a webhook")));
            }
            let send = |number| stage.send(company, number);
            stream::iter(0..events).map(send).buffer_unordered(FILL_CONCURRENCY).for_each(|_| async {}).await;
        }
        received.wait_for(events * count).await;
        let bytes = received.mean_bytes();
        let at_once = (ATTEMPTS_PER_WEBHOOK * webhooks).min(ATTEMPTS_PER_COMPANY) * companies;
        let (mut looped, mut delivered) = (Duration::ZERO, Duration::ZERO);
        let (mut for_loop, mut for_delivered) = (Usage::default(), Usage::default());
        for turn in 0..=TURNS {
            let body = vec![b'x'; bytes];
            let began = Usage::now(&postgres);
            let bare_time = time_bare_posts(&stage, receiver.to_string(), &body, events * count, at_once).await;
            let between = Usage::now(&postgres);
            let replay_time = time_replays(&stage, &hooks, &received, events * count).await;
            // The first turn, which opens the connections, does not count.
            if turn > 0 {
                looped += bare_time;
                delivered += replay_time;
                for_loop.add(&between.since(&began));
                for_delivered.add(&Usage::now(&postgres).since(&between));
            }
        }
        let rate = |time: Duration| (TURNS * events * count) as f64 / time.as_secs_f64();
        let (looped, delivered) = (rate(looped), rate(delivered));
        println!("{count:>10} {looped:>12.0}/s {delivered:>12.0}/s {:>7.2}", delivered / looped);
        for (what, used) in [("loop", for_loop), ("delivered", for_delivered)] {
            let shares = used.us_each(TURNS * events * count);
            let shares: Vec<String> = shares.iter().map(|(name, us)| format!("{name} {us:.0}")).collect();
            println!("  us for each of the {what}: {}", shares.join(", "));
        }
        stage.service.stop().await.expect("the service stops");
        received.reset_counts();
    }
}

/// How long the client alone takes to make `count` posts.
async fn time_bare_posts(stage: &Stage, receiver: String, body: &[u8], count: usize, at_once: usize) -> Duration {
    let url = format!("http://{receiver}/");
    let began = Instant::now();
    let post = |_| async {
        let answer = stage.client.post(&url).body(body.to_vec()).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{}", answer.status());
    };
    stream::iter(0..count).map(post).buffer_unordered(at_once).for_each(|()| async {}).await;
    began.elapsed()
}

/// How long it takes to deliver everything once more.
async fn time_replays(stage: &Stage, hooks: &[(&Tenant, i64)], received: &Received, count: usize) -> Duration {
    received.reset_counts();
    let began = Instant::now();
    let replay = |(company, id): &(&Tenant, i64)| {
        let (key, path) = (company.key.clone(), format!("/webhooks/{id}/replay"));
        async move { stage.post(&key, &path, &json!({"after": 0})).await }
    };
    join_all(hooks.iter().map(replay)).await;
    received.wait_for(count).await;
    let took = began.elapsed();
    assert_eq!(received.count.load(Ordering::Acquire), count, "each once");
    took
}
