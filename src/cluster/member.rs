//! A member of a cluster at work: it beats, learns who serves what, opens and closes slots, ends who looks dead and looks
//! after what they have left.

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

/// How often the tables are read, should news have been lost; and how often somebody plans.
const LOOK_EVERY: Duration = Duration::from_millis(1000);

/// Companies that are closed at once: each asks the actors' threads and maybe the database.
const CLOSING_AT_ONCE: usize = 16;

/// How long a stop gives slots away. What it still has then is taken over as after a stop without others.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(25);

/// Pause before what the database did not answer is asked again.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The channel the tables' triggers notify on (`0060_cluster.sql`).
const CHANNEL: &str = "hotline_placement";

/// Drops all that this process holds of a company, which is not served here any more.
pub type Leave = Arc<dyn Fn(CompanyId) -> BoxFuture<'static, Result<(), Refusal>> + Send + Sync>;

/// What a member opens and closes slots with.
pub struct Parts {
    /// The live half.
    pub engine: Engine,
    /// Which idempotency keys were used.
    pub keys: Keys,
    /// What drops a company.
    pub leave: Leave,
    /// What looks for work of companies by itself, and looks soon: there are more of them.
    pub opened: Arc<dyn Fn() + Send + Sync>,
    /// What has happened is counted there.
    pub figures: Data<Metrics>,
    /// What ends the process, when this life is over: memory may be behind what others write.
    pub fail: fn(String),
}

/// This process as a member. Cheap to clone.
#[derive(Clone)]
pub struct Member(Arc<Inner>);

struct Inner {
    membership: Arc<Membership>,
    db: PgPool,
    parts: Parts,
    /// Slots that are opened or closed right now.
    busy: Mutex<HashSet<Slot>>,
    /// Slots whose last move was called off. They come after the others, which would wait for them again.
    called_off: Mutex<HashSet<Slot>>,
    /// Held by whoever does what the tables say: one after the other, or what one has just given away another opens again.
    looking: tokio::sync::Mutex<()>,
    is_leaving: AtomicBool,
    work: Mutex<JoinSet<()>>,
}

impl Member {
    /// Begins to take part; none, when the process is alone. What is served begins with the slots that are given to it.
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

    /// What is known of the cluster.
    pub fn membership(&self) -> &Arc<Membership> {
        &self.0.membership
    }

    /// Gives every slot to others, as long as there are any and for as long as a stop has time; requests meanwhile wait at
    /// their edges.
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

    /// Whether nobody is there who takes slots.
    pub async fn is_last(&self) -> bool {
        lives::all(&self.0.db).await.is_ok_and(|lives| lives.iter().all(|life| life.draining))
    }

    /// The life is about to be ended by the process itself: that its row goes is no failure any more.
    pub fn begin_leaving(&self) {
        self.0.is_leaving.store(true, Ordering::Release);
    }

    /// Ends the work of a member, after its life.
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

