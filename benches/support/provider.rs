//! A provider that accepts every message, and an engine whose channels send to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpResponse, HttpServer};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use hotline::outbound::OutboundOptions;
use hotline::providers::media::{MediaFile, MediaFiles, MediaUnavailable};
use hotline::providers::{Graph, ProviderOptions, Providers};
use hotline_actors::channels::SendingOptions;
use hotline_actors::services::Recipient;
use hotline_actors::tickets::{Author, Send};
use hotline_actors::{Directory, Engine, EngineOptions};
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::channels::{self, ChannelSettings, ChannelType, NewChannel, Secret};
use hotline_persistence::tables::messages::MessageRow;
use hotline_persistence::{ChannelId, Durability, PgPool, Store, pool};
use serde_json::json;

use super::{Company, Postgres};

/// Concurrent sends while the outboxes are filled.
const FILL_CONCURRENCY: usize = 256;

/// Calls in flight, of all channels together.
const IN_FLIGHT: usize = 64;

pub const BODY: &str = "Good morning! Your order has left our warehouse and arrives tomorrow.";

/// Starts a provider that accepts every message and counts it in `taken`; returns its address.
pub fn serve(taken: Arc<AtomicUsize>) -> SocketAddr {
    let (address_sender, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        actix_rt::System::new().block_on(async move {
            let counters = Data::new((taken, AtomicU64::new(0)));
            let app = move || {
                App::new().app_data(counters.clone()).route("/{version}/{account}/messages", web::post().to(take))
            };
            let server = HttpServer::new(app).workers(1).disable_signals().bind(("127.0.0.1", 0)).expect("a free port");
            address_sender.send(server.addrs()[0]).expect("the bench waits");
            server.run().await.expect("the provider serves");
        });
    });
    address.recv().expect("the provider serves")
}

async fn take(counters: Data<(Arc<AtomicUsize>, AtomicU64)>, body: Bytes) -> HttpResponse {
    assert!(!body.is_empty());
    let (taken, ids) = &**counters;
    let id = format!("wamid.{}", ids.fetch_add(1, Ordering::Relaxed));
    taken.fetch_add(1, Ordering::Release);
    HttpResponse::Ok().json(json!({"messaging_product": "whatsapp", "messages": [{"id": id}]}))
}

/// Calls in flight on each channel, if there are `channels` of them.
pub fn in_flight(channels: usize) -> usize {
    (IN_FLIGHT / channels).max(1)
}

/// No message of the bench has a file.
struct NoFiles;

impl MediaFiles for NoFiles {
    fn open(&self, _: &MessageRow) -> BoxFuture<'static, Result<MediaFile, MediaUnavailable>> {
        Box::pin(std::future::ready(Err(MediaUnavailable::Gone)))
    }
}

/// An engine over a store of its own, with channels that send to the provider.
pub struct Desk {
    pub store: Arc<Store>,
    pub engine: Engine,
    pub company: Company,
    pub channels: Vec<ChannelId>,
    /// Messages of each channel in a round.
    messages: usize,
}

impl Desk {
    /// Opens it with `count` channels and this many contacts, for rounds of `messages` messages.
    pub async fn open(
        postgres: &Postgres,
        address: SocketAddr,
        count: usize,
        contacts: usize,
        messages: usize,
    ) -> Self {
        let database = postgres.database(&format!("outbox_{count}")).await;
        let db = pool::connect(database.clone());
        pool::migrate(&db).await.expect("migrate");
        let company = Company::create(&db, contacts).await;
        let mut channels = Vec::with_capacity(count);
        for index in 0..count {
            channels.push(new_channel(&db, &postgres.keys(), &company, index, address).await);
        }
        db.close().await;
        let store = super::open(postgres.store_options(database, Durability::Journal)).await;
        let reload_every = hotline_actors::directory::RELOAD_EVERY;
        let directory =
            Directory::load(&store.housekeeping, &store.keys, reload_every).await.expect("load the directory");
        let sending = SendingOptions {
            per_second: 0,
            recipient_interval: Duration::ZERO,
            in_flight_max: in_flight(count),
            ..SendingOptions::default()
        };
        let options = EngineOptions { sending, ..EngineOptions::default() };
        let engine = Engine::new(store.clone(), directory, options);
        let graph = Graph::new(&ProviderOptions::default(), &OutboundOptions::default()).expect("a client");
        let providers = Providers::new(graph, Arc::new(NoFiles));
        engine.sending.start(Arc::new(providers)).await.expect("sending begins");
        Self { store, engine, company, channels, messages: messages / count }
    }

