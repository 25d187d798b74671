//! Reports and dashboards: figures that are counted as things happen.

mod answers;
mod recount;
mod rows;
mod sales;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use chrono_tz::Tz;
use hotline_actors::clock;
use hotline_persistence::tables::reports::{self, Difference};
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::steps::{id, restarted};
use crate::support::{OwnApp, TestApp};
use recount::{Period, Records};

/// Random steps in one history.
const STEPS: usize = 120;

/// The company's ids that a step may name.
struct Choice {
    queues: [i64; 2],
    users: [i64; 2],
    wrapup_types: [i64; 2],
}

/// Makes random calls of the API, each of which may be refused.
async fn make_random_calls(app: &TestApp, random: &mut impl Rng, sessions: &[String]) {
    let company = &app.company;
    let choice = Choice {
        queues: [company.support.0, company.sales.0],
        users: [company.ana.0, company.ben.0],
        wrapup_types: [company.solved.0, company.sold.0],
    };
    for step in 0..STEPS {
        let tickets = app.api.all("/tickets").await;
        let ticket = tickets.choose(random).map(id);
        let (queue, user, wrapup_type) = (
            *choice.queues.choose(random).expect("one"),
            *choice.users.choose(random).expect("one"),
            *choice.wrapup_types.choose(random).expect("one"),
        );
        let body = format!("step {step}");
        match (random.random_range(0..10), ticket) {
            (0..3, _) | (_, None) => {
                let session = sessions.choose(random).expect("a session");
                app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": body})).await;
            }
            (3..5, Some(ticket)) => {
                let reopen = random.random_bool(0.3);
                let mut send = json!({"ticketId": ticket, "type": "text", "body": body, "reopenTicket": reopen});
                if random.random_bool(0.5) {
                    send["userId"] = json!(user);
                }
                if random.random_bool(0.2) {
                    send["queueId"] = json!(queue);
                }
                if random.random_bool(0.2) {
                    send["closeTicket"] = json!(true);
                    send["wrapupTypeId"] = json!(wrapup_type);
                }
                app.api.post("/messages", send).await;
            }
            (5, Some(ticket)) => {
                let close = if random.random_bool(0.7) { json!({"wrapupTypeId": wrapup_type}) } else { json!({}) };
                app.api.post(&format!("/tickets/{ticket}/close"), close).await;
            }
            (6, Some(ticket)) => drop(app.api.post(&format!("/tickets/{ticket}/reopen"), json!({})).await),
            (7, Some(ticket)) => {
                let wrapup = json!({"wrapupTypeId": wrapup_type});
                app.api.put(&format!("/tickets/{ticket}/wrapup"), wrapup).await;
            }
            (8, Some(ticket)) => {
                let to = match random.random_range(0..4) {
                    0 => json!({"queueId": queue}),
                    1 => json!({"userId": user}),
                    2 => json!({"userId": null}),
                    _ => json!({"queueId": queue, "userId": user}),
                };
                app.api.post(&format!("/tickets/{ticket}/transfer"), to).await;
            }
            (_, Some(ticket)) => {
                app.api.post(&format!("/tickets/{ticket}/notes"), json!({"body": body})).await;
            }
        }
        // An answer counts for the queue and the user that its ticket has in the same millisecond, so the next step
        // must be in a later one.
        let now = Utc::now();
        crate::support::eventually("the next millisecond has come", || async {
            Utc::now() > now + TimeDelta::milliseconds(1)
        })
        .await;
    }
}

async fn rebuild(app: &TestApp) -> Difference {
    let mut db = app.db.acquire().await.expect("connection");
    reports::rebuild(&mut db, app.company.id).await.expect("rebuilt")
}

async fn rows(app: &TestApp, path: &str) -> Vec<Value> {
    app.api.get(path).await.data(200).as_array().expect("rows").clone()
}

/// Compares every report of the period with the records.
async fn check_reports(app: &TestApp, records: &Records, period: Period) {
    let query = period.query();
    for group in ["day", "queue", "channel", "user"] {
        let shown = rows(app, &format!("/reports/tickets?{query}&groupBy={group}")).await;
        assert_eq!(shown, records.tickets(period, group), "tickets by {group}, {period:?}");
    }
    for group in ["day", "channel", "user", "type"] {
        let shown = rows(app, &format!("/reports/messages?{query}&groupBy={group}")).await;
        assert_eq!(shown, records.messages(period, group), "messages by {group}, {period:?}");
    }
    for queue in [None, Some(app.company.support.0), Some(app.company.sales.0)] {
        let of_queue = queue.map(|queue| format!("&queueId={queue}")).unwrap_or_default();
        let shown = rows(app, &format!("/reports/wrapups?{query}{of_queue}")).await;
        let counts: Vec<(i64, i64)> = shown
            .iter()
            .map(|row| (row["wrapupTypeId"].as_i64().expect("id"), row["count"].as_i64().expect("count")))
            .collect();
        let expected: Vec<(i64, i64)> = records.wrapups(period, queue).into_iter().collect();
        assert_eq!(counts, expected, "wrap-ups of {queue:?}, {period:?}");
        let shares: f64 = shown.iter().map(|row| row["share"].as_f64().expect("share")).sum();
        assert!(shown.is_empty() || (shares - 1.0).abs() < 0.001, "{shown:?}");
    }
}

