//! Every column of every live row, with values that PostgreSQL may refuse in it. The columns are the fields of the row
//! types, which are compared with the columns of the tables, so that a new one cannot be forgotten.

use std::collections::BTreeSet;

use hotline_persistence::journal::Seq;
use hotline_persistence::{Change, ContactId, PgPool};
use serde_json::{Value, json};

use super::samples::samples;
use crate::support::{Company, OwnApp};

/// Far above the ids that the service assigns in a test.
const FIRST_ID: i64 = 1_000_000_000;

/// Characters of a text that no index accepts: its maximum is a third of a page, 2,704 bytes.
const LONG_TEXT_CHARS: usize = 6000;

/// Fields of rows that are not columns: their values are in the log of events, in a text that may hold anything.
const LOGGED: [&str; 3] = ["was", "by", "contact_was"];

/// The company and the contact of the rows.
pub struct Owner {
    pub company: Company,
    pub contact: ContactId,
}

/// One entry of the journal with one value that may be refused.
pub struct Case {
    pub changes: Vec<Change>,
    /// What was done, for the message of a failure.
    pub name: String,
    /// A text of the row with U+0000, which PostgreSQL refuses: it must be in `rejected_changes`.
    pub refused: Option<String>,
    /// The table and the id by which the row is found, if it was written.
    pub row: Option<(&'static str, String)>,
    /// The message whose delivery status was refused: it must not stay `queued`.
    pub message_id: Option<i64>,
}

/// The number of [`values`].
const VALUE_COUNT: usize = 16;

/// Values of several types that are put in place of a row's value.
fn values(marker: &str) -> [(&'static str, Value); VALUE_COUNT] {
    // Random, since the size of an index entry counts after compression.
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let bytes: Vec<u8> = (0..LONG_TEXT_CHARS).map(|_| next()).collect();
    let long: String = bytes.iter().map(|byte| char::from(b'!' + byte % 90)).collect();
    let deep = (0..120).fold(json!(marker), |inner, _| Value::Array(vec![inner]));
    [
        ("U+0000", json!(format!("{marker}\0"))),
        ("U+0000 in a document", json!({"text": format!("{marker}\0")})),
        ("U+0000 in a name", json!({format!("{marker}\0"): 1})),
        ("a long text", json!(long)),
        ("a long text in a document", json!({"id": long})),
        ("long bytes", json!(bytes)),
        ("the largest number", json!(i64::MAX)),
        ("the smallest number", json!(i64::MIN)),
        ("a time before all calendars", json!(-8_000_000_000_000_000_000_i64)),
        ("a time after all calendars", json!(8_200_000_000_000_000_000_i64)),
        ("an id that no record has", json!(-1)),
        ("a small number too large", json!(i32::MAX)),
        ("a number of 309 digits", json!({"number": 1.797_693_134_862_315_7e308})),
        ("another enum's word", json!("internal")),
        ("a status that is not of a message like this", json!("received")),
        ("a deep document", deep),
    ]
}

/// Every path to a value in a change.
fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    if let Value::Object(fields) = value {
        for (name, value) in fields {
            paths(value, &format!("{at}/{name}"), found);
        }
    }
    found.push(at.to_owned());
}

/// All cases whose value the row's own types can hold.
pub fn cases(owner: &Owner) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut id = FIRST_ID;
    let kinds = samples(owner, 0).len();
    for kind in 0..kinds {
        let sample = samples(owner, 0).swap_remove(kind);
        let last = sample.last().expect("a change");
        assert!(!format!("{last:?}").contains("None"), "a field is left out: {last:?}");
        let mut value_paths = Vec::new();
        paths(&serde_json::to_value(last).expect("JSON"), "", &mut value_paths);
        // Only the changes `Revision` and `Attempt` write these fields.
        let is_written_later =
            |path: &String| path.starts_with("/Message/revisions") || path.starts_with("/Message/attempts");
        value_paths.retain(|path| !is_written_later(path));
        // The user's name is stored with a reaction, not with an edit.
        value_paths.retain(|path| path != "/Revision/user_name");
        // The service itself assigns the ids of live rows, from blocks after the largest id.
        value_paths.retain(|path| !["/Ticket/id", "/Event/id", "/Message/id", "/Schedule/id"].contains(&path.as_str()));
        value_paths.retain(|path| path.split('/').nth(2).is_none_or(|field| !LOGGED.contains(&field)));
        for path in &value_paths {
            for number in 0..VALUE_COUNT {
                id += 1;
                let marker = format!("marker-{id}-");
                let (what, value) = values(&marker)[number].clone();
                let mut changes = samples(owner, id).swap_remove(kind);
                let mut changed = serde_json::to_value(changes.pop().expect("a change")).expect("JSON");
                let Some(place) = changed.pointer_mut(path) else { continue };
                *place = value;
                let Ok(change) = serde_json::from_value::<Change>(changed) else { continue };
                // The row may have taken the value in another form.
                let kept = serde_json::to_string(&change).expect("JSON");
                let is_kept = kept.contains(&marker);
                let is_identifier = path.ends_with("/id") || path.ends_with("/key");
                let row = if is_identifier { None } else { row_of(&change) };
                let refused = (is_kept && what.contains("U+0000")).then_some(marker);
                let message_id = match &change {
                    Change::Progress(row) if refused.is_some() => Some(row.message_id.0),
                    _ => None,
                };
                changes.push(change);
                cases.push(Case { changes, name: format!("{path}: {what}"), refused, row, message_id });
            }
        }
    }
    assert!(cases.len() > 300, "only {} cases", cases.len());
    cases
}

