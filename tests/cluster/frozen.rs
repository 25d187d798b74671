//! A member is stopped, and goes on when others have taken over.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::load::{is_long, rounds};
use crate::rig::Rig;
use crate::summary::Row;

const CHANGES_MIN: u64 = 15;

/// How long it is stopped: by far longer than its lease, and longer than the others take to end its life.
fn stopped() -> Duration {
    Duration::from_secs(if is_long() { 30 } else { 12 })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn a_member_that_was_stopped_shows_and_writes_nothing_more() {
    let row = Row::begin(
        3,
        "a member stopped for 12 s, for long 30 s (SIGSTOP, SIGCONT), in the middle of a transaction that holds the lock on its life; callers stay",
        "the others serve its companies within 10 s; it ends by itself when it goes on; no read goes back",
    );
    let mut rig = Rig::start(3).await;
    let load = rig.load().await;
    let mut slowest = Duration::ZERO;
    let mut ended = String::new();
    for _ in rounds(1) {
        load.progress(CHANGES_MIN).await;
        let owner = rig.owner().await;
        rig.stop_within_a_transaction(owner).await;
        let fault = Instant::now();
        slowest = slowest.max(rig.first_changes(fault).await);
        tokio::time::sleep(stopped().saturating_sub(fault.elapsed())).await;
        rig.members[owner].signal(Signal::SIGCONT);
        let (status, log) = rig.members[owner].died();
        assert!(!status.success(), "its life was over: {log}");
        ended = status.to_string();
        rig.open_doors();
        load.progress(CHANGES_MIN).await;
        rig.serve(owner);
    }
    load.progress(CHANGES_MIN).await;
    let (verdict, reads) = rig.end(load).await;
    row.end(&verdict, &format!("every company changed within {slowest:.1?}; it ended with {ended}; {reads} reads"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn an_heir_that_stops_is_taken_over_from() {
    let row = Row::begin(
        10,
        "a member killed, and the one that takes over from it stopped in the middle of that (SIGSTOP, SIGCONT after 30 s)",
        "the third serves every company within 10 s of the second fault; the heir ends by itself when it goes on",
    );
    // The one that is killed (`killed::`) tells nearly as much in half the time.
    if !is_long() {
        return row.not_run("only for long: make cluster ARGS=long");
    }
    let mut rig = Rig::start(3).await;
    let load = rig.load().await;
    let mut slowest = Duration::ZERO;
    for _ in rounds(1) {
        load.progress(CHANGES_MIN).await;
        let owner = rig.owner().await;
        rig.members[owner].kill();
        rig.open_doors();
        let heir = rig.heir().await;
        rig.members[heir].signal(Signal::SIGSTOP);
        let fault = Instant::now();
        slowest = slowest.max(rig.first_changes(fault).await);
        tokio::time::sleep(stopped().saturating_sub(fault.elapsed())).await;
        rig.members[heir].signal(Signal::SIGCONT);
        let (status, log) = rig.members[heir].died();
        assert!(!status.success(), "its life was over: {log}");
        rig.open_doors();
        load.progress(CHANGES_MIN).await;
        rig.serve(owner);
        rig.serve(heir);
        rig.balanced().await;
    }
    load.progress(CHANGES_MIN).await;
    let (verdict, reads) = rig.end(load).await;
    row.end(&verdict, &format!("every company changed within {slowest:.1?}; {reads} reads"));
}
