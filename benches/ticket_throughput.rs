//! Question: how many commands a second do tickets carry out, and how much of what bare actix mailboxes do is that?
//!
//! `cargo bench --bench ticket_throughput`
//!
//! Callers on threads of their own, as HTTP workers are, keep up to 256 commands in flight through the engine: the
//! cycle of open, send, transfer, close with wrap-up, send that reopens and close with wrap-up, at every moment a mix
//! of all of them; and each kind alone. Beside it, in the same run, as many bare actors on as many threads answer a
//! trivial message for the same callers. The persister writes to PostgreSQL meanwhile, as it always does; what it has
//! not written when a round ends is waited for between rounds, so that no round is refused for want of room. Every
//! ticket is hot: nothing timed waits for PostgreSQL.
//!
//! The journal lies in the temporary directory, so `TMPDIR` chooses the disk.
//!
//! Aim, for the cycle over 10,000 tickets: `memory` at least 0.5 of the bare mailboxes, `journal` at least 0.3.

// A bench that cannot be set up has nothing to go on with.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::dev::SystemRunner;
use actix::{Actor, Addr, Arbiter, Context, Handler, Message, System};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput};
use hotline_actors::engine::Recipient;
use hotline_actors::tickets::{Author, Close, Open, Send, Transfer};
use hotline_actors::{Directory, Engine, EngineOptions};
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::{Durability, Store, TicketId, pool};
use support::{Company, Postgres};
use tokio::sync::oneshot;

/// Commands in flight at most: what a few busy HTTP workers have.
const IN_FLIGHT: usize = 256;

/// Turns in which each side runs one round, for the ratios.
const TURNS: u32 = 5;

/// Tickets of the largest case.
const MANY: usize = 10_000;

/// What a ticket is asked for, over and over.
#[derive(Clone, Copy)]
enum Kind {
    Open,
    /// Reopens what is closed.
    Send,
    Transfer,
    Close,
}

/// One case: which commands, in how many tickets, how often.
struct Case {
    name: &'static str,
    /// What brings a new ticket to where the cycle begins.
    prepare: &'static [Kind],
    /// After these the ticket, or the next one of its contact, is where it was.
    cycle: &'static [Kind],
    tickets: usize,
    /// Callers at once. More than there are tickets only where any order of the commands will do.
    in_flight: usize,
    /// Cycles of each caller in each of its tickets in one round. A round stays below the 300,000 changes that are
    /// kept for the persister.
    cycles: usize,
}

const CYCLE: &[Kind] = &[Kind::Open, Kind::Send, Kind::Transfer, Kind::Close, Kind::Send, Kind::Close];

const CASES: [Case; 9] = [
    Case { name: "cycle", prepare: &[], cycle: CYCLE, tickets: 1, in_flight: 1, cycles: 200 },
    Case { name: "cycle", prepare: &[], cycle: CYCLE, tickets: 100, in_flight: 100, cycles: 50 },
    Case { name: "cycle", prepare: &[], cycle: CYCLE, tickets: MANY, in_flight: IN_FLIGHT, cycles: 1 },
    Case { name: "send", prepare: &[Kind::Open], cycle: &[Kind::Send], tickets: 1, in_flight: IN_FLIGHT, cycles: 100 },
    Case {
        name: "send",
        prepare: &[Kind::Open],
        cycle: &[Kind::Send],
        tickets: 100,
        in_flight: IN_FLIGHT,
        cycles: 100,
    },
    Case { name: "send", prepare: &[Kind::Open], cycle: &[Kind::Send], tickets: MANY, in_flight: IN_FLIGHT, cycles: 4 },
    Case {
        name: "transfer",
        prepare: &[Kind::Open],
        cycle: &[Kind::Transfer],
        tickets: MANY,
        in_flight: IN_FLIGHT,
        cycles: 4,
    },
    Case {
        name: "open_and_close",
        prepare: &[],
        cycle: &[Kind::Open, Kind::Close],
        tickets: MANY,
        in_flight: IN_FLIGHT,
        cycles: 2,
    },
    Case {
        name: "reopening_send_and_close",
        prepare: &[Kind::Open, Kind::Close],
        cycle: &[Kind::Send, Kind::Close],
        tickets: MANY,
        in_flight: IN_FLIGHT,
        cycles: 2,
    },
];

