//! The options of the API.

use clap::Args;

use crate::web::admission::wrong_tokens::WRONG_TOKENS_PER_MINUTE;

/// Limits of the API.
#[derive(Args, Clone, Debug)]
pub struct ApiArgs {
    /// Serve the API to every company, regardless of its plan
    #[arg(long, env = "HOTLINE_ON_PREMISE")]
    pub on_premise: bool,
    /// Maximum requests per minute of a company without its own limit; 0 for no limit
    #[arg(long, env = "HOTLINE_RATE_PER_MINUTE", default_value_t = 6000, value_name = "COUNT")]
    pub rate_per_minute: u32,
    /// Maximum page size (1 to 1000)
    #[arg(long, alias = "per-page-max", env = "HOTLINE_MAX_PAGE_SIZE", default_value_t = 100, value_name = "COUNT",
        value_parser = clap::value_parser!(i64).range(1..=1000))]
    pub max_page_size: i64,
    /// Maximum requests with an invalid token per address and minute; further ones are answered after a second, and
    /// their connection is closed. Requests with a valid token are not affected. 0 for no limit
    #[arg(long, alias = "wrong-tokens-per-minute", env = "HOTLINE_INVALID_TOKENS_PER_MINUTE",
        default_value_t = WRONG_TOKENS_PER_MINUTE, value_name = "COUNT")]
    pub invalid_tokens_per_minute: u32,
}
