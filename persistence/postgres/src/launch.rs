//! Brings the cluster from any state to one that accepts connections.

use std::io::ErrorKind;
use std::process::ExitStatus;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::time::{Instant, sleep, timeout};

use super::binaries::Binaries;
use super::home::Home;
use super::postmaster::Postmaster;
use super::{ClusterError, ClusterOptions, DATABASE, socket};

/// Pause between two attempts to connect: an existing cluster is up in some 100 ms.
const CONNECT_INTERVAL: Duration = Duration::from_millis(20);

/// Timeout of a connection attempt, which takes milliseconds on a local socket: a frozen server must not block forever.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A postmaster we started opens its socket before anything slow; a minute covers a machine under load.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// An adopted postmaster opened its socket long ago, unless it listens somewhere else.
const ADOPTED_SILENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Replaying 4 GB of WAL after a crash takes minutes on a slow disk; meanwhile PostgreSQL reports that it is starting.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(600);

/// Pause before another start while backends of a killed postmaster are still exiting.
const BACKENDS_INTERVAL: Duration = Duration::from_millis(200);

/// PostgreSQL's log message when it refuses to start because of such backends.
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
enum Outcome {
    Ready(PgConnection),
    Ended(Option<ExitStatus>),
}

/// Adopts the running postmaster of the cluster or starts one, and waits until the database `hotline` can be used.
/// Requires the owner lock.
///
/// On failure an unresponsive postmaster keeps running: it may be in a long recovery, and the next start adopts it.
pub(super) async fn launch(
    home: &Home,
    binaries: &Binaries,
    options: &ClusterOptions,
) -> Result<Postmaster, ClusterError> {
    let began = Instant::now();
    loop {
        let mut postmaster = match Postmaster::find(home)? {
            Some(found) => found,
            None => Postmaster::spawn(home, binaries, options)?,
        };
        match wait(&mut postmaster, home).await? {
            Outcome::Ready(connection) => {
                if replace(&mut postmaster, connection, home, options).await? {
                    continue;
                }
                tracing::info!(
                    pid = postmaster.pid,
                    adopted = postmaster.is_adopted(),
                    duration_ms = began.elapsed().as_millis(),
                    "the private PostgreSQL accepts connections"
                );
                return Ok(postmaster);
            }
            // It was shutting down, or exited meanwhile.
            Outcome::Ended(_) if postmaster.is_adopted() => {}
            Outcome::Ended(status) => {
                let log_tail = postmaster.log_tail(home);
                if !log_tail.contains(BACKENDS_REMAIN) || began.elapsed() > SILENCE_TIMEOUT {
                    return Err(ClusterError::ExitedEarly { status, log_tail });
                }
                sleep(BACKENDS_INTERVAL).await;
            }
        }
    }
}

/// Whether a cluster run by another process accepts connections now.
pub(super) async fn answers(home: &Home) -> Result<bool, ClusterError> {
    match attempt(&socket::connect_options(&home.socket_dir)).await? {
        Attempt::Connected(connection) => {
            let _ = connection.close().await;
            Ok(true)
        }
        // Its owner is about to create the database.
        Attempt::NoDatabase | Attempt::Starting | Attempt::Silent => Ok(false),
    }
}

async fn wait(postmaster: &mut Postmaster, home: &Home) -> Result<Outcome, ClusterError> {
    let options = socket::connect_options(&home.socket_dir);
    let began = Instant::now();
    let mut heard = began;
    loop {
        let attempt = tokio::select! {
            biased;
            status = postmaster.ended(home) => return Ok(Outcome::Ended(status)),
            attempt = attempt(&options) => attempt?,
        };
        match attempt {
            Attempt::Connected(connection) => return Ok(Outcome::Ready(connection)),
            Attempt::NoDatabase => {
                create_database(&options).await?;
                continue;
            }
            Attempt::Starting => heard = Instant::now(),
            Attempt::Silent => {}
        }
        if postmaster.is_adopted() && heard.elapsed() > ADOPTED_SILENCE_TIMEOUT {
            return Err(ClusterError::Foreign {
                pid: postmaster.pid,
                cluster: home.cluster.clone(),
                socket_dir: home.socket_dir.clone(),
            });
        }
        if heard.elapsed() > SILENCE_TIMEOUT || began.elapsed() > RECOVERY_TIMEOUT {
            return Err(ClusterError::NoAnswer {
                pid: postmaster.pid,
                socket_dir: home.socket_dir.clone(),
                waited: began.elapsed(),
                log_file: home.log_file.clone(),
            });
        }
        sleep(CONNECT_INTERVAL).await;
    }
}

/// Stops an adopted postmaster that runs without fsync although fsync is required. Returns whether it did.
async fn replace(
    postmaster: &mut Postmaster,
    mut connection: PgConnection,
    home: &Home,
    options: &ClusterOptions,
) -> Result<bool, ClusterError> {
    let unsafe_commits = if postmaster.is_adopted() && options.fsync {
        let fsync: String = sqlx::query_scalar("show fsync")
            .fetch_one(&mut connection)
            .await
            .map_err(ClusterError::database("read fsync"))?;
        fsync != "on"
    } else {
        false
    };
    // The server forgets the connection either way.
    let _ = connection.close().await;
    if unsafe_commits {
        tracing::warn!(pid = postmaster.pid, "restarting PostgreSQL, which ran without fsync");
        postmaster.shut_down(home).await?;
    }
    Ok(unsafe_commits)
}

enum Attempt {
    Connected(PgConnection),
    NoDatabase,
    /// It responds, but does not accept connections yet, or any more.
    Starting,
    Silent,
}

async fn attempt(options: &PgConnectOptions) -> Result<Attempt, ClusterError> {
    let error = match timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options)).await {
        Ok(Ok(connection)) => return Ok(Attempt::Connected(connection)),
        Ok(Err(error)) => error,
        Err(_) => return Ok(Attempt::Silent),
    };
    let refusal = match &error {
        sqlx::Error::Io(error) => match error.kind() {
            ErrorKind::PermissionDenied => None,
            _ => return Ok(Attempt::Silent),
        },
        sqlx::Error::Database(answer) => answer.code(),
        // The server closed the connection during the handshake.
        _ => return Ok(Attempt::Silent),
    };
    match refusal.as_deref() {
        Some(CANNOT_CONNECT_NOW | TOO_MANY_CONNECTIONS) => Ok(Attempt::Starting),
        Some(NO_SUCH_DATABASE) => Ok(Attempt::NoDatabase),
        _ => Err(ClusterError::database("connect")(error)),
    }
}

async fn create_database(options: &PgConnectOptions) -> Result<(), ClusterError> {
    let mut connection = PgConnection::connect_with(&options.clone().database("postgres"))
        .await
        .map_err(ClusterError::database("connect"))?;
    let created =
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!("create database {DATABASE}"))).execute(&mut connection).await;
    let _ = connection.close().await;
    match created {
        Ok(_) => Ok(()),
        Err(sqlx::Error::Database(answer)) if answer.code().as_deref() == Some(DUPLICATE_DATABASE) => Ok(()),
        Err(error) => Err(ClusterError::database("create the database")(error)),
    }
}
