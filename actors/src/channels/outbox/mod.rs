//! The outboxes: what was accepted for a channel's provider, until the provider has it.
//!
//! A message enters its channel's outbox in the moment its ticket's actor appends it to the log, so of one ticket in
//! order, and is sent once it is durable. Its courier, one task a channel, paces the sends, repeats what can be
//! repeated, and has the log told how each ended. Only when that is durable is the message out of the outbox. So none
//! that was accepted is lost, and one is sent twice only when the process ends between the provider's taking it and
//! that entry. What follows a send is done by the ticket's actor, in the same entry; most messages have nothing that
//! follows, and what became of them goes into the log many at a time ([`Receipts`]).
//!
//! Couriers and the calls they make have a thread of their own: neither requests nor the persister wait for providers,
//! and providers for neither of them. Nothing on it asks the database, whose connections belong to the runtime that
//! opened them.
//!
//! Memory is bounded: what does not fit is read back from the tables, which hold every message that waits.

mod attempt;
mod backoff;
mod courier;
mod figures;
mod handed;
mod held;
mod lanes;
mod pace;
mod receipts;

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use hotline_persistence::journal::Seq;
use hotline_persistence::tables::messages::{self, Addressed, Direction, MessageRow, MessageStatus};
use hotline_persistence::{Change, ChannelId, CompanyId, ContactId, MessageId, TicketId};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;

use self::figures::Attempts;
pub use self::figures::{Attempted, SendingFigures};
use self::held::Outbox;
use self::receipts::Receipts;
use super::Provider;
use crate::Refusal;
use crate::engine::{Core, Engine};
use crate::tickets::Ticket;
use crate::ttl_cache::TtlCache;

/// How messages are handed over to providers. What a channel's own settings say of pace comes first.
#[derive(Clone, Debug)]
pub struct SendingOptions {
    /// Messages a second of one channel, 0: as many as go. Default 80, what a phone number may send.
    pub per_second: u32,
    /// Time between messages to one recipient, zero: none. Default 6 seconds, what a phone number may send to another.
    pub recipient_interval: Duration,
    /// Messages to one recipient that may go at once after a pause; they use up the time that follows. Default 45, what
    /// a phone number may send to another within 6 seconds.
    pub recipient_burst: u32,
    /// Calls of one channel that are under way at once. Default 64: enough for the default pace while the provider
    /// takes most of a second.
    pub in_flight_max: usize,
    /// Messages of one channel that the provider has, and that the disk is to know of next. Together with the calls
    /// under way they are what a kill may double. Default 256: a disk that takes 10 ms for a sync holds up nobody below
    /// 20,000 messages a second, and at the usual pace there is hardly ever more than one.
    pub unnoted_max: usize,
    /// Messages of one channel in memory; the others wait in the tables. Default 2,000.
    pub held_max: usize,
    /// Bytes of their texts. Default 4 MiB.
    pub held_bytes_max: usize,
    /// Longest pause after the first failure of an attempt; it doubles with each. Default a second.
    pub retry_pause_min: Duration,
    /// Longest pause there is. Default a minute.
    pub retry_pause_max: Duration,
    /// How old a message may be when an attempt fails for it to be tried again. Default 24 hours.
    pub give_up_after: Duration,
}

impl Default for SendingOptions {
    fn default() -> Self {
        Self {
            per_second: 80,
            recipient_interval: Duration::from_secs(6),
            recipient_burst: 45,
            in_flight_max: 64,
            unnoted_max: 256,
            held_max: 2000,
            held_bytes_max: 4 << 20,
            retry_pause_min: Duration::from_secs(1),
            retry_pause_max: Duration::from_secs(60),
            give_up_after: Duration::from_secs(24 * 3600),
        }
    }
}

/// How long a stop waits for the answers of attempts that are under way. A message whose answer does not come is sent
/// again by the next start.
const STOP_TIME_MAX: Duration = Duration::from_secs(5);

/// Pause before a courier that met a defect begins anew.
const DEFECT_PAUSE: Duration = Duration::from_secs(1);

