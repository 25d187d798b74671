//! Members are killed: one that is owner and edge at once, with all it had on disk; one that is only an edge (which
//! forwards requests to owners); two of three; and an heir.

use std::time::{Duration, Instant};

use crate::load::{random_pause, rounds};
use crate::rig::Rig;
use crate::summary::Row;

/// Changes of each company between two faults, so that there is something to lose.
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
        random_pause().await;
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
async fn only_requests_at_an_edge_that_dies_are_not_answered() {
    let row = Row::begin(
        12,
        "`kill -9` of a member that serves no company (it was drained), edge of a third of the calls",
        "nothing that was answered is lost; no caller is answered 503, and only requests to this member get no answer",
    );
    let mut rig = Rig::start(3).await;
    let load = rig.load().await;
    let mut slowest = Duration::ZERO;
    for round in rounds(1) {
        load.progress(CHANGES_MIN).await;
        let edge = round % rig.members.len();
        rig.drain(edge).await;
        load.progress(CHANGES_MIN).await;
        random_pause().await;
        let fault = Instant::now();
        rig.members[edge].kill();
        rig.open_doors();
        slowest = slowest.max(rig.first_changes(fault).await);
        load.progress(CHANGES_MIN).await;
        rig.serve(edge);
    }
    load.progress(CHANGES_MIN).await;
    load.check_none_answered_503();
    let (verdict, reads) = rig.end(load).await;
    row.end(
        &verdict,
        &format!("every company changed within {slowest:.1?}; no caller was answered 503; {reads} reads"),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn the_third_takes_over_from_two() {
    let row = Row::begin(
        13,
        "`kill -9` of two members of three at once",
        "the third serves every company within 10 s; nothing that was answered is lost",
    );
    let mut rig = Rig::start(3).await;
    let load = rig.load().await;
    let (mut slowest, mut dead) = (Duration::ZERO, Vec::new());
    for _ in rounds(1) {
        rig.serve_again(&dead).await;
        load.progress(CHANGES_MIN).await;
        random_pause().await;
        let owner = rig.owner().await;
        dead = vec![owner, (owner + 1) % rig.members.len()];
        dead.iter().for_each(|member| rig.members[*member].kill());
        let fault = Instant::now();
        rig.open_doors();
        slowest = slowest.max(rig.first_changes(fault).await);
        load.progress(CHANGES_MIN).await;
    }
    let (verdict, reads) = rig.end(load).await;
    row.end(&verdict, &format!("every company changed within {slowest:.1?}; {reads} reads"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn the_third_takes_over_from_an_heir_that_dies() {
    let row = Row::begin(
        18,
        "`kill -9` of a member, and of the one that takes over from it in the middle of that: it has ended the other's life and \
         given nothing of it away",
        "the third serves every company within 10 s of the second kill; nothing that was answered is lost",
    );
    let mut rig = Rig::start(3).await;
    let load = rig.load().await;
    let (mut slowest, mut takeovers, mut dead) = (Duration::ZERO, 0, Vec::new());
    for _ in rounds(1) {
        let fault = loop {
            rig.serve_again(&dead).await;
            load.progress(CHANGES_MIN).await;
            let owner = rig.owner().await;
            rig.members[owner].kill();
            rig.open_doors();
            let heir = rig.heir().await;
            rig.members[heir].kill();
            let fault = Instant::now();
            dead = vec![owner, heir];
            // If the heir had just finished the takeover, the round is repeated.
            if rig.has_left_a_takeover(heir).await {
                break fault;
            }
            rig.open_doors();
        };
        rig.open_doors();
        slowest = slowest.max(rig.first_changes(fault).await);
        takeovers += 1;
        load.progress(CHANGES_MIN).await;
    }
    let (verdict, reads) = rig.end(load).await;
    row.end(
        &verdict,
        &format!("{takeovers} takeovers broken off; every company changed within {slowest:.1?}; {reads} reads"),
    );
}
