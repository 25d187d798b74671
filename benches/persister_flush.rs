//! Question: how many rows a second does the persister write, and what fraction is that of the rows that a bare insert
//! writes?
//!
//! `cargo bench --bench persister_flush`
//!
//! Entries of a ticket row, an event and a message go through the log (durability `database`) until all are written;
//! each has its own ticket, so that no rows are merged. In the same run and into the same tables, one connection
//! inserts equal rows with `INSERT … SELECT FROM UNNEST`, in transactions of the same size, from columns that were
//! prepared before the clock started.
//!
//! Aim: at least 0.7 of the bare insert.

// A bench whose setup fails cannot continue.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use criterion::{Criterion, SamplingMode, Throughput};
use hotline_persistence::persister::BATCH_CHANGES_MAX;
use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus, MessageType};
use hotline_persistence::tables::source::Source;
use hotline_persistence::tables::ticket_events::{EventRow, EventType};
use hotline_persistence::tables::tickets::{TicketRow, TicketStatus};
use hotline_persistence::{Change, ChannelId, Durability, Store};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use support::{Company, Postgres};

/// Entries in one round: about ten transactions, and fewer changes than are kept in memory.
const ENTRIES: usize = 30_000;
const ROWS_PER_ENTRY: usize = 3;
const ROWS: u64 = (ENTRIES * ROWS_PER_ENTRY) as u64;

/// Entries the persister takes for one transaction.
const ENTRIES_PER_BATCH: usize = BATCH_CHANGES_MAX.div_ceil(ROWS_PER_ENTRY);

/// Turns in which each side runs one round, for the ratio.
const TURNS: u32 = 8;

fn main() {
    if !support::is_bench() {
        return;
    }
    let system = actix::System::new();
    let postgres = system.block_on(Postgres::start());
    let mut bench = system.block_on(Bench::start(&postgres));

    let mut criterion = Criterion::default()
        .sample_size(10)
        // A round is long enough to warm everything up.
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(20))
        .configure_from_args();
    let mut group = criterion.benchmark_group("persister_flush");
    group.sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(ROWS));
    group.bench_function("bare_insert", |bencher| {
        bencher.iter_custom(|rounds| (0..rounds).map(|_| system.block_on(bench.insert())).sum());
    });
    group.bench_function("persister", |bencher| {
        bencher.iter_custom(|rounds| (0..rounds).map(|_| system.block_on(bench.flush())).sum());
    });
    group.finish();
    criterion.final_summary();

    // In turns, so that a machine that is slow for a while and the growth of the tables affect both.
    let (mut bare, mut persister) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..TURNS {
        bare += system.block_on(bench.insert());
        persister += system.block_on(bench.flush());
    }
    let rate = |time: Duration| (u64::from(TURNS) * ROWS) as f64 / time.as_secs_f64();
    let (bare, persister) = (rate(bare), rate(persister));
    println!("persister {persister:.0} rows/s, bare insert {bare:.0} rows/s, ratio {:.2}", persister / bare);
    system.block_on(bench.stop());
}

struct Bench {
    store: Arc<Store>,
    company: Company,
    /// The bare side's connection.
    bare: PgConnection,
}

impl Bench {
    async fn start(postgres: &Postgres) -> Self {
        let database = postgres.database("persister_flush").await;
        let store = support::open(postgres.store_options(database.clone(), Durability::Database)).await;
        let company = Company::create(&store.housekeeping, ENTRIES).await;
        Self { store, company, bare: PgConnection::connect_with(&database).await.expect("connect") }
    }

    async fn stop(mut self) {
        let written: i64 =
            sqlx::query_scalar("select count(*) from messages").fetch_one(&mut self.bare).await.expect("count");
        assert_eq!(written % ENTRIES as i64, 0, "every round was written completely");
        assert_eq!(hotline_persistence::rejected::count(), 0, "no row was refused");
        self.bare.close().await.expect("disconnect");
        self.store.close().await.expect("close the store");
    }

    /// The time from the append of the first entry until the tables have the last one.
    async fn flush(&self) -> Duration {
        let entries: Vec<Vec<Change>> = self.new_entries().await.into_iter().map(Entry::into_changes).collect();
        let log = &self.store.log;
        let started = Instant::now();
        for entry in entries {
            log.reserve(self.company.id).expect("there is room").append(entry).expect("the entry is taken");
        }
        support::drain(log).await;
        started.elapsed()
    }

    /// How long bare statements take to insert equal rows.
    async fn insert(&mut self) -> Duration {
        let entries = self.new_entries().await;
        let batches: Vec<Columns> = entries.chunks(ENTRIES_PER_BATCH).map(Columns::of).collect();
        let started = Instant::now();
        for batch in &batches {
            let mut transaction = self.bare.begin().await.expect("begin");
            batch.insert(&mut transaction).await.expect("insert");
            transaction.commit().await.expect("commit");
        }
        started.elapsed()
    }

    /// New entries: an open ticket of each contact, on a new channel.
    async fn new_entries(&self) -> Vec<Entry> {
        let Company { id, queues, .. } = self.company;
        let channel = support::new_channel(&self.store.housekeeping, id, Some(queues[0])).await.id;
        (0..ENTRIES).map(|index| self.entry(channel, index)).collect()
    }

