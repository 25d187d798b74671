//! The dispatcher: delivers every event to the webhooks that want it, at least once, and in order per record.
//!
//! It has its own thread; only tests of webhooks share its HTTP client. Each active webhook has a courier (`courier/`),
//! which sleeps until something happens in its company or is due. A failing endpoint delays only itself: its courier
//! sends one event at a time, waiting deliveries are in the table, and places for attempts are shared between companies
//! (`places.rs`).
//!
//! The position of a webhook is in its row: every event up to it is delivered or noted in `webhook_deliveries`.
//! Attempts that were running when the process was killed are repeated from there.

mod courier;
mod line;
mod log;
mod places;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use actix_web::web::Data;
use futures_util::future::join_all;
use hotline_persistence::tables::events;
use hotline_persistence::tables::webhooks::{self, Endpoint, WebhookId, deliveries};
use hotline_persistence::{CompanyId, Result};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, sleep_until, timeout_at};

use self::courier::Courier;
use self::places::Places;
use crate::app::App;

/// How often deliveries of events that are no longer kept are removed: a day's events are dropped at once.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

/// How long couriers may take to rest, including their statements: as long as the work of a company that is closed. If the
/// database takes longer, what was delivered last is sent again.
const REST_TIME_MAX: Duration = Duration::from_secs(10);

/// Pause after a failed read of the tables.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// The shared state of the couriers.
struct Shared {
    app: Data<App>,
    places: Places,
    stopping: watch::Receiver<bool>,
}

/// A request to the dispatcher.
enum Order {
    /// Stops all deliveries of a company; answered once none is running, and the outcomes are written.
    Rest(CompanyId, oneshot::Sender<()>),
    /// Resumes the deliveries of a company.
    GoOn(CompanyId),
}

/// The running dispatcher.
pub struct Deliveries {
    thread: JoinHandle<()>,
    stop: watch::Sender<bool>,
    orders: Orders,
}

impl Deliveries {
    /// Starts the dispatcher.
    ///
    /// # Errors
    /// When its thread or runtime cannot be created.
    pub fn start(app: Data<App>) -> io::Result<Self> {
        let (stop, stopping) = watch::channel(false);
        let (orders, ordered) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::new(Shared { app, places: Places::default(), stopping });
        let work = move || runtime.block_on(Dispatcher::new(shared, ordered).run());
        let thread = std::thread::Builder::new().name("webhooks".to_owned()).spawn(work)?;
        Ok(Self { thread, stop, orders: Orders(orders) })
    }

    /// Stops the dispatcher. Running attempts are cancelled, and repeated after the next start.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let thread = self.thread;
        if tokio::task::spawn_blocking(move || thread.join()).await.is_ok_and(|joined| joined.is_err()) {
            tracing::error!("webhook dispatcher failed unexpectedly");
        }
    }

    /// A handle to pause and resume deliveries.
    pub fn orders(&self) -> Orders {
        self.orders.clone()
    }
}

/// Pauses and resumes the deliveries of companies. Cheap to clone.
#[derive(Clone)]
pub struct Orders(mpsc::UnboundedSender<Order>);

impl Orders {
    /// Drops everything in memory of a company; none of its deliveries is running afterwards. Those under way get some time
    /// for their answers, and what has been answered is written: it is not sent again.
    pub async fn rest(&self, company: CompanyId) {
        let (done, rests) = oneshot::channel();
        if self.0.send(Order::Rest(company, done)).is_ok() {
            // The sender is dropped only when the service stops.
            drop(rests.await);
        }
    }

    /// Does so for many companies at the same time: together they take no longer than the slowest of them.
    pub async fn rest_all(&self, companies: Vec<CompanyId>) {
        join_all(companies.into_iter().map(|company| self.rest(company))).await;
    }

    /// Resumes the deliveries of a company.
    pub fn go_on(&self, company: CompanyId) {
        drop(self.0.send(Order::GoOn(company)));
    }
}

/// The dispatcher's handle of a courier.
struct Running {
    news: watch::Sender<Arc<Endpoint>>,
    /// Tells the courier to rest.
    rest: Arc<Notify>,
    /// Resolves when the courier has ended, in any way.
    ended: oneshot::Receiver<()>,
    task: AbortHandle,
}

