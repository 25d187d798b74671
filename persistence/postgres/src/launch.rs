//! Brings the cluster from any state to one that accepts connections.

use std::io::ErrorKind;
use std::process::ExitStatus;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::binaries::Binaries;
use super::home::Home;
use super::postmaster::Postmaster;
use super::supervisor::stop_requested;
use super::{ClusterError, ClusterOptions, DATABASE, socket};

/// Pause between two attempts to connect: an existing cluster is up in about 100 ms.
const CONNECT_INTERVAL: Duration = Duration::from_millis(20);

/// Timeout of a connection attempt, which takes milliseconds on a local socket: a frozen server must not block forever.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a postmaster we started may be silent: it opens its socket before anything slow, and a minute covers a
/// machine under load.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The same for an adopted postmaster, which opened its socket long ago, unless it listens somewhere else.
const ADOPTED_RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit of a start: replaying 4 GB of WAL after a crash takes minutes on a slow disk; meanwhile PostgreSQL
/// reports that it is starting.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(600);

/// Pause before another start while backends of a killed postmaster are still exiting.
const BACKENDS_INTERVAL: Duration = Duration::from_millis(200);

/// What PostgreSQL logs when it refuses to start because such backends remain.
const BACKENDS_REMAIN: &str = "pre-existing shared memory block";

/// SQLSTATE: starting up, shutting down or in recovery.
const CANNOT_CONNECT_NOW: &str = "57P03";
/// SQLSTATE: every connection is taken.
const TOO_MANY_CONNECTIONS: &str = "53300";
/// SQLSTATE: the database does not exist.
const NO_SUCH_DATABASE: &str = "3D000";
/// SQLSTATE: the database exists already.
const DUPLICATE_DATABASE: &str = "42P04";

/// The result of waiting for a postmaster.
enum WaitOutcome {
    Ready(PgConnection),
    Exited(Option<ExitStatus>),
}

/// Adopts the running postmaster of the cluster or starts one, and waits until the database `hotline` can be used.
/// Requires the owner lock. Once `stop` is true, PostgreSQL is stopped again.
///
/// On failure an unresponsive postmaster keeps running: it may be in a long recovery, and the next start adopts it.
pub(super) async fn launch(
    home: &Home,
    binaries: &Binaries,
    options: &ClusterOptions,
    mut stop: watch::Receiver<bool>,
) -> Result<Postmaster, ClusterError> {
    let started_at = Instant::now();
    loop {
        let mut postmaster = match Postmaster::find(home)? {
            Some(postmaster) => postmaster,
            None => Postmaster::spawn(home, binaries, options)?,
        };
        let outcome = tokio::select! {
            biased;
            () = stop_requested(&mut stop) => {
                postmaster.shut_down(home).await?;
                return Err(ClusterError::Interrupted);
            }
            outcome = wait_until_ready(&mut postmaster, home) => outcome?,
        };
        match outcome {
            WaitOutcome::Ready(connection) => {
                if stop_if_without_fsync(&mut postmaster, connection, home, options).await? {
                    continue;
                }
                tracing::info!(
                    pid = postmaster.pid,
                    adopted = postmaster.is_adopted(),
                    duration_ms = started_at.elapsed().as_millis(),
                    "the private PostgreSQL accepts connections"
                );
                return Ok(postmaster);
            }
            // An adopted postmaster was shutting down or has exited: start another.
            WaitOutcome::Exited(_) if postmaster.is_adopted() => {}
            WaitOutcome::Exited(status) => await_backends(status, postmaster.log_tail(home), started_at).await?,
        }
    }
}

/// Pauses before another start if PostgreSQL exited because backends of a killed postmaster are still exiting.
///
/// # Errors
/// [`ClusterError::ExitedEarly`] when it exited for another reason, or the backends have remained for too long.
async fn await_backends(status: Option<ExitStatus>, log_tail: String, started_at: Instant) -> Result<(), ClusterError> {
    if !log_tail.contains(BACKENDS_REMAIN) || started_at.elapsed() > RESPONSE_TIMEOUT {
        return Err(ClusterError::ExitedEarly { status, log_tail });
    }
    sleep(BACKENDS_INTERVAL).await;
    Ok(())
}

/// Whether a cluster run by another process accepts connections now.
pub(super) async fn accepts_connections(home: &Home) -> Result<bool, ClusterError> {
    match try_connect(&socket::connect_options(&home.socket_dir)).await? {
        ConnectOutcome::Connected(connection) => {
            let _ = connection.close().await;
            Ok(true)
        }
        // If there is no database yet, the owner is about to create it.
        ConnectOutcome::NoDatabase | ConnectOutcome::NotReady | ConnectOutcome::NoResponse => Ok(false),
    }
}

