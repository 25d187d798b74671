//! Logs and spans. They never contain tokens, bodies or phone numbers. Every line written while a request is served has
//! the request's id, because the line is in the request's span ([`crate::web::admission::request_id`]). Spans can also
//! be exported (`otlp.rs`).
//!
//! A span costs 0.6 to 1.2 µs, 4 to 9 % of the time of a request that reads.

pub mod conditions;
#[cfg(feature = "otlp")]
mod otlp;

use std::io::{IsTerminal, Write};
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::http::header::HeaderMap;
use tracing::Span;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};
use url::Url;

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// One JSON object per line.
    Json,
}

impl FromStr for LogFormat {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "pretty" => Ok(Self::Pretty),
            "json" => Ok(Self::Json),
            _ => Err("must be pretty or json".to_owned()),
        }
    }
}

/// The default log filter, without `RUST_LOG`. The HTTP layer logs every malformed request as an error: a client that
/// sends many would fill the log. The database library logs every failed attempt; [`conditions`] reports an outage
/// once. The library that verifies certificates logs each invalid one; the failed call reports it too.
const DEFAULT_FILTER: &str =
    "info,actix_server=warn,actix_http=off,sqlx=off,sqlx_core=off,rustls_platform_verifier=off";

/// The variable that sets the filter, as in other programs.
const FILTER_VARIABLE: &str = "RUST_LOG";

/// Changes the filter of the running process.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Whether log lines are JSON objects.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// The filter of the option, else of `RUST_LOG`, else the default.
///
/// # Errors
/// When it is invalid; the error names the variable or option and the directive.
pub fn filter(option: Option<&str>) -> Result<EnvFilter, String> {
    if let Some(text) = option {
        return parse_filter(text).map_err(|reason| format!("--log-filter: {reason}"));
    }
    match std::env::var(FILTER_VARIABLE) {
        Ok(text) if !text.trim().is_empty() => {
            parse_filter(&text).map_err(|reason| format!("{FILTER_VARIABLE}: {reason}"))
        }
        Err(std::env::VarError::NotUnicode(_)) => Err(format!("{FILTER_VARIABLE}: is not valid UTF-8")),
        _ => Ok(EnvFilter::new(DEFAULT_FILTER)),
    }
}

/// Parses a log filter.
///
/// # Errors
/// When a directive is invalid.
pub fn parse_filter(text: &str) -> Result<EnvFilter, String> {
    let builder = EnvFilter::builder;
    for (index, directive) in text.split(',').enumerate() {
        if let Err(error) = builder().parse(directive) {
            return Err(format!("directive {} (`{directive}`) is invalid: {error}", index + 1));
        }
    }
    builder().parse(text).map_err(|error| format!("is invalid: {error}"))
}

/// Starts logging to standard error. Further calls have no effect, because a test process starts many services.
pub fn start(format: LogFormat, filter: EnvFilter) {
    let (filter, handle) = reload::Layer::new(filter);
    let result = tracing_subscriber::registry().with(filter).with(line_layer(format)).try_init();
    if result.is_ok() {
        record_started(format, handle);
    }
}

/// Starts logging, and the export of requests' spans to the OpenTelemetry collector at this URL. Requires
/// a running Tokio runtime.
///
/// # Errors
/// When this build does not include the export, or it cannot be set up.
pub fn start_exporting(format: LogFormat, filter: EnvFilter, endpoint: &Url) -> Result<(), String> {
    check_export(cfg!(feature = "otlp"))?;
    #[cfg(feature = "otlp")]
    otlp::start(format, filter, endpoint)?;
    #[cfg(not(feature = "otlp"))]
    let _ = (format, filter, endpoint);
    Ok(())
}

/// Records the format and the filter of the logging that has started.
fn record_started(format: LogFormat, handle: reload::Handle<EnvFilter, Registry>) {
    IS_JSON.store(format == LogFormat::Json, Ordering::Release);
    let _ = FILTER.set(handle);
}

/// The layer that writes log lines in this format, for any stack of layers.
fn line_layer<S>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'span> tracing_subscriber::registry::LookupSpan<'span>,
{
    let layer = fmt::layer().with_writer(|| LogWriter).with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Pretty => layer.boxed(),
        LogFormat::Json => layer.json().with_span_list(false).boxed(),
    }
}

/// Writes to standard error and ignores failures: when the terminal is closed or the log collector has ended, lines are
/// lost, and the service continues.
struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = std::io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Replaces the filter of the running process by [`filter`] of this option.
///
/// # Errors
/// When it is invalid, or logging has not started; the previous filter stays.
pub fn reload(option: Option<&str>) -> Result<(), String> {
    let new_filter = filter(option)?;
    let handle = FILTER.get().ok_or("logging has not started")?;
    handle.reload(new_filter).map_err(|error| error.to_string())
}

/// Whether log lines are JSON objects; an error that ends the process must then be one as well.
pub fn is_json() -> bool {
    IS_JSON.load(Ordering::Acquire)
}

/// A JSON line in the format of the log, for output that does not pass through the log.
pub fn json_line(level: &str, message: &str) -> String {
    let timestamp = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    let fields = serde_json::json!({"message": message});
    serde_json::json!({"timestamp": timestamp, "level": level, "fields": fields, "target": "hotline"}).to_string()
}

fn check_export(is_included: bool) -> Result<(), String> {
    let error = || "--otlp-endpoint requires a build with `--features otlp`".to_owned();
    if is_included { Ok(()) } else { Err(error()) }
}

/// Exports the remaining spans, and stops the export.
pub async fn stop() {
    #[cfg(feature = "otlp")]
    otlp::stop().await;
}

/// The attributes of a request's exported span: no content, and no personal data.
#[derive(Clone, Copy, Debug)]
pub struct RequestSummary<'a> {
    /// The id in the response and in log lines.
    pub id: &'a str,
    /// The method.
    pub method: &'a str,
    /// The declared path, without ids.
    pub route: &'a str,
    /// The status of the response.
    pub status: u16,
    /// The company, once it is known.
    pub company: Option<i64>,
}

/// The request's span, if it is exported. It continues the trace named in the caller's headers.
#[cfg(feature = "otlp")]
pub fn exported_span(span: &Span, headers: &HeaderMap) -> Option<Span> {
    otlp::exported_span(span, headers)
}

/// The request's span, if it is exported. It continues the trace named in the caller's headers.
#[cfg(not(feature = "otlp"))]
pub fn exported_span(_: &Span, _: &HeaderMap) -> Option<Span> {
    None
}

/// Ends an exported span.
pub fn end_exported_span(span: Span, summary: &RequestSummary<'_>) {
    #[cfg(feature = "otlp")]
    otlp::set_attributes(&span, summary);
    #[cfg(not(feature = "otlp"))]
    let _ = summary;
    drop(span);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_filter_is_valid() {
        assert!(parse_filter(DEFAULT_FILTER).is_ok());
    }

    #[test]
    fn a_build_without_export_refuses_to_export() {
        let error = check_export(false);
        assert!(error.is_err_and(|reason| reason.contains("--otlp-endpoint") && reason.contains("--features otlp")));
        assert_eq!(check_export(true), Ok(()));
    }
}
