//! The whole service, and the order of its startup (database, recovery, actors, listener) and shutdown.

mod background;
mod early;
mod error;
mod eviction;
mod monitor;
mod offline;
mod settings;
mod sockets;
mod stop;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix_web::App as WebApp;
use actix_web::dev::ServerHandle;
use actix_web::middleware::from_fn;
use actix_web::web::Data;
use hotline_actors::{Directory, Engine, EngineOptions};
use hotline_persistence::Store;
use hotline_persistence::cluster::Gates;
use hotline_persistence::start_wait::wait_for_database;
use hotline_persistence::tables::installation_keys;
use hotline_postgres::{Cluster, ClusterError};
use sqlx::postgres::PgConnectOptions;
use tokio::net::TcpSocket;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use self::early::EarlyListener;
pub use self::error::ServiceError;
use self::eviction::CompanyEviction;
pub use self::monitor::last_backup_at;
pub use self::offline::OfflineService;
pub use self::settings::{ClusterSettings, EventOptions, Settings, StartOptions, StopSettings};
use self::sockets::{BoundSockets, LISTEN, METRICS_LISTEN};
pub use self::stop::StopSignal;
use self::stop::stop_postgres;
use crate::app::App;
use crate::cluster::{Edge, EdgeServiceFactory, Member, MemberDeps};
use crate::deliveries::Deliveries;
use crate::exit_code::Exit;
use crate::hooks::{Downloads, Hooks};
use crate::mail::Mailer;
use crate::media::Media;
use crate::metrics::{Listener, Metrics};
use crate::openapi::Documents;
use crate::outbound::Outbound;
use crate::providers::{Graph, Providers};
use crate::routes::{self, Handles};
use crate::templates::Templates;
use crate::visitors::{Demo, VisitorLimits};
use crate::web::admission::auth::Admission;
use crate::web::admission::hardening::Https;
use crate::web::admission::idempotency::{IdempotencyState, Keys};
use crate::web::admission::rate::RateLimits;
use crate::web::admission::response_memory;
use crate::web::admission::wrong_tokens::WrongTokens;
use crate::web::connections::{self, ListenOptions, Listeners, Peers, Side};
use crate::web::request::body_scheduler::BodyScheduler;
use crate::web::request::params::PerPageMax;
use crate::web::response::cursor::{self, Cursors};
use crate::web::response::{compression, head};
use crate::web::state::WebState;
use crate::webhooks::Webhooks;

/// How long requests in flight may take once the service stops.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(30);

/// A running service.
pub struct Service {
    /// The handlers' state.
    pub app: Data<App>,
    /// The shared state of all routes.
    pub handles: Handles,
    /// The used idempotency keys.
    pub keys: Keys,
    /// The address for HTTP.
    pub address: SocketAddr,
    /// The listener for the other processes of a cluster; `None` outside a cluster.
    peers: Option<Peers>,
    /// The listener for metrics, if they are served.
    pub metrics_listener: Option<Listener>,
    /// Delivers to webhooks; `None` if events are not stored.
    deliveries: Option<Deliveries>,
    /// This process as a member of a cluster; `None` outside a cluster.
    pub member: Option<Member>,
    /// How the service stops.
    stop_settings: StopSettings,
    /// The public socket, which is shared with the server.
    socket: TcpListener,
    /// The private PostgreSQL, if there is one.
    postgres: Option<Cluster>,
    server: ServerHandle,
    server_task: JoinHandle<std::io::Result<()>>,
    directory_task: JoinHandle<()>,
}

impl Service {
    /// Starts everything, and returns when HTTP is served.
    ///
    /// # Errors
    /// When a part cannot start; the parts before it are stopped again.
    pub async fn start(settings: Settings) -> Result<Self, ServiceError> {
        Self::start_unless_stopped(settings, StopSignal::never()).await
    }

