//! The work of one company within its rate limit does not slow another: while a heavy company repeats each kind of
//! request, a neighbour sends small ones.
//!
//! `make neighbours` measures a release: the neighbour's 99th percentile at most doubles, compared with a machine that
//! is as busy. The test, the service and PostgreSQL share the processors, and on a busy machine any request waits for
//! its turn on one: so the comparison is with a neighbour beside threads that only compute. The figures of an idle
//! machine are printed too.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use hotline_persistence::Database;
use hotline_persistence::error::STATEMENT_TIME_MAX;
use hotline_persistence::pool::request_shares;
use reqwest::{Method, StatusCode};
use serde_json::json;
use sqlx::AssertSqlSafe;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::steps::lingering;
use crate::support::form::Form;
use crate::support::process::is_other_binary;
use crate::support::{Api, Company, OwnApp, Reply, TestApp, eventually};

/// Contacts of the heavy company: enough that a deep page and a search take a while.
const CONTACTS: i64 = 20_000;

/// Requests of the heavy company that are under way at a time.
const CONCURRENT_REQUESTS: usize = 24;

/// Rounds, each with three parts: idle, beside threads that compute, beside the heavy company. The median round counts.
const ROUNDS: usize = 3;

/// Requests of the neighbour in each part, one after the other.
const NEIGHBOUR_REQUESTS: usize = 240;

/// A 99th percentile of the neighbour that always passes if the service is built without optimization: there, a short
/// request takes tens of milliseconds now and then, and an unfair queue takes seconds.
const FLOOR_UNOPTIMIZED: Duration = Duration::from_millis(400);

/// The largest ratio of the neighbour's 99th percentile beside the heavy company to that beside threads that compute.
const FACTOR_MAX: u32 = 2;

/// The niceness of the threads that send the heavy company's requests: they stand for other machines, and must not take
/// processor time from what is measured.
const CLIENT_NICE: i32 = 10;

/// The kinds of request that the heavy company repeats.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Import,
    Search,
    DeepPage,
    HeavyJson,
    Upload,
}

const KINDS: [Kind; 5] = [Kind::Import, Kind::Search, Kind::DeepPage, Kind::HeavyJson, Kind::Upload];

/// The heavy company: its key, and the bodies of its requests.
struct HeavyCompany {
    address: SocketAddr,
    key: String,
    imports: Vec<Bytes>,
    json: Bytes,
    form: Bytes,
}

impl HeavyCompany {
    fn new(address: SocketAddr, company: &Company) -> Self {
        let import = |part: usize| {
            let row = |k: usize| {
                json!({"name": format!("Import {k}"), "number": format!("5511{:09}", part * 1000 + k),
                    "email": format!("i{k}.{part}@x.example"), "code": format!("{part} {k}"), "headline": "x".repeat(200)})
            };
            Bytes::from(json!({"contacts": (0..1000).map(row).collect::<Vec<_>>()}).to_string())
        };
        // As many JSON values as fit in a body; their field is unknown to the endpoint.
        let json = format!("{{\"name\": \"\", \"x\": [{}]}}", vec!["{\"a\":[[1]]}"; 85_000].join(","));
        let file = [b"%PDF-1.4\n".as_slice(), &vec![b'x'; 2 << 20]].concat();
        let form =
            Form::default().text("type", "media").text("channelId", company.phone).text("number", "5511900000001");
        Self {
            address,
            key: company.key.clone(),
            imports: (0..CONCURRENT_REQUESTS).map(import).collect(),
            json: Bytes::from(json),
            form: Bytes::from(form.file("a.pdf", "application/pdf", &file).bytes()),
        }
    }

    /// Sends one request. Returns the pause after which to retry if it was refused, or `None` if it was served.
    async fn send(&self, api: &Api, kind: Kind, worker: usize) -> Option<Duration> {
        let request = match kind {
            Kind::Import => with_json(api, "/contacts/import", &self.imports[worker]),
            Kind::Search => api.request(Method::GET, "/tickets?search=nobody%20is%20called%20this"),
            Kind::DeepPage => api.request(Method::GET, "/contacts?page=200&origin=api"),
            Kind::HeavyJson => with_json(api, "/tags", &self.json),
            Kind::Upload => {
                let request = api.request(Method::POST, "/messages").header("content-type", Form::content_type());
                request.body(self.form.clone())
            }
        };
        let reply = Reply::of(request).await;
        let expected: &[u16] = match kind {
            Kind::Import | Kind::Search | Kind::DeepPage => &[200, 503],
            Kind::HeavyJson => &[422, 503],
            Kind::Upload => &[202, 503],
        };
        assert!(expected.contains(&reply.status.as_u16()), "{kind:?}: {} {}", reply.status, reply.body);
        (reply.status == StatusCode::SERVICE_UNAVAILABLE).then(|| {
            let seconds = reply.headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
            Duration::from_secs(seconds.unwrap_or_else(|| panic!("{kind:?} has no Retry-After")))
        })
    }

