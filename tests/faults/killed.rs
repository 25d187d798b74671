//! The service is killed, and the machine loses its power.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::alone::check;
use crate::mix::Mix;
use crate::rig::{Needs, Rig};
use crate::shim::Knob;
use crate::summary::Row;

const KILLS: usize = 8;
const POWER_CUTS: usize = 5;

/// What a start logs about a torn tail.
const TORN: &str = "discarded an incomplete write at the journal's end; it had not been acknowledged";

/// Changes before each kill, so that there is something to lose.
const CHANGES_MIN: u64 = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a fault run: make faults"]
async fn what_was_answered_survives_kill_9_again_and_again() {
    let row = Row::begin(
        1,
        "`kill -9` of the service under load, 8 times",
        "nothing that was answered is lost; the next start writes the journal into the tables and serves",
    );
    let mut rig = Rig::start().await;
    let mix = Mix::begin(&rig).await;
    let (mut replayed, mut slowest_start) = (0, Duration::ZERO);
    for _ in 0..KILLS {
        mix.progress(CHANGES_MIN).await;
        // The moment of the kill is random on purpose.
        tokio::time::sleep(Duration::from_millis(rand::random_range(0..400))).await;
        rig.kill();
        let began = Instant::now();
        replayed += rig.serve();
        slowest_start = slowest_start.max(began.elapsed());
    }
    mix.progress(CHANGES_MIN).await;
    let record = mix.end(&rig).await;
    let verdict = check(&record, &mut rig).await;
    assert!(replayed > 0, "no kill came before the tables had every entry");
    let seen = format!(
        "{replayed} entries replayed, slowest start {slowest_start:.1?}, {} calls repeated, {} reads",
        record.repeats, record.reads
    );
    row.end(&verdict, &seen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a fault run: make faults"]
async fn what_was_answered_survives_a_power_cut_that_tears_the_last_write() {
    let row = Row::begin(
        2,
        "power cut under load, 5 times: the process dies within a sync, and half of what it was for is on the disk",
        "what was answered was synced; a torn tail was never answered, and is cut at the next start",
    );
    let mut rig = Rig::with(Needs { shim: true, ..Needs::default() }).await;
    let mix = Mix::begin(&rig).await;
    let mut torn = 0;
    for _ in 0..POWER_CUTS {
        mix.progress(CHANGES_MIN).await;
        rig.shim().set(Knob::PowerCut, 1);
        let (status, log) = rig.wait_for_exit();
        assert_eq!(status.signal(), Some(Signal::SIGKILL as i32), "{status}: {log}");
        rig.shim().set(Knob::PowerCut, 0);
        rig.serve();
        torn += usize::from(rig.process().log().contains(TORN));
    }
    mix.progress(CHANGES_MIN).await;
    let record = mix.end(&rig).await;
    let verdict = check(&record, &mut rig).await;
    assert!(torn > 0, "no tail was torn: the shim does not see the journal's writes");
    row.end(&verdict, &format!("{torn} torn tails cut, {} calls repeated", record.repeats));
}
