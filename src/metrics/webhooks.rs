//! Metrics of deliveries to webhooks, and the lag of the slowest endpoint.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use hotline_persistence::CompanyId;
use parking_lot::Mutex;

/// The possible outcomes of an attempt as label values, in the order of [`AttemptOutcome`].
const OUTCOMES: [&str; 3] = ["delivered", "retried", "failed"];

/// Counters, and the oldest waiting event of each webhook. An attempt updates only the atomics, so it takes no lock.
#[derive(Debug, Default)]
pub struct WebhookMetrics {
    outcomes: [AtomicU64; OUTCOMES.len()],
    disabled: AtomicU64,
    under_way: AtomicU64,
    /// The creation time of each webhook's oldest waiting event; no entry for a webhook without waiting events.
    oldest_waiting: Mutex<std::collections::HashMap<(CompanyId, i64), DateTime<Utc>>>,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The endpoint has accepted the event.
    Delivered,
    /// The delivery will be retried.
    Retried,
    /// The delivery has failed permanently.
    Failed,
}

impl WebhookMetrics {
    /// Counts an attempt by its outcome.
    pub fn add_attempt(&self, outcome: AttemptOutcome) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The totals by outcome.
    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        OUTCOMES.into_iter().zip(&self.outcomes).map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed)))
    }

    /// Counts a webhook that the service has disabled.
    pub fn add_disabled(&self) {
        self.disabled.fetch_add(1, Ordering::Relaxed);
    }

    /// The total of disabled webhooks.
    pub fn disabled(&self) -> u64 {
        self.disabled.load(Ordering::Relaxed)
    }

    /// Sets the number of running attempts.
    pub fn set_under_way(&self, attempts: usize) {
        self.under_way.store(attempts as u64, Ordering::Relaxed);
    }

    /// The number of running attempts.
    pub fn under_way(&self) -> u64 {
        self.under_way.load(Ordering::Relaxed)
    }

    /// Sets the creation time of a webhook's oldest waiting event; `None` if none waits.
    pub fn set_oldest_waiting(&self, company: CompanyId, webhook: i64, created_at: Option<DateTime<Utc>>) {
        let mut oldest_waiting = self.oldest_waiting.lock();
        match created_at {
            Some(created_at) => oldest_waiting.insert((company, webhook), created_at),
            None => oldest_waiting.remove(&(company, webhook)),
        };
    }

    /// The age of the oldest event that an active endpoint has not accepted yet.
    pub fn lag(&self, now: DateTime<Utc>) -> Duration {
        let oldest_waiting = self.oldest_waiting.lock();
        oldest_waiting
            .values()
            .min()
            .map_or(Duration::ZERO, |created_at| (now - created_at).to_std().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn the_lag_is_the_age_of_the_oldest_waiting_event() {
        let (metrics, now) = (WebhookMetrics::default(), Utc::now());
        assert_eq!(metrics.lag(now), Duration::ZERO);
        let company = CompanyId::new(1);
        metrics.set_oldest_waiting(company, 1, Some(now - TimeDelta::seconds(2)));
        metrics.set_oldest_waiting(company, 2, Some(now - TimeDelta::seconds(7)));
        assert_eq!(metrics.lag(now), Duration::from_secs(7));
        metrics.set_oldest_waiting(company, 2, None);
        assert_eq!(metrics.lag(now), Duration::from_secs(2));
    }
}
