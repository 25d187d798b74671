//! The service in the test's own process, on a free port.

use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hotline::media;
use hotline::outbound::{Lookup, OutboundOptions};
use hotline::panel::PanelOptions;
use hotline::providers::ProviderOptions;
use hotline::service::{ClusterSettings, EventOptions, Service, Settings, StartOptions, StopSettings};
use hotline::templates;
use hotline::visitors::{UploadOptions, VisitorOptions};
use hotline::web::connections::Limits;
use hotline::webhooks::WebhookOptions;
use hotline_actors::EngineOptions;
use hotline_persistence::tables::contacts;
use hotline_persistence::tables::source::Source;
use hotline_persistence::{ContactId, Durability, PgPool, SessionId, TicketId, journal};
use ipnet::IpNet;
use serde_json::json;
use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;

use super::shared::SharedService;
use super::{Api, Company, TestDatabase, database};

/// How long a stopping service waits for a client to close its connection: all clients are on this machine.
const LINGER_TIME: Duration = Duration::from_secs(1);

/// A limit that no test reaches, however slow it is: for times within which a client or a provider has to act. A test
/// of such a limit sets its own.
const NEVER: Duration = Duration::from_secs(30 * 24 * 3600);

/// How a test runs its service.
#[derive(Clone)]
pub struct TestOptions {
    pub durability: Durability,
    pub journal: journal::Options,
    pub engine: EngineOptions,
    pub on_premise: bool,
    pub trusted_proxies: Vec<IpNet>,
    /// 0: no limit.
    pub rate_per_minute: u32,
    pub per_page_max: i64,
    /// 0: no limit.
    pub wrong_tokens_per_minute: u32,
    /// Without limits by address, since all tests have the same one. A socket may be silent.
    pub visitors: VisitorOptions,
    /// Whether metrics are served, at a free port.
    pub metrics: bool,
    /// How often providers are asked for templates.
    pub templates: templates::Options,
    /// How files are kept; the folder is the service's own.
    pub media: media::Options,
    /// Whether and how long events are kept.
    pub events: EventOptions,
    /// How the providers are called; channels name the address. A call has no time limit.
    pub provider: ProviderOptions,
    /// Which networks may be called: also this machine, where the providers of tests are. A call has no time limit.
    pub outbound: OutboundOptions,
    /// How webhooks are delivered, also to this machine: the endpoints of tests are here.
    pub webhooks: WebhookOptions,
    /// How people sign in.
    pub panel: PanelOptions,
    /// Whether the service is a process of a cluster: then it serves slots, and its log is in PostgreSQL. With
    /// `HOTLINE_TESTS_AS_MEMBER` in the environment every service is.
    pub member: bool,
    /// Without limits by address, since all tests have the same one, without limits of time for a client that sends or
    /// reads slowly, and with a short linger: a stopping service waits that long for each socket that a test holds
    /// open.
    pub limits: Limits,
}

/// Finds no address for any name, so that no test reaches a foreign host.
struct NoNames;

impl Lookup for NoNames {
    fn addresses(&self, _: &str) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async { Err(std::io::ErrorKind::NotFound.into()) })
    }
}

impl Default for TestOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Journal,
            // Small segments: tests start many services, and each prepares one by writing zeros.
            journal: journal::Options { segment_bytes: 1 << 20, max_bytes: 256 << 20, ..journal::Options::default() },
            engine: EngineOptions { sweep_every: Duration::from_millis(200), ..EngineOptions::default() },
            on_premise: false,
            trusted_proxies: Vec::new(),
            rate_per_minute: 0,
            per_page_max: 100,
            wrong_tokens_per_minute: 0,
            visitors: VisitorOptions {
                sessions_per_minute: 0,
                messages_per_minute: 0,
                requests_per_minute: 0,
                sockets_per_address: 0,
                uploads: UploadOptions::NONE,
                silence_max: NEVER,
                ..VisitorOptions::default()
            },
            metrics: false,
            templates: templates::Options::default(),
            media: media::Options::in_folder(PathBuf::new()),
            events: EventOptions::default(),
            provider: ProviderOptions { call_time_max: NEVER, ..ProviderOptions::default() },
            outbound: OutboundOptions {
                allowed_networks: vec!["127.0.0.0/8".parse().expect("network")],
                call_time_max: NEVER,
            },
            webhooks: WebhookOptions {
                allowed_networks: vec!["127.0.0.0/8".parse().expect("network")],
                lookup: Arc::new(NoNames),
                ..WebhookOptions::default()
            },
            panel: PanelOptions::default(),
            member: is_member(),
            limits: Limits {
                head: NEVER,
                keep_alive: NEVER,
                write: NEVER,
                linger: LINGER_TIME,
                per_address: 0,
                ..Limits::default()
            },
        }
    }
}

