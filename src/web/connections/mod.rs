//! Connections: how many are accepted, from where, how much memory each may use, and their timeouts.
//!
//! The framework waits indefinitely for every head but the first, and for a client that does not read its response. So
//! it gets each connection as a `MeteredStream`, which records its traffic, and `Progress` closes a connection that
//! only costs memory ([decision 28](../../../docs/decisions/0028-connections-have-our-own-timeouts.md)). Input that is
//! not HTTP is handled by the framework, with a bare status or no response.

mod connection_limits;
mod limits;
mod metered_stream;
mod min_rate;
pub mod origin;
mod peers;
mod progress;
mod takeover;

use std::convert::Infallible;
use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use actix_http::body::{BoxBody, MessageBody};
use actix_http::error::DispatchError;
use actix_http::{HttpService, KeepAlive, Payload, Protocol, Request, Response};
use actix_service::{IntoServiceFactory, Service, ServiceFactory, apply_fn_factory, map_config};
use actix_web::HttpRequest;
use actix_web::dev::{AppConfig, Server};
use actix_web::http::header::HttpDate;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use connection_limits::ConnectionLimits;
use ipnet::IpNet;
pub use limits::{CONNECTIONS_PER_ADDRESS, Limits};
use metered_stream::MeteredStream;
pub use min_rate::{MinRate, MinRateStream, body_error};
pub use peers::Peers;
pub use progress::RESPONSE_PIECE_BYTES;
use progress::{OpenRequest, Progress, ResponseBody};
pub use takeover::TakenStream;

use crate::metrics::ConnectionMetrics;
use crate::web::response::error::{ApiError, OutcomeUnknown};

/// Time for sending a refused client the reason. The connection uses a descriptor meanwhile, so the time is short.
const REJECT_TIME_MAX: Duration = Duration::from_millis(250);

/// Bytes of responses that the system buffers for a connection; Linux doubles the number. By default, Linux buffers up
/// to 4 MiB for a client that reads nothing, and reports progress in thirds of the buffer: a client that reads 50 KiB a
/// second would seem to read nothing for longer than [`Limits::write`]. A client with a round-trip time of a tenth of a
/// second still reads 2 MiB a second.
const SEND_BUFFER_BYTES: u32 = 128 * 1024;

/// `Retry-After` in seconds: a connection may be free by then.
const RETRY_AFTER_S: u64 = 1;

/// Where and how HTTP is served.
#[derive(Debug)]
pub struct ListenOptions {
    /// The socket, from [`bind_listener`].
    pub socket: TcpListener,
    /// The socket for the other processes of a cluster, if there is one.
    pub peer_socket: Option<TcpSocket>,
    /// Serving threads.
    pub workers: usize,
    /// Time for requests in flight once the server stops.
    pub drain: Duration,
    /// Limits of connections.
    pub limits: Limits,
    /// Proxies: they open connections on behalf of many clients, so these are not counted by address.
    pub proxies: Vec<IpNet>,
    /// Counts the public connections.
    pub metrics: Arc<ConnectionMetrics>,
}

/// Which clients a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Anyone.
    Public,
    /// The other processes of a cluster.
    Peers,
}

/// Binds an address; connections are refused until [`listen`].
///
/// # Errors
/// When the address cannot be bound.
pub fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Without this, a restart waits until the last connection of the previous process has expired.
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit this size.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Binds an address and listens: connections wait in the backlog until [`listen`].
///
/// # Errors
/// When the address cannot be bound.
pub fn bind_listener(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    bind(address)?.listen(backlog)?.into_std()
}

/// The bound listeners.
pub struct Listeners {
    /// The public address.
    pub address: SocketAddr,
    /// The listener for peers, if there is one. It must be kept for as long as peers are served.
    pub peers: Option<Peers>,
    /// The server, which accepts public connections as soon as it is polled.
    pub server: Server,
}