impl Case {
    /// Which tickets each caller asks: every ticket has one caller, unless there are more callers than tickets.
    fn lanes(&self) -> Vec<Vec<usize>> {
        let lane = |caller| match self.in_flight <= self.tickets {
            true => (caller..self.tickets).step_by(self.in_flight).collect(),
            false => vec![caller % self.tickets],
        };
        (0..self.in_flight).map(lane).collect()
    }

    /// Commands in one round.
    fn commands(&self) -> u64 {
        (self.in_flight.max(self.tickets) * self.cycles * self.cycle.len()) as u64
    }
}

fn main() {
    if !support::is_bench() {
        return;
    }
    let system = System::new();
    let postgres = system.block_on(Postgres::start());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let callers = Callers::start(threads);
    let arbiters: Vec<Arbiter> = (0..threads).map(|_| Arbiter::new()).collect();
    let live = [Durability::Memory, Durability::Journal]
        .map(|durability| Arc::new(system.block_on(Live::start(&postgres, durability))));

    let mut criterion = Criterion::default()
        .sample_size(10)
        // A round is long enough to warm everything up.
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let mut compared = Vec::new();
    let mut taken = 0;
    for case in &CASES {
        let contacts = taken..taken + case.tickets;
        taken = contacts.end;
        let mut sides = vec![Side::bare(case, &arbiters)];
        for live in &live {
            sides.push(system.block_on(Side::live(case, live, contacts.clone(), &callers)));
        }
        let mut group = criterion.benchmark_group(format!("ticket_throughput/{}", case.name));
        group.sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(case.commands()));
        sides.iter_mut().for_each(|side| side.bench(&mut group, case, &system, &callers));
        group.finish();
        compared.push((case, compare(case, &mut sides, &system, &callers)));
    }
    criterion.final_summary();

    println!("commands a second; each ratio is to the bare mailboxes of the same turns");
    for (case, [bare, memory, journal]) in compared {
        println!(
            "{:<24} {:>6} tickets, {:>3} in flight: bare {bare:>8.0}, memory {memory:>8.0} ({:.2}), journal {journal:>8.0} ({:.2})",
            case.name,
            case.tickets,
            case.in_flight,
            memory / bare,
            journal / bare,
        );
    }
    for live in live {
        system.block_on(live.stop());
    }
}

/// Commands a second of each side, in turns, so that a machine that is slower for a while is slower for all.
fn compare(case: &Case, sides: &mut [Side], system: &SystemRunner, callers: &Callers) -> [f64; 3] {
    let mut times = [Duration::ZERO; 3];
    for _ in 0..TURNS {
        for (side, time) in sides.iter_mut().zip(&mut times) {
            *time += system.block_on(side.round(case, callers));
        }
    }
    times.map(|time| (u64::from(TURNS) * case.commands()) as f64 / time.as_secs_f64())
}

/// The threads callers live on, as many as the service has HTTP workers.
struct Callers {
    arbiters: Vec<Arbiter>,
}

impl Callers {
    fn start(count: usize) -> Self {
        Self { arbiters: (0..count).map(|_| Arbiter::new()).collect() }
    }

