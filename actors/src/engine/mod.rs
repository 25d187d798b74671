//! The engine: the live half in its parts, each with what it needs.

mod assignment;
mod campaigns;
mod contacts;
mod forget;
mod inbound;
mod retention;
mod schedules;
mod sending;
mod sessions;
mod slots;
mod tickets;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hotline_persistence::{CompanyId, ContactId, Listening, Presence, Store};
use tokio::runtime::Handle;

pub use assignment::Assignment;
pub use campaigns::{Begins, CampaignStats, Campaigns, HeldCampaign};
pub use contacts::{ContactChanges, Contacts};
pub use inbound::{Inbound, InboundMessage, Number, Sender};
pub use retention::{Retention, RetentionFigures};
pub use schedules::{ScheduleStats, Schedules};
pub use sending::{NewContact, Recipient, Sending, Target};
pub use sessions::{Identified, Sessions, VisitorTurn};
pub use tickets::Tickets;

use crate::Refusal;
use crate::answers::CompletionQueue;
use crate::base::{Base, EngineOptions};
use crate::channels::{InTransit, Inboxes, Outboxes};
use crate::contacts::KnownContacts;
use crate::directory::Directory;
use crate::distribution::Desks;
use crate::overview::Overviews;
use crate::reads::Reads;
use crate::registry::{Population, Registry};
use crate::sweep::Sweeper;
use crate::tickets::TicketScope;
use crate::webchat::{SessionScope, Watchers};

/// The actors at one moment.
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
    /// Campaigns that are sent, or will be.
    pub campaigns: Population,
}

/// The live half. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    /// Every ticket.
    pub tickets: Arc<Tickets>,
    /// Every contact.
    pub contacts: Arc<Contacts>,
    /// What comes in.
    pub inbound: Arc<Inbound>,
    /// What goes out.
    pub sending: Arc<Sending>,
    /// What goes out later.
    pub schedules: Arc<Schedules>,
    /// What goes out to many.
    pub campaigns: Arc<Campaigns>,
    /// Who gets tickets.
    pub assignment: Arc<Assignment>,
    /// Every visitor session.
    pub sessions: Arc<Sessions>,
    /// What is kept long enough.
    pub retention: Arc<Retention>,
    base: Arc<Base>,
    sweeper: Arc<Sweeper>,
    swept: Arc<AtomicBool>,
}

