//! A removal of old conversations changes no figure of a report, and delays no other company's removal.

use chrono::{TimeDelta, Utc};
use hotline_persistence::tables::reports::{self, Difference};
use hotline_persistence::tables::retentions;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::{DAYS, FIRST_ID, frequent_sweeps, insert_closed, keep_for, rows};
use crate::steps::{close, sent};
use crate::support::{OwnApp, TestApp, eventually};

async fn rebuild(app: &TestApp) -> Difference {
    let mut db = app.db.acquire().await.expect("connection");
    reports::rebuild(&mut db, app.company.id).await.expect("rebuilt")
}

/// The last hundred days, as parameters of a report.
fn period() -> String {
    let time = |days: i64| (Utc::now() + TimeDelta::days(days)).format("%Y-%m-%dT00:00:00Z");
    format!("from={}&to={}&timeZone=UTC", time(-100), time(1))
}

/// Every report of a period.
async fn all_reports(app: &TestApp, period: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for path in [
        "/reports/tickets?groupBy=day",
        "/reports/tickets?groupBy=channel",
        "/reports/messages?groupBy=day",
        "/reports/messages?groupBy=type",
    ] {
        found.push(app.api.get(&format!("{path}&{period}")).await.data(200).clone());
    }
    found
}

#[actix_web::test]
async fn figures_stay_as_they_were_counted_after_a_removal_and_a_rebuild() {
    let app = OwnApp::start_with(frequent_sweeps()).await;
    // All reports cover the same days, even if the day ends meanwhile.
    let period = period();
    let (db, company_and_channel) = (&app.db, (app.company.id, app.company.phone));
    for number in 0..12 {
        let contact = app.contact(&format!("55119000000{number:02}")).await.0;
        insert_closed(db, company_and_channel, contact, FIRST_ID + number, 24 + 5 * number).await;
    }
    let body = json!({"channelId": app.company.phone, "number": "5511911111111", "type": "text", "body": "hello"});
    let todays_ticket = sent(&app.api, body).await["ticketId"].as_i64().expect("ticket");
    close(&app.api, todays_ticket).await;
    assert!(!rebuild(&app).await.is_none(), "the rebuild did not count the inserted rows");
    assert!(rebuild(&app).await.is_none());
    let counted = all_reports(&app, &period).await;

    keep_for(&app, app.company.id, DAYS).await;
    assert_eq!(
        (rows(&app, FIRST_ID).await.0, rows(&app, FIRST_ID + 1).await.0, rows(&app, FIRST_ID + 2).await.0),
        (1, 1, 0)
    );
    assert_eq!(all_reports(&app, &period).await, counted, "the removal changed a figure");
    assert!(rebuild(&app).await.is_none(), "the rebuild missed removed rows");
    assert_eq!(all_reports(&app, &period).await, counted);
    // A rebuild still corrects the figures of the days that are kept, and leaves earlier ones as they are.
    for statement in [
        "update report_messages set outbound = outbound + 7 where at > now() - interval '29 days'",
        "update report_tickets set opened = opened + 7 where at > now() - interval '29 days'",
    ] {
        sqlx::query(statement).execute(db).await.expect(statement);
    }
    assert_ne!(all_reports(&app, &period).await, counted);
    assert!(!rebuild(&app).await.is_none());
    assert_eq!(all_reports(&app, &period).await, counted);
    // The same holds once the company keeps everything again.
    retentions::set(db, app.company.id, None).await.expect("the retention is set");
    assert!(rebuild(&app).await.is_none());
    assert_eq!(all_reports(&app, &period).await, counted);
    app.stop().await;
}

#[actix_web::test]
async fn one_company_with_a_lot_to_remove_keeps_no_other_waiting() {
    const MANY: i64 = 3_000;
    let app = OwnApp::start_with(frequent_sweeps()).await;
    let db = &app.db;
    let (other, _) = app.another_company().await;
    let contact = app.contact("5511900000001").await.0;
    insert_closed(db, (app.company.id, app.company.phone), contact, FIRST_ID, 40).await;
    let many = "insert into tickets (company_id, id, channel_id, contact_id, status, creation_source, unread_count,
            reopen_count, opened_at, closed_at, created_at, updated_at)
        select company_id, id + k, channel_id, contact_id, status, creation_source, 0, 0, opened_at, closed_at, created_at,
            updated_at from tickets, generate_series(1, $1) k where id = $2";
    sqlx::query(many).bind(MANY).bind(FIRST_ID).execute(db).await.expect(many);
    let insert = "insert into contacts (company_id, name) values ($1, 'Ana') returning id";
    let other_contact: i64 = sqlx::query_scalar(insert).bind(other.id).fetch_one(db).await.expect(insert);
    insert_closed(db, (other.id, other.phone), other_contact, 2 * FIRST_ID, 40).await;

    // Records how many tickets of the first company are left when the other company's is removed.
    for statement in [
        "create table left_then (count bigint)".to_owned(),
        format!(
            "create function note_left() returns trigger language plpgsql as $$ begin
                 insert into left_then select count(*) from tickets where company_id = {}; return null;
             end $$",
            app.company.id
        ),
        format!(
            "create trigger note_left after delete on tickets for each row when (old.id = {})
                 execute function note_left()",
            2 * FIRST_ID
        ),
    ] {
        sqlx::query(AssertSqlSafe(statement)).execute(db).await.expect("a trigger");
    }
    // At once: otherwise the first company's removal may be complete before the other one's is due.
    let mut transaction = db.begin().await.expect("a transaction");
    retentions::set(&mut *transaction, app.company.id, Some(DAYS)).await.expect("the retention is set");
    retentions::set(&mut *transaction, other.id, Some(DAYS)).await.expect("the retention is set");
    transaction.commit().await.expect("both retentions are set");
    eventually("the other company's conversation is removed", || async { rows(&app, 2 * FIRST_ID).await.0 == 0 }).await;
    let left_then: i64 = sqlx::query_scalar("select count from left_then").fetch_one(db).await.expect("a count");
    assert!(left_then > 0, "the other company's removal waited until the first company's was complete");
    let count_tickets = async || -> i64 {
        let count = sqlx::query_scalar("select count(*) from tickets where company_id = $1");
        count.bind(app.company.id).fetch_one(db).await.expect("a count")
    };
    // Without a retention, nothing more is removed from now on.
    retentions::set(db, app.company.id, None).await.expect("the retention is set");
    let kept = count_tickets().await;
    // Two removals, so that one of them began after the retention was cleared.
    for _ in 0..2 {
        keep_for(&app, other.id, DAYS).await;
    }
    assert_eq!(count_tickets().await, kept);
    retentions::set(db, app.company.id, Some(DAYS)).await.expect("the retention is set");
    eventually("all of the first company's tickets are removed", || async { count_tickets().await == 0 }).await;
    app.stop().await;
}
