//! What every test of the running service needs: a database of its own, the service, and clients that speak to it
//! as companies do.
#![allow(dead_code, unused_imports)] // Each test binary uses its own part.

pub mod bucket;
pub mod client;
pub mod database;
pub mod events;
pub mod form;
pub mod metrics;
pub mod mirror;
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
pub use database::{TestDatabase, until_blocked};
pub use events::{check_events, check_plain_events, wrong_events};
pub use open_lists::check_open_lists;
pub use person::{PASSWORD, Person};
pub use provider::Provider;
pub use reader::Reader;
pub use receiver::{Conduct, Received, Receiver};
pub use seed::Company;
pub use service::{OwnApp, TestApp};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The keys that seal the secrets of services in the tests' own processes, and of the shared service.
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

/// If this environment variable is set, folders are on disk even where there is memory for them: for measurements.
const ON_DISK_VARIABLE: &str = "HOTLINE_TESTS_ON_DISK";

/// An empty folder, in memory like the shared PostgreSQL. A killed process leaves the same files there as on a disk,
/// and no sync takes time.
pub fn empty_folder() -> TempDir {
    let shared = hotline_postgres::shared_folder();
    let beside_it = shared.parent().filter(|_| std::env::var_os(ON_DISK_VARIABLE).is_none());
    TempDir::new_in(beside_it.map_or_else(std::env::temp_dir, Path::to_owned)).expect("folder")
}

/// How long a condition may take to come true before the test fails; [`patience`] multiplies it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The pause between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(5);

/// The environment variable with the factor by which every wait may be longer than on an idle machine; 1 if not set.
const PATIENCE_VARIABLE: &str = "HOTLINE_TEST_PATIENCE";

/// The longest wait for something that takes at most `base` on an idle machine.
pub fn patience(base: Duration) -> Duration {
    static FACTOR: LazyLock<f64> = LazyLock::new(|| match std::env::var(PATIENCE_VARIABLE) {
        Ok(factor) => factor.parse().unwrap_or_else(|_| panic!("{PATIENCE_VARIABLE} is not a number: {factor}")),
        Err(_) => 1.0,
    });
    base.mul_f64(*FACTOR)
}

/// The least time that must be left of a day or an hour for work that has to end within it, also on a busy machine.
const MARGIN: TimeDelta = TimeDelta::minutes(2);

/// If the current span (a day of UTC, or an hour) is about to end, waits for the next one, so that the test's next work
/// is within one span.
pub async fn ensure_time_left_in(span: TimeDelta) {
    assert!(span > MARGIN, "the span is too short for any work");
    loop {
        let now = Utc::now();
        let left = now.duration_trunc(span).expect("a span") + span - now;
        if left > MARGIN {
            return;
        }
        tokio::time::sleep(left.to_std().unwrap_or_default()).await;
    }
}

/// An address without a listener: for a service that is named before it listens, or a call that has to fail. On Linux
/// all of 127.0.0.0/8 is this machine, and each test process has an address of its own in the upper half: no other
/// process gets the port.
pub fn free_address() -> SocketAddr {
    static GIVEN_OUT: Mutex<BTreeSet<SocketAddr>> = Mutex::new(BTreeSet::new());
    let own = Ipv4Addr::from_bits(0x7f80_0000 | (std::process::id() & 0x007f_ffff));
    let host = if cfg!(target_os = "linux") { own } else { Ipv4Addr::LOCALHOST };
    loop {
        let free = TcpListener::bind((host, 0)).and_then(|listener| listener.local_addr()).expect("a free port");
        if GIVEN_OUT.lock().insert(free) {
            return free;
        }
    }
}

/// Waits until `condition` holds.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let deadline = Instant::now() + patience(PATIENCE);
    loop {
        // Read before the check, so that a test that did not run for a while checks once more.
        let is_late = Instant::now() >= deadline;
        if condition().await {
            return;
        }
        assert!(!is_late, "not in time: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
