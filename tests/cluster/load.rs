//! The load on every company of a run, and how long it lasts.

use std::time::{Duration, Instant};

use crate::mix::Mix;

/// How long a run lasts with `make cluster ARGS=long`, which sets the variable; `None` for a short run.
fn long_duration() -> Option<Duration> {
    let minutes = std::env::var("CLUSTER_LONG").ok()?;
    Some(Duration::from_secs(60 * minutes.parse::<u64>().expect("CLUSTER_LONG is a number of minutes")))
}

/// Whether the runs are long.
pub fn is_long() -> bool {
    long_duration().is_some()
}

/// The rounds of a fault: `few`, or as many as there is time for in a long run.
pub fn rounds(few: usize) -> impl Iterator<Item = usize> {
    let until = long_duration().map(|duration| Instant::now() + duration);
    (0..).take_while(move |round| until.map_or(*round < few, |until| Instant::now() < until))
}

/// Waits for a random time, so that the moment of a fault differs from run to run.
pub async fn random_pause() {
    tokio::time::sleep(Duration::from_millis(rand::random_range(0..400))).await;
}

/// The load on every company.
pub struct Load(pub Vec<Mix>);

impl Load {
    /// Waits until this many more changes of every company are acknowledged.
    pub async fn progress(&self, changes: u64) {
        for mix in &self.0 {
            mix.progress(changes).await;
        }
    }

    /// For each company, its changes that were acknowledged so far, and its calls and reads that were not answered or
    /// were answered 503.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        self.0.iter().map(|mix| (mix.acknowledged(), mix.unanswered().0 + mix.unavailable())).collect()
    }

    /// Fails if a call or a read was answered 503.
    #[track_caller]
    pub fn check_none_answered_503(&self) {
        for mix in &self.0 {
            assert_eq!(mix.unavailable(), 0, "answered 503: {:#?}", mix.unanswered().1);
        }
    }

    /// Fails if a call or a read was not answered, or was answered 503.
    #[track_caller]
    pub fn check_none_failed(&self) {
        for mix in &self.0 {
            let (unanswered, failed) = mix.unanswered();
            let unavailable = mix.unavailable();
            assert!(
                unanswered + unavailable == 0,
                "{unanswered} not answered, {unavailable} answered 503: {failed:#?}"
            );
        }
    }
}
