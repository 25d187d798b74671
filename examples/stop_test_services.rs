//! Stops the PostgreSQL that all test processes share; `make test` ends with it.
//!
//! `cargo run -q --example stop_test_postgres`

use hotline_postgres::{Cluster, ClusterError, shared_folder};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ClusterError> {
    Cluster::stop_shared(shared_folder()).await
}
