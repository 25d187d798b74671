//! The outboxes: messages accepted for a channel's provider, until the provider has them.
//!
//! A message enters its channel's outbox when its ticket's actor appends it to the log, so the messages of a ticket
//! enter in order. It is sent once it is durable. The channel's actor, [`ChannelSender`], paces the sends, retries
//! failures, and records each outcome in the log. A message leaves the outbox only when its outcome is durable. So no
//! accepted message is lost, and one is sent twice only if the process ends between the provider's acceptance and that
//! entry. A follow-up action is decided by the ticket's actor, in the same entry. Most messages have none; their
//! outcomes are recorded in batches ([`receipts`]).
//!
//! The senders and their calls run on an arbiter of their own: neither requests nor the persister wait for providers,
//! nor providers for them. Code on this arbiter never queries the database, because connections belong to the runtime
//! that opened them.
//!
//! Memory is bounded: messages that do not fit are read back from the tables, which hold every queued message.

mod attempt;
mod backoff;
mod dispatch;
mod event;
mod figures;
mod handed;
mod held;
mod lanes;
mod options;
mod outcomes;
mod outgoing;
mod pace;
mod receipts;
mod sender;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix::Addr;
use dashmap::DashMap;
use hotline_persistence::journal::Seq;
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::messages;
use hotline_persistence::{Change, ChannelId, CompanyId};
use tokio::sync::oneshot;

pub(crate) use self::dispatch::DecidesStatuses;
use self::dispatch::Dispatch;
pub use self::figures::{Attempted, SendingFigures};
use self::held::Outbox;
pub use self::options::SendingOptions;
pub(crate) use self::outgoing::Outgoing;
pub use self::sender::ChannelSender;
use self::sender::{Arrived, End, GoOn, Rest, Stop};
use super::{InTransit, Inboxes, Provider};
use crate::Refusal;
use crate::base::Base;
use crate::registry::Population;
use crate::tickets::Ticket;

/// How long a stop waits for the answers of attempts under way. A message without an answer is sent again at the next
/// start.
const STOP_TIME_MAX: Duration = Duration::from_secs(5);

/// How long pausing a company's channels may take. If a provider takes longer, the company is not dropped.
const REST_TIME_MAX: Duration = Duration::from_secs(10);

type Channel = (CompanyId, ChannelId);

/// All outboxes and their senders. They are empty until sending begins.
pub(crate) struct Outboxes {
    base: Arc<Base>,
    inboxes: Arc<Inboxes>,
    in_transit: Arc<InTransit>,
    channels: DashMap<Channel, Sender>,
    dispatch: OnceLock<Arc<Dispatch>>,
}

/// One channel's outbox, and the actor that sends its messages.
#[derive(Clone)]
struct Sender {
    outbox: Arc<Outbox>,
    addr: Addr<ChannelSender>,
}

impl Outboxes {
    /// Creates the outboxes, before sending begins.
    pub(crate) fn new(base: Arc<Base>, inboxes: Arc<Inboxes>, in_transit: Arc<InTransit>) -> Self {
        Self { base, inboxes, in_transit, channels: DashMap::new(), dispatch: OnceLock::new() }
    }

    /// The messages to send among these changes; none if this process does not send.
    pub(crate) fn outgoing(&self, changes: &[Change], ticket: &Ticket) -> Vec<Outgoing> {
        if self.dispatch.get().is_none() { Vec::new() } else { Outgoing::of(changes, ticket) }
    }

    /// Puts messages that were appended to the log into their outbox.
    pub(crate) fn put(&self, seq: Seq, outgoing: Vec<Outgoing>) {
        let Some(dispatch) = self.dispatch.get() else { return };
        for mut one in outgoing {
            one.seq = seq;
            let channel = (one.message.company_id, one.message.channel_id);
            let sender = match self.channels.get(&channel) {
                Some(sender) => sender.clone(),
                None => self.channels.entry(channel).or_insert_with(|| start(dispatch, channel, false)).clone(),
            };
            if sender.outbox.put(one) {
                sender.addr.do_send(Arrived);
            }
        }
    }

    /// Starts to hand messages over, first those left by an earlier run. Once.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away.
    pub(crate) async fn begin(
        &self,
        provider: Arc<dyn Provider>,
        tickets: Arc<dyn DecidesStatuses>,
    ) -> Result<(), Refusal> {
        let dispatch =
            Arc::new(Dispatch::start(self.base.clone(), &self.inboxes, self.in_transit.clone(), provider, tickets)?);
        // Queried first: messages put in meanwhile would hide the earlier ones.
        let store = &self.base.store;
        let left = messages::outboxes(&store.housekeeping, &store.ownership().of_slots()).await?;
        if self.dispatch.set(dispatch.clone()).is_err() {
            return Err(Refusal::Defect("sending has already started".to_owned()));
        }
        self.start_left(&dispatch, left, |company| self.base.owns(company));
        Ok(())
    }

