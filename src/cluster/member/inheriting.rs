//! What ended lives have left: their slots are released, and other heirs' work is taken over.

use std::collections::HashMap;

use hotline_persistence::cluster::{LifeId, SEALED_FOR, lives};
use tokio::time::sleep;

use super::{Member, RETRY_PAUSE};

impl Member {
    /// Reassigns what a life has left, once it can no longer have answered. The wait starts now, which is after the
    /// life was ended.
    pub(super) async fn inherit(&self, dead: LifeId) {
        sleep(SEALED_FOR).await;
        loop {
            match lives::inherit(&self.0.db, self.life(), dead).await {
                Ok(_) => break,
                Err(error) if !self.is_passing(&error) => return,
                Err(error) => {
                    tracing::debug!(%error, life = %dead, "reassigning a fenced process's work will be retried")
                }
            }
            sleep(RETRY_PAUSE).await;
        }
        self.look().await;
    }

    /// Takes over the work of an heir whose own life is over, whether it was sealed or has left.
    pub(super) async fn look_after_left(&self, known: &mut HashMap<LifeId, ()>) {
        let Ok(seals) = lives::seals(&self.0.db).await else { return };
        let is_known = |life: LifeId| life == self.life() || self.0.membership.placement.has_peer(life);
        if !self.0.membership.is_retiring() && seals.iter().any(|seal| !seal.done && !is_known(seal.heir)) {
            // What is adopted is seen with the next look.
            if let Err(error) = lives::adopt(&self.0.db, self.life()).await {
                if !self.is_passing(&error) {
                    return;
                }
                tracing::debug!(%error, "taking over from ended processes will be retried");
            }
        }
        known.retain(|life, ()| seals.iter().any(|seal| seal.life == *life));
        let mine = seals.iter().filter(|seal| seal.heir == self.life() && !seal.done);
        for seal in mine {
            if known.insert(seal.life, ()).is_none() {
                let (member, dead) = (self.clone(), seal.life);
                // The one that ended the life does this already; the second task then finds it done.
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
