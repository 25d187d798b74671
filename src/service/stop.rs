//! How the service stops: it announces the stop, waits until no client sends requests, and writes all changes to the
//! tables.
//!
//! A connection that is closed while a request is on its way leaves a client with an unknown outcome. So each response
//! after the announcement closes its connection; then the kernel drops new connection attempts (their clients repeat
//! them, and are refused later); and only when no request has arrived for a while, the socket is closed.

use std::net::TcpListener;
use std::time::Duration;

use hotline_persistence::store::CloseReport;
use hotline_postgres::{Cluster, ClusterError};
#[cfg(target_os = "linux")]
use socket2::{SockFilter, SockRef};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::{DRAIN_TIME_MAX, Service, ServiceError};
use crate::cluster::Member;

/// This process stops serving its peers once they have sent no request for this long. It exceeds a second, because
/// peers that missed the notification of the new placement of slots read it within a second.
const PEERS_QUIET: Duration = Duration::from_millis(1500);

/// Maximum wait for peers to stop sending requests. A peer that still sends some has lost the database, and therefore
/// its own slots.
const PEERS_QUIET_TIME_MAX: Duration = Duration::from_secs(10);

/// Maximum wait for clients that never pause; the next response to each of them closes its connection anyway.
const QUIET_TIME_MAX: Duration = Duration::from_secs(3);

/// A signal to stop, which may be given at any time, even during startup. Cheap to clone.
#[derive(Clone, Debug)]
pub struct StopSignal(watch::Receiver<bool>);

impl StopSignal {
    /// A signal, and the sender that gives it.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// A signal that is never given.
    pub fn never() -> Self {
        Self::new().1
    }

    /// Whether the signal is given.
    pub fn is_given(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once the signal is given.
    pub async fn wait_until_given(&mut self) {
        if self.0.wait_for(|is_given| *is_given).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn receiver(&self) -> watch::Receiver<bool> {
        self.0.clone()
    }

    /// The result of the work. If the signal is given first, the work is dropped, and the result is `None`.
    pub(super) async fn run_unless_given<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut signal = self.clone();
        tokio::select! {
            biased;
            () = signal.wait_until_given() => None,
            result = work => Some(result),
        }
    }
}

impl Service {
    /// Announces the stop, finishes requests in flight, writes all changes to the tables, and stops PostgreSQL.
    ///
    /// # Errors
    /// When the database does not accept the last changes and no journal keeps them, or PostgreSQL does not stop. If
    /// both happen, the former is returned.
    pub async fn stop(self) -> Result<CloseReport, ServiceError> {
        self.retire().await;
        self.app.begin_stopping();
        self.app.engine.begin_stopping();
        self.handles.panel.settle().await;
        // Stopped before the server, whose threads serve the peers' connections.
        if let Some(peers) = &self.peers {
            peers.stop(DRAIN_TIME_MAX).await;
        }
        // The server closes its own copy, and with that the socket.
        drop(self.socket);
        self.server.stop(true).await;
        let _ = self.server_task.await;
        self.handles.panel.close().await;
        if let Some(deliveries) = self.deliveries {
            deliveries.stop().await;
        }
        if let Some(listener) = self.metrics_listener {
            listener.stop().await;
        }
        self.app.engine.sending.stop().await;
        self.directory_task.abort();
        if let Some(member) = &self.member {
            member.begin_ending_life();
        }
        let close_result = self.app.engine.store().close().await;
        if let Some(member) = &self.member {
            member.stop().await;
        }
        self.app.engine.stop();
        stop_postgres(self.postgres, close_result.map_err(ServiceError::from)).await
    }

    /// Makes clients and peers stop sending requests here, and waits for a limited time until they do: load balancers
    /// read `/health/ready`, and the other processes of a cluster take over the slots. Requests that arrive meanwhile
    /// are still served.
    async fn retire(&self) {
        let announced_at = Instant::now();
        self.app.health.announce_stop();
        match &self.member {
            Some(member) => {
                // The notice helps clients only if another process can serve their requests.
                if self.release_slots(member).await {
                    sleep_until(announced_at + self.stop_settings.notice).await;
                    self.wait_for_quiet_peers().await;
                }
            }
            None => sleep_until(announced_at + self.stop_settings.notice).await,
        }
        self.wait_for_quiet_clients().await;
    }

