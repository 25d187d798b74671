//! `hotline serve`: runs the service until a signal stops it.

use hotline_persistence::Durability;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Failure;
use crate::config::ServeArgs;
use crate::service::Service;
use crate::telemetry;

pub async fn run(args: ServeArgs) -> Result<(), Failure> {
    let service = start(&args).await?;
    let signals = Signals::heeded()?;
    println!("hotline is ready on http://{}", service.address);
    until_stopped(service, signals).await
}

/// Starts the service and says what it found.
pub(super) async fn start(args: &ServeArgs) -> Result<Service, Failure> {
    match &args.otlp_endpoint {
        Some(endpoint) => telemetry::start_exporting(args.log, endpoint)?,
        None => telemetry::start(args.log),
    }
    raise_file_limit();
    if args.durability == Durability::Memory {
        tracing::warn!("durability is `memory`: whatever was answered is lost with the process; for benchmarks only");
    }
    let service = Service::start(args.settings()?).await?;
    let recovered = &service.app.engine.store().recovered;
    tracing::info!(replayed = recovered.replayed, watermark = recovered.watermark, "recovered");
    Ok(service)
}

/// Takes as many file descriptors as the system lets the process have. Each connection needs one, and most systems
/// begin a process with 1024 of far more: with them used up nobody new is heard, and neither journal nor PostgreSQL is
/// reached.
fn raise_file_limit() {
    let files = Resource::RLIMIT_NOFILE;
    let raised = getrlimit(files).and_then(|(_, hard)| setrlimit(files, hard, hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "cannot raise the limit of open files; connections are limited by it");
    }
}

/// What asks the service to stop. Heeded before anybody hears that it is ready: whoever stops it right then would otherwise
/// end it as it stands.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on they no longer end the process.
    pub(super) fn heeded() -> Result<Self, Failure> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }
}

/// Serves until SIGTERM or SIGINT, then stops cleanly.
pub(super) async fn until_stopped(service: Service, mut signals: Signals) -> Result<(), Failure> {
    tokio::select! {
        _ = signals.terminate.recv() => {}
        _ = signals.interrupt.recv() => {}
    }
    tracing::info!("stopping: finishing what is in flight");
    service.stop().await?;
    telemetry::stop().await;
    tracing::info!("stopped; everything is flushed");
    Ok(())
}
