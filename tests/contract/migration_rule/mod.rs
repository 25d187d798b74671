//! A migration does not interrupt a running release (decision 54): on a large table it holds an ACCESS EXCLUSIVE lock
//! only for a moment, and rewrites nothing. Its text is searched for what would take PostgreSQL long, and it is applied
//! while others read.

mod applied;
mod reading;

use hotline_persistence::schema;
use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType};

/// Tables that grow with the conversations, and their partitions.
const LARGE: [&str; 24] = [
    "audit_log",
    "campaign_recipients",
    "card_contacts",
    "cards",
    "contact_addresses",
    "contact_custom_field_values",
    "contact_last_channels",
    "contact_list_contacts",
    "contact_tags",
    "contacts",
    "events",
    "idempotency_keys",
    "media",
    "messages",
    "report_messages",
    "report_tickets",
    "report_wrapups",
    "schedules",
    "ticket_events",
    "tickets",
    "webchat_sessions",
    "webhook_deliveries",
    "zones",
    "rejected_changes",
];

/// The migrations after the baseline, which is applied to an empty database.
fn later() -> Vec<Migration> {
    schema::all_migrations().into_iter().filter(|migration| migration.version > 1).collect()
}

fn sample(sql: &str) -> Migration {
    let has_no_transaction = sql.starts_with("-- no-transaction");
    let sql = sqlx::AssertSqlSafe(sql.to_owned()).into_sql_str();
    Migration::new(9001, "sample".into(), MigrationType::Simple, sql, has_no_transaction)
}
