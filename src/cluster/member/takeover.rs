//! Takes over from ended lives: releases their slots, and continues the work of heirs that have ended too.

use std::collections::HashMap;

use hotline_persistence::cluster::{LifeId, SEALED_FOR, lives};
use tokio::time::sleep;

use super::{Member, RETRY_PAUSE};

impl Member {
    /// Reassigns the slots of a fenced life, once it can no longer respond to requests. The wait starts now, which is after
    /// the life was fenced.
    pub(super) async fn inherit(&self, dead: LifeId) {
        sleep(SEALED_FOR).await;
        loop {
            match lives::release_slots(&self.0.db, self.life(), dead).await {
                Ok(_) => break,
                Err(error) if !self.is_transient(&error) => return,
                Err(error) => {
                    tracing::debug!(%error, life = %dead, "reassigning a fenced process's work will be retried")
                }
            }
            sleep(RETRY_PAUSE).await;
        }
        self.apply_placement().await;
    }

    /// Takes over the work of an heir that has ended itself, fenced or not.
    pub(super) async fn take_over_ended(&self, in_progress: &mut HashMap<LifeId, ()>) {
        let Ok(seals) = lives::seals(&self.0.db).await else { return };
        let exists = |life: LifeId| life == self.life() || self.0.membership.placement.has_peer(life);
        if !self.0.membership.is_retiring() && seals.iter().any(|seal| !seal.done && !exists(seal.heir)) {
            // Adopted work is seen in the next run.
            if let Err(error) = lives::adopt(&self.0.db, self.life()).await {
                if !self.is_transient(&error) {
                    return;
                }
                tracing::debug!(%error, "taking over from ended processes will be retried");
            }
        }
        in_progress.retain(|life, ()| seals.iter().any(|seal| seal.life == *life));
        let own = seals.iter().filter(|seal| seal.heir == self.life() && !seal.done);
        for seal in own {
            if in_progress.insert(seal.life, ()).is_none() {
                let (member, dead) = (self.clone(), seal.life);
                // The process that fenced the life does this already; a second task finds it done.
                self.spawn(async move { member.inherit(dead).await });
            }
        }
        if seals.iter().any(|seal| seal.done)
            && let Err(error) = lives::forget_seals(&self.0.db).await
        {
            tracing::debug!(%error, "removing records of ended processes will be retried");
        }
    }
}
