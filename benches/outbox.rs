//! Question: how many messages a second go from the outboxes to their providers, through one channel and through a
//! hundred, and what fraction is that of the calls of a bare loop with the same HTTP client?
//!
//! `cargo bench --bench outbox`; `HOTLINE_BENCH_MESSAGES` makes a round smaller.
//!
//! A round fills the outboxes while the channels are disconnected, connects them, and ends when the provider, a server
//! on a thread of its own that accepts everything, has the last message. Meanwhile each hand-over is journaled and the
//! persister writes it to PostgreSQL; messages beyond those that fit into memory are read from the tables. The bare loop
//! posts as many bodies of the same shape to the same server with as many calls in flight, and does nothing with the
//! answers but read them. The two alternate, and each has one thread for its HTTP client: the loop has the main thread,
//! the outboxes use the senders' own, as in the service. Pacing is off. The journal is in the temporary directory, so
//! `TMPDIR` chooses the disk.
//!
//! The column `live`: the same messages are sent while the channels are connected, and a round ends when the provider
//! has the last one. It includes the sends themselves (decided, journaled, answered). The column `sends` has only
//! the sends, while the channels are disconnected.
//!
//! Aim: at least 0.6 of the bare loop.

// A bench whose setup fails cannot continue.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use serde_json::json;
use support::Postgres;
use support::provider::{BODY, Desk, in_flight, serve};

/// Messages of a round.
const MESSAGES: usize = 20_000;

/// Recipients of a round; each receives its messages one after the other.
const RECIPIENTS: usize = 2_000;

/// Measured turns of each side.
const TURNS: usize = 3;

fn main() {
    if !support::is_bench() {
        return;
    }
    actix_rt::System::new().block_on(run());
}

async fn run() {
    let messages = support::size("HOTLINE_BENCH_MESSAGES", MESSAGES);
    let taken = Arc::new(AtomicUsize::new(0));
    let address = serve(taken.clone());
    let postgres = Postgres::start().await;
    println!(
        "{:>9} {:>9} {:>14} {:>14} {:>7} {:>14} {:>14} {:>7}",
        "channels", "messages", "bare loop", "outboxes", "ratio", "sends", "live", "ratio"
    );
    for channels in [1, 100] {
        let desk = Desk::open(&postgres, address, channels, RECIPIENTS.min(messages), messages).await;
        let [mut bare, mut outboxes, mut sends, mut live] = [Duration::ZERO; 4];
        for turn in 0..=TURNS {
            let loop_time = bare_loop(address, channels, messages).await;
            let (fill_time, drain_time) = desk.fill_and_drain(&taken).await;
            let live_time = desk.send_live(&taken).await;
            // The first turn, which opens the connections, does not count.
            if turn > 0 {
                bare += loop_time;
                sends += fill_time;
                outboxes += drain_time;
                live += live_time;
            }
        }
        desk.close().await;
        let rate = |time: Duration| (TURNS * messages) as f64 / time.as_secs_f64();
        println!(
            "{channels:>9} {messages:>9} {:>12.0}/s {:>12.0}/s {:>7.2} {:>12.0}/s {:>12.0}/s {:>7.2}",
            rate(bare),
            rate(outboxes),
            rate(outboxes) / rate(bare),
            rate(sends),
            rate(live),
            rate(live) / rate(bare),
        );
    }
}

/// How long as many calls take as there are messages.
async fn bare_loop(address: SocketAddr, channels: usize, messages: usize) -> Duration {
    let client = hotline::tls::client().build().expect("a client");
    let begin = Instant::now();
    let loops = (0..channels).map(|channel| {
        let (client, url) = (client.clone(), format!("http://{address}/v23.0/{channel}/messages"));
        async move {
            let calls = (0..messages / channels).map(|message| {
                let body = json!({"messaging_product": "whatsapp", "recipient_type": "individual",
                    "to": format!("55119{message:08}"), "biz_opaque_callback_data": message.to_string(),
                    "type": "text", "text": {"body": BODY}});
                client.post(&url).bearer_auth("token").json(&body).send()
            });
            stream::iter(calls)
                .buffer_unordered(in_flight(channels))
                .for_each(async |answer| {
                    let answer = answer.expect("an answer").bytes().await.expect("a body");
                    assert!(answer.starts_with(b"{"));
                })
                .await;
        }
    });
    join_all(loops).await;
    begin.elapsed()
}
