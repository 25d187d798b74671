//! Question: how many records a second does the journal make durable, and what fraction is that of the bare disk's
//! rate?
//!
//! `cargo bench --bench journal_append`
//!
//! Records of 300 bytes in groups of fixed size, one sync each, production options. Beside it, in the same run, the
//! same bytes go to a bare file of zeros with one write and one sync for each group. The files are made in the
//! temporary directory, so `TMPDIR` chooses the disk; on a memory file system the figures mean nothing.

// A bench whose setup fails cannot continue.
#![allow(clippy::expect_used, clippy::panic)]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use hotline_persistence::journal::{Journal, Options, Seq, open};

const RECORD_BYTES: usize = 300;
const GROUP_SIZES: [u64; 4] = [1, 16, 256, 4096];
/// A group's frame and a record's length field, as in the journal's format.
const FRAME_BYTES: usize = 24;
const PREFIX_BYTES: usize = 4;
/// Turns of each side for the ratio, and groups in each turn.
const TURNS: u64 = 40;
const GROUPS_PER_TURN: u64 = 25;
const BARE_FILE_BYTES: u64 = 256 << 20;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    let ratios: Vec<_> = GROUP_SIZES.into_iter().map(|group| (group, compare(&mut criterion, group))).collect();
    criterion.final_summary();
    for (group, (journal, bare)) in ratios {
        println!(
            "{group:>5} records a sync: journal {journal:>9.0} records/s, bare file {bare:>9.0} records/s, ratio {:.2}",
            journal / bare
        );
    }
}

/// Records a second of the journal and of the bare file.
fn compare(criterion: &mut Criterion, group: u64) -> (f64, f64) {
    let dir = tempfile::tempdir().expect("make a directory");
    let mut benches = criterion.benchmark_group("journal_append");
    benches.throughput(Throughput::Elements(group));

    let mut file = BareFile::create(&dir.path().join("bare"), group);
    let mut writer = GroupedJournal::start(&dir.path().join("journal"), group);
    benches.bench_function(BenchmarkId::new("bare_file", group), |bencher| {
        bencher.iter_custom(|groups| timed(|| file.write(groups)));
    });
    benches.bench_function(BenchmarkId::new("journal", group), |bencher| {
        bencher.iter_custom(|groups| timed(|| writer.write(groups)));
    });
    benches.finish();

    // In turns, so that a disk that is slower for a while is slower for both.
    let (mut journal, mut bare) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..TURNS {
        journal += timed(|| writer.write(GROUPS_PER_TURN));
        bare += timed(|| file.write(GROUPS_PER_TURN));
    }
    writer.close();
    let records = (TURNS * GROUPS_PER_TURN * group) as f64;
    (records / journal.as_secs_f64(), records / bare.as_secs_f64())
}

fn timed(run: impl FnOnce()) -> Duration {
    let started = Instant::now();
    run();
    started.elapsed()
}

struct BareFile {
    file: File,
    group: Vec<u8>,
    offset: u64,
}

impl BareFile {
    fn create(path: &Path, group: u64) -> Self {
        let mut file = OpenOptions::new().create_new(true).write(true).open(path).expect("create the bare file");
        let zeros = vec![0; 1 << 20];
        for _ in 0..BARE_FILE_BYTES >> 20 {
            file.write_all(&zeros).expect("write zeros");
        }
        file.sync_all().expect("sync the bare file");
        let bytes = FRAME_BYTES + group as usize * (PREFIX_BYTES + RECORD_BYTES);
        Self { file, group: vec![0x5A; bytes], offset: 0 }
    }

    fn write(&mut self, groups: u64) {
        for _ in 0..groups {
            if self.offset + self.group.len() as u64 > BARE_FILE_BYTES {
                self.offset = 0;
            }
            self.file.write_all_at(&self.group, self.offset).expect("write a group");
            self.file.sync_data().expect("sync a group");
            self.offset += self.group.len() as u64;
        }
    }
}

/// A journal whose groups have a fixed size: after each sync the writer waits until all of the next group is queued.
struct GroupedJournal {
    journal: Journal<()>,
    group: u64,
    queued: Sender<()>,
    synced: Receiver<Seq>,
}

impl GroupedJournal {
    fn start(dir: &Path, group: u64) -> Self {
        let (queued, next_is_queued) = channel();
        let (synced_sender, synced) = channel();
        let on_synced = move |items: &mut Vec<(Seq, ())>| {
            if let Some((last, ())) = items.last() {
                // Both fail only when the bench is over.
                let _ = synced_sender.send(*last);
            }
            let _ = next_is_queued.recv();
        };
        let recovered = open(dir, Options::default()).expect("open the journal");
        let journal = recovered.start(0, on_synced, |error| panic!("poisoned: {error}")).expect("start the journal");
        let this = Self { journal, group, queued, synced };
        // After this record the writer waits in `on_synced`.
        this.append();
        this.synced.recv().expect("the first record is synced");
        this
    }

    fn append(&self) {
        let place = self.journal.reserve().expect("take a place");
        place.append(&[0x5A; RECORD_BYTES], ()).expect("the record is small");
    }

    /// Queues groups, and waits until each is synced. The time to queue a group is included, although under load a
    /// group is queued while the previous one is synced.
    fn write(&mut self, groups: u64) {
        for _ in 0..groups {
            (0..self.group).for_each(|_| self.append());
            self.queued.send(()).expect("the writer is running");
            let last = self.synced.recv().expect("a group is synced");
            self.journal.release(last);
        }
    }

    fn close(self) {
        let Self { journal, queued, .. } = self;
        drop(queued);
        journal.close().expect("close the journal");
    }
}
