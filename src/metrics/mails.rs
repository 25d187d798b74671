//! What became of letters to people since the start.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is counted of mail.
#[derive(Debug, Default)]
pub struct MailFigures {
    sent: AtomicU64,
    failed: AtomicU64,
}

impl MailFigures {
    /// The relay has taken one.
    pub fn sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// One was not sent.
    pub fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Letters by how they ended.
    pub fn ends(&self) -> [(&'static str, u64); 2] {
        [("sent", self.sent.load(Ordering::Relaxed)), ("failed", self.failed.load(Ordering::Relaxed))]
    }
}
