//! The listener for metrics: it has its own port, so that access is controlled by the network, and a busy service still
//! reports its load.

use std::io;
use std::net::{SocketAddr, TcpListener};

use actix_web::dev::ServerHandle;
use actix_web::http::header::ContentType;
use actix_web::web::{self, Data};
use actix_web::{App as Routes, HttpResponse, HttpServer};
use hotline_actors::Engine;
use tokio::task::JoinHandle;

use super::Metrics;
use super::snapshot::MetricsSnapshot;

/// The only path.
pub const PATH: &str = "/metrics";

/// Worker threads; metrics are scraped every few seconds.
const WORKERS: usize = 1;

/// Maximum number of connections, with room for manual requests: a port without authentication must not use up the
/// service's file descriptors.
const CONNECTIONS_MAX: usize = 16;

/// Seconds for requests in flight once the service stops.
const DRAIN_TIME_MAX_S: u64 = 2;

/// The content type of the Prometheus text format.
const TEXT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The listener for metrics.
pub struct Listener {
    /// The address it listens on.
    pub address: SocketAddr,
    server: ServerHandle,
    server_task: JoinHandle<io::Result<()>>,
}

impl Listener {
    /// Binds the address without accepting connections.
    ///
    /// # Errors
    /// When it is in use or not permitted.
    pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
        TcpListener::bind(address)
    }

    /// Starts serving the counters, and the metrics of the lower layers.
    ///
    /// # Errors
    /// When the socket cannot be used.
    pub fn start(socket: TcpListener, engine: Engine, metrics: Data<Metrics>) -> io::Result<Self> {
        let address = socket.local_addr()?;
        let server = HttpServer::new(move || {
            Routes::new()
                .app_data(Data::new(engine.clone()))
                .app_data(metrics.clone())
                .service(web::resource(PATH).get(show).default_service(web::to(HttpResponse::NotFound)))
                .default_service(web::to(HttpResponse::NotFound))
        })
        .workers(WORKERS)
        .max_connections(CONNECTIONS_MAX)
        .shutdown_timeout(DRAIN_TIME_MAX_S)
        .disable_signals()
        .listen(socket)?
        .run();
        let handle = server.handle();
        tracing::info!(%address, "serving metrics at {PATH}");
        Ok(Self { address, server: handle, server_task: tokio::spawn(server) })
    }

    /// Stops serving.
    pub async fn stop(self) {
        self.server.stop(true).await;
        // Errors no longer matter here.
        drop(self.server_task.await);
    }
}

async fn show(engine: Data<Engine>, metrics: Data<Metrics>) -> HttpResponse {
    match MetricsSnapshot::take(Engine::clone(&engine), metrics).await.into_text() {
        Ok(text) => HttpResponse::Ok().insert_header(("content-type", TEXT_TYPE)).body(text),
        Err(error) => {
            tracing::error!(%error, "could not encode metrics");
            HttpResponse::InternalServerError().insert_header(ContentType::plaintext()).finish()
        }
    }
}
