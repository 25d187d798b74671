//! The journal's disk is full, read-only, slow, and fails.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use nix::errno::Errno;
use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::json;

use crate::alone::check;
use crate::mix::{CALLERS, Mix};
use crate::rig::{Needs, Rig};
use crate::shim::Knob;
use crate::summary::Row;
use crate::support::{Reply, eventually};

const CHANGES_MIN: u64 = 100;
const FAILED_SYNCS: usize = 3;

/// How much longer each sync takes on the slow disk, and for how long it is slow.
const SYNC_DELAY: Duration = Duration::from_millis(50);
const SLOW_TIME: Duration = Duration::from_secs(8);

async fn start() -> Rig {
    Rig::with(Needs { shim: true, ..Needs::default() }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a fault run: make faults"]
async fn the_disk_of_the_journal_is_full_for_a_while() {
    let row = Row::begin(
        7,
        "no room for another journal segment under load (ENOSPC)",
        "while the tables follow, released segments are used again and no room is needed; behind a frozen PostgreSQL \
         changes are refused with `503` and `Retry-After`, and hot conversations are read; once it follows, changes are \
         taken again, on the full disk still",
    );
    let mut rig = start().await;
    let mix = Mix::begin(&rig).await;
    mix.progress(CHANGES_MIN).await;
    rig.shim().set(Knob::GrowErrno, Errno::ENOSPC as i64);
    let acknowledged_before = mix.acknowledged();
    mix.progress(CHANGES_MIN).await;
    rig.signal_postgres(Signal::SIGSTOP);
    eventually("the journal meets the full disk", || async { !rig.is_part_ready("journal").await }).await;
    let full_disk_changes = mix.acknowledged() - acknowledged_before;
    let (api, tickets) = (rig.api(), mix.tickets());
    let refused = api.post(&format!("/tickets/{}/close", tickets[0]), json!({})).await;
    refused.error(503, "ERR_API_UNAVAILABLE");
    assert!(refused.headers.contains_key("retry-after"));
    // An earlier change waits for space, and so does a read of its ticket; each caller has one such change at most.
    let statuses =
        join_all(tickets.iter().map(async |ticket| api.get(&format!("/tickets/{ticket}")).await.status)).await;
    let read_count = statuses.iter().filter(|status| **status == 200).count();
    assert!(
        read_count >= tickets.len() - CALLERS && statuses.iter().all(|status| [200, 503].contains(&status.as_u16())),
        "{statuses:?}"
    );
    assert_eq!(Reply::of(api.anonymous(Method::GET, "/health/live")).await.status, 200);
    rig.signal_postgres(Signal::SIGCONT);
    let began = Instant::now();
    eventually("the journal has room again", || async { rig.is_part_ready("journal").await }).await;
    let back = began.elapsed();
    rig.assert_logged(
        "could not create the next journal segment; changes are refused until this succeeds: check free disk space",
    );
    mix.progress(CHANGES_MIN).await;
    for list in ["/tickets", "/messages", "/contacts"] {
        let began = Instant::now();
        api.get(list).await.data(200);
        assert!(began.elapsed() < Duration::from_secs(5), "{list} took {:?}", began.elapsed());
    }
    rig.shim().set(Knob::GrowErrno, 0);
    mix.progress(CHANGES_MIN).await;
    let refused_calls = mix.unavailable();
    let record = mix.end(&rig).await;
    let verdict = check(&record, &mut rig).await;
    assert_eq!(verdict.unknown, 0, "calls were not answered although the service ran");
    row.end(
        &verdict,
        &format!(
            "{full_disk_changes} changes acknowledged on the full disk, {refused_calls} calls answered 503; \
             taken again {back:.1?} after"
        ),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a fault run: make faults"]
async fn the_disk_of_the_journal_becomes_read_only() {
    let row = Row::begin(
        8,
        "the journal's disk read-only under load (EROFS)",
        "memory is ahead of the disk: the process ends with status 75 and answers nobody; it does not start until the disk \
         can be written, and then has all that was answered",
    );
    let mut rig = start().await;
    let mix = Mix::begin(&rig).await;
    mix.progress(CHANGES_MIN).await;
    rig.shim().set(Knob::ChangeErrno, Errno::EROFS as i64);
    let (status, log) = rig.wait_for_exit();
    assert_eq!(status.code(), Some(75), "{status}: {log}");
    assert!(log.contains("changes can no longer be made durable; stopping"), "{log}");
    let refused = rig.try_serve().expect_err("the service started on a disk it cannot write");
    let line = refused.lines().last().unwrap_or_default().to_owned();
    assert!(refused.contains("journal"), "the start does not say what it cannot write: {refused}");
    rig.shim().set(Knob::ChangeErrno, 0);
    let replayed = rig.serve();
    mix.progress(CHANGES_MIN).await;
    let record = mix.end(&rig).await;
    let verdict = check(&record, &mut rig).await;
    row.end(&verdict, &format!("ended with status 75; the start was refused: `{line}`; {replayed} entries replayed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a fault run: make faults"]
async fn the_disk_of_the_journal_is_slow() {
    let row = Row::begin(
        9,
        "each sync of the journal 50 ms slower, for 8 s",
        "answers take longer, nobody is refused, and what waits shares a sync",
    );
    let mut rig = start().await;
    let mix = Mix::begin(&rig).await;
    mix.progress(CHANGES_MIN).await;
    rig.shim().set(Knob::SyncDelayUs, i64::try_from(SYNC_DELAY.as_micros()).expect("a delay"));
    let (before, syncs) = (mix.acknowledged(), rig.shim().get(Knob::Syncs));
    tokio::time::sleep(SLOW_TIME).await;
    let changes = mix.acknowledged() - before;
    let syncs = rig.shim().get(Knob::Syncs) - syncs;
    rig.shim().set(Knob::SyncDelayUs, 0);
    mix.progress(CHANGES_MIN).await;
    let unavailable = mix.unavailable();
    let record = mix.end(&rig).await;
    let verdict = check(&record, &mut rig).await;
    assert_eq!((verdict.unknown, unavailable), (0, 0), "a slow disk is no reason to refuse");
    assert!(syncs > 0 && changes > syncs.unsigned_abs(), "{changes} changes took {syncs} syncs");
    let seen = format!("{changes} changes with {syncs} syncs meanwhile; slowest answer {:.1?}", record.slowest);
    row.end(&verdict, &seen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a fault run: make faults"]
async fn a_sync_of_the_journal_fails_and_loses_what_it_was_for() {
    let row = Row::begin(
        10,
        "`fdatasync` of the journal fails under load, 3 times (EIO), and what was written is lost",
        "memory is ahead of the disk: the process ends with status 75 and answers nobody; the next start has all that was \
         answered",
    );
    let mut rig = start().await;
    let mix = Mix::begin(&rig).await;
    for _ in 0..FAILED_SYNCS {
        mix.progress(CHANGES_MIN).await;
        rig.shim().set(Knob::SyncErrno, Errno::EIO as i64);
        let (status, log) = rig.wait_for_exit();
        assert_eq!(status.code(), Some(75), "{status}: {log}");
        assert!(log.contains("changes can no longer be made durable; stopping"), "{log}");
        rig.shim().set(Knob::SyncErrno, 0);
        rig.serve();
    }
    mix.progress(CHANGES_MIN).await;
    let record = mix.end(&rig).await;
    let verdict = check(&record, &mut rig).await;
    let seen = format!("ended with status 75 each time and started again; {} calls repeated", record.repeats);
    row.end(&verdict, &seen);
}