    /// Goes on beside the beats until the member stops.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut all = self.lock_work();
        while all.try_join_next().is_some() {}
        all.spawn(work);
    }

    /// Ends the process when this life is over; else the error is one of those that pass.
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
            // Whoever stops would not be there to give away what it inherits: the others see the same.
            let suspected = suspected.into_iter().filter(|_| !self.0.membership.is_retiring());
            for dead in suspected {
                if sealing.insert(dead) {
                    let member = self.clone();
                    self.spawn(async move { member.end(dead).await });
                }
            }
        }
    }

    /// Ends a life that looks dead, and looks after what it has left.
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

    /// Gives away what a life has left, once it cannot have answered any more. Waits from now on, which is after it was
    /// ended.
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

    /// Takes up what a heir that is over itself has not finished, be it that others ended it or that it went by itself.
    async fn look_after_left(&self, known: &mut HashMap<LifeId, ()>) {
        if !self.0.membership.is_retiring()
            && let Err(error) = lives::adopt(&self.0.db, self.life()).await
        {
            if !self.is_passing(&error) {
                return;
            }
            tracing::debug!(%error, "what others have left is looked after later");
        }
        let Ok(seals) = lives::seals(&self.0.db).await else { return };
        known.retain(|life, ()| seals.iter().any(|seal| seal.life == *life));
        let mine = seals.iter().filter(|seal| seal.heir == self.life() && !seal.done);
        for seal in mine {
            if known.insert(seal.life, ()).is_none() {
                let (member, dead) = (self.clone(), seal.life);
                // Whoever ended it itself does this already; the second finds it done.
                self.spawn(async move { member.inherit(dead).await });
            }
        }
        if seals.iter().any(|seal| seal.done)
            && let Err(error) = lives::forget_seals(&self.0.db).await
        {
            tracing::debug!(%error, "ended lives are forgotten later");
        }
    }

    /// Plans, if nobody else does; then opens, closes and learns what the tables say.
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
        // Before the tables are read: of slots whose move ends meanwhile they may still say what was before it.
        let busy = self.busy().clone();
        let lives = lives::all(&self.0.db).await?;
        let slots = lives::slots(&self.0.db).await?;
        let here = self.life();
        let others = lives.into_iter().filter(|life| life.life != here);
        let peers = others.map(|life| Peer { life: life.life, node: life.node, address: life.address });
        let placement = &self.0.membership.placement;
        // What is opened or closed right now says itself what becomes of it.
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
        // One group at a time: the others are served meanwhile.
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

    /// Serves slots that nobody else serves any more.
    async fn open(&self, slots: Vec<Slot>) {
        let Parts { engine, keys, .. } = &self.0.parts;
        let companies = match engine.learn(&slots).await {
            Ok(companies) => companies,
            // They are not open, so they are tried again with the next look.
            Err(refusal) => return tracing::warn!(%refusal, slots = slots.len(), "slots cannot be read now"),
        };
        // Others have used some since they were loaded.
        companies.iter().for_each(|company| keys.forget(*company));
        self.serve(&slots).await;
    }

    /// Serves slots of which all is known that others did.
    async fn serve(&self, slots: &[Slot]) {
        let Parts { engine, keys, .. } = &self.0.parts;
        if let Err(refusal) = engine.open(slots).await {
            // They are not open, so they are tried again with the next look.
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

    /// Closes slots and hands them over, or serves them again: each by itself, so that a company whose work does not end keeps
    /// no other one.
    async fn give(&self, slots: &[Slot]) {
        let begun = Instant::now();
        let (ownership, placement) = (self.0.parts.engine.store().ownership(), &self.0.membership.placement);
        slots.iter().for_each(|slot| ownership.close_slot(*slot));
        placement.close(slots.iter().copied());
        let kept = self.close(slots).await;
        let (kept, closed): (Vec<Slot>, Vec<Slot>) = slots.iter().partition(|slot| kept.contains(*slot));
        futures_util::future::join(self.call_off(&kept), self.hand_over(&closed, begun)).await;
    }

    /// Serves slots again that were to move. Nobody else has served them, so what is known of them is all there is.
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

    /// Hands slots over that are closed.
    async fn hand_over(&self, slots: &[Slot], begun: Instant) {
        if slots.is_empty() {
            return;
        }
        let ownership = self.0.parts.engine.store().ownership();
        slots.iter().for_each(|slot| ownership.shut_slot(*slot));
        self.called_off().retain(|slot| !slots.contains(slot));
        // Until the database has answered nobody knows whose they are, and nobody here serves them.
        loop {
            match lives::hand_over(&self.0.db, self.life(), slots).await {
                Ok(_) => break,
                Err(error) if !self.is_passing(&error) => return,
                Err(error) => tracing::debug!(%error, "slots are handed over later"),
            }
            sleep(RETRY_PAUSE).await;
        }
        // Those that stay, because who was to have them is over, the next look opens again.
        self.figures().handed_over(slots.len());
        tracing::info!(slots = slots.len(), took_ms = begun.elapsed().as_millis(), "slots are handed over");
    }

    /// Ends all that goes on in these slots, and has all of it in the tables. Answers which of them cannot be closed.
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
        // Of everybody: until the slots are shut, the log may still have taken something of a company that was dropped first.
        let log = &engine.store().log;
        if let Err(error) = log.reached(log.appended()).await {
            tracing::info!(%error, "a move is called off");
            kept.extend(slots);
        }
        kept
    }
}