    /// Lets every caller walk its lane at once, and answers the lanes when the last one is through.
    async fn walk<L, F>(&self, lanes: Vec<L>, walk: impl FnOnce(L) -> F + Clone + std::marker::Send + 'static) -> Vec<L>
    where
        L: std::marker::Send + 'static,
        F: Future<Output = L> + 'static,
    {
        let mut walking = Vec::with_capacity(lanes.len());
        for (lane, arbiter) in lanes.into_iter().zip(self.arbiters.iter().cycle()) {
            let (done, walked) = oneshot::channel();
            let walk = walk.clone();
            arbiter.spawn_fn(move || {
                actix::spawn(async move {
                    let lane = walk(lane).await;
                    assert!(done.send(lane).is_ok(), "the lane is waited for");
                });
            });
            walking.push(walked);
        }
        let mut lanes = Vec::with_capacity(walking.len());
        for walked in walking {
            lanes.push(walked.await.expect("a caller finished"));
        }
        lanes
    }
}

/// One of the things compared, with its callers' lanes.
enum Side {
    Bare { lanes: Vec<Vec<Addr<Bare>>> },
    Live { live: Arc<Live>, lanes: Vec<Vec<Slot>> },
}

impl Side {
    fn bare(case: &Case, arbiters: &[Arbiter]) -> Self {
        let start = |arbiter: &Arbiter| Bare::start_in_arbiter(&arbiter.handle(), |_| Bare { answered: 0 });
        let actors: Vec<_> = arbiters.iter().cycle().take(case.tickets).map(start).collect();
        let lane = |lane: Vec<usize>| lane.into_iter().map(|ticket| actors[ticket].clone()).collect();
        Self::Bare { lanes: case.lanes().into_iter().map(lane).collect() }
    }

    /// Tickets of these contacts, brought to where the case begins: callers begin at different commands of the cycle.
    async fn live(case: &Case, live: &Arc<Live>, contacts: std::ops::Range<usize>, callers: &Callers) -> Self {
        let slot = |contact: &Arc<ContactRef>| Slot { contact: contact.clone(), ticket: None, next: 0 };
        let slots: Vec<Slot> = live.company.contacts[contacts].iter().map(slot).collect();
        let unprepared = slots.chunks(case.tickets.div_ceil(IN_FLIGHT)).map(<[Slot]>::to_vec).collect();
        let (prepare, for_callers) = (case.prepare, live.clone());
        let prepared = callers.walk(unprepared, move |mut lane: Vec<Slot>| async move {
            for slot in &mut lane {
                for kind in prepare {
                    for_callers.ask(slot, *kind).await;
                }
            }
            lane
        });
        let slots: Vec<Slot> = prepared.await.into_iter().flatten().collect();

        let lane = |lane: Vec<usize>| lane.into_iter().map(|ticket| slots[ticket].clone()).collect();
        let lanes: Vec<Vec<Slot>> = case.lanes().into_iter().map(lane).collect();
        let numbered = lanes.into_iter().enumerate().collect();
        let (cycle, for_callers) = (case.cycle, live.clone());
        let lanes = callers.walk(numbered, move |(caller, mut lane): (usize, Vec<Slot>)| async move {
            for slot in &mut lane {
                for kind in &cycle[..caller % cycle.len()] {
                    for_callers.ask(slot, *kind).await;
                    slot.next += 1;
                }
            }
            (caller, lane)
        });
        let lanes = lanes.await.into_iter().map(|(_, lane)| lane).collect();
        support::drain(&live.store.log).await;
        Self::Live { live: live.clone(), lanes }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Bare { .. } => "bare_mailbox",
            Self::Live { live, .. } => live.name,
        }
    }

    fn bench(
        &mut self,
        group: &mut BenchmarkGroup<'_, WallTime>,
        case: &Case,
        system: &SystemRunner,
        callers: &Callers,
    ) {
        group.bench_function(BenchmarkId::new(self.name(), case.tickets), |bencher| {
            bencher.iter_custom(|rounds| (0..rounds).map(|_| system.block_on(self.round(case, callers))).sum());
        });
    }