    /// Sends requests until `over`. Runs on a thread of its own, so that the neighbour waits only for the service.
    /// After a refusal, waits for the `Retry-After` of the answer. Returns how many requests were served, and refused.
    fn send_until(&self, kind: Kind, over: &watch::Receiver<bool>) -> (usize, usize) {
        // On Linux, this changes the niceness of this thread only.
        rustix::process::nice(CLIENT_NICE).expect("a thread may lower its priority");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let api = Api::new(self.address, &self.key);
        let worker = async |worker| {
            let (mut served, mut refused) = (0, 0);
            let mut over = over.clone();
            while !*over.borrow() {
                let Some(pause) = self.send(&api, kind, worker).await else {
                    served += 1;
                    continue;
                };
                refused += 1;
                // Until the part or the pause is over.
                let _ = timeout(pause, over.wait_for(|is_over| *is_over)).await;
            }
            (served, refused)
        };
        let counts = runtime.block_on(join_all((0..CONCURRENT_REQUESTS).map(worker)));
        counts.into_iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
    }
}

fn with_json(api: &Api, path: &str, body: &Bytes) -> reqwest::RequestBuilder {
    api.request(Method::POST, path).header("content-type", "application/json").body(body.clone())
}

/// One request of the neighbour: one of two lists, or a new row. Returns its time and status.
async fn send_small(api: &Api, number: usize) -> (Duration, StatusCode) {
    let before = Instant::now();
    let reply = match number % 3 {
        0 => api.get("/contacts?perPage=10").await,
        1 => api.get("/tickets?perPage=10").await,
        _ => api.post("/quick-messages", json!({"shortcut": format!("s{number}"), "message": "Hello"})).await,
    };
    (before.elapsed(), reply.status)
}

/// The 99th percentile of the neighbour's requests, and how many were refused. `sent` counts all, for unique names.
async fn percentile(api: &Api, sent: &mut usize) -> (Duration, usize) {
    let mut times = Vec::with_capacity(NEIGHBOUR_REQUESTS);
    let mut refused = 0;
    for _ in 0..NEIGHBOUR_REQUESTS {
        *sent += 1;
        let (time, status) = send_small(api, *sent).await;
        refused += usize::from(!status.is_success());
        times.push(time);
    }
    times.sort_unstable();
    (times[NEIGHBOUR_REQUESTS * 99 / 100], refused)
}

