//! Three processes on one PostgreSQL with a synchronous standby, and a balancer before them, on this machine: callers of three
//! companies go on while one process after the other is killed, and at the end what was answered is compared with what is there.
//!
//! `make demo-cluster`. All of it is what `make cluster` tests with.
#![allow(clippy::expect_used, clippy::panic)] // What it shows is as much of a test as the runs are.

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("The demo of a cluster stops processes by signals and finds them in /proc: it runs on Linux alone.");
}

#[cfg(target_os = "linux")]
#[path = "../../tests/support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
#[allow(dead_code)]
#[path = "../../tests/faults/checker/mod.rs"]
mod checker;
#[cfg(target_os = "linux")]
#[allow(dead_code)]
#[path = "../../tests/faults/mix/mod.rs"]
mod mix;
#[cfg(target_os = "linux")]
#[allow(dead_code)]
#[path = "../../tests/faults/record.rs"]
mod record;
#[cfg(target_os = "linux")]
#[allow(dead_code)]
#[path = "../../tests/faults/shim.rs"]
mod shim;

#[cfg(target_os = "linux")]
#[allow(dead_code)]
#[path = "../../tests/cluster/balancer.rs"]
mod balancer;
#[cfg(target_os = "linux")]
#[allow(dead_code)]
#[path = "../../tests/cluster/database.rs"]
mod database;
#[cfg(target_os = "linux")]
#[allow(dead_code)]
#[path = "../../tests/cluster/load.rs"]
mod load;
#[cfg(target_os = "linux")]
#[allow(dead_code)]
#[path = "../../tests/cluster/member.rs"]
mod member;
#[cfg(target_os = "linux")]
#[allow(dead_code)]
#[path = "../../tests/cluster/proxy.rs"]
mod proxy;
#[cfg(target_os = "linux")]
#[allow(dead_code)]
#[path = "../../tests/cluster/rig.rs"]
mod rig;

#[cfg(target_os = "linux")]
mod show;

/// A person watches: Ctrl-C comes to this process alone, and what is noted for who mends a run is left out.
#[cfg(target_os = "linux")]
const IS_WATCHED: bool = true;

#[cfg(target_os = "linux")]
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    show::run().await;
}
