//! Every member is stopped by a signal and started again, one after the other, and callers notice nothing.

use std::time::{Duration, Instant};

use crate::balancer::Rule;
use crate::load::rounds;
use crate::rig::Rig;
use crate::summary::Row;

const CHANGES_MIN: u64 = 15;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn no_request_fails_while_every_member_is_restarted() {
    let row = Row::begin(
        5,
        "rolling restart: each of three members is stopped (SIGTERM) and started again, under load, behind a balancer that \
         asks `/health/ready`",
        "no request fails: none goes unanswered, none is told to come again",
    );
    let mut rig = Rig::start(3).await;
    rig.balance(Rule::Any);
    let load = rig.load().await;
    let (mut restarts, mut slowest) = (0, Duration::ZERO);
    for _ in rounds(1) {
        for member in 0..rig.members.len() {
            load.progress(CHANGES_MIN).await;
            let begun = Instant::now();
            rig.members[member].stop();
            slowest = slowest.max(begun.elapsed());
            rig.serve(member);
            rig.balanced().await;
            restarts += 1;
        }
    }
    load.progress(CHANGES_MIN).await;
    load.check_none_failed();
    let (verdict, reads) = rig.end(load).await;
    row.end(&verdict, &format!("{restarts} restarts, a stop within {slowest:.1?}; {reads} reads; no request failed"));
}
