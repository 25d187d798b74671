//! A scheduled message is sent once and at its time, although the service is killed repeatedly, or the database is away
//! for a while.
//!
//! `make test` runs a short form; `make schedules` (or `SCHEDULES_LONG=1`) two thousand messages, ten kills and twenty
//! seconds without the database.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, SubsecRound, TimeDelta, Utc};
use futures_util::{StreamExt, stream};
use rand::RngExt;
use serde_json::{Value, json};

use crate::stoppable_service::StoppableService;
use crate::support::eventually;

/// How late a message may be sent while a service runs.
const LATE_MAX: TimeDelta = TimeDelta::seconds(5);

/// Requests that are under way at once while the messages are scheduled.
const CONCURRENT_REQUESTS: usize = 32;

/// The size of a run.
struct RunSize {
    messages: i64,
    /// The span over which the messages become due.
    due_span: TimeDelta,
    kills: u32,
    outage: Duration,
}

fn run_size() -> RunSize {
    if std::env::var_os("SCHEDULES_LONG").is_some() {
        return RunSize {
            messages: 2000,
            due_span: TimeDelta::seconds(10),
            kills: 10,
            outage: Duration::from_secs(20),
        };
    }
    RunSize { messages: 200, due_span: TimeDelta::seconds(4), kills: 3, outage: Duration::from_secs(4) }
}

/// A service with contacts, and the times at which it was down.
struct ScheduleRun {
    service: StoppableService,
    contacts: Vec<i64>,
    /// The spans in which no service ran: from, until.
    down: Vec<(DateTime<Utc>, DateTime<Utc>)>,
}

impl ScheduleRun {
    async fn open(contacts: i64) -> Self {
        let (service, contacts) = StoppableService::open(&["--rate-per-minute=0"], async |db, company, _| {
            sqlx::query_scalar(
                "insert into contacts (company_id, name, number)
                 select $1, 'Contact ' || k, (5511900000000 + k)::text from generate_series(1, $2) k returning id",
            )
            .bind(company.id)
            .bind(contacts)
            .fetch_all(db)
            .await
            .expect("contacts")
        })
        .await;
        Self { service, contacts, down: Vec::new() }
    }

    /// Schedules messages that become due over the span of the run, from `first_due` on. Returns the due time of each,
    /// by its number. A message whose time has already passed, on a slow machine, gets a later one.
    async fn schedule(&self, size: &RunSize, first_due: DateTime<Utc>) -> HashMap<i64, DateTime<Utc>> {
        let step = size.due_span / i32::try_from(size.messages).expect("few");
        let api = &self.service.api();
        stream::iter(0..size.messages)
            .map(|number| async move {
                let contact = self.contacts[usize::try_from(number).expect("few") % self.contacts.len()];
                let mut due = (first_due + step * i32::try_from(number).expect("few")).trunc_subsecs(3);
                loop {
                    let body = json!({
                        "contactId": contact, "channelId": self.service.company.phone, "body": number.to_string(),
                        "sendAt": due.to_rfc3339_opts(SecondsFormat::Millis, true),
                    });
                    let reply = api.post("/schedules", body).await;
                    if reply.status != 422 {
                        reply.data(201);
                        return (number, due);
                    }
                    due = (Utc::now() + size.due_span).trunc_subsecs(3);
                }
            })
            .buffer_unordered(CONCURRENT_REQUESTS)
            .collect()
            .await
    }

    async fn wait_until_all_are_sent(&self) {
        let api = self.service.api();
        let none_is_pending = || async {
            let reply = api.get("/schedules?status=pending").await;
            reply.status == 200 && reply.body["data"] == json!([])
        };
        eventually("no message is pending", none_is_pending).await;
    }

    /// From when a service could send a message that is due at this time.
    fn served_from(&self, due: DateTime<Utc>) -> DateTime<Utc> {
        // Two spans without a service may follow each other before a message is sent.
        self.down
            .iter()
            .fold(due, |due, (from, until)| if *from <= due + LATE_MAX && due < *until { *until } else { due })
    }

