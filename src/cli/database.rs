//! The database of a command that is soon over: the running service's, or one started for the purpose.

use hotline_persistence::postgres::{Cluster, ClusterOptions};
use hotline_persistence::{PgPool, pool};

use super::Failure;
use crate::config::DatabaseArgs;

/// Does something with the database, on a stopped service and on a running one alike.
pub async fn with_database<T>(
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&PgPool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (cluster, options) = match args.database()? {
        Some(options) => (None, options),
        None => {
            let options = ClusterOptions { binaries: args.pg_bin.clone(), ..ClusterOptions::new(&args.data_dir) };
            let cluster = Cluster::open(options).await?;
            let options = cluster.connect_options();
            (Some(cluster), options)
        }
    };
    let db = pool::connect(options);
    let done = match pool::migrate(&db).await {
        Ok(()) => work(&db).await,
        Err(error) => Err(error.into()),
    };
    db.close().await;
    if let Some(cluster) = cluster {
        cluster.stop().await?;
    }
    done
}
