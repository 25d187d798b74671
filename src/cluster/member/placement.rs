//! The placement (which life serves which slot): a member plans it, reads it from the tables, and opens or hands over
//! its own slots accordingly.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hotline_persistence::Error;
use hotline_persistence::cluster::{LifeId, Owner, Peer, Slot, SlotRow, lives};
use sqlx::postgres::PgListener;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::{Member, MemberDeps, RETRY_PAUSE};
use crate::cluster::planner::{self, MOVES_MAX};

/// How often to plan and read the tables even if no notification arrives: one may have been lost.
const RELOAD_INTERVAL: Duration = Duration::from_millis(1000);

/// The notification channel of the triggers on `lives` and `slots`.
const CHANNEL: &str = "hotline_placement";

impl Member {
    pub(super) async fn run_listener(&self) {
        loop {
            if let Err(error) = self.listen().await {
                tracing::debug!(%error, "placement notifications interrupted; reconnecting");
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    async fn listen(&self) -> Result<(), sqlx::Error> {
        let mut listener = PgListener::connect_with(&self.0.db).await?;
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        self.0.membership.placement.request_reload();
        while listener.try_recv().await?.is_some() {
            self.0.membership.placement.request_reload();
        }
        Ok(())
    }

    pub(super) async fn run_placement(&self) {
        let mut clock = interval(RELOAD_INTERVAL);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut in_progress: HashSet<LifeId> = HashSet::new();
        while let Err(error) = lives::join(&self.0.db, self.life()).await {
            tracing::debug!(%error, "claiming slots will be retried");
            sleep(RETRY_PAUSE).await;
        }
        loop {
            tokio::select! {
                _ = clock.tick() => self.take_over_ended(&mut in_progress).await,
                () = self.0.membership.placement.wait_for_reload_request() => {}
            }
            self.apply_placement().await;
        }
    }

    /// Plans the placement, unless another member is planning it. Then applies the tables: opens slots, starts to hand
    /// over slots, and updates the known owners.
    pub(super) async fn apply_placement(&self) {
        let _guard = self.0.applying.lock().await;
        if !self.0.is_ending.load(Ordering::Acquire)
            && let Err(error) = lives::plan(&self.0.db, self.life(), planner::plan).await
        {
            if !self.is_transient(&error) {
                return;
            }
            tracing::debug!(%error, "placement planning will be retried");
        }
        if let Err(error) = self.apply_tables().await {
            tracing::debug!(%error, "could not read the placement; will retry");
        }
    }

    async fn apply_tables(&self) -> Result<(), Error> {
        // Copied before the tables are read: for slots whose move ends meanwhile, the rows may be outdated.
        let busy = self.0.busy.lock().clone();
        let lives = lives::all(&self.0.db).await?;
        let slots = lives::slots(&self.0.db).await?;
        let own_life = self.life();
        let others = lives.into_iter().filter(|life| life.life != own_life);
        let peers = others.map(|life| Peer { life: life.life, node: life.node, address: life.address });
        let placement = &self.0.membership.placement;
        // A slot that a task is handing over counts as unassigned; the task requests a reload when it ends.
        let owner = |slot: Slot| slots.get(slot.index()).and_then(|row| row.life);
        placement.replace(peers, |slot| if busy.contains(&slot) { None } else { owner(slot) });
        let is_own = |row: &&SlotRow| row.life == Some(own_life) && !busy.contains(&row.slot);
        let is_open = |slot: Slot| placement.owner(slot) == Owner::Local;
        let unopened_slots: Vec<Slot> =
            slots.iter().filter(is_own).map(|row| row.slot).filter(|slot| !is_open(*slot)).collect();
        if !unopened_slots.is_empty() {
            self.open_slots(unopened_slots).await;
        }
        let moving = slots.iter().filter(is_own).filter(|row| row.next.is_some_and(|next| next != own_life));
        let mut moving: Vec<Slot> = moving.map(|row| row.slot).filter(|slot| is_open(*slot)).collect();
        moving.sort_by_key(|slot| self.0.canceled.lock().contains(slot));
        // One group at a time, so that the other slots are served meanwhile.
        if !moving.is_empty() && busy.is_empty() {
            let group: Vec<Slot> = moving.into_iter().take(MOVES_MAX).collect();
            self.0.busy.lock().extend(group.iter().copied());
            let member = self.clone();
            self.spawn(async move {
                member.hand_over_slots(&group).await;
                member.0.busy.lock().retain(|slot| !group.contains(slot));
                member.0.membership.placement.request_reload();
            });
        }
        Ok(())
    }

    /// Loads the companies of slots that no other process serves, and opens the slots.
    async fn open_slots(&self, slots: Vec<Slot>) {
        let started = Instant::now();
        let MemberDeps { engine, keys, .. } = &self.0.deps;
        let companies = match engine.reload_directory(&slots).await {
            Ok(companies) => companies,
            // The slots are not open, so the next update retries.
            Err(refusal) => return tracing::warn!(%refusal, slots = slots.len(), "could not load slots; will retry"),
        };
        let count = companies.len();
        tracing::info!(slots = slots.len(), companies = count, took_ms = started.elapsed().as_millis(), "loaded slots");
        // Other processes may have used keys of these companies since this process loaded them.
        keys.forget_all(&companies.into_iter().collect());
        self.serve_slots(&slots).await;
    }

    /// Opens slots whose directory entries and keys are current.
    pub(super) async fn serve_slots(&self, slots: &[Slot]) {
        let MemberDeps { engine, keys, .. } = &self.0.deps;
        if let Err(refusal) = engine.open(slots).await {
            // The slots are not open, so the next update retries.
            tracing::warn!(%refusal, slots = slots.len(), "could not open slots; will retry");
            return;
        }
        self.0.membership.placement.open(slots.iter().copied());
        self.metrics().add_opened_slots(slots.len());
        tracing::info!(slots = slots.len(), "serving slots");
        (self.0.deps.on_opened)();
        let store = engine.store();
        let (keys, db, ownership) = (keys.clone(), store.housekeeping.clone(), store.ownership().clone());
        self.spawn(async move { keys.load_missing(&db, &ownership).await });
    }
}