    fn entry(&self, channel_id: ChannelId, index: usize) -> Entry {
        let (company, ids) = (&self.company, &self.store.ids);
        let contact_id = company.contacts[index].id;
        let ticket_id = ids.ticket().expect("an id");
        let message_id = ids.message().expect("an id");
        let now = Utc::now();
        let ticket = TicketRow {
            company_id: company.id,
            id: ticket_id,
            channel_id,
            contact_id,
            queue_id: Some(company.queues[0]),
            user_id: None,
            status: TicketStatus::Open,
            creation_source: Source::Api,
            unread_count: 0,
            last_message_id: Some(message_id),
            wrapup_type_id: None,
            wrapup_note: None,
            reopen_count: 0,
            opened_at: now,
            first_response_at: Some(now),
            closed_at: None,
            waiting_since: None,
            answer_id: None,
            handled_by: Default::default(),
            created_at: now,
            updated_at: now,
        };
        let event = EventRow {
            company_id: company.id,
            id: ids.event().expect("an id"),
            ticket_id,
            kind: EventType::Opened,
            from: None,
            to: Some(
                json!({"status": "open", "queue": {"id": company.queues[0], "name": "Support"}, "assignedTo": null}),
            ),
            user_id: None,
            user_name: None,
            integration_id: None,
            source: Source::Api,
            created_at: now,
            was: None,
        };
        let message = MessageRow {
            company_id: company.id,
            id: message_id,
            job_id: Some(message_id),
            ticket_id,
            contact_id,
            channel_id,
            direction: Direction::Outbound,
            kind: MessageType::Text,
            body: Some("Good morning! Your order has left our warehouse and arrives tomorrow.".to_owned()),
            media: None,
            template: None,
            interactive: None,
            content: None,
            revisions: None,
            attempts: None,
            quoted_message_id: None,
            status: MessageStatus::Queued,
            error: None,
            user_id: None,
            user_name: None,
            integration_id: None,
            source: Source::Api,
            session_id: None,
            client_id: None,
            after_send: None,
            provider_message_id: None,
            created_at: now,
            sent_at: None,
            delivered_at: None,
            read_at: None,
            updated_at: None,
        };
        Entry { ticket, event, message }
    }
}

struct Entry {
    ticket: TicketRow,
    event: EventRow,
    message: MessageRow,
}

impl Entry {
    fn into_changes(self) -> Vec<Change> {
        vec![Change::Ticket(self.ticket), Change::Event(self.event), Change::Message(Box::new(self.message))]
    }
}

/// The columns of one transaction, without those that are null in every row.
#[derive(Default)]
struct Columns {
    company: Vec<i64>,
    ticket: Vec<i64>,
    channel: Vec<i64>,
    contact: Vec<i64>,
    queue: Vec<i64>,
    message: Vec<i64>,
    event: Vec<i64>,
    ticket_status: Vec<&'static str>,
    event_type: Vec<&'static str>,
    event_to: Vec<Value>,
    direction: Vec<&'static str>,
    message_type: Vec<&'static str>,
    body: Vec<String>,
    message_status: Vec<&'static str>,
    source: Vec<&'static str>,
    zero: Vec<i32>,
    at: Vec<DateTime<Utc>>,
}

impl Columns {
    fn of(entries: &[Entry]) -> Self {
        let mut columns = Self::default();
        for Entry { ticket, event, message } in entries {
            columns.company.push(ticket.company_id.0);
            columns.ticket.push(ticket.id.0);
            columns.channel.push(ticket.channel_id.0);
            columns.contact.push(ticket.contact_id.0);
            columns.queue.extend(ticket.queue_id.map(|id| id.0));
            columns.message.push(message.id.0);
            columns.event.push(event.id.0);
            columns.ticket_status.push(ticket.status.as_str());
            columns.event_type.push(event.kind.as_str());
            columns.event_to.extend(event.to.clone());
            columns.direction.push(message.direction.as_str());
            columns.message_type.push(message.kind.as_str());
            columns.body.extend(message.body.clone());
            columns.message_status.push(message.status.as_str());
            columns.source.push(message.source.as_str());
            columns.zero.push(0);
            columns.at.push(message.created_at);
        }
        columns
    }

    async fn insert(&self, db: &mut PgConnection) -> Result<(), sqlx::Error> {
        sqlx::query(
            "insert into tickets (company_id, id, channel_id, contact_id, queue_id, status, creation_source,
                 unread_count, last_message_id, reopen_count, opened_at, first_response_at, created_at, updated_at)
             select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[],
                 $7::text[], $8::integer[], $9::bigint[], $10::integer[], $11::timestamptz[], $12::timestamptz[],
                 $13::timestamptz[], $14::timestamptz[])",
        )
        .bind(&self.company)
        .bind(&self.ticket)
        .bind(&self.channel)
        .bind(&self.contact)
        .bind(&self.queue)
        .bind(&self.ticket_status)
        .bind(&self.source)
        .bind(&self.zero)
        .bind(&self.message)
        .bind(&self.zero)
        .bind(&self.at)
        .bind(&self.at)
        .bind(&self.at)
        .bind(&self.at)
        .execute(&mut *db)
        .await?;
        sqlx::query(
            r#"insert into ticket_events (company_id, id, ticket_id, type, "to", source, created_at)
               select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::jsonb[], $6::text[],
                 $7::timestamptz[])"#,
        )
        .bind(&self.company)
        .bind(&self.event)
        .bind(&self.ticket)
        .bind(&self.event_type)
        .bind(&self.event_to)
        .bind(&self.source)
        .bind(&self.at)
        .execute(&mut *db)
        .await?;
        sqlx::query(
            "insert into messages (company_id, id, job_id, ticket_id, contact_id, channel_id, direction, type, body,
                 status, source, created_at)
             select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
                 $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::timestamptz[])",
        )
        .bind(&self.company)
        .bind(&self.message)
        .bind(&self.message)
        .bind(&self.ticket)
        .bind(&self.contact)
        .bind(&self.channel)
        .bind(&self.direction)
        .bind(&self.message_type)
        .bind(&self.body)
        .bind(&self.message_status)
        .bind(&self.source)
        .bind(&self.at)
        .execute(&mut *db)
        .await?;
        Ok(())
    }
}
