//! The cluster, as used by the rest of Hotline.

use std::path::Path;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::binaries::Binaries;
use super::home::{Home, prepare_data_dir};
use super::lock::{GuestLock, OWNER_FILE, OwnerLock, OwnerRole, holder};
use super::postmaster::Postmaster;
use super::supervisor::{Supervisor, stop_requested};
use super::{ClusterError, ClusterOptions, initdb, launch, pid_file, socket};

/// How long a service or command waits for another process that starts or stops the cluster, and how long a command
/// waits for the guests before it stops the cluster.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a test process waits for another to create and start the shared cluster: covers `initdb` on a machine that
/// is compiling.
const SHARED_TIMEOUT: Duration = Duration::from_secs(120);

/// Poll interval while another process starts or stops the cluster.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A running private PostgreSQL cluster.
///
/// If it is dropped without [`Cluster::stop`], PostgreSQL keeps running; the next start adopts it.
#[derive(Debug)]
pub struct Cluster {
    home: Home,
    access: Access,
}

/// This process's relation to the cluster.
#[derive(Debug)]
enum Access {
    /// Starts, restarts and stops the cluster. A command waits for its guests before a stop; a service does not.
    Owner { supervisor: Supervisor, role: OwnerRole },
    /// Uses a cluster that another process owns.
    Guest { _lock: GuestLock },
    /// Uses a cluster without an owner.
    Shared,
}

impl Cluster {
    /// Starts the cluster, or adopts a running one, and owns it until it is stopped or dropped, or this process exits.
    /// No other process can own it meanwhile. Creates the cluster if needed. Returns when it accepts connections.
    pub async fn start(options: ClusterOptions) -> Result<Self, ClusterError> {
        Self::start_unless(options, never_stopped()).await
    }

    /// As [`Cluster::start`], but interrupted once `stop` is true: PostgreSQL is then stopped again.
    ///
    /// # Errors
    /// [`ClusterError::Interrupted`] once `stop` is true.
    pub async fn start_unless(options: ClusterOptions, mut stop: watch::Receiver<bool>) -> Result<Self, ClusterError> {
        let data_dir = prepare_data_dir(&options.data_dir)?;
        let lock = tokio::select! {
            biased;
            () = stop_requested(&mut stop) => return Err(ClusterError::Interrupted),
            lock = OwnerLock::acquire(&data_dir, OwnerRole::Service, WAIT_TIMEOUT) => lock?,
        };
        Self::start_as_owner(options, &data_dir, lock, OwnerRole::Service, stop).await
    }

    /// Checks that no service runs on this data folder; changes nothing.
    ///
    /// # Errors
    /// [`ClusterError::InUse`] when a service runs on it.
    pub fn ensure_not_served(path: impl AsRef<Path>) -> Result<(), ClusterError> {
        let path = path.as_ref();
        if !path.join(OWNER_FILE).exists() || OwnerLock::try_acquire(path, OwnerRole::Temporary)?.is_some() {
            return Ok(());
        }
        match holder(path) {
            (pid, Some(OwnerRole::Service)) => Err(ClusterError::InUse { data_dir: path.to_owned(), pid }),
            _ => Ok(()),
        }
    }

