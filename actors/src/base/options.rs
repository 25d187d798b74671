//! Settings of the live half.

use std::time::Duration;

use chrono::TimeDelta;

use crate::channels::SendingOptions;

/// Settings of the live half.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// How long an actor without work stays hot. Default 5 minutes.
    pub idle_after: Duration,
    /// How long a visitor session lives without its visitor. Default 30 minutes.
    pub session_idle_after: Duration,
    /// How long after a contact's last message a phone channel takes anything but templates; none: always. Default 24
    /// hours: so the provider of phone channels has it.
    pub conversation_window: Option<TimeDelta>,
    /// How messages are handed over to providers.
    pub sending: SendingOptions,
    /// How often idle actors and sessions are looked for. Default 5 seconds.
    pub sweep_every: Duration,
    /// How often the companies' directory is loaded anew, should a notification have been lost. Default a minute.
    pub reload_every: Duration,
    /// Threads of their own that run actors until threads that serve requests do ([`crate::Engine::live_here`]); 0: the
    /// thread the engine is made on. Default: one for each core.
    pub arbiters: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            idle_after: Duration::from_secs(300),
            session_idle_after: Duration::from_secs(1800),
            conversation_window: Some(TimeDelta::hours(24)),
            sending: SendingOptions::default(),
            sweep_every: Duration::from_secs(5),
            reload_every: crate::directory::RELOAD_EVERY,
            arbiters: std::thread::available_parallelism().map_or(2, usize::from),
        }
    }
}
