//! The dispatcher: delivers every event to the webhooks that want it, at least once, and in order per record.
//!
//! It has its own thread; only test deliveries share its HTTP client. Each active webhook has a courier (`courier/`),
//! which sleeps until something happens in its company or is due. A failing endpoint delays only itself: after a few
//! failures its courier sends one event at a time, waiting deliveries are in the table, and the permits for concurrent
//! attempts are divided among companies and among the endpoints of each (`attempt_limit.rs`).
//!
//! The position of a webhook is in its row: every event up to it is delivered or recorded in `webhook_deliveries`.
//! Attempts that were running when the process was killed are repeated from there.

mod attempt_limit;
mod courier;
mod log;
mod queue;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::ops::Bound;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use actix_web::web::Data;
use futures_util::FutureExt;
use futures_util::future::join_all;
use hotline_persistence::tables::events;
use hotline_persistence::tables::webhooks::{self, Endpoint, WebhookId, deliveries};
use hotline_persistence::{CompanyId, Result};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, sleep, sleep_until, timeout_at};

use self::attempt_limit::AttemptLimit;
use self::courier::Courier;
use crate::app::App;

/// How often deliveries of expired events are removed; events expire by the day.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

/// How long couriers may take to retire, including their statements: as long as closing a company waits for work in
/// progress. If the database takes longer, the last deliveries are repeated.
const RETIRE_TIME_MAX: Duration = Duration::from_secs(10);

/// Pause after a failed read of the tables, or a panic of a courier.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Maximum number of companies whose webhooks are read concurrently, so that a slow read does not delay the others:
/// fewer than half of the connections for requests.
const READS_MAX: usize = 4;

/// The shared state of the couriers.
struct Shared {
    app: Data<App>,
    attempt_limit: AttemptLimit,
    stopping: watch::Receiver<bool>,
}

/// A request to the dispatcher.
enum Command {
    /// Stops all deliveries of a company; answered once none is running, and the outcomes are written.
    Pause(CompanyId, oneshot::Sender<()>),
    /// Resumes the deliveries of a company.
    Resume(CompanyId),
}

/// The running dispatcher.
pub struct Deliveries {
    thread: JoinHandle<()>,
    stop: watch::Sender<bool>,
    control: DeliveryControl,
}

impl Deliveries {
    /// Starts the dispatcher.
    ///
    /// # Errors
    /// When its thread or runtime cannot be created.
    pub fn start(app: Data<App>) -> io::Result<Self> {
        let (stop, stopping) = watch::channel(false);
        let (control, commands) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::new(Shared { app, attempt_limit: AttemptLimit::new(), stopping });
        let work = move || runtime.block_on(Dispatcher::new(shared, commands).run());
        let thread = std::thread::Builder::new().name("webhooks".to_owned()).spawn(work)?;
        Ok(Self { thread, stop, control: DeliveryControl(control) })
    }

    /// Stops the dispatcher. Running attempts are canceled, and repeated after the next start.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let thread = self.thread;
        if tokio::task::spawn_blocking(move || thread.join()).await.is_ok_and(|joined| joined.is_err()) {
            tracing::error!("webhook dispatcher failed unexpectedly");
        }
    }

    /// A handle to pause and resume deliveries.
    pub fn control(&self) -> DeliveryControl {
        self.control.clone()
    }
}

/// Pauses and resumes the deliveries of companies. Cheap to clone.
#[derive(Clone)]
pub struct DeliveryControl(mpsc::UnboundedSender<Command>);

impl DeliveryControl {
    /// Drops everything in memory of a company; none of its deliveries is running afterwards. Running attempts get some
    /// time to finish, and their outcomes are written, so that they are not repeated.
    pub async fn pause(&self, company: CompanyId) {
        let (done, paused) = oneshot::channel();
        if self.0.send(Command::Pause(company, done)).is_ok() {
            // The sender is dropped only when the service stops.
            drop(paused.await);
        }
    }

    /// Pauses many companies concurrently.
    pub async fn pause_all(&self, companies: Vec<CompanyId>) {
        join_all(companies.into_iter().map(|company| self.pause(company))).await;
    }

