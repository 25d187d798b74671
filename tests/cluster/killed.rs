//! Members are killed: as owner and edge at once, with all they had on disk; as edge alone; two of three.

use std::time::{Duration, Instant};

use crate::load::rounds;
use crate::rig::Rig;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn an_edge_that_dies_takes_nothing_with_it_but_what_it_was_asked() {
    let row = Row::begin(
        12,
        "`kill -9` of a member that serves no company (it was drained), edge of a third of the calls",
        "nothing that was answered is lost; nobody is told to come again, and only what it had been asked goes without an answer",
    );
    let mut rig = Rig::start(3).await;
    let load = rig.load().await;
    let mut slowest = Duration::ZERO;
    for round in rounds(1) {
        load.progress(CHANGES_MIN).await;
        let edge = round % rig.members.len();
        rig.drain(edge).await;
        load.progress(CHANGES_MIN).await;
        // The moment differs from run to run: that is what is tested.
        tokio::time::sleep(Duration::from_millis(rand::random_range(0..400))).await;
        let fault = Instant::now();
        rig.members[edge].kill();
        rig.open_doors();
        slowest = slowest.max(rig.first_changes(fault).await);
        load.progress(CHANGES_MIN).await;
        rig.serve(edge);
    }
    load.progress(CHANGES_MIN).await;
    load.check_none_was_put_off();
    let (verdict, reads) = rig.end(load).await;
    row.end(
        &verdict,
        &format!("every company changed within {slowest:.1?}; nobody was told to come again; {reads} reads"),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn the_third_takes_over_from_two() {
    let row = Row::begin(
        13,
        "`kill -9` of two members of three: both at once, or of one and then of the one that is about to take over from it (one of \
         these, and both for long)",
        "the third serves every company within 10 s of the last fault; nothing that was answered is lost",
    );
    let mut rig = Rig::start(3).await;
    let load = rig.load().await;
    let first = rand::random_range(0..2);
    let (mut slowest, mut seen, mut dead) = (Duration::ZERO, Vec::new(), Vec::new());
    for round in rounds(1) {
        if !dead.is_empty() {
            dead.drain(..).for_each(|member| rig.serve(member));
            rig.balanced().await;
        }
        load.progress(CHANGES_MIN).await;
        let owner = rig.owner().await;
        rig.members[owner].kill();
        let is_at_once = (first + round) % 2 == 0;
        let other = if is_at_once {
            (owner + 1) % rig.members.len()
        } else {
            rig.open_doors();
            rig.heir().await
        };
        rig.members[other].kill();
        let fault = Instant::now();
        rig.open_doors();
        let took = rig.first_changes(fault).await;
        slowest = slowest.max(took);
        seen.push(format!("{}: {took:.1?}", if is_at_once { "at once" } else { "with its heir" }));
        load.progress(CHANGES_MIN).await;
        dead = vec![owner, other];
    }
    load.progress(CHANGES_MIN).await;
    let (verdict, reads) = rig.end(load).await;
    row.end(&verdict, &format!("every company changed within {slowest:.1?} ({}); {reads} reads", seen.join(", ")));
}
