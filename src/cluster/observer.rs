//! Failure detection: a life is suspected when its heartbeat has not changed for a while, during which our own
//! succeeded.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use hotline_persistence::cluster::{LifeId, LifeRow};

/// How long a heartbeat may stay unchanged: six missed beats. A wrong suspicion costs a restart, never a change.
pub(super) const SUSPECTED_AFTER: Duration = Duration::from_secs(3);

/// The observed heartbeats of the other lives. Their times are only compared with each other.
#[derive(Default)]
pub(super) struct Observer(HashMap<LifeId, (DateTime<Utc>, Instant)>);

impl Observer {
    /// The database could not be reached: then nobody could send a heartbeat, so nobody is suspected.
    pub(super) fn saw_nothing(&mut self) {
        self.0.clear();
    }

    /// Records the heartbeats in the table, and returns the suspected lives.
    pub(super) fn saw(&mut self, lives: &[LifeRow], here: LifeId, now: Instant) -> Vec<LifeId> {
        self.0.retain(|known, _| lives.iter().any(|life| life.life == *known));
        let others = lives.iter().filter(|life| life.life != here);
        let mut suspected = Vec::new();
        for life in others {
            let (beat, since) = self.0.entry(life.life).or_insert((life.beat_at, now));
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
            speaks: 1,
            draining: false,
            began_at: beat_at,
            beat_at,
            beat_age_ms: 0,
            cores: 1,
        }
    }

    #[test]
    fn who_does_not_beat_is_suspected_unless_nobody_could() {
        let (mut observer, begin, here) = (Observer::default(), Instant::now(), LifeId::new(1));
        let at = |ms: u64| begin + Duration::from_millis(ms);
        let mut see = |ms: u64, beats: &[(i64, i64)]| {
            let lives: Vec<_> = beats.iter().map(|(number, beat)| life(*number, *beat)).collect();
            observer.saw(&lives, here, at(ms)).into_iter().map(LifeId::get).collect::<Vec<_>>()
        };
        assert!(see(0, &[(1, 0), (2, 0), (3, 0)]).is_empty());
        assert!(see(2900, &[(1, 0), (2, 7), (3, 0)]).is_empty());
        assert_eq!(see(3000, &[(1, 0), (2, 7), (3, 0)]), [3], "its own beat is not looked at");
        assert_eq!(see(5900, &[(1, 0), (2, 7), (3, 0)]), [2, 3]);
        assert_eq!(see(6000, &[(1, 0), (2, 1), (3, 0)]), [3], "a clock that went back is a beat as well");
        observer.saw_nothing();
        let mut see = |ms: u64| observer.saw(&[life(3, 0)], here, at(ms));
        assert!(see(6500).is_empty() && see(9499).is_empty());
        assert_eq!(see(9500), [LifeId::new(3)]);
    }
}
