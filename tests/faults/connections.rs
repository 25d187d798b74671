//! Connections without a request, or with one that never ends.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::AsyncWriteExt;

use crate::alone::check;
use crate::mix::Mix;
use crate::raw::{RawResponse, connect, read_until_closed, send_pieces};
use crate::rig::{Needs, Rig};
use crate::summary::Row;
use crate::support::Reply;

const CHANGES_MIN: u64 = 100;

/// Connections that are held open, and file descriptors the run needs for them and everything else.
const HALF_OPEN: usize = 10_000;
const FILE_DESCRIPTORS: u64 = HALF_OPEN as u64 + 1_000;
/// Connections that are being opened at once: fewer than the listen backlog holds.
const OPENED_AT_ONCE: usize = 256;

/// The file descriptors that most systems give a service at first.
const USUAL_FILE_DESCRIPTORS: u32 = 1024;

/// How long the service waits for a head, and then for its client to close (`src/web/connections`); the rest is for
/// the machine, which has to end 10,000 of them.
const HEAD_TIME: Duration = Duration::from_secs(10);
const END_TIME_MAX: Duration = Duration::from_secs(10 + 5 + 15);
/// A body has 20 s whatever its length.
const BODY_TIME: Duration = Duration::from_secs(20);

/// Slow connections of each kind, and the pause between their bytes.
const SLOW_CONNECTIONS: usize = 100;
const DRIP_PAUSE: Duration = Duration::from_millis(500);

/// The longest that others may wait for an answer meanwhile.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(3);

