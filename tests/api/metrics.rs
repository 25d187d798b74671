//! The metrics at `/metrics`.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use hotline::service::Service;
use hotline_actors::{EngineOptions, clock};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::metrics::ScrapedMetrics;
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Reply, TestDatabase, empty_folder, eventually};

/// A service with metrics, outside a cluster: a member has no journal to measure.
async fn start_with_metrics() -> OwnApp {
    let defaults = TestOptions::default();
    // A year, so that no visitor's session ends while a test moves the clock.
    let session_idle_after = Duration::from_secs(365 * 24 * 3600);
    let engine = EngineOptions { session_idle_after, ..defaults.engine.clone() };
    OwnApp::start_with(TestOptions { metrics: true, member: false, engine, ..defaults }).await
}

fn address(app: &OwnApp) -> SocketAddr {
    app.service.metrics_listener.as_ref().expect("metrics are served").address
}

async fn metrics(app: &OwnApp) -> ScrapedMetrics {
    ScrapedMetrics::of(address(app)).await
}

fn requests_total(route: &str, method: &str, status: u16) -> String {
    format!("hotline_http_requests_total{{route=\"{route}\",method=\"{method}\",status=\"{status}\"}}")
}

#[actix_web::test]
async fn a_request_is_counted_under_its_route_its_method_and_its_status() {
    let app = start_with_metrics().await;
    let began = Instant::now();
    let before = metrics(&app).await;
    assert_eq!(before.get(&requests_total("/api/v1/tickets", "GET", 200)), None);
    for _ in 0..3 {
        app.api.get("/tickets?status=open").await.data(200);
    }
    let ticket = app.ticket("5511900000001").await;
    app.api.get(&format!("/tickets/{ticket}")).await.data(200);
    app.api.get("/tickets/999999").await.error(404, "ERR_API_NOT_FOUND");
    app.api.get("/tickets/nonsense").await;
    app.api.get("/no-such-route").await.error(404, "ERR_API_NOT_FOUND");
    Reply::of(app.api.request(Method::PATCH, "/tickets")).await.error(405, "ERR_API_METHOD_NOT_ALLOWED");
    Reply::of(app.api.anonymous(Method::GET, "/health/live")).await;

    let after = metrics(&app).await;
    assert_eq!(after.value(&requests_total("/api/v1/tickets", "GET", 200)), 3.0);
    assert_eq!(after.value(&requests_total("/api/v1/tickets", "POST", 201)), 1.0);
    assert_eq!(after.value(&requests_total("/api/v1/tickets", "other", 405)), 1.0);
    assert_eq!(after.value(&requests_total("/api/v1/tickets/{ticketId}", "GET", 200)), 1.0);
    assert_eq!(after.value(&requests_total("/api/v1/tickets/{ticketId}", "GET", 404)), 2.0);
    assert_eq!(after.value(&requests_total("none", "GET", 404)), 1.0);
    assert_eq!(after.value(&requests_total("/health/live", "GET", 200)), 1.0);
    let labels = "{route=\"/api/v1/tickets\",method=\"GET\"}";
    assert_eq!(after.value(&format!("hotline_http_request_duration_seconds_count{labels}")), 3.0);
    let sum = after.value(&format!("hotline_http_request_duration_seconds_sum{labels}"));
    assert!(sum > 0.0 && sum < began.elapsed().as_secs_f64(), "{sum}");
    let bounds = after.with("duration_seconds_bucket{le=\"0.0005\",route=\"/api/v1/tickets\",method=\"GET\"}");
    assert_eq!(bounds.len(), 1);
    // No label contains an id, a query or a token.
    assert!(after.with("999999").is_empty() && after.with("status=open").is_empty());
    app.stop().await;
}

#[actix_web::test]
async fn refusals_and_replays_are_counted_under_their_route() {
    let app = start_with_metrics().await;
    let unknown_token = app.api.with_key("sk_live_00000000000000000000000000000000");
    unknown_token.get("/tickets").await.error(401, "ERR_API_UNAUTHORIZED");
    Reply::of(app.api.anonymous(Method::GET, "/api/v1/tickets/7")).await.error(401, "ERR_API_UNAUTHORIZED");
    let create = || {
        let request = app.api.request(Method::POST, "/tags").header("idempotency-key", "order-7");
        request.json(&json!({"name": "vip", "color": "#336699"}))
    };
    let first = Reply::of(create()).await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
    for _ in 0..2 {
        let again = Reply::of(create()).await;
        assert_eq!(again.headers["idempotent-replay"], "true");
    }
    let seen = metrics(&app).await;
    assert_eq!(seen.value("hotline_http_unauthorized_total"), 2.0);
    assert_eq!(seen.value(&requests_total("/api/v1/tickets", "GET", 401)), 1.0);
    assert_eq!(seen.value(&requests_total("/api/v1/tickets/{ticketId}", "GET", 401)), 1.0);
    assert_eq!(seen.value("hotline_http_idempotent_replays_total"), 2.0);
    assert_eq!(seen.value(&requests_total("/api/v1/tags", "POST", 201)), 3.0);
    assert_eq!(seen.value("hotline_http_rate_limited_total"), 0.0);
    assert_eq!(seen.value("hotline_http_internal_errors_total"), 0.0, "an internal error was counted");

    sqlx::query("update companies set rate_per_minute = 1").execute(&app.db).await.expect("rate");
    eventually("the new rate applies", || async { app.api.get("/channels").await.status == 429 }).await;
    app.api.get("/channels").await.error(429, "ERR_API_RATE_LIMITED");
    let seen = metrics(&app).await;
    let limited = seen.value("hotline_http_rate_limited_total");
    assert!(limited >= 2.0, "{limited}");
    assert_eq!(seen.value(&requests_total("/api/v1/channels", "GET", 429)), limited);
    app.stop().await;
}

