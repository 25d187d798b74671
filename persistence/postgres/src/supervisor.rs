//! Keeps the postmaster running while the service runs: Hotline works without its database, but should not for longer
//! than necessary.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::binaries::Binaries;
use super::home::Home;
use super::lock::OwnerLock;
use super::postmaster::{self, Postmaster};
use super::{ClusterError, ClusterOptions};

/// The pause before the first restart, without jitter: short, so that users hardly notice a single crash.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Longest pause: once a full disk has space again, PostgreSQL runs within half a minute.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// How often the size of the log is checked: a server that logs an error for every statement writes a few MiB a minute.
const LOG_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// A postmaster that ran this long was healthy; its exit resets the pauses.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// Maximum number of doublings: the longest pause is reached by then, and a larger shift would overflow.
const DOUBLINGS_MAX: u32 = 10;

/// The value of `pid` while no postmaster is running.
const NOT_RUNNING: u32 = 0;

/// A task that restarts the postmaster whenever it exits unexpectedly.
///
/// Dropping it leaves the postmaster running, to be adopted by the next owner.
#[derive(Debug)]
pub(super) struct Supervisor {
    pid: Arc<AtomicU32>,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<Result<(), ClusterError>>>>,
}

/// The state of a [`Supervisor`]'s task.
struct RestartTask {
    home: Home,
    binaries: Binaries,
    options: ClusterOptions,
    pid: Arc<AtomicU32>,
    /// Completed once a failed rotation of the log has been reported.
    rotation_warning: Once,
    /// Held as long as the task may start a postmaster.
    _lock: OwnerLock,
}

impl Supervisor {
    pub(super) fn start(
        postmaster: Postmaster,
        home: Home,
        binaries: Binaries,
        options: ClusterOptions,
        lock: OwnerLock,
    ) -> Self {
        let pid = Arc::new(AtomicU32::new(postmaster.pid));
        let (stop, stop_receiver) = watch::channel(false);
        let restart_task =
            RestartTask { home, binaries, options, pid: Arc::clone(&pid), rotation_warning: Once::new(), _lock: lock };
        let task = tokio::spawn(restart_task.run(postmaster, stop_receiver));
        Self { pid, stop, task: Mutex::new(Some(task)) }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        match self.pid.load(Ordering::Acquire) {
            NOT_RUNNING => None,
            pid => Some(pid),
        }
    }

    /// Stops the postmaster and releases the owner lock. A second call does nothing.
    pub(super) async fn stop(&self, home: &Home) -> Result<(), ClusterError> {
        self.stop.send_replace(true);
        // Cleared only after the task has ended, so that a canceled stop can be repeated.
        let mut task_guard = self.task.lock().await;
        let Some(task) = task_guard.as_mut() else {
            return Ok(());
        };
        let task_result = task.await;
        *task_guard = None;
        if let Ok(result) = task_result {
            return result;
        }
        // The task was canceled with its runtime, or panicked; the postmaster may still be running.
        match Postmaster::find(home)? {
            Some(mut postmaster) => postmaster.shut_down(home).await,
            None => Ok(()),
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut() {
            task.abort();
        }
    }
}

impl RestartTask {
    async fn run(self, mut postmaster: Postmaster, mut stop: watch::Receiver<bool>) -> Result<(), ClusterError> {
        let mut failures = 0;
        loop {
            let started_at = Instant::now();
            self.pid.store(postmaster.pid, Ordering::Release);
            let status = loop {
                tokio::select! {
                    biased;
                    () = stop_requested(&mut stop) => {
                        let result = postmaster.shut_down(&self.home).await;
                        self.pid.store(NOT_RUNNING, Ordering::Release);
                        return result;
                    }
                    status = postmaster.wait_for_exit(&self.home) => break status,
                    () = sleep(LOG_CHECK_INTERVAL) => self.rotate_live_log().await,
                }
            };
            self.pid.store(NOT_RUNNING, Ordering::Release);
            tracing::error!(
                pid = postmaster.pid,
                status = status.map(|status| status.to_string()),
                log = postmaster.log_tail(&self.home),
                "PostgreSQL exited unexpectedly and will be restarted"
            );
            if started_at.elapsed() > HEALTHY_AFTER {
                failures = 0;
            }
            let Some(restarted) = self.retry_restart(&mut failures, &mut stop).await else { return Ok(()) };
            postmaster = restarted;
            tracing::warn!(pid = postmaster.pid, failures, "restarted PostgreSQL");
        }
    }

    /// Restarts the postmaster, after a pause, until that succeeds; `None` if a stop is requested. `failures` counts
    /// the attempts, also those of earlier restarts unless the postmaster was healthy in between.
    async fn retry_restart(&self, failures: &mut u32, stop: &mut watch::Receiver<bool>) -> Option<Postmaster> {
        loop {
            tokio::select! {
                biased;
                () = stop_requested(stop) => return None,
                () = sleep(restart_pause(*failures)) => {}
            }
            *failures = failures.saturating_add(1);
            match self.restart() {
                Ok(postmaster) => return Some(postmaster),
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "could not restart PostgreSQL")
                }
            }
        }
    }

    /// Rotates the log if it is too large. Only the first failure is reported; every check tries again.
    async fn rotate_live_log(&self) {
        let path = self.home.log_file.clone();
        let rotation = tokio::task::spawn_blocking(move || postmaster::rotate_live_log(&path));
        if let Err(error) = rotation.await.unwrap_or_else(|error| Err(error.into())) {
            self.rotation_warning.call_once(|| {
                tracing::warn!(
                    %error,
                    path = %self.home.log_file.display(),
                    "could not rotate the log of PostgreSQL: its size is not limited until this user can write the \
                     file and its copy, `postgres.log.1`; change their owner, or delete the copy"
                );
            });
        }
    }

    /// Starts a postmaster without waiting until it is ready: a failed start shows up as another exit.
    fn restart(&self) -> Result<Postmaster, ClusterError> {
        match Postmaster::find(&self.home)? {
            // An operator has started one meanwhile.
            Some(postmaster) => Ok(postmaster),
            None => Postmaster::spawn(&self.home, &self.binaries, &self.options),
        }
    }
}

/// Returns once a stop is requested; never if the sender is dropped, since a dropped supervisor aborts its task.
pub(super) async fn stop_requested(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|is_requested| *is_requested).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The pause before a restart. It doubles with each failure up to [`PAUSE_MAX`]; jitter of up to half of it staggers
/// machines that lost the same disk.
fn restart_pause(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << failures.min(DOUBLINGS_MAX)).min(PAUSE_MAX).mul_f64(rand::random_range(0.5..=1.0))
}
