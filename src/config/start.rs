//! The options of a start.

use std::time::Duration;

use clap::Args;

use super::units::{self, HOUR, SECOND};
use crate::service::StartOptions;

/// Maximum wait for the database: a day.
const WAIT_MAX: Duration = Duration::from_secs(24 * HOUR.as_secs());

/// What a start waits for.
#[derive(Args, Clone, Debug)]
pub struct StartArgs {
    /// Time for which a start waits for a database that is unavailable; 0 to end at once
    #[arg(long, env = "HOTLINE_START_WAIT", default_value = units::display(StartOptions::default().wait),
        value_name = "DURATION", value_parser = units::durations(SECOND, Duration::ZERO..=WAIT_MAX))]
    pub start_wait: Duration,
}

impl StartArgs {
    /// The settings of a start.
    pub(super) fn options(&self) -> StartOptions {
        StartOptions { wait: self.start_wait }
    }
}
