//! The options of logs and traces.

use clap::Args;
use url::Url;

use super::values::collector;
use crate::telemetry::{self, LogFormat};

/// What is logged and traced.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// Log format: `pretty` for people, `json` for machines
    #[arg(long, env = "HOTLINE_LOG", default_value = "pretty", value_name = "pretty|json")]
    pub log: LogFormat,
    /// What is logged: a level (`info`), and levels of modules (`info,hotline::hooks=debug`); by default RUST_LOG.
    /// SIGHUP reads it again from the configuration file
    #[arg(long, env = "HOTLINE_LOG_FILTER", value_name = "FILTER", value_parser = log_filter)]
    pub log_filter: Option<String>,
    /// URL of an OpenTelemetry collector (OTLP over HTTP) that receives request spans, for example
    /// http://localhost:4318. Requires a build with the feature `otlp`
    #[arg(long, env = "HOTLINE_OTLP_ENDPOINT", value_name = "URL", value_parser = collector)]
    pub otlp_endpoint: Option<Url>,
}

fn log_filter(text: &str) -> Result<String, String> {
    telemetry::parse_filter(text).map(|_| text.to_owned())
}
