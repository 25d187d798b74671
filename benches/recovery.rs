//! Question: how long after a start is the first answer given, after a crash and with many open tickets?
//!
//! `cargo bench --bench recovery`
//!
//! One run of each, timed from the opening of the store to the answer to the first send, with PostgreSQL already
//! running:
//!
//! - the journal holds 1,000,000 records (`HOTLINE_BENCH_RECORDS`), messages of 10,000 tickets, that never reached
//!   the tables. Aim: 10 s.
//! - the tables hold 100,000 open tickets (`HOTLINE_BENCH_TICKETS`) of one channel, and the journal is empty. The
//!   send goes into one of them. Aim: 2 s.
//!
//! The journal is in the temporary directory, so `TMPDIR` chooses the disk. It was written just before, so it is read
//! from the page cache.

// A bench whose setup fails cannot continue.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotline_actors::clock::now;
use hotline_actors::services::Recipient;
use hotline_actors::tickets::{Author, Context, Open, Send, Ticket, apply};
use hotline_actors::{Directory, Engine, EngineOptions, Organization};
use hotline_persistence::change::encode;
use hotline_persistence::id_blocks::IdBlocks;
use hotline_persistence::journal::{self, Journal, Refused};
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::organization;
use hotline_persistence::{Change, CompanyId, ContactId, Durability, PgPool, StoreOptions, TicketId, pool};
use support::{Company, Postgres, timed};

/// Tickets that have the unflushed messages.
const UNFLUSHED_TICKETS: usize = 10_000;

const UNFLUSHED_AIM: Duration = Duration::from_secs(10);
const OPEN_TICKETS_AIM: Duration = Duration::from_secs(2);

fn main() {
    if !support::is_bench() {
        return;
    }
    let system = actix::System::new();
    let postgres = system.block_on(Postgres::start());
    system.block_on(after_a_crash(&postgres, support::size("HOTLINE_BENCH_RECORDS", 1_000_000)));
    system.block_on(with_open_tickets(&postgres, support::size("HOTLINE_BENCH_TICKETS", 100_000)));
}

async fn after_a_crash(postgres: &Postgres, records: usize) {
    let database = postgres.database("unflushed").await;
    let options = postgres.store_options(database, Durability::Journal);
    let db = migrated(&options).await;
    let company = Company::create(&db, UNFLUSHED_TICKETS.min(records)).await;
    let organization =
        organization::load(&db, &Keyring::default(), company.id).await.expect("load the company").expect("the company");
    let bytes = write_journal(&options, &db, &company, &organization, records).await;
    db.close().await;

    let contact = company.contacts[0].id;
    let started = start(options, &company, contact).await;
    assert_eq!(started.replayed, records as u64, "every record was replayed");
    let rate = records as f64 / started.store.as_secs_f64();
    println!(
        "{records} unflushed records ({} MiB): first answer after {:.2} s, aim {} s; the store opened in {:.2} s, {rate:.0} records/s",
        bytes >> 20,
        started.total.as_secs_f64(),
        UNFLUSHED_AIM.as_secs(),
        started.store.as_secs_f64(),
    );
}

async fn with_open_tickets(postgres: &Postgres, tickets: usize) {
    let database = postgres.database("open_tickets").await;
    let options = postgres.store_options(database, Durability::Journal);
    let db = migrated(&options).await;
    let company = Company::create(&db, tickets).await;
    insert_open_tickets(&db, &company).await;
    db.close().await;

    let contact = company.contacts[tickets / 2].id;
    let started = start(options, &company, contact).await;
    assert_eq!(started.replayed, 0, "the journal was empty");
    println!(
        "{tickets} open tickets: first answer after {:.2} s, aim {} s; the store opened in {:.2} s",
        started.total.as_secs_f64(),
        OPEN_TICKETS_AIM.as_secs(),
        started.store.as_secs_f64(),
    );
}

async fn migrated(options: &StoreOptions) -> PgPool {
    let db = pool::connect(options.database.clone());
    pool::migrate(&db).await.expect("migrate");
    db
}

/// The times of a start: until the store is open, and until the first answer.
struct Started {
    store: Duration,
    total: Duration,
    replayed: u64,
}

