//! The outboxes: messages accepted for a channel's provider, until the provider has them.
//!
//! A message enters its channel's outbox when its ticket's actor appends it to the log, so the messages of a ticket
//! enter in order. It is sent once it is durable. The channel's actor, [`ChannelSender`], paces the sends, retries
//! failures, and records each outcome in the log. A message leaves the outbox only when its outcome is durable. So no
//! accepted message is lost. A message is sent twice only if the process ends after the provider's acceptance and
//! before the outcome is durable, or if the provider's answer is lost and no status that carries our id of the message
//! arrives in time. A campaign's message is never sent twice: each attempt is recorded durably before its call, and a
//! message whose outcome is unknown is left in doubt. If a message has a follow-up action on its ticket, the ticket's
//! actor decides it in the entry with the outcome. Most messages have none; their outcomes are recorded in batches
//! ([`status_recorder`]).
//!
//! The senders and their calls run on an arbiter of their own: requests and the persister do not wait for calls, nor
//! calls for them. Code on this arbiter never queries the database, because connections belong to the runtime
//! that opened them.
//!
//! Memory is bounded: messages that do not fit are read back from the tables, which hold every queued message.

mod attempt;
mod backoff;
mod channel_outbox;
mod contacts_during_read;
mod event;
mod lanes;
mod outcomes;
mod outgoing;
mod rate_limit;
mod recent_outcomes;
mod sender;
mod sender_messages;
mod sender_scope;
mod stats;
mod status_recorder;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix::Addr;
use dashmap::DashMap;
use hotline_persistence::journal::Seq;
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::messages;
use hotline_persistence::{Change, CompanyId, ContactId};
use tokio::sync::oneshot;

use self::channel_outbox::Outbox;
pub(crate) use self::outgoing::Outgoing;
pub use self::sender::ChannelSender;
use self::sender_messages::{
    ContactRemoved, ContactsChanged, ContactsMerged, MessageQueued, Pause, Resume, ServiceStopping, Terminate,
};
use self::sender_scope::SenderScope;
pub(crate) use self::sender_scope::StatusDecider;
pub use self::stats::{AttemptCount, SendingStats};
use super::{ChannelKey, InTransit, Inboxes, Provider};
use crate::Refusal;
use crate::base::Base;
pub use crate::base::SendingOptions;
use crate::registry::Population;
use crate::tickets::Ticket;

/// How long a stop waits for the answers of running attempts. A message without an answer is sent again at the next
/// start.
const STOP_TIME_MAX: Duration = Duration::from_secs(5);

/// How long pausing a company's channels may take. If a provider takes longer, the company stays in memory.
const PAUSE_TIME_MAX: Duration = Duration::from_secs(10);

/// All outboxes and their senders; none until sending begins.
pub(crate) struct Outboxes {
    base: Arc<Base>,
    inboxes: Arc<Inboxes>,
    in_transit: Arc<InTransit>,
    channels: DashMap<ChannelKey, SenderHandle>,
    scope: OnceLock<Arc<SenderScope>>,
}

/// One channel's outbox, and the actor that sends its messages.
#[derive(Clone)]
struct SenderHandle {
    outbox: Arc<Outbox>,
    addr: Addr<ChannelSender>,
}

impl Outboxes {
    /// Creates the outboxes, before sending begins.
    pub(crate) fn new(base: Arc<Base>, inboxes: Arc<Inboxes>, in_transit: Arc<InTransit>) -> Self {
        Self { base, inboxes, in_transit, channels: DashMap::new(), scope: OnceLock::new() }
    }

    /// The messages to send among these changes; none if this process does not send.
    pub(crate) fn outgoing(&self, changes: &[Change], ticket: &Ticket) -> Vec<Outgoing> {
        if self.scope.get().is_none() { Vec::new() } else { Outgoing::of(changes, ticket) }
    }

    /// Puts messages that were appended to the log into their outbox.
    pub(crate) fn put(&self, seq: Seq, outgoing: Vec<Outgoing>) {
        let Some(scope) = self.scope.get() else { return };
        for mut entry in outgoing {
            entry.seq = seq;
            let channel = (entry.message.company_id, entry.message.channel_id);
            let sender = match self.channels.get(&channel) {
                Some(sender) => sender.clone(),
                None => self.channels.entry(channel).or_insert_with(|| start_sender(scope, channel, false)).clone(),
            };
            if sender.outbox.put(entry) {
                sender.addr.do_send(MessageQueued);
            }
        }
    }

    /// Notifies the senders that a contact was merged into another, which takes over its waiting messages.
    pub(crate) fn notify_of_merge(&self, company: CompanyId, from: ContactId, into: ContactId) {
        for entry in self.channels.iter().filter(|entry| entry.key().0 == company) {
            entry.addr.do_send(ContactsMerged { from, into });
        }
    }

    /// Notifies the senders that contacts were changed: their messages are sent to the number that they have now.
    pub(crate) fn notify_of_changes(&self, company: CompanyId, contacts: &[ContactId]) {
        // Contacts change often: the channels of other companies are not searched.
        let Some(organization) = self.base.directory.company(company) else { return };
        let contacts = Arc::new(contacts.iter().copied().collect::<HashSet<_>>());
        for sender in organization.channels.keys().filter_map(|channel| self.channels.get(&(company, *channel))) {
            sender.addr.do_send(ContactsChanged(contacts.clone()));
        }
    }

