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
pub mod running;
pub mod seed;
pub mod service;
pub mod shared;
pub mod template;

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
pub use service::{OwnApp, TestApp};

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

/// Waits until `condition` holds.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let deadline = Instant::now() + patience(PATIENCE);
    while !condition().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
