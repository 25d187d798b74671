//! Answers requests during a start, which may replay a large journal or migrate for minutes: health checks with their
//! status, all other requests with `503`. It has a thread of its own, so that nothing else delays it.

use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_http::body::EitherBody;
use actix_http::{HttpService, KeepAlive, Request, Response};
use actix_rt::Arbiter;
use actix_service::{Service, ServiceFactory, fn_service};
use actix_web::http::StatusCode;
use actix_web::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{sleep, timeout};

use crate::api::health::{Liveness, Readiness};
use crate::web::ApiError;

/// Maximum open connections; further ones wait in the backlog, and may be accepted by the service itself.
const CONNECTIONS_MAX: u32 = 256;

/// Timeout of a connection, which serves one request.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(5);

/// How long the last connections may take once the service itself takes over.
const END_TIME_MAX: Duration = Duration::from_secs(1);

/// Pause after a connection could not be accepted, most likely because no file descriptor is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// The listener that answers during a start. Dropping it stops it at once.
pub(super) struct EarlyListener {
    stop_sender: watch::Sender<bool>,
    end_receiver: Option<oneshot::Receiver<()>>,
    thread: Arbiter,
}

impl EarlyListener {
    /// Answers the connections of this socket, which stays open when the listener ends.
    pub(super) fn start(socket: &std::net::TcpListener) -> io::Result<Self> {
        let socket = socket.try_clone()?;
        let (stop_sender, stop_receiver) = watch::channel(false);
        let (end_sender, end_receiver) = oneshot::channel();
        let thread = Arbiter::new();
        thread.spawn_fn(move || {
            actix_rt::spawn(async move {
                if let Err(error) = answer_connections(socket, stop_receiver).await {
                    tracing::warn!(%error, "health checks are not answered during this start");
                }
                let _ = end_sender.send(());
            });
        });
        Ok(Self { stop_sender, end_receiver: Some(end_receiver), thread })
    }

    /// Accepts no more connections, and returns when the accepted ones are closed, or after [`END_TIME_MAX`].
    pub(super) async fn end(mut self) {
        self.stop_sender.send_replace(true);
        if let Some(end_receiver) = self.end_receiver.take() {
            let _ = end_receiver.await;
        }
    }
}

impl Drop for EarlyListener {
    fn drop(&mut self) {
        self.stop_sender.send_replace(true);
        self.thread.stop();
    }
}

async fn answer_connections(socket: std::net::TcpListener, mut stop_receiver: watch::Receiver<bool>) -> io::Result<()> {
    let listener = TcpListener::from_std(socket)?;
    let factory = HttpService::build()
        .keep_alive(KeepAlive::Disabled)
        .client_request_timeout(CONNECTION_TIME_MAX)
        .h1(fn_service(|request: Request| async move { Ok::<_, Infallible>(respond(request.path())) }))
        .tcp();
    let Ok(http) = factory.new_service(()).await else { return Err(io::Error::other("the listener cannot be set up")) };
    let http = Rc::new(http);
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX as usize));
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop_receiver.wait_for(|is_stopping| *is_stopping) => break,
            accepted = async {
                let permit = connections.clone().acquire_owned().await.map_err(io::Error::other)?;
                Ok::<_, io::Error>((listener.accept().await?, permit))
            } => accepted,
        };
        let Ok(((stream, _), permit)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let http = http.clone();
        actix_rt::spawn(async move {
            // A failed or slow connection concerns only its client.
            let _ = timeout(CONNECTION_TIME_MAX, http.call(stream)).await;
            drop(permit);
        });
    }
    drop(listener);
    let _ = timeout(END_TIME_MAX, connections.acquire_many(CONNECTIONS_MAX)).await;
    Ok(())
}

fn respond(path: &str) -> Response<EitherBody<String>> {
    let (status, body) = match path {
        "/health/live" => (StatusCode::OK, json(&Liveness::LIVE)),
        "/health/ready" => (StatusCode::SERVICE_UNAVAILABLE, json(&Readiness::starting())),
        _ => {
            let refusal = ApiError::unavailable();
            (refusal.status, ApiError { message: "the service is starting; try again".to_owned(), ..refusal }.body())
        }
    };
    let mut response = Response::build(status);
    response.insert_header((CONTENT_TYPE, "application/json")).insert_header((CACHE_CONTROL, "no-store"));
    // Without this header, a widget could not read the response, and would conclude that its page is not allowed.
    response.insert_header((ACCESS_CONTROL_ALLOW_ORIGIN, "*"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.insert_header((RETRY_AFTER, "1"));
    }
    response.body(body)
}

/// Serializes the answer to a health check, which cannot fail.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
