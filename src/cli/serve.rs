//! `hotline serve`: runs the service until a signal stops it.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::signals::Signals;
use super::{Cli, Failure, config, service_manager, unfinished_restore};
use crate::config::{DatabaseArgs, ServeArgs};
use crate::service::{Service, ServiceError};
use crate::telemetry;

pub async fn run(args: ServeArgs, database: &DatabaseArgs) -> Result<(), Failure> {
    let signals = Signals::listen()?;
    let Some(service) = start(&args, database, &signals).await? else { end_interrupted_start().await };
    print_ready(&service, args.logs.log);
    run_until_signal(service, signals).await
}

/// Starts the service and logs what it found. `None`: a signal interrupted the start, and everything is stopped.
pub(super) async fn start(
    args: &ServeArgs,
    database: &DatabaseArgs,
    signals: &Signals,
) -> Result<Option<Service>, Failure> {
    let filter = telemetry::filter(args.logs.log_filter.as_deref())?;
    match &args.logs.otlp_endpoint {
        Some(endpoint) => telemetry::start_exporting(args.logs.log, filter, endpoint)?,
        None => telemetry::start(args.logs.log, filter),
    }
    super::root::check(&database.data_dir)?;
    unfinished_restore::refuse(&database.data_dir)?;
    raise_file_limit();
    let settings = args.settings(database)?;
    log_start(&settings);
    let start_notices = service_manager::notify_starting();
    let service = match Service::start_unless_stopped(settings, signals.stop.clone()).await {
        Err(ServiceError::Interrupted) => return Ok(None),
        // Whatever fails after the signal no longer matters: nothing was acknowledged.
        Err(error) if signals.stop.is_given() => {
            tracing::info!(%error, "the interrupted start did not end cleanly");
            return Ok(None);
        }
        result => result?,
    };
    drop(start_notices);
    signals.reload_keys_on_hangup(service.app.engine.store().keys.clone());
    let recovered = &service.app.engine.store().recovered;
    tracing::info!(replayed = recovered.replayed, watermark = recovered.watermark, "recovered");
    Ok(Some(service))
}

/// Logs the version, the database and the options that are about to be used, without passwords.
fn log_start(settings: &crate::service::Settings) {
    let database = match &settings.database {
        None => "private PostgreSQL in the data folder".to_owned(),
        Some(database) => {
            let name = database.get_database().unwrap_or(database.get_username());
            match database.get_socket() {
                Some(socket) => format!("{name} at {}", socket.display()),
                None => format!("{name} at {}:{}", database.get_host(), database.get_port()),
            }
        }
    };
    tracing::info!(
        version = crate::version::VERSION,
        commit = crate::version::COMMIT,
        data_dir = %settings.data_dir.display(),
        database,
        options = Cli::reread_service()
            .map(|service| config::explicit_options_text(&service.options))
            .unwrap_or_default(),
        "starting"
    );
}

/// Announces that the service is ready: as text, or as JSON if the log is JSON, because many collectors read standard
/// output together with the log.
fn print_ready(service: &Service, format: telemetry::LogFormat) {
    use std::io::Write;
    let message = format!("hotline is ready on http://{}", service.address);
    let line = match format {
        telemetry::LogFormat::Pretty => message,
        telemetry::LogFormat::Json => telemetry::json_line("INFO", &message),
    };
    // The terminal may be closed by now.
    let _ = writeln!(std::io::stdout(), "{line}");
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

/// Ends the process at once after an interrupted start, with status 0: the runtime would otherwise wait for threads
/// that still read the journal.
pub(super) async fn end_interrupted_start() -> ! {
    tracing::info!("stopped during the start; nothing was acknowledged");
    telemetry::stop().await;
    std::process::exit(0);
}

/// Serves until SIGTERM or SIGINT, then stops cleanly.
pub(super) async fn run_until_signal(service: Service, mut signals: Signals) -> Result<(), Failure> {
    service_manager::notify_ready(&service.address.to_string());
    service_manager::start_watchdog(&service.app);
    signals.stop.wait_until_given().await;
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
