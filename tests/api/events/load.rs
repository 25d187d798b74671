//! Five thousand open streams of one process.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hotline::api::events::READERS_PER_COMPANY_MAX;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;

use crate::support::{OwnApp, Reader};

const STREAMS: usize = 5_000;

/// Open files: both ends of each stream are in this process.
const FILES: u64 = 2 * STREAMS as u64 + 1_000;

/// Longest time from the answer to a change until the last of a company's readers has it, while all companies change
/// something.
const RECEIVED_WITHIN: Duration = Duration::from_secs(5);

#[actix_web::test]
#[ignore = "five thousand streams: make load-streams"]
async fn five_thousand_streams_receive_the_events_of_their_own_company_only() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    assert!(hard >= FILES, "the system must allow {FILES} open files");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("the limit is raised");
    let app = OwnApp::start().await;
    let per_company = READERS_PER_COMPANY_MAX;
    let mut companies = Vec::new();
    for _ in 0..STREAMS / per_company {
        let (_, api) = app.another_company().await;
        let streams = join_all((0..per_company).map(|_| Reader::open(&api, "", None))).await;
        companies.push((api, streams));
    }
    let metrics = app.service.app.metrics.clone();
    assert_eq!(metrics.events.open(), STREAMS as u64);

    let rounds = companies.iter_mut().enumerate().map(|(number, (api, streams))| async move {
        let name = format!("Contact {number}");
        api.post("/contacts", json!({"name": name})).await.data(201);
        let answered = Instant::now();
        for received in join_all(streams.iter_mut().map(|stream| stream.take(1))).await {
            assert_eq!(received[0]["data"]["name"], name, "the event of another company");
        }
        answered.elapsed()
    });
    let times = join_all(rounds).await;
    let last = times.iter().max().copied().unwrap_or_default();
    println!("{STREAMS} streams: all have received it {last:.0?} after the answer");
    assert!(last < RECEIVED_WITHIN, "{last:?}");
    drop(companies);
    app.stop().await;
}
