//! The work of a cluster member: it sends heartbeats, learns which process serves which slot, opens and closes slots,
//! ends lives that look dead and takes care of what they have left.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix_web::web::Data;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use hotline_actors::{Engine, Refusal};
use hotline_persistence::cluster::{BEAT_EVERY, LifeId, Membership, Peer, SEALED_FOR, Slot, SlotRow, lives};
use hotline_persistence::{CompanyId, Error, PgPool};
use sqlx::postgres::PgListener;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::observer::Observer;
use super::planner::{self, MOVES_MAX};
use crate::metrics::{ClusterFigures, Metrics};
use crate::web::idempotency::Keys;

/// How often the tables are read, in case notifications were lost, and how often a plan is made.
const LOOK_EVERY: Duration = Duration::from_millis(1000);

/// Companies that are closed at the same time: each needs the actors' threads and possibly the database.
const CLOSING_AT_ONCE: usize = 16;

/// How long a shutdown may hand over slots. The remaining ones are taken over as if this process had died.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(25);

/// Pause before a failed database call is retried.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The channel that the tables' triggers notify (`0060_cluster.sql`).
const CHANNEL: &str = "hotline_placement";

/// Drops everything this process holds of a company that it no longer serves.
pub type Leave = Arc<dyn Fn(CompanyId) -> BoxFuture<'static, Result<(), Refusal>> + Send + Sync>;

/// What a member needs to open and close slots.
pub struct Parts {
    /// The live half.
    pub engine: Engine,
    /// The used idempotency keys.
    pub keys: Keys,
    /// Drops a company.
    pub leave: Leave,
    /// Called after slots are opened: background tasks that look for the companies' work then look soon.
    pub opened: Arc<dyn Fn() + Send + Sync>,
    /// Counts the cluster's events.
    pub figures: Data<Metrics>,
    /// Ends the process when this life is over: its memory may be behind what others have written.
    pub fail: fn(String),
}

/// This process as a member. Cheap to clone.
#[derive(Clone)]
pub struct Member(Arc<Inner>);

struct Inner {
    membership: Arc<Membership>,
    db: PgPool,
    parts: Parts,
    /// Slots that are being opened or closed.
    busy: Mutex<HashSet<Slot>>,
    /// Slots whose last move was called off. They move after all others, which would otherwise wait for them again.
    called_off: Mutex<HashSet<Slot>>,
    /// Serializes the work of applying the tables: otherwise one task could reopen slots that another has just handed
    /// over.
    looking: tokio::sync::Mutex<()>,
    is_leaving: AtomicBool,
    work: Mutex<JoinSet<()>>,
}

impl Member {
    /// Joins the cluster; `None` when the process is alone. Serving starts with the slots that are assigned to it.
    pub fn start(parts: Parts) -> Option<Self> {
        let membership = parts.engine.store().membership()?.clone();
        let db = membership.db.clone()?;
        let inner = Inner {
            membership,
            db,
            parts,
            busy: Mutex::default(),
            called_off: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
            is_leaving: AtomicBool::new(false),
            work: Mutex::default(),
        };
        let member = Self(Arc::new(inner));
        let (beats, places, listens) = (member.clone(), member.clone(), member.clone());
        let mut work = member.lock_work();
        work.spawn(async move {
            beats.0.membership.has_started();
            beats.keep_beating().await;
        });
        work.spawn(async move { places.keep_placing().await });
        work.spawn(async move { listens.keep_listening().await });
        drop(work);
        Some(member)
    }

    /// The state of the cluster.
    pub fn membership(&self) -> &Arc<Membership> {
        &self.0.membership
    }

    /// Hands over every slot, as long as there are other processes and the shutdown has time; requests wait at their
    /// edges meanwhile.
    pub async fn drain(&self) {
        let given = tokio::time::timeout(DRAIN_TIME_MAX, async {
            while let Err(error) = lives::drain(&self.0.db, self.life()).await {
                tracing::debug!(%error, "slots are given away later");
                sleep(RETRY_PAUSE).await;
            }
            loop {
                self.look().await;
                let has_none = self.0.membership.placement.count_here() == 0 && self.busy().is_empty();
                if has_none || self.is_last().await {
                    return;
                }
                sleep(RETRY_PAUSE).await;
            }
        });
        if given.await.is_err() {
            tracing::warn!(slots = self.0.membership.placement.count_here(), "some slots could not be given away");
        }
    }