    /// Resumes the deliveries of a company.
    pub fn resume(&self, company: CompanyId) {
        drop(self.0.send(Command::Resume(company)));
    }
}

/// The dispatcher's handle to a courier.
struct CourierHandle {
    settings: watch::Sender<Arc<Endpoint>>,
    /// Tells the courier to retire.
    retire: Arc<Notify>,
    /// Resolves when the courier has ended, in any way.
    ended: oneshot::Receiver<()>,
    task: AbortHandle,
}

/// Tells couriers to retire, and waits until they have ended.
async fn retire_all(couriers: Vec<CourierHandle>) {
    couriers.iter().for_each(|courier| courier.retire.notify_one());
    let until = Instant::now() + RETIRE_TIME_MAX;
    for CourierHandle { settings, ended, task, .. } in couriers {
        // The sender is dropped with the courier.
        if timeout_at(until, ended).await.is_err() {
            task.abort();
        }
        // If it were dropped earlier, the courier would assume that its webhook was deleted.
        drop(settings);
    }
}

type WebhookKey = (CompanyId, WebhookId);

struct Dispatcher {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedReceiver<Command>,
    running: HashMap<WebhookKey, CourierHandle>,
    couriers: JoinSet<WebhookKey>,
    /// Companies that have or had webhooks.
    with_webhooks: BTreeSet<CompanyId>,
    /// Companies whose webhooks must be read again.
    changed: BTreeSet<CompanyId>,
    /// Companies that another process serves, and whose webhooks are read once this process serves them. They are
    /// checked periodically, because checking thousands of them at each command would delay the moves that send the
    /// commands.
    remote: BTreeSet<CompanyId>,
    /// When `remote` is checked next.
    remote_check_at: Instant,
    /// Companies whose deliveries are paused.
    paused: BTreeSet<CompanyId>,
    reads: JoinSet<Result<Vec<Endpoint>>>,
    /// The companies of these reads, without those whose deliveries were paused since then: what was read of them is
    /// out of date.
    reading: HashMap<Id, CompanyId>,
    /// The company whose read was started last. Reads continue with the next higher id among `changed`, so that a
    /// company whose reads fail does not delay the others.
    last_read: CompanyId,
    /// No reads before this time: one has failed.
    retry_at: Option<Instant>,
}

impl Dispatcher {
    fn new(shared: Arc<Shared>, commands: mpsc::UnboundedReceiver<Command>) -> Self {
        Self {
            shared,
            commands,
            running: HashMap::new(),
            couriers: JoinSet::new(),
            with_webhooks: BTreeSet::new(),
            changed: BTreeSet::new(),
            remote: BTreeSet::new(),
            remote_check_at: Instant::now(),
            paused: BTreeSet::new(),
            reads: JoinSet::new(),
            reading: HashMap::new(),
            last_read: CompanyId::new(0),
            retry_at: None,
        }
    }

    async fn run(mut self) {
        let shared = self.shared.clone();
        let changed_webhooks = shared.app.engine.store().webhooks.clone();
        let mut stopping = shared.stopping.clone();
        let mut sweep_timer = tokio::time::interval_at(Instant::now() + SWEEP_EVERY, SWEEP_EVERY);
        sweep_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut must_search = true;
        loop {
            self.check_remote();
            if self.retry_at.is_none_or(|at| at <= Instant::now()) {
                must_search = must_search && !self.find_companies().await;
                self.retry_at = must_search.then(|| Instant::now() + RETRY_AFTER);
                self.start_reads();
            }
            let retry_at = self.retry_at;
            let (has_remote, remote_check_at) = (!self.remote.is_empty(), self.remote_check_at);
            tokio::select! {
                changes = changed_webhooks.next() => {
                    must_search |= changes.may_include_others;
                    self.changed.extend(changes.companies);
                }
                Some(command) = self.commands.recv() => {
                    self.handle(command);
                    // A move of slots sends hundreds at the same time.
                    while let Ok(command) = self.commands.try_recv() {
                        self.handle(command);
                    }
                }
                Some(read) = self.reads.join_next_with_id(), if !self.reads.is_empty() => self.finish_read(read),
                Some(ended) = self.couriers.join_next(), if !self.couriers.is_empty() => self.remove_ended(ended),
                _ = sweep_timer.tick() => self.sweep_all(),
                () = sleep_until(retry_at.unwrap_or_else(Instant::now)), if retry_at.is_some() => {}
                () = sleep_until(remote_check_at), if has_remote => {}
                _ = stopping.wait_for(|is_stopping| *is_stopping) => break,
            }
        }
        // The couriers notice the stop themselves, and write their outcomes.
        self.running.clear();
        while self.couriers.join_next().await.is_some() {}
    }

