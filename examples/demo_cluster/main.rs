//! Run with `make demo-cluster`. It starts three processes on one PostgreSQL with a synchronous standby, behind a load
//! balancer, on this machine. Callers of three companies keep sending requests while one process after the other is
//! killed. At the end, everything that was acknowledged is compared with the database.
//!
//! It uses the code of the tests that `make cluster` runs.
#![allow(clippy::expect_used, clippy::panic)] // A failed expectation must fail the demo.

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("The demo of a cluster stops processes by signals and finds them in /proc: it runs on Linux only.");
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

/// A person watches: Ctrl-C reaches only this process, which then ends the others, and notes for the examination of a
/// failed run are not printed.
#[cfg(target_os = "linux")]
const IS_WATCHED: bool = true;

#[cfg(target_os = "linux")]
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    show::run().await;
}
