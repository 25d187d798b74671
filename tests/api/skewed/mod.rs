//! No statement depends on how the statistics happen to be: what a call reads grows with what its own company has, and
//! never with what others have.
//!
//! The companies here are as unlike as they get: one with nearly everything, many with next to nothing, and one that
//! came after the statistics were taken. Every statement of the service tells what it did (`auto_explain`), so a
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

/// Contacts, tickets and half the messages of the company that has nearly everything.
const HUGE: i64 = 12_000;

/// The same of the company that came after the statistics.
const GROWN: i64 = 600;

/// The same of each of the others.
const TINY: i64 = 4;

/// Rows a call of a tiny company may look at: a few times what it has, which the calls before it have made 200 contacts,
/// with what every request reads beside.
const TINY_READS_MAX: u64 = 650;

/// Rows a call of the grown company may look at: its contacts, tickets and messages a few times over, its directory as
/// often as it is loaded anew meanwhile, and less than the huge one has.
const GROWN_READS_MAX: u64 = 9_000;

struct World {
    app: OwnApp,
    plans: Plans,
    /// What calls of which company read, where that was too much.
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
        // One of many asks by the clock as well.
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

    /// Makes a call, and holds what its statements read against what they may.
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

    /// The same of a request that somebody else makes in the company.
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

    /// Holds what the steps read that a deletion has left, until the last of them.
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
        // What memory answers asks nothing.
        assert!(self.seen * 2 > self.judged, "of {} calls only {} were seen to ask anything", self.judged, self.seen);
        assert!(self.too_much.is_empty(), "{}\n{} calls", self.too_much.join("\n"), self.too_much.len());
        self.app.stop().await;
    }
}
