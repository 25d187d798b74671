//! The wire: how connections are taken, how long they are waited for, and what is said to those whose request never
//! becomes one.
//!
//! The framework refuses a malformed head with a bare status, drops the connection over a broken body, and waits
//! without end for the rest of any head but the first. So it is given its connections in an envelope of ours: a
//! `Line` sees what it is about to say and takes back a bare refusal, `Progress` tells a connection that is at
//! work from one that only costs memory, and when the framework has let go of a connection, whoever is still owed an
//! answer gets it here, as JSON like any other error.

mod crowd;
mod limits;
mod line;
mod pace;
mod progress;
mod refusal;

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use actix_http::body::{BoxBody, MessageBody};
use actix_http::error::{DispatchError, ParseError};
use actix_http::{HttpService, KeepAlive, Payload, Protocol, Request, Response};
use actix_service::{IntoServiceFactory, Service, ServiceFactory, apply_fn_factory, map_config};
use actix_web::dev::{AppConfig, Server};
use actix_web::http::header::HeaderMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crowd::Crowd;
use ipnet::IpNet;
use limits::GOODBYE_BYTES_MAX;
pub use limits::{CONNECTIONS_PER_ADDRESS, Limits};
use line::Line;
pub use pace::{Pace, Paced, body_error};
use progress::{Counted, Overdue, Progress};
use refusal::Refusal;

/// Seconds for telling those that are turned away why. They cost a descriptor for so long, so nothing is waited for.
const TURN_AWAY_TIME_MAX: Duration = Duration::from_millis(250);

/// Where and how HTTP is served.
#[derive(Debug)]
pub struct Listening {
    /// As [`bind`] has taken it.
    pub socket: TcpSocket,
    /// Threads that serve.
    pub workers: usize,
    /// For the requests that are being served once the server stops.
    pub drain: Duration,
    /// For connections.
    pub limits: Limits,
    /// What every answer says, and so a refusal.
    pub told: HeaderMap,
    /// Proxies: they bring the connections of many, so theirs are not counted by address.
    pub proxies: Vec<IpNet>,
}

/// Takes an address, where nobody is heard before [`listen`].
///
/// # Errors
/// When the address cannot be had.
pub fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Else a restart waits until the last connection of the process before is forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Listens, and makes the server: it takes connections as soon as it is polled. Answers with where it listens.
///
/// # Errors
/// When the address cannot be had.
pub fn listen<F, I, S, B>(listening: Listening, app: F) -> io::Result<(SocketAddr, Server)>
where
    F: Fn() -> I + Send + Clone + 'static,
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<Response<BoxBody>> + 'static,
    S::InitError: Debug,
    S::Response: Into<Response<B>>,
    S::Future: 'static,
    <S::Service as Service<Request>>::Future: 'static,
    B: MessageBody + 'static,
{
    let Listening { socket, workers, drain, limits, told, proxies } = listening;
    let socket = socket.listen(limits.backlog)?.into_std()?;
    let address = socket.local_addr()?;

    let server = Server::build()
        .workers(workers)
        .shutdown_timeout(drain.as_secs())
        .disable_signals()
        // Above this nothing is accepted, so no descriptor is taken; and should there be none left all the same, the
        // framework pauses for half a second before it accepts again.
        .max_concurrent_connections(crowd::connections_of_worker(limits.connections, workers));
    let crowd = Crowd::new(limits.per_address, proxies);
    let stopping = server.graceful_shutdown_signal();
    let server = server.listen("http", socket, move || {
        let (stopping, crowd) = (stopping.clone(), crowd.clone());
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            // Both are watched by Progress: the framework's own timers begin anew whenever the connection is looked
            // at, leave out those that hold a piece of a request, and all heads but the first.
            .keep_alive(KeepAlive::Os)
            .client_request_timeout(Duration::ZERO)
            .client_disconnect_timeout(limits.goodbye)
            .local_addr(address)
            .on_connect_ext(|line: &Line, connection| {
                connection.insert(line.progress().clone());
            })
            .finish(apply_fn_factory(map_config(app(), |()| AppConfig::default()), serve::<S, B>));
        let told = Rc::new(told.clone());
        apply_fn_factory(http, move |stream: TcpStream, http| {
            // An answer is written whole; nothing follows that would be worth waiting for.
            let _ = stream.set_nodelay(true);
            let peer = stream.peer_addr().ok();
            let taken = match crowd.admit(peer) {
                Some(counted) => {
                    let progress = Progress::new();
                    let (line, end) = Line::new(stream, progress.clone());
                    // In a box: the futures around it would each keep room for it, for as long as a socket is open.
                    Ok((counted, Box::pin(http.call((line, Protocol::Http1, peer))), progress, end))
                }
                None => Err(stream),
            };
            let told = told.clone();
            async move {
                match taken {
                    Ok((_counted, serving, progress, end)) => {
                        let over = attend(serving, &progress, limits).await;
                        if let Some((stream, held)) = end.take() {
                            finish(stream, held, over, &progress, limits, &told).await;
                        }
                    }
                    Err(stream) => turn_away(stream, &told).await,
                }
                Ok(())
            }
        })
    })?;
    Ok((address, server.run()))
}

