//! The work of a cluster member: it sends heartbeats, reads which process serves which slot, opens and closes slots,
//! fences lives that look dead (declares them ended), and takes over from them.

mod handover;
mod heartbeat;
mod placement;
mod reach;
mod takeover;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::web::Data;
use futures_util::future::BoxFuture;
use hotline_actors::{Engine, Refusal};
use hotline_persistence::cluster::{LifeId, Membership, Slot, lives};
use hotline_persistence::{CompanyId, Error, PgPool};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::metrics::{ClusterMetrics, Metrics};
use crate::telemetry::conditions::ActiveConditions;
use crate::web::admission::idempotency::Keys;

/// How long a shutdown may spend handing over slots. The remaining ones are taken over as if this process had died.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(25);

/// Pause before a failed database call is retried.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Drops everything this process has in memory for a company that it no longer serves.
pub type DropCompany = Arc<dyn Fn(CompanyId) -> BoxFuture<'static, Result<(), Refusal>> + Send + Sync>;

/// Stops the deliveries of companies that are dropped next.
pub type QuiesceCompanies = Arc<dyn Fn(Vec<CompanyId>) -> BoxFuture<'static, ()> + Send + Sync>;

/// What a member needs to open and close slots.
pub struct MemberDeps {
    /// The engine, which runs all actors.
    pub engine: Engine,
    /// The used idempotency keys.
    pub keys: Keys,
    /// Called with all companies of the slots that move, before any of them is dropped.
    pub quiesce: QuiesceCompanies,
    /// Drops a company.
    pub drop_company: DropCompany,
    /// Called after slots are opened, to wake the background tasks that search for the companies' work.
    pub on_opened: Arc<dyn Fn() + Send + Sync>,
    /// The id of the shared folder of message files, if there is one.
    pub media_folder: Option<String>,
    /// Counts the cluster's events.
    pub metrics: Data<Metrics>,
    /// Ends the process with this reason: its life is over, or the database has lost its commits. Its memory may then
    /// differ from the tables.
    pub fail: fn(String),
}

/// This process as a member. Cheap to clone.
#[derive(Clone)]
pub struct Member(Arc<Inner>);

struct Inner {
    membership: Arc<Membership>,
    db: PgPool,
    deps: MemberDeps,
    /// Slots that a task is handing over; if their move is canceled, the same task reopens them.
    busy: Mutex<HashSet<Slot>>,
    /// Slots whose last move was canceled. They move after all others, which would otherwise wait for another attempt.
    canceled: Mutex<HashSet<Slot>>,
    /// Serializes [`Member::apply_placement`]: otherwise one task could reopen slots that another has just handed over.
    applying: tokio::sync::Mutex<()>,
    is_ending: AtomicBool,
    tasks: Mutex<JoinSet<()>>,
}

impl Member {
    /// Joins the cluster; `None` for a standalone process. The member serves slots once they are assigned to it.
    pub fn start(deps: MemberDeps) -> Option<Self> {
        let membership = deps.engine.store().membership()?.clone();
        let db = membership.db.clone()?;
        let inner = Inner {
            membership,
            db,
            deps,
            busy: Mutex::default(),
            canceled: Mutex::default(),
            applying: tokio::sync::Mutex::default(),
            is_ending: AtomicBool::new(false),
            tasks: Mutex::default(),
        };
        let member = Self(Arc::new(inner));
        let (heartbeat, placement, listener) = (member.clone(), member.clone(), member.clone());
        let reach = member.clone();
        let mut tasks = member.0.tasks.lock();
        tasks.spawn(async move {
            heartbeat.0.membership.end_startup_heartbeats();
            heartbeat.run_heartbeat().await;
        });
        tasks.spawn(async move { placement.run_placement().await });
        tasks.spawn(async move { listener.run_listener().await });
        tasks.spawn(async move { reach.run_reach_checks().await });
        drop(tasks);
        Some(member)
    }

    /// The state of the cluster.
    pub fn membership(&self) -> &Arc<Membership> {
        &self.0.membership
    }

    /// Hands over every slot, as long as another process can take slots, and for at most `DRAIN_TIME_MAX`. Requests
    /// for a slot that moves wait at the edges.
    pub async fn drain(&self) {
        let drained = tokio::time::timeout(DRAIN_TIME_MAX, async {
            while let Err(error) = lives::drain(&self.0.db, self.life()).await {
                tracing::debug!(%error, "releasing slots will be retried");
                sleep(RETRY_PAUSE).await;
            }
            loop {
                self.apply_placement().await;
                let has_no_slots = self.0.membership.placement.count_here() == 0 && self.0.busy.lock().is_empty();
                if has_no_slots || self.is_last().await {
                    return;
                }
                sleep(RETRY_PAUSE).await;
            }
        });
        if drained.await.is_err() {
            tracing::warn!(
                slots = self.0.membership.placement.count_here(),
                "could not release all slots before stopping"
            );
        }
    }

    /// Whether no other process can take slots.
    pub async fn is_last(&self) -> bool {
        lives::all(&self.0.db).await.is_ok_and(|lives| lives.iter().all(|life| life.draining))
    }

    /// Records that the process is about to end its own life: the disappearance of its row is no longer an error.
    pub fn begin_ending_life(&self) {
        self.0.is_ending.store(true, Ordering::Release);
    }

    /// Stops the member's tasks, once its life has ended.
    pub async fn stop(&self) {
        let mut tasks = std::mem::take(&mut *self.0.tasks.lock());
        tasks.shutdown().await;
    }

    fn life(&self) -> LifeId {
        self.0.membership.life
    }

    fn metrics(&self) -> &ClusterMetrics {
        &self.0.deps.metrics.cluster
    }

    fn conditions(&self) -> &ActiveConditions {
        &self.0.deps.metrics.conditions
    }

    /// Runs a task alongside the heartbeats, at most until the member stops.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.0.tasks.lock();
        // Removes the results of tasks that have ended.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Whether an error is transient. Ends the process if this life is over, or if the database has lost its commits.
    fn is_transient(&self, error: &Error) -> bool {
        match error {
            Error::NotOwner if self.0.is_ending.load(Ordering::Acquire) => {}
            Error::NotOwner => (self.0.deps.fail)("another process of the cluster has fenced this process".to_owned()),
            Error::LostCommits { .. } => (self.0.deps.fail)(error.to_string()),
            _ => return true,
        }
        false
    }
}
