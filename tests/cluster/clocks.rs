//! The wall clocks of members are wrong by an hour.

use crate::balancer::Rule;
use crate::rig::Rig;
use crate::shim::Knob;
use crate::summary::Row;

/// Changes of each company that the load makes between two steps.
const CHANGES_MIN: u64 = 25;
const HOUR_S: i64 = 3600;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn no_decision_depends_on_a_wall_clock() {
    let row = Row::begin(
        8,
        "the wall clock of one member an hour ahead and that of another an hour behind, under load; a third is drained \
         and stopped, so that companies move between them",
        "no request fails, and no life is ended",
    );
    let mut rig = Rig::start_with_clocks(3).await;
    rig.balance(Rule::Any);
    let load = rig.load().await;
    load.progress(CHANGES_MIN).await;
    let lives = rig.lives().await;
    rig.members[0].clock().set(Knob::ClockOffsetS, HOUR_S);
    rig.members[1].clock().set(Knob::ClockOffsetS, -HOUR_S);
    load.progress(CHANGES_MIN).await;
    assert_eq!(rig.lives().await, lives, "a life was ended");
    rig.members[2].stop();
    rig.open_doors();
    load.progress(CHANGES_MIN).await;
    rig.members[0].clock().set(Knob::ClockOffsetS, 0);
    rig.members[1].clock().set(Knob::ClockOffsetS, 0);
    load.progress(CHANGES_MIN).await;
    assert_eq!(rig.lives().await, lives[..2], "another life was ended");
    load.check_none_failed();
    let (verdict, reads) = rig.end(load).await;
    row.end(&verdict, &format!("no life was ended; {reads} reads; no request failed"));
}