    /// As [`Service::start`], but the signal interrupts the start; in a cluster, only until the store is open.
    ///
    /// # Errors
    /// As for [`Service::start`]; [`ServiceError::Interrupted`] when the signal has interrupted the start.
    pub async fn start_unless_stopped(settings: Settings, stop: StopSignal) -> Result<Self, ServiceError> {
        // Bound before anything else: a taken port must be reported before PostgreSQL is started and a recovery runs.
        let sockets = match BoundSockets::bind(&settings) {
            // The port is usually taken by another service on the same data folder: then report that instead.
            Err(error) if settings.database.is_none() => {
                Cluster::ensure_not_served(&settings.data_dir)?;
                return Err(error);
            }
            sockets => sockets?,
        };
        // Answers health checks until the service is ready.
        let early = EarlyListener::start(&sockets.http).map_err(BoundSockets::listen_error(LISTEN, settings.listen))?;
        let (postgres, database) = match settings.database.clone() {
            Some(database) => (None, database),
            None => {
                let result = Cluster::start_unless(settings.postgres_options(), stop.receiver()).await;
                let postgres = match result {
                    Err(ClusterError::Interrupted) => return Err(ServiceError::Interrupted),
                    result => result?,
                };
                let database = postgres.connect_options();
                (Some(postgres), database)
            }
        };
        // Boxed: a large future, and the stack of the caller may be small.
        let start = Box::pin(Self::start_with_database(&settings, sockets, early, database, &stop));
        let result = match &settings.cluster {
            // Nothing was acknowledged yet, so the start can be dropped at any point.
            None => stop.run_unless_given(start).await.unwrap_or(Err(ServiceError::Interrupted)),
            // Once its store is open, the other processes know this one, so it must stop as usual.
            Some(_) => start.await,
        };
        match result {
            Ok(service) => Ok(Self { postgres, ..service }),
            Err(error) => stop_postgres(postgres, Err(error)).await,
        }
    }

    /// Starts everything that needs a database, from the store up.
    async fn start_with_database(
        settings: &Settings,
        sockets: BoundSockets,
        early: EarlyListener,
        database: PgConnectOptions,
        stop: &StopSignal,
    ) -> Result<Self, ServiceError> {
        let StartedEngine { handles, keys, directory_task } = start_engine(settings, database, stop).await?;
        background::start(&handles, settings);
        let deliveries = match &handles.app.engine.store().events {
            Some(_) => Some(Deliveries::start(handles.app.clone()).map_err(ServiceError::Dispatcher)?),
            None => None,
        };
        let eviction = CompanyEviction::new(handles.clone(), deliveries.as_ref().map(Deliveries::control));
        let socket = sockets.http.try_clone().map_err(BoundSockets::listen_error(LISTEN, settings.listen))?;
        let Listeners { address, peers, server } = listen(settings, sockets.http, sockets.peers, &handles)?;
        let metrics_listener = start_metrics_listener(sockets.metrics, &handles)?;
        let member = start_member(&handles, keys.clone(), eviction);
        // The server accepts once it is polled; until then connections wait in the backlog.
        early.end().await;
        Ok(Self {
            app: handles.app.clone(),
            handles,
            keys,
            address,
            peers,
            metrics_listener,
            deliveries,
            member,
            stop_settings: settings.stop,
            socket,
            postgres: None,
            server: server.handle(),
            server_task: tokio::spawn(server),
            directory_task,
        })
    }
}

/// The running engine with the state of the routes, before anything listens.
struct StartedEngine {
    handles: Handles,
    keys: Keys,
    directory_task: JoinHandle<()>,
}

