//! Settings of the engine.

use std::time::Duration;

use chrono::TimeDelta;

use super::SendingOptions;

/// Settings of the engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// How long an actor without work stays hot. Default 5 minutes.
    pub idle_after: Duration,
    /// How long a visitor session lives without its visitor. Default 30 minutes.
    pub session_idle_after: Duration,
    /// How long after a contact's last message a phone channel accepts messages other than templates; `None`: without
    /// limit. Default 24 hours, which is the rule of the phone channels' provider.
    pub conversation_window: Option<TimeDelta>,
    /// How messages are sent to providers.
    pub sending: SendingOptions,
    /// Interval between sweeps for idle actors and sessions. Default 5 seconds.
    pub sweep_every: Duration,
    /// Interval between full reloads of the companies' directory, in case a notification was lost. Default 1 minute.
    pub reload_every: Duration,
    /// Number of threads that run actors until request threads join ([`crate::Engine::run_actors_here`]); 0: the thread
    /// that creates the engine. Default: one for each core.
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