    /// Starts to hand over what other processes have left in these channels, before their companies are served. Senders
    /// of these companies that still rest after a cancelled move resume.
    pub(crate) fn begin_left(&self, left: Vec<(CompanyId, ChannelId)>, of: impl Fn(CompanyId) -> bool) {
        let Some(dispatch) = self.dispatch.get() else { return };
        for sender in self.channels.iter().filter(|sender| of(sender.key().0)) {
            sender.addr.do_send(GoOn);
        }
        self.start_left(dispatch, left, |_| true);
    }

    fn start_left(&self, dispatch: &Arc<Dispatch>, left: Vec<Channel>, of: impl Fn(CompanyId) -> bool) {
        for channel in left.into_iter().filter(|(company, _)| of(*company)) {
            self.channels.entry(channel).or_insert_with(|| start(dispatch, channel, true));
        }
    }

    /// Starts no further attempt for a company, and waits until the log has recorded the outcome of those under way.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when a provider does not answer in time; [`Outboxes::go_on`] undoes it.
    pub(crate) async fn rest(&self, company: CompanyId) -> Result<(), Refusal> {
        let mut resting = Vec::new();
        for entry in self.channels.iter().filter(|entry| entry.key().0 == company) {
            let (rested, rests) = oneshot::channel();
            entry.addr.do_send(Rest { rested });
            resting.push(rests);
        }
        let all = futures_util::future::join_all(resting);
        tokio::time::timeout(REST_TIME_MAX, all)
            .await
            .map(drop)
            .map_err(|_| Refusal::Unavailable("a provider did not respond".to_owned()))
    }

    /// Drops the outboxes of a company whose sending is paused. The tables have their messages.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { base: _, inboxes: _, in_transit: _, channels, dispatch } = self;
        channels.retain(|(of, _), sender| {
            let stays = *of != company;
            if !stays {
                sender.addr.do_send(End);
            }
            stays
        });
        if let Some(dispatch) = dispatch.get() {
            dispatch.forget_company(company);
        }
    }

    /// Resumes sending for a company: messages in memory, and for channels that were dropped those in the tables.
    pub(crate) fn go_on(&self, company: CompanyId) {
        let Some(dispatch) = self.dispatch.get() else { return };
        // A company that has moved to another process is sent for there.
        if !self.base.store.ownership().is_placed_here(company) {
            return;
        }
        let organization = self.base.directory.company(company);
        let all = organization.iter().flat_map(|organization| organization.channels.values());
        for channel in all.filter(|channel| channel.kind != ChannelType::Webchat) {
            let key = (company, channel.id);
            self.channels.entry(key).or_insert_with(|| start(dispatch, key, true)).addr.do_send(GoOn);
        }
    }

    /// The figures of messages on their way to providers, and of the providers' answers; zero before sending begins.
    pub(crate) fn figures(&self) -> SendingFigures {
        let Some(dispatch) = self.dispatch.get() else { return SendingFigures::default() };
        SendingFigures::of(&dispatch.attempts, self.channels.iter().map(|sender| sender.outbox.shown()))
    }

    /// The number of senders, and of messages in their outboxes that they have not taken yet.
    pub(crate) fn population(&self) -> Population {
        Population {
            hot: self.channels.len(),
            waiting: self.channels.iter().map(|sender| sender.outbox.shown().arrived).sum(),
        }
    }

    /// Starts no further attempt, waits for those under way with a time limit, and ends the senders.
    pub(crate) async fn stop(&self) {
        let Some(dispatch) = self.dispatch.get() else { return };
        dispatch.begin_stopping();
        for sender in &self.channels {
            sender.addr.do_send(Stop);
        }
        if tokio::time::timeout(STOP_TIME_MAX, dispatch.ended()).await.is_err() {
            tracing::warn!("providers did not answer before shutdown; messages in flight may be sent twice");
        }
    }
}

fn start(dispatch: &Arc<Dispatch>, channel: Channel, is_behind: bool) -> Sender {
    let options = &dispatch.base.options.sending;
    let outbox = Arc::new(Outbox::new(options.held_max, options.held_bytes_max, is_behind));
    Sender { addr: ChannelSender::start_with(dispatch, outbox.clone(), channel), outbox }
}
