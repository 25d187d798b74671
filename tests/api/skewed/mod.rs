//! The cost of a call does not depend on the statistics of the tables: the rows that it reads grow with the data of its
//! own company, and never with the data of others.
//!
//! The companies here differ as much as possible: one has nearly all data, many have almost none, and one was created
//! after the statistics were taken. Every statement of the service reports its plan (`auto_explain`). So a call is
//! judged by the rows that it read, which are the same on every machine, and not by its time. The lists come from the
//! API document, so new lists and filters are tested without being named here.

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

/// Contacts, and as many tickets, of the company that has nearly all data. It has twice as many messages.
const HUGE: i64 = 12_000;

/// The same for the company that was created after the statistics were taken.
const GROWN: i64 = 600;

/// The same for each of the other companies.
const TINY: i64 = 4;

/// Maximum rows that a call of a tiny company may read: a few times the rows that it has (earlier calls have created
/// 200 contacts), and the rows that every request reads.
const TINY_READS_MAX: u64 = 650;

/// Maximum rows that a call of the grown company may read: a few times its contacts, tickets and messages, and its
/// directory, which may be loaded again during the call. It is less than the huge company has.
const GROWN_READS_MAX: u64 = 9_000;

struct World {
    app: OwnApp,
    plans: Plans,
    /// A report of each call that read too many rows, and of its company.
    too_much: Vec<String>,
    /// The number of judged calls.
    judged: usize,
    /// The number of judged calls whose statements have reported plans.
    with_plans: usize,
}

/// A company that makes calls, with its client, ids of some of its records, and its limit.
struct Caller {
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
    async fn make() -> (Self, Vec<Caller>) {
        let plans = Plans::default();
        let subscriber = tracing_subscriber::registry().with(plans.clone());
        tracing::subscriber::set_global_default(subscriber).expect("each test has a process of its own");
        let mut database = TestDatabase::filled("skewed", seed::fill).await;
        let db = &database.db.clone();
        let (grown, tiny) = seed::callers(db).await;
        database.options = database.options.options([
            ("session_preload_libraries", "auto_explain"),
            ("auto_explain.log_min_duration", "0"),
            ("auto_explain.log_analyze", "on"),
            ("auto_explain.log_timing", "off"),
            ("auto_explain.log_nested_statements", "on"),
            ("auto_explain.log_format", "json"),
            ("auto_explain.log_level", "notice"),
        ]);
        // Not a member of a cluster: a member also sends statements at intervals, which would be counted.
        let options = TestOptions { member: false, ..TestOptions::default() };
        let app = OwnApp::serve(&options, database, empty_folder(), grown.clone()).await;
        let mut callers = Vec::new();
        for (company, rows, reads_max) in [(grown, GROWN, GROWN_READS_MAX), (tiny, TINY, TINY_READS_MAX)] {
            let api = app.api.with_key(&company.key);
            eventually("the directory is loaded", || async { api.get("/channels").await.status == 200 }).await;
            let newest_id = async |table: &str| {
                let statement = format!("select max(id) from {table} where company_id = $1");
                sqlx::query_scalar(AssertSqlSafe(statement)).bind(company.id).fetch_one(db).await.expect("an id")
            };
            let (contact, ticket) = (newest_id("contacts").await, newest_id("tickets").await);
            let (tag, list) = (newest_id("tags").await, newest_id("contact_lists").await);
            // Inserted after the start of the service, which checks the keys of sealed secrets.
            let webhooks = format!(
                "insert into webhooks (company_id, id, url, secret, active) overriding system value
                 select {}, {WEBHOOK} - k, 'https://x.example/' || k, 'sealed', false from generate_series(0, 14) k",
                company.id
            );
            run(db, &webhooks).await;
            callers.push(Caller { api, company, contact, ticket, tag, list, rows, reads_max });
        }
        (Self { app, plans, too_much: Vec::new(), judged: 0, with_plans: 0 }, callers)
    }

    /// Makes a call, and checks that its statements read at most `reads_max` rows.
    async fn judge(
        &mut self,
        caller: &Caller,
        method: Method,
        path: &str,
        body: Option<&Value>,
        reads_max: u64,
    ) -> Reply {
        let request = caller.api.request(method.clone(), path);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        self.judge_request(caller, (method, path), request, reads_max).await
    }

    /// Does the same with a request of another caller in the company.
    async fn judge_request(
        &mut self,
        caller: &Caller,
        (method, path): (Method, &str),
        request: RequestBuilder,
        reads_max: u64,
    ) -> Reply {
        self.plans.take();
        let reply = Reply::of(request).await;
        assert!(reply.status.is_success(), "{method} {path}: {} {}", reply.status, reply.body);
        self.judge_plans(caller, &format!("{method} {path}"), reads_max);
        reply
    }

    /// Waits until all references to a deleted record are removed, and checks that this read at most `reads_max` rows.
    async fn judge_steps(&mut self, caller: &Caller, reads_max: u64) {
        let db = self.app.db.clone();
        eventually("no cascade is left", || async {
            let count = sqlx::query_scalar::<_, i64>("select count(*) from cascades where company_id = $1");
            count.bind(caller.company.id).fetch_one(&db).await.expect("a count") == 0
        })
        .await;
        self.judge_plans(caller, "the cascade", reads_max);
    }

    /// Checks that the statements since the plans were last taken read at most `reads_max` rows.
    fn judge_plans(&mut self, caller: &Caller, call: &str, reads_max: u64) {
        let plans = self.plans.take();
        self.judged += 1;
        self.with_plans += usize::from(!plans.is_empty());
        let read = rows_read_by(&plans);
        if read > reads_max {
            let worst = plans.iter().max_by_key(|plan| rows_read(&plan["Plan"])).expect("a statement");
            self.too_much.push(format!(
                "{call} of {} read {read} rows, of which {} in: {worst:#}",
                caller.company.id,
                rows_read(&worst["Plan"])
            ));
        }
    }

    async fn assert_and_stop(self) {
        // Calls that are answered from memory send no statement.
        assert!(
            self.with_plans * 2 > self.judged,
            "only {} of {} calls reported statements",
            self.with_plans,
            self.judged
        );
        assert!(self.too_much.is_empty(), "{}\n{} calls", self.too_much.join("\n"), self.too_much.len());
        self.app.stop().await;
    }
}
