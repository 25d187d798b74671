//! The spans of requests, as a collector receives them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_web::dev::ServerHandle;
use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpResponse, HttpServer};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use parking_lot::Mutex;
use prost::Message;
use reqwest::Method;
use serde_json::json;

use crate::process::{Process, with_database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Reply, eventually};

/// A collector: remembers what it is sent.
struct Collector {
    url: String,
    calls: Arc<Mutex<Vec<Bytes>>>,
    server: ServerHandle,
}

impl Collector {
    fn start() -> Self {
        let calls = Arc::<Mutex<Vec<Bytes>>>::default();
        let shared = Data::from(calls.clone());
        let receive = async |calls: Data<Mutex<Vec<Bytes>>>, body: Bytes| {
            calls.lock().push(body);
            HttpResponse::Ok().content_type("application/x-protobuf").finish()
        };
        let app = move || App::new().app_data(shared.clone()).route("/v1/traces", web::post().to(receive));
        let server = HttpServer::new(app).workers(1).disable_signals().shutdown_timeout(0);
        let server = server.bind(("127.0.0.1", 0)).expect("a free port");
        let url = format!("http://{}", server.addrs()[0]);
        let server = server.run();
        let handle = server.handle();
        actix_web::rt::spawn(server);
        Self { url, calls, server: handle }
    }

    fn spans(&self) -> Vec<Span> {
        let calls = self.calls.lock();
        let sent = calls.iter().map(|call| ExportTraceServiceRequest::decode(call.clone()).expect("protobuf"));
        let resources = sent.flat_map(|sent| sent.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    async fn stop(self) -> Vec<Bytes> {
        self.server.stop(false).await;
        std::mem::take(&mut *self.calls.lock())
    }
}

fn attribute(span: &Span, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == name)?;
    Some(match found.value.as_ref()?.value.as_ref()? {
        Any::StringValue(text) => text.clone(),
        Any::IntValue(number) => number.to_string(),
        other => panic!("{name} is {other:?}"),
    })
}

#[actix_web::test]
async fn a_request_is_a_span_with_its_route_status_and_company_and_nothing_that_was_said() {
    const BODY: &str = "SecretOfTheBody";
    const NUMBER: &str = "5511987654321";
    const SEARCHED: &str = "SecretOfTheQuery";
    let collector = Collector::start();
    let folder = prepared_folder();
    let mut process = Process::try_serve(folder.path(), &["--otlp-endpoint", &collector.url]).expect("it starts");
    let company = with_database(folder.path(), async |db| {
        let company = Company::create(db, "Acme").await;
        let poison = "alter table tags add check (name not like '%Poison%' or name::int > 0)";
        sqlx::query(poison).execute(db).await.expect("constraint");
        company
    })
    .await;
    let api = Api::new(process.address, &company.key);
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    let request_with_id = |method, path: &str, id: &'static str| api.request(method, path).header("x-request-id", id);

    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let listed =
        request_with_id(Method::GET, &format!("/tickets?search={SEARCHED}"), "list-one").header("traceparent", parent);
    assert_eq!(Reply::of(listed).await.status, 200);
    let body = json!({"channelId": company.phone, "number": NUMBER, "name": NUMBER, "type": "text", "body": BODY});
    let job = Reply::of(request_with_id(Method::POST, "/messages", "send-two").json(&body)).await;
    let ticket = api.get(&format!("/messages/jobs/{}", job.data(202)["jobId"].as_str().expect("job"))).await;
    let ticket = ticket.data(200)["ticketId"].clone();
    assert_eq!(Reply::of(request_with_id(Method::GET, &format!("/tickets/{ticket}"), "show-three")).await.status, 200);
    let poison = json!({"name": format!("{BODY} Poison"), "color": "#336699"});
    assert_eq!(Reply::of(request_with_id(Method::POST, "/tags", "broken-four").json(&poison)).await.status, 500);
    let stranger = api.with_key("sk_live_SecretOfTheWrongToken00000000000");
    let refused = stranger.request(Method::GET, "/tickets").header("x-request-id", "stranger-five");
    assert_eq!(Reply::of(refused).await.status, 401);
    let nowhere = api.anonymous(Method::GET, &format!("/{SEARCHED}")).header("x-request-id", "nowhere-six");
    assert_eq!(Reply::of(nowhere).await.status, 404);

    process.terminate();
    assert!(process.wait().success());
    let spans = collector.spans();
    let span_of = |id: &str| {
        let found: Vec<&Span> =
            spans.iter().filter(|span| attribute(span, "hotline.request.id").as_deref() == Some(id)).collect();
        assert_eq!(found.len(), 1, "spans of {id}");
        found[0]
    };
    let own_company = Some(company.id.to_string());
    for (id, method, route, status, company) in [
        ("list-one", "GET", "/api/v1/tickets", "200", &own_company),
        ("send-two", "POST", "/api/v1/messages", "202", &own_company),
        ("show-three", "GET", "/api/v1/tickets/{ticketId}", "200", &own_company),
        ("broken-four", "POST", "/api/v1/tags", "500", &own_company),
        ("stranger-five", "GET", "/api/v1/tickets", "401", &None),
    ] {
        let span = span_of(id);
        assert_eq!(span.name, format!("{method} {route}"), "{id}");
        assert_eq!(span.kind(), SpanKind::Server, "{id}");
        assert_eq!(attribute(span, "http.request.method").as_deref(), Some(method), "{id}");
        assert_eq!(attribute(span, "http.route").as_deref(), Some(route), "{id}");
        assert_eq!(attribute(span, "http.response.status_code").as_deref(), Some(status), "{id}");
        assert_eq!(attribute(span, "hotline.company.id"), *company, "{id}");
        let failed = span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
        assert_eq!(failed, status == "500", "{id}");
        assert!(span.end_time_unix_nano > span.start_time_unix_nano, "{id}");
    }
    let trace_of = |id: &str| span_of(id).trace_id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(trace_of("list-one"), trace, "the span is not part of its caller's trace");
    assert_ne!(trace_of("send-two"), trace);
    assert_eq!(attribute(span_of("nowhere-six"), "hotline.company.id"), None);

    let allowed =
        ["http.request.method", "http.route", "http.response.status_code", "hotline.request.id", "hotline.company.id"];
    for span in &spans {
        assert!(span.attributes.iter().all(|attribute| allowed.contains(&attribute.key.as_str())), "{span:?}");
        assert!(span.events.is_empty(), "a log line was exported with a span: {span:?}");
    }
    for call in collector.stop().await {
        let sent = String::from_utf8_lossy(&call).into_owned();
        for secret in [BODY, NUMBER, SEARCHED, "SecretOfTheWrongToken", &company.key] {
            assert!(!sent.contains(secret), "`{secret}` was exported");
        }
    }
    let log = process.log();
    assert!(log.contains("all changes are written") && !log.contains("could not export"), "{log}");
}

#[actix_web::test]
async fn an_unreachable_collector_hinders_nothing_and_an_invalid_endpoint_is_refused() {
    let folder = prepared_folder();
    // No one listens at the port any more.
    let stopped = Collector::start();
    let url = stopped.url.clone();
    stopped.stop().await;
    let mut process = Process::try_serve(folder.path(), &["--otlp-endpoint", &url]).expect("it starts");
    let company = with_database(folder.path(), async |db| Company::create(db, "Acme").await).await;
    let api = Api::new(process.address, &company.key);
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    process.terminate();
    assert!(process.wait().success());

    for invalid in ["collector:4318", "ftp://collector", "http://collector/?a=b"] {
        let refused = crate::process::run(folder.path(), &["serve", "--otlp-endpoint", invalid]);
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && stderr.contains("--otlp-endpoint"), "{invalid}: {stderr}");
    }
}

