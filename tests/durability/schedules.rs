//! What is scheduled leaves once and at its time, whatever dies in between: the service again and again, and the
//! database for a while.
//!
//! `make test` runs a short form; `make schedules` (or `SCHEDULES_LONG=1`) two thousand messages, ten kills and twenty
//! seconds without the database.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, SubsecRound, TimeDelta, Utc};
use futures_util::{StreamExt, stream};
use hotline_persistence::PgPool;
use hotline_postgres::{Cluster, ClusterOptions};
use rand::RngExt;
use serde_json::{Value, json};

use crate::process::{Process, data_folder};
use crate::support::{Api, Company, eventually};

/// What a message may be late while somebody serves.
const LATE_MAX: TimeDelta = TimeDelta::seconds(5);

/// Scheduled at once.
const AT_ONCE: usize = 32;

/// How much is done.
struct Form {
    messages: i64,
    /// Over how long they are due.
    over: TimeDelta,
    kills: u32,
    outage: Duration,
}

fn form() -> Form {
    if std::env::var_os("SCHEDULES_LONG").is_some() {
        return Form { messages: 2000, over: TimeDelta::seconds(10), kills: 10, outage: Duration::from_secs(20) };
    }
    Form { messages: 400, over: TimeDelta::seconds(5), kills: 3, outage: Duration::from_secs(6) }
}

/// A service as a process, on a database that is stopped apart from it.
struct Scene {
    folder: tempfile::TempDir,
    cluster: Option<Cluster>,
    process: Option<Process>,
    company: Company,
    contacts: Vec<i64>,
    /// Times in which nobody served.
    down: Vec<(DateTime<Utc>, DateTime<Utc>)>,
}

impl Scene {
    async fn open(contacts: i64) -> Self {
        let folder = data_folder();
        let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
        let db = hotline_persistence::pool::connect(cluster.connect_options());
        hotline_persistence::pool::migrate(&db).await.expect("migrate");
        let company = Company::create(&db, "Acme").await;
        let contacts = sqlx::query_scalar(
            "insert into contacts (company_id, name, number)
             select $1, 'Contact ' || k, (5511900000000 + k)::text from generate_series(1, $2) k returning id",
        )
        .bind(company.id)
        .bind(contacts)
        .fetch_all(&db)
        .await
        .expect("contacts");
        db.close().await;
        let mut scene = Self { folder, cluster: Some(cluster), process: None, company, contacts, down: Vec::new() };
        scene.start();
        scene
    }

    fn url(&self) -> String {
        let options = self.cluster.as_ref().expect("PostgreSQL").connect_options();
        let socket = options.get_socket().expect("a socket").display().to_string();
        let database = options.get_database().unwrap_or("postgres").to_owned();
        format!("postgres:///{database}?host={socket}&user={}", options.get_username())
    }

    fn start(&mut self) {
        let url = self.url();
        let options = ["--database-url", url.as_str(), "--rate-per-minute=0"];
        let process = Process::try_serve(self.folder.path(), &options).unwrap_or_else(|log| panic!("no start: {log}"));
        self.process = Some(process);
    }

    fn api(&self) -> Api {
        Api::new(self.process.as_ref().expect("it runs").address, &self.company.key)
    }

    fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    /// Schedules messages over a while, beginning then; answers when each is due.
    async fn schedule(&self, form: &Form, begin: DateTime<Utc>) -> HashMap<i64, DateTime<Utc>> {
        let step = form.over / i32::try_from(form.messages).expect("few");
        let due: HashMap<i64, DateTime<Utc>> = (0..form.messages)
            .map(|number| (number, (begin + step * i32::try_from(number).expect("few")).trunc_subsecs(3)))
            .collect();
        let (api, due) = (&self.api(), &due);
        stream::iter(0..form.messages)
            .map(|number| async move {
                let contact = self.contacts[usize::try_from(number).expect("few") % self.contacts.len()];
                let body = json!({
                    "contactId": contact, "channelId": self.company.phone, "body": number.to_string(),
                    "sendAt": due[&number].to_rfc3339_opts(SecondsFormat::Millis, true),
                });
                api.post("/schedules", body).await.data(201);
            })
            .buffer_unordered(AT_ONCE)
            .collect::<()>()
            .await;
        assert!(Utc::now() < begin, "the machine is too slow to schedule {} in time", form.messages);
        due.clone()
    }

    async fn all_have_left(&self) {
        let api = self.api();
        let left = || async {
            let reply = api.get("/schedules?status=pending").await;
            reply.status == 200 && reply.body["data"] == json!([])
        };
        eventually("all have left", left).await;
    }

