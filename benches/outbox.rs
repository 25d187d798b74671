//! Question: how many messages a second go from the outboxes to their providers, through one channel and through a
//! hundred, and how much of what a bare loop of the same HTTP client does is that?
//!
//! `cargo bench --bench outbox`; `HOTLINE_BENCH_MESSAGES` makes a round smaller.
//!
//! A round fills the outboxes while the channels are disconnected, connects them, and ends when the provider, a server
//! on a thread of its own that takes everything, has the last message. Meanwhile each hand-over is journaled and the
//! persister writes it to PostgreSQL; messages beyond those that fit into memory are read from the tables. The bare loop
//! posts as many bodies of the same shape to the same server with as many calls in flight, and does nothing with the
//! answers but read them. Both take turns, and both have one thread for their HTTP client: here the main thread, there
//! the couriers' own, as in the service. Pacing is off. The journal lies in the temporary directory, so `TMPDIR` chooses
//! the disk.
//!
//! Aim: at least 0.6 of the bare loop.

// A bench that cannot be set up has nothing to go on with.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpResponse, HttpServer};
use futures_util::future::{BoxFuture, join_all};
use futures_util::{StreamExt, stream};
use hotline::providers::media::{MediaFile, MediaFiles, MediaUnavailable};
use hotline::providers::{Graph, ProviderOptions, Providers};
use hotline_actors::channels::SendingOptions;
use hotline_actors::engine::Recipient;
use hotline_actors::tickets::{Author, Send};
use hotline_actors::{Directory, Engine, EngineOptions};
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::channels::{self, ChannelSettings, ChannelType, NewChannel, Secret};
use hotline_persistence::tables::messages::MessageRow;
use hotline_persistence::{ChannelId, Durability, PgPool, Store, pool};
use serde_json::json;
use support::{Company, Postgres};

/// Messages of a round.
const MESSAGES: usize = 20_000;

/// Recipients of a round: each receives one message after the other.
const RECIPIENTS: usize = 2_000;

/// Turns of each side.
const TURNS: usize = 3;

/// Requests at once while the outboxes are filled.
const FILLING: usize = 256;

/// Calls in flight, of all channels together.
const IN_FLIGHT: usize = 64;

const BODY: &str = "Good morning! Your order has left our warehouse and arrives tomorrow.";

fn main() {
    if !support::is_bench() {
        return;
    }
    actix_rt::System::new().block_on(run());
}

async fn run() {
    let messages = support::size("HOTLINE_BENCH_MESSAGES", MESSAGES);
    let taken = Arc::new(AtomicUsize::new(0));
    let address = serve(taken.clone());
    let postgres = Postgres::start().await;
    println!("{:>9} {:>9} {:>14} {:>14} {:>7}", "channels", "messages", "bare loop", "outboxes", "ratio");
    for channels in [1, 100] {
        let desk = Desk::open(&postgres, address, channels, messages).await;
        let (mut bare, mut outboxes) = (Duration::ZERO, Duration::ZERO);
        for turn in 0..=TURNS {
            let (loop_time, drain_time) = (bare_loop(address, channels, messages).await, desk.drain(&taken).await);
            // The first turn opens the connections.
            if turn > 0 {
                bare += loop_time;
                outboxes += drain_time;
            }
        }
        desk.close().await;
        let rate = |time: Duration| (TURNS * messages) as f64 / time.as_secs_f64();
        let (bare, outboxes) = (rate(bare), rate(outboxes));
        let ratio = outboxes / bare;
        println!("{channels:>9} {messages:>9} {bare:>12.0}/s {outboxes:>12.0}/s {ratio:>7.2}");
    }
}

