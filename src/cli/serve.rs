//! `hotline serve`: runs the service until a signal stops it.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Failure;
use crate::config::{DatabaseArgs, ServeArgs};
use crate::service::Service;
use crate::telemetry;

pub async fn run(args: ServeArgs, database: &DatabaseArgs) -> Result<(), Failure> {
    let service = start(&args, database).await?;
    let signals = Signals::listen()?;
    println!("hotline is ready on http://{}", service.address);
    run_until_signal(service, signals).await
}

/// Starts the service and logs what it found.
pub(super) async fn start(args: &ServeArgs, database: &DatabaseArgs) -> Result<Service, Failure> {
    match &args.logs.otlp_endpoint {
        Some(endpoint) => telemetry::start_exporting(args.logs.log, endpoint)?,
        None => telemetry::start(args.logs.log),
    }
    raise_file_limit();
    let service = Service::start(args.settings(database)?).await?;
    let recovered = &service.app.engine.store().recovered;
    tracing::info!(replayed = recovered.replayed, watermark = recovered.watermark, "recovered");
    Ok(service)
}

/// Raises the limit of file descriptors to the maximum. Each connection needs one, and most systems start a process
/// with a limit of 1024, far below the maximum. When they are used up, no connection is accepted, and neither the
/// journal nor PostgreSQL can be opened.
fn raise_file_limit() {
    let files = Resource::RLIMIT_NOFILE;
    let result = getrlimit(files).and_then(|(_, hard)| setrlimit(files, hard, hard));
    if let Err(error) = result {
        tracing::warn!(%error, "could not raise the open file limit; it limits the number of connections");
    }
}

/// The signals that stop the service. They are handled before the service reports that it is ready: a signal at that
/// moment would otherwise kill it without a clean shutdown.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on they no longer kill the process.
    pub(super) fn listen() -> Result<Self, Failure> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }
}

/// Serves until SIGTERM or SIGINT, then stops cleanly.
pub(super) async fn run_until_signal(service: Service, mut signals: Signals) -> Result<(), Failure> {
    tokio::select! {
        _ = signals.terminate.recv() => {}
        _ = signals.interrupt.recv() => {}
    }
    tracing::info!("stopping: finishing requests in flight");
    let report = service.stop().await?;
    telemetry::stop().await;
    match report.entries_in_journal {
        0 => tracing::info!("stopped; all changes are written"),
        entries => tracing::warn!(
            entries,
            "stopped; the database is unavailable, and the journal keeps the last changes for the next start"
        ),
    }
    Ok(())
}