/// Addresses of contacts without a number that are kept at hand.
const ADDRESSES_MAX: usize = 100_000;

/// Threads for all couriers and their calls. A call takes some 20 µs of one, and the default pace of a channel is 80 a
/// second: one is enough for hundreds of channels.
const THREADS: usize = 1;

/// A message that waits for its provider.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// It may be sent once this is durable.
    seq: Seq,
    message: Arc<MessageRow>,
    /// The recipient's number, if they have one.
    number: Option<String>,
    /// What it takes in memory, about.
    bytes: usize,
}

impl Outgoing {
    fn new(seq: Seq, message: MessageRow, number: Option<String>) -> Self {
        let bytes = bytes(&message);
        Self { seq, message: Arc::new(message), number, bytes }
    }

    fn id(&self) -> MessageId {
        self.message.id
    }

    fn contact(&self) -> ContactId {
        self.message.contact_id
    }

    fn ticket(&self) -> TicketId {
        self.message.ticket_id
    }
}

/// Bytes a message takes in memory, about.
fn bytes(message: &MessageRow) -> usize {
    const ROW: usize = 512;
    // An object takes some times its text; most messages have none.
    let object = |object: &Option<serde_json::Value>| object.as_ref().map_or(0, |object| object.to_string().len());
    ROW + message.body.as_ref().map_or(0, String::len) + object(&message.template) + object(&message.interactive)
}

impl From<Addressed> for Outgoing {
    fn from(stored: Addressed) -> Self {
        // What is read from the tables is durable.
        Self::new(0, stored.message, stored.number)
    }
}

type Channel = (CompanyId, ChannelId);

/// Every outbox, and who is asked to take what is in them.
pub(crate) struct Outboxes {
    provider: Arc<dyn Provider>,
    channels: DashMap<Channel, Arc<Outbox>>,
    addresses: TtlCache<(Channel, ContactId), String>,
    receipts: Arc<Receipts>,
    attempts: Attempts,
    threads: Threads,
    stopping: watch::Sender<bool>,
    /// Each courier holds one receiver for as long as it works.
    working: watch::Sender<()>,
}

/// Where couriers work.
struct Threads(Option<Runtime>);

impl Threads {
    fn start() -> std::io::Result<Self> {
        let threads =
            Builder::new_multi_thread().worker_threads(THREADS).thread_name("couriers").enable_all().build()?;
        Ok(Self(Some(threads)))
    }

    /// None once they are stopped.
    fn handle(&self) -> Option<&Handle> {
        self.0.as_ref().map(Runtime::handle)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Without waiting: this may be the thread of a runtime itself.
        if let Some(threads) = self.0.take() {
            threads.shutdown_background();
        }
    }
}

impl Core {
    /// What of these changes is to be sent, if anything is sent here.
    pub(crate) fn outgoing(&self, changes: &[Change], ticket: &Ticket) -> Vec<Outgoing> {
        if self.outboxes.get().is_none() {
            return Vec::new();
        }
        let waits = |row: &MessageRow| row.direction == Direction::Outbound && row.status == MessageStatus::Queued;
        let outgoing = changes.iter().filter_map(|change| match change {
            Change::Message(row) if waits(row) => {
                Some(Outgoing::new(0, MessageRow::clone(row), ticket.contact.number.clone()))
            }
            _ => None,
        });
        outgoing.collect()
    }

    /// Puts messages that were appended to the log into their outbox.
    pub(crate) fn put_out(self: &Arc<Self>, seq: Seq, outgoing: Vec<Outgoing>) {
        let Some(outboxes) = self.outboxes.get() else { return };
        for mut one in outgoing {
            one.seq = seq;
            let channel = (one.message.company_id, one.message.channel_id);
            let outbox = match outboxes.channels.get(&channel) {
                Some(outbox) => outbox.clone(),
                None => {
                    let begin = || self.begin_courier(outboxes, channel, false);
                    outboxes.channels.entry(channel).or_insert_with(begin).clone()
                }
            };
            outbox.put(one);
        }
    }