/// Tells couriers to rest, and waits until they have ended.
async fn all_rest(couriers: Vec<Running>) {
    couriers.iter().for_each(|courier| courier.rest.notify_one());
    let until = Instant::now() + REST_TIME_MAX;
    for Running { news, ended, task, .. } in couriers {
        // The sender is dropped with the courier.
        if timeout_at(until, ended).await.is_err() {
            task.abort();
        }
        // Without it the courier would take its webhook for deleted.
        drop(news);
    }
}

type Key = (CompanyId, WebhookId);

struct Dispatcher {
    shared: Arc<Shared>,
    ordered: mpsc::UnboundedReceiver<Order>,
    running: HashMap<Key, Running>,
    couriers: JoinSet<Key>,
    /// Companies that have or had webhooks.
    known: BTreeSet<CompanyId>,
    /// Companies whose webhooks must be read again.
    changed: BTreeSet<CompanyId>,
    /// Those among them that another process serves. They are looked at now and then, in case they are served here: to
    /// look at thousands of them with each order would hold up the moves that give the orders.
    elsewhere: BTreeSet<CompanyId>,
    /// When those are looked at next.
    elsewhere_at: Instant,
    /// Companies whose deliveries are paused.
    resting: BTreeSet<CompanyId>,
}

impl Dispatcher {
    fn new(shared: Arc<Shared>, ordered: mpsc::UnboundedReceiver<Order>) -> Self {
        Self {
            shared,
            ordered,
            running: HashMap::new(),
            couriers: JoinSet::new(),
            known: BTreeSet::new(),
            changed: BTreeSet::new(),
            elsewhere: BTreeSet::new(),
            elsewhere_at: Instant::now(),
            resting: BTreeSet::new(),
        }
    }

