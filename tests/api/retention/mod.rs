//! Conversations that were closed longer ago than their company keeps them are removed with all that belongs to them.

mod figures;
mod races;
mod removed;

use std::time::Duration;

use hotline_actors::EngineOptions;
use hotline_persistence::tables::retentions;
use hotline_persistence::{ChannelId, CompanyId, PgPool};

use crate::support::service::TestOptions;
use crate::support::{TestApp, eventually};

/// Days the company of a test keeps its conversations.
pub const DAYS: i32 = 30;

/// Ids of conversations that are inserted into the tables begin here.
pub const FIRST_ID: i64 = 10_000_000;

/// Options of a service that often looks for conversations to remove.
pub fn frequent_sweeps() -> TestOptions {
    let engine = EngineOptions { sweep_every: Duration::from_millis(10), ..TestOptions::default().engine };
    TestOptions { engine, ..TestOptions::default() }
}

/// Inserts a conversation that was closed this many days ago: two outbound messages, a note, and two events.
pub async fn insert_closed(
    db: &PgPool,
    (company, channel): (CompanyId, ChannelId),
    contact: i64,
    ticket: i64,
    days: i64,
) {
    for statement in [
        "insert into tickets (company_id, id, channel_id, contact_id, status, creation_source, unread_count, reopen_count,
             opened_at, closed_at, created_at, updated_at, last_message_id)
         select $1, $4, $2, $3, 'closed', 'api', 0, 0, at, at, at, at, $4 * 3
         from (select now() - $5 * interval '1 day' as at) x",
        "insert into messages (company_id, id, ticket_id, contact_id, channel_id, direction, type, body, status, source,
             created_at)
         select $1, $4 * 3 + k, $4, $3, $2, case k when 2 then 'internal' else 'outbound' end,
             case k when 2 then 'note' else 'text' end, 'Some text', 'sent', 'api', now() - $5 * interval '1 day'
         from generate_series(0, 2) k",
        "insert into ticket_events (company_id, id, ticket_id, type, source, created_at)
         select $1, $4 * 2 + k, $4, case k when 0 then 'opened' else 'closed' end, 'api', now() - $5 * interval '1 day'
         from generate_series(0, 1) k where $2 + $3 > 0",
    ] {
        let query = sqlx::query(statement).bind(company).bind(channel).bind(contact).bind(ticket).bind(days);
        query.execute(db).await.expect(statement);
    }
    sqlx::query("select hotline_fill_zones($1)").bind(company).execute(db).await.expect("zones");
}

/// Sets how long a company keeps its conversations, and waits until a removal with that setting has completed.
pub async fn keep_for(app: &TestApp, company: CompanyId, days: i32) {
    retentions::set(&app.db, company, Some(days)).await.expect("the retention is set");
    wait_for_removal(app, company).await;
}

/// Waits until a removal has completed since the company's retention was last set.
pub async fn wait_for_removal(app: &TestApp, company: CompanyId) {
    eventually("the removal has completed", || async {
        let has_completed =
            sqlx::query_scalar("select coalesce(ran_at >= updated_at, false) from retentions where company_id = $1");
        has_completed.bind(company).fetch_one(&app.db).await.expect("an answer")
    })
    .await;
}

/// How many rows a ticket has: its own, and those of its messages and events.
pub async fn rows(app: &TestApp, ticket: i64) -> (i64, i64, i64) {
    sqlx::query_as(
        "select (select count(*) from tickets where id = $1), (select count(*) from messages where ticket_id = $1),
             (select count(*) from ticket_events where ticket_id = $1)",
    )
    .bind(ticket)
    .fetch_one(&app.db)
    .await
    .expect("a count")
}