fn quarter_hour_of(at: DateTime<Utc>) -> DateTime<Utc> {
    at.duration_trunc(TimeDelta::minutes(15)).expect("a time")
}

/// Compares the service desk with the records.
async fn check_desk(app: &TestApp, records: &Records) {
    let (expected, since) = records.desk();
    // In whole milliseconds, like all times of the service.
    let asked = clock::now();
    let mut shown = app.api.get("/dashboards/service").await.data(200).clone();
    let waited = shown["oldestWaitingSeconds"].take().as_i64();
    let members = shown.as_object_mut().expect("an object");
    members.retain(|name, _| name != "oldestWaitingSeconds" && name != "today");
    assert_eq!(shown, expected);
    let expected = since.map(|since| (asked - since).num_seconds()..=(clock::now() - since).num_seconds());
    assert!(
        waited.zip(expected.as_ref()).is_none_or(|(waited, expected)| expected.contains(&waited))
            && waited.is_some() == expected.is_some(),
        "{waited:?} s, {expected:?} s since {since:?}"
    );
}

#[actix_web::test]
async fn reports_equal_a_recount_of_the_records_live_after_a_restart_and_after_a_rebuild() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let app = OwnApp::start().await;
    let mut sessions = Vec::new();
    for number in 0..6 {
        sessions.push(app.session(&format!("visitor-{number}")).await.0.0);
    }
    // From this request on, the desk is kept in memory, through all that happens next.
    app.api.get("/dashboards/service").await.data(200);
    make_random_calls(&app, &mut random, &sessions).await;

    let records = Records::read(&app.api).await;
    check_desk(&app, &records).await;
    let to = quarter_hour_of(Utc::now()) + TimeDelta::minutes(15);
    let today = Period { from: to - TimeDelta::hours(3), to, zone: Tz::UTC };
    check_reports(&app, &records, today).await;
    assert!(rebuild(&app).await.is_none(), "the rebuild corrected figures that were counted live");
    check_reports(&app, &records, today).await;

    // Each conversation is moved back as a whole, by a random time.
    let app = restarted(app).await;
    for ticket in app.api.all("/tickets").await {
        let back = TimeDelta::milliseconds(random.random_range(0..TimeDelta::days(40).num_milliseconds()));
        for statement in [
            "update tickets set created_at = created_at - $2, opened_at = opened_at - $2, closed_at = closed_at - $2,
                 first_response_at = first_response_at - $2, waiting_since = waiting_since - $2 where id = $1",
            "update ticket_events set created_at = created_at - $2 where ticket_id = $1",
            "update messages set created_at = created_at - $2, sent_at = sent_at - $2 where ticket_id = $1",
        ] {
            let moved = sqlx::query(statement).bind(id(&ticket)).bind(back).execute(&app.db).await;
            moved.expect("moved back");
        }
    }
    let app = restarted(app).await;
    assert!(
        !rebuild(&app).await.is_none(),
        "the rebuild found no difference, though the rows were moved to other days"
    );
    assert!(rebuild(&app).await.is_none(), "a second rebuild found a difference");
    let records = Records::read(&app.api).await;
    // The desk is read from the tables the first time, and from memory the second time.
    check_desk(&app, &records).await;
    check_desk(&app, &records).await;
    for zone in [Tz::America__Sao_Paulo, Tz::Asia__Kathmandu, Tz::Europe__Lisbon, Tz::UTC] {
        check_reports(&app, &records, Period { from: to - TimeDelta::days(45), to, zone }).await;
        for _ in 0..4 {
            let from = quarter_hour_of(to - TimeDelta::minutes(random.random_range(15..60 * 24 * 45)));
            let span = random.random_range(15..60 * 24 * 20);
            check_reports(
                &app,
                &records,
                Period {
                    from,
                    to: quarter_hour_of(from + TimeDelta::minutes(span)).max(from + TimeDelta::minutes(15)),
                    zone,
                },
            )
            .await;
        }
    }
    app.stop().await;
}