#[actix_web::test]
async fn hot_actors_and_the_changes_they_wrote_are_counted() {
    let app = start_with_metrics().await;
    let hot = |kind: &str| format!("hotline_actors_hot{{kind=\"{kind}\"}}");
    let cold = metrics(&app).await;
    for kind in ["tickets", "sessions", "channels", "schedules", "campaigns"] {
        assert_eq!(cold.value(&hot(kind)), 0.0, "{kind}");
        assert_eq!(cold.value(&format!("hotline_actor_commands_waiting{{kind=\"{kind}\"}}")), 0.0, "{kind}");
    }
    let ticket = app.ticket("5511900000001").await.0;
    app.ticket("5511900000002").await;
    app.session("visitor").await;
    app.api.post("/messages", json!({"ticketId": ticket, "type": "text", "body": "hello"})).await.data(202);
    let warm = metrics(&app).await;
    assert_eq!(warm.value(&hot("tickets")), 2.0);
    assert_eq!(warm.value(&hot("sessions")), 1.0);
    assert_eq!(warm.value(&hot("channels")), 1.0);
    assert!(warm.value("hotline_journal_records_total") >= 3.0);
    assert!(warm.value("hotline_journal_syncs_total") >= 1.0);

    clock::advance(TestOptions::default().engine.idle_after);
    eventually("the actors are flushed and retire", || async {
        // An actor that is used meanwhile retires a little later.
        clock::advance(Duration::from_secs(1));
        let seen = metrics(&app).await;
        seen.value(&hot("tickets")) == 0.0
            && seen.value(&hot("sessions")) == 0.0
            && seen.value("hotline_flush_pending_entries") == 0.0
    })
    .await;
    let after = metrics(&app).await;
    assert_eq!(after.value("hotline_flush_lag_seconds"), 0.0);
    let written = after.value("hotline_changes_written_total");
    assert!(written >= 3.0, "{written}");
    assert_eq!(after.value("hotline_flush_changes_sum"), written);
    assert_eq!(after.value("hotline_flush_changes_count"), after.value("hotline_flush_duration_seconds_count"));
    for kind in ["tickets", "sessions", "channels", "schedules", "campaigns"] {
        assert_eq!(after.value(&format!("hotline_actor_commands_waiting{{kind=\"{kind}\"}}")), 0.0, "{kind}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn the_database_the_journal_and_the_process_are_measured() {
    let app = start_with_metrics().await;
    let seen = metrics(&app).await;
    assert_eq!(seen.value("hotline_database_up"), 1.0);
    let open = seen.value("hotline_database_connections");
    assert!(open >= 1.0 && open <= seen.value("hotline_database_connections_limit"), "{open}");
    assert!(seen.value("hotline_database_connections_idle") <= open);
    let bytes = seen.value("hotline_journal_bytes");
    assert!(bytes > 0.0 && bytes <= seen.value("hotline_journal_limit_bytes"), "{bytes}");
    assert_eq!(seen.value("hotline_journal_limit_bytes"), TestOptions::default().journal.max_bytes as f64);
    assert!(seen.value("hotline_journal_segments") >= 1.0);
    assert_eq!(seen.value("hotline_journal_queued_records"), 0.0);
    assert_eq!(seen.value("hotline_rows_rejected_total"), 0.0);
    assert_eq!(seen.value("hotline_flush_failures_total"), 0.0);
    assert!(seen.value("hotline_process_resident_memory_bytes") > 1e6);
    let version = format!("hotline_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(seen.value(&version), 1.0);
    eventually("the uptime grows", || async {
        metrics(&app).await.value("hotline_uptime_seconds") > seen.value("hotline_uptime_seconds")
    })
    .await;
    app.stop().await;
}

#[actix_web::test]
async fn metrics_have_a_listener_of_their_own_that_serves_nothing_else() {
    let app = start_with_metrics().await;
    assert_eq!(Reply::of(app.api.anonymous(Method::GET, "/metrics")).await.status, 404);
    let listener = address(&app);
    let client = hotline::tls::client().build().expect("client");
    for (method, path) in [
        (Method::GET, "/"),
        (Method::GET, "/metrics/"),
        (Method::GET, "/health/live"),
        (Method::GET, "/api/v1/tickets"),
        (Method::POST, "/metrics"),
    ] {
        let reply = client.request(method.clone(), format!("http://{listener}{path}")).send().await.expect("an answer");
        assert_eq!(reply.status(), 404, "{method} {path}");
        assert!(reply.bytes().await.expect("a body").is_empty(), "{method} {path}");
    }
    app.stop().await;
    assert!(reqwest::get(format!("http://{listener}/metrics")).await.is_err(), "it is served after the stop");
}

#[actix_web::test]
async fn without_the_option_no_metrics_are_served() {
    let app = OwnApp::start().await;
    assert!(app.service.metrics_listener.is_none());
    assert_eq!(Reply::of(app.api.anonymous(Method::GET, "/metrics")).await.status, 404);
    app.stop().await;
}

#[actix_web::test]
async fn a_start_with_a_metrics_address_in_use_fails_and_names_it() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("address");
    let database = TestDatabase::create().await;
    let folder = empty_folder();
    let mut settings = TestOptions::default().settings(&folder, database.options.clone());
    settings.metrics_listen = Some(address);
    let error = Service::start(settings).await.err().expect("the start fails").to_string();
    assert!(error.contains(&address.to_string()), "{error}");
    assert!(!folder.path().join("journal").exists(), "the journal was opened");
    database.drop().await;
}