/// Tells somebody who has enough connections that there are no more.
async fn turn_away(mut stream: TcpStream, told: &HeaderMap) {
    let mut refusal = Vec::new();
    Refusal::TooMany.write(false, told, &mut refusal);
    let spoken = timeout(TURN_AWAY_TIME_MAX, async {
        stream.write_all(&refusal).await?;
        stream.shutdown().await
    });
    // Whether it is heard is the other side's affair.
    let _ = spoken.await;
}

/// Calls the service, and lets the connection's progress know of it.
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
    let serving = app.call(request);
    async move {
        let response: Response<B> = serving.await?.into();
        if let Some(begun) = &begun {
            begun.answered();
        }
        Ok(response.map_body(|_, body| Counted::new(body, begun)))
    }
}

/// How a connection ended.
enum Over {
    /// The framework is done with it.
    Served(Result<(), DispatchError>),
    /// It was waited for long enough.
    Overdue(Overdue),
}

async fn attend(serving: impl Future<Output = Result<(), DispatchError>>, progress: &Progress, limits: Limits) -> Over {
    let serving = pin!(serving);
    tokio::select! {
        biased;
        served = serving => Over::Served(served),
        overdue = progress.watch(limits) => Over::Overdue(overdue),
    }
}

/// Whoever is owed an answer, and has not got it from the framework.
fn refusal_of(over: &Over, progress: &Progress) -> Option<Refusal> {
    match over {
        Over::Served(Err(DispatchError::Parse(ParseError::TooLarge))) => Some(Refusal::HeadTooLarge),
        Over::Served(Err(DispatchError::Parse(_))) => Some(Refusal::NotHttp),
        // It closes what it is done with, but drops a connection whose body is broken.
        Over::Served(Ok(())) if !progress.was_closed() => progress.is_unanswered().then_some(Refusal::BodyBroken),
        Over::Served(Ok(())) => progress.has_broken_off().then_some(Refusal::HeadCut),
        Over::Served(Err(_)) => None,
        Over::Overdue(Overdue::Head) => Some(Refusal::HeadTooSlow),
        Over::Overdue(Overdue::Idle | Overdue::Stalled) => None,
    }
}

/// Says what is still to be said, and parts from the client so that it can hear it.
async fn finish(
    mut stream: TcpStream,
    mut held: Vec<u8>,
    over: Over,
    progress: &Progress,
    limits: Limits,
    told: &HeaderMap,
) {
    let refusal = refusal_of(&over, progress);
    match over {
        Over::Served(Ok(())) | Over::Overdue(Overdue::Head) => {}
        Over::Served(Err(DispatchError::Parse(_))) => line::cut_bare_refusal(&mut held),
        Over::Served(Err(_)) | Over::Overdue(Overdue::Idle | Overdue::Stalled) => return,
    }
    if let Some(refusal) = refusal {
        refusal.write(progress.asked_for_head(), told, &mut held);
    }
    if held.is_empty() && progress.was_closed() {
        return;
    }
    let spoken = timeout(limits.write, async {
        stream.write_all(&held).await?;
        stream.shutdown().await
    });
    if !matches!(spoken.await, Ok(Ok(()))) {
        return;
    }
    let mut rest = stream.take(GOODBYE_BYTES_MAX);
    let _ = timeout(limits.goodbye, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}
