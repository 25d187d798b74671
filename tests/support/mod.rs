//! What every test of the running service needs: a database of its own, the service, and clients that speak to it
//! as companies do.
#![allow(dead_code, unused_imports)] // Each test binary uses its own part.

pub mod bucket;
pub mod client;
pub mod database;
pub mod events;
pub mod figures;
pub mod form;
pub mod kept;
pub mod open_lists;
pub mod person;
pub mod process;
pub mod provider;
pub mod reader;
pub mod receiver;
pub mod relay;
pub mod running;
pub mod seed;
pub mod service;
pub mod shared;
pub mod template;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use chrono::{DurationRound, TimeDelta, Utc};
use hotline_persistence::sealed::Keyring;
use mimalloc::MiMalloc;
use parking_lot::Mutex;
use tempfile::TempDir;

pub use client::{Api, Reply};
pub use database::TestDatabase;
pub use events::{check_events, check_plain_events, wrong_events};
pub use open_lists::check_open_lists;
pub use person::{PASSWORD, Person};
pub use provider::Provider;
pub use reader::Reader;
pub use receiver::{Conduct, Received, Receiver};
pub use seed::Company;
pub use service::{OwnApp, TestApp};

/// As the binary has it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// What seals the secrets of services that run in the tests' own processes, and of the one they share.
pub fn keys() -> Keyring {
    static KEYS: LazyLock<Keyring> = LazyLock::new(|| {
        let folder = hotline_postgres::shared_folder();
        std::fs::create_dir_all(&folder).expect("the folder that tests share");
        let keys = Keyring::at(folder.join("secrets.key"));
        keys.load_or_create().expect("a key file");
        keys
    });
    KEYS.clone()
}

/// Puts folders on disk, wherever there is memory for them: for what measures.
const ON_DISK_VARIABLE: &str = "HOTLINE_TESTS_ON_DISK";

/// An empty folder; in memory, as the PostgreSQL that tests share. A process that is killed leaves the same there as on a disk,
/// and nothing waits for syncs.
pub fn empty_folder() -> TempDir {
    let shared = hotline_postgres::shared_folder();
    let beside_it = shared.parent().filter(|_| std::env::var_os(ON_DISK_VARIABLE).is_none());
    TempDir::new_in(beside_it.map_or_else(std::env::temp_dir, Path::to_owned)).expect("folder")
}

/// How long a condition may take to come true before the test fails; [`patience`] makes more of it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(5);

/// How often longer than on a machine of one's own everything may take: a number, 1 unless it is said.
const PATIENCE_VARIABLE: &str = "HOTLINE_TEST_PATIENCE";

/// The longest that something may take which takes at most `base` on a machine with nothing else to do.
pub fn patience(base: Duration) -> Duration {
    static FACTOR: LazyLock<f64> = LazyLock::new(|| match std::env::var(PATIENCE_VARIABLE) {
        Ok(factor) => factor.parse().unwrap_or_else(|_| panic!("{PATIENCE_VARIABLE} is no number: {factor}")),
        Err(_) => 1.0,
    });
    base.mul_f64(*FACTOR)
}

/// How long before the end of a day or an hour nothing is begun that is to be within one: less than is waited for a condition.
const MARGIN: TimeDelta = TimeDelta::seconds(20);

/// Waits until no such span of time, a day as UTC has them, is about to end: what a test does next is within one.
pub async fn within_one(span: TimeDelta) {
    eventually("another one has begun", || async {
        let now = Utc::now();
        now.duration_trunc(span).is_ok_and(|begun| begun + span - now > MARGIN)
    })
    .await;
}

/// An address that nobody listens at: for who is named before it listens, or who is to reach nobody. On Linux all of 127.0.0.0/8 is
/// this machine, and each process of the tests has an address of its own in its upper half: nobody else is given the port meanwhile.
pub fn free_address() -> SocketAddr {
    static GIVEN: Mutex<BTreeSet<SocketAddr>> = Mutex::new(BTreeSet::new());
    let own = Ipv4Addr::from_bits(0x7f80_0000 | (std::process::id() & 0x007f_ffff));
    let host = if cfg!(target_os = "linux") { own } else { Ipv4Addr::LOCALHOST };
    loop {
        let free = TcpListener::bind((host, 0)).and_then(|listener| listener.local_addr()).expect("a free port");
        if GIVEN.lock().insert(free) {
            return free;
        }
    }
}

/// Waits until `condition` holds.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let deadline = Instant::now() + patience(PATIENCE);
    while !condition().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
