//! The sockets of a session: how they attach, what is pushed to them, and how slow ones are disconnected.

use std::sync::Arc;

use actix::{Addr, AsyncContext, Context as ActorContext, Handler, Message};
use chrono::{DateTime, Utc};
use hotline_persistence::tables::webchat_sessions::SessionRow;
use tokio::sync::watch;

use super::VisitorSession;
use super::pushes::{PushError, PushSender, bytes_of};
use crate::Refusal;
use crate::clock::now;
use crate::registry::Envelope;
use crate::webchat::watch::{Push, PushToSession, TypingUntil, Watch};

/// Maximum sockets of one session: more tabs than a visitor reads, and few enough that one token cannot open many
/// connections.
pub const SOCKETS_MAX: usize = 10;

/// The sockets of a session, and the watch that feeds them.
#[derive(Default)]
pub(in crate::webchat) struct Sockets {
    open_sockets: Vec<Socket>,
    /// The subscription to the conversation; present while there are any sockets.
    watch: Option<Watch>,
    last_socket_id: u64,
    /// When the visitor last showed a sign of life on any socket.
    last_presence: Option<DateTime<Utc>>,
}

struct Socket {
    id: u64,
    push_sender: PushSender,
    close_sender: watch::Sender<Option<DisconnectReason>>,
}

/// Why a session disconnects a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// The socket did not take its pushes in time.
    TooSlow,
    /// The session continues, here or in another process, so the browser should reconnect.
    Moved,
}

/// Attaches a socket. The reply is `None` if the session already has [`SOCKETS_MAX`] sockets.
#[derive(Clone, Message)]
#[rtype(result = "Result<Option<AttachedSocket>, Refusal>")]
pub struct Attach {
    /// The sending end of the socket's queue.
    pub push_sender: PushSender,
    /// Sends the reason when the session disconnects the socket; nothing is pushed afterwards.
    pub close_sender: watch::Sender<Option<DisconnectReason>>,
}

/// A socket of a session; dropping it detaches it.
pub struct AttachedSocket {
    /// The session's row, without its tokens, page, campaign and claims.
    pub row: SessionRow,
    id: u64,
    session: Addr<VisitorSession>,
    typing: Arc<TypingUntil>,
}

impl AttachedSocket {
    /// The visitor is typing, or has stopped.
    pub fn set_typing(&self, typing: bool) {
        self.typing.set(typing);
    }

    /// The visitor's client showed a sign of life.
    pub fn record_presence(&self) {
        self.session.do_send(RecordPresence);
    }
}

impl Drop for AttachedSocket {
    fn drop(&mut self) {
        self.typing.set(false);
        self.session.do_send(Detach(self.id));
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Detach(u64);

#[derive(Message)]
#[rtype(result = "()")]
struct RecordPresence;

impl Sockets {
    /// Whether no socket is connected.
    pub(super) fn is_empty(&self) -> bool {
        self.open_sockets.is_empty()
    }

    /// The later of `other` and the time at which the visitor was last present on a socket.
    pub(super) fn latest_presence(&self, other: DateTime<Utc>) -> DateTime<Utc> {
        self.last_presence.map_or(other, |presence| presence.max(other))
    }

    /// Disconnects all sockets.
    pub(super) fn disconnect_all(&mut self, reason: DisconnectReason) {
        for socket in self.open_sockets.drain(..) {
            socket.close_sender.send_replace(Some(reason));
        }
        self.watch = None;
    }

    /// Pushes to all sockets; disconnects those whose queue is full.
    fn push(&mut self, push: &Push) {
        let bytes = bytes_of(push);
        self.open_sockets.retain(|socket| match socket.push_sender.add(push, bytes) {
            Ok(()) => true,
            Err(PushError::Full) => {
                socket.close_sender.send_replace(Some(DisconnectReason::TooSlow));
                false
            }
            Err(PushError::Closed) => false,
        });
    }
}

impl Handler<Envelope<Attach>> for VisitorSession {
    type Result = ();

    fn handle(&mut self, attach: Envelope<Attach>, cx: &mut ActorContext<Self>) {
        let Some((attach, reply_to)) = attach.accept() else { return };
        let attached = self.attach(attach, cx);
        // If the request is refused because the session has ended, that end must be durable before the reply.
        reply_to.send_after(&self.scope.base.store.log, self.status.last_seq(), attached);
    }
}

impl VisitorSession {
    fn attach(&mut self, attach: Attach, cx: &mut ActorContext<Self>) -> Result<Option<AttachedSocket>, Refusal> {
        self.status.record_use();
        if self.is_retired {
            return Err(Refusal::Retired);
        }
        self.check_active()?;
        if self.sockets.open_sockets.len() >= SOCKETS_MAX {
            return Ok(None);
        }
        let conversation = (self.row.company_id, self.row.channel_id, self.row.contact_id);
        let watchers = &self.scope.watchers;
        let watch = self.sockets.watch.get_or_insert_with(|| watchers.watch(conversation, cx.address().recipient()));
        let typing = watch.typing.clone();
        self.sockets.last_socket_id += 1;
        let id = self.sockets.last_socket_id;
        self.sockets.open_sockets.push(Socket {
            id,
            push_sender: attach.push_sender,
            close_sender: attach.close_sender,
        });
        self.sockets.last_presence = Some(now());
        // Sockets are long-lived, so their copies of the row leave out what they do not need.
        let row = SessionRow {
            page: None,
            utm: None,
            claimed: None,
            token_hash: Vec::new(),
            token_hashes: Vec::new(),
            ..self.row.clone()
        };
        Ok(Some(AttachedSocket { row, id, session: cx.address(), typing }))
    }

    /// If no socket is left, ends the subscription and records that the visitor was present until now.
    fn record_departure(&mut self) {
        if !self.sockets.is_empty() || self.sockets.watch.take().is_none() {
            return;
        }
        self.status.record_use();
        self.sockets.last_presence = None;
        if let Err(refusal) = self.record_presence(now()) {
            tracing::debug!(%refusal, "could not record that a visitor left");
        }
    }
}

impl Handler<Detach> for VisitorSession {
    type Result = ();

    fn handle(&mut self, Detach(id): Detach, _: &mut ActorContext<Self>) {
        self.sockets.open_sockets.retain(|socket| socket.id != id);
        self.record_departure();
    }
}

impl Handler<RecordPresence> for VisitorSession {
    type Result = ();

    fn handle(&mut self, RecordPresence: RecordPresence, _: &mut ActorContext<Self>) {
        self.status.record_use();
        self.sockets.last_presence = Some(now());
    }
}

impl Handler<PushToSession> for VisitorSession {
    type Result = ();

    fn handle(&mut self, message: PushToSession, _: &mut ActorContext<Self>) {
        if message.session.is_none_or(|session| session == self.row.id) {
            self.sockets.push(&message.push);
            self.record_departure();
        }
    }
}
