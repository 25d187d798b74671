//! Fault runs: the real binary, driven over HTTP, while its disk, database, clock or clients fail, or it is killed.
//!
//! `make faults` runs them, one at a time and within ten minutes; `make test` leaves them out. Each run is a mixed load
//! (`mix`) that keeps a record of every answer (`record`), a fault in the middle of it, and a comparison of the record
//! with the service and with PostgreSQL (`checker`). What was promised and what was seen become a row of
//! `target/faults/summary.md`. Faults of disk and clock come from `shim.c`, which is preloaded only into the service;
//! those of PostgreSQL are signals and a small file system. A fault that cannot be made on this machine is a row as
//! well, with the reason.
#![cfg(target_os = "linux")] // The shim is preloaded, and processes are found in /proc.
#![allow(clippy::expect_used, clippy::panic)] // A failed expectation must fail the test.

#[path = "../support/mod.rs"]
mod support;

mod alone;
mod checker;
mod mix;
mod raw;
mod record;
mod rig;
mod shim;
mod summary;

mod clock;
mod connections;
mod database;
mod journal_disk;
mod killed;
mod oversized;

/// The folder of the summary, below `target`.
const SUMMARY_FOLDER: &str = "faults";
