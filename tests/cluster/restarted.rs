//! PostgreSQL's primary dies and is restarted in place, without a failover.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::load::{random_pause, rounds};
use crate::rig::Rig;
use crate::summary::Row;

const CHANGES_MIN: u64 = 15;

/// The signal that crashes the primary, and for how long it is down: not at all, or for longer than a lease, and than
/// the time without a heartbeat after which a life is suspected.
const CRASHES: [(Signal, Duration); 2] = [(Signal::SIGKILL, Duration::ZERO), (Signal::SIGQUIT, Duration::from_secs(5))];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn what_was_answered_survives_a_primary_that_is_restarted_in_place() {
    let row = Row::begin(
        14,
        "PostgreSQL's primary killed under load and restarted in place: all its processes by `kill -9`, and back at \
         once; then by `pg_ctl stop -m immediate`, and back after 5 s",
        "nothing that was answered is lost, nothing that was refused is there, no read returns an older state than \
         an earlier one; every company can be changed within 10 s of its return; no member is ended because of it",
    );
    let mut rig = Rig::start(3).await;
    let load = rig.load().await;
    let (mut slowest, mut crashes) = (Duration::ZERO, 0);
    for _ in rounds(1) {
        for (signal, downtime) in CRASHES {
            load.progress(CHANGES_MIN).await;
            random_pause().await;
            let lives = rig.lives().await;
            rig.servers.crash(signal);
            tokio::time::sleep(downtime).await;
            rig.servers.restart_primary().await;
            slowest = slowest.max(rig.first_changes(Instant::now()).await);
            load.progress(CHANGES_MIN).await;
            assert_eq!(rig.lives().await, lives, "the life of a member was ended");
            crashes += 1;
        }
    }
    let (verdict, reads) = rig.end(load).await;
    row.end(
        &verdict,
        &format!(
            "{crashes} crashes; every company changed within {slowest:.1?} of its return; no member was ended; \
             {reads} reads"
        ),
    );
}