/// How much memory 10,000 connections may take: the promised 20 KiB each, and as much again.
const GROWTH_MAX_KIB: u64 = 400 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a fault run: make faults"]
async fn ten_thousand_half_open_connections_keep_nobody_from_being_served() {
    let row = Row::begin(
        12,
        "10,000 half-open connections: half silent, half within a head; the service begins with 1024 file descriptors",
        "others are served; all of them are closed after 10 s",
    );
    if let Err(why) = raise_file_limit() {
        return row.not_run(&why);
    }
    let mut rig = Rig::with(Needs { files: Some(USUAL_FILE_DESCRIPTORS), ..Needs::default() }).await;
    let mix = Mix::begin(&rig).await;
    mix.progress(CHANGES_MIN).await;
    let (address, memory) = (rig.address(), rig.memory_kib("VmRSS"));
    let began = Instant::now();
    let opened: Vec<_> = stream::iter(0..HALF_OPEN)
        .map(|number| async move {
            let mut stream = connect(address).await.expect("a connection");
            if number % 2 == 1 {
                stream.write_all(b"GET /health/live HTTP/1.1\r\nHost: ").await.expect("half a head");
            }
            let since = Instant::now();
            (number, since, stream)
        })
        .buffered(OPENED_AT_ONCE)
        .collect()
        .await;
    let opening = began.elapsed();
    let ends = opened.into_iter().map(|(number, since, mut stream)| {
        tokio::spawn(async move {
            let response = read_until_closed(&mut stream, END_TIME_MAX).await;
            (number, response, since.elapsed())
        })
    });
    let ends: Vec<_> = ends.collect();
    let slowest = slowest_answer(&rig, HEAD_TIME / 2).await;
    mix.progress(CHANGES_MIN).await;
    let (mut closed, mut longest) = (0, Duration::ZERO);
    for end in ends {
        let (number, response, took): (usize, RawResponse, Duration) = end.await.expect("an end");
        assert!(response.is_closed, "connection {number} is still open after {took:?}");
        assert_eq!(response.status(), None, "connection {number}");
        closed += 1;
        longest = longest.max(took);
    }
    let growth = rig.memory_kib("VmHWM").saturating_sub(memory);
    let record = mix.end(&rig).await;
    let verdict = check(&record, &mut rig).await;
    assert_eq!(verdict.unknown, 0, "calls were not answered although the service ran");
    assert!(slowest < ANSWER_TIME_MAX, "an answer took {slowest:?} meanwhile");
    assert!(growth < GROWTH_MAX_KIB, "{growth} KiB more");
    let seen = format!(
        "opened in {opening:.1?}, {closed} closed, the last after {longest:.1?}; others waited \
         {slowest:.1?} at most; {} MiB more memory at the peak",
        growth >> 10
    );
    row.end(&verdict, &seen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a fault run: make faults"]
async fn clients_that_drip_a_request_are_disconnected() {
    let row = Row::begin(
        13,
        "slow loris: 100 heads and 100 bodies, a byte each half second",
        "others are served; a head has 10 s and is closed, a body 20 s and then 8 KiB a second and is answered `408`",
    );
    let mut rig = Rig::start().await;
    let mix = Mix::begin(&rig).await;
    mix.progress(CHANGES_MIN).await;
    let (address, key) = (rig.address(), rig.company.key.clone());
    let head = b"GET /health/live HTTP/1.1\r\nX-Slow: ".to_vec();
    let body_head = format!(
        "POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Content-Length: 100000\r\n\r\n{{"
    );
    let drip = move |beginning: Vec<u8>, limit: Duration| {
        tokio::spawn(async move {
            let began = Instant::now();
            let pieces = std::iter::once(beginning).chain(std::iter::repeat_with(|| b" ".to_vec()));
            let response = send_pieces(address, pieces, DRIP_PAUSE, limit + END_TIME_MAX).await.expect("a connection");
            (response, began.elapsed(), limit)
        })
    };
    let slow: Vec<_> = (0..SLOW_CONNECTIONS)
        .flat_map(|_| [drip(head.clone(), HEAD_TIME), drip(body_head.clone().into_bytes(), BODY_TIME)])
        .collect();
    let slowest = slowest_answer(&rig, BODY_TIME).await;
    let mut longest = [Duration::ZERO; 2];
    for (number, end) in slow.into_iter().enumerate() {
        let (response, took, limit) = end.await.expect("an end");
        assert!(response.is_closed, "connection {number} is still open after {took:?}");
        // A head that never ends is not a request, and is not answered.
        let expected = (limit == BODY_TIME).then_some(408);
        assert_eq!(response.status(), expected, "{response:?}");
        assert!(took >= limit - Duration::from_secs(1), "given up after {took:?}, before {limit:?}");
        longest[number % 2] = longest[number % 2].max(took);
    }
    mix.progress(CHANGES_MIN).await;
    let record = mix.end(&rig).await;
    let verdict = check(&record, &mut rig).await;
    assert_eq!(verdict.unknown, 0, "calls were not answered although the service ran");
    assert!(slowest < ANSWER_TIME_MAX, "an answer took {slowest:?} meanwhile");
    let seen = format!(
        "heads closed after {:.1?}, bodies answered `408` after {:.1?} at most; others waited {slowest:.1?} at most",
        longest[0], longest[1]
    );
    row.end(&verdict, &seen);
}

/// Sends one request after the other for this time, each on a connection of its own. Returns the longest wait.
async fn slowest_answer(rig: &Rig, time: Duration) -> Duration {
    let began = Instant::now();
    let mut slowest = Duration::ZERO;
    while began.elapsed() < time {
        let requested = Instant::now();
        let live = Reply::of(rig.api().anonymous(reqwest::Method::GET, "/health/live")).await;
        assert_eq!(live.status, 200);
        slowest = slowest.max(requested.elapsed());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    slowest
}

/// Raises the limit of file descriptors for the run itself, or says why it cannot be raised.
fn raise_file_limit() -> Result<(), String> {
    let limit = Resource::RLIMIT_NOFILE;
    let (_, hard) = getrlimit(limit).map_err(|error| error.to_string())?;
    if hard < FILE_DESCRIPTORS && setrlimit(limit, FILE_DESCRIPTORS, FILE_DESCRIPTORS).is_err() {
        return Err(format!("only {hard} file descriptors are available, {FILE_DESCRIPTORS} are needed"));
    }
    setrlimit(limit, FILE_DESCRIPTORS, hard.max(FILE_DESCRIPTORS)).map_err(|error| error.to_string())
}
