//! The engine: all actors and services of a process, each with its dependencies. It starts, drops and takes over
//! companies; the services themselves are in `services/`.

mod campaigns;
mod cascades;
mod erasures;
mod forget;
mod merging;
mod retention;
mod schedules;
mod sessions;
mod slots;
mod sweep;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hotline_persistence::table::Expected;
use hotline_persistence::tables::cascades::Cascade;
use hotline_persistence::{CompanyId, ContactId, EventListener, Presence, Store};
use tokio::runtime::Handle;

pub use campaigns::{CampaignHold, CampaignStartGuard, CampaignStats, Campaigns};
pub use cascades::Cascades;
pub use erasures::Erasures;
pub use merging::{MergeHold, Merging};
pub use retention::{Retention, RetentionStats};
pub use schedules::{ScheduleStats, Schedules};
pub use sessions::{Identified, Sessions, VisitorLock};
use sweep::Sweeper;

use crate::Refusal;
use crate::answers::CompletionQueue;
use crate::attendance::Attendance;
use crate::base::{Base, EngineOptions};
use crate::channels::{InTransit, Inboxes, Outboxes};
use crate::contacts::ContactCache;
use crate::directory::Directory;
use crate::distribution::Assigners;
use crate::overview::Overviews;
use crate::reads::Reads;
use crate::registry::{Population, Registry};
use crate::services::{Assignment, Contacts, Inbound, Sending, Tickets};
use crate::ticket_actor::TicketScope;
use crate::webchat::{SessionScope, Watchers};

/// Statistics of the actors at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    /// Tickets.
    pub tickets: Population,
    /// Visitor sessions.
    pub sessions: Population,
    /// Channels' senders.
    pub channels: Population,
    /// Companies' scheduled messages.
    pub schedules: Population,
    /// Campaigns that are running or scheduled.
    pub campaigns: Population,
    /// Open tickets that are counted and listed in memory.
    pub listed_tickets: usize,
}

/// The engine. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    /// Tickets.
    pub tickets: Arc<Tickets>,
    /// Contacts.
    pub contacts: Arc<Contacts>,
    /// Inbound traffic.
    pub inbound: Arc<Inbound>,
    /// Sending.
    pub sending: Arc<Sending>,
    /// Scheduled messages.
    pub schedules: Arc<Schedules>,
    /// Campaigns.
    pub campaigns: Arc<Campaigns>,
    /// Assignment of tickets to agents.
    pub assignment: Arc<Assignment>,
    /// Visitor sessions.
    pub sessions: Arc<Sessions>,
    /// Removal of expired conversations.
    pub retention: Arc<Retention>,
    /// Removal of references to deleted records.
    pub cascades: Arc<Cascades>,
    /// Erasure of people's data.
    pub erasures: Arc<Erasures>,
    /// Merges of contacts and of tickets.
    pub merging: Arc<Merging>,
    /// Who is present to answer visitors.
    pub attendance: Arc<Attendance>,
    base: Arc<Base>,
    sweeper: Arc<Sweeper>,
    is_sweeping: Arc<AtomicBool>,
}

impl Engine {
    /// Creates the engine over an open store. Needs a running actix system.
    pub fn new(store: Arc<Store>, directory: Directory, options: EngineOptions) -> Self {
        let watchers = Arc::<Watchers>::default();
        let in_transit = Arc::<InTransit>::default();
        let overviews = Arc::<Overviews>::default();
        let listeners = (watchers.clone(), in_transit.clone(), overviews.clone());
        store.log.set_commit_listener(Box::new(move |changes| {
            let (watchers, in_transit, overviews) = &listeners;
            watchers.on_commit(changes);
            in_transit.on_commit(changes);
            overviews.on_commit(changes);
        }));
        let base = Base::new(store, directory, overviews, options);
        let (cache, assigners, inboxes) =
            (Arc::<ContactCache>::default(), Arc::<Assigners>::default(), Arc::<Inboxes>::default());
        let outboxes = Arc::new(Outboxes::new(base.clone(), inboxes.clone(), in_transit.clone()));
        let ticket_scope = Arc::new(TicketScope {
            base: base.clone(),
            contacts: cache.clone(),
            assigners: assigners.clone(),
            outboxes: outboxes.clone(),
            inboxes: inboxes.clone(),
            hot: Registry::default(),
        });
        let contacts = Arc::new(Contacts::new(base.clone(), cache.clone(), ticket_scope.clone(), in_transit.clone()));
        let assignment = Arc::new(Assignment::new(base.clone(), assigners));
        let tickets = Arc::new(Tickets::new(base.clone(), contacts.clone(), assignment.clone(), ticket_scope.clone()));
        let inbound = Inbound::new(base.clone(), contacts.clone(), tickets.clone(), inboxes);
        let sending = Arc::new(Sending::new(base.clone(), contacts.clone(), tickets.clone(), outboxes));
        let schedules = Arc::new(Schedules::new(base.clone(), contacts.clone(), sending.clone()));
        let campaigns = Arc::new(Campaigns::new(base.clone(), contacts.clone(), sending.clone(), in_transit));
        let session_scope =
            Arc::new(SessionScope::new(base.clone(), contacts.clone(), inbound.clone(), tickets.clone(), watchers));
        let sessions = Arc::new(Sessions::new(base.clone(), contacts.clone(), session_scope.clone()));
        let retention = Arc::new(Retention::new(base.clone(), cache.clone(), ticket_scope.clone(), sessions.clone()));
        let cascades = Arc::new(Cascades::new(base.clone(), schedules.clone()));
        let erasures = Arc::new(Erasures {
            base: base.clone(),
            contacts: contacts.clone(),
            tickets: tickets.clone(),
            sessions: sessions.clone(),
            cascades: cascades.clone(),
        });
        let merging = Arc::new(Merging {
            base: base.clone(),
            contacts: contacts.clone(),
            tickets: tickets.clone(),
            sessions: sessions.clone(),
            schedules: schedules.clone(),
        });
        let sweeper = Arc::new(Sweeper::new(base.clone(), cache, ticket_scope, session_scope, sessions.clone()));
        let (is_sweeping, attendance) = (Arc::default(), Arc::default());
        Self {
            tickets,
            contacts,
            inbound,
            sending,
            schedules,
            campaigns,
            assignment,
            sessions,
            retention,
            cascades,
            erasures,
            merging,
            attendance,
            base,
            sweeper,
            is_sweeping,
        }
    }