impl TestOptions {
    pub fn settings(&self, folder: &TempDir, database: PgConnectOptions) -> Settings {
        Settings {
            listen: "127.0.0.1:0".parse().expect("address"),
            data_dir: folder.path().to_owned(),
            database: Some(database),
            key_file: super::keys().path().to_owned(),
            pg_bin: None,
            postgres_memory: None,
            postgres_disk: None,
            durability: if self.member { Durability::Database } else { self.durability },
            on_premise: self.on_premise,
            journal: self.journal.clone(),
            engine: self.engine.clone(),
            workers: 2,
            trusted_proxies: self.trusted_proxies.clone(),
            limits: self.limits,
            rate_per_minute: self.rate_per_minute,
            per_page_max: self.per_page_max,
            wrong_tokens_per_minute: self.wrong_tokens_per_minute,
            visitors: self.visitors,
            templates: self.templates,
            media: media::Options { folder: folder.path().join("media"), ..self.media.clone() },
            events: self.events,
            provider: self.provider.clone(),
            outbound: self.outbound.clone(),
            webhooks: self.webhooks.clone(),
            panel: self.panel.clone(),
            // Tests let their clients finish before they stop a service of their own.
            stop: StopSettings { notice: Duration::ZERO, quiet: Duration::ZERO },
            cluster: self.member.then(member_settings),
            start: StartOptions::default(),
            metrics_listen: self.metrics.then(|| "127.0.0.1:0".parse().expect("address")),
        }
    }
}

/// Whether every service is to be a process of a cluster.
pub fn is_member() -> bool {
    std::env::var_os("HOTLINE_TESTS_AS_MEMBER").is_some()
}

/// The settings of a process of a cluster, with a free address: other processes learn it before this one listens.
pub fn member_settings() -> ClusterSettings {
    let listen = super::free_address();
    ClusterSettings { listen, address: listen.to_string(), node: format!("node-{}", listen.port()) }
}

/// Waits until the service has slots, if it is a process of a cluster.
pub async fn wait_for_slots(service: &Service) {
    if let Some(membership) = service.app.engine.store().membership() {
        super::eventually("the process has slots", || async { membership.placement.count_here() > 0 }).await;
    }
}

/// A company of a running service, and its client.
pub struct TestApp {
    /// Where the service answers.
    pub address: SocketAddr,
    /// Connections with which the test itself reads or changes rows.
    pub db: PgPool,
    pub company: Company,
    /// A client with the company's token.
    pub api: Api,
}

/// A service in the test's own process, with one company: for tests that choose its options, call into it, break it or
/// restart it.
pub struct OwnApp {
    pub app: TestApp,
    pub service: Service,
    pub database: TestDatabase,
    pub folder: TempDir,
}

impl Deref for OwnApp {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.app
    }
}

impl TestApp {
    /// A company of its own in the service that tests share.
    pub async fn shared() -> Self {
        let service = SharedService::find().await;
        let db = database::pool(service.database);
        let company = Company::create(&db, "Acme").await;
        let app = Self { address: service.address, api: Api::new(service.address, &company.key), db, company };
        app.wait_until_served().await;
        app
    }

    /// Another company in the same service, and a client for it.
    pub async fn another_company(&self) -> (Company, Api) {
        let company = Company::create(&self.db, "Other").await;
        let api = self.api.with_key(&company.key);
        let app = Self { address: self.address, db: self.db.clone(), company, api };
        app.wait_until_served().await;
        (app.company, app.api)
    }

    /// Waits until the service knows the company. It was written in one transaction: if its token is known, all of it
    /// is.
    async fn wait_until_served(&self) {
        super::eventually("the new company is seen", || async { self.api.get("/channels").await.status == 200 }).await;
    }

    /// Waits until the service has read what the test wrote into the company's tables.
    pub async fn refreshed(&self) {
        refresh(&self.api, &self.company).await;
    }

    /// A contact with a number.
    pub async fn contact(&self, number: &str) -> ContactId {
        let db = &self.db;
        let new = contacts::ContactByNumber { number, name: None, country: None };
        contacts::find_or_create_by_number(db, self.company.id, new, Source::Api).await.expect("contact").id
    }

    /// An open ticket on the phone channel, with a contact of its own.
    pub async fn ticket(&self, number: &str) -> TicketId {
        let contact = self.contact(number).await;
        let body = json!({"channelId": self.company.phone, "contactId": contact});
        let reply = self.api.post("/tickets", body).await;
        TicketId::new(reply.data(201)["id"].as_i64().expect("id"))
    }