/// Opens the store, and starts the engine on it.
async fn start_engine(
    settings: &Settings,
    database: PgConnectOptions,
    stop: &StopSignal,
) -> Result<StartedEngine, ServiceError> {
    let open_store = stop.run_unless_given(Box::pin(async {
        wait_for_database(&database, settings.start.wait).await?;
        Store::open(settings.store_options(database), fail).await
    }));
    let store = open_store.await.ok_or(ServiceError::Interrupted)??;
    let directory = Directory::load(&store.housekeeping, &store.keys, settings.engine.reload_every).await?;
    let keys = match store.membership() {
        None => Keys::load(&store.housekeeping).await?,
        Some(_) => {
            let directory = directory.clone();
            store.ownership().use_gates(Gates::new(Box::new(move |company| directory.slot(company))));
            // The keys are loaded with the slots that are assigned to this process.
            Keys::default()
        }
    };
    // Opened after the store, whose lock on the folder excludes other processes.
    let media = Media::open(settings.media.clone(), store.housekeeper(), &store.keys, Handle::current()).await?;
    let key = installation_keys::find_or_create_temporary(store.housekeeper(), &store.keys, cursor::KEY_NAME).await?;
    let follow = directory.clone().follow(store.housekeeping.clone(), store.events.clone(), store.webhooks.clone());
    let directory_task = tokio::spawn(follow);
    // The serving threads also run the actors.
    let engine = Engine::new(store, directory, EngineOptions { arbiters: 0, ..settings.engine.clone() });
    engine.start_sweeping();
    // Sending has its own client, because a connection belongs to the thread that opened it.
    let sending_graph = Graph::new(&settings.provider, &settings.outbound)?;
    engine.sending.start(Arc::new(Providers::new(sending_graph, Arc::new(media.clone())))).await?;
    engine.schedules.start().await?;
    let graph = Graph::new(&settings.provider, &settings.outbound)?;
    let templates = Arc::new(Templates::new(graph.clone(), settings.templates));
    engine.campaigns.start(templates.clone()).await?;
    let handles = build_handles(settings, engine, (media, graph, templates), keys.clone(), Cursors::new(key))?;
    Ok(StartedEngine { handles, keys, directory_task })
}

/// Serves metrics on their socket, if there is one.
fn start_metrics_listener(
    socket: Option<(SocketAddr, TcpListener)>,
    handles: &Handles,
) -> Result<Option<Listener>, ServiceError> {
    let Some((address, socket)) = socket else { return Ok(None) };
    let result = Listener::start(socket, handles.app.engine.clone(), handles.app.metrics.clone());
    result.map(Some).map_err(BoundSockets::listen_error(METRICS_LISTEN, address))
}

/// Joins the cluster, if this process is in one.
fn start_member(handles: &Handles, keys: Keys, eviction: CompanyEviction) -> Option<Member> {
    let (opened_handles, quiesce_eviction) = (handles.clone(), eviction.clone());
    Member::start(MemberDeps {
        engine: handles.app.engine.clone(),
        keys,
        quiesce: Arc::new(move |companies| {
            let eviction = quiesce_eviction.clone();
            Box::pin(async move { eviction.pause_all(companies).await })
        }),
        drop_company: Arc::new(move |company| {
            let eviction = eviction.clone();
            Box::pin(async move { eviction.forget(company).await })
        }),
        on_opened: Arc::new(move || {
            let engine = &opened_handles.app.engine;
            opened_handles.hooks.downloads.search_soon();
            let inbound = engine.inbound.clone();
            engine.spawn(async move { inbound.sweep_early_statuses().await });
        }),
        media_folder: handles.app.media.shared_folder_id().map(str::to_owned),
        metrics: handles.app.metrics.clone(),
        fail,
    })
}

