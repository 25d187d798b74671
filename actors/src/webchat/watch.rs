//! Watchers of conversations, which push durable changes to visitors.
//!
//! The log calls [`Watchers::on_commit`] with every decision, in order, on the thread that made it durable. So
//! visitors receive only durable changes, in the order of the log, from all actors. Without watchers the
//! call costs one atomic read, otherwise one map look-up for each message.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use actix::{Message, Recipient};
use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::tables::messages::{DeliveryReceipt, Direction, MessageRow};
use hotline_persistence::tables::webchat_sessions::SessionStatus;
use hotline_persistence::{Change, ChannelId, CompanyId, ContactId, MessageId, SessionId};

use crate::clock::now;
use crate::id_map::IdMap;

/// A contact on a channel, which identifies their conversation.
pub type Conversation = (CompanyId, ChannelId, ContactId);

/// How long a typing state is valid without renewal, in milliseconds: two of the three-second intervals at which a
/// browser renews it, so that the indicator does not flicker when one renewal is lost.
pub const TYPING_TIMEOUT_MS: i64 = 6000;

/// What is pushed to a visitor's socket.
#[derive(Clone, Debug)]
pub enum Push {
    /// A message was sent or received.
    Message(Arc<MessageRow>),
    /// The status of messages has advanced.
    Status(StatusUpdate),
    /// An agent is typing, or has stopped.
    Typing {
        /// The agent's name, if known.
        agent: Option<Arc<str>>,
        /// Whether the agent is typing.
        typing: bool,
    },
    /// The session has ended.
    Ended(DateTime<Utc>),
}

/// A new status of all messages up to and including `up_to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The new status.
    pub kind: ReceiptKind,
    /// The last of these messages.
    pub up_to: MessageId,
    /// The time of the status.
    pub at: DateTime<Utc>,
}

/// The status that a receipt reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptKind {
    /// Of the company's messages: delivered.
    Delivered,
    /// Of the company's messages: read by the visitor.
    ReadByContact,
    /// Of the visitor's messages: read by the company.
    ReadByCompany,
}

/// A push to the sockets of a conversation's sessions. Every session receives it, and ignores it if it is for another
/// session.
#[derive(Clone, Message)]
#[rtype(result = "()")]
pub(crate) struct PushToSession {
    /// The session it is for; `None`: all sessions of the conversation.
    pub(crate) session: Option<SessionId>,
    pub(crate) push: Push,
}

/// The current activity of a visitor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisitorActivity {
    /// Whether they have an open socket.
    pub online: bool,
    /// Whether they are typing.
    pub typing: bool,
}

/// The end of a visitor's typing state, in milliseconds since 1970.
#[derive(Debug, Default)]
pub(crate) struct TypingUntil(AtomicI64);

impl TypingUntil {
    pub(crate) fn set(&self, typing: bool) {
        let until = if typing { (now() + TimeDelta::milliseconds(TYPING_TIMEOUT_MS)).timestamp_millis() } else { 0 };
        self.0.store(until, Ordering::Relaxed);
    }

    fn is_typing(&self) -> bool {
        self.0.load(Ordering::Relaxed) > now().timestamp_millis()
    }
}

/// Sessions with sockets, by conversation.
#[derive(Default)]
pub(crate) struct Watchers {
    watched: IdMap<Conversation, Vec<Watcher>>,
    count: AtomicUsize,
}

struct Watcher {
    addr: Recipient<PushToSession>,
    typing: Arc<TypingUntil>,
}

/// A session's subscription, which ends when this is dropped.
pub(crate) struct Watch {
    watchers: Arc<Watchers>,
    conversation: Conversation,
    pub(crate) typing: Arc<TypingUntil>,
}

impl Watchers {
    /// Subscribes a session. Entries that the log already has might not be pushed, so the caller reads them from the
    /// tables once the persister has written them.
    pub(crate) fn watch(self: &Arc<Self>, conversation: Conversation, addr: Recipient<PushToSession>) -> Watch {
        let typing = Arc::<TypingUntil>::default();
        self.watched.entry(conversation).or_default().push(Watcher { addr, typing: typing.clone() });
        self.count.fetch_add(1, Ordering::SeqCst);
        Watch { watchers: self.clone(), conversation, typing }
    }

    /// The number of subscribed sessions.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Pushes a durable decision to the sessions concerned. Runs on the log's thread, so it must not block.
    pub(crate) fn on_commit(&self, changes: &[Change]) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        for change in changes {
            match change {
                Change::Message(row) if row.direction != Direction::Internal => {
                    let conversation = (row.company_id, row.channel_id, row.contact_id);
                    self.send(conversation, || PushToSession {
                        session: None,
                        push: Push::Message(Arc::new((**row).clone())),
                    });
                }
                Change::Delivered(receipt) => self.push_status(receipt, ReceiptKind::Delivered),
                Change::Seen(receipt) => self.push_status(receipt, ReceiptKind::ReadByContact),
                Change::Read(receipt) => self.push_status(receipt, ReceiptKind::ReadByCompany),
                Change::Session(row) if row.status == SessionStatus::Ended => {
                    let push = Push::Ended(row.ended_at.unwrap_or(row.last_seen_at));
                    let conversation = (row.company_id, row.channel_id, row.contact_id);
                    self.send(conversation, || PushToSession { session: Some(row.id.clone()), push });
                }
                _ => {}
            }
        }
    }

    fn push_status(&self, receipt: &DeliveryReceipt, kind: ReceiptKind) {
        if let Some((channel, contact)) = receipt.conversation {
            let push = Push::Status(StatusUpdate { kind, up_to: receipt.up_to, at: receipt.at });
            self.send((receipt.company_id, channel, contact), || PushToSession { session: None, push });
        }
    }

    /// Pushes to a conversation's sessions.
    pub(crate) fn send(&self, conversation: Conversation, message: impl FnOnce() -> PushToSession) {
        if let Some(watchers) = self.watched.get(&conversation) {
            let message = message();
            for watcher in watchers.iter() {
                // `do_send` ignores the mailbox's capacity, because the log's thread must not wait; the journal's own
                // limit bounds what can queue up. A session that has ended misses nothing.
                watcher.addr.do_send(message.clone());
            }
        }
    }

    /// The current activity of a conversation's visitor.
    pub(crate) fn activity(&self, conversation: Conversation) -> VisitorActivity {
        self.watched.get(&conversation).map_or_else(VisitorActivity::default, |watchers| VisitorActivity {
            online: !watchers.is_empty(),
            typing: watchers.iter().any(|watcher| watcher.typing.is_typing()),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(mut watchers) = self.watchers.watched.get_mut(&self.conversation) {
            // The typing state belongs to this subscription alone.
            watchers.retain(|watcher| !Arc::ptr_eq(&watcher.typing, &self.typing));
        }
        self.watchers.watched.remove_if(&self.conversation, |_, watchers| watchers.is_empty());
        self.watchers.count.fetch_sub(1, Ordering::SeqCst);
    }
}
