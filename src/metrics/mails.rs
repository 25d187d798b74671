//! Metrics of outgoing mail.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters.
#[derive(Debug, Default)]
pub struct MailMetrics {
    sent: AtomicU64,
    failed: AtomicU64,
}

impl MailMetrics {
    /// The relay has accepted an e-mail.
    pub fn add_sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// An e-mail was not sent.
    pub fn add_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// The totals by outcome.
    pub fn outcomes(&self) -> [(&'static str, u64); 2] {
        [("sent", self.sent.load(Ordering::Relaxed)), ("failed", self.failed.load(Ordering::Relaxed))]
    }
}
