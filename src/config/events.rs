//! The options of events and of their deliveries to webhooks.

use std::time::Duration;

use clap::{ArgAction, Args};
use ipnet::IpNet;

use super::units::{self, DAY};
use super::values::network;
use crate::service::EventOptions;

/// Upper bound of the retention of events: each day is a partition that every read must check.
const RETENTION_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// Events, and where they may be sent.
#[derive(Args, Clone, Debug)]
pub struct EventArgs {
    /// Record events; without them, `/events` and `/webhooks` answer 404
    #[arg(long, env = "HOTLINE_EVENTS", default_value = "true", action = ArgAction::Set)]
    pub events: bool,
    /// Old spelling of --events=false
    #[arg(long, env = "HOTLINE_NO_EVENTS", hide = true)]
    pub no_events: bool,
    /// Time for which events are kept, in whole days
    #[arg(long, alias = "events-kept-for-days", env = "HOTLINE_EVENT_RETENTION",
        default_value = units::display(DAY * EventOptions::default().retention_days), value_name = "DURATION",
        value_parser = units::days(DAY..=RETENTION_MAX))]
    pub event_retention: Duration,
    /// Private network that webhook endpoints may be in; an endpoint on this machine may also use http (repeatable
    /// or comma-separated)
    #[arg(long, env = "HOTLINE_WEBHOOK_ALLOW_NETWORK", value_delimiter = ',', value_parser = network,
        value_name = "CIDR")]
    pub webhook_allow_network: Vec<IpNet>,
}

impl EventArgs {
    /// The settings of events. Either spelling disables them.
    pub(super) fn events(&self) -> EventOptions {
        let days = self.event_retention.as_secs() / DAY.as_secs();
        EventOptions {
            enabled: self.events && !self.no_events,
            // The parser has refused more than a year.
            retention_days: u32::try_from(days).unwrap_or(u32::MAX),
        }
    }
}
