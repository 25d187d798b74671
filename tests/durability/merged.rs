//! A message that is accepted and sent within one flush is written once, with the same result as in two flushes.

use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::tables::messages::{
    DeliveryStatus, DeliveryStatusRow, Direction, MessageError, MessageRow, MessageStatus, MessageType,
};
use hotline_persistence::tables::source::Source;
use hotline_persistence::{Change, MessageId, TicketId};
use serde_json::Value;

use crate::support::{OwnApp, eventually};

/// Far above the ids that the service assigns in a test.
const FIRST_ID: i64 = 1_000_000_000;

/// Possible reports on one message, each with its second after the message's creation: also before it, out of order,
/// repeated, and failures.
fn histories() -> Vec<Vec<(DeliveryStatus, i64)>> {
    use DeliveryStatus::{Delivered, Failed, Read, Sent};
    let failed = || Failed(MessageError { code: "131026".to_owned(), message: "undeliverable".to_owned() });
    let report = |index: usize| [Sent, Delivered, Read, failed()][index].clone();
    let mut histories = vec![vec![]];
    for first in 0..4 {
        for second in [-5, 1, 9] {
            histories.push(vec![(report(first), second)]);
            for then in 0..4 {
                histories.push(vec![(report(first), second), (report(then), 4)]);
                histories.push(vec![(report(first), second), (report(then), 4), (report((first + 1) % 4), 6)]);
            }
        }
    }
    histories
}

#[actix_web::test]
async fn one_flush_stores_a_message_and_its_reports_as_two_do_and_writes_it_once() {
    let app = OwnApp::start().await;
    let (company, db) = (&app.company, &app.db);
    let contact = app.contact("5511900000001").await;
    let counting = "create table written (id bigint);
        create function note_written() returns trigger language plpgsql as
            $$ begin insert into written values (new.id); return null; end $$;
        create trigger note_written after insert or update on messages for each row execute function note_written()";
    sqlx::raw_sql(counting).execute(db).await.expect("count what is written");
    let at: DateTime<Utc> = "2026-01-02T03:04:05.678901Z".parse().expect("time");
    let message = |id: i64| {
        Change::Message(Box::new(MessageRow {
            company_id: company.id,
            id: MessageId::new(id),
            job_id: Some(MessageId::new(id)),
            ticket_id: TicketId::new(id),
            contact_id: contact,
            channel_id: company.phone,
            direction: Direction::Outbound,
            kind: MessageType::Text,
            body: Some("hello".to_owned()),
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
            created_at: at,
            sent_at: None,
            delivered_at: None,
            read_at: None,
            updated_at: None,
        }))
    };
    let reports = |id: i64, history: &[(DeliveryStatus, i64)]| -> Vec<Change> {
        let row = |(delivery_status, second): &(DeliveryStatus, i64)| {
            Change::Progress(Box::new(DeliveryStatusRow {
                company_id: company.id,
                ticket_id: TicketId::new(id),
                message_id: MessageId::new(id),
                delivery_status: delivery_status.clone(),
                at: at + TimeDelta::seconds(*second),
                provider_message_id: (*second > 0).then(|| format!("wamid {id} {second}")),
                noted_at: None,
            }))
        };
        history.iter().map(row).collect()
    };
    let log = &app.service.app.engine.store().log;
    let append = |changes: Vec<Change>| log.reserve(company.id).expect("a place").append(changes).expect("appended").0;
    let histories = histories();
    let (mut in_one_flush, mut in_two_flushes) = (Vec::new(), Vec::new());
    for (number, history) in (0..).zip(&histories) {
        let (one, two) = (FIRST_ID + 2 * number, FIRST_ID + 2 * number + 1);
        in_one_flush.push(one);
        in_two_flushes.push(two);
        // The changes of one entry are never written in two flushes.
        append([vec![message(one)], reports(one, history)].concat());
        append(vec![message(two)]);
    }
    let first = log.appended();
    log.wait_until_durable(first).await.expect("synced");
    eventually("the first entries are written", || async { log.flushed() >= first }).await;
    for (two, history) in in_two_flushes.iter().zip(&histories).filter(|(_, history)| !history.is_empty()) {
        append(reports(*two, history));
    }
    let last = log.appended();
    log.wait_until_durable(last).await.expect("synced");
    eventually("the last entries are written", || async { log.flushed() >= last }).await;

    let stored = |ids: Vec<i64>| async move {
        let rows: Vec<Value> = sqlx::query_scalar(
            // The time at which a row was written does not follow from the reports.
            "select to_jsonb(m) - 'id' - 'job_id' - 'ticket_id' - 'updated_at'
                 || jsonb_build_object('provider_message_id', split_part(provider_message_id, ' ', 3))
             from messages m where id = any($1) order by id",
        )
        .bind(ids)
        .fetch_all(db)
        .await
        .expect("messages");
        rows
    };
    let (merged, apart) = (stored(in_one_flush.clone()).await, stored(in_two_flushes.clone()).await);
    assert_eq!(merged.len(), histories.len());
    for ((merged, apart), history) in merged.iter().zip(&apart).zip(&histories) {
        assert_eq!(merged, apart, "{history:?}");
    }
    let events = |ids: Vec<i64>| async move {
        let events: Vec<Vec<String>> = sqlx::query_scalar(
            "with published as (select e.first_id + t.place as id, t.event ->> 'k' as kind,
                     (t.event -> 'r' -> 'm' ->> 'i')::bigint as message, t.event -> 'p' ->> 'status' as was
                 from events e, jsonb_array_elements(e.told::jsonb) with ordinality t (event, place))
             select array_agg(kind || coalesce(' after ' || was, '') order by id) from published where message = any($1)
             group by message order by message",
        )
        .bind(ids)
        .fetch_all(db)
        .await
        .expect("events");
        events
    };
    let merged_events = events(in_one_flush.clone()).await;
    assert_eq!(merged_events.len(), histories.len());
    for ((merged, apart), history) in merged_events.iter().zip(&events(in_two_flushes).await).zip(&histories) {
        assert_eq!(merged, apart, "{history:?}");
    }
    let written: Vec<(i64, i64)> =
        sqlx::query_as("select id, count(*) from written where id = any($1) group by id order by id")
            .bind(&in_one_flush)
            .fetch_all(db)
            .await
            .expect("counts");
    for ((id, times), history) in written.iter().zip(&histories) {
        // A failure is a second write, since the table decides whether it is the first one, which counts. A message
        // that has arrived does not fail.
        let arrives =
            |(delivery_status, _): &&_| matches!(delivery_status, DeliveryStatus::Delivered | DeliveryStatus::Read);
        let mut before = history.iter().take_while(|report| !arrives(report));
        let fails = before.any(|(delivery_status, _)| matches!(delivery_status, DeliveryStatus::Failed(_)));
        assert_eq!(*times, if fails { 2 } else { 1 }, "message {id}: {history:?}");
    }
    app.stop().await;
}