impl Engine {
    /// The live half over an open store. Needs a running actix system.
    pub fn new(store: Arc<Store>, directory: Directory, options: EngineOptions) -> Self {
        let watchers = Arc::<Watchers>::default();
        let told = watchers.clone();
        let in_transit = Arc::<InTransit>::default();
        let watched = in_transit.clone();
        let overviews = Arc::<Overviews>::default();
        let looked_at = overviews.clone();
        store.log.set_witness(Box::new(move |changes| {
            told.tell(changes);
            watched.tell(changes);
            looked_at.tell(changes);
        }));
        let base = Base::new(store, directory, overviews, options);
        let (known, desks, inboxes) =
            (Arc::<KnownContacts>::default(), Arc::<Desks>::default(), Arc::<Inboxes>::default());
        let outboxes = Arc::new(Outboxes::new(base.clone(), inboxes.clone(), in_transit.clone()));
        let ticket_scope = Arc::new(TicketScope {
            base: base.clone(),
            contacts: known.clone(),
            desks: desks.clone(),
            outboxes: outboxes.clone(),
            inboxes: inboxes.clone(),
            hot: Registry::default(),
        });
        let contacts = Arc::new(Contacts::new(base.clone(), known.clone(), ticket_scope.clone()));
        let assignment = Arc::new(Assignment::new(base.clone(), desks));
        let tickets = Arc::new(Tickets::new(base.clone(), contacts.clone(), assignment.clone(), ticket_scope.clone()));
        let inbound = Inbound::new(base.clone(), contacts.clone(), tickets.clone(), inboxes);
        let sending = Arc::new(Sending::new(base.clone(), contacts.clone(), tickets.clone(), outboxes));
        let schedules = Arc::new(Schedules::new(base.clone(), contacts.clone(), sending.clone()));
        let campaigns = Arc::new(Campaigns::new(base.clone(), contacts.clone(), sending.clone(), in_transit));
        let session_scope = Arc::new(SessionScope::new(base.clone(), inbound.clone(), tickets.clone(), watchers));
        let sessions = Arc::new(Sessions::new(base.clone(), contacts.clone(), session_scope.clone()));
        let retention = Arc::new(Retention::new(base.clone(), known.clone(), ticket_scope.clone(), sessions.clone()));
        let sweeper = Arc::new(Sweeper::new(base.clone(), known, ticket_scope, session_scope, sessions.clone()));
        let swept = Arc::default();
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
            base,
            sweeper,
            swept,
        }
    }

    /// Starts the regular work: idle actors make room, forgotten sessions end. Once.
    pub fn start_sweeping(&self) {
        if !self.swept.swap(true, Ordering::AcqRel) {
            actix::spawn(self.sweeper.clone().run());
        }
    }

    /// Goes on with something after its request was answered. It may be cut short when the process stops.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.base.spawn(work);
    }

    /// Goes on with work of a company after its request was answered: who drops the company waits for it.
    pub fn spawn_for(&self, company: CompanyId, work: impl Future<Output = ()> + Send + 'static) {
        self.base.spawn_for(company, work);
    }

    /// The runtime that is stopped last, for what must not end with a thread of requests.
    pub fn background(&self) -> &Handle {
        &self.base.background
    }

    /// Makes this thread, which serves requests, a home of actors, and has it handed its answers many at a time. To be
    /// called once on each of them.
    pub fn live_here(&self) {
        self.base.arbiters.join();
        CompletionQueue::open();
    }

    /// Tells that no request is taken any more: an actor that is gone from now on went with its thread.
    pub fn begin_stopping(&self) {
        self.base.begin_stopping();
    }

    /// Stops the actors' own threads. What is in the log is kept; call it when nothing is asked any more.
    pub fn stop(&self) {
        self.base.arbiters.stop();
    }

    /// The durable half.
    pub fn store(&self) -> &Arc<Store> {
        &self.base.store
    }

    /// Begins to listen to the events of a company; none where no events are kept. Nothing that happens from here on is
    /// missed by who reads after each change.
    pub fn listen(&self, company: CompanyId) -> Option<Listening> {
        self.store().events.as_ref().map(|news| news.listen(company))
    }

    /// The companies' directory.
    pub fn directory(&self) -> &Directory {
        &self.base.directory
    }

    /// Whether this process serves a company: to be asked by whatever comes by the clock or finds companies by itself,
    /// before it does anything for one.
    pub fn owns(&self, company: CompanyId) -> bool {
        self.base.owns(company)
    }

    /// Begins work of a company, after whoever has closed it; to be held until the work has ended.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the company is not served for long.
    pub async fn enter(&self, company: CompanyId) -> Result<Presence, Refusal> {
        Ok(self.store().ownership().enter(company).await?)
    }

    /// Reads of live rows.
    pub fn reads(&self) -> Reads<'_> {
        self.base.reads()
    }

    /// Waits until the actors decide by everything of a company that is committed: after a change of what the directory
    /// holds.
    pub async fn refresh(&self, company: CompanyId) {
        self.base.refresh(company).await;
    }

    /// Deletes a contact with everything that is theirs. An opening at the same moment comes before, and keeps the
    /// contact, or finds it gone.
    ///
    /// # Errors
    /// [`Refusal::NotFound`]; [`Refusal::Conflict`] while a ticket of theirs is open or a session is active;
    /// [`Refusal::Unavailable`] when the database is away.
    pub async fn remove_contact(&self, company: CompanyId, id: ContactId) -> Result<(), Refusal> {
        let sessions = self.sessions.clone();
        self.contacts.remove(company, id, move |gone| sessions.forget(company, gone)).await
    }

    /// Hot tickets and sessions.
    pub fn hot(&self) -> (usize, usize) {
        (self.tickets.population().hot, self.sessions.population().hot)
    }

    /// How many actors of each kind are hot, and how busy they are.
    pub fn figures(&self) -> Stats {
        Stats {
            tickets: self.tickets.population(),
            sessions: self.sessions.population(),
            channels: self.sending.population(),
            schedules: self.schedules.population(),
            campaigns: self.campaigns.population(),
        }
    }
}
