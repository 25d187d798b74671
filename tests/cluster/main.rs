//! Runs of a whole cluster: three real binaries on one PostgreSQL with a synchronous standby, every connection between
//! them through a proxy of the test, while processes are killed and stopped.
//!
//! `make cluster` runs them, one at a time; `make cluster ARGS=long` runs for longer. The load, the record and the
//! comparison are those of `tests/faults`; callers come to every process. Each run becomes a row of
//! `target/cluster/summary.md`.
#![cfg(target_os = "linux")] // Processes are stopped by signals, and found in /proc.
#![allow(clippy::expect_used, clippy::panic)] // A failed expectation must fail the test.

#[path = "../support/mod.rs"]
mod support;

// Each kind of run uses only part of these.
#[allow(dead_code)]
#[path = "../faults/checker/mod.rs"]
mod checker;
#[allow(dead_code)]
#[path = "../faults/mix/mod.rs"]
mod mix;
#[allow(dead_code)]
#[path = "../faults/record.rs"]
mod record;
#[allow(dead_code)]
#[path = "../faults/shim.rs"]
mod shim;
#[allow(dead_code)]
#[path = "../faults/summary.rs"]
mod summary;
#[allow(dead_code)]
#[path = "../webchat/visitor.rs"]
mod visitor;

// `examples/demo_cluster` uses these as well.
#[allow(dead_code)]
mod balancer;
mod caller;
mod database;
#[allow(dead_code)]
mod load;
mod member;
mod moments;
mod proxy;
mod rig;
mod visitors;

mod clocks;
mod cut;
mod demo;
mod edges;
mod failover;
mod frozen;
mod killed;
mod moves;
mod outbox;
mod readers;
mod restarted;
mod rolling;
mod sockets;

/// No person watches: Ctrl-C ends a run with all its processes, and its notes are for anyone who examines a failure.
const IS_WATCHED: bool = false;

/// The folder of the summary, below `target`.
const SUMMARY_FOLDER: &str = "cluster";