    /// Starts the periodic work: idle actors retire, abandoned sessions end, and references to deleted records are
    /// removed. Later calls do nothing.
    pub fn start_sweeping(&self) {
        if !self.is_sweeping.swap(true, Ordering::AcqRel) {
            actix::spawn(self.sweeper.clone().run());
            actix::spawn(self.cascades.clone().run());
        }
    }

    /// Starts work that may outlast its request. A stop of the process may cancel it.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.base.spawn(work);
    }

    /// Starts work of a company that may outlast its request. Dropping the company from memory waits for it.
    pub fn spawn_for(&self, company: CompanyId, work: impl Future<Output = ()> + Send + 'static) {
        self.base.spawn_for(company, work);
    }

    /// The runtime that is stopped last, for work that must not end with a request thread.
    pub fn background(&self) -> &Handle {
        &self.base.background
    }

    /// Lets actors run on this request thread, and delivers answers to it in batches. To be called once on each request
    /// thread.
    pub fn run_actors_here(&self) {
        self.base.arbiters.add_current_thread();
        CompletionQueue::open();
    }

    /// Marks the service as stopping: scheduled messages and campaigns begin no further work, and a command is refused
    /// as unavailable if its actor has ended with its thread.
    pub fn begin_stopping(&self) {
        self.base.begin_stopping();
    }

    /// Stops the actors' own threads. The log keeps its entries. To be called after the last request.
    pub fn stop(&self) {
        self.base.arbiters.stop();
    }

    /// Asks idle actors to retire, as happens periodically. While the database does not respond, all actors stay.
    /// Returns whether it responds and accepts changes.
    pub async fn retire_idle(&self) -> bool {
        self.sweeper.retire_idle().await
    }

    /// The durable store.
    pub fn store(&self) -> &Arc<Store> {
        &self.base.store
    }

    /// Subscribes to the events of a company; `None` if this process records no events. A reader that reads the events
    /// after each notification misses none that is recorded from now on.
    pub fn listen(&self, company: CompanyId) -> Option<EventListener> {
        self.store().events.as_ref().map(|events| events.listen(company))
    }

    /// The companies' directory.
    pub fn directory(&self) -> &Directory {
        &self.base.directory
    }

    /// Whether this process serves a company. Periodic work, and work that searches for companies, must check this
    /// first.
    pub fn owns(&self, company: CompanyId) -> bool {
        self.base.owns(company)
    }

    /// Enters a company; waits while the company is closed. The presence is to be held until the work has ended.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the company stays closed for too long.
    pub async fn enter(&self, company: CompanyId) -> Result<Presence, Refusal> {
        Ok(self.store().ownership().enter(company).await?)
    }

    /// Reads of live rows.
    pub fn reads(&self) -> Reads<'_> {
        self.base.reads()
    }

    /// Waits until actors use the company's committed configuration. To be called after a change of data in the
    /// directory.
    pub async fn refresh(&self, company: CompanyId) {
        self.base.refresh(company).await;
    }

    /// Deletes a contact with all its data, if it is in an expected state. If a ticket or session of the contact is
    /// opened concurrently, either the deletion is refused or the opening finds no contact.
    ///
    /// # Errors
    /// [`Refusal::NotFound`]; [`Refusal::Changed`] in another state; [`Refusal::Conflict`] while the contact has an
    /// open ticket or an active session; [`Refusal::Unavailable`] when the database is unavailable.
    pub async fn remove_contact(&self, company: CompanyId, id: ContactId, expected: Expected) -> Result<(), Refusal> {
        let sessions = self.sessions.clone();
        self.contacts.remove(company, id, expected, move |deleted| sessions.forget(company, deleted)).await?;
        self.cascades.begin(company, Cascade::Contact(id)).await;
        Ok(())
    }

    /// The numbers of hot tickets and sessions.
    pub fn hot(&self) -> (usize, usize) {
        (self.tickets.population().hot, self.sessions.population().hot)
    }

    /// The number of hot actors of each kind, and their load.
    pub fn stats(&self) -> Stats {
        Stats {
            tickets: self.tickets.population(),
            sessions: self.sessions.population(),
            channels: self.sending.population(),
            schedules: self.schedules.population(),
            campaigns: self.campaigns.population(),
            listed_tickets: self.base.overviews.ticket_count(),
        }
    }
}
