//! Failure detection: a life is suspected when its heartbeat has not changed for a while, during which our own
//! succeeded.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use hotline_persistence::cluster::{LifeId, LifeRow};

/// How long a heartbeat may stay unchanged: six missed beats. A wrong suspicion costs a restart, never a change.
pub(super) const SUSPECTED_AFTER: Duration = Duration::from_secs(3);

/// Maximum time between two observations that are compared: our own heartbeat precedes each, and waits for the same
/// database as theirs. After a restart of PostgreSQL every commit waits until its standby is back, and then all succeed at
/// once.
const OBSERVE_GAP_MAX: Duration = Duration::from_millis(1500);

/// The observed heartbeats of the other lives. Their times are only compared with each other.
#[derive(Default)]
pub(super) struct Observer {
    beats: HashMap<LifeId, (DateTime<Utc>, Instant)>,
    /// The time of the last observation.
    observed_at: Option<Instant>,
}

impl Observer {
    /// The database could not be reached: then no process could send a heartbeat, so none is suspected.
    pub(super) fn reset(&mut self) {
        self.beats.clear();
    }

    /// Records the heartbeats in the table, and returns the suspected lives.
    pub(super) fn observe(&mut self, lives: &[LifeRow], here: LifeId, now: Instant) -> Vec<LifeId> {
        let before = self.observed_at.replace(now);
        if before.is_some_and(|before| now.saturating_duration_since(before) >= OBSERVE_GAP_MAX) {
            // Perhaps no life could send a heartbeat meanwhile.
            self.reset();
        }
        self.beats.retain(|known, _| lives.iter().any(|life| life.life == *known));
        let others = lives.iter().filter(|life| life.life != here);
        let mut suspected = Vec::new();
        for life in others {
            let (beat, since) = self.beats.entry(life.life).or_insert((life.beat_at, now));
            if *beat != life.beat_at {
                (*beat, *since) = (life.beat_at, now);
            }
            if now.saturating_duration_since(*since) >= SUSPECTED_AFTER {
                suspected.push(life.life);
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
        let (mut observer, begin, here) = (Observer::default(), Instant::now(), LifeId::new(1));
        let at = |ms: u64| begin + Duration::from_millis(ms);
        let mut see = |ms: u64, beats: &[(i64, i64)]| {
            let lives: Vec<_> = beats.iter().map(|(number, beat)| life(*number, *beat)).collect();
            observer.observe(&lives, here, at(ms)).into_iter().map(LifeId::get).collect::<Vec<_>>()
        };
        assert!(see(0, &[(1, 0), (2, 0), (3, 0)]).is_empty());
        assert!(see(1000, &[(1, 0), (2, 0), (3, 0)]).is_empty());
        assert!(see(2000, &[(1, 0), (2, 0), (3, 0)]).is_empty());
        assert!(see(2900, &[(1, 0), (2, 7), (3, 0)]).is_empty());
        assert_eq!(see(3000, &[(1, 0), (2, 7), (3, 0)]), [3], "its own beat is ignored");
        assert_eq!(see(4000, &[(1, 0), (2, 7), (3, 0)]), [3]);
        assert_eq!(see(5000, &[(1, 0), (2, 7), (3, 0)]), [3]);
        assert_eq!(see(5900, &[(1, 0), (2, 7), (3, 0)]), [2, 3]);
        assert_eq!(see(6000, &[(1, 0), (2, 1), (3, 0)]), [3], "a clock that went back is a beat as well");
        assert!(see(10_000, &[(1, 0), (2, 1), (3, 0)]).is_empty(), "a late observation is not compared");
        assert!(see(11_400, &[(1, 0), (2, 2), (3, 0)]).is_empty());
        assert!(see(12_800, &[(1, 0), (2, 3), (3, 0)]).is_empty());
        assert_eq!(see(13_000, &[(1, 0), (2, 3), (3, 0)]), [3]);
        observer.reset();
        let mut see = |ms: u64| observer.observe(&[life(3, 0)], here, at(ms));
        let looks = [13_500, 14_500, 15_500, 16_499];
        assert!(looks.into_iter().all(|ms| see(ms).is_empty()));
        assert_eq!(see(16_500), [LifeId::new(3)]);
    }
}
