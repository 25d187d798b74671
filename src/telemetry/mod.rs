//! Logs and spans. They never hold tokens, bodies or phone numbers. Every line that is written while a request is served
//! names it: it is in the request's span ([`crate::web::request_id`]), which can be exported as well (`otlp.rs`).
//!
//! A span costs 0.6 to 1.2 µs, 4 to 9 % of a read. A name that is set by hand while the request is polled costs nothing,
//! and was here before; but no tool knows it.

#[cfg(feature = "otlp")]
mod otlp;

use std::io::IsTerminal;
use std::str::FromStr;

use actix_web::http::header::HeaderMap;
use tracing::Span;
use tracing_subscriber::EnvFilter;
use url::Url;

/// How log lines are written.
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
            _ => Err(format!("`{word}` is none of pretty, json")),
        }
    }
}

/// The log filter without `RUST_LOG`. The HTTP layer logs every malformed request as an error: a client that sends many
/// would fill the log.
const USUAL: &str = "info,actix_server=warn,actix_http=off";

/// Starts logging to standard error: `USUAL`, or what `RUST_LOG` says. Once; later calls change nothing.
pub fn start(format: LogFormat) {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter())
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match format {
        LogFormat::Pretty => lines.try_init(),
        LogFormat::Json => lines.json().with_span_list(false).try_init(),
    };
    // A test process starts many services and logs once.
    drop(started);
}

fn filter() -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(USUAL))
}

/// The same, and exports the spans of requests to the OpenTelemetry collector at this address. Needs a running runtime.
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
    let refused = || "--otlp-endpoint: this build exports no spans; one made with `--features otlp` does".to_owned();
    if is_built { Ok(()) } else { Err(refused()) }
}

/// Sends the spans that are left. Nothing is exported afterwards.
pub async fn stop() {
    #[cfg(feature = "otlp")]
    otlp::stop().await;
}

/// What a request's exported span says of it: nothing of what was said or who it was.
#[derive(Clone, Copy, Debug)]
pub struct RequestSummary<'a> {
    /// The id in its answer and its log lines.
    pub id: &'a str,
    /// The method.
    pub method: &'a str,
    /// The path as it is declared, without ids.
    pub route: &'a str,
    /// Of the answer.
    pub status: u16,
    /// Whose it was, once that is known.
    pub company: Option<i64>,
}

/// A request's span, if it is exported. What its caller says of the trace it belongs to is taken over.
#[cfg(feature = "otlp")]
pub fn exported(span: &Span, headers: &HeaderMap) -> Option<Span> {
    otlp::exported(span, headers)
}

/// A request's span, if it is exported. What its caller says of the trace it belongs to is taken over.
#[cfg(not(feature = "otlp"))]
pub fn exported(_: &Span, _: &HeaderMap) -> Option<Span> {
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
        let refused = check_export(false);
        assert!(refused.is_err_and(|reason| reason.contains("--otlp-endpoint") && reason.contains("--features otlp")));
        assert_eq!(check_export(true), Ok(()));
    }
}