/// A provider that takes everything.
fn serve(taken: Arc<AtomicUsize>) -> SocketAddr {
    let (told, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        actix_rt::System::new().block_on(async move {
            let counters = Data::new((taken, AtomicU64::new(0)));
            let app = move || {
                App::new().app_data(counters.clone()).route("/{version}/{account}/messages", web::post().to(take))
            };
            let server = HttpServer::new(app).workers(1).disable_signals().bind(("127.0.0.1", 0)).expect("a free port");
            told.send(server.addrs()[0]).expect("the bench waits");
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

/// The time of as many calls as there are messages.
async fn bare_loop(address: SocketAddr, channels: usize, messages: usize) -> Duration {
    let client = hotline::tls::client().build().expect("a client");
    let begin = Instant::now();
    let loops = (0..channels).map(|channel| {
        let (client, url) = (client.clone(), format!("http://{address}/v23.0/{channel}/messages"));
        async move {
            let calls = (0..messages / channels).map(|message| {
                let body = json!({"messaging_product": "whatsapp", "recipient_type": "individual",
                    "to": format!("55119{message:08}"), "biz_opaque_callback_data": message.to_string(),
                    "type": "text", "text": {"body": BODY}});
                client.post(&url).bearer_auth("token").json(&body).send()
            });
            stream::iter(calls)
                .buffer_unordered(in_flight(channels))
                .for_each(async |answer| {
                    let answer = answer.expect("an answer").bytes().await.expect("a body");
                    assert!(answer.starts_with(b"{"));
                })
                .await;
        }
    });
    join_all(loops).await;
    begin.elapsed()
}

fn in_flight(channels: usize) -> usize {
    (IN_FLIGHT / channels).max(1)
}

/// No message of the bench has a file.
struct NoFiles;

impl MediaFiles for NoFiles {
    fn open(&self, _: &MessageRow) -> BoxFuture<'static, Result<MediaFile, MediaUnavailable>> {
        Box::pin(std::future::ready(Err(MediaUnavailable::Gone)))
    }
}

/// The engine over a store of its own.
struct Desk {
    store: Arc<Store>,
    engine: Engine,
    company: Company,
    channels: Vec<ChannelId>,
    /// Messages of each channel in a round.
    messages: usize,
}

impl Desk {
    async fn open(postgres: &Postgres, address: SocketAddr, count: usize, messages: usize) -> Self {
        let database = postgres.database(&format!("outbox_{count}")).await;
        let db = pool::connect(database.clone());
        pool::migrate(&db).await.expect("migrate");
        let company = Company::create(&db, RECIPIENTS.min(messages)).await;
        let mut channels = Vec::with_capacity(count);
        for index in 0..count {
            channels.push(new_channel(&db, &postgres.keys(), &company, index, address).await);
        }
        db.close().await;
        let store = support::open(postgres.store_options(database, Durability::Journal)).await;
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
        let graph = Graph::new(&ProviderOptions::default()).expect("a client");
        let providers = Providers::new(graph, Arc::new(NoFiles));
        engine.sending.start(Arc::new(providers)).await.expect("sending begins");
        Self { store, engine, company, channels, messages: messages / count }
    }

    /// The time from the connection of the channels to the last message.
    async fn drain(&self, taken: &AtomicUsize) -> Duration {
        self.connect("disconnected").await;
        self.fill().await;
        support::drain(&self.store.log).await;
        let due = taken.load(Ordering::Acquire) + self.messages * self.channels.len();
        let begin = Instant::now();
        self.connect("connected").await;
        while taken.load(Ordering::Acquire) < due {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let time = begin.elapsed();
        self.settle().await;
        time
    }

    async fn connect(&self, status: &str) {
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
        stream::iter(sends).buffer_unordered(FILLING).collect::<()>().await;
    }

    /// Waits until every hand-over is in the tables.
    async fn settle(&self) {
        let waiting = "select exists (select from messages where company_id = $1 and status = 'queued')";
        loop {
            support::drain(&self.store.log).await;
            let query = sqlx::query_scalar(waiting).bind(self.company.id);
            let is_waiting: bool = query.fetch_one(&self.store.housekeeping).await.expect("look");
            if !is_waiting {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn close(self) {
        self.engine.sending.stop().await;
        support::drain(&self.store.log).await;
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
        ..ChannelSettings::default()
    };
    let name = format!("Phone {index}");
    let new = NewChannel { name: &name, kind: ChannelType::Whatsapp, number: None, queue_id: None, settings };
    channels::insert(db, keys, company.id, new).await.expect("a channel").id
}
