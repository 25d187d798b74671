//! The service as one piece, and the order of its life: database, recovery, actors, listener; and back.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix_web::App as Routes;
use actix_web::dev::ServerHandle;
use actix_web::http::header::HeaderMap;
use actix_web::middleware::from_fn;
use actix_web::web::Data;
use hotline_actors::{Directory, Engine, EngineOptions};
use hotline_persistence::postgres::{Cluster, ClusterOptions};
use hotline_persistence::sealed::Keyring;
use hotline_persistence::{CompanyId, Db, Durability, Store, StoreOptions, journal};
use ipnet::IpNet;
use sqlx::postgres::PgConnectOptions;
use tokio::net::TcpSocket;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::api::templates::{self, Templates};
use crate::hooks::{Downloads, Hooks};
use crate::media::{self, Media};
use crate::metrics::{Figures, Listener};
use crate::openapi::Document;
use crate::outbound::{Outbound, OutboundOptions};
use crate::providers::{Graph, ProviderOptions, Providers};
use crate::routes;
use crate::web::aside::Aside;
use crate::web::idempotency::Keys;
use crate::web::rate::RateLimits;
use crate::web::wire::{self, Limits, Listening};
use crate::web::wrong_tokens::WrongTokens;
use crate::web::{compression, head};
use crate::webchat::{DemoPage, VisitorOptions, Visitors};

/// How long requests that are being served may take once the service stops.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(30);

/// What the handlers work with.
pub struct App {
    /// Every actor.
    pub engine: Engine,
    /// Whether the company's plan does not matter.
    pub on_premise: bool,
    /// Who is believed when it says for whom a connection was made.
    pub trusted_proxies: Vec<IpNet>,
    /// How many requests each company may make.
    pub rates: RateLimits,
    /// Who has shown wrong tokens.
    pub wrong_tokens: WrongTokens,
    /// Most records of a page.
    pub per_page_max: i64,
    /// The turns of large bodies.
    pub aside: Aside,
    /// Which idempotency keys were used.
    pub keys: Keys,
    /// The files of messages.
    pub media: Media,
    /// Where the providers call.
    pub hooks: Hooks,
    /// The templates of channels, as their providers told them lately.
    pub templates: Templates,
    /// What is counted.
    pub figures: Figures,
    /// What visitors may ask.
    pub visitors: Visitors,
    /// The page of the demo, if this is one.
    pub demo: OnceLock<DemoPage>,
    stopping: watch::Sender<bool>,
}

impl App {
    /// The tables, as a company asks them: the one way of a handler to a statement, and to the transaction of a plain
    /// change.
    pub fn db(&self, company: CompanyId) -> Db<'_> {
        self.engine.store().db(company)
    }

    /// Whether the service is on its way down.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Tells when it begins to go down: what lasts longer than a request must end then.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }
}

/// How the service is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where HTTP is served; port 0 takes any.
    pub listen: SocketAddr,
    /// Where the journal lies, and the private PostgreSQL.
    pub data_dir: PathBuf,
    /// Which database; none: a private one.
    pub database: Option<PgConnectOptions>,
    /// The file of the keys that seal secrets.
    pub key_file: PathBuf,
    /// Where the PostgreSQL binaries are, when they are not found.
    pub pg_bin: Option<PathBuf>,
    /// When a change counts as kept.
    pub durability: Durability,
    /// Whether the company's plan does not matter.
    pub on_premise: bool,
    /// The journal's bounds.
    pub journal: journal::Options,
    /// The live half.
    pub engine: EngineOptions,
    /// Threads that serve HTTP.
    pub workers: usize,
    /// Who is believed when it says for whom a connection was made.
    pub trusted_proxies: Vec<IpNet>,
    /// Connections of one address; 0: as many as it likes.
    pub connections_per_address: u32,
    /// Requests a minute of a company that has no limit of its own; 0: as many as it likes.
    pub rate_per_minute: u32,
    /// Most records of a page.
    pub per_page_max: i64,
    /// Requests with a wrong token that an address is told why in a minute; 0: no limit.
    pub wrong_tokens_per_minute: u32,
    /// How visitors are served.
    pub visitors: VisitorOptions,
    /// Where figures are served; none: nowhere.
    pub metrics_listen: Option<SocketAddr>,
    /// How often providers are asked for templates.
    pub templates: templates::Options,
    /// How the files of messages are kept.
    pub media: media::Options,
    /// How the providers are called.
    pub provider: ProviderOptions,
    /// How addresses are called that are not the operator's own.
    pub outbound: OutboundOptions,
}