    /// Gives the slots to other processes; returns whether there is any other process that can take slots.
    async fn release_slots(&self, member: &Member) -> bool {
        member.membership().begin_retiring();
        member.drain().await;
        !member.is_last().await
    }

    async fn wait_for_quiet_peers(&self) {
        let cluster_metrics = &self.app.metrics.cluster;
        let deadline = Instant::now() + PEERS_QUIET_TIME_MAX;
        let mut received_count = cluster_metrics.received();
        loop {
            sleep(PEERS_QUIET).await;
            let previous = std::mem::replace(&mut received_count, cluster_metrics.received());
            if previous == received_count || Instant::now() >= deadline {
                return;
            }
        }
    }

    async fn wait_for_quiet_clients(&self) {
        let quiet = self.stop_settings.quiet;
        if quiet.is_zero() {
            return;
        }
        if let Err(error) = drop_new_connections(&self.socket) {
            tracing::debug!(%error, "new connections are accepted until the socket is closed");
        }
        let health = &self.app.health;
        let deadline = Instant::now() + QUIET_TIME_MAX;
        loop {
            let previous = health.late_requests();
            sleep(quiet).await;
            if health.late_requests() == previous || Instant::now() >= deadline {
                return;
            }
        }
    }
}

/// Stops the private PostgreSQL, if there is one, and returns `result`, that of the work which used it. If both fail,
/// the work's error is returned, because it may mean that changes are lost.
///
/// # Errors
/// When the work has failed, or PostgreSQL does not stop.
pub(super) async fn stop_postgres<T>(
    postgres: Option<Cluster>,
    result: Result<T, ServiceError>,
) -> Result<T, ServiceError> {
    match postgres {
        Some(postgres) => combine(result, postgres.stop().await),
        None => result,
    }
}

/// Combines the result of work with that of stopping PostgreSQL: of two errors, the more important one is returned.
fn combine<T>(result: Result<T, ServiceError>, stop_result: Result<(), ClusterError>) -> Result<T, ServiceError> {
    match (result, stop_result) {
        (result, Ok(())) => result,
        // An interrupted start is not a failure.
        (Ok(_) | Err(ServiceError::Interrupted), Err(error)) => Err(error.into()),
        (Err(first), Err(error)) => {
            tracing::error!(%error, "could not stop PostgreSQL");
            Err(first)
        }
    }
}

/// Makes the kernel drop the first packet (SYN) of new connections, so that the backlog is empty when the socket is
/// closed. Otherwise closing would reset the connections in the backlog, whose clients may have sent requests.
#[cfg(target_os = "linux")]
fn drop_new_connections(socket: &TcpListener) -> std::io::Result<()> {
    // A classic BPF program over the TCP header: load the byte of flags; keep SYN and ACK; drop if only SYN is set.
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const FLAGS_OFFSET: u32 = 13;
    const SYN: u32 = 0x02;
    const SYN_OR_ACK: u32 = 0x12;
    let program = [
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS_OFFSET),
        SockFilter::new(AND, 0, 0, SYN_OR_ACK),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ];
    SockRef::from(socket).attach_filter(&program)
}

/// Other systems have no such filter: there, a connection that is opened at the last moment may be reset.
#[cfg(not(target_os = "linux"))]
fn drop_new_connections(_: &TcpListener) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use hotline_persistence::Error;

    use super::*;

    #[test]
    fn the_error_of_the_work_is_returned_even_if_postgresql_does_not_stop() {
        let lost = || ServiceError::Store(Error::Unavailable("the last changes are not written".to_owned()));
        let not_stopped = || Err(ClusterError::Interrupted);
        assert!(matches!(combine(Ok(1), Ok(())), Ok(1)));
        assert!(matches!(combine::<()>(Err(lost()), Ok(())), Err(ServiceError::Store(_))));
        assert!(matches!(combine::<()>(Err(lost()), not_stopped()), Err(ServiceError::Store(_))));
        assert!(matches!(combine(Ok(1), not_stopped()), Err(ServiceError::Postgres(_))));
        let interrupted = combine::<()>(Err(ServiceError::Interrupted), not_stopped());
        assert!(matches!(interrupted, Err(ServiceError::Postgres(_))));
    }
}