    /// How long the sends take while the channels are disconnected, and the time from the connection of the channels to
    /// the last message at the provider.
    pub async fn fill_and_drain(&self, taken: &AtomicUsize) -> (Duration, Duration) {
        self.set_channel_status("disconnected").await;
        let ((), filled) = super::timed(self.fill()).await;
        super::drain(&self.store.log).await;
        let due = taken.load(Ordering::Acquire) + self.messages * self.channels.len();
        let begin = Instant::now();
        self.set_channel_status("connected").await;
        (filled, self.wait_for_arrivals(taken, due, begin).await)
    }

    /// The time from the first send to the last message at the provider, while the channels are connected: a message that
    /// is handed over before it was flushed is written to the tables once.
    pub async fn send_live(&self, taken: &AtomicUsize) -> Duration {
        self.set_channel_status("connected").await;
        let due = taken.load(Ordering::Acquire) + self.messages * self.channels.len();
        let begin = Instant::now();
        self.fill().await;
        self.wait_for_arrivals(taken, due, begin).await
    }

    /// The time until the provider has `due` messages. Then waits for the tables, which is not included.
    async fn wait_for_arrivals(&self, taken: &AtomicUsize, due: usize, begin: Instant) -> Duration {
        while taken.load(Ordering::Acquire) < due {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let time = begin.elapsed();
        self.settle().await;
        time
    }

    async fn set_channel_status(&self, status: &str) {
        let sql = "update channels set status = $2, updated_at = clock_timestamp() where company_id = $1";
        sqlx::query(sql).bind(self.company.id).bind(status).execute(&self.store.housekeeping).await.expect("update");
        self.engine.refresh(self.company.id).await;
    }

    async fn fill(&self) {
        let (engine, company) = (&self.engine, &self.company);
        let sends = self.channels.iter().flat_map(|channel| {
            (0..self.messages).map(move |message| async move {
                let contact = company.contacts[message % company.contacts.len()].id;
                let send = Send::text(BODY, Author::API);
                let recipient = Recipient::Contact(*channel, contact);
                let target = engine.sending.resolve(company.id, recipient).await.expect("the channel");
                engine.sending.send(&target, send).await.expect("the message is taken");
            })
        });
        stream::iter(sends).buffer_unordered(FILL_CONCURRENCY).collect::<()>().await;
    }

    /// Waits until every hand-over is in the tables.
    pub async fn settle(&self) {
        let waiting = "select exists (select from messages where company_id = $1 and status = 'queued')";
        loop {
            super::drain(&self.store.log).await;
            let query = sqlx::query_scalar(waiting).bind(self.company.id);
            let is_waiting: bool = query.fetch_one(&self.store.housekeeping).await.expect("look");
            if !is_waiting {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn close(self) {
        self.engine.sending.stop().await;
        super::drain(&self.store.log).await;
        self.engine.stop();
        self.store.close().await.expect("close the store");
    }
}

async fn new_channel(db: &PgPool, keys: &Keyring, company: &Company, index: usize, address: SocketAddr) -> ChannelId {
    let secret = || Some(Secret("token".to_owned()));
    let settings = ChannelSettings {
        phone_number_id: Some(index.to_string()),
        access_token: secret(),
        app_secret: secret(),
        verify_token: secret(),
        provider_url: Some(format!("http://{address}")),
        is_provider_url_from_operator: true,
        ..ChannelSettings::default()
    };
    let name = format!("Phone {index}");
    let new = NewChannel { name: &name, kind: ChannelType::Whatsapp, number: None, queue_id: None, settings };
    channels::insert(db, keys, company.id, new).await.expect("a channel").id
}