/// A running service.
pub struct Service {
    /// What the handlers work with.
    pub app: Data<App>,
    /// Where it listens.
    pub address: SocketAddr,
    /// Where figures are served, if they are.
    pub metrics: Option<Listener>,
    cluster: Option<Cluster>,
    server: ServerHandle,
    serving: JoinHandle<std::io::Result<()>>,
    following: JoinHandle<()>,
}

/// Why the service could not start or stop.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The private PostgreSQL.
    #[error(transparent)]
    Cluster(#[from] hotline_persistence::postgres::ClusterError),
    /// The store.
    #[error(transparent)]
    Store(#[from] hotline_persistence::Error),
    /// What is to be sent could not be looked up.
    #[error("messages that wait to be sent: {0}")]
    Sending(#[from] hotline_actors::Refusal),
    /// The client that calls the providers.
    #[error("the HTTP client: {0}")]
    Client(#[from] reqwest::Error),
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

impl Service {
    /// Starts everything, and answers when HTTP is served.
    ///
    /// # Errors
    /// When a part cannot start; those before it are stopped again.
    pub async fn start(settings: Settings) -> Result<Self, ServiceError> {
        // Before anything else is begun: a port that is taken must not be found out behind PostgreSQL and a recovery.
        let doors = match Doors::bind(&settings) {
            // Most often the other one is the service of this very folder, which is the better thing to say.
            Err(error) if settings.database.is_none() => {
                Cluster::not_served(&settings.data_dir)?;
                return Err(error);
            }
            doors => doors?,
        };
        let (cluster, database) = match settings.database.clone() {
            Some(database) => (None, database),
            None => {
                let cluster = Cluster::start(cluster_options(&settings)).await?;
                let database = cluster.connect_options();
                (Some(cluster), database)
            }
        };
        match Self::start_on(&settings, doors, database).await {
            Ok((app, address, metrics, server, serving, following)) => {
                Ok(Self { app, address, metrics, cluster, server, serving, following })
            }
            Err(error) => {
                if let Some(cluster) = cluster {
                    cluster.stop().await?;
                }
                Err(error)
            }
        }
    }

    async fn start_on(settings: &Settings, doors: Doors, database: PgConnectOptions) -> Result<Started, ServiceError> {
        let store = Store::open(
            StoreOptions {
                database,
                journal_dir: settings.data_dir.join("journal"),
                journal: settings.journal.clone(),
                durability: settings.durability,
                keys: Keyring::at(&settings.key_file),
            },
            fail,
        )
        .await?;
        let directory = Directory::load(&store.housekeeping, &store.keys, settings.engine.reload_every).await?;
        let keys = Keys::load(&store.housekeeping).await?;
        // After the store: its lock on the folder is what keeps another process out.
        let media = Media::open(settings.media.clone(), &store.housekeeping, &store.keys, Handle::current()).await?;
        let following = tokio::spawn(directory.clone().follow(store.housekeeping.clone()));
        // The threads that serve run the actors too.
        let engine = Engine::new(store, directory, EngineOptions { arbiters: 0, ..settings.engine.clone() });
        engine.start_sweeping();
        let graph = Graph::new(&settings.provider)?;
        // What is sent goes over connections of its own: they belong to the thread that opened them.
        let sending = Graph::new(&settings.provider)?;
        engine.start_sending(Arc::new(Providers::new(sending, Arc::new(media.clone())))).await?;
        let outbound = Outbound::new(&settings.outbound)?;
        let hooks = Hooks::new(Downloads::new(engine.clone(), graph.clone(), outbound, media.clone()));
        let app = Data::new(App {
            engine,
            on_premise: settings.on_premise,
            trusted_proxies: settings.trusted_proxies.clone(),
            rates: RateLimits::new(settings.rate_per_minute),
            wrong_tokens: WrongTokens::new(settings.wrong_tokens_per_minute),
            per_page_max: settings.per_page_max,
            aside: Aside::default(),
            keys,
            hooks,
            media,
            templates: Templates::new(graph, settings.templates),
            figures: Figures::new(routes::paths()),
            visitors: Visitors::new(settings.visitors),
            demo: OnceLock::new(),
            stopping: watch::Sender::new(false),
        });
        let visited = app.clone();
        app.engine.spawn(async move { visited.visitors.keep_forgetting().await });
        let swept = app.clone();
        app.engine.spawn(async move { swept.keys.keep_swept(&swept.engine.store().housekeeping).await });
        let looking = app.hooks.downloads.clone();
        app.engine.spawn(async move { looking.keep_looking().await });
        let early = app.engine.clone();
        app.engine.spawn(async move { early.keep_early().await });
        let swept = app.clone();
        app.engine.spawn(async move { swept.media.keep_swept(&swept.engine).await });

        let shared = app.clone();
        let at_home = app.clone();
        let document = Data::new(Document::make());
        let mut told = HeaderMap::new();
        app.rates.untouched().write(&mut told);
        let listening = Listening {
            socket: doors.http,
            workers: settings.workers,
            drain: DRAIN_TIME_MAX,
            limits: Limits { per_address: settings.connections_per_address, ..Limits::default() },
            told,
            proxies: settings.trusted_proxies.clone(),
        };
        let (address, server) = wire::listen(listening, move || {
            // Called on each thread that serves.
            at_home.engine.live_here();
            Routes::new()
                .wrap(from_fn(compression::pack))
                .wrap(from_fn(head::as_get))
                .wrap(from_fn(routes::name_request))
                .configure(routes::configure(shared.clone(), document.clone()))
        })
        .map_err(Doors::not_there(LISTEN, settings.listen))?;
        let handle = server.handle();
        let metrics = match doors.figures {
            Some((address, socket)) => {
                let started = Listener::start(socket, app.clone());
                Some(started.map_err(Doors::not_there(METRICS_LISTEN, address))?)
            }
            None => None,
        };
        Ok((app, address, metrics, handle, tokio::spawn(server), following))
    }

    /// Stops accepting, finishes what is in flight, writes everything out, and stops PostgreSQL.
    ///
    /// # Errors
    /// When the database does not take the last changes; the journal keeps them for the next start.
    pub async fn stop(self) -> Result<(), ServiceError> {
        self.app.stopping.send_replace(true);
        self.app.engine.begin_stopping();
        self.server.stop(true).await;
        let _ = self.serving.await;
        if let Some(metrics) = self.metrics {
            metrics.stop().await;
        }
        self.app.engine.stop_sending().await;
        self.following.abort();
        let flushed = self.app.engine.store().close().await;
        self.app.engine.stop();
        if let Some(cluster) = self.cluster {
            cluster.stop().await?;
        }
        Ok(flushed?)
    }

    /// The private PostgreSQL, if there is one.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }
}

/// The options that say where.
const LISTEN: &str = "--listen";
const METRICS_LISTEN: &str = "--metrics-listen";

/// Where the service will listen: taken at once, opened once it can answer.
struct Doors {
    http: TcpSocket,
    figures: Option<(SocketAddr, std::net::TcpListener)>,
}

impl Doors {
    fn bind(settings: &Settings) -> Result<Self, ServiceError> {
        let http = wire::bind(settings.listen).map_err(Self::not_there(LISTEN, settings.listen))?;
        let figures = match settings.metrics_listen {
            Some(address) => {
                let socket = Listener::bind(address).map_err(Self::not_there(METRICS_LISTEN, address))?;
                Some((address, socket))
            }
            None => None,
        };
        Ok(Self { http, figures })
    }

    fn not_there(option: &'static str, address: SocketAddr) -> impl FnOnce(std::io::Error) -> ServiceError {
        move |error| ServiceError::Listen { option, address, error }
    }
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

type Started = (Data<App>, SocketAddr, Option<Listener>, ServerHandle, JoinHandle<std::io::Result<()>>, JoinHandle<()>);

fn cluster_options(settings: &Settings) -> ClusterOptions {
    ClusterOptions { binaries: settings.pg_bin.clone(), ..ClusterOptions::new(&settings.data_dir) }
}

/// Memory is ahead of disk, and only a recovery can mend that: the process ends at once, without answering those
/// who wait.
fn fail(reason: String) {
    tracing::error!(reason, "nothing can be made durable any more; stopping");
    std::process::exit(1);
}
