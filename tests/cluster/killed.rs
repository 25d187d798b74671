//! Members are killed, as owner and edge at once, with all they had on disk.

use std::time::{Duration, Instant};

use crate::rig::{Rig, rounds};
use crate::summary::Row;

/// Changes of each company between two faults; there is something to lose then.
const CHANGES_MIN: u64 = 15;

const KILLS: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn what_was_answered_survives_its_owner() {
    let row = Row::begin(
        1,
        "`kill -9` of a member under load, owner of some companies and edge of all; its folder is gone",
        "nothing that was answered is lost; every company can be changed within 10 s; the member comes back",
    );
    let mut rig = Rig::start(3).await;
    let load = rig.load().await;
    let mut slowest = Duration::ZERO;
    for _ in rounds(KILLS) {
        load.progress(CHANGES_MIN).await;
        // The moment differs from run to run: that is what is tested.
        tokio::time::sleep(Duration::from_millis(rand::random_range(0..400))).await;
        let owner = rig.owner().await;
        let fault = Instant::now();
        rig.members[owner].kill();
        rig.open_doors();
        slowest = slowest.max(rig.first_changes(fault).await);
        rig.members[owner].lose_folder();
        rig.serve(owner);
    }
    load.progress(CHANGES_MIN).await;
    let (verdict, reads) = rig.end(load).await;
    row.end(&verdict, &format!("every company changed within {slowest:.1?}; {reads} reads, none of which went back"));
}
