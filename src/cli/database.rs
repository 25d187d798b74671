//! Database access for short commands: the running service's database, or one started for the command.

use hotline_persistence::pool::{self, Purpose};
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::secret_keys::{self, NewFile};
use hotline_persistence::{Error, PgPool, journal, migration};
use hotline_postgres::{Cluster, ClusterOptions};

use super::backup::JOURNAL;
use super::{Failure, Refusal, failure, unfinished_restore};
use crate::config::DatabaseArgs;

/// What to do when the data folder has no private PostgreSQL yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewFolder {
    /// Create one: the command can be the first of an installation.
    Create,
    /// Refuse: the command needs existing data, so the folder is probably mistyped.
    Refuse,
}

/// What a command does with the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableAccess {
    /// Reads them, even if their schema is older.
    Read,
    /// Changes them. In an empty database they are created. An older schema is refused: an older release may be running
    /// on it.
    Write,
    /// Works with any schema.
    AnySchema,
    /// Restores them into an empty database.
    Restore,
}

/// Runs `work`, which may change tables, on the database of an installation, whether the service is running or not.
pub(super) async fn with_database<T>(
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&PgPool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    open(args, NewFolder::Refuse, TableAccess::Write, work).await
}

/// Like [`with_database`], for commands that can be the first of an installation.
pub(super) async fn with_new_database<T>(
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&PgPool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    open(args, NewFolder::Create, TableAccess::Write, work).await
}

/// Like [`with_database`], for commands that only read: also on a standby, and on an older schema as far as it has what
/// they read.
pub(super) async fn read_database<T>(
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&PgPool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    open(args, NewFolder::Refuse, TableAccess::Read, work).await
}

/// Like [`with_database`], whatever the schema is.
pub(super) async fn with_any_schema<T>(
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&PgPool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    open(args, NewFolder::Refuse, TableAccess::AnySchema, work).await
}

/// Like [`with_database`], with the keys that seal its secrets.
pub(super) async fn with_secrets<T>(
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&PgPool, &Keyring) -> Result<T, Failure>,
) -> Result<T, Failure> {
    with_unchecked_keys(args, async |db, keys, new_file| {
        secret_keys::begin(db, keys, new_file).await?;
        work(db, keys).await
    })
    .await
}

/// Like [`with_secrets`], but a key may be missing: `work` reads the keyring itself. `work` also receives whether a
/// missing key file may be created here.
pub(super) async fn with_unchecked_keys<T>(
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&PgPool, &Keyring, NewFile) -> Result<T, Failure>,
) -> Result<T, Failure> {
    open(args, NewFolder::Refuse, TableAccess::Write, async |db| {
        let keys = Keyring::at(args.key_file());
        // A remote database may belong to a service on another machine, whose key must not be created again here.
        let is_service_machine = args.url().is_none() || args.key_file.is_some() || args.data_dir.is_dir();
        work(db, &keys, if is_service_machine { NewFile::Create } else { NewFile::Refuse }).await
    })
    .await
}

/// Like [`with_any_schema`], for a restore: in a data folder that may be new.
pub(super) async fn with_database_to_restore<T>(
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&PgPool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    open(args, NewFolder::Create, TableAccess::Restore, work).await
}

async fn open<T>(
    args: &DatabaseArgs,
    new_folder: NewFolder,
    access: TableAccess,
    work: impl AsyncFnOnce(&PgPool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if access != TableAccess::Restore {
        unfinished_restore::refuse(&args.data_dir)?;
    }
    let (private_server, options) = match args.database()? {
        Some(options) => (None, options),
        None => {
            let server = Cluster::open(private_options(args, new_folder, access)?).await?;
            let options = server.connect_options();
            (Some(server), options)
        }
    };
    let result = match pool::prepare(&options, Purpose::Command).await {
        Ok(options) => {
            let db = pool::connect(options);
            let result = run_on_schema(&db, access, work).await;
            db.close().await;
            result
        }
        Err(error) => Err(error.into()),
    };
    if let Some(server) = private_server
        && let Err(error) = server.stop().await
    {
        // Only a warning: the result is still returned, because it may contain a secret that is printed only once.
        let reason = failure::message_with_causes(&error);
        failure::print(&format!("warning: the private PostgreSQL was not stopped: {reason}"));
    }
    result
}

/// The options of the data folder's private PostgreSQL.
fn private_options(args: &DatabaseArgs, new_folder: NewFolder, access: TableAccess) -> Result<ClusterOptions, Refusal> {
    let options = ClusterOptions { binaries: args.pg_bin.clone(), ..ClusterOptions::new(&args.data_dir) };
    // A restore puts both a PostgreSQL and a journal into the folder.
    if access != TableAccess::Restore && !options.exists() && journal::exists(&args.data_dir.join(JOURNAL)) {
        let folder = args.data_dir.display();
        return Err(Refusal::configuration(format!(
            "{folder} belongs to an installation whose database is elsewhere; name it with --database-url \
             (HOTLINE_DATABASE_URL), or the configuration file of the service with --config"
        )));
    }
    if new_folder == NewFolder::Refuse && !options.exists() {
        let folder = args.data_dir.display();
        return Err(Refusal::configuration(format!(
            "no Hotline installation in {folder}; use --data-dir (HOTLINE_DATA_DIR) for the data folder of the service, \
             or --database-url for its database. `hotline serve` and `hotline company create` create an installation"
        )));
    }
    Ok(options)
}

/// Checks that `work` can use the schema, and runs it.
async fn run_on_schema<T>(
    db: &PgPool,
    access: TableAccess,
    work: impl AsyncFnOnce(&PgPool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let pending = match access {
        TableAccess::AnySchema | TableAccess::Restore => None,
        TableAccess::Write => {
            migration::ensure_writable(db).await?;
            None
        }
        TableAccess::Read => migration::ensure_readable(db).await?,
    };
    match (work(db).await, pending) {
        // The older schema lacks what the command reads.
        (Err(failure), Some(pending)) if failure::is_older_schema_failure(&*failure) => {
            Err(Error::from(pending).into())
        }
        (result, _) => result,
    }
}