    /// Removes a courier that has ended. Its company is read again, which starts a new one.
    fn remove_ended(&mut self, ended: std::result::Result<WebhookKey, JoinError>) {
        // Aborted couriers were already removed.
        let Ok(key) = ended else { return };
        // Stopped couriers were already removed.
        if self.running.get(&key).is_some_and(|running| running.task.is_finished()) {
            self.running.remove(&key);
            self.changed.insert(key.0);
        }
    }

    fn handle(&mut self, command: Command) {
        match command {
            Command::Pause(company, done) => {
                self.paused.insert(company);
                let keys: Vec<WebhookKey> = self.running.keys().filter(|key| key.0 == company).copied().collect();
                let couriers = keys.iter().filter_map(|key| self.running.remove(key)).collect();
                self.with_webhooks.remove(&company);
                self.reading.retain(|_, reading| *reading != company);
                self.changed.remove(&company);
                self.remote.remove(&company);
                // In a task: other companies need the dispatcher meanwhile.
                tokio::spawn(async move {
                    retire_all(couriers).await;
                    let _ = done.send(());
                });
            }
            Command::Resume(company) => {
                self.paused.remove(&company);
                self.changed.insert(company);
            }
        }
    }

    /// Reads all companies with webhooks: at the start, and when notifications were missed. Returns whether they were
    /// read.
    async fn find_companies(&mut self) -> bool {
        let shared = self.shared.clone();
        let search = self.shared.app.engine.background().spawn(async move {
            hotline_persistence::fail_point!("webhooks_searched");
            webhooks::companies(&shared.app.engine.store().housekeeping).await
        });
        let companies = match search.await {
            Ok(companies) => companies.map_err(|error| error.to_string()),
            // It has panicked, which was logged.
            Err(error) => Err(error.to_string()),
        };
        match companies {
            Ok(companies) => {
                self.changed.extend(companies);
                true
            }
            Err(error) => {
                tracing::debug!(%error, "search for companies with webhooks will be retried");
                false
            }
        }
    }

    /// Checks which companies of other processes are served here by now.
    fn check_remote(&mut self) {
        let now = Instant::now();
        if now < self.remote_check_at {
            return;
        }
        self.remote_check_at = now + RETRY_AFTER;
        let engine = &self.shared.app.engine;
        self.changed.extend(self.remote.extract_if(.., |company| engine.owns(*company)));
    }

    /// Starts to read the webhooks of companies that may have changed.
    fn start_reads(&mut self) {
        let engine = &self.shared.app.engine;
        // Also counts the reads of companies whose deliveries were paused since.
        while self.reads.len() < READS_MAX {
            let Some(company) = self.next_changed() else { return };
            self.changed.remove(&company);
            if !engine.owns(company) {
                self.remote.insert(company);
                continue;
            }
            self.last_read = company;
            let shared = self.shared.clone();
            let read = async move {
                let store = shared.app.engine.store();
                webhooks::active(store.db(company), &store.keys, company).await
            };
            let task = self.reads.spawn_on(read, engine.background());
            self.reading.insert(task.id(), company);
        }
    }