    /// A webchat session of a visitor with this external id.
    pub async fn session(&self, external_id: &str) -> (SessionId, ContactId) {
        let body =
            json!({"channelId": self.company.webchat, "visitor": {"name": external_id, "externalId": external_id}});
        let reply = self.api.post("/webchat/sessions", body).await;
        let session = reply.data(201);
        let id = session["id"].as_str().expect("id").to_owned();
        (SessionId(id), ContactId::new(session["contact"]["id"].as_i64().expect("contact")))
    }

    /// Checks that none of the company's rows was refused. Those that are still to be written are checked when the
    /// service stops (`running.rs`).
    pub async fn stop(self) {
        let query = "select count(*) from rejected_changes where company_id = $1";
        let refused: i64 = sqlx::query_scalar(query).bind(self.company.id).fetch_one(&self.db).await.expect("count");
        assert_eq!(refused, 0, "PostgreSQL refused rows");
        self.db.close().await;
    }
}

/// Waits until the service has read what the test wrote into a company's tables. It adds a member to a queue that
/// already has that member: the service answers such a request after it has read the whole company again.
pub async fn refresh(api: &Api, company: &Company) {
    let Company { key, sales, ben, .. } = company;
    let reply = api.with_key(key).put(&format!("/queues/{sales}/users/{ben}"), json!({})).await;
    assert_eq!(reply.status, 204, "{}", reply.body);
}

impl OwnApp {
    pub async fn start() -> Self {
        Self::start_with(TestOptions::default()).await
    }

    pub async fn start_with(options: TestOptions) -> Self {
        let filter = hotline::telemetry::filter(None).expect("a good RUST_LOG");
        hotline::telemetry::start(hotline::telemetry::LogFormat::Pretty, filter);
        let database = TestDatabase::migrated().await;
        let company = Company::create(&database.db, "Acme").await;
        Self::serve(&options, database, super::empty_folder(), company).await
    }

    /// Serves what is in the database and the folder.
    pub async fn serve(options: &TestOptions, database: TestDatabase, folder: TempDir, company: Company) -> Self {
        let settings = options.settings(&folder, database.options.clone());
        let service = Service::start(settings).await.expect("the service starts");
        wait_for_slots(&service).await;
        let api = Api::new(service.address, &company.key);
        let app = TestApp { address: service.address, db: database.db.clone(), company, api };
        Self { app, service, database, folder }
    }

    /// Stops the service, runs `meanwhile` on its database, and serves the same company again with these options.
    pub async fn restarted(self, options: &TestOptions, meanwhile: impl AsyncFnOnce(&TestDatabase)) -> Self {
        let Self { app, service, database, folder } = self;
        service.stop().await.expect("the service stops cleanly");
        meanwhile(&database).await;
        Self::serve(options, database, folder, app.company).await
    }

    /// The stored files of messages, without those that are still arriving.
    pub fn stored_files(&self) -> Vec<PathBuf> {
        let folder = self.folder.path().join("media");
        let mut stored = files_in(&folder);
        stored.retain(|file| !file.starts_with(folder.join("incoming")));
        stored
    }

    /// Files of messages that are still arriving.
    pub fn arriving_files(&self) -> Vec<PathBuf> {
        files_in(&self.folder.path().join("media/incoming"))
    }

    /// Stops the service; fails if anything was left unflushed or PostgreSQL refused a row.
    pub async fn stop(self) {
        let log = self.service.app.engine.store().log.clone();
        // A stop gives up on the changes that are left when PostgreSQL takes five seconds for the next of them. That a
        // stop writes them itself is asserted in `durability::clean_stop`.
        let are_flushed = || async { log.wait_until_flushed(log.appended()).await.is_ok() };
        super::eventually("the tables have the changes", are_flushed).await;
        self.service.stop().await.expect("the service stops cleanly");
        assert_eq!(log.flushed(), log.appended(), "changes were left unflushed");
        let query = "select count(*) from rejected_changes";
        let refused: i64 = sqlx::query_scalar(query).fetch_one(&self.database.db).await.expect("count");
        assert_eq!(refused, 0, "PostgreSQL refused rows");
        self.database.drop().await;
    }
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries {
        // A sweep may delete files at the same time.
        let Ok(path) = entry.map(|entry| entry.path()) else { continue };
        if path.is_dir() { found.extend(files_in(&path)) } else { found.push(path) }
    }
    found
}
