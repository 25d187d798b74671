//! Errors of startup and shutdown.

use std::io::ErrorKind;
use std::net::SocketAddr;

use crate::media;

/// Why the service could not start or stop.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The start was interrupted by a request to stop; every part that was started is stopped again.
    #[error("the start was interrupted")]
    Interrupted,
    /// The private PostgreSQL failed.
    #[error(transparent)]
    Postgres(#[from] hotline_postgres::ClusterError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] hotline_persistence::Error),
    /// The outboxes could not be loaded.
    #[error("loading the messages to send: {0}")]
    Outbox(#[from] hotline_actors::Refusal),
    /// The HTTP client for providers could not be created.
    #[error("creating the HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    /// The mail relay could not be set up.
    #[error("--smtp-url: {0}")]
    Mail(#[from] crate::mail::MailError),
    /// The dispatcher of webhooks could not start.
    #[error("starting webhook deliveries: {0}")]
    Dispatcher(std::io::Error),
    /// The storage of messages' files could not be opened.
    #[error(transparent)]
    Media(#[from] media::OpenError),
    /// An address could not be listened on.
    #[error("{}", describe_listen_error(option, *address, error))]
    Listen {
        /// The option that sets the address.
        option: &'static str,
        /// The address.
        address: SocketAddr,
        /// The cause.
        error: std::io::Error,
    },
}

fn describe_listen_error(option: &str, address: SocketAddr, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => {
            format!("{option} {address}: the port is in use by another process; stop it or choose another port")
        }
        ErrorKind::AddrNotAvailable => format!("{option} {address}: no such address on this machine"),
        ErrorKind::PermissionDenied => {
            format!("{option} {address}: permission denied; ports below 1024 require privileges")
        }
        _ => format!("{option} {address}: {error}"),
    }
}
