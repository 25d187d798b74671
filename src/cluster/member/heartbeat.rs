//! Sends heartbeats, and fences lives whose heartbeats have stopped: declares them ended in the database.

use std::collections::HashSet;
use std::time::Instant;

use chrono::{DateTime, Utc};
use hotline_persistence::cluster::{BEAT_INTERVAL, LifeId, lives};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::{Member, RETRY_PAUSE};
use crate::cluster::observer::Observer;

impl Member {
    pub(super) async fn run_heartbeat(&self) {
        let mut clock = interval(BEAT_INTERVAL);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut observer = Observer::default();
        let mut fencing = HashSet::new();
        loop {
            clock.tick().await;
            let lease = &self.0.membership.lease;
            // Read before the heartbeat, which fails with `LostCommits` if the database no longer has this entry.
            let committed = self.0.deps.engine.store().log.flushed();
            let result = match lives::beat(&self.0.db, self.life(), committed).await {
                Ok(sent_at) => {
                    lease.extend(sent_at);
                    lives::all(&self.0.db).await
                }
                Err(error) => Err(error),
            };
            let lives = match result {
                Ok(lives) => lives,
                Err(error) => {
                    observer.reset();
                    if !self.is_transient(&error) {
                        return;
                    }
                    tracing::debug!(%error, "cluster state unavailable");
                    continue;
                }
            };
            let suspected = observer.observe(&lives, self.life(), Instant::now());
            fencing.retain(|suspect| lives.iter().any(|life| (life.life, life.beat_at) == *suspect));
            // A stopping process would end before it could reassign the slots; other processes suspect the same life.
            let suspected = suspected.into_iter().filter(|_| !self.0.membership.is_retiring());
            for (dead, beat_at) in suspected {
                if fencing.insert((dead, beat_at)) {
                    let member = self.clone();
                    self.spawn(async move { member.fence_and_take_over(dead, beat_at).await });
                }
            }
        }
    }

    /// Fences a life that looks dead, and takes over its slots, unless it has sent another heartbeat since `beat_at`,
    /// which is likely after an outage of the database.
    async fn fence_and_take_over(&self, dead: LifeId, beat_at: DateTime<Utc>) {
        let suspected_at = Instant::now();
        loop {
            match lives::seal(&self.0.db, self.life(), dead, beat_at).await {
                Ok(true) => break,
                Ok(false) => return,
                Err(error) if !self.is_transient(&error) => return,
                Err(error) => tracing::debug!(%error, life = %dead, "fencing an unresponsive process will be retried"),
            }
            sleep(RETRY_PAUSE).await;
        }
        self.metrics().add_fenced_life();
        tracing::warn!(life = %dead, "fenced an unresponsive process of the cluster");
        self.reassign_slots(dead).await;
        self.metrics().set_takeover(suspected_at.elapsed());
    }
}