    /// For short commands: uses the cluster of another process, or owns it for the duration of the command. Waits while
    /// another process starts or stops it.
    pub async fn open(options: ClusterOptions) -> Result<Self, ClusterError> {
        let data_dir = prepare_data_dir(&options.data_dir)?;
        let started_at = Instant::now();
        loop {
            if let Some(lock) = OwnerLock::try_acquire(&data_dir, OwnerRole::Temporary)? {
                return Self::start_as_owner(options, &data_dir, lock, OwnerRole::Temporary, never_stopped()).await;
            }
            if let Some(guest) = Self::try_join(&data_dir).await? {
                return Ok(guest);
            }
            if started_at.elapsed() > WAIT_TIMEOUT {
                return Err(ClusterError::NotServed { pid: holder(&data_dir).0, data_dir, waited: WAIT_TIMEOUT });
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// For tests and benches: the cluster of `path`, started by the first caller, shared by all, stopped only by
    /// [`Cluster::stop_shared`]. Runs without fsync, so a machine crash may corrupt it.
    pub async fn shared(path: impl AsRef<Path>) -> Result<Self, ClusterError> {
        let options = ClusterOptions::for_tests(path.as_ref());
        let data_dir = prepare_data_dir(&options.data_dir)?;
        // Hundreds of tests find the cluster running, and need neither the binaries nor the lock.
        if let Some(home) = Home::locate(&data_dir).filter(|home| pid_file::is_ready(&home.cluster)) {
            return Ok(Self { home, access: Access::Shared });
        }
        let lock = OwnerLock::acquire(&data_dir, OwnerRole::Temporary, SHARED_TIMEOUT).await?;
        let (home, binaries) = Self::prepare(&options, &data_dir).await?;
        launch::launch(&home, &binaries, &options, never_stopped()).await?;
        drop(lock);
        Ok(Self { home, access: Access::Shared })
    }

    /// Stops the cluster of `path` if it is running without an owner.
    pub async fn stop_shared(path: impl AsRef<Path>) -> Result<(), ClusterError> {
        if !path.as_ref().exists() {
            return Ok(());
        }
        let data_dir = prepare_data_dir(path.as_ref())?;
        let _lock = OwnerLock::acquire(&data_dir, OwnerRole::Temporary, SHARED_TIMEOUT).await?;
        let Some(home) = Home::locate(&data_dir) else {
            return Ok(());
        };
        match Postmaster::find(&home)? {
            Some(mut postmaster) => postmaster.shut_down(&home).await,
            None => Ok(()),
        }
    }

    /// Connection options for Hotline's database.
    pub fn connect_options(&self) -> PgConnectOptions {
        socket::connect_options(&self.home.socket_dir)
    }

    /// [`Cluster::connect_options`] as a URL, for psql and other libpq programs.
    pub fn url(&self) -> String {
        socket::url(&self.home.socket_dir)
    }

    /// Process id of the postmaster; `None` while it is down.
    pub fn pid(&self) -> Option<u32> {
        match &self.access {
            Access::Owner { supervisor, .. } => supervisor.pid(),
            Access::Guest { .. } | Access::Shared => pid_file::running_pid(&self.home.cluster).ok()?,
        }
    }

    /// Hotline's data folder, as an absolute path without links.
    pub fn data_dir(&self) -> &Path {
        &self.home.data_dir
    }

    /// PostgreSQL's data folder: `<data-dir>/postgres`, or the target of that link.
    pub fn cluster_dir(&self) -> &Path {
        &self.home.cluster
    }

    /// Folder of the unix socket.
    pub fn socket_dir(&self) -> &Path {
        &self.home.socket_dir
    }

    /// PostgreSQL's log file.
    pub fn log_file(&self) -> &Path {
        &self.home.log_file
    }

    /// Whether this process started or adopted the cluster, and so stops it.
    pub fn is_owner(&self) -> bool {
        matches!(self.access, Access::Owner { .. })
    }

    /// Stops PostgreSQL and releases the cluster if this process owns it; otherwise does nothing. A command that owns
    /// the cluster first waits for its guests, up to a limit.
    pub async fn stop(&self) -> Result<(), ClusterError> {
        let Access::Owner { supervisor, role } = &self.access else {
            return Ok(());
        };
        let _no_guests = match role {
            OwnerRole::Service => None,
            OwnerRole::Temporary => GuestLock::exclude_guests(&self.home.data_dir, WAIT_TIMEOUT).await?,
        };
        supervisor.stop(&self.home).await
    }

    async fn start_as_owner(
        options: ClusterOptions,
        data_dir: &Path,
        lock: OwnerLock,
        role: OwnerRole,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, ClusterError> {
        let (home, binaries) = Self::prepare(&options, data_dir).await?;
        let postmaster = launch::launch(&home, &binaries, &options, stop).await?;
        let supervisor = Supervisor::start(postmaster, home.clone(), binaries, options, lock);
        Ok(Self { home, access: Access::Owner { supervisor, role } })
    }

    /// Prepares the cluster's folder, creates the cluster if needed, and finds suitable binaries.
    async fn prepare(options: &ClusterOptions, data_dir: &Path) -> Result<(Home, Binaries), ClusterError> {
        let home = Home::prepare(data_dir)?;
        let version = initdb::cluster_version(&home)?;
        let existing = version.map(|version| (home.cluster.as_path(), version));
        let binaries = Binaries::find(options.binaries.as_deref(), existing, &home.user).await?;
        match version {
            Some(_) => initdb::adjust_owner(&home)?,
            None => initdb::create(&home, &binaries, options.fsync).await?,
        }
        Ok((home, binaries))
    }

    /// Uses the cluster as a guest; `None` if it does not accept connections or is about to stop.
    async fn try_join(data_dir: &Path) -> Result<Option<Self>, ClusterError> {
        let (Some(lock), Some(home)) = (GuestLock::try_enter(data_dir)?, Home::locate(data_dir)) else {
            return Ok(None);
        };
        Ok(launch::accepts_connections(&home).await?.then_some(Self { home, access: Access::Guest { _lock: lock } }))
    }
}

/// A stop signal that never comes, for a start that cannot be interrupted.
fn never_stopped() -> watch::Receiver<bool> {
    watch::channel(false).1
}