fn row_of(change: &Change) -> Option<(&'static str, String)> {
    Some(match change {
        Change::Ticket(row) => ("tickets", row.id.to_string()),
        Change::Event(row) => ("ticket_events", row.id.to_string()),
        Change::Message(row) => ("messages", row.id.to_string()),
        Change::Schedule(row) => ("schedules", row.id.to_string()),
        _ => return None,
    })
}

/// A message of another company, which is written between the cases.
pub fn neighbour(owner: &Owner, number: i64) -> Change {
    let mut sample = samples(owner, 2 * FIRST_ID + number).swap_remove(2);
    match sample.pop() {
        Some(Change::Message(mut row)) => {
            row.body = Some(format!("neighbour {number}"));
            row.media = None;
            Change::Message(row)
        }
        other => panic!("a message, not {other:?}"),
    }
}

/// Fails unless the columns of each live table are the fields of its sample.
pub async fn check_columns(db: &PgPool, owner: &Owner) {
    for (table, kind) in [
        ("tickets", 0),
        ("ticket_events", 1),
        ("messages", 2),
        ("webchat_sessions", 11),
        ("idempotency_keys", 14),
        ("schedules", 15),
        ("campaign_recipients", 17),
    ] {
        let columns: Vec<String> =
            sqlx::query_scalar("select column_name::text from information_schema.columns where table_name = $1")
                .bind(table)
                .fetch_all(db)
                .await
                .expect("columns");
        let columns: BTreeSet<&str> =
            columns.iter().map(|name| if name == "type" { "kind" } else { name.as_str() }).collect();
        let sample = serde_json::to_value(samples(owner, 1).swap_remove(kind).pop()).expect("JSON");
        let fields = sample.as_object().and_then(|variant| variant.values().next()?.as_object()).expect("a row");
        let fields: BTreeSet<&str> = fields.keys().map(String::as_str).filter(|name| !LOGGED.contains(name)).collect();
        assert_eq!(fields, columns, "{table}");
    }
}

/// Fails unless every refused row is set aside, and everything else is written.
pub async fn check(db: &PgPool, cases: &[Case], last: Seq) {
    let watermark: i64 = sqlx::query_scalar("select max(seq) from journal_watermark").fetch_one(db).await.expect("seq");
    assert!(watermark >= last as i64, "the watermark stands at {watermark} of {last}");
    let neighbours: i64 = sqlx::query_scalar("select count(*) from messages where body like 'neighbour %'")
        .fetch_one(db)
        .await
        .expect("count");
    assert_eq!(neighbours, cases.len() as i64, "a refused row took others with it");
    let rejected: Vec<(String, Option<i64>)> =
        sqlx::query_as("select change::text, row_id from rejected_changes").fetch_all(db).await.expect("rejected");
    assert!(rejected.len() < cases.len(), "every case was refused, although most values can be stored");
    assert!(cases.iter().any(|case| case.message_id.is_some()));
    for Case { name, refused, row, message_id, .. } in cases {
        if let Some(message) = message_id {
            let status: String = sqlx::query_scalar("select status from messages where id = $1")
                .bind(message)
                .fetch_one(db)
                .await
                .expect("the message");
            assert_ne!(status, "queued", "{name}: the message would be sent again");
        }
        if let Some(marker) = refused {
            assert!(rejected.iter().any(|(change, _)| change.contains(marker)), "{name} is not in rejected_changes");
        }
        if let Some((table, id)) = row {
            let sql = sqlx::AssertSqlSafe(format!("select exists (select from {table} where id = {id})"));
            let is_written: bool = sqlx::query_scalar(sql).fetch_one(db).await.expect("exists");
            let is_rejected = rejected.iter().any(|(_, row)| row.is_some_and(|row| row.to_string() == *id));
            assert!(is_written || is_rejected, "{name}: the row is neither written nor set aside");
        }
    }
}

#[actix_web::test]
async fn a_value_that_a_column_refuses_delays_no_other_row() {
    let app = OwnApp::start().await;
    let owner = Owner { company: app.company.clone(), contact: app.contact("5511900000001").await };
    let (other, other_api) = app.another_company().await;
    let db = &app.db;
    check_columns(db, &owner).await;
    let neighbour_owner = Owner { company: other, contact: ContactId::new(1) };
    let log = &app.service.app.engine.store().log;
    let cases = cases(&owner);
    let mut last = 0;
    for (number, case) in (0_i64..).zip(&cases) {
        // If the changed value is the company, the changes of a case are of two companies, and so in two entries.
        for changes in case.changes.chunk_by(|one, next| one.company() == next.company()) {
            let place = log.reserve(changes[0].company()).expect("a place");
            place.append(changes.to_vec()).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        }
        (last, _) = log
            .reserve(neighbour_owner.company.id)
            .expect("a place")
            .append(vec![neighbour(&neighbour_owner, number)])
            .expect("appended");
    }
    log.wait_until_durable(last).await.expect("synced");
    crate::support::eventually("all is written or set aside", || async { log.flushed() >= last }).await;
    check(db, &cases, last).await;
    for path in ["/tickets", "/messages", "/contacts"] {
        other_api.get(path).await.data(200);
    }
    sqlx::query("delete from rejected_changes").execute(db).await.expect("delete");
    app.stop().await;
}