    /// The next company whose webhooks are to be read. One that is being read has its turn afterwards, so that the
    /// later read counts.
    fn next_changed(&self) -> Option<CompanyId> {
        let is_free = |company: &&CompanyId| {
            !self.paused.contains(company) && self.reading.values().all(|reading| reading != *company)
        };
        let following = self.changed.range((Bound::Excluded(self.last_read), Bound::Unbounded));
        following.chain(self.changed.range(..=self.last_read)).find(is_free).copied()
    }

    fn finish_read(&mut self, read: std::result::Result<(Id, Result<Vec<Endpoint>>), JoinError>) {
        let (task, endpoints) = match read {
            Ok((task, endpoints)) => (task, endpoints.map_err(|error| error.to_string())),
            Err(error) => (error.id(), Err(error.to_string())),
        };
        let Some(company) = self.reading.remove(&task) else { return };
        match endpoints {
            Ok(endpoints) => {
                self.with_webhooks.insert(company);
                self.spawn_couriers(company, endpoints);
                self.sweep(company);
            }
            Err(error) => {
                tracing::debug!(%error, company.id = %company, "reading webhooks will be retried");
                self.changed.insert(company);
                self.retry_at = Some(Instant::now() + RETRY_AFTER);
            }
        }
    }

    /// Ensures that each active webhook has a courier with its current settings, and that no other webhook has one.
    fn spawn_couriers(&mut self, company: CompanyId, endpoints: Vec<Endpoint>) {
        let is_active = |key: &WebhookKey| endpoints.iter().any(|endpoint| endpoint.id == key.1);
        self.running.retain(|key, _| key.0 != company || is_active(key));
        for endpoint in endpoints {
            let key = (company, endpoint.id);
            let endpoint = Arc::new(endpoint);
            if let Some(running) = self.running.get(&key).filter(|running| !running.task.is_finished()) {
                running.settings.send_replace(endpoint);
                continue;
            }
            let (settings, receiver) = watch::channel(endpoint);
            let (retire, (end_sender, ended)) = (Arc::<Notify>::default(), oneshot::channel());
            let courier = Courier::new(self.shared.clone(), receiver, retire.clone());
            let task = self.couriers.spawn(async move {
                let end_sender: oneshot::Sender<()> = end_sender;
                let has_failed = AssertUnwindSafe(courier.run()).catch_unwind().await.is_err();
                drop(end_sender);
                if has_failed {
                    tracing::error!(company.id = %company, webhook.id = %key.1, "webhook courier failed unexpectedly");
                    // The next one may fail as soon as it starts.
                    sleep(RETRY_AFTER).await;
                }
                key
            });
            self.running.insert(key, CourierHandle { settings, retire, ended, task });
        }
    }

    fn sweep_all(&self) {
        for company in &self.with_webhooks {
            self.sweep(*company);
        }
    }

    /// Removes deliveries whose event no longer exists.
    fn sweep(&self, company: CompanyId) {
        let shared = self.shared.clone();
        drop(self.shared.app.engine.background().spawn(async move {
            if let Err(error) = delete_expired(&shared, company).await {
                tracing::debug!(%error, company.id = %company, "removal of old deliveries will be retried");
            }
        }));
    }
}

async fn delete_expired(shared: &Shared, company: CompanyId) -> Result<()> {
    let store = shared.app.engine.store();
    let db = || store.db(company);
    // Read first: events added meanwhile have higher ids.
    let last = events::last_id(db(), company).await?;
    let first = events::first_id(db(), company).await?.map_or(last.0 + 1, |first| first.0);
    let webhooks = webhooks::ids(db(), company).await?;
    if webhooks.is_empty() {
        return Ok(());
    }
    for webhook in webhooks {
        loop {
            let Some(_presence) = store.ownership().try_enter(company) else { return Ok(()) };
            let dropped = deliveries::delete_through(db(), company, webhook, first - 1).await?;
            if dropped.has_due {
                deliveries::wake(db(), company, webhook).await?;
            }
            if dropped.is_complete {
                break;
            }
        }
    }
    let Some(_presence) = store.ownership().try_enter(company) else { return Ok(()) };
    deliveries::delete_zones_before(db(), company, first - 1).await
}
