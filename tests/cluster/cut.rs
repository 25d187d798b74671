//! Connections are held up and cut: between a member and PostgreSQL, and between members.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio_tungstenite::tungstenite::Message;

use crate::load::rounds;
use crate::proxy::{Flow, Proxy};
use crate::rig::Rig;
use crate::summary::Row;
use crate::visitors::idle_socket;

const CHANGES_MIN: u64 = 15;

/// How long nothing comes through: far longer than a lease, and than the others take to end a life.
const HELD_FOR: Duration = Duration::from_secs(12);

/// How often flapping connections are cut, and how long they last in between.
const FLAPS: usize = 12;
const FLAP: Duration = Duration::from_millis(300);

/// The delay of connections after a cut, each way.
const SLOW: Duration = Duration::from_millis(10);

/// Between which parts, and in which directions, no bytes pass.
#[derive(Clone, Copy)]
struct Outage {
    name: &'static str,
    /// On the way to PostgreSQL, and on the way back.
    to_database: Flow,
    from_database: Flow,
    /// Whether nothing passes between the member and the others either, in either direction.
    isolates: bool,
}

/// Between a member and PostgreSQL. The way back comes first: then PostgreSQL does all that the member requests, and no
/// answer arrives.
const DATABASE: [Outage; 3] = [
    Outage { name: "on the way back", to_database: Flow::Open, from_database: Flow::Held, isolates: false },
    Outage { name: "both ways", to_database: Flow::Held, from_database: Flow::Held, isolates: false },
    Outage { name: "on the way there", to_database: Flow::Held, from_database: Flow::Open, isolates: false },
];

/// Between a member and all others except its own callers.
const EVERYBODY: [Outage; 1] =
    [Outage { name: "from everybody", to_database: Flow::Held, from_database: Flow::Held, isolates: true }];

impl Proxy {
    /// Cuts every connection: at once, or in the middle of a transfer (odd numbers). New connections are slow for a
    /// moment.
    async fn flap(&self, number: usize) {
        if number.is_multiple_of(2) {
            self.cut();
        } else {
            self.set_flow(Flow::Halved, Flow::Halved);
            tokio::time::sleep(FLAP / 4).await;
        }
        self.set_flow(Flow::Slow(SLOW), Flow::Slow(SLOW));
        tokio::time::sleep(FLAP).await;
        self.set_flow(Flow::Open, Flow::Open);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn others_take_over_from_a_member_without_its_database() {
    let row = Row::begin(
        6,
        "nothing comes through between a member and PostgreSQL for 12 s: of PostgreSQL's answers alone; for long also both ways, and on \
         the way there",
        "the others serve its companies within 10 s; it ends by itself when it continues; no read returns an older \
         state than an earlier one",
    );
    cut_off(row, &DATABASE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn others_take_over_from_a_member_that_nobody_reaches() {
    let row = Row::begin(
        11,
        "nothing comes through for 12 s between a member and PostgreSQL, nor between the other members and it, both ways; callers stay",
        "the others serve its companies within 10 s; it ends by itself when it continues; no read returns an older \
         state than an earlier one",
    );
    cut_off(row, &EVERYBODY).await;
}

async fn cut_off(row: Row, outages: &[Outage]) {
    let mut rig = Rig::start(3).await;
    let load = rig.load().await;
    let (mut slowest, mut times) = (Duration::ZERO, Vec::new());
    let mut ended = None;
    for round in rounds(1) {
        if let Some(member) = ended {
            rig.serve(member);
            rig.wait_until_balanced().await;
        }
        let Outage { name, to_database, from_database, isolates } = outages[round % outages.len()];
        load.progress(CHANGES_MIN).await;
        let owner = rig.owner().await;
        let mut socket = idle_socket(&rig, owner).await;
        let fault = Instant::now();
        rig.members[owner].to_database.set_flow(to_database, from_database);
        if isolates {
            rig.isolate(owner);
        }
        let took = rig.first_changes(fault).await;
        slowest = slowest.max(took);
        socket.send_raw(Message::Ping(Bytes::new())).await;
        assert_eq!(
            socket.next_or_end().await,
            Err(Some(1012)),
            "the socket is open although another member serves its company"
        );
        tokio::time::sleep(HELD_FOR.saturating_sub(fault.elapsed())).await;
        rig.members[owner].to_database.set_flow(Flow::Open, Flow::Open);
        rig.rejoin();
        let (status, log) = rig.members[owner].wait_for_end();
        assert!(!status.success(), "it stopped cleanly although its life was over: {log}");
        times.push(format!("{name}: {took:.1?}"));
        rig.open_doors();
        load.progress(CHANGES_MIN).await;
        ended = Some(owner);
    }
    load.progress(CHANGES_MIN).await;
    let (verdict, reads) = rig.end(load).await;
    row.end(&verdict, &format!("every company changed within {slowest:.1?} ({}); {reads} reads", times.join(", ")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn nothing_that_was_answered_is_lost_while_connections_flap() {
    let row = Row::begin(
        7,
        "the connections of one member to PostgreSQL cut 12 times, 0.3 s apart; then those of all others to one of them; then \
         these held up for 6 s",
        "nothing that was answered is lost; every company can be changed within 10 s; no member is ended while its \
         database is there",
    );
    let rig = Rig::start(3).await;
    let load = rig.load().await;
    let mut slowest = Duration::ZERO;
    for _ in rounds(1) {
        load.progress(CHANGES_MIN).await;
        let lives = rig.lives().await;
        let owner = rig.owner().await;
        for flap in 0..FLAPS {
            rig.members[owner].to_database.flap(flap).await;
        }
        slowest = slowest.max(rig.first_changes(Instant::now()).await);
        load.progress(CHANGES_MIN).await;
        for flap in 0..FLAPS {
            rig.members[owner].from_peers.flap(flap).await;
        }
        slowest = slowest.max(rig.first_changes(Instant::now()).await);
        load.progress(CHANGES_MIN).await;
        // Callers at the other members wait in vain; those at this one do not, and each caller may come to it.
        let fault = Instant::now();
        rig.members[owner].from_peers.set_flow(Flow::Held, Flow::Held);
        load.progress(1).await;
        tokio::time::sleep((HELD_FOR / 2).saturating_sub(fault.elapsed())).await;
        rig.members[owner].from_peers.cut();
        rig.members[owner].from_peers.set_flow(Flow::Open, Flow::Open);
        slowest = slowest.max(rig.first_changes(Instant::now()).await);
        load.progress(CHANGES_MIN).await;
        assert_eq!(rig.lives().await, lives, "the life of a member was ended");
    }
    load.progress(CHANGES_MIN).await;
    let (verdict, reads) = rig.end(load).await;
    row.end(&verdict, &format!("every company changed within {slowest:.1?}; no member was ended; {reads} reads"));
}
