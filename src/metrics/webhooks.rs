//! Metrics of deliveries to webhooks, and the lag of the slowest endpoint.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use hotline_persistence::CompanyId;

/// The possible outcomes of an attempt, as label values.
const ENDS: [&str; 3] = ["delivered", "retried", "failed"];

/// The counters. An attempt updates atomic counters.
#[derive(Debug, Default)]
pub struct WebhookFigures {
    ends: [AtomicU64; ENDS.len()],
    switched_off: AtomicU64,
    under_way: AtomicU64,
    /// By webhook with waiting events: the creation time of its oldest one. There are no more entries than webhooks.
    behind: Mutex<std::collections::HashMap<(CompanyId, i64), DateTime<Utc>>>,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The endpoint has accepted the event.
    Delivered,
    /// The delivery will be retried.
    Retried,
    /// The delivery has failed permanently.
    Failed,
}

impl WebhookFigures {
    /// Counts an attempt by its outcome.
    pub fn ended(&self, end: AttemptEnd) {
        self.ends[end as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The totals by outcome.
    pub fn ends(&self) -> impl Iterator<Item = (&'static str, u64)> {
        ENDS.into_iter().zip(&self.ends).map(|(end, count)| (end, count.load(Ordering::Relaxed)))
    }

    /// Counts a webhook that the service has disabled.
    pub fn switched_off(&self) {
        self.switched_off.fetch_add(1, Ordering::Relaxed);
    }

    /// The total of disabled webhooks.
    pub fn all_switched_off(&self) -> u64 {
        self.switched_off.load(Ordering::Relaxed)
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
    pub fn waits(&self, company: CompanyId, webhook: i64, since: Option<DateTime<Utc>>) {
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        match since {
            Some(since) => behind.insert((company, webhook), since),
            None => behind.remove(&(company, webhook)),
        };
    }

    /// The age of the oldest event that an active endpoint has not accepted yet.
    pub fn lag(&self, now: DateTime<Utc>) -> Duration {
        let behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        behind.values().min().map_or(Duration::ZERO, |since| (now - since).to_std().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn the_lag_is_that_of_the_endpoint_that_waits_longest() {
        let (figures, now) = (WebhookFigures::default(), Utc::now());
        assert_eq!(figures.lag(now), Duration::ZERO);
        let company = CompanyId::new(1);
        figures.waits(company, 1, Some(now - TimeDelta::seconds(2)));
        figures.waits(company, 2, Some(now - TimeDelta::seconds(7)));
        assert_eq!(figures.lag(now), Duration::from_secs(7));
        figures.waits(company, 2, None);
        assert_eq!(figures.lag(now), Duration::from_secs(2));
    }
}
