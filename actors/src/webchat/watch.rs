//! Who watches which conversation: the one place where what has become durable is told to visitors at once.
//!
//! The log tells every decision in its order, on the thread that made it durable ([`Watchers::tell`]). While nobody
//! watches that costs one atomic read; else a look into a map for each message. So what a visitor is told is durable,
//! and comes in the order of the log, whichever actor decided it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use actix::{Message, Recipient};
use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::tables::messages::{DeliveryReceipt, Direction, MessageRow};
use hotline_persistence::tables::webchat_sessions::SessionStatus;
use hotline_persistence::{Change, ChannelId, CompanyId, ContactId, MessageId, SessionId};

use crate::clock::now;
use crate::map::IdMap;

/// A contact on a channel: whatever is said between the two.
pub type Conversation = (CompanyId, ChannelId, ContactId);

/// How long typing is believed without being renewed, in milliseconds: two of the three seconds in which a browser
/// renews it, so that one lost renewal does not flicker.
pub const TYPING_FADES_MS: i64 = 6000;

/// What is pushed to a visitor's socket.
#[derive(Clone, Debug)]
pub enum Push {
    /// This was said.
    Said(Arc<MessageRow>),
    /// Messages have come so far.
    Moved(Moved),
    /// An agent types, or has stopped.
    Typing {
        /// By name, where it is known.
        agent: Option<Arc<str>>,
        /// Whether they type.
        typing: bool,
    },
    /// The session is over.
    Ended(DateTime<Utc>),
}

/// Messages up to one of them have come so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// How far.
    pub to: Stage,
    /// The last of them.
    pub up_to: MessageId,
    /// When.
    pub at: DateTime<Utc>,
}

/// How far messages have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The company's: arrived.
    Delivered,
    /// The company's: read by the visitor.
    Seen,
    /// The visitor's: read by the company.
    Read,
}

/// To a session: tell your sockets.
#[derive(Clone, Message)]
#[rtype(result = "()")]
pub(crate) struct Told {
    /// Only this session; otherwise every one of the conversation.
    pub(crate) session: Option<SessionId>,
    pub(crate) push: Push,
}

/// What a visitor is doing, for those who would like to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doing {
    /// Whether they have a socket open.
    pub online: bool,
    /// Whether they type.
    pub typing: bool,
}

/// Until when a visitor types, in milliseconds since 1970.
#[derive(Debug, Default)]
pub(crate) struct TypingUntil(AtomicI64);

impl TypingUntil {
    pub(crate) fn set(&self, typing: bool) {
        let until = if typing { (now() + TimeDelta::milliseconds(TYPING_FADES_MS)).timestamp_millis() } else { 0 };
        self.0.store(until, Ordering::Relaxed);
    }

    fn is_now(&self) -> bool {
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
    addr: Recipient<Told>,
    typing: Arc<TypingUntil>,
}

/// A session's watch; dropping it ends it.
pub(crate) struct Watch {
    watchers: Arc<Watchers>,
    conversation: Conversation,
    pub(crate) typing: Arc<TypingUntil>,
}

impl Watchers {
    /// From here on the session is told. What was appended to the log before may be missing, and is in the tables as
    /// soon as they have reached what was appended by now.
    pub(crate) fn watch(self: &Arc<Self>, conversation: Conversation, addr: Recipient<Told>) -> Watch {
        let typing = Arc::<TypingUntil>::default();
        self.watched.entry(conversation).or_default().push(Watcher { addr, typing: typing.clone() });
        self.count.fetch_add(1, Ordering::SeqCst);
        Watch { watchers: self.clone(), conversation, typing }
    }

    /// Sessions that watch.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Tells a durable decision to whom it concerns. Runs on the log's thread: it never waits.
    pub(crate) fn tell(&self, changes: &[Change]) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        for change in changes {
            match change {
                Change::Message(row) if row.direction != Direction::Internal => {
                    let conversation = (row.company_id, row.channel_id, row.contact_id);
                    self.send(conversation, || Told { session: None, push: Push::Said(Arc::new((**row).clone())) });
                }
                Change::Delivered(mark) => self.moved(mark, Stage::Delivered),
                Change::Seen(mark) => self.moved(mark, Stage::Seen),
                Change::Read(mark) => self.moved(mark, Stage::Read),
                Change::Session(row) if row.status == SessionStatus::Ended => {
                    let push = Push::Ended(row.ended_at.unwrap_or(row.last_seen_at));
                    let conversation = (row.company_id, row.channel_id, row.contact_id);
                    self.send(conversation, || Told { session: Some(row.id.clone()), push });
                }
                _ => {}
            }
        }
    }

    fn moved(&self, mark: &DeliveryReceipt, to: Stage) {
        if let Some((channel, contact)) = mark.conversation {
            let push = Push::Moved(Moved { to, up_to: mark.up_to, at: mark.at });
            self.send((mark.company_id, channel, contact), || Told { session: None, push });
        }
    }

    /// Tells a conversation's sessions what nobody keeps.
    pub(crate) fn send(&self, conversation: Conversation, told: impl FnOnce() -> Told) {
        if let Some(watchers) = self.watched.get(&conversation) {
            let told = told();
            for watcher in watchers.iter() {
                // Not a change of state: one that has ended does not miss it, and one that lives must not be waited
                // for. The journal's own bound is the bound of what can wait there.
                watcher.addr.do_send(told.clone());
            }
        }
    }

    /// What a conversation's visitor is doing.
    pub(crate) fn doing(&self, conversation: Conversation) -> Doing {
        self.watched.get(&conversation).map_or_else(Doing::default, |watchers| Doing {
            online: !watchers.is_empty(),
            typing: watchers.iter().any(|watcher| watcher.typing.is_now()),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mine = |watcher: &Watcher| Arc::ptr_eq(&watcher.typing, &self.typing);
        if let Some(mut watchers) = self.watchers.watched.get_mut(&self.conversation) {
            watchers.retain(|watcher| !mine(watcher));
        }
        self.watchers.watched.remove_if(&self.conversation, |_, watchers| watchers.is_empty());
        self.watchers.count.fetch_sub(1, Ordering::SeqCst);
    }
}
