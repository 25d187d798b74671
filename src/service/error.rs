//! Why the service could not start or stop.

use std::io::ErrorKind;
use std::net::SocketAddr;

use crate::media;

/// Why the service could not start or stop.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The private PostgreSQL.
    #[error(transparent)]
    Cluster(#[from] hotline_postgres::ClusterError),
    /// The store.
    #[error(transparent)]
    Store(#[from] hotline_persistence::Error),
    /// What is to be sent could not be looked up.
    #[error("messages that wait to be sent: {0}")]
    Sending(#[from] hotline_actors::Refusal),
    /// The client that calls the providers.
    #[error("the HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    /// The way to the relay of mail.
    #[error("--smtp-url: {0}")]
    Mail(#[from] crate::mail::MailError),
    /// The dispatcher of webhooks.
    #[error("the dispatcher of webhooks: {0}")]
    Dispatcher(std::io::Error),
    /// The files of messages.
    #[error(transparent)]
    Media(#[from] media::OpenError),
    /// A listener.
    #[error("{}", cannot_listen(option, *address, error))]
    Listen {
        /// Which option says where.
        option: &'static str,
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: std::io::Error,
    },
}

fn cannot_listen(option: &str, address: SocketAddr, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => {
            format!("{option} {address}: another process has this port; end it or give another one")
        }
        ErrorKind::AddrNotAvailable => format!("{option} {address}: this machine has no such address"),
        ErrorKind::PermissionDenied => {
            format!("{option} {address}: this user may not listen there; ports from 1024 are for everybody")
        }
        _ => format!("{option} {address}: {error}"),
    }
}
