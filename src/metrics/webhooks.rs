//! What became of deliveries to webhooks since the start, and how far behind the slowest endpoint is.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use hotline_persistence::CompanyId;

/// How an attempt may end, by the word it is shown under.
const ENDS: [&str; 3] = ["delivered", "retried", "failed"];

/// What is counted of deliveries. An attempt adds to atomic numbers.
#[derive(Debug, Default)]
pub struct WebhookFigures {
    ends: [AtomicU64; ENDS.len()],
    switched_off: AtomicU64,
    under_way: AtomicU64,
    /// Of each endpoint that waits for something: since when its oldest event waits. No more than there are webhooks.
    behind: Mutex<std::collections::HashMap<(CompanyId, i64), DateTime<Utc>>>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The endpoint has taken the event.
    Delivered,
    /// It is tried again.
    Retried,
    /// It was the last attempt.
    Failed,
}

impl WebhookFigures {
    /// An attempt ended.
    pub fn ended(&self, end: AttemptEnd) {
        self.ends[end as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Attempts by how they ended.
    pub fn ends(&self) -> impl Iterator<Item = (&'static str, u64)> {
        ENDS.into_iter().zip(&self.ends).map(|(end, count)| (end, count.load(Ordering::Relaxed)))
    }

    /// A webhook was switched off by the service.
    pub fn switched_off(&self) {
        self.switched_off.fetch_add(1, Ordering::Relaxed);
    }

    /// Webhooks that were.
    pub fn all_switched_off(&self) -> u64 {
        self.switched_off.load(Ordering::Relaxed)
    }

    /// So many attempts are under way.
    pub fn set_under_way(&self, attempts: usize) {
        self.under_way.store(attempts as u64, Ordering::Relaxed);
    }

    /// Attempts that are under way.
    pub fn under_way(&self) -> u64 {
        self.under_way.load(Ordering::Relaxed)
    }

    /// Since when the oldest event of a webhook waits; none does: `None`.
    pub fn waits(&self, company: CompanyId, webhook: i64, since: Option<DateTime<Utc>>) {
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        match since {
            Some(since) => behind.insert((company, webhook), since),
            None => behind.remove(&(company, webhook)),
        };
    }

    /// How long the oldest event waits that an active endpoint has not taken yet.
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