    /// Checks that each message was sent once, and not before its time. Returns how late the latest was.
    async fn check(&self, due: &HashMap<i64, DateTime<Utc>>) -> TimeDelta {
        let api = self.service.api();
        let mut times_sent: HashMap<i64, Vec<DateTime<Utc>>> = HashMap::new();
        for message in api.all("/messages").await {
            let number = message["body"].as_str().and_then(|text| text.parse().ok()).expect("a number");
            let at = message["createdAt"].as_str().and_then(|text| text.parse().ok()).expect("a time");
            times_sent.entry(number).or_default().push(at);
        }
        let mut worst = TimeDelta::zero();
        for (number, due) in due {
            let [at] = times_sent.get(number).map(Vec::as_slice).unwrap_or_default() else {
                panic!("message {number} was not sent once, but at {:?}", times_sent.get(number))
            };
            let late = *at - self.served_from(*due);
            assert!(*at >= *due, "message {number} was sent before its time");
            worst = worst.max(late);
        }
        assert_eq!(times_sent.len(), due.len());
        let schedules = api.all("/schedules").await;
        assert!(
            schedules.iter().all(|row| row["status"] == "sent" && row["messageId"].is_i64()),
            "{:?}",
            first_unsent(&schedules)
        );
        println!("{} messages, the latest {} ms late", due.len(), worst.num_milliseconds());
        worst
    }
}

fn first_unsent(schedules: &[Value]) -> Option<&Value> {
    schedules.iter().find(|row| row["status"] != "sent")
}

/// When the first message is due: late enough that even a busy machine has scheduled all messages before.
fn first_due_at(size: &RunSize) -> DateTime<Utc> {
    Utc::now() + TimeDelta::seconds(5) + TimeDelta::milliseconds(15 * size.messages)
}

/// Lets messages become due while the service is killed repeatedly. Returns how late the latest was.
async fn through_kills() -> TimeDelta {
    let size = run_size();
    let mut run = ScheduleRun::open(size.messages).await;
    let first_due = first_due_at(&size);
    let due = run.schedule(&size, first_due).await;
    let time_until_first_due = (first_due - Utc::now()).to_std().unwrap_or_default();
    tokio::time::sleep(time_until_first_due).await;
    for _ in 0..size.kills {
        // Killed at a random moment on purpose.
        let wait = rand::rng().random_range(0..2 * size.due_span.num_milliseconds() / i64::from(size.kills));
        tokio::time::sleep(Duration::from_millis(wait.unsigned_abs())).await;
        let from = Utc::now();
        run.service.kill();
        run.service.start();
        run.down.push((from, Utc::now()));
    }
    run.wait_until_all_are_sent().await;
    let late = run.check(&due).await;
    run.service.close().await;
    late
}

/// Lets messages become due while the database is stopped. Returns how late the latest was.
async fn through_an_outage() -> TimeDelta {
    let size = run_size();
    let due_span = TimeDelta::from_std(size.outage).expect("short");
    let size = RunSize { due_span, ..size };
    let mut run = ScheduleRun::open(size.messages).await;
    let first_due = first_due_at(&size) + TimeDelta::seconds(5);
    let due = run.schedule(&size, first_due).await;
    // By then the service has read in advance what is due soon.
    let time_until_first_due = (first_due - Utc::now()).to_std().unwrap_or_default();
    tokio::time::sleep(time_until_first_due).await;
    let (api, path) = (run.service.api(), "/schedules");
    run.service.stop_database().await;
    let stopped = Utc::now();
    eventually("the outage is seen", || async { api.get(path).await.status == 503 }).await;
    tokio::time::sleep(size.outage).await;
    run.service.start_database().await;
    println!("the database was away for {}", Utc::now() - stopped);
    eventually("lists are served again", || async { api.get(path).await.status == 200 }).await;
    run.wait_until_all_are_sent().await;
    let late = run.check(&due).await;
    run.service.close().await;
    late
}

#[actix_web::test]
async fn scheduled_messages_are_sent_once_however_often_the_service_is_killed() {
    through_kills().await;
}

#[actix_web::test]
async fn scheduled_messages_are_sent_in_time_however_often_the_service_is_killed_measured() {
    assert!(through_kills().await <= LATE_MAX);
}

#[actix_web::test]
async fn messages_due_soon_are_sent_once_while_the_database_is_stopped() {
    through_an_outage().await;
}

#[actix_web::test]
async fn messages_due_soon_are_sent_at_their_time_while_the_database_is_stopped_measured() {
    assert!(through_an_outage().await <= LATE_MAX);
}