async fn start(options: StoreOptions, company: &Company, contact: ContactId) -> Started {
    let began = Instant::now();
    let (store, opened_in) = timed(support::open(options)).await;
    let directory = Directory::load(&store.housekeeping, &store.keys, hotline_actors::directory::RELOAD_EVERY)
        .await
        .expect("load the directory");
    // The default permits sends to numbers that have never written.
    let options = EngineOptions::default();
    let engine = Engine::new(store.clone(), directory, options);
    let recipient = Recipient::Contact(company.channel, contact);
    let target = engine.sending.resolve(company.id, recipient).await.expect("the channel");
    let sent = engine.sending.send(&target, send()).await.expect("the first answer");
    let total = began.elapsed();

    assert_eq!(
        sent.ticket_id,
        first_ticket_of(&store.housekeeping, company.id, contact).await,
        "it went into the open ticket"
    );
    let replayed = store.recovered.replayed;
    engine.stop();
    store.close().await.expect("close the store");
    Started { store: opened_in, total, replayed }
}

async fn first_ticket_of(db: &PgPool, company: CompanyId, contact: ContactId) -> TicketId {
    sqlx::query_scalar("select min(id) from tickets where company_id = $1 and contact_id = $2")
        .bind(company)
        .bind(contact)
        .fetch_one(db)
        .await
        .expect("find the ticket")
}

fn send() -> Send {
    Send::text("Good morning! Your order has left our warehouse and arrives tomorrow.", Author::API)
}

/// Writes the records of a service: the opening of each contact's ticket, then messages to the tickets in turn. Returns
/// the journal's size in bytes.
async fn write_journal(
    options: &StoreOptions,
    db: &PgPool,
    company: &Company,
    organization: &Organization,
    records: usize,
) -> u64 {
    let recovered = journal::open(&options.journal_dir, options.journal.clone()).expect("open the journal");
    // A service registers its journal in the database at its first start.
    sqlx::query("insert into journal_watermark (journal, seq, epoch) values ($1, 0, 0)")
        .bind(recovered.id())
        .execute(db)
        .await
        .expect("register the journal");
    let journal = recovered.start(0, |_| {}, |error| panic!("poisoned: {error}")).expect("start the journal");
    let ids = IdBlocks::unbacked();
    let mut tickets = VecDeque::new();
    for contact in &company.contacts {
        let (ticket, changes) = open_ticket(company, contact, organization, &ids);
        append(&journal, &changes);
        tickets.push_back(ticket);
    }
    for _ in company.contacts.len()..records {
        let ticket: Ticket = tickets.pop_front().expect("a ticket");
        let cx = Context::new(now(), organization, &ids);
        let sent = apply(send(), &ticket, cx).expect("the message is taken");
        append(&journal, &sent.changes);
        tickets.push_back(sent.ticket);
    }
    let bytes = journal.stats().live_bytes;
    journal.close().expect("close the journal");
    bytes
}

fn open_ticket(
    company: &Company,
    contact: &Arc<ContactRef>,
    organization: &Organization,
    ids: &IdBlocks,
) -> (Ticket, Vec<Change>) {
    let open = Open {
        company: company.id,
        channel: company.channel,
        contact: contact.clone(),
        reachable: false,
        queue: None,
        user: None,
        author: Author::API,
    };
    let id = ids.ticket().expect("an id");
    let ticket = open.decide(id, &mut Context::new(now(), organization, ids)).expect("the ticket is opened");
    let changes = vec![Change::Ticket(ticket.row.clone())];
    (ticket, changes)
}

fn append(journal: &Journal<()>, changes: &[Change]) {
    let place = loop {
        match journal.reserve() {
            Ok(place) => break place,
            // The disk is slower than this loop.
            Err(Refused::QueueFull) => std::thread::yield_now(),
            Err(refused) => panic!("the journal refuses the record: {refused}"),
        }
    };
    let bytes = encode(changes).expect("the changes are encoded");
    place.append(&bytes, ()).expect("the record is small");
}

/// Inserts an open ticket of each contact, and analyzes the tables, as a server that has run for a while has done.
async fn insert_open_tickets(db: &PgPool, company: &Company) {
    sqlx::query(
        "insert into tickets (company_id, id, channel_id, contact_id, queue_id, status, creation_source, unread_count,
             reopen_count, opened_at, created_at, updated_at)
         select company_id, row_number() over (order by id), $2, id, $3, 'open', 'api', 0, 0, now(), now(), now()
         from contacts where company_id = $1",
    )
    .bind(company.id)
    .bind(company.channel)
    .bind(company.queues[0])
    .execute(db)
    .await
    .expect("insert the tickets");
    sqlx::query("analyze").execute(db).await.expect("analyze");
}
