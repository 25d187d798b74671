//! Database access for short commands: the running service's database, or one started for the command.

use hotline_persistence::PgPool;
use hotline_persistence::pool::{self, Purpose};
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::secret_keys::{self, NewFile};
use hotline_postgres::{Cluster, ClusterOptions};

use super::{Failure, Refusal};
use crate::config::DatabaseArgs;

/// What to do when the data folder has no private PostgreSQL yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewFolder {
    /// Create one: the command can be the first of an installation.
    Create,
    /// Refuse: the command needs existing data, so the folder is probably mistyped.
    Refuse,
}

/// Runs `work` on the database of an installation, whether the service is running or not.
pub(super) async fn with_database<T>(
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&PgPool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    open(args, NewFolder::Refuse, work).await
}

/// Like [`with_database`], for commands that can be the first of an installation.
pub(super) async fn with_new_database<T>(
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&PgPool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    open(args, NewFolder::Create, work).await
}

/// Like [`with_database`], with the keys that seal its secrets.
pub(super) async fn with_secrets<T>(
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&PgPool, &Keyring) -> Result<T, Failure>,
) -> Result<T, Failure> {
    open(args, NewFolder::Refuse, async |db| {
        let keys = Keyring::at(args.key_file());
        // A remote database may belong to a service elsewhere, whose key must not be created again here.
        let is_here = args.url().is_none() || args.key_file.is_some() || args.data_dir.is_dir();
        secret_keys::begin(db, &keys, if is_here { NewFile::Made } else { NewFile::Refused }).await?;
        work(db, &keys).await
    })
    .await
}

/// Like [`with_database`], without a migration: for commands that change nothing, or that bring their own tables.
pub(super) async fn with_database_as_is<T>(
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&PgPool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    connect(args, NewFolder::Refuse, work).await
}

/// Like [`with_database_as_is`], in a data folder that may be new.
pub(super) async fn with_new_database_as_is<T>(
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&PgPool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    connect(args, NewFolder::Create, work).await
}

async fn open<T>(
    args: &DatabaseArgs,
    new_folder: NewFolder,
    work: impl AsyncFnOnce(&PgPool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    connect(args, new_folder, async |db| {
        pool::migrate(db).await?;
        work(db).await
    })
    .await
}

async fn connect<T>(
    args: &DatabaseArgs,
    new_folder: NewFolder,
    work: impl AsyncFnOnce(&PgPool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (cluster, options) = match args.database()? {
        Some(options) => (None, options),
        None => {
            let options = ClusterOptions { binaries: args.pg_bin.clone(), ..ClusterOptions::new(&args.data_dir) };
            if new_folder == NewFolder::Refuse && !options.exists() {
                let folder = args.data_dir.display();
                return Err(Refusal::configuration(format!(
                    "no Hotline installation in {folder}; use --data-dir (HOTLINE_DATA_DIR) for the data folder of \
                     the service, or --database-url for its database. `hotline serve` and `hotline company create` \
                     create an installation"
                ))
                .into());
            }
            let cluster = Cluster::open(options).await?;
            let options = cluster.connect_options();
            (Some(cluster), options)
        }
    };
    let result = match pool::prepare(&options, Purpose::Command).await {
        Ok(options) => {
            let db = pool::connect(options);
            let result = work(&db).await;
            db.close().await;
            result
        }
        Err(error) => Err(error.into()),
    };
    if let Some(cluster) = cluster {
        cluster.stop().await?;
    }
    result
}