    async fn run(mut self) {
        let shared = self.shared.clone();
        let news = shared.app.engine.store().webhooks.clone();
        let mut stopping = shared.stopping.clone();
        let mut sweep = tokio::time::interval_at(Instant::now() + SWEEP_EVERY, SWEEP_EVERY);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_lost = true;
        loop {
            if is_lost {
                is_lost = self.find_companies().await.is_err();
            }
            self.look_elsewhere();
            self.look().await;
            let is_to_retry = is_lost || !self.changed.is_empty();
            let (is_any_elsewhere, elsewhere_at) = (!self.elsewhere.is_empty(), self.elsewhere_at);
            tokio::select! {
                told = news.told() => {
                    is_lost |= told.is_all;
                    self.changed.extend(told.companies);
                }
                Some(order) = self.ordered.recv() => {
                    self.obey(order);
                    // A move of slots gives hundreds at the same time.
                    while let Ok(order) = self.ordered.try_recv() {
                        self.obey(order);
                    }
                }
                Some(ended) = self.couriers.join_next(), if !self.couriers.is_empty() => {
                    // Stopped couriers were already removed.
                    if let Ok(key) = ended && self.running.get(&key).is_some_and(|running| running.task.is_finished()) {
                        self.running.remove(&key);
                        self.changed.insert(key.0);
                    }
                }
                _ = sweep.tick() => self.sweep_all(),
                () = tokio::time::sleep(RETRY_AFTER), if is_to_retry => {}
                () = sleep_until(elsewhere_at), if is_any_elsewhere => {}
                _ = stopping.wait_for(|is_stopping| *is_stopping) => break,
            }
        }
        // The couriers notice this themselves, and write their outcomes.
        self.running.clear();
        while self.couriers.join_next().await.is_some() {}
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Rest(company, done) => {
                self.resting.insert(company);
                let of_company: Vec<Key> = self.running.keys().filter(|key| key.0 == company).copied().collect();
                let couriers = of_company.iter().filter_map(|key| self.running.remove(key)).collect();
                self.known.remove(&company);
                self.changed.remove(&company);
                self.elsewhere.remove(&company);
                // Beside the dispatcher, which other companies need meanwhile.
                tokio::spawn(async move {
                    all_rest(couriers).await;
                    let _ = done.send(());
                });
            }
            Order::GoOn(company) => {
                self.resting.remove(&company);
                self.changed.insert(company);
            }
        }
    }

    /// Reads all companies with webhooks: at the start, and when notifications were missed.
    async fn find_companies(&mut self) -> Result<()> {
        let shared = self.shared.clone();
        let found = self
            .shared
            .app
            .engine
            .background()
            .spawn(async move { webhooks::companies(&shared.app.engine.store().housekeeping).await });
        match found.await {
            Ok(Ok(companies)) => {
                self.changed.extend(companies);
                Ok(())
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "search for due webhooks will be retried");
                Err(error)
            }
            Err(_) => Ok(()),
        }
    }

    /// Looks which companies of other processes are served here by now.
    fn look_elsewhere(&mut self) {
        let now = Instant::now();
        if now < self.elsewhere_at {
            return;
        }
        self.elsewhere_at = now + RETRY_AFTER;
        let engine = &self.shared.app.engine;
        self.changed.extend(self.elsewhere.extract_if(.., |company| engine.owns(*company)));
    }

    /// Reads the webhooks of companies that may have changed.
    async fn look(&mut self) {
        let changed: Vec<CompanyId> =
            self.changed.iter().filter(|company| !self.resting.contains(company)).copied().collect();
        for company in changed {
            if !self.shared.app.engine.owns(company) {
                self.changed.remove(&company);
                self.elsewhere.insert(company);
                continue;
            }
            let shared = self.shared.clone();
            let found = self.shared.app.engine.background().spawn(async move {
                let store = shared.app.engine.store();
                webhooks::active(store.db(company), &store.keys, company).await
            });
            match found.await {
                Ok(Ok(endpoints)) => {
                    self.changed.remove(&company);
                    self.known.insert(company);
                    self.appoint(company, endpoints);
                    self.sweep(company);
                }
                Ok(Err(error)) => tracing::debug!(%error, company.id = %company, "reading webhooks will be retried"),
                Err(_) => {}
            }
        }
    }

    /// Ensures that each active webhook has a courier with its current settings, and no other webhook has one.
    fn appoint(&mut self, company: CompanyId, endpoints: Vec<Endpoint>) {
        let is_active = |key: &Key| endpoints.iter().any(|endpoint| endpoint.id == key.1);
        self.running.retain(|key, _| key.0 != company || is_active(key));
        for endpoint in endpoints {
            let key = (company, endpoint.id);
            let endpoint = Arc::new(endpoint);
            if let Some(running) = self.running.get(&key).filter(|running| !running.task.is_finished()) {
                running.news.send_replace(endpoint);
                continue;
            }
            let (news, heard) = watch::channel(endpoint);
            let (rest, (over, ended)) = (Arc::<Notify>::default(), oneshot::channel());
            let courier = Courier::new(self.shared.clone(), heard, rest.clone());
            let task = self.couriers.spawn(async move {
                let _over: oneshot::Sender<()> = over;
                courier.run().await;
                key
            });
            self.running.insert(key, Running { news, rest, ended, task });
        }
    }

    fn sweep_all(&self) {
        for company in &self.known {
            self.sweep(*company);
        }
    }

    /// Removes deliveries whose event no longer exists.
    fn sweep(&self, company: CompanyId) {
        let shared = self.shared.clone();
        drop(self.shared.app.engine.background().spawn(async move {
            if let Err(error) = sweep(&shared, company).await {
                tracing::debug!(%error, company.id = %company, "removal of old deliveries will be retried");
            }
        }));
    }
}

async fn sweep(shared: &Shared, company: CompanyId) -> Result<()> {
    let store = shared.app.engine.store();
    let db = || store.db(company);
    // Read first: events added meanwhile have higher ids.
    let last = events::last_id(db(), company).await?;
    let first = events::first_id(db(), company).await?.map_or(last.0 + 1, |first| first.0);
    for webhook in webhooks::ids(db(), company).await? {
        loop {
            let Some(_presence) = store.ownership().try_enter(company) else { return Ok(()) };
            let dropped = deliveries::drop_to(db(), company, webhook, first - 1).await?;
            if dropped.are_due {
                deliveries::wake(db(), company, webhook).await?;
            }
            if dropped.are_all {
                break;
            }
        }
    }
    Ok(())
}