/// Waits until the postmaster accepts connections to the database `hotline`, which is created if it is missing, or
/// until the postmaster exits.
async fn wait_until_ready(postmaster: &mut Postmaster, home: &Home) -> Result<WaitOutcome, ClusterError> {
    let options = socket::connect_options(&home.socket_dir);
    let started_at = Instant::now();
    let mut last_response = started_at;
    loop {
        let outcome = tokio::select! {
            biased;
            status = postmaster.wait_for_exit(home) => return Ok(WaitOutcome::Exited(status)),
            outcome = try_connect(&options) => outcome?,
        };
        match outcome {
            ConnectOutcome::Connected(connection) => return Ok(WaitOutcome::Ready(connection)),
            ConnectOutcome::NoDatabase => {
                // On a timeout the server may be frozen: the checks below end the start.
                if let Ok(result) = timeout(RESPONSE_TIMEOUT, create_database(&options)).await {
                    result?;
                    continue;
                }
            }
            ConnectOutcome::NotReady => last_response = Instant::now(),
            ConnectOutcome::NoResponse => {}
        }
        if postmaster.is_adopted() && last_response.elapsed() > ADOPTED_RESPONSE_TIMEOUT {
            return Err(ClusterError::Foreign {
                pid: postmaster.pid,
                cluster: home.cluster.clone(),
                socket_dir: home.socket_dir.clone(),
            });
        }
        if last_response.elapsed() > RESPONSE_TIMEOUT || started_at.elapsed() > RECOVERY_TIMEOUT {
            return Err(ClusterError::NoAnswer {
                pid: postmaster.pid,
                socket_dir: home.socket_dir.clone(),
                waited: started_at.elapsed(),
                log_file: home.log_file.clone(),
            });
        }
        sleep(CONNECT_INTERVAL).await;
    }
}

/// Stops an adopted postmaster that runs without fsync although fsync is required. Returns whether it was stopped.
async fn stop_if_without_fsync(
    postmaster: &mut Postmaster,
    mut connection: PgConnection,
    home: &Home,
    options: &ClusterOptions,
) -> Result<bool, ClusterError> {
    let is_unsafe = if postmaster.is_adopted() && options.fsync {
        let fsync: String = sqlx::query_scalar("show fsync")
            .fetch_one(&mut connection)
            .await
            .map_err(ClusterError::database("read fsync"))?;
        fsync != "on"
    } else {
        false
    };
    // If this fails, the server drops the connection anyway.
    let _ = connection.close().await;
    if is_unsafe {
        tracing::warn!(pid = postmaster.pid, "restarting PostgreSQL, which ran without fsync");
        postmaster.shut_down(home).await?;
    }
    Ok(is_unsafe)
}

/// The result of a connection attempt.
enum ConnectOutcome {
    Connected(PgConnection),
    NoDatabase,
    /// The server responds, but is starting, is stopping, or has no free connection.
    NotReady,
    NoResponse,
}

async fn try_connect(options: &PgConnectOptions) -> Result<ConnectOutcome, ClusterError> {
    let error = match timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options)).await {
        Ok(Ok(connection)) => return Ok(ConnectOutcome::Connected(connection)),
        Ok(Err(error)) => error,
        Err(_) => return Ok(ConnectOutcome::NoResponse),
    };
    let sql_state = match &error {
        sqlx::Error::Io(error) => match error.kind() {
            // A retry does not help.
            ErrorKind::PermissionDenied => None,
            _ => return Ok(ConnectOutcome::NoResponse),
        },
        sqlx::Error::Database(error) => error.code(),
        // The server closed the connection during the handshake.
        _ => return Ok(ConnectOutcome::NoResponse),
    };
    match sql_state.as_deref() {
        Some(CANNOT_CONNECT_NOW | TOO_MANY_CONNECTIONS) => Ok(ConnectOutcome::NotReady),
        Some(NO_SUCH_DATABASE) => Ok(ConnectOutcome::NoDatabase),
        _ => Err(ClusterError::database("connect")(error)),
    }
}

async fn create_database(options: &PgConnectOptions) -> Result<(), ClusterError> {
    let mut connection = PgConnection::connect_with(&options.clone().database("postgres"))
        .await
        .map_err(ClusterError::database("connect"))?;
    let result =
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!("create database {DATABASE}"))).execute(&mut connection).await;
    let _ = connection.close().await;
    match result {
        Ok(_) => Ok(()),
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(DUPLICATE_DATABASE) => Ok(()),
        Err(error) => Err(ClusterError::database("create the database")(error)),
    }
}
