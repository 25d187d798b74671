//! What every test of the running service needs: a database of its own, the service, and clients that speak to it
//! as companies do.
#![allow(dead_code, unused_imports)] // Each test binary uses its own part.

pub mod bucket;
pub mod client;
pub mod database;
pub mod events;
pub mod figures;
pub mod form;
pub mod person;
pub mod process;
pub mod provider;
pub mod reader;
pub mod receiver;
pub mod relay;
pub mod seed;
pub mod service;

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use hotline_persistence::sealed::Keyring;

pub use client::{Api, Reply};
pub use database::TestDatabase;
pub use events::{check_events, check_plain_events, wrong_events};
pub use person::{PASSWORD, Person};
pub use provider::Provider;
pub use reader::Reader;
pub use receiver::{Conduct, Received, Receiver};
pub use seed::Company;
pub use service::TestApp;

/// What seals the secrets of services that run in the test's own process.
pub fn keys() -> Keyring {
    static KEYS: LazyLock<(tempfile::TempDir, Keyring)> = LazyLock::new(|| {
        let folder = tempfile::TempDir::new().expect("folder");
        let keys = Keyring::at(folder.path().join("secrets.key"));
        keys.load_or_create().expect("a key file");
        (folder, keys)
    });
    KEYS.1.clone()
}

/// How long a condition may take to come true before the test fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `condition` holds.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
