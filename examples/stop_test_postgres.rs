//! Stops the PostgreSQL that all test processes share; `make test` ends with it.
//!
//! `cargo run -q --example stop_test_postgres`

use hotline_postgres::{Cluster, ClusterError};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ClusterError> {
    // The same folder as in `tests/support/database.rs`.
    let folder = std::env::temp_dir().join(format!("hotline-test-{}", nix::unistd::getuid()));
    Cluster::stop_shared(folder).await
}