    /// The time of one round.
    async fn round(&mut self, case: &Case, callers: &Callers) -> Duration {
        match self {
            Self::Bare { lanes } => {
                let asked = case.cycles * case.cycle.len();
                let started = Instant::now();
                *lanes = callers
                    .walk(std::mem::take(lanes), move |lane: Vec<Addr<Bare>>| async move {
                        for _ in 0..asked {
                            for actor in &lane {
                                actor.send(Ask).await.expect("the actor answers");
                            }
                        }
                        lane
                    })
                    .await;
                started.elapsed()
            }
            Self::Live { live, lanes } => {
                let (cycle, asked) = (case.cycle, case.cycles * case.cycle.len());
                let for_callers = live.clone();
                let started = Instant::now();
                *lanes = callers
                    .walk(std::mem::take(lanes), move |mut lane: Vec<Slot>| async move {
                        for _ in 0..asked {
                            for slot in &mut lane {
                                for_callers.ask(slot, cycle[slot.next % cycle.len()]).await;
                                slot.next += 1;
                            }
                        }
                        lane
                    })
                    .await;
                let time = started.elapsed();
                support::drain(&live.store.log).await;
                time
            }
        }
    }
}

/// An actor that does nothing but answer.
struct Bare {
    answered: u64,
}

impl Actor for Bare {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "u64")]
struct Ask;

impl Handler<Ask> for Bare {
    type Result = u64;

    fn handle(&mut self, _: Ask, _: &mut Self::Context) -> u64 {
        self.answered += 1;
        self.answered
    }
}

/// One contact's conversation, as its caller knows it.
#[derive(Clone)]
struct Slot {
    contact: Arc<ContactRef>,
    ticket: Option<TicketId>,
    next: usize,
}

impl Slot {
    fn ticket(&self) -> TicketId {
        self.ticket.expect("the ticket was opened before")
    }
}

/// The engine over a store of its own.
struct Live {
    name: &'static str,
    store: Arc<Store>,
    engine: Engine,
    company: Company,
}

impl Live {
    async fn start(postgres: &Postgres, durability: Durability) -> Self {
        let name = if durability == Durability::Journal { "journal" } else { "memory" };
        let database = postgres.database(name).await;
        let db = pool::connect(database.clone());
        pool::migrate(&db).await.expect("migrate");
        let contacts = CASES.iter().map(|case| case.tickets).sum();
        let company = Company::create(&db, contacts).await;
        db.close().await;
        let store = support::open(postgres.store_options(database, durability)).await;
        let directory = Directory::load(&store.housekeeping, &store.keys, hotline_actors::directory::RELOAD_EVERY)
            .await
            .expect("load the directory");
        // Numbers that nobody has ever written from are written to.
        let options = EngineOptions::default();
        let engine = Engine::new(store.clone(), directory, options);
        Self { name, store, engine, company }
    }

    async fn stop(&self) {
        support::drain(&self.store.log).await;
        self.engine.stop();
        self.store.close().await.expect("close the store");
    }

    /// Has one command carried out.
    async fn ask(&self, slot: &mut Slot, kind: Kind) {
        let Self { engine, company, .. } = self;
        let author = Author::API;
        match kind {
            Kind::Open => {
                let open = Open {
                    company: company.id,
                    channel: company.channel,
                    contact: slot.contact.clone(),
                    reachable: false,
                    queue: None,
                    user: None,
                    author,
                };
                slot.ticket = Some(engine.tickets.open(open, None).await.expect("the ticket is opened").row.id);
            }
            Kind::Send => {
                let body = "Good morning! Your order has left our warehouse and arrives tomorrow.";
                let send = Send { reopen: true, ..Send::text(body, author) };
                let recipient = Recipient::Contact(company.channel, slot.contact.id);
                let target = engine.sending.resolve(company.id, recipient).await.expect("the channel");
                let sent = engine.sending.send(&target, send).await;
                assert_eq!(sent.expect("the message is taken").ticket_id, slot.ticket());
            }
            Kind::Transfer => {
                let queue = Some(company.queues[slot.next % 2]);
                let transfer = Transfer { queue, user: Some(Some(company.user)), author };
                engine.tickets.ask(company.id, slot.ticket(), transfer).await.expect("the ticket is transferred");
            }
            Kind::Close => {
                let wrapup_type = Some(company.wrapup_type);
                let close = Close { wrapup_type, wrapup_note: Some("Told them when.".to_owned()), author };
                engine.tickets.ask(company.id, slot.ticket(), close).await.expect("the ticket is closed");
            }
        }
    }
}