/// Listens and creates the server. Its threads serve the peers as well, whose connections are counted separately.
///
/// # Errors
/// When an address cannot be bound.
pub fn listen<F, I, S, B>(options: ListenOptions, app: F) -> io::Result<Listeners>
where
    F: Fn(Side) -> I + Send + Clone + 'static,
    I: IntoServiceFactory<S, Request> + 'static,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<Response<BoxBody>> + 'static,
    S::InitError: Debug,
    S::Response: Into<Response<B>>,
    S::Future: 'static,
    <S::Service as Service<Request>>::Future: 'static,
    B: MessageBody + 'static,
{
    let ListenOptions { socket, peer_socket, workers, drain, limits, proxies, metrics } = options;
    let address = socket.local_addr()?;
    let parts = if peer_socket.is_some() { connection_limits::MEMBER_PARTS } else { 1 };
    let per_worker = connection_limits::worker_connections_max(limits.connections, workers, parts);
    metrics.set_limit(per_worker * workers);
    let peers = peer_socket.map(|socket| Peers::listen(socket, limits.backlog, per_worker * workers)).transpose()?;

    let server = Server::build()
        .workers(workers)
        .shutdown_timeout(drain.as_secs())
        .disable_signals()
        // Above this limit nothing is accepted, so no descriptor is used. Should descriptors run out nevertheless, the
        // framework pauses for half a second before it accepts again.
        .max_concurrent_connections(per_worker);
    let stopping = server.graceful_shutdown_signal();
    let shutdown = move || {
        let stopping = stopping.clone();
        async move { stopping.notified().await }
    };
    let connections = ConnectionLimits::new(limits.per_address, proxies);
    let peer_listener = peers.as_ref().map(|peers| (peers.threads(), peers.address()));
    // Called on each serving thread.
    let server = server.listen("http", socket, move || {
        let counting = Counting { limits: connections.clone(), metrics: Some(metrics.clone()) };
        let public = connection_service(app(Side::Public), shutdown.clone(), counting, address, limits);
        if let Some((threads, address)) = peer_listener.clone() {
            let shutdown = threads.clone();
            // Peers forward the connections of all clients, so they are not counted by address.
            let counting = Counting { limits: ConnectionLimits::new(0, Vec::new()), metrics: None };
            let service = connection_service(app(Side::Peers), move || shutdown.stopped(), counting, address, limits);
            actix_web::rt::spawn(threads.serve(service));
        }
        public
    })?;
    Ok(Listeners { address, peers, server: server.run() })
}

/// How the connections of a listener are counted.
struct Counting {
    limits: ConnectionLimits,
    /// `None`: the connections are not in the metrics.
    metrics: Option<Arc<ConnectionMetrics>>,
}

/// The service for the connections of a listener.
fn connection_service<I, S, B, E>(
    app: I,
    shutdown: impl Fn() -> E + 'static,
    counting: Counting,
    address: SocketAddr,
    limits: Limits,
) -> impl ServiceFactory<TcpStream, Config = (), Response = (), Error = DispatchError, InitError = ()>
where
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<Response<BoxBody>> + 'static,
    S::InitError: Debug,
    S::Response: Into<Response<B>>,
    S::Future: 'static,
    <S::Service as Service<Request>>::Future: 'static,
    B: MessageBody + 'static,
    E: Future<Output = ()> + 'static,
{
    let http = HttpService::build()
        .graceful_shutdown_signal(shutdown)
        // `Progress` replaces both of the framework's timers: these restart whenever the connection is polled, ignore
        // connections with part of a request, and cover no head but the first.
        .keep_alive(KeepAlive::Os)
        .client_request_timeout(Duration::ZERO)
        .client_disconnect_timeout(limits.linger)
        .local_addr(address)
        .on_connect_ext(|stream: &MeteredStream, connection| {
            connection.insert(stream.progress().clone());
        })
        .finish(apply_fn_factory(map_config(app, |()| AppConfig::default()), serve::<S, B>));
    apply_fn_factory(http, move |stream: TcpStream, http| {
        // A small write is sent at once: no further write follows that it could be merged with.
        let _ = stream.set_nodelay(true);
        let peer = stream.peer_addr().ok();
        let open_connection = counting.metrics.as_ref().map(ConnectionMetrics::count_open);
        let accepted = match counting.limits.admit(peer) {
            Some(connection) => {
                let progress = Progress::new();
                let stream = MeteredStream::new(stream, progress.clone());
                // Boxed: otherwise each surrounding future reserves space for it, for as long as the connection is
                // open.
                Ok((connection, Box::pin(http.call((stream, Protocol::Http1, peer))), progress))
            }
            None => {
                counting.metrics.iter().for_each(|metrics| metrics.add_refused());
                Err(stream)
            }
        };
        // Boxed, as above.
        Box::pin(async move {
            let _open_connection = open_connection;
            match accepted {
                Ok((_connection, serving, progress)) => {
                    serve_connection(serving, &progress, limits).await;
                    if let Some(serving) = progress.takeover.serve(limits.write) {
                        serving.await;
                    }
                }
                Err(stream) => reject(stream).await,
            }
            Ok(())
        })
    })
}

