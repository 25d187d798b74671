//! Every member is stopped by a signal and started again, one after the other, and no request fails.

use std::time::{Duration, Instant};

use crate::balancer::Rule;
use crate::load::rounds;
use crate::member::Member;
use crate::rig::Rig;
use crate::summary::Row;
use crate::support::process::{baseline_binary, binary, data_folder};

/// Changes that the load makes before each stop, so that every restart happens under load.
const CHANGES_MIN: u64 = 15;

/// Tables to which a release might add a column. Members of the previous release have prepared statements that select
/// from each. Every migration locks one table, so that it never holds one lock while it waits for another.
const GROWING: [&str; 3] = ["contacts", "messages", "tickets"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn no_request_fails_while_every_member_is_restarted() {
    let row = Row::begin(
        5,
        "rolling restart: each of three members is stopped (SIGTERM) and started again, under load, behind a balancer \
         that asks `/health/ready`",
        "no request fails: none goes unanswered, none is answered 503",
    );
    let rig = Rig::start(3).await;
    restart_each(rig, |_| (), row).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make upgrade"]
async fn no_request_fails_while_every_member_is_upgraded_from_the_previous_release() {
    let row = Row::begin(
        19,
        "rolling upgrade: each of three members of the previous release is stopped (SIGTERM) and started again as this \
         one, which adds columns to the tables, under load, behind a balancer that asks `/health/ready`",
        "no request fails: none goes unanswered, none is answered 503",
    );
    let Some(previous) = baseline_binary() else { return row.not_run("only `make upgrade` has the previous release") };
    let migrations = data_folder();
    for (number, table) in (9001..).zip(GROWING) {
        let sql =
            format!("-- Locks: {table} (access exclusive, catalog only)\nalter table {table} add column later text;");
        std::fs::write(migrations.path().join(format!("{number}_{table}.sql")), sql).expect("a migration");
    }
    let upgrade = |member: &mut Member| {
        member.binary = binary();
        member.migrations = Some(migrations.path().to_owned());
    };
    restart_each(Rig::start_with_binary(previous, 3).await, upgrade, row).await;
}

/// Stops each member of a cluster under load, changes it, and starts it again.
async fn restart_each(mut rig: Rig, change: impl Fn(&mut Member), row: Row) {
    rig.balance(Rule::Any);
    let load = rig.load().await;
    let (mut restarts, mut slowest_stop) = (0, Duration::ZERO);
    for _ in rounds(1) {
        for member in 0..rig.members.len() {
            load.progress(CHANGES_MIN).await;
            let stop_began = Instant::now();
            rig.members[member].stop();
            slowest_stop = slowest_stop.max(stop_began.elapsed());
            change(&mut rig.members[member]);
            rig.serve(member);
            rig.wait_until_balanced().await;
            restarts += 1;
        }
    }
    load.progress(CHANGES_MIN).await;
    load.check_none_failed();
    let (verdict, reads) = rig.end(load).await;
    let restarts = format!("{restarts} restarts, each stop within {slowest_stop:.1?}");
    row.end(&verdict, &format!("{restarts}; {reads} reads; no request failed"));
}
