//! Failure detection: a life is suspected when its heartbeat has not changed for a while, during which our own
//! succeeded.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use hotline_persistence::cluster::{LifeId, LifeRow};

/// How long a heartbeat may stay unchanged: six missed beats. A wrong suspicion costs a restart of that process, never
/// an acknowledged change.
pub(super) const SUSPECTED_AFTER: Duration = Duration::from_secs(3);

/// Maximum time between two observations that are compared. Our own heartbeat precedes each observation: if it had to
/// wait for the database for longer, the heartbeats of other lives may have had to wait too. After a restart of
/// PostgreSQL, for example, every commit waits until the standby is back.
const OBSERVE_GAP_MAX: Duration = Duration::from_millis(1500);

/// The observed heartbeats of the other lives. The times of the heartbeats are compared only with each other, never
/// with our clock.
#[derive(Default)]
pub(super) struct Observer {
    /// The last heartbeat of each life, and since when it has been observed unchanged.
    beats: HashMap<LifeId, (DateTime<Utc>, Instant)>,
    /// The time of the last observation.
    observed_at: Option<Instant>,
}

impl Observer {
    /// Forgets the observations, because the database could not be reached: no process could send a heartbeat then.
    pub(super) fn reset(&mut self) {
        self.beats.clear();
    }

    /// Records the heartbeats in the table, and returns the suspected lives with the times of their heartbeats.
    pub(super) fn observe(
        &mut self,
        lives: &[LifeRow],
        own_life: LifeId,
        now: Instant,
    ) -> Vec<(LifeId, DateTime<Utc>)> {
        let previous = self.observed_at.replace(now);
        if previous.is_some_and(|previous| now.saturating_duration_since(previous) >= OBSERVE_GAP_MAX) {
            // Perhaps no life could send a heartbeat meanwhile.
            self.reset();
        }
        self.beats.retain(|id, _| lives.iter().any(|life| life.life == *id));
        let others = lives.iter().filter(|life| life.life != own_life);
        let mut suspected = Vec::new();
        for life in others {
            let (beat, since) = self.beats.entry(life.life).or_insert((life.beat_at, now));
            if *beat != life.beat_at {
                (*beat, *since) = (life.beat_at, now);
            }
            if now.saturating_duration_since(*since) >= SUSPECTED_AFTER {
                suspected.push((life.life, life.beat_at));
            }
        }
        suspected
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn life(number: i64, beat_ms: i64) -> LifeRow {
        let beat_at = DateTime::UNIX_EPOCH + TimeDelta::milliseconds(beat_ms);
        let (node, address) = (number.to_string(), "n:1".to_owned());
        LifeRow {
            life: LifeId::new(number),
            node,
            address,
            protocol_version: 1,
            draining: false,
            began_at: beat_at,
            beat_at,
            beat_age_ms: 0,
            cores: 1,
        }
    }

    #[test]
    fn a_silent_life_is_suspected_unless_no_life_could_beat() {
        let (mut observer, begin, own_life) = (Observer::default(), Instant::now(), LifeId::new(1));
        let at = |ms: u64| begin + Duration::from_millis(ms);
        let mut suspects = |ms: u64, beats: &[(i64, i64)]| {
            let lives: Vec<_> = beats.iter().map(|(number, beat)| life(*number, *beat)).collect();
            observer.observe(&lives, own_life, at(ms)).into_iter().map(|(life, _)| life.get()).collect::<Vec<_>>()
        };
        assert!(suspects(0, &[(1, 0), (2, 0), (3, 0)]).is_empty());
        assert!(suspects(1000, &[(1, 0), (2, 0), (3, 0)]).is_empty());
        assert!(suspects(2000, &[(1, 0), (2, 0), (3, 0)]).is_empty());
        assert!(suspects(2900, &[(1, 0), (2, 7), (3, 0)]).is_empty());
        assert_eq!(suspects(3000, &[(1, 0), (2, 7), (3, 0)]), [3], "its own heartbeat is ignored");
        assert_eq!(suspects(4000, &[(1, 0), (2, 7), (3, 0)]), [3]);
        assert_eq!(suspects(5000, &[(1, 0), (2, 7), (3, 0)]), [3]);
        assert_eq!(suspects(5900, &[(1, 0), (2, 7), (3, 0)]), [2, 3]);
        assert_eq!(
            suspects(6000, &[(1, 0), (2, 1), (3, 0)]),
            [3],
            "a heartbeat with an earlier time is a new one as well"
        );
        assert!(
            suspects(10_000, &[(1, 0), (2, 1), (3, 0)]).is_empty(),
            "an observation after a long gap is not compared"
        );
        assert!(suspects(11_400, &[(1, 0), (2, 2), (3, 0)]).is_empty());
        assert!(suspects(12_800, &[(1, 0), (2, 3), (3, 0)]).is_empty());
        assert_eq!(suspects(13_000, &[(1, 0), (2, 3), (3, 0)]), [3]);
        observer.reset();
        let mut suspects = |ms: u64| observer.observe(&[life(3, 0)], own_life, at(ms));
        assert!([13_500, 14_500, 15_500, 16_499].into_iter().all(|ms| suspects(ms).is_empty()));
        assert_eq!(suspects(16_500), [(LifeId::new(3), DateTime::UNIX_EPOCH)]);
    }
}