/// Assembles the routes' state, over a running engine.
fn build_handles(
    settings: &Settings,
    engine: Engine,
    (media, graph, templates): (Media, Graph, Arc<Templates>),
    keys: Keys,
    cursors: Cursors,
) -> Result<Handles, ServiceError> {
    let outbound = Outbound::new(&settings.outbound)?;
    let downloads = Downloads::new(engine.clone(), graph, outbound, media.clone());
    let metrics = Data::new(Metrics::new(routes::paths()));
    let web_state = WebState {
        admission: Data::new(build_admission(settings, &engine)),
        https: Data::new(Https {
            is_exclusive: media.public_url().is_some_and(|address| address.starts_with("https://")),
            trusted_proxies: settings.trusted_proxies.clone(),
        }),
        rates: Data::new(RateLimits::new(settings.rate_per_minute)),
        per_page_max: Data::new(PerPageMax(settings.per_page_max)),
        cursors: Data::new(cursors),
        body_scheduler: Data::new(BodyScheduler::default()),
        response_memory: Data::default(),
        media: Data::new(media.clone()),
        idempotency: Data::new(build_idempotency_state(keys, &engine, &media, &metrics)),
        metrics: metrics.clone(),
    };
    let webhooks = Webhooks::new(&settings.webhooks)?;
    let mailer = settings.panel.mail.as_ref().map(|mail| Mailer::new(mail, metrics.clone())).transpose()?;
    Ok(Handles {
        app: Data::new(App::new(engine, settings.trusted_proxies.clone(), media, templates, webhooks, metrics)),
        shared_streams: Data::default(),
        rendered_tickets: Data::default(),
        hooks: Data::new(Hooks::new(downloads)),
        visitor_limits: Data::new(VisitorLimits::new(settings.visitors)),
        demo: Data::new(Demo::default()),
        panel: Data::new(routes::create_panel(mailer, settings.panel.admins_need_second_factor)),
        documents: Data::new(Documents::of(routes::document, routes::panel_document)),
        web_state,
    })
}

/// What is needed to admit callers.
fn build_admission(settings: &Settings, engine: &Engine) -> Admission {
    Admission {
        directory: engine.directory().clone(),
        ownership: engine.store().ownership().clone(),
        on_premise: settings.on_premise,
        trusted_proxies: settings.trusted_proxies.clone(),
        wrong_tokens: WrongTokens::new(settings.wrong_tokens_per_minute),
    }
}

/// What is needed to execute requests with an idempotency key once.
fn build_idempotency_state(keys: Keys, engine: &Engine, media: &Media, metrics: &Data<Metrics>) -> IdempotencyState {
    IdempotencyState {
        keys,
        engine: engine.clone(),
        media: media.clone(),
        metrics: metrics.clone(),
        body_bytes_max: routes::body_bytes_max,
    }
}

/// Opens the public listener and the one for the other processes of a cluster.
fn listen(
    settings: &Settings,
    socket: TcpListener,
    peer_socket: Option<TcpSocket>,
    handles: &Handles,
) -> Result<Listeners, ServiceError> {
    let options = ListenOptions {
        socket,
        peer_socket,
        workers: settings.workers,
        drain: DRAIN_TIME_MAX,
        limits: settings.limits,
        proxies: settings.trusted_proxies.clone(),
        metrics: handles.app.metrics.connections.clone(),
    };
    let handles = handles.clone();
    let engine = &handles.app.engine;
    let edge = engine.store().membership().map(|membership| {
        let (directory, ownership) = (engine.directory().clone(), engine.store().ownership().clone());
        let (metrics, stopping) = (handles.app.metrics.clone(), handles.app.stopping());
        Edge::new(membership.clone(), directory, ownership, metrics, stopping)
    });
    let result = connections::listen(options, move |side| {
        if side == Side::Public {
            // Called on each serving thread.
            handles.app.engine.run_actors_here();
            handles.app.health.beat_here();
        }
        let web_app = WebApp::new()
            .wrap(from_fn(compression::compress))
            .wrap(from_fn(response_memory::count_response))
            .wrap(from_fn(head::as_get))
            .wrap(from_fn(routes::assign_request_id))
            .configure(routes::configure(handles.clone()));
        EdgeServiceFactory::new(web_app, edge.clone(), side, handles.app.health.clone())
    });
    result.map_err(BoundSockets::listen_error(LISTEN, settings.listen))
}

/// Called when changes can no longer be made durable: memory is then ahead of the disk, which only a recovery can
/// repair. Exits at once, without responding to the waiting requests.
fn fail(reason: String) {
    tracing::error!(reason, "changes can no longer be made durable; stopping");
    std::process::exit(Exit::Retry.code().into());
}
