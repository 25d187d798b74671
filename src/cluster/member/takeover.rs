//! Takes over from ended lives: releases their slots, and continues the work of heirs that have ended too.

use std::collections::HashSet;

use hotline_persistence::cluster::{LifeId, SEALED_FOR, lives};
use tokio::time::sleep;

use super::{Member, RETRY_PAUSE};

impl Member {
    /// Reassigns the slots of a fenced life, once it can no longer respond to requests: [`SEALED_FOR`] from now,
    /// because the life was fenced before this call.
    pub(super) async fn reassign_slots(&self, dead: LifeId) {
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

    /// Continues the unfinished takeovers of this process, and those of heirs that have ended themselves.
    pub(super) async fn take_over_ended(&self, in_progress: &mut HashSet<LifeId>) {
        let Ok(seals) = lives::seals(&self.0.db).await else { return };
        let exists = |life: LifeId| life == self.life() || self.0.membership.placement.has_peer(life);
        if !self.0.membership.is_retiring() && seals.iter().any(|seal| !seal.done && !exists(seal.heir)) {
            // The next run reads the adopted seals.
            if let Err(error) = lives::adopt(&self.0.db, self.life()).await {
                if !self.is_transient(&error) {
                    return;
                }
                tracing::debug!(%error, "taking over from ended processes will be retried");
            }
        }
        in_progress.retain(|life| seals.iter().any(|seal| seal.life == *life));
        let own_seals = seals.iter().filter(|seal| seal.heir == self.life() && !seal.done);
        for seal in own_seals {
            if in_progress.insert(seal.life) {
                let (member, dead) = (self.clone(), seal.life);
                // If this process fenced the life, another task also does this; the later one finds the seal done.
                self.spawn(async move { member.reassign_slots(dead).await });
            }
        }
        if seals.iter().any(|seal| seal.done)
            && let Err(error) = lives::forget_seals(&self.0.db).await
        {
            tracing::debug!(%error, "removing records of ended processes will be retried");
        }
    }
}
