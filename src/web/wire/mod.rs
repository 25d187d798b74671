//! Connections: how many are accepted, how much memory each may use, and their timeouts.
//!
//! The framework waits indefinitely for every head but the first, and for a client that does not read its response. So
//! it gets each connection as a `Line`, which records its traffic, and `Progress` distinguishes a working connection
//! from one that only costs memory; the latter is closed
//! ([decision 28](../../../docs/decisions/0028-connections-have-our-own-timeouts.md)). Input that is not HTTP is handled
//! by the framework, with a bare status or no response.

mod crowd;
mod limits;
mod line;
mod pace;
mod peers;
mod progress;

use std::convert::Infallible;
use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use actix_http::body::{BoxBody, MessageBody};
use actix_http::error::DispatchError;
use actix_http::{HttpService, KeepAlive, Payload, Protocol, Request, Response};
use actix_service::{IntoServiceFactory, Service, ServiceFactory, apply_fn_factory, map_config};
use actix_web::dev::{AppConfig, Server};
use actix_web::http::header::HttpDate;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crowd::Crowd;
use ipnet::IpNet;
pub use limits::{CONNECTIONS_PER_ADDRESS, Limits};
use line::Line;
pub use pace::{Pace, Paced, body_error};
pub use peers::Peers;
pub use progress::ANSWER_PIECE_BYTES;
use progress::{Begun, Counted, Progress};

use crate::web::{ApiError, OutcomeUnknown};

/// Time for telling a refused client the reason. The connection uses a descriptor meanwhile, so the time is short.
const TURN_AWAY_TIME_MAX: Duration = Duration::from_millis(250);

/// Bytes of answers that the system holds for a connection; Linux doubles it. Its own choice is up to 4 MiB for a client that
/// reads nothing, and it reports progress by thirds of that: a client of 50 KiB a second would seem to take nothing for longer
/// than [`Limits::write`]. A client a tenth of a second away still takes 2 MiB a second.
const SEND_BUFFER_BYTES: u32 = 128 * 1024;

/// `Retry-After` in seconds: a connection may be free by then.
const RETRY_AFTER_S: u64 = 1;

/// Where and how HTTP is served.
#[derive(Debug)]
pub struct Listening {
    /// The socket, from [`bind`].
    pub socket: TcpSocket,
    /// The socket for the other processes of a cluster, if there is one.
    pub of_peers: Option<TcpSocket>,
    /// Serving threads.
    pub workers: usize,
    /// Time for requests in flight once the server stops.
    pub drain: Duration,
    /// Limits of connections.
    pub limits: Limits,
    /// Proxies: they open connections on behalf of many clients, so these are not counted by address.
    pub proxies: Vec<IpNet>,
}

/// Which clients a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Anyone.
    Public,
    /// The other processes of a cluster.
    Peers,
}

/// Binds an address; connections are accepted only after [`listen`].
///
/// # Errors
/// When the address cannot be bound.
pub fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Without this, a restart waits until the last connection of the previous process has expired.
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(address)?;
    Ok(socket)
}

/// What listens.
pub struct Listened {
    /// The public address.
    pub address: SocketAddr,
    /// The listener for peers, if there is one. To be kept for as long as they are served.
    pub peers: Option<Peers>,
    /// The server, which accepts public connections as soon as it is polled.
    pub server: Server,
}

/// Listens and creates the server. Its threads serve the peers as well, whose connections are counted apart.
///
/// # Errors
/// When an address cannot be bound.
pub fn listen<F, I, S, B>(listening: Listening, app: F) -> io::Result<Listened>
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
    let Listening { socket, of_peers, workers, drain, limits, proxies } = listening;
    let socket = socket.listen(limits.backlog)?.into_std()?;
    let address = socket.local_addr()?;
    let sides = if of_peers.is_some() { crowd::SIDES_OF_MEMBER } else { 1 };
    let of_worker = crowd::connections_of_worker(limits.connections, workers, sides);
    let peers = of_peers.map(|socket| Peers::listen(socket, limits.backlog, of_worker * workers)).transpose()?;

    let server = Server::build()
        .workers(workers)
        .shutdown_timeout(drain.as_secs())
        .disable_signals()
        // Above this limit nothing is accepted, so no descriptor is used. Should descriptors run out nevertheless, the
        // framework pauses for half a second before it accepts again.
        .max_concurrent_connections(of_worker);
    let stopping = server.graceful_shutdown_signal();
    let ends = move || {
        let stopping = stopping.clone();
        async move { stopping.notified().await }
    };
    let crowd = Crowd::new(limits.per_address, proxies);
    let lanes = peers.as_ref().map(|peers| (peers.lanes(), peers.address()));
    // Called on each serving thread.
    let server = server.listen("http", socket, move || {
        let public = door(app(Side::Public), ends.clone(), crowd.clone(), address, limits);
        if let Some((lanes, address)) = lanes.clone() {
            let ends = lanes.clone();
            // Peers forward the connections of all clients, so they are not counted by address.
            let crowd = Crowd::new(0, Vec::new());
            let door = door(app(Side::Peers), move || ends.ends(), crowd, address, limits);
            actix_web::rt::spawn(lanes.serve(door));
        }
        public
    })?;
    Ok(Listened { address, peers, server: server.run() })
}