    /// Drops the messages of a contact that was deleted. Afterwards, no call for it begins; a call that is under way
    /// still ends.
    pub(crate) async fn drop_messages_of(&self, company: CompanyId, contact: ContactId) {
        let senders: Vec<Addr<ChannelSender>> =
            self.channels.iter().filter(|entry| entry.key().0 == company).map(|entry| entry.addr.clone()).collect();
        for sender in senders {
            // A sender that has ended sends nothing.
            let _ = sender.send(ContactRemoved(contact)).await;
        }
    }

    /// Starts to send messages, first those left by an earlier run. A second call is refused.
    pub(crate) async fn start(
        &self,
        provider: Arc<dyn Provider>,
        tickets: Arc<dyn StatusDecider>,
    ) -> Result<(), Refusal> {
        let scope =
            Arc::new(SenderScope::start(self.base.clone(), &self.inboxes, self.in_transit.clone(), provider, tickets)?);
        // Queried before messages enter: a sender that is started by a message does not look for earlier ones.
        let store = &self.base.store;
        let channels = messages::outboxes(&store.housekeeping, &store.ownership().slot_filter()).await?;
        if self.scope.set(scope.clone()).is_err() {
            return Err(Refusal::Defect("sending has already started".to_owned()));
        }
        self.start_with_backlog(&scope, channels, |company| self.base.owns(company));
        Ok(())
    }

    /// Starts to send the backlogs that other processes have left in these channels, before their companies are served.
    /// Also resumes all senders of the companies that are taken over: a canceled move may have left them paused.
    pub(crate) fn take_over(&self, channels: Vec<ChannelKey>, is_taken_over: impl Fn(CompanyId) -> bool) {
        let Some(scope) = self.scope.get() else { return };
        for sender in self.channels.iter().filter(|sender| is_taken_over(sender.key().0)) {
            sender.addr.do_send(Resume);
        }
        self.start_with_backlog(scope, channels, |_| true);
    }

    fn start_with_backlog(
        &self,
        scope: &Arc<SenderScope>,
        channels: Vec<ChannelKey>,
        is_served: impl Fn(CompanyId) -> bool,
    ) {
        for channel in channels.into_iter().filter(|(company, _)| is_served(*company)) {
            self.channels.entry(channel).or_insert_with(|| start_sender(scope, channel, true));
        }
    }

    /// Stops new attempts for a company, and waits until the log has the outcomes of the running ones.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when a provider or the database does not answer in time; [`Outboxes::resume`] then ends
    /// the pause.
    pub(crate) async fn pause(&self, company: CompanyId) -> Result<(), Refusal> {
        let mut pending = Vec::new();
        for entry in self.channels.iter().filter(|entry| entry.key().0 == company) {
            let (paused_signal, receiver) = oneshot::channel();
            entry.addr.do_send(Pause { paused_signal });
            pending.push(receiver);
        }
        let all_paused = futures_util::future::join_all(pending);
        tokio::time::timeout(PAUSE_TIME_MAX, all_paused)
            .await
            .map(drop)
            .map_err(|_| Refusal::Unavailable("a provider or the database did not respond".to_owned()))
    }

    /// Drops the outboxes of a company whose sending is paused. The tables have their messages.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { base: _, inboxes: _, in_transit: _, channels, scope } = self;
        channels.retain(|(owner, _), sender| {
            let is_kept = *owner != company;
            if !is_kept {
                sender.addr.do_send(Terminate);
            }
            is_kept
        });
        if let Some(scope) = scope.get() {
            scope.forget_company(company);
        }
    }

    /// Resumes sending for a company: messages in memory and, for channels that were dropped, those in the tables.
    pub(crate) fn resume(&self, company: CompanyId) {
        let Some(scope) = self.scope.get() else { return };
        // A company that has moved to another process is served there.
        if !self.base.store.ownership().is_placed_here(company) {
            return;
        }
        let organization = self.base.directory.company(company);
        let all = organization.iter().flat_map(|organization| organization.channels.values());
        for channel in all.filter(|channel| channel.kind != ChannelType::Webchat) {
            let key = (company, channel.id);
            self.channels.entry(key).or_insert_with(|| start_sender(scope, key, true)).addr.do_send(Resume);
        }
    }

    /// Statistics of messages on their way to providers, and of the providers' answers; zero before sending begins.
    pub(crate) fn stats(&self) -> SendingStats {
        let Some(scope) = self.scope.get() else { return SendingStats::default() };
        SendingStats::of(&scope.attempts, self.channels.iter().map(|sender| sender.outbox.snapshot()))
    }

    /// The number of senders, and of messages in their outboxes that they have not taken yet.
    pub(crate) fn population(&self) -> Population {
        Population {
            hot: self.channels.len(),
            waiting: self.channels.iter().map(|sender| sender.outbox.snapshot().arrivals).sum(),
        }
    }

    /// Stops new attempts, waits for the running ones with a time limit, and ends the senders.
    pub(crate) async fn stop(&self) {
        let Some(scope) = self.scope.get() else { return };
        scope.begin_stopping();
        for sender in &self.channels {
            sender.addr.do_send(ServiceStopping);
        }
        if tokio::time::timeout(STOP_TIME_MAX, scope.wait_for_senders()).await.is_err() {
            tracing::warn!("providers did not answer before shutdown; messages in flight may be sent twice");
        }
    }
}

fn start_sender(scope: &Arc<SenderScope>, channel: ChannelKey, has_backlog: bool) -> SenderHandle {
    let options = &scope.base.options.sending;
    let outbox = Arc::new(Outbox::new(options.memory_messages_max, options.memory_bytes_max, has_backlog));
    SenderHandle { addr: ChannelSender::start_with(scope, outbox.clone(), channel), outbox }
}
