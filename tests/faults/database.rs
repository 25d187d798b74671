//! PostgreSQL is killed, frozen, restarted, and out of space. Conversations that are hot continue meanwhile.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hotline_postgres::{Cluster, ClusterOptions};
use nix::sys::signal::{Signal, kill};

use crate::alone::check;
use crate::mix::Mix;
use crate::rig::{Needs, Rig};
use crate::summary::Row;
use crate::support::process::data_folder;
use crate::support::{Reply, eventually};

const KILLS: usize = 3;
const RESTARTS: usize = 3;
const CHANGES_MIN: u64 = 100;

/// How long PostgreSQL neither answers nor ends, or has no space.
const OUTAGE: Duration = Duration::from_secs(8);

/// The longest wait for an answer meanwhile: for a connection (3 s), a statement (5 s) and the barrier of a list
/// (5 s), and a reply on a busy machine.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(15);

/// Room for an empty cluster (about 60 MiB), its log, and what a run writes before it is filled up.
const DISK_MIB: usize = 224;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a fault run: make faults"]
async fn postgres_is_killed_and_comes_back() {
    let row = Row::begin(
        3,
        "`kill -9` of every process of the private PostgreSQL, 3 times",
        "hot conversations go on; PostgreSQL is started again and caught up with, without anybody's help",
    );
    let mut rig = Rig::start().await;
    let mix = Mix::begin(&rig).await;
    let mut slowest = Duration::ZERO;
    for _ in 0..KILLS {
        mix.progress(CHANGES_MIN).await;
        let postmaster = rig.postmaster();
        rig.signal_postgres(Signal::SIGKILL);
        let began = Instant::now();
        eventually("another postmaster runs", || async { rig.has_another_postmaster(postmaster) }).await;
        rig.wait_until_lists_are_served().await;
        slowest = slowest.max(began.elapsed());
    }
    mix.progress(CHANGES_MIN).await;
    rig.assert_logged("PostgreSQL exited unexpectedly and will be restarted");
    let record = mix.end(&rig).await;
    let verdict = check(&record, &mut rig).await;
    assert_eq!(verdict.unknown, 0, "calls were not answered although the service ran");
    row.end(&verdict, &format!("lists were back within {slowest:.1?}; slowest answer {:.1?}", record.slowest));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a fault run: make faults"]
async fn postgres_is_frozen_and_thaws() {
    let row = Row::begin(
        4,
        "every process of PostgreSQL stopped for 8 s (SIGSTOP, SIGCONT)",
        "hot conversations go on; requests that need the database are answered `503`, within its time limits",
    );
    let mut rig = Rig::start().await;
    let mix = Mix::begin(&rig).await;
    mix.progress(CHANGES_MIN).await;
    let (before, unavailable) = (mix.acknowledged(), mix.unavailable());
    rig.signal_postgres(Signal::SIGSTOP);
    let began = Instant::now();
    let probes = probe_for(&rig, OUTAGE).await;
    let changes_meanwhile = mix.acknowledged() - before;
    let refused_calls = mix.unavailable() - unavailable;
    rig.signal_postgres(Signal::SIGCONT);
    let frozen = began.elapsed();
    let began = Instant::now();
    rig.wait_until_lists_are_served().await;
    let back = began.elapsed();
    mix.progress(CHANGES_MIN).await;
    rig.assert_logged("database does not respond");
    let record = mix.end(&rig).await;
    let verdict = check(&record, &mut rig).await;
    assert!(changes_meanwhile > 0, "no change was acknowledged meanwhile");
    assert_eq!(verdict.unknown, 0, "calls were not answered although the service ran");
    assert!(record.slowest < ANSWER_TIME_MAX, "the slowest answer took {:?}", record.slowest);
    let seen = format!(
        "{changes_meanwhile} changes acknowledged in {frozen:.1?} without PostgreSQL, {refused_calls} calls answered \
         503, {probes} probes answered; lists were back {back:.1?} after; slowest answer {:.1?}",
        record.slowest
    );
    row.end(&verdict, &seen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a fault run: make faults"]
async fn postgres_is_restarted_under_load() {
    let row = Row::begin(
        5,
        "PostgreSQL shut down (SIGINT) under load, 3 times",
        "hot conversations go on; PostgreSQL is started again and caught up with",
    );
    let mut rig = Rig::start().await;
    let mix = Mix::begin(&rig).await;
    let mut slowest = Duration::ZERO;
    for _ in 0..RESTARTS {
        mix.progress(CHANGES_MIN).await;
        let postmaster = rig.postmaster();
        kill(postmaster, Signal::SIGINT).expect("the postmaster");
        let began = Instant::now();
        eventually("another postmaster runs", || async { rig.has_another_postmaster(postmaster) }).await;
        rig.wait_until_lists_are_served().await;
        slowest = slowest.max(began.elapsed());
    }
    mix.progress(CHANGES_MIN).await;
    rig.assert_logged("PostgreSQL exited unexpectedly and will be restarted");
    let record = mix.end(&rig).await;
    let verdict = check(&record, &mut rig).await;
    assert_eq!(verdict.unknown, 0, "calls were not answered although the service ran");
    row.end(&verdict, &format!("lists were back within {slowest:.1?}; slowest answer {:.1?}", record.slowest));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a fault run: make faults"]
async fn the_disk_of_postgres_is_full_for_a_while() {
    let row = Row::begin(
        6,
        "the disk of PostgreSQL full under load for 8 s",
        "hot conversations go on, and the journal keeps their changes; once there is room they are caught up with",
    );
    let folder = data_folder();
    let disk = match Disk::mount(folder.path(), DISK_MIB) {
        Ok(disk) => disk,
        Err(why) => return row.not_run(&format!("no tmpfs can be mounted here: {why}")),
    };
    let cluster = Cluster::start(ClusterOptions::new(disk.folder())).await.expect("PostgreSQL starts");
    let mut rig = Rig::with(Needs { postgres: Some(&cluster), ..Needs::default() }).await;
    let mix = Mix::begin(&rig).await;
    mix.progress(CHANGES_MIN).await;
    let ballast = disk.fill();
    eventually("the persister meets the full disk", || async { !rig.is_part_ready("persister").await }).await;
    let before = mix.acknowledged();
    let probes = probe_for(&rig, OUTAGE).await;
    let changes_meanwhile = mix.acknowledged() - before;
    rig.assert_logged("database accepts no changes; they are retried");
    std::fs::remove_file(ballast).expect("room is made");
    let began = Instant::now();
    rig.wait_until_lists_are_served().await;
    let back = began.elapsed();
    mix.progress(CHANGES_MIN).await;
    let record = mix.end(&rig).await;
    let verdict = check(&record, &mut rig).await;
    assert!(changes_meanwhile > 0, "no change was acknowledged meanwhile");
    assert_eq!(verdict.unknown, 0, "calls were not answered although the service ran");
    let seen = format!(
        "{changes_meanwhile} changes acknowledged in {OUTAGE:?} without room, {probes} probes answered; lists were \
         back {back:.1?} after; slowest answer {:.1?}",
        record.slowest
    );
    cluster.stop().await.expect("PostgreSQL stops");
    row.end(&verdict, &seen);
}

/// Requests `/health/live` again and again for this time. Returns how many answers there were.
async fn probe_for(rig: &Rig, time: Duration) -> usize {
    let (api, began) = (rig.api(), Instant::now());
    let mut answers = 0;
    while began.elapsed() < time {
        let requested = Instant::now();
        let live = Reply::of(api.anonymous(reqwest::Method::GET, "/health/live")).await;
        assert_eq!(live.status, 200);
        assert!(requested.elapsed() < Duration::from_secs(2), "`/health/live` took {:?}", requested.elapsed());
        answers += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    answers
}

/// A small disk in memory.
struct Disk(PathBuf);

impl Disk {
    fn mount(folder: &Path, mib: usize) -> Result<Self, String> {
        let place = folder.join("disk");
        std::fs::create_dir(&place).map_err(|error| error.to_string())?;
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={mib}m,mode=0711"), "tmpfs"]).arg(&place);
        let mounted = command.output().map_err(|error| error.to_string())?;
        if !mounted.status.success() {
            return Err(String::from_utf8_lossy(&mounted.stderr).trim().to_owned());
        }
        Ok(Self(place))
    }

    fn folder(&self) -> PathBuf {
        self.0.join("data")
    }

    /// Fills all space with a file. Returns its path.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("ballast");
        let mut file = std::fs::File::create(&path).expect("a file");
        let chunk = vec![0; 64 << 10];
        let error = loop {
            if let Err(error) = file.write_all(&chunk) {
                break error;
            }
        };
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A process with an open file on this disk keeps the disk until it closes the file.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
