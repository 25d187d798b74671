//! The signals of a service. They are handled before anything is started: otherwise the first process of a container
//! would ignore them, and any other process would end without a clean stop.
//!
//! SIGTERM and SIGINT stop the service, also during its start; a second one ends it at once. SIGHUP makes it read files
//! again, and never ends it, although a closed terminal sends SIGHUP too.

use std::sync::{Arc, OnceLock};

use hotline_persistence::sealed::Keyring;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::service_manager;
use super::{Cli, Failure};
use crate::service::StopSignal;
use crate::telemetry;

/// The exit status of a process that a signal ended is the number of the signal plus this, as shells report it.
const STATUS_OF_SIGNALS: i32 = 128;

/// The handled signals.
pub(super) struct Signals {
    /// Given by the first signal that stops the service.
    pub(super) stop: StopSignal,
    keys: Arc<OnceLock<Keyring>>,
}

impl Signals {
    /// Handles the signals from now on: they no longer end the process.
    pub(super) fn listen() -> Result<Self, Failure> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let hang_up = signal(SignalKind::hangup())?;
        let (sender, stop) = StopSignal::new();
        let keys: Arc<OnceLock<Keyring>> = Arc::default();
        tokio::spawn(handle_stops(terminate, interrupt, sender));
        tokio::spawn(handle_reloads(hang_up, keys.clone()));
        Ok(Self { stop, keys })
    }

    /// From now on SIGHUP reads the file of these keys again.
    pub(super) fn reload_keys_on_hangup(&self, keys: Keyring) {
        let _ = self.keys.set(keys);
    }
}

async fn handle_stops(mut terminate: Signal, mut interrupt: Signal, stop: watch::Sender<bool>) {
    loop {
        let number = tokio::select! {
            _ = terminate.recv() => nix::libc::SIGTERM,
            _ = interrupt.recv() => nix::libc::SIGINT,
        };
        if stop.send_replace(true) {
            tracing::warn!("ending at once, at the second signal; the journal keeps what is not in the database");
            std::process::exit(STATUS_OF_SIGNALS + number);
        }
        tracing::info!("stopping; a second signal ends the process at once");
        service_manager::notify_stopping();
    }
}

async fn handle_reloads(mut hang_up: Signal, keys: Arc<OnceLock<Keyring>>) {
    while hang_up.recv().await.is_some() {
        service_manager::notify_reloading();
        reload(keys.get());
        service_manager::notify_reloaded();
    }
}

/// Reads the key file and the log filter again. What cannot be read stays as it was.
fn reload(keys: Option<&Keyring>) {
    let filter =
        Cli::reread_service().and_then(|service| Ok(telemetry::reload(service.args.logs.log_filter.as_deref())?));
    if let Err(error) = &filter {
        tracing::warn!(%error, "could not read the log filter again; keeping the previous one");
    }
    let reloaded = keys.map(|keys| (keys, keys.reload()));
    let key_count = match &reloaded {
        Some((keys, Ok(_))) => Some(keys.ids().len()),
        Some((_, Err(error))) => {
            tracing::warn!(%error, "could not read the key file again; keeping the previous keys");
            None
        }
        None => None,
    };
    tracing::info!(
        log_filter = filter.is_ok(),
        keys = key_count,
        "reloaded at SIGHUP; new connections read the TLS files again, other options need a restart"
    );
}
