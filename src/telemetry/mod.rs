//! Logs and spans. They never contain tokens, bodies or phone numbers. Every line written while a request is served
//! carries its id, because it is in the request's span ([`crate::web::admission::request_id`]), which can also be exported
//! (`otlp.rs`).
//!
//! A span costs 0.6 to 1.2 µs, 4 to 9 % of a read. Setting a name manually while the request is polled, as an earlier
//! version did, costs nothing, but no tool supports it.

#[cfg(feature = "otlp")]
mod otlp;
pub mod states;

use std::io::IsTerminal;
use std::str::FromStr;

use actix_web::http::header::HeaderMap;
use tracing::Span;
use tracing_subscriber::EnvFilter;
use url::Url;

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// One JSON object a line.
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
/// sends many would fill the log. The database library logs every failed attempt; [`states`] reports an outage once.
const DEFAULT_FILTER: &str = "info,actix_server=warn,actix_http=off,sqlx=off,sqlx_core=off";

/// Starts logging to standard error, filtered by `DEFAULT_FILTER` or `RUST_LOG`. Further calls have no effect.
pub fn start(format: LogFormat) {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter())
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let result = match format {
        LogFormat::Pretty => builder.try_init(),
        LogFormat::Json => builder.json().with_span_list(false).try_init(),
    };
    // A test process starts many services, but logging only once.
    drop(result);
}

fn filter() -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER))
}

/// The same, and exports the spans of requests to the OpenTelemetry collector at this URL. Needs a running runtime.
///
/// # Errors
/// When this build has no export, or it cannot be set up.
pub fn start_exporting(format: LogFormat, endpoint: &Url) -> Result<(), String> {
    check_export(cfg!(feature = "otlp"))?;
    #[cfg(feature = "otlp")]
    otlp::start(format, endpoint)?;
    #[cfg(not(feature = "otlp"))]
    let _ = (format, endpoint);
    Ok(())
}

fn check_export(is_built: bool) -> Result<(), String> {
    let error = || "--otlp-endpoint requires a build with `--features otlp`".to_owned();
    if is_built { Ok(()) } else { Err(error()) }
}

/// Exports the remaining spans, and stops the export.
pub async fn stop() {
    #[cfg(feature = "otlp")]
    otlp::stop().await;
}

/// The attributes of a request's exported span: no content, and no persons.
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
pub fn end(span: Span, summary: &RequestSummary<'_>) {
    #[cfg(feature = "otlp")]
    otlp::describe(&span, summary);
    #[cfg(not(feature = "otlp"))]
    let _ = summary;
    drop(span);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_export_refuses_to_export() {
        let error = check_export(false);
        assert!(error.is_err_and(|reason| reason.contains("--otlp-endpoint") && reason.contains("--features otlp")));
        assert_eq!(check_export(true), Ok(()));
    }
}