/// The 99th percentile beside threads that keep every processor busy without using the service.
async fn percentile_beside_computing(api: &Api, sent: &mut usize) -> Duration {
    let over = Arc::new(AtomicBool::new(false));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads: Vec<_> = (0..processors)
        .map(|_| {
            let over = over.clone();
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    let (time, _) = percentile(api, sent).await;
    over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("the thread ends");
    }
    time
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[actix_web::test]
async fn heavy_work_of_one_company_does_not_slow_another_measured() {
    let app = TestApp::shared().await;
    let (other, _) = app.another_company().await;
    let (id, phone) = (other.id, other.phone);
    for statement in [
        format!(
            "insert into contacts (company_id, name, number, origin) select {id}, 'Some ' || k, (700000000 + k)::text, 'api'
             from generate_series(1, {CONTACTS}) k"
        ),
        format!(
            "insert into tickets (company_id, id, channel_id, contact_id, status, creation_source, unread_count,
                 reopen_count, opened_at, created_at, updated_at)
             select {id}, 1000000 + c.id, {phone}, c.id, 'closed', 'api', 0, 0, now(), now(), now()
             from contacts c where c.company_id = {id}"
        ),
    ] {
        sqlx::query(AssertSqlSafe(statement)).execute(&app.db).await.expect("rows");
    }
    let heavy = Arc::new(HeavyCompany::new(app.address, &other));
    let mut sent = 0;
    // A round that does not count warms everything up.
    percentile(&app.api, &mut sent).await;

    let floor = if is_other_binary() { Duration::ZERO } else { FLOOR_UNOPTIMIZED };
    let mut failures = Vec::new();
    for kind in KINDS {
        let (mut idle, mut computing, mut beside_heavy) = (Vec::new(), Vec::new(), Vec::new());
        let (mut neighbour_refused, mut heavy_served, mut heavy_refused) = (0, 0, 0);
        for _ in 0..ROUNDS {
            let (time, refused) = percentile(&app.api, &mut sent).await;
            assert_eq!(refused, 0, "the neighbour was refused on an idle machine");
            idle.push(time);
            computing.push(percentile_beside_computing(&app.api, &mut sent).await);
            let (over, over_receiver) = watch::channel(false);
            let sending = std::thread::spawn({
                let heavy = heavy.clone();
                move || heavy.send_until(kind, &over_receiver)
            });
            let (time, refused) = percentile(&app.api, &mut sent).await;
            beside_heavy.push(time);
            neighbour_refused += refused;
            over.send_replace(true);
            let counts = actix_web::rt::task::spawn_blocking(move || sending.join()).await.expect("joined");
            let counts = counts.expect("the heavy company is answered");
            heavy_served += counts.0;
            heavy_refused += counts.1;
        }
        let (idle, computing, beside_heavy) = (median(idle), median(computing), median(beside_heavy));
        let line = format!(
            "{kind:?}: p99 {idle:.1?} idle, {computing:.1?} beside computing, {beside_heavy:.1?} beside the heavy \
             company, {neighbour_refused} refused; the heavy company: {heavy_served} served, {heavy_refused} refused"
        );
        println!("{line}");
        assert!(heavy_served > 0, "{line}: the heavy company was never served");
        let is_slowed = beside_heavy > (idle.max(computing) * FACTOR_MAX).max(floor);
        if neighbour_refused > 0 || is_slowed {
            failures.push(line);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
    app.stop().await;
}

#[actix_web::test]
async fn an_abandoned_statement_counts_against_its_share_until_the_server_has_ended_it() {
    let app = OwnApp::start().await;
    let store = app.service.app.engine.store();
    let (id, share) = (app.company.id, request_shares().company_heavy);
    let count_sleeping = async || {
        // A statement is active already while it is prepared; dropped then, it is never sent.
        let sleeping = "select count(*) from pg_stat_activity
            where datname = current_database() and wait_event = 'PgSleep' and query = 'select pg_sleep(60)'";
        sqlx::query_scalar::<_, i64>(sleeping).fetch_one(&app.db).await.expect("a count")
    };
    let heavy = async || sqlx::query("select 1").execute(store.db(id).heavy()).await;
    loop {
        let began = Instant::now();
        for number in 1..=i64::try_from(share).expect("a count") {
            tokio::select! {
                _ended = sqlx::query("select pg_sleep(60)").execute(store.db(id).heavy()) => {}
                () = eventually("all statements so far sleep", || async { count_sleeping().await >= number }) => {}
            }
        }
        let refused = heavy().await;
        let is_in_time = began.elapsed() < STATEMENT_TIME_MAX;
        sqlx::query("select 1").execute(store.db(id)).await.expect("a statement that is not heavy is served meanwhile");
        eventually("the server has ended the statements", || async { count_sleeping().await == 0 }).await;
        // On a slow machine the first statement may reach its time limit before the last one begins.
        if is_in_time {
            refused.expect_err("the share is used up until the server has ended the statements");
            break;
        }
    }
    eventually("the share is free again", || async { heavy().await.is_ok() }).await;
    app.stop().await;
}

#[actix_web::test]
async fn the_largest_import_is_accepted_and_a_larger_one_names_the_limit() {
    // A service of its own, where no other test imports at the same time.
    let app = OwnApp::start_with(lingering()).await;
    // Fifteen kilobytes a row.
    let row = |k: usize| json!({"name": format!("Long {k}"), "code": format!("{k}"), "headline": "x".repeat(7_900), "sourceUrl": "y".repeat(7_900)});
    let full = json!({"contacts": (0..1000).map(row).collect::<Vec<_>>()}).to_string();
    assert!((15 << 20..16 << 20).contains(&full.len()), "{} bytes", full.len());
    let post = |body: String| {
        app.api.request(Method::POST, "/contacts/import").header("content-type", "application/json").body(body)
    };
    let report = app.api.retry_while_busy(|| post(full.clone())).await;
    let mut shown = report.data(200).clone();
    assert_eq!(shown["contacts"].take().as_array().expect("contacts").len(), 1000);
    assert_eq!(shown, json!({"created": 1000, "updated": 0, "skipped": 0, "errors": [], "contacts": null}));
    // With an idempotency key, the body is read before its handler is known.
    let again = app.api.retry_while_busy(|| post(full.clone()).header("idempotency-key", "large")).await;
    assert_eq!(again.data(200)["updated"], 1000);
    let larger = Reply::of(post(" ".repeat((16 << 20) + 1))).await;
    larger.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
    assert_eq!(larger.body["error"]["message"], "the body is larger than 16777216 bytes");
    // Other endpoints keep their limit.
    let tag = app
        .api
        .request(Method::POST, "/tags")
        .header("content-type", "application/json")
        .body(" ".repeat((1 << 20) + 1));
    Reply::of(tag).await.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
    app.stop().await;
}
