//! No statement depends on how the statistics happen to be: what a call reads grows with what its own company has, and
//! never with what others have.
//!
//! The companies here are as unlike as they get: one with nearly everything, many with next to nothing, and one that
//! came after the statistics were taken. Every statement of the service reports what it did (`auto_explain`), so a
//! call is judged by the rows it looked at, which are the same on every machine, and not by its time. The lists come
//! from the API document: a new list, or a new filter, is judged without being named here.

mod lists;
mod plans;
mod seed;
mod tables;
mod writes;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use sqlx::AssertSqlSafe;
use tracing_subscriber::layer::SubscriberExt;

use self::plans::{Plans, rows_read, rows_read_by};
use self::seed::{WEBHOOK, run};
use crate::support::service::TestOptions;
use crate::support::{Api, Company, OwnApp, Reply, TestDatabase, empty_folder, eventually};

/// The number of contacts, of tickets, and half that of messages, of the company that has nearly everything.
const HUGE: i64 = 12_000;

/// The same number for the company that came after the statistics.
const GROWN: i64 = 600;

/// The same number for each of the other companies.
const TINY: i64 = 4;

/// How many rows a call of a tiny company may look at: a few times the rows that it has (the calls before have made 200
/// contacts), and the rows that every request reads.
const TINY_READS_MAX: u64 = 650;

/// How many rows a call of the grown company may look at: its contacts, tickets and messages a few times over, and its
/// directory for each time that it is loaded again meanwhile. It is less than the huge company has.
const GROWN_READS_MAX: u64 = 9_000;

struct World {
    app: OwnApp,
    plans: Plans,
    /// A report of each call that read too many rows, and of its company.
    too_much: Vec<String>,
    /// Calls that were judged, and those of them whose statements were seen.
    judged: usize,
    seen: usize,
}

/// A company, a client for it, and ids of what it has.
struct Asker {
    api: Api,
    company: Company,
    contact: i64,
    ticket: i64,
    tag: i64,
    list: i64,
    rows: i64,
    reads_max: u64,
}

impl World {
    async fn make() -> (Self, Vec<Asker>) {
        let plans = Plans::default();
        let subscriber = tracing_subscriber::registry().with(plans.clone());
        tracing::subscriber::set_global_default(subscriber).expect("each test has a process of its own");
        let mut database = TestDatabase::filled("skewed", seed::fill).await;
        let db = &database.db.clone();
        let (grown, tiny) = seed::askers(db).await;
        database.options = database.options.options([
            ("session_preload_libraries", "auto_explain"),
            ("auto_explain.log_min_duration", "0"),
            ("auto_explain.log_analyze", "on"),
            ("auto_explain.log_timing", "off"),
            ("auto_explain.log_nested_statements", "on"),
            ("auto_explain.log_format", "json"),
            ("auto_explain.log_level", "notice"),
        ]);
        // A member of a cluster also sends statements at intervals.
        let alone = TestOptions { member: false, ..TestOptions::default() };
        let app = OwnApp::serve(&alone, database, empty_folder(), grown.clone()).await;
        let mut askers = Vec::new();
        for (company, rows, reads_max) in [(grown, GROWN, GROWN_READS_MAX), (tiny, TINY, TINY_READS_MAX)] {
            let api = app.api.with_key(&company.key);
            eventually("the directory is loaded", || async { api.get("/channels").await.status == 200 }).await;
            let one = async |table: &str| {
                let statement = format!("select max(id) from {table} where company_id = $1");
                sqlx::query_scalar(AssertSqlSafe(statement)).bind(company.id).fetch_one(db).await.expect("an id")
            };
            let (contact, ticket, tag) = (one("contacts").await, one("tickets").await, one("tags").await);
            let list = one("contact_lists").await;
            // Not before the start, which looks for the keys of sealed secrets.
            let webhooks = format!(
                "insert into webhooks (company_id, id, url, secret, active) overriding system value
                 select {}, {WEBHOOK} - k, 'https://x.example/' || k, 'sealed', false from generate_series(0, 14) k",
                company.id
            );
            run(db, &webhooks).await;
            askers.push(Asker { api, company, contact, ticket, tag, list, rows, reads_max });
        }
        (Self { app, plans, too_much: Vec::new(), judged: 0, seen: 0 }, askers)
    }

    /// Makes a call, and compares the rows that its statements read with `reads_max`.
    async fn judge(
        &mut self,
        asker: &Asker,
        method: Method,
        path: &str,
        body: Option<&Value>,
        reads_max: u64,
    ) -> Reply {
        let request = asker.api.request(method.clone(), path);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        self.judge_request(asker, (method, path), request, reads_max).await
    }

    /// Does the same with a request that another caller makes in the company.
    async fn judge_request(
        &mut self,
        asker: &Asker,
        (method, path): (Method, &str),
        request: RequestBuilder,
        reads_max: u64,
    ) -> Reply {
        self.plans.take();
        let reply = Reply::of(request).await;
        assert!(reply.status.is_success(), "{method} {path}: {} {}", reply.status, reply.body);
        let plans = self.plans.take();
        self.judged += 1;
        self.seen += usize::from(!plans.is_empty());
        let read = rows_read_by(&plans);
        if read > reads_max {
            let worst = plans.iter().max_by_key(|plan| rows_read(&plan["Plan"])).expect("a statement");
            self.too_much.push(format!(
                "{method} {path} of {} read {read} rows, of which {} in: {worst:#}",
                asker.company.id,
                rows_read(&worst["Plan"])
            ));
        }
        reply
    }

    /// Waits until the last step that a deletion has left is done, and compares the rows that the steps read with
    /// `reads_max`.
    async fn judge_steps(&mut self, asker: &Asker, reads_max: u64) {
        let db = self.app.db.clone();
        eventually("the steps are done", || async {
            let left = sqlx::query_scalar::<_, i64>("select count(*) from cascades where company_id = $1");
            left.bind(asker.company.id).fetch_one(&db).await.expect("a count") == 0
        })
        .await;
        let plans = self.plans.take();
        self.judged += 1;
        self.seen += usize::from(!plans.is_empty());
        let read = rows_read_by(&plans);
        if read > reads_max {
            let worst = plans.iter().max_by_key(|plan| rows_read(&plan["Plan"])).expect("a statement");
            self.too_much.push(format!("the steps of {} read {read} rows: {worst:#}", asker.company.id));
        }
    }

    async fn end(self) {
        // A call that is answered from memory sends no statement.
        assert!(self.seen * 2 > self.judged, "of {} calls only {} were seen to ask anything", self.judged, self.seen);
        assert!(self.too_much.is_empty(), "{}\n{} calls", self.too_much.join("\n"), self.too_much.len());
        self.app.stop().await;
    }
}
