//! Compares the answers to callers with the records: as the service shows them, and as PostgreSQL holds them after a
//! clean stop.
//!
//! An acknowledged change exists once, in the order of the answers; a refused one does not exist; one without an answer
//! exists once or not at all; and no other change exists. A ticket's events are a possible history of its state, are as
//! many as were requested, and end in the ticket's state.

mod compare;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use futures_util::StreamExt;
use futures_util::stream;
use hotline_persistence::PgPool;
use serde_json::Value;

use compare::compare;

use crate::record::{Call, Outcome, Record};
use crate::support::Api;

/// How many tickets are read at a time.
const CONCURRENT_READS: usize = 8;

/// The result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    pub acknowledged: usize,
    pub refused: usize,
    pub unknown: usize,
    /// Acknowledged changes that do not exist.
    pub lost: usize,
    pub contradictions: Vec<String>,
}

/// The existing records, by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stored {
    tickets: BTreeMap<i64, Ticket>,
    messages: BTreeMap<i64, Message>,
    events: BTreeMap<i64, Event>,
}

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
struct Ticket {
    contact_id: i64,
    status: String,
    wrapup_note: Option<String>,
    reopen_count: i32,
    last_message_id: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
struct Message {
    ticket_id: i64,
    contact_id: i64,
    body: String,
}

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
struct Event {
    ticket_id: i64,
    #[sqlx(rename = "type")]
    kind: String,
    from: Option<Value>,
    to: Option<Value>,
}

/// Compares with what the service shows. [`check_held`] continues once the service has stopped.
pub async fn check_shown(record: &Record, api: &Api) -> (Verdict, Stored) {
    let mut verdict = Verdict { contradictions: record.contradictions.clone(), ..Verdict::default() };
    for call in &record.calls {
        match call.outcome {
            Outcome::Acknowledged { .. } => verdict.acknowledged += 1,
            Outcome::Refused(_) => verdict.refused += 1,
            Outcome::Unknown => verdict.unknown += 1,
        }
    }
    let shown = Stored::shown(api, &mut verdict).await;
    compare(record, &shown, "shown", &mut verdict);
    (verdict, shown)
}

/// Compares with what PostgreSQL holds of the company.
pub async fn check_held(
    record: &Record,
    (mut verdict, shown): (Verdict, Stored),
    db: &PgPool,
    company: i64,
) -> Verdict {
    let (held, rejected) = (Stored::held(db, company).await, count_rejected(db, company).await);
    if held != shown {
        verdict.contradict("the tables hold something other than what the service shows".to_owned());
    }
    compare(record, &held, "held", &mut verdict);
    if rejected > 0 {
        verdict.contradict(format!("PostgreSQL refused {rejected} rows"));
    }
    verdict
}

impl Verdict {
    fn contradict(&mut self, what: String) {
        self.contradictions.push(what);
    }

    fn lose(&mut self, call: &Call, shown_or_held: &str) {
        self.lost += 1;
        self.contradict(format!("acknowledged and not {shown_or_held}: {call:?}"));
    }
}

impl Stored {
    /// The records as the service shows them. Each ticket is read twice: in the list, from the table, and by itself,
    /// from its actor.
    async fn shown(api: &Api, verdict: &mut Verdict) -> Self {
        let mut stored = Self::default();
        let listed = api.all("/tickets?perPage=1000").await;
        let reads = stream::iter(listed).map(|row| read_ticket(api, row)).buffered(CONCURRENT_READS);
        for (row, single, events) in reads.collect::<Vec<_>>().await {
            let id = int(&row["id"]);
            if single != row {
                verdict.contradict(format!("ticket {id} is {row} in the list and {single} by itself"));
            }
            let ticket = Ticket {
                contact_id: int(&row["contact"]["id"]),
                status: text(&row["status"]),
                wrapup_note: row["wrapupNote"].as_str().map(str::to_owned),
                reopen_count: i32::try_from(int(&row["reopenCount"])).expect("a count"),
                last_message_id: row["lastMessage"]["id"].as_i64(),
            };
            stored.tickets.insert(id, ticket);
            for event in events {
                let [from, to] = ["from", "to"].map(|side| Some(event[side].clone()).filter(|value| !value.is_null()));
                let (kind, key) = (text(&event["type"]), int(&event["id"]));
                stored.events.insert(key, Event { ticket_id: id, kind, from, to });
            }
        }
        for row in api.all("/messages?perPage=1000").await {
            let (ticket_id, contact_id) = (int(&row["ticketId"]), int(&row["contactId"]));
            stored.messages.insert(int(&row["id"]), Message { ticket_id, contact_id, body: text(&row["body"]) });
        }
        stored
    }

    /// The records as PostgreSQL holds them.
    async fn held(db: &PgPool, company: i64) -> Self {
        Self {
            tickets: held_rows(
                db,
                company,
                "select id, contact_id, status, wrapup_note, reopen_count, last_message_id from tickets
                    where company_id = $1",
            )
            .await,
            messages: held_rows(
                db,
                company,
                "select id, ticket_id, contact_id, body from messages where company_id = $1",
            )
            .await,
            events: held_rows(
                db,
                company,
                r#"select id, ticket_id, type, "from", "to" from ticket_events where company_id = $1"#,
            )
            .await,
        }
    }
}

/// Reads a ticket of the list by itself, and its events. Returns the row of the list, the ticket, and the events.
async fn read_ticket(api: &Api, row: Value) -> (Value, Value, Vec<Value>) {
    let id = int(&row["id"]);
    let single = api.get(&format!("/tickets/{id}")).await.data(200).clone();
    let events = api.all(&format!("/tickets/{id}/events?perPage=1000")).await;
    (row, single, events)
}

#[derive(sqlx::FromRow)]
struct Identified<T> {
    id: i64,
    #[sqlx(flatten)]
    row: T,
}

async fn held_rows<T>(db: &PgPool, company: i64, statement: &'static str) -> BTreeMap<i64, T>
where
    T: for<'r> sqlx::FromRow<'r, sqlx::postgres::PgRow> + Send + Unpin,
{
    let rows: Vec<Identified<T>> = sqlx::query_as(statement).bind(company).fetch_all(db).await.expect("rows");
    rows.into_iter().map(|row| (row.id, row.row)).collect()
}

/// The company's rows that PostgreSQL refused.
async fn count_rejected(db: &PgPool, company: i64) -> i64 {
    let rejected = "select count(*) from rejected_changes where company_id = $1";
    sqlx::query_scalar(rejected).bind(company).fetch_one(db).await.expect("a count")
}

fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("not a number: {value}"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}