/// The service for the connections of a listener.
fn door<I, S, B, E>(
    app: I,
    ends: impl Fn() -> E + 'static,
    crowd: Arc<Crowd>,
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
        .graceful_shutdown_signal(ends)
        // `Progress` replaces both of the framework's timers: these restart whenever the connection is polled, ignore
        // connections with part of a request, and cover no head but the first.
        .keep_alive(KeepAlive::Os)
        .client_request_timeout(Duration::ZERO)
        .client_disconnect_timeout(limits.goodbye)
        .local_addr(address)
        .on_connect_ext(|line: &Line, connection| {
            connection.insert(line.progress().clone());
        })
        .finish(apply_fn_factory(map_config(app, |()| AppConfig::default()), serve::<S, B>));
    apply_fn_factory(http, move |stream: TcpStream, http| {
        // A response is written in one piece; there is nothing to wait for.
        let _ = stream.set_nodelay(true);
        let peer = stream.peer_addr().ok();
        let taken = match crowd.admit(peer) {
            Some(counted) => {
                let progress = Progress::new();
                let line = Line::new(stream, progress.clone());
                // Boxed: otherwise each surrounding future reserves space for it, for as long as the connection is
                // open.
                Ok((counted, Box::pin(http.call((line, Protocol::Http1, peer))), progress))
            }
            None => Err(stream),
        };
        async move {
            match taken {
                Ok((_counted, serving, progress)) => attend(serving, &progress, limits).await,
                Err(stream) => turn_away(stream).await,
            }
            Ok(())
        }
    })
}

/// Tells a client over its connection limit that it is refused.
async fn turn_away(mut stream: TcpStream) {
    let refusal = too_many();
    let spoken = timeout(TURN_AWAY_TIME_MAX, async {
        stream.write_all(refusal.as_bytes()).await?;
        stream.shutdown().await
    });
    // It does not matter whether the client receives it.
    let _ = spoken.await;
}

/// The only response that is sent without a request.
fn too_many() -> String {
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
) -> impl Future<Output = Result<Response<Counted>, S::Error>> + use<S, B>
where
    S: ServiceFactory<Request>,
    S::Response: Into<Response<B>>,
    B: MessageBody + 'static,
{
    let has_body = !matches!(request.payload(), Payload::None);
    let begun = request.conn_data::<Rc<Progress>>().map(|progress| progress.begin(has_body));
    let cut = Cut(begun.as_ref().map(Begun::progress));
    let serving = app.call(request);
    async move {
        let response: Response<B> = serving.await?.into();
        if response.extensions().contains::<OutcomeUnknown>() {
            match cut.now().await {}
        }
        Ok(response.map_body(|_, body| Counted::new(body, begun)))
    }
}

/// Closes the connection of a request without a response: it is unknown whether the change was made.
pub struct Cut(Option<Rc<Progress>>);

impl Cut {
    /// The connection of a request.
    pub fn of(request: &Request) -> Self {
        Self(request.conn_data::<Rc<Progress>>().cloned())
    }

    /// Never returns: the waiting request is dropped with the connection.
    pub async fn now(self) -> Infallible {
        if let Some(progress) = self.0 {
            progress.cut_off();
        }
        std::future::pending().await
    }
}

/// Serves a connection until it ends or times out.
async fn attend(serving: impl Future<Output = Result<(), DispatchError>>, progress: &Progress, limits: Limits) {
    let serving = pin!(serving);
    tokio::select! {
        biased;
        () = progress.cut() => tracing::debug!("closed a connection: the outcome of its request is unknown"),
        // The framework has already answered errors, if it could.
        _ = serving => {}
        overdue = progress.watch(limits) => tracing::debug!(?overdue, "closed a connection that timed out"),
    }
}