    /// Whether no other process can take slots.
    pub async fn is_last(&self) -> bool {
        lives::all(&self.0.db).await.is_ok_and(|lives| lives.iter().all(|life| life.draining))
    }

    /// The process is about to end its own life: the disappearance of its row is no longer an error.
    pub fn begin_leaving(&self) {
        self.0.is_leaving.store(true, Ordering::Release);
    }

    /// Stops the member's work, after its life.
    pub async fn stop(&self) {
        let mut work = std::mem::take(&mut *self.lock_work());
        work.shutdown().await;
    }

    fn life(&self) -> LifeId {
        self.0.membership.life
    }

    fn figures(&self) -> &ClusterFigures {
        &self.0.parts.figures.cluster
    }

    fn lock_work(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn called_off(&self) -> MutexGuard<'_, HashSet<Slot>> {
        self.0.called_off.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn busy(&self) -> MutexGuard<'_, HashSet<Slot>> {
        self.0.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a task beside the heartbeats until the member stops.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut all = self.lock_work();
        while all.try_join_next().is_some() {}
        all.spawn(work);
    }

    /// Ends the process when this life is over; otherwise the error is transient.
    fn is_passing(&self, error: &Error) -> bool {
        if matches!(error, Error::NotOwner) && !self.0.is_leaving.load(Ordering::Acquire) {
            (self.0.parts.fail)("another process of the cluster has ended this life".to_owned());
        }
        !matches!(error, Error::NotOwner)
    }