#[actix_web::test]
async fn an_endless_response_of_the_collector_is_not_read() {
    /// Bytes of the answer that are sent at once.
    const CHUNK: usize = 64 * 1024;
    let read = Arc::new(AtomicUsize::new(0));
    let counted = Data::from(read.clone());
    let endless = async |read: Data<AtomicUsize>, _: Bytes| {
        let chunks = futures_util::stream::repeat_with(move || {
            read.fetch_add(CHUNK, Ordering::Relaxed);
            Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; CHUNK]))
        });
        HttpResponse::Ok().content_type("application/x-protobuf").streaming(chunks)
    };
    let app = move || App::new().app_data(counted.clone()).route("/v1/traces", web::post().to(endless));
    let server = HttpServer::new(app).workers(1).disable_signals().shutdown_timeout(0);
    let server = server.bind(("127.0.0.1", 0)).expect("a free port");
    let url = format!("http://{}", server.addrs()[0]);
    let server = server.run();
    let handle = server.handle();
    actix_web::rt::spawn(server);

    let folder = prepared_folder();
    let mut process = Process::try_serve(folder.path(), &["--otlp-endpoint", &url]).expect("it starts");
    let company = with_database(folder.path(), async |db| Company::create(db, "Acme").await).await;
    let api = Api::new(process.address, &company.key);
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    process.terminate();
    assert!(process.wait().success());
    let log = process.log();
    assert!(!log.contains("could not export"), "{log}");
    // The service closes the connection: only what its buffers hold was sent.
    let read = read.load(Ordering::Relaxed);
    assert!((1..16 << 20).contains(&read), "{read} bytes were taken");
    handle.stop(false).await;
}
