//! The processes of a cluster within one process, with a fixed placement; their handlers report the requests they
//! received.

mod connections;
mod forwarding;
mod handlers;
mod owners;
mod reach;
mod trust;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix_web::App;
use actix_web::web::Data;
use chrono::DateTime;
use hotline_actors::Directory;
use hotline_persistence::cluster::{LifeId, Membership, Moment, Peer, Slot};
use hotline_persistence::tables::companies::CompanyRow;
use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::tokens::TokenRow;
use hotline_persistence::{CompanyId, Ownership, TokenId, key};
use reqwest::{Client, Method};
use sqlx::types::Json;
use tokio::sync::{Notify, watch};

use self::handlers::routes;
use super::{Edge, EdgeServiceFactory};
use crate::health::Health;
use crate::metrics::Metrics;
use crate::web::connections::{Limits, ListenOptions, Listeners, Peers, bind, bind_listener, listen};

const COMPANY: CompanyId = CompanyId::new(7);
const TOKEN: &str = "sk_live_abcdefghijklmnopqrstuvwxyz012345";
const SECRET: [u8; 64] = [7; 64];

/// Longer than any test takes on a busy machine.
const HOUR: Duration = Duration::from_secs(3600);
/// How long a request waits for the owner of its company: longer than a test takes to name an owner.
const WAIT: Duration = HOUR;
/// How long a request waits in tests that name no owner.
const SHORT_WAIT: Duration = Duration::from_millis(200);

/// One process of the cluster.
struct Node {
    membership: Arc<Membership>,
    ownership: Ownership,
    metrics: Data<Metrics>,
    stopping: watch::Sender<bool>,
    world: Data<World>,
    public: SocketAddr,
    peers: Peers,
}

/// The state that the handlers of a node share.
#[derive(Default)]
struct World {
    started_requests: AtomicUsize,
    /// Handlers that hang respond when it is notified, and event streams send the next event.
    proceed: Arc<Notify>,
}

fn slot() -> Slot {
    Slot::of_new(COMPANY)
}

fn directory() -> Directory {
    let at = DateTime::UNIX_EPOCH;
    let company = CompanyRow {
        id: COMPANY,
        name: "Acme".to_owned(),
        active: true,
        api_enabled: true,
        rate_per_minute: None,
        time_zone: "UTC".to_owned(),
        stop_words: Vec::new(),
        second_factor_required: false,
        slot: slot(),
        created_at: at,
        updated_at: at,
    };
    let token = TokenRow {
        id: TokenId::new(1),
        company_id: COMPANY,
        name: "test".to_owned(),
        prefix: String::new(),
        hash: key::hash(TOKEN).to_vec(),
        permissions: Json(Default::default()),
        allowed_ips: Vec::new(),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
        created_at: at,
        updated_at: at,
    };
    Directory::of([Organization {
        version: 0,
        company,
        tokens: vec![token],
        channels: Default::default(),
        queues: Default::default(),
        users: Default::default(),
        former_users: Default::default(),
        wrapup_types: Default::default(),
        global_variables: Default::default(),
    }])
}

/// No connection of a test is closed because its client is slow.
fn limits() -> Limits {
    Limits { head: HOUR, keep_alive: HOUR, write: HOUR, ..Limits::default() }
}

impl Node {
    fn start(life: i64) -> Self {
        Self::start_with(life, limits())
    }

    fn start_with(life: i64, limits: Limits) -> Self {
        Self::start_waiting(life, limits, WAIT)
    }

    /// A node whose requests soon stop waiting for an owner.
    fn impatient(life: i64) -> Self {
        Self::start_waiting(life, limits(), SHORT_WAIT)
    }

    /// Starts a node with one serving thread.
    fn start_waiting(life: i64, limits: Limits, wait: Duration) -> Self {
        let membership = Arc::new(Membership::new(LifeId::new(life), format!("node-{life}"), SECRET));
        // No test takes so long that the lease expires.
        membership.lease.extend(Moment::now() + HOUR);
        let ownership = Ownership::default();
        let metrics = Data::new(Metrics::new(Vec::new()));
        let (stopping, receiver) = watch::channel(false);
        let world: Data<World> = Data::default();
        let edge = Edge::new(membership.clone(), directory(), ownership.clone(), metrics.clone(), receiver)
            .with_wait_time_max(wait);
        let bind_any_port = || bind("127.0.0.1:0".parse().expect("address")).expect("a port");
        let options = ListenOptions {
            socket: bind_listener("127.0.0.1:0".parse().expect("address"), limits.backlog).expect("a port"),
            peer_socket: Some(bind_any_port()),
            workers: 1,
            drain: Duration::from_secs(1),
            limits,
            proxies: Vec::new(),
            metrics: std::sync::Arc::default(),
        };
        let served = world.clone();
        let Listeners { address: public, peers, server } = listen(options, move |side| {
            let world = served.clone();
            let routes = App::new().configure(move |services| routes(services, world));
            EdgeServiceFactory::new(routes, Some(edge.clone()), side, Health::default())
        })
        .expect("it listens");
        actix_web::rt::spawn(server);
        let peers = peers.expect("a listener for peers");
        Self { membership, ownership, metrics, stopping, world, public, peers }
    }

    fn peer(&self) -> Peer {
        Peer {
            life: self.membership.life,
            node: self.membership.node.clone(),
            address: self.peers.address().to_string(),
        }
    }

    /// Makes the node the company's owner.
    fn own_company(&self) {
        self.membership.placement.open([slot()]);
    }

    /// Makes the node forward the company's requests to `owner`, even if `owner` does not serve them.
    fn forward_to(&self, owner: &Peer) {
        self.membership.placement.replace([owner.clone()], |_| Some(owner.life));
    }

    fn started_requests(&self) -> usize {
        self.world.started_requests.load(Ordering::SeqCst)
    }

    async fn wait_for_requests(&self, requests: usize) {
        until("requests have begun", || self.started_requests() >= requests).await;
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.public)
    }
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        // Read before the check, so that a slow machine still has one check after the deadline.
        let is_late = Instant::now() >= deadline;
        if holds() {
            return;
        }
        assert!(!is_late, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// An edge that serves no company, and the owner of the company, to which the edge forwards.
fn pair() -> (Node, Node) {
    let (edge, owner) = (Node::start(1), Node::start(2));
    owner.own_company();
    edge.forward_to(&owner.peer());
    (edge, owner)
}

fn client() -> Client {
    crate::tls::client().timeout(Duration::from_secs(240)).build().expect("a client")
}

fn ask(client: &Client, method: Method, url: String) -> reqwest::RequestBuilder {
    client.request(method, url).bearer_auth(TOKEN)
}
