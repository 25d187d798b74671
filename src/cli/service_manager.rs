//! The notifications to systemd of a service with `Type=notify`. Without `NOTIFY_SOCKET` nothing is sent.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use actix_web::web::Data;
use sd_notify::NotifyState;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep};

use crate::app::App;
use crate::health::LivenessCheck;

/// How often the process asks for more time during a start or a stop.
const EXTEND_INTERVAL: Duration = Duration::from_secs(5);

/// The time that each request asks for, in microseconds: systemd ends a process that hangs for longer.
const EXTENSION_US: u32 = 30_000_000;

/// Maximum time for which a start asks: a journal of 4 GiB is replayed in minutes, a migration of a large database may
/// take longer.
const START_TIME_MAX: Duration = Duration::from_secs(3600);

/// Maximum time for which a stop asks: it waits for requests, for the database, and for the private PostgreSQL.
const STOP_TIME_MAX: Duration = Duration::from_secs(180);

/// Number of notices to the watchdog within its timeout.
const NOTICES_PER_TIMEOUT: u32 = 3;

/// Maximum number of queued messages to a service manager that does not read; further ones are dropped.
const QUEUED_MAX: usize = 64;

/// Queues a message for a thread of its own, because a service manager that does not read would block the sender.
fn notify(states: &[NotifyState<'_>]) {
    static SENDER: OnceLock<Option<SyncSender<String>>> = OnceLock::new();
    let sender = SENDER.get_or_init(|| {
        std::env::var_os("NOTIFY_SOCKET")?;
        let (sender, receiver) = sync_channel(QUEUED_MAX);
        let thread = std::thread::Builder::new().name("service-manager".to_owned());
        thread.spawn(move || send_all(&receiver)).ok().map(|_| sender)
    });
    let Some(sender) = sender else { return };
    let text = states.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    if sender.try_send(text).is_err() {
        tracing::debug!("the service manager does not read; a message is dropped");
    }
}

fn send_all(messages: &Receiver<String>) {
    for message in messages {
        if let Err(error) = sd_notify::notify(&[NotifyState::Custom(&message)]) {
            tracing::debug!(%error, "the service manager was not notified");
        }
    }
}

/// Asks for more time for a start, until it is dropped.
pub(super) struct StartNotices(JoinHandle<()>);

/// Reports that a start has begun.
pub(super) fn notify_starting() -> StartNotices {
    notify(&[NotifyState::Status("starting")]);
    StartNotices(tokio::spawn(extend_timeout("starting: recovering and migrating", START_TIME_MAX)))
}

impl Drop for StartNotices {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Asks for more time repeatedly, for at most `time_max`.
async fn extend_timeout(status: &str, time_max: Duration) {
    let started_at = Instant::now();
    while started_at.elapsed() < time_max {
        notify(&[NotifyState::ExtendTimeoutUsec(EXTENSION_US), NotifyState::Status(status)]);
        sleep(EXTEND_INTERVAL).await;
    }
}

/// Reports that the service is ready.
pub(super) fn notify_ready(address: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(&format!("ready on {address}"))]);
}

/// Reports that the service is stopping, and asks for more time until the process ends.
pub(super) fn notify_stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
    tokio::spawn(extend_timeout("stopping", STOP_TIME_MAX));
}

/// Reports that the service has begun to reload its files.
pub(super) fn notify_reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::debug!(%error, "the service manager was not notified of the reload"),
    }
}

/// Reports that the service has reloaded its files.
pub(super) fn notify_reloaded() {
    notify(&[NotifyState::Ready]);
}

/// Notifies the watchdog, if there is one, for as long as the serving threads and the journal work.
pub(super) fn start_watchdog(app: &Data<App>) {
    let Some(timeout) = sd_notify::watchdog_enabled().filter(|timeout| !timeout.is_zero()) else { return };
    let (health, log) = (app.health.clone(), app.engine.store().log.clone());
    tokio::spawn(async move {
        let mut check = LivenessCheck::new(health, log, timeout);
        let mut ticks = interval(timeout / NOTICES_PER_TIMEOUT);
        let mut was_stuck = false;
        loop {
            ticks.tick().await;
            match check.stuck_part() {
                None => {
                    was_stuck = false;
                    notify(&[NotifyState::Watchdog]);
                }
                Some(part) if !was_stuck => {
                    was_stuck = true;
                    tracing::error!(part, "does not respond; the watchdog is no longer notified");
                }
                Some(_) => {}
            }
        }
    });
}
