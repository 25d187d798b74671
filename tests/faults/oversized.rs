//! Requests that are too large, in every part that can be.

use std::time::{Duration, Instant};

use crate::alone::check;
use crate::mix::Mix;
use crate::raw::send_pieces;
use crate::rig::Rig;
use crate::summary::Row;

const CHANGES_MIN: u64 = 100;

/// How many requests of each kind are sent at once.
const AT_ONCE: usize = 10;

/// The longest time until an oversized request has its answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

/// How much memory all of them together may take: a head of 128 KiB or a body of 1 MiB each, with what is made of it.
const GROWTH_MAX_KIB: u64 = 400 << 10;

const MIB: usize = 1 << 20;

/// A request: its head, and a piece that is sent `pieces` times.
struct Oversized {
    name: &'static str,
    head: String,
    piece: Vec<u8>,
    pieces: usize,
    statuses: &'static [u16],
}

/// A request whose whole body is sent.
fn whole(name: &'static str, body: impl Into<Vec<u8>>, statuses: &'static [u16]) -> Oversized {
    let piece = body.into();
    let head = format!("POST /api/v1/messages HTTP/1.1\r\nContent-Length: {}\r\n", piece.len());
    Oversized { name, head, piece, pieces: 1, statuses }
}

/// A request whose body never ends.
fn endless(name: &'static str, framing: &str, piece: Vec<u8>) -> Oversized {
    let head = format!("POST /api/v1/messages HTTP/1.1\r\n{framing}");
    Oversized { name, head, piece, pieces: usize::MAX, statuses: &[413] }
}

/// A request with only a head.
fn head(name: &'static str, head: String, statuses: &'static [u16]) -> Oversized {
    Oversized { name, head, piece: Vec::new(), pieces: 0, statuses }
}

fn oversized_requests() -> Vec<Oversized> {
    let long = |bytes: usize| "x".repeat(bytes);
    let many_fields = (0..20_000).map(|number| format!("\"field{number}\":0")).collect::<Vec<_>>().join(",");
    let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 1 << 16], b"\r\n"].concat();
    vec![
        head(
            "URL of 64 KiB",
            format!("GET /api/v1/tickets?search={} HTTP/1.1\r\n", long(64 << 10)),
            &[400, 414, 422, 431],
        ),
        head("URL of 1 MiB", format!("GET /api/v1/tickets?search={} HTTP/1.1\r\n", long(MIB)), &[414, 431]),
        head("header of 1 MiB", format!("GET /api/v1/tickets HTTP/1.1\r\nX-Long: {}\r\n", long(MIB)), &[431]),
        head("200 headers", format!("GET /api/v1/tickets HTTP/1.1\r\n{}", "X-One: 1\r\n".repeat(200)), &[431]),
        head("20,000 headers", format!("GET /api/v1/tickets HTTP/1.1\r\n{}", "X-One: 1\r\n".repeat(20_000)), &[431]),
        head("method of 64 KiB", format!("{} /api/v1/tickets HTTP/1.1\r\n", long(64 << 10)), &[400, 405, 431]),
        head(
            "idempotency key of 64 KiB",
            format!("POST /api/v1/tickets HTTP/1.1\r\nIdempotency-Key: {}\r\nContent-Length: 0\r\n", long(64 << 10)),
            &[400],
        ),
        whole("body of 1 MiB and a byte", vec![b' '; MIB + 1], &[413]),
        whole("arrays 500,000 deep", "[".repeat(500_000), &[400]),
        whole("objects 100,000 deep", "{\"a\":".repeat(100_000), &[400]),
        whole(
            "text of 1,000,000 bytes",
            format!("{{\"ticketId\":1,\"type\":\"text\",\"body\":\"{}\"}}", long(1_000_000)),
            &[422],
        ),
        whole("number of 500,000 digits", format!("{{\"ticketId\":{}}}", "9".repeat(500_000)), &[400, 422]),
        whole("20,000 fields", format!("{{{many_fields}}}"), &[422]),
        endless("body of a tebibyte", "Content-Length: 1099511627776\r\n", vec![b' '; 1 << 16]),
        endless("chunks without end", "Transfer-Encoding: chunked\r\n", chunk),
        Oversized {
            name: "chunk of more than 2^64 bytes",
            head: "POST /api/v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n".to_owned(),
            piece: b"fffffffffffffffff\r\n".to_vec(),
            pieces: 1,
            statuses: &[400],
        },
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a fault run: make faults"]
async fn what_is_too_large_is_refused_and_costs_little() {
    let row = Row::begin(
        14,
        "oversized heads, headers, URLs, bodies, chunks, JSON: 16 kinds, 10 of each at once",
        "each is refused or closed, memory stays bounded, others are served",
    );
    let mut rig = Rig::start().await;
    let mix = Mix::begin(&rig).await;
    mix.progress(CHANGES_MIN).await;
    let (address, memory) = (rig.address(), rig.memory_kib("VmRSS"));
    let common = format!(
        "Host: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
        rig.company.key
    );
    let (mut answered, mut slowest) = (0, Duration::ZERO);
    for kind in oversized_requests() {
        let Oversized { name, head, piece, pieces, statuses } = kind;
        // Without a body, it is the head that is too large.
        let is_head_valid = pieces > 0;
        let head = format!("{head}{common}").into_bytes();
        let requests = (0..AT_ONCE).map(|_| {
            let pieces = std::iter::once(head.clone()).chain(std::iter::repeat_n(piece.clone(), pieces));
            tokio::spawn(async move {
                let began = Instant::now();
                let response =
                    send_pieces(address, pieces, Duration::ZERO, ANSWER_TIME_MAX).await.expect("a connection");
                (response, began.elapsed())
            })
        });
        for request in requests.collect::<Vec<_>>() {
            let (response, took) = request.await.expect("an end");
            assert!(response.is_closed, "{name}: open after {took:?}");
            // An oversized head may be refused without the envelope, or closed; a reset may discard the refusal.
            match response.status() {
                Some(status) => assert!(statuses.contains(&status), "{name}: {status}: {response:?}"),
                None => assert!(!is_head_valid, "{name}: no answer: {response:?}"),
            }
            assert!(!is_head_valid || response.is_error_in_envelope(), "{name}: {response:?}");
            slowest = slowest.max(took);
            answered += 1;
        }
    }
    mix.progress(CHANGES_MIN).await;
    let growth = rig.memory_kib("VmHWM").saturating_sub(memory);
    let record = mix.end(&rig).await;
    let verdict = check(&record, &mut rig).await;
    assert_eq!(verdict.unknown, 0, "calls were not answered although the service ran");
    assert!(growth < GROWTH_MAX_KIB, "{growth} KiB more");
    let seen = format!(
        "{answered} refused, each within {slowest:.1?}; {} MiB more memory at the peak; slowest answer to others {:.1?}",
        growth >> 10,
        record.slowest
    );
    row.end(&verdict, &seen);
}
