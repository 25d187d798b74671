//! The options of a start.

use std::time::Duration;

use clap::{ArgAction, Args};
use hotline_persistence::migration::{MigrationPolicy, WAIT_DEFAULT};

use super::units::{self, HOUR, SECOND};
use crate::service::StartOptions;

/// Maximum wait for the database or for a lock: a longer value is probably a mistake.
const WAIT_MAX: Duration = Duration::from_secs(24 * HOUR.as_secs());

/// What a start waits for, and whether it migrates.
#[derive(Args, Clone, Debug)]
pub struct StartArgs {
    /// Time for which a start waits for a database that is unavailable; 0 to fail at once
    #[arg(long, env = "HOTLINE_START_WAIT", default_value = units::display(StartOptions::default().wait),
        value_name = "DURATION", value_parser = units::durations(SECOND, Duration::ZERO..=WAIT_MAX))]
    pub start_wait: Duration,
    /// Whether a start migrates the database; if false, a start refuses an older schema, which `hotline migrate`
    /// migrates
    #[arg(long, env = "HOTLINE_MIGRATE", default_value = "true", action = ArgAction::Set)]
    pub migrate: bool,
    #[command(flatten)]
    pub migration: MigrationArgs,
}

/// How long a migration waits.
#[derive(Args, Clone, Debug)]
pub struct MigrationArgs {
    /// Time for which a migration waits for a lock that another session holds
    #[arg(long, env = "HOTLINE_MIGRATION_WAIT", default_value = units::display(WAIT_DEFAULT), value_name = "DURATION",
        value_parser = units::durations(SECOND, Duration::ZERO..=WAIT_MAX))]
    pub migration_wait: Duration,
}

impl StartArgs {
    /// The settings of a start.
    pub(super) fn options(&self) -> StartOptions {
        let migration = MigrationPolicy { is_enabled: self.migrate, wait: self.migration.migration_wait };
        StartOptions { wait: self.start_wait, migration }
    }
}
