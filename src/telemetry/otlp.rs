//! The export of requests' spans to an OpenTelemetry collector, as protobuf over HTTP.
//!
//! A span is exported with only the attributes in [`EXPORTED_ATTRIBUTES`], never with other fields. The exporter's
//! thread collects and sends spans. When the collector is slow or unavailable, spans are dropped, and no request waits.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;

use actix_web::http::header::HeaderMap;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanKind, Status, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider, SpanData, SpanExporter as Export,
};
use tokio::runtime::Handle;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, reload};
use url::Url;

use super::{LogFormat, RequestSummary, line_layer, record_started};
use crate::tls;

/// Maximum number of spans in the queue, about 1 KiB each; further ones are dropped.
const QUEUE_MAX: usize = 8192;

/// How often the queue is sent, unless a batch is full earlier.
const SEND_INTERVAL: Duration = Duration::from_secs(2);

/// Timeout of a call to the collector.
const SEND_TIME_MAX: Duration = Duration::from_secs(10);

/// Maximum size of a collector's response, which says how many spans it rejected, and why. A longer one is ignored.
const RESPONSE_BYTES_MAX: usize = 16 * 1024;

/// How long the shutdown waits for the last call.
const STOP_TIME_MAX: Duration = Duration::from_secs(3);

const METHOD: &str = "http.request.method";
const ROUTE: &str = "http.route";
const STATUS: &str = "http.response.status_code";
const REQUEST: &str = "hotline.request.id";
const COMPANY: &str = "hotline.company.id";

/// The attributes that are exported with a span.
const EXPORTED_ATTRIBUTES: [&str; 5] = [METHOD, ROUTE, STATUS, REQUEST, COMPANY];

/// The header with the caller's trace.
const TRACE_PARENT: &str = "traceparent";

static EXPORT: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Starts logging, and the export to this URL.
pub(super) fn start(format: LogFormat, filter: EnvFilter, endpoint: &Url) -> Result<(), String> {
    let provider = provider(endpoint)?;
    let spans = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("hotline"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        // Log lines are not exported.
        .with_filter(filter_fn(|metadata| metadata.is_span() && metadata.target().starts_with("hotline")));
    // The filter applies to the lines, and not to the exported spans.
    let (filter, handle) = reload::Layer::new(filter);
    let result = tracing_subscriber::registry().with(line_layer(format).with_filter(filter)).with(spans).try_init();
    if result.is_ok() {
        record_started(format, handle);
        let _ = EXPORT.set(provider);
    }
    Ok(())
}

fn provider(endpoint: &Url) -> Result<SdkTracerProvider, String> {
    let error_text = |error: &dyn std::fmt::Display| format!("--otlp-endpoint {endpoint}: {error}");
    let http = tls::client().timeout(SEND_TIME_MAX).build().map_err(|error| error_text(&error))?;
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_http_client(CollectorClient { http, runtime: Handle::current() })
        .with_endpoint(format!("{}/v1/traces", endpoint.as_str().trim_end_matches('/')))
        .with_timeout(SEND_TIME_MAX)
        .build()
        .map_err(|error| error_text(&error))?;
    let batch =
        BatchConfigBuilder::default().with_max_queue_size(QUEUE_MAX).with_scheduled_delay(SEND_INTERVAL).build();
    let processor = BatchSpanProcessor::builder(ReducedExporter(exporter)).with_batch_config(batch).build();
    let resource = Resource::builder()
        .with_service_name("hotline")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    Ok(SdkTracerProvider::builder().with_span_processor(processor).with_resource(resource.build()).build())
}

/// Exports the remaining spans.
pub(super) async fn stop() {
    let Some(provider) = EXPORT.get() else { return };
    // The shutdown blocks until the exporter's thread is done, which needs this runtime to send.
    let result = tokio::task::spawn_blocking(|| provider.shutdown_with_timeout(STOP_TIME_MAX)).await;
    if !matches!(result, Ok(Ok(()))) {
        tracing::warn!("could not export the last spans");
    }
}

pub(super) fn exported_span(span: &Span, headers: &HeaderMap) -> Option<Span> {
    EXPORT.get()?;
    if headers.contains_key(TRACE_PARENT) {
        let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(headers));
        // Fails only for a span that has already started.
        let _ = span.set_parent(parent);
    }
    Some(span.clone())
}

pub(super) fn set_attributes(span: &Span, summary: &RequestSummary<'_>) {
    let RequestSummary { id, method, route, status, company } = *summary;
    span.set_attribute(REQUEST, id.to_owned());
    span.set_attribute(METHOD, method.to_owned());
    span.set_attribute(ROUTE, route.to_owned());
    span.set_attribute(STATUS, i64::from(status));
    if let Some(company) = company {
        span.set_attribute(COMPANY, company);
    }
    if status >= 500 {
        span.set_status(Status::error(""));
    }
}

/// Reads the caller's trace from the headers.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}

/// Exports spans named after their method and route, with only the attributes in [`EXPORTED_ATTRIBUTES`].
#[derive(Debug)]
struct ReducedExporter<E>(E);

impl<E: Export> Export for ReducedExporter<E> {
    fn export(&self, mut batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        batch.iter_mut().for_each(reduce);
        self.0.export(batch)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

fn reduce(span: &mut SpanData) {
    span.attributes.retain(|attribute| EXPORTED_ATTRIBUTES.contains(&attribute.key.as_str()));
    let attribute = |name: &str| span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    if let (Some(method), Some(route)) = (attribute(METHOD), attribute(ROUTE)) {
        span.name = format!("{} {}", method.value.as_str(), route.value.as_str()).into();
        span.span_kind = SpanKind::Server;
    }
}

/// Calls the collector on the service's runtime, because the exporter's thread has none.
#[derive(Debug)]
struct CollectorClient {
    http: reqwest::Client,
    runtime: Handle,
}

impl HttpClient for CollectorClient {
    fn send_bytes<'this, 'future>(
        &'this self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'future>>
    where
        'this: 'future,
        Self: 'future,
    {
        let http = self.http.clone();
        let call = self.runtime.spawn(async move {
            let mut response = http.execute(request.try_into()?).await?;
            let mut builder = Response::builder().status(response.status());
            if let Some(headers) = builder.headers_mut() {
                headers.clone_from(response.headers());
            }
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await? {
                if body.len() + chunk.len() > RESPONSE_BYTES_MAX {
                    // The exporter gets only the status and the headers of such a response.
                    body.clear();
                    break;
                }
                body.extend_from_slice(&chunk);
            }
            Ok::<_, HttpError>(builder.body(Bytes::from(body))?)
        });
        Box::pin(async move { call.await? })
    }
}
