//! `hotline serve`: runs the service until it is told to stop.

use hotline_persistence::Durability;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use super::Failure;
use crate::app::Service;
use crate::config::ServeArgs;
use crate::telemetry;

pub async fn run(args: ServeArgs) -> Result<(), Failure> {
    let service = start(&args).await?;
    println!("hotline is ready on http://{}", service.address);
    until_stopped(service).await
}

/// Starts the service and says what it found.
pub(super) async fn start(args: &ServeArgs) -> Result<Service, Failure> {
    telemetry::start(args.log);
    allow_open_files();
    if args.durability == Durability::Memory {
        tracing::warn!("durability is `memory`: whatever was answered is lost with the process; for benchmarks only");
    }
    let service = Service::start(args.settings()?).await?;
    let recovered = &service.app.engine.store().recovered;
    tracing::info!(replayed = recovered.replayed, watermark = recovered.watermark, "recovered");
    Ok(service)
}

/// A visitor's socket is a file to the system, and the limit a shell hands on is made for programs that open a few.
fn allow_open_files() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(soft, hard)| if soft < hard { setrlimit(Resource::RLIMIT_NOFILE, hard, hard) } else { Ok(()) });
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

/// Serves until SIGTERM or SIGINT, then stops cleanly.
pub(super) async fn until_stopped(service: Service) -> Result<(), Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping: finishing what is in flight");
    service.stop().await?;
    tracing::info!("stopped; everything is flushed");
    Ok(())
}