    fn begin_courier(self: &Arc<Self>, outboxes: &Arc<Outboxes>, channel: Channel, is_behind: bool) -> Arc<Outbox> {
        let options = &self.options.sending;
        let outbox = Arc::new(Outbox::new(options.held_max, options.held_bytes_max, is_behind));
        let (core, shared, kept) = (self.clone(), outboxes.clone(), outbox.clone());
        let working = outboxes.working.subscribe();
        let Some(threads) = outboxes.threads.handle() else { return outbox };
        threads.spawn(async move {
            let _working = working;
            loop {
                let run = courier::run(core.clone(), shared.clone(), kept.clone(), channel);
                match tokio::spawn(run).await {
                    Ok(()) => return,
                    Err(error) => {
                        // Nothing is lost with it: the tables hold what waits.
                        tracing::error!(%error, channel.id = %channel.1, company.id = %channel.0, "a courier met a defect");
                        kept.begin_anew(core.store.log.last_of(channel.0));
                        tokio::time::sleep(DEFECT_PAUSE).await;
                    }
                }
            }
        });
        outbox
    }
}

impl Engine {
    /// Begins to hand messages over to providers, those first that an earlier run has left. Once, before anything is
    /// asked.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away.
    pub async fn start_sending(&self, provider: Arc<dyn Provider>) -> Result<(), Refusal> {
        let threads = Threads::start().map_err(|error| Refusal::Defect(format!("the couriers' threads: {error}")))?;
        let outboxes = Arc::new(Outboxes {
            provider,
            channels: DashMap::new(),
            addresses: TtlCache::new(ADDRESSES_MAX, Duration::MAX),
            receipts: Arc::default(),
            attempts: Attempts::default(),
            threads,
            stopping: watch::Sender::new(false),
            working: watch::Sender::new(()),
        });
        let left = messages::outboxes(&self.core.store.housekeeping).await?;
        if self.core.outboxes.set(outboxes.clone()).is_err() {
            return Err(Refusal::Defect("messages are sent already".to_owned()));
        }
        for channel in left {
            let begin = || self.core.begin_courier(&outboxes, channel, true);
            outboxes.channels.entry(channel).or_insert_with(begin);
        }
        Ok(())
    }

    /// What is on its way to providers, and what they have said so far; nothing before sending begins.
    pub fn sending_figures(&self) -> SendingFigures {
        self.core.outboxes.get().map(|outboxes| SendingFigures::of(outboxes)).unwrap_or_default()
    }

    /// Begins no further attempt, and waits a while for those that are under way.
    pub async fn stop_sending(&self) {
        let Some(outboxes) = self.core.outboxes.get() else { return };
        outboxes.stopping.send_replace(true);
        if tokio::time::timeout(STOP_TIME_MAX, outboxes.working.closed()).await.is_err() {
            tracing::warn!("providers have not answered in time; messages on their way may be sent again");
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use hotline_persistence::tables::messages::MessageType;
    use hotline_persistence::tables::source::Source;

    use super::*;

    /// A text to a contact, who has one ticket.
    pub(super) fn outgoing(id: i64, contact: i64) -> Outgoing {
        let message = MessageRow {
            company_id: CompanyId::new(1),
            id: MessageId::new(id),
            job_id: Some(MessageId::new(id)),
            ticket_id: TicketId::new(contact),
            contact_id: ContactId::new(contact),
            channel_id: ChannelId::new(1),
            direction: Direction::Outbound,
            kind: MessageType::Text,
            body: Some(format!("message {id}")),
            media: None,
            template: None,
            interactive: None,
            quoted_message_id: None,
            status: MessageStatus::Queued,
            error: None,
            user_id: None,
            user_name: None,
            integration_id: None,
            source: Source::Api,
            session_id: None,
            client_id: None,
            after_send: None,
            provider_message_id: None,
            created_at: DateTime::UNIX_EPOCH,
            sent_at: None,
            delivered_at: None,
            read_at: None,
        };
        Outgoing::new(0, message, Some(format!("551199999{contact:04}")))
    }
}
