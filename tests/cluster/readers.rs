//! Readers of a company's events, who follow it through a move and a kill.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::Value;
use tokio::sync::watch;

use crate::caller::{Caller, PAUSE};
use crate::load::{random_pause, rounds};
use crate::rig::Rig;
use crate::summary::Row;
use crate::support::Reader;

const CHANGES_MIN: u64 = 15;

/// Readers of each kind: by streams, and by answers that are held until there are events (`wait`). They begin at
/// different members.
const READERS: usize = 3;

/// How long an answer is held, in seconds: longer than a company is without events, except during a takeover.
const HELD_S: u64 = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn readers_of_events_miss_nothing_and_read_nothing_twice() {
    let row = Row::begin(
        16,
        "the owner of a company drained under load and its next owner killed (`kill -9`), with readers of its events at all \
         members: streams, and held answers (`wait`)",
        "a reader that continues after its last id gets every event once and in order; the log has each change once",
    );
    let mut rig = Rig::start(3).await;
    let load = rig.load().await;
    let (goal, goals) = watch::channel(None);
    let caller = rig.caller(&rig.companies[0]);
    let streams: Vec<_> =
        (0..READERS).map(|first| tokio::spawn(read_streams(caller.clone(), first, goals.clone()))).collect();
    let held: Vec<_> =
        (0..READERS).map(|first| tokio::spawn(read_held_answers(caller.clone(), first, goals.clone()))).collect();
    let (mut slowest, mut stopped_members, mut faults) = (Duration::ZERO, Vec::new(), 0);
    for _ in rounds(1) {
        rig.serve_again(&stopped_members).await;
        load.progress(CHANGES_MIN).await;
        let drained = rig.owner().await;
        rig.drain(drained).await;
        load.progress(CHANGES_MIN).await;
        random_pause().await;
        let owner = rig.owner().await;
        let fault = Instant::now();
        rig.members[owner].kill();
        rig.open_doors();
        slowest = slowest.max(rig.first_changes(fault).await);
        load.progress(CHANGES_MIN).await;
        stopped_members = vec![drained, owner];
        faults += 2;
    }
    let statement = "select last_id from event_counters where company_id = $1";
    let last = sqlx::query_scalar::<_, i64>(statement).bind(rig.companies[0].id).fetch_one(&rig.db).await;
    let last = last.expect("events");
    goal.send_replace(Some(last));
    let mut stream_ends = 0;
    for read in join_all(streams).await {
        let ReadPosition { last: read, reconnects: ends } = read.expect("a reader");
        assert!(read >= last, "{read} of {last} events");
        assert!(ends >= faults, "a stream has outlasted its owner: {ends} ends for {faults} faults");
        stream_ends += ends;
    }
    for read in join_all(held).await {
        assert!(read.expect("a reader").last >= last);
    }
    let (verdict, reads) = rig.end(load).await;
    row.end(
        &verdict,
        &format!(
            "{last} events, read once and in order by {} readers, whose streams ended {stream_ends} times; every company changed \
             within {slowest:.1?}; {reads} reads",
            2 * READERS
        ),
    );
}

/// How far a reader has read.
#[derive(Default)]
struct ReadPosition {
    last: i64,
    /// How often the reader had to ask another member.
    reconnects: usize,
}

impl ReadPosition {
    /// Counts the next event. The ids of a company have no gaps.
    fn note(&mut self, event: &Value) {
        assert_eq!(event["id"].as_i64(), Some(self.last + 1), "missed, read twice or out of order: {event}");
        self.last += 1;
    }

    fn is_at(&self, goal: &watch::Receiver<Option<i64>>) -> bool {
        goal.borrow().is_some_and(|goal| self.last >= goal)
    }
}

/// Reads streams, at the next member whenever one ends.
async fn read_streams(caller: Caller, first: usize, mut goal: watch::Receiver<Option<i64>>) -> ReadPosition {
    let mut read = ReadPosition::default();
    for turn in first.. {
        let Some(mut stream) = Reader::try_open(&caller.at(turn), "", Some(read.last)).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        while !read.is_at(&goal) {
            tokio::select! {
                event = stream.next() => match event {
                    Some(event) => read.note(&event),
                    None => break,
                },
                _ = goal.changed() => {}
            }
        }
        if read.is_at(&goal) {
            break;
        }
        read.reconnects += 1;
    }
    read
}

/// Reads held answers, each at the next member.
async fn read_held_answers(caller: Caller, first: usize, goal: watch::Receiver<Option<i64>>) -> ReadPosition {
    let mut read = ReadPosition::default();
    for turn in first.. {
        if read.is_at(&goal) {
            break;
        }
        let path = format!("/events?after={}&wait={HELD_S}&limit=1000", read.last);
        let Some(reply) = caller.ask(caller.at(turn).request(Method::GET, &path)).await else {
            read.reconnects += 1;
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        for event in reply.data(200).as_array().expect("a list") {
            read.note(event);
        }
        assert_eq!(reply.body["meta"]["lastId"], read.last, "{}", reply.body["meta"]);
    }
    read
}