    /// When nobody served at a time, until when.
    fn served_from(&self, due: DateTime<Utc>) -> DateTime<Utc> {
        // Two times in which nobody served may follow each other before a message had its turn.
        self.down
            .iter()
            .fold(due, |due, (from, until)| if *from <= due + LATE_MAX && due < *until { *until } else { due })
    }

    /// That each left once, and not too late.
    async fn check(&self, due: &HashMap<i64, DateTime<Utc>>) {
        let api = self.api();
        let mut left: HashMap<i64, Vec<DateTime<Utc>>> = HashMap::new();
        for message in api.all("/messages").await {
            let number = message["body"].as_str().and_then(|text| text.parse().ok()).expect("a number");
            let at = message["createdAt"].as_str().and_then(|text| text.parse().ok()).expect("a time");
            left.entry(number).or_default().push(at);
        }
        let mut worst = TimeDelta::zero();
        for (number, due) in due {
            let [at] = left.get(number).map(Vec::as_slice).unwrap_or_default() else {
                panic!("message {number} left {:?}", left.get(number))
            };
            let late = *at - self.served_from(*due);
            assert!(*at >= *due, "message {number} left before its time");
            assert!(late <= LATE_MAX, "message {number} of {due} left at {at}, {late} late");
            worst = worst.max(late);
        }
        assert_eq!(left.len(), due.len());
        let schedules = api.all("/schedules").await;
        assert!(
            schedules.iter().all(|row| row["status"] == "sent" && row["messageId"].is_i64()),
            "{:?}",
            first(&schedules)
        );
        println!("{} messages, the latest {} ms late", due.len(), worst.num_milliseconds());
    }

    async fn close(mut self) {
        let mut process = self.process.take().expect("it runs");
        process.terminate();
        assert!(process.wait().success(), "the stop was not clean: {}", process.log());
        let cluster = self.cluster.take().expect("PostgreSQL");
        let db: PgPool = hotline_persistence::pool::connect(cluster.connect_options());
        let rejected: i64 =
            sqlx::query_scalar("select count(*) from rejected_changes").fetch_one(&db).await.expect("count");
        assert_eq!(rejected, 0);
        db.close().await;
        cluster.stop().await.expect("PostgreSQL stops");
    }
}

fn first(schedules: &[Value]) -> Option<&Value> {
    schedules.iter().find(|row| row["status"] != "sent")
}

/// Time for as many requests as there are messages, on a machine that does other things as well.
fn begin(form: &Form) -> DateTime<Utc> {
    Utc::now() + TimeDelta::seconds(5) + TimeDelta::milliseconds(15 * form.messages)
}

#[actix_web::test]
async fn what_is_scheduled_leaves_once_however_often_the_service_is_killed() {
    let form = form();
    let mut scene = Scene::open(form.messages).await;
    let begin = begin(&form);
    let due = scene.schedule(&form, begin).await;
    let waits = (begin - Utc::now()).to_std().unwrap_or_default();
    tokio::time::sleep(waits).await;
    for _ in 0..form.kills {
        // At a random moment: that is what is asked.
        let wait = rand::rng().random_range(0..2 * form.over.num_milliseconds() / i64::from(form.kills));
        tokio::time::sleep(Duration::from_millis(wait.unsigned_abs())).await;
        let from = Utc::now();
        scene.kill();
        scene.start();
        scene.down.push((from, Utc::now()));
    }
    scene.all_have_left().await;
    scene.check(&due).await;
    scene.close().await;
}

#[actix_web::test]
async fn what_is_due_soon_leaves_at_its_time_while_the_database_is_stopped() {
    let form = form();
    let over = TimeDelta::from_std(form.outage).expect("short");
    let form = Form { over, ..form };
    let mut scene = Scene::open(form.messages).await;
    let begin = begin(&form) + TimeDelta::seconds(5);
    let due = scene.schedule(&form, begin).await;
    // What is looked up ahead is by then.
    let waits = (begin - Utc::now()).to_std().unwrap_or_default();
    tokio::time::sleep(waits).await;
    let (api, path) = (scene.api(), "/schedules");
    scene.cluster.take().expect("PostgreSQL").stop().await.expect("PostgreSQL stops");
    let stopped = Utc::now();
    eventually("the outage is seen", || async { api.get(path).await.status == 503 }).await;
    tokio::time::sleep(form.outage).await;
    let cluster = Cluster::start(ClusterOptions::for_tests(scene.folder.path())).await.expect("PostgreSQL is back");
    scene.cluster = Some(cluster);
    println!("the database was away for {}", Utc::now() - stopped);
    eventually("lists are served again", || async { api.get(path).await.status == 200 }).await;
    scene.all_have_left().await;
    scene.check(&due).await;
    scene.close().await;
}
