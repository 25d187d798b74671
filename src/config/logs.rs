//! The options of logs and traces.

use clap::Args;
use url::Url;

use super::values::collector;
use crate::telemetry::LogFormat;

/// What is logged and traced.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// Log format: `pretty` for people, `json` for machines. RUST_LOG sets the level
    #[arg(long, env = "HOTLINE_LOG", default_value = "pretty", value_name = "pretty|json")]
    pub log: LogFormat,
    /// URL of an OpenTelemetry collector (OTLP over HTTP) that receives request spans, for example
    /// http://localhost:4318. Requires a build with the feature `otlp`
    #[arg(long, env = "HOTLINE_OTLP_ENDPOINT", value_name = "URL", value_parser = collector)]
    pub otlp_endpoint: Option<Url>,
}