/// Sends the refusal to a client that has reached its connection limit.
async fn reject(mut stream: TcpStream) {
    let refusal = too_many_connections();
    let sending = timeout(REJECT_TIME_MAX, async {
        stream.write_all(refusal.as_bytes()).await?;
        stream.shutdown().await
    });
    // It does not matter whether the client receives the refusal.
    let _ = sending.await;
}

/// The only response that is sent without a request.
fn too_many_connections() -> String {
    let message = "too many open connections from this address".to_owned();
    let error = ApiError { message, ..ApiError::rate_limited(RETRY_AFTER_S) };
    let (status, body, date) = (error.status, error.body(), HttpDate::from(SystemTime::now()));
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         x-content-type-options: nosniff\r\nretry-after: {RETRY_AFTER_S}\r\ndate: {date}\r\n\r\n{body}",
        body.len(),
    )
}

/// Calls the service, and records the request in the connection's progress.
fn serve<S, B>(
    mut request: Request,
    app: &S::Service,
) -> impl Future<Output = Result<Response<ResponseBody>, S::Error>> + use<S, B>
where
    S: ServiceFactory<Request>,
    S::Response: Into<Response<B>>,
    B: MessageBody + 'static,
{
    let has_body = !matches!(request.payload(), Payload::None);
    let open_request = request.conn_data::<Rc<Progress>>().map(|progress| progress.start_request(has_body));
    let closer = ConnectionCloser(open_request.as_ref().map(OpenRequest::progress));
    let serving = app.call(request);
    async move {
        let response: Response<B> = serving.await?.into();
        if response.extensions().contains::<OutcomeUnknown>() {
            match closer.close().await {}
        }
        if let Some(request) = &open_request {
            request.on_response(response.status());
        }
        Ok(response.map_body(|_, body| ResponseBody::new(body, open_request)))
    }
}

/// Closes a request's connection without a response, for when it is unknown whether the change was made.
pub struct ConnectionCloser(Option<Rc<Progress>>);

impl ConnectionCloser {
    /// A closer for the connection of this request.
    pub fn of(request: &Request) -> Self {
        Self(request.conn_data::<Rc<Progress>>().cloned())
    }

    /// Closes the connection. Never returns: the waiting request is dropped with the connection.
    pub async fn close(self) -> Infallible {
        if let Some(progress) = self.0 {
            progress.close();
        }
        std::future::pending().await
    }
}

/// Takes over the connection of a request with this payload, once its `101` response is written. `serve` runs as the
/// connection's task. Returns whether the request has a connection.
#[must_use]
pub fn take_over<F>(request: &HttpRequest, payload: Payload, serve: impl FnOnce(TakenStream) -> F + 'static) -> bool
where
    F: Future<Output = ()> + 'static,
{
    let progress = request.conn_data::<Rc<Progress>>();
    progress.map(|progress| progress.takeover.request(payload, serve)).is_some()
}

/// Serves a connection until it ends, times out or is taken over.
async fn serve_connection(
    serving: impl Future<Output = Result<(), DispatchError>>,
    progress: &Progress,
    limits: Limits,
) {
    let serving = pin!(serving);
    tokio::select! {
        biased;
        () = progress.closing() => tracing::debug!("closed a connection: the outcome of its request is unknown"),
        // The framework has already responded to an error, if it could.
        _ = serving => {}
        () = progress.takeover.taken() => {}
        overdue = progress.watch(limits) => tracing::debug!(?overdue, "closed a connection that timed out"),
    }
}
