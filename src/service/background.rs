//! Background tasks that run for as long as the process lives.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use hotline_actors::clock;
use hotline_persistence::tables::{audit_log, events};
use hotline_persistence::{Error, Store};

use super::monitor::{Monitor, MonitorOptions};
use super::{EventOptions, Settings};
use crate::routes::Handles;

/// How often partitions are created and dropped. A step that failed, for example because a table was locked, is retried
/// after this time.
const PARTITION_CHECK_INTERVAL: Duration = Duration::from_secs(3600);

/// Starts all background tasks.
pub(super) fn start(handles: &Handles, settings: &Settings) {
    let events = settings.events;
    let engine = &handles.app.engine;
    let rendered_tickets = handles.rendered_tickets.clone();
    engine.spawn(async move { rendered_tickets.run_sweep().await });
    let visitor_limits = handles.visitor_limits.clone();
    engine.spawn(async move { visitor_limits.run_cleanup().await });
    let idempotency = handles.web_state.idempotency.clone();
    engine.spawn(async move {
        let store = idempotency.engine.store();
        idempotency.keys.run_sweep(store.housekeeper(), store.ownership()).await;
    });
    let downloads = handles.hooks.downloads.clone();
    engine.spawn(async move { downloads.run_search().await });
    let inbound = engine.inbound.clone();
    engine.spawn(async move { inbound.run_sweep().await });
    let inbound = engine.inbound.clone();
    engine.spawn(async move { inbound.run_doubt_settlement().await });
    let store = engine.store().clone();
    engine.spawn(async move { run_partition_maintenance(store, events).await });
    let media = handles.app.media.clone();
    let retention = engine.retention.clone();
    engine.spawn(async move { retention.run(|| media.sweep_soon()).await });
    let (media, erasures) = (handles.app.media.clone(), engine.erasures.clone());
    engine.spawn(async move { erasures.run(|| media.sweep_soon()).await });
    let app = handles.app.clone();
    engine.spawn(async move { app.media.run_sweep(&app.engine).await });
    let monitor_options = MonitorOptions {
        data_dir: settings.data_dir.clone(),
        media_dir: settings.media.folder.clone(),
        free_bytes_min: settings.media.free_bytes_min,
        durability: settings.durability,
    };
    engine.spawn(Monitor::new(handles.app.clone(), monitor_options).run());
}

/// Creates the upcoming partitions of events and of the audit log and drops expired ones, for as long as the process
/// lives.
async fn run_partition_maintenance(store: Arc<Store>, options: EventOptions) {
    let mut ticks = tokio::time::interval(PARTITION_CHECK_INTERVAL);
    loop {
        ticks.tick().await;
        maintain_partitions(&store, options).await;
    }
}

/// Runs every step even if an earlier one has failed, so that a locked table does not delay the others.
async fn maintain_partitions(store: &Store, options: EventOptions) {
    let now = clock::now();
    log_failure("audit_log", audit_log::rotate_partitions(store.housekeeper(), now).await);
    if options.enabled {
        log_failure("events", events::create_partitions(store.housekeeper(), now).await);
    }
    let expired_before = now - TimeDelta::days(options.retention_days.into());
    log_failure("events", events::drop_expired(store.housekeeper(), expired_before).await);
}

/// Logs why the partitions of a table were not maintained: as a warning, unless another part of the service reports it.
fn log_failure(table: &'static str, outcome: Result<(), Error>) {
    match outcome {
        Ok(()) => {}
        Err(error @ (Error::Unavailable(_) | Error::Unknown(_) | Error::NotOwner)) => {
            tracing::debug!(%error, table, "maintenance of partitions will be retried");
        }
        Err(error) => tracing::warn!(%error, table, "could not maintain the partitions of a table; will retry"),
    }
}
