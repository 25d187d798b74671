//! PostgreSQL fails over to its synchronous standby.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::load::{random_pause, rounds};
use crate::rig::Rig;
use crate::summary::Row;

const CHANGES_MIN: u64 = 15;

/// How long PostgreSQL is stopped: longer than a member waits for a commit (5 s), which is made once it runs again.
const STOPPED: Duration = Duration::from_secs(7);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn what_was_answered_survives_a_failover() {
    let row = Row::begin(
        4,
        "PostgreSQL stopped under load for 7 s (SIGSTOP, SIGCONT); then the primary killed (`kill -9`), and its synchronous \
         standby promoted in its place",
        "nothing that was answered is lost, nothing that was refused is there; every company can be changed within 10 s of \
         either end; no member is ended because of it",
    );
    let mut rig = Rig::start(3).await;
    let load = rig.load().await;
    let mut slowest = Duration::ZERO;
    // There is one standby, so only one failover is possible.
    for _ in rounds(1).take(1) {
        load.progress(CHANGES_MIN).await;
        let lives = rig.lives().await;
        rig.servers.signal(Signal::SIGSTOP);
        tokio::time::sleep(STOPPED).await;
        rig.servers.signal(Signal::SIGCONT);
        slowest = slowest.max(rig.first_changes(Instant::now()).await);
        load.progress(CHANGES_MIN).await;
        random_pause().await;
        rig.fail_over().await;
        slowest = slowest.max(rig.first_changes(Instant::now()).await);
        assert_eq!(rig.lives().await, lives, "the life of a member was ended");
    }
    load.progress(CHANGES_MIN).await;
    let (verdict, reads) = rig.end(load).await;
    row.end(
        &verdict,
        &format!(
            "every company changed within {slowest:.1?} of PostgreSQL's return; no member was ended; {reads} reads"
        ),
    );
}
