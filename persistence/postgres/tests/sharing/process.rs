//! The helper process of `tests/sharing.rs`: `cluster_process share FOLDER` queries the shared cluster of a folder,
//! `cluster_process serve FOLDER` runs a cluster of its own until the process is killed.

use std::error::Error;
use std::path::PathBuf;

use hotline_postgres::{Cluster, ClusterOptions};
use sqlx::{Connection, PgConnection};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let action = arguments.next().ok_or("the action is missing")?;
    let folder = PathBuf::from(arguments.next().ok_or("the folder is missing")?);
    match action.to_str() {
        Some("share") => share(folder).await,
        Some("serve") => serve(folder).await,
        _ => Err("the action must be share or serve".into()),
    }
}

async fn share(folder: PathBuf) -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::shared(folder).await?;
    let mut connection = PgConnection::connect_with(&cluster.connect_options()).await?;
    let answer: i32 = sqlx::query_scalar("select 1").fetch_one(&mut connection).await?;
    connection.close().await?;
    if answer == 1 { Ok(()) } else { Err(format!("`select 1` returned {answer}").into()) }
}

/// Writes the postmaster's id to the file `up`, to signal that the cluster is running.
async fn serve(folder: PathBuf) -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::start(ClusterOptions { fsync: false, ..ClusterOptions::new(folder) }).await?;
    let up = cluster.data_dir().join("up");
    let temporary = up.with_extension("tmp");
    std::fs::write(&temporary, cluster.pid().ok_or("no postmaster")?.to_string())?;
    std::fs::rename(temporary, up)?;
    std::future::pending().await
}
