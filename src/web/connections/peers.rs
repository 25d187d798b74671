//! The connections from the other processes of a cluster. The public listener's threads serve them, because these
//! threads run the actors as well; but they are accepted and counted separately. The framework counts the connections
//! of all its listeners together, so clients that used up the limit would keep the other processes out, and the other
//! processes would take connections from clients.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_service::{Service, ServiceFactory};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};

/// Pause after a connection could not be accepted, most likely because no descriptor is left: as long as the
/// framework's own.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// The listener for peers. Dropping it stops accepting.
pub struct Peers {
    address: SocketAddr,
    threads: ServingThreads,
    stop: watch::Sender<bool>,
}

/// The serving threads, as receivers of connections. Cheap to clone.
#[derive(Clone)]
pub(super) struct ServingThreads(Arc<Inner>);

struct Inner {
    senders: Mutex<ThreadSenders>,
    /// Notified when a thread is added.
    thread_added: Notify,
    /// A permit for each connection that may be open.
    permits: Arc<Semaphore>,
    connections_max: u32,
    stopping: watch::Receiver<bool>,
}

#[derive(Default)]
struct ThreadSenders {
    all: Vec<mpsc::UnboundedSender<AcceptedConnection>>,
    /// The index of the thread that gets the next connection.
    next: usize,
}

/// An accepted connection, and its permit.
struct AcceptedConnection {
    stream: std::net::TcpStream,
    permit: OwnedSemaphorePermit,
}

impl Peers {
    /// Listens. Connections are served as soon as there is a serving thread. At most `connections_max` are open; others
    /// wait in the backlog.
    pub(super) fn listen(socket: TcpSocket, backlog: u32, connections_max: usize) -> io::Result<Self> {
        let listener = socket.listen(backlog)?;
        let address = listener.local_addr()?;
        let connections_max = u32::try_from(connections_max.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let (stop, stopping) = watch::channel(false);
        let threads = ServingThreads(Arc::new(Inner {
            senders: Mutex::default(),
            thread_added: Notify::new(),
            permits: Arc::new(Semaphore::new(connections_max as usize)),
            connections_max,
            stopping,
        }));
        tokio::spawn(threads.clone().accept_until_stopped(listener));
        Ok(Self { address, threads, stop })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn threads(&self) -> ServingThreads {
        self.threads.clone()
    }

    /// Accepts no more, and waits until the requests in flight are answered, for `drain` at most. To be called before
    /// the serving threads end.
    pub async fn stop(&self, drain: Duration) {
        self.stop.send_replace(true);
        let acquire_all = self.threads.0.permits.acquire_many(self.threads.0.connections_max);
        if timeout(drain, acquire_all).await.is_err() {
            tracing::warn!("requests from other processes did not finish before shutdown");
        }
    }
}

impl ServingThreads {
    /// Resolves once no more connections are accepted: open ones end with the response they wait for.
    pub(super) fn stopped(&self) -> impl Future<Output = ()> + use<> {
        let mut stopping = self.0.stopping.clone();
        async move {
            // On an error, the listener was dropped, and accepts nothing either.
            let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
        }
    }

    /// Serves the connections that this thread gets, for as long as the thread runs.
    pub(super) async fn serve<F>(self, factory: F)
    where
        F: ServiceFactory<TcpStream, Config = (), Response = ()>,
        F::Service: 'static,
        <F::Service as Service<TcpStream>>::Future: 'static,
    {
        let Ok(service) = factory.new_service(()).await else {
            return tracing::error!("could not serve other processes on a thread");
        };
        let (sender, mut connections) = mpsc::unbounded_channel();
        self.0.senders.lock().all.push(sender);
        self.0.thread_added.notify_one();
        while let Some(AcceptedConnection { stream, permit }) = connections.recv().await {
            let Ok(stream) = TcpStream::from_std(stream) else { continue };
            if poll_fn(|cx| service.poll_ready(cx)).await.is_err() {
                return;
            }
            let serving = service.call(stream);
            actix_web::rt::spawn(async move {
                // The framework has already responded to an error, if it could.
                let _ = serving.await;
                drop(permit);
            });
        }
    }

    async fn accept_until_stopped(self, listener: TcpListener) {
        tokio::select! {
            () = self.stopped() => {}
            () = self.accept_all(&listener) => {}
        }
    }

    async fn accept_all(&self, listener: &TcpListener) {
        // Acquired before a connection is accepted: without a permit, it waits in the backlog and uses no descriptor.
        while let Ok(permit) = self.0.permits.clone().acquire_owned().await {
            let stream = loop {
                match listener.accept().await.and_then(|(stream, _)| stream.into_std()) {
                    Ok(stream) => break stream,
                    // The peer has given up meanwhile.
                    Err(error) if is_connection_error(&error) => {}
                    Err(error) => {
                        tracing::error!(%error, "could not accept a connection from another process; will retry");
                        sleep(ACCEPT_PAUSE).await;
                    }
                }
            };
            self.dispatch(AcceptedConnection { stream, permit }).await;
        }
    }

    /// Passes a connection to the next thread.
    async fn dispatch(&self, mut connection: AcceptedConnection) {
        loop {
            match self.0.senders.lock().dispatch(connection) {
                Ok(()) => return,
                Err(returned) => connection = returned,
            }
            self.0.thread_added.notified().await;
        }
    }
}

impl ThreadSenders {
    /// Passes a connection to the thread whose turn it is. Threads that have ended are dropped; the connection is
    /// returned when none is left.
    fn dispatch(&mut self, mut connection: AcceptedConnection) -> Result<(), AcceptedConnection> {
        while !self.all.is_empty() {
            let turn = self.next % self.all.len();
            match self.all[turn].send(connection) {
                Ok(()) => {
                    self.next = turn + 1;
                    return Ok(());
                }
                Err(mpsc::error::SendError(returned)) => {
                    connection = returned;
                    self.all.remove(turn);
                }
            }
        }
        Err(connection)
    }
}

/// Whether an error of `accept` concerns only the accepted connection.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    [ConnectionAborted, ConnectionRefused, ConnectionReset].contains(&error.kind())
}
