//! The simplest way to do the same that compares fairly: each command is one transaction on the same server and in the
//! same tables. PostgreSQL commits it as it does by default: synced.
//!
//! Every choice favours this side: a lookup and a change are one statement if possible, statements are prepared once,
//! no connection is tested before it is used, and a message does not change its ticket (Hotline also records the last
//! message, the first response and the time).

use hotline_persistence::{PgPool, TicketId, pool};
use sqlx::postgres::PgPoolOptions;
use sqlx::{ConnectOptions, PgConnection};

use crate::case::{CONTACTS, Kind};
use crate::live::{NOTE, TEXT};
use crate::slot::Slot;
use crate::support::{Company, Postgres};

/// Maximum connections: enough for waiting commits to share a sync.
const CONNECTIONS_MAX: u32 = 32;

/// How long a command may wait for a connection: there are fewer of them than commands in flight.
const WAIT: std::time::Duration = std::time::Duration::from_secs(60);

/// Handlers without actors.
pub struct Plain {
    db: PgPool,
    pub company: Company,
}

impl Plain {
    pub async fn start(postgres: &Postgres) -> Self {
        let database = postgres.database("plain").await;
        let pool =
            PgPoolOptions::new().max_connections(CONNECTIONS_MAX).test_before_acquire(false).acquire_timeout(WAIT);
        let db = pool.connect_lazy_with(database.disable_statement_logging());
        pool::migrate(&db).await.expect("migrate");
        let company = Company::create(&db, *CONTACTS).await;
        let sequence = "create sequence plain_ids cache 100";
        sqlx::query(sequence).execute(&db).await.expect("create the sequence");
        sqlx::query("analyze").execute(&db).await.expect("analyze the tables");
        Self { db, company }
    }

    /// Executes one command.
    pub async fn ask(&self, slot: &mut Slot, kind: Kind) {
        let result = match kind {
            Kind::Open => self.open(slot).await,
            Kind::Send => self.send(slot).await,
            Kind::Transfer => self.transfer(slot).await,
            Kind::Close => self.close(slot).await,
        };
        result.expect("the command succeeds");
    }

    async fn open(&self, slot: &mut Slot) -> Result<(), sqlx::Error> {
        let mut transaction = self.db.begin().await?;
        let statement =
            "insert into tickets (company_id, id, channel_id, contact_id, status, creation_source, unread_count,
                 reopen_count, opened_at, created_at, updated_at)
             select company_id, nextval('plain_ids'), $3, id, 'open', 'api', 0, 0, now(), now(), now()
             from contacts where company_id = $1 and id = $2
             returning id";
        let ticket: TicketId = sqlx::query_scalar(statement)
            .bind(self.company.id)
            .bind(slot.contact.id)
            .bind(self.company.channel)
            .fetch_one(&mut *transaction)
            .await?;
        self.add_event(&mut transaction, ticket, "opened").await?;
        transaction.commit().await?;
        slot.ticket = Some(ticket);
        Ok(())
    }

    async fn send(&self, slot: &Slot) -> Result<(), sqlx::Error> {
        let mut transaction = self.db.begin().await?;
        let statement = "select status = 'open' from tickets where company_id = $1 and id = $2 for update";
        let query = sqlx::query_scalar(statement).bind(self.company.id).bind(slot.ticket());
        let is_open: bool = query.fetch_one(&mut *transaction).await?;
        if !is_open {
            let statement =
                "update tickets set status = 'open', closed_at = null, wrapup_type_id = null, wrapup_note = null,
                     reopen_count = reopen_count + 1, opened_at = now(), updated_at = now()
                 where company_id = $1 and id = $2";
            sqlx::query(statement).bind(self.company.id).bind(slot.ticket()).execute(&mut *transaction).await?;
            self.add_event(&mut transaction, slot.ticket(), "reopened").await?;
        }
        let statement =
            "insert into messages (company_id, id, ticket_id, contact_id, channel_id, direction, type, body, status,
                 source, created_at)
             values ($1, nextval('plain_ids'), $2, $3, $4, 'outbound', 'text', $5, 'queued', 'api', now())";
        sqlx::query(statement)
            .bind(self.company.id)
            .bind(slot.ticket())
            .bind(slot.contact.id)
            .bind(self.company.channel)
            .bind(TEXT)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await
    }

    async fn transfer(&self, slot: &Slot) -> Result<(), sqlx::Error> {
        let mut transaction = self.db.begin().await?;
        let statement = "update tickets set queue_id = $3, user_id = $4, updated_at = now()
             where company_id = $1 and id = $2 and status = 'open'";
        let result = sqlx::query(statement)
            .bind(self.company.id)
            .bind(slot.ticket())
            .bind(self.company.queues[slot.next % 2])
            .bind(self.company.user)
            .execute(&mut *transaction)
            .await?;
        assert_eq!(result.rows_affected(), 1, "the ticket is open");
        self.add_event(&mut transaction, slot.ticket(), "transferred").await?;
        transaction.commit().await
    }

    async fn close(&self, slot: &Slot) -> Result<(), sqlx::Error> {
        let mut transaction = self.db.begin().await?;
        let statement =
            "update tickets set status = 'closed', closed_at = now(), wrapup_type_id = $3, wrapup_note = $4,
                 updated_at = now()
             where company_id = $1 and id = $2 and status = 'open'";
        let result = sqlx::query(statement)
            .bind(self.company.id)
            .bind(slot.ticket())
            .bind(self.company.wrapup_type)
            .bind(NOTE)
            .execute(&mut *transaction)
            .await?;
        assert_eq!(result.rows_affected(), 1, "the ticket is open");
        self.add_event(&mut transaction, slot.ticket(), "closed").await?;
        transaction.commit().await
    }

    /// Adds an event to the history of a ticket.
    async fn add_event(&self, db: &mut PgConnection, ticket: TicketId, kind: &str) -> Result<(), sqlx::Error> {
        let statement = "insert into ticket_events (company_id, id, ticket_id, type, source, created_at)
             values ($1, nextval('plain_ids'), $2, $3, 'api', now())";
        sqlx::query(statement).bind(self.company.id).bind(ticket).bind(kind).execute(db).await?;
        Ok(())
    }
}
