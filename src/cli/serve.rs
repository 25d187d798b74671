//! `hotline serve`: runs the service until it is told to stop.

use hotline_persistence::Durability;
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
    if args.durability == Durability::Memory {
        tracing::warn!("durability is `memory`: whatever was answered is lost with the process; for benchmarks only");
    }
    let service = Service::start(args.settings()?).await?;
    let recovered = &service.app.engine.store().recovered;
    tracing::info!(replayed = recovered.replayed, watermark = recovered.watermark, "recovered");
    Ok(service)
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