    async fn keep_beating(&self) {
        let mut clock = interval(BEAT_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut observer = Observer::default();
        let mut sealing = HashSet::new();
        loop {
            clock.tick().await;
            let lease = &self.0.membership.lease;
            let seen = match lives::beat(&self.0.db, self.life()).await {
                Ok(sent) => {
                    lease.extend(sent);
                    lives::all(&self.0.db).await
                }
                Err(error) => Err(error),
            };
            let lives = match seen {
                Ok(lives) => lives,
                Err(error) => {
                    observer.saw_nothing();
                    if !self.is_passing(&error) {
                        return;
                    }
                    tracing::debug!(%error, "the cluster is not heard of");
                    continue;
                }
            };
            let suspected = observer.saw(&lives, self.life(), Instant::now());
            sealing.retain(|dead| lives.iter().any(|life| life.life == *dead));
            // A process that stops would not be there to release the slots it inherits. The others suspect the same life.
            let suspected = suspected.into_iter().filter(|_| !self.0.membership.is_retiring());
            for dead in suspected {
                if sealing.insert(dead) {
                    let member = self.clone();
                    self.spawn(async move { member.end(dead).await });
                }
            }
        }
    }

    /// Ends a life that looks dead, and takes care of what it has left.
    async fn end(&self, dead: LifeId) {
        let suspected = Instant::now();
        loop {
            match lives::seal(&self.0.db, self.life(), dead).await {
                Ok(true) => break,
                Ok(false) => return,
                Err(error) if !self.is_passing(&error) => return,
                Err(error) => tracing::debug!(%error, life = %dead, "a life that looks dead is ended later"),
            }
            sleep(RETRY_PAUSE).await;
        }
        self.figures().sealed();
        tracing::warn!(life = %dead, "a process of the cluster was not heard of any more, and is ended");
        self.inherit(dead).await;
        self.figures().took_over(suspected.elapsed());
    }

    /// Reassigns what a life has left, once it can no longer have answered. The wait starts now, which is after the
    /// life was ended.
    async fn inherit(&self, dead: LifeId) {
        sleep(SEALED_FOR).await;
        loop {
            match lives::inherit(&self.0.db, self.life(), dead).await {
                Ok(_) => break,
                Err(error) if !self.is_passing(&error) => return,
                Err(error) => tracing::debug!(%error, life = %dead, "what an ended life has left is given away later"),
            }
            sleep(RETRY_PAUSE).await;
        }
        self.look().await;
    }

    async fn keep_listening(&self) {
        loop {
            if let Err(error) = self.listen().await {
                tracing::debug!(%error, "news of the placement are interrupted");
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    async fn listen(&self) -> Result<(), sqlx::Error> {
        let mut listener = PgListener::connect_with(&self.0.db).await?;
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        self.0.membership.placement.look_again();
        while listener.try_recv().await?.is_some() {
            self.0.membership.placement.look_again();
        }
        Ok(())
    }

    async fn keep_placing(&self) {
        let mut clock = interval(LOOK_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut left: HashMap<LifeId, ()> = HashMap::new();
        while let Err(error) = lives::join(&self.0.db, self.life()).await {
            tracing::debug!(%error, "slots are taken later");
            sleep(RETRY_PAUSE).await;
        }
        loop {
            tokio::select! {
                _ = clock.tick() => self.look_after_left(&mut left).await,
                () = self.0.membership.placement.asked_to_look() => {}
            }
            self.look().await;
        }
    }

    /// Takes over the work of an heir whose own life is over, whether it was sealed or has left.
    async fn look_after_left(&self, known: &mut HashMap<LifeId, ()>) {
        let Ok(seals) = lives::seals(&self.0.db).await else { return };
        let is_known = |life: LifeId| life == self.life() || self.0.membership.placement.has_peer(life);
        if !self.0.membership.is_retiring() && seals.iter().any(|seal| !seal.done && !is_known(seal.heir)) {
            // What is adopted is seen with the next look.
            if let Err(error) = lives::adopt(&self.0.db, self.life()).await {
                if !self.is_passing(&error) {
                    return;
                }
                tracing::debug!(%error, "what others have left is looked after later");
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
            tracing::debug!(%error, "ended lives are forgotten later");
        }
    }

    /// Makes a plan, unless another member does; then applies the tables: opens, closes and learns slots.
    async fn look(&self) {
        let _turn = self.0.looking.lock().await;
        if !self.0.is_leaving.load(Ordering::Acquire)
            && let Err(error) = lives::plan(&self.0.db, self.life(), planner::plan).await
        {
            if !self.is_passing(&error) {
                return;
            }
            tracing::debug!(%error, "nothing is planned now");
        }
        match self.learn().await {
            Ok(()) => {}
            Err(error) => tracing::debug!(%error, "the placement is not read now"),
        }
    }

    async fn learn(&self) -> Result<(), Error> {
        // Copied before the tables are read: for slots whose move ends meanwhile, the rows may be outdated.
        let busy = self.busy().clone();
        let lives = lives::all(&self.0.db).await?;
        let slots = lives::slots(&self.0.db).await?;
        let here = self.life();
        let others = lives.into_iter().filter(|life| life.life != here);
        let peers = others.map(|life| Peer { life: life.life, node: life.node, address: life.address });
        let placement = &self.0.membership.placement;
        // Slots that are being opened or closed report their own outcome.
        let owner = |slot: Slot| slots.get(slot.index()).and_then(|row| row.life);
        placement.replace(peers, |slot| if busy.contains(&slot) { None } else { owner(slot) });
        let is_here = |row: &&SlotRow| row.life == Some(here) && !busy.contains(&row.slot);
        let is_open = |slot: Slot| placement.owner(slot) == hotline_persistence::cluster::Owner::Here;
        let new: Vec<Slot> = slots.iter().filter(is_here).map(|row| row.slot).filter(|slot| !is_open(*slot)).collect();
        if !new.is_empty() {
            self.open(new).await;
        }
        let moving = slots.iter().filter(is_here).filter(|row| row.next.is_some_and(|next| next != here));
        let mut moving: Vec<Slot> = moving.map(|row| row.slot).filter(|slot| is_open(*slot)).collect();
        moving.sort_by_key(|slot| self.called_off().contains(slot));
        // One group at a time, so that the other slots are served meanwhile.
        if !moving.is_empty() && busy.is_empty() {
            let group: Vec<Slot> = moving.into_iter().take(MOVES_MAX).collect();
            self.busy().extend(group.iter().copied());
            let member = self.clone();
            self.spawn(async move {
                member.give(&group).await;
                member.busy().retain(|slot| !group.contains(slot));
                member.0.membership.placement.look_again();
            });
        }
        Ok(())
    }

    /// Opens slots that no other process serves any more.
    async fn open(&self, slots: Vec<Slot>) {
        let Parts { engine, keys, .. } = &self.0.parts;
        let companies = match engine.learn(&slots).await {
            Ok(companies) => companies,
            // They are not open, so the next look retries.
            Err(refusal) => return tracing::warn!(%refusal, slots = slots.len(), "slots cannot be read now"),
        };
        // Other processes have used keys since these were loaded.
        companies.iter().for_each(|company| keys.forget(*company));
        self.serve(&slots).await;
    }

    /// Opens slots whose directory entries and keys are current.
    async fn serve(&self, slots: &[Slot]) {
        let Parts { engine, keys, .. } = &self.0.parts;
        if let Err(refusal) = engine.open(slots).await {
            // They are not open, so the next look retries.
            tracing::warn!(%refusal, slots = slots.len(), "slots cannot be opened now");
            return;
        }
        self.0.membership.placement.open(slots.iter().copied());
        self.figures().opened(slots.len());
        tracing::info!(slots = slots.len(), "slots are served here");
        (self.0.parts.opened)();
        let (keys, db) = (keys.clone(), engine.store().housekeeping.clone());
        self.spawn(async move { keys.load_missing(&db).await });
    }

    /// Closes slots and hands them over. A slot that cannot be closed is reopened and does not keep the others.
    async fn give(&self, slots: &[Slot]) {
        let begun = Instant::now();
        let (ownership, placement) = (self.0.parts.engine.store().ownership(), &self.0.membership.placement);
        slots.iter().for_each(|slot| ownership.close_slot(*slot));
        placement.close(slots.iter().copied());
        let kept = self.close(slots).await;
        let (kept, closed): (Vec<Slot>, Vec<Slot>) = slots.iter().partition(|slot| kept.contains(*slot));
        futures_util::future::join(self.call_off(&kept), self.hand_over(&closed, begun)).await;
    }

    /// Reopens slots that were to move. No other process has served them, so the keys and the directory are still current.
    async fn call_off(&self, slots: &[Slot]) {
        if slots.is_empty() {
            return;
        }
        self.figures().called_off();
        self.called_off().extend(slots);
        if let Err(error) = lives::keep(&self.0.db, self.life(), slots).await {
            tracing::debug!(%error, "a move is called off later");
        }
        self.serve(slots).await;
    }

    /// Hands closed slots over.
    async fn hand_over(&self, slots: &[Slot], begun: Instant) {
        if slots.is_empty() {
            return;
        }
        let ownership = self.0.parts.engine.store().ownership();
        slots.iter().for_each(|slot| ownership.shut_slot(*slot));
        self.called_off().retain(|slot| !slots.contains(slot));
        // Until the database has answered, the owner is unknown, and these slots are not served here.
        loop {
            match lives::hand_over(&self.0.db, self.life(), slots).await {
                Ok(_) => break,
                Err(error) if !self.is_passing(&error) => return,
                Err(error) => tracing::debug!(%error, "slots are handed over later"),
            }
            sleep(RETRY_PAUSE).await;
        }
        // Slots whose receiver is over stay here, and the next look reopens them.
        self.figures().handed_over(slots.len());
        tracing::info!(slots = slots.len(), took_ms = begun.elapsed().as_millis(), "slots are handed over");
    }

    /// Ends all work in these slots, and writes all of it to the tables. Returns the slots that cannot be closed.
    async fn close(&self, slots: &[Slot]) -> HashSet<Slot> {
        let engine = &self.0.parts.engine;
        let directory = engine.directory();
        let closing = directory.companies_in(|slot| slots.contains(&slot)).into_iter().map(|company| {
            let closed = (self.0.parts.leave)(company);
            async move { (company, closed.await) }
        });
        let mut closing = futures_util::stream::iter(closing).buffer_unordered(CLOSING_AT_ONCE);
        let mut kept = HashSet::new();
        while let Some((company, closed)) = closing.next().await {
            if let Err(refusal) = closed {
                tracing::info!(%refusal, company.id = %company, "a move is called off");
                kept.extend(directory.slot(company));
            }
        }
        // The whole log, not only these companies: until the slots are shut, it may have taken entries of a company
        // that was dropped first.
        let log = &engine.store().log;
        if let Err(error) = log.reached(log.appended()).await {
            tracing::info!(%error, "a move is called off");
            kept.extend(slots);
        }
        kept
    }
}
