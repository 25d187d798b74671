//! The actor of one visitor's session: it serializes the visitor's messages.

mod client_messages;
pub mod identity;
pub mod pushes;
pub mod sockets;

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt, AtomicResponse, Context as ActorContext, Handler, Message, WrapFuture, fut};
use chrono::{DateTime, TimeDelta, Utc};
use dashmap::DashMap;
use hotline_persistence::key::KeyHash;
use hotline_persistence::tables::events::By;
use hotline_persistence::tables::media::StoredMedia;
use hotline_persistence::tables::messages::MessageRow;
use hotline_persistence::tables::webchat_sessions::{SessionRow, SessionStatus};
use hotline_persistence::{Change, CompanyId, ContactId, MessageId, SessionId, TicketId};
use serde_json::{Value, json};
use tokio::sync::oneshot;

pub(crate) use self::client_messages::CLIENT_IDS_MAX;
use self::client_messages::{ClientIdLookup, ClientMessages};
use self::sockets::{DisconnectReason, Sockets};
use super::watch::Watchers;
use crate::base::Base;
use crate::clock::now;
use crate::registry::{ActorHandle, ActorStatus, Dismiss, Envelope, Registered, Registry, Retire};
use crate::services::{Contacts, Inbound, Tickets};
use crate::tickets::{AttachedChanges, Execute, Receive};
use crate::{Conflict, Refusal};

/// Resolution of `lastSeenAt` while a visitor only reads: polling must not fill the journal. It is a third of the idle
/// time if that is less, so that a present visitor does not count as idle.
const PRESENCE_STEP: Duration = Duration::from_secs(30);

/// State shared by the sessions' actors, and the registry of hot sessions.
pub(crate) struct SessionScope {
    pub(crate) base: Arc<Base>,
    pub(crate) contacts: Arc<Contacts>,
    pub(crate) inbound: Arc<Inbound>,
    pub(crate) tickets: Arc<Tickets>,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) tokens: VisitorTokens,
    pub(crate) hot: Registry<(CompanyId, SessionId), VisitorSession>,
}

impl SessionScope {
    pub(crate) fn new(
        base: Arc<Base>,
        contacts: Arc<Contacts>,
        inbound: Arc<Inbound>,
        tickets: Arc<Tickets>,
        watchers: Arc<Watchers>,
    ) -> Self {
        Self { base, contacts, inbound, tickets, watchers, tokens: VisitorTokens::new(), hot: Registry::default() }
    }
}

/// One visitor session.
pub struct VisitorSession {
    pub(super) scope: Arc<SessionScope>,
    pub(super) row: SessionRow,
    client_messages: ClientMessages,
    pub(super) sockets: Sockets,
    pub(super) status: Arc<ActorStatus>,
    pub(super) is_retired: bool,
    /// Dropped with the actor, after its other fields. The receiver waits for this to know that the actor has ended.
    end_signal: Option<oneshot::Sender<()>>,
}

impl Actor for VisitorSession {
    type Context = ActorContext<Self>;
}

impl Registered for VisitorSession {
    type Shared = ();
}

/// The tokens of hot sessions, by hash: they are checked without the database.
pub(crate) type VisitorTokens = DashMap<KeyHash, (CompanyId, SessionId)>;

impl Drop for VisitorSession {
    fn drop(&mut self) {
        // If another actor of this session has started already, its tokens are removed too, and are then read from the
        // tables.
        for hash in self.row.all_token_hashes() {
            self.scope.tokens.remove(&hash);
        }
    }
}

/// A session to create.
#[derive(Clone)]
pub struct NewSession {
    /// Its initial row.
    pub row: SessionRow,
    /// Changes that become durable in the same entry.
    pub attached: Option<AttachedChanges<SessionRow>>,
}

/// The visitor sends a message.
#[derive(Clone, Message)]
#[rtype(result = "Result<MessageRow, Refusal>")]
pub struct SendVisitorMessage {
    /// The text, or the caption of the file.
    pub body: Option<String>,
    /// The file they send. A retry is answered with the first message, and so with that message's file.
    pub file: Option<StoredMedia>,
    /// The content besides the text: the option they chose.
    pub content: Option<Value>,
    /// The message they reply to.
    pub quoted: Option<MessageId>,
    /// The id that the visitor's client gave the message.
    pub client_id: Option<String>,
    /// Changes that become durable in the same entry.
    pub attached: Option<AttachedChanges<MessageRow>>,
}

/// Ends the session, because someone requests it or because it is idle.
#[derive(Clone, Message)]
#[rtype(result = "Result<SessionRow, Refusal>")]
pub struct End {
    /// Ends it only if the visitor has not been seen since then.
    pub idle_since: Option<DateTime<Utc>>,
    /// Changes that become durable in the same entry.
    pub attached: Option<AttachedChanges<SessionRow>>,
    /// Who ends it.
    pub by: By,
}

/// The visitor is present.
#[derive(Clone, Copy, Message)]
#[rtype(result = "Result<(), Refusal>")]
pub struct MarkPresent;

/// The session's contact or ticket was merged into another: the rows in the tables have the change already. It is
/// sent while the contact is marked for the merge, so that the session appends no change before it handles this.
#[derive(Clone, Copy, Message)]
#[rtype(result = "()")]
pub(crate) struct SessionMoved {
    /// The contact from now on.
    pub(crate) contact: ContactId,
    /// The ticket that was merged, and the one that it was merged into.
    pub(crate) tickets: Option<(TicketId, TicketId)>,
}

/// Reads the session.
#[derive(Clone, Copy, Message)]
#[rtype(result = "Result<SessionRow, Refusal>")]
pub struct ShowSession;

impl VisitorSession {
    /// Starts the actor of a session whose row is in the tables, or will be.
    pub(crate) fn start_with(
        scope: &Arc<SessionScope>,
        row: SessionRow,
        used_client_ids: &[String],
    ) -> ActorHandle<Self> {
        let status = Arc::new(ActorStatus::default());
        let arbiter = scope.base.arbiters.of(row.contact_id.0);
        let client_messages = ClientMessages::of(used_client_ids);
        for hash in row.all_token_hashes() {
            scope.tokens.insert(hash, (row.company_id, row.id.clone()));
        }
        let sockets = Sockets::default();
        let actor = Self {
            scope: scope.clone(),
            row,
            client_messages,
            sockets,
            status: status.clone(),
            is_retired: false,
            end_signal: None,
        };
        ActorHandle { addr: Self::start_in_arbiter(&arbiter, |_| actor), status }
    }

    pub(super) fn key(&self) -> (CompanyId, SessionId) {
        (self.row.company_id, self.row.id.clone())
    }

    fn presence_step(&self) -> TimeDelta {
        let step = PRESENCE_STEP.min(self.scope.base.options.session_idle_after / 3);
        TimeDelta::from_std(step).unwrap_or(TimeDelta::zero())
    }

    pub(super) fn check_active(&self) -> Result<(), Refusal> {
        match self.row.status {
            SessionStatus::Active => Ok(()),
            SessionStatus::Ended => Err(Refusal::Conflict(Conflict::of(
                "the session has ended",
                "ended",
                "sessionId",
                self.row.id.0.clone(),
            ))),
        }
    }

    /// Records when the visitor was present, while the session is active.
    pub(super) fn record_presence(&mut self, at: DateTime<Utc>) -> Result<(), Refusal> {
        if self.row.status != SessionStatus::Active || self.is_retired || at <= self.row.last_seen_at {
            return Ok(());
        }
        // No caller waits for it: if it is lost, `lastSeenAt` is merely older.
        self.append(SessionRow { last_seen_at: at, by: None, ..self.row.clone() }, None)
    }

    /// Refuses changes while the contact is being deleted or merged.
    fn check_contact(&self) -> Result<(), Refusal> {
        let key = (self.row.company_id, self.row.contact_id);
        // Nothing awaits between this check and the append, as in a ticket's actor.
        if self.scope.contacts.cache().marks.is_marked(key) {
            return Err(Refusal::ContactChanging(key.1));
        }
        Ok(())
    }

    /// Sets the session's row, in an entry of its own.
    pub(super) fn append(
        &mut self,
        row: SessionRow,
        attached: Option<AttachedChanges<SessionRow>>,
    ) -> Result<(), Refusal> {
        self.check_contact()?;
        let reservation = self.scope.base.store.log.reserve(row.company_id)?;
        let mut changes = vec![Change::Session(Box::new(row.clone()))];
        if let Some(changes_for) = attached {
            changes.extend(changes_for(&row)?);
        }
        let (seq, _) = reservation.append(changes)?;
        self.row = row;
        self.status.record_append(seq);
        Ok(())
    }
}

impl Handler<Envelope<SendVisitorMessage>> for VisitorSession {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, command: Envelope<SendVisitorMessage>, _: &mut Self::Context) -> Self::Result {
        let Some((command, reply_to)) = command.accept() else { return AtomicResponse::new(Box::pin(fut::ready(()))) };
        self.status.record_use();
        let scope = self.scope.clone();
        let row = self.row.clone();
        let lookup = self.client_messages.look_up(command.client_id.as_deref());
        let active_check = if self.is_retired { Err(Refusal::Retired) } else { self.check_active() };
        let receive = async move {
            // A retry is answered even after the session has ended, because its first message was received.
            let must_read_tables = match lookup {
                ClientIdLookup::Duplicate(message) => return Ok((*message, None)),
                ClientIdLookup::Unknown => true,
                ClientIdLookup::New => false,
            };
            receive_message(scope, row, command, must_read_tables, active_check).await
        };
        AtomicResponse::new(Box::pin(receive.into_actor(self).map(|outcome, session, _| {
            let outcome = outcome.map(|(message, row)| {
                if let Some(row) = row {
                    session.row = row;
                    session.status.record_append(session.scope.base.store.log.last_of(session.row.company_id));
                }
                session.client_messages.remember(&message);
                message
            });
            match outcome {
                // That the session has ended must be durable before the caller sees it.
                Err(refusal) if refusal.reveals_state() => {
                    reply_to.send_after(&session.scope.base.store.log, session.status.last_seq(), Err(refusal));
                }
                outcome => reply_to.send(outcome),
            }
        })))
    }
}

/// Receives the visitor's message in the conversation, and appends the session's new row in the same entry. Returns the
/// message, and the new row unless the message is a retry. `active_check` refuses new messages, but not retries.
async fn receive_message(
    scope: Arc<SessionScope>,
    row: SessionRow,
    command: SendVisitorMessage,
    must_read_tables: bool,
    active_check: Result<(), Refusal>,
) -> Result<(MessageRow, Option<SessionRow>), Refusal> {
    if must_read_tables
        && let Some(client_id) = &command.client_id
        && let Some(first) = scope.base.reads().message_by_client_id(row.company_id, &row.id, client_id).await?
    {
        return Ok((first, None));
    }
    active_check?;
    let row = SessionRow { last_seen_at: now(), ..row };
    let attached = changes_with_session(row.clone(), command.attached);
    let receive = Receive {
        body: command.body,
        media: command.file.as_ref().map(|file| json!(file)),
        content: command.content,
        quoted: command.quoted,
        session: Some(row.id.clone()),
        client_id: command.client_id,
        ..Receive::default()
    };
    let execute = Execute { command: receive, attached: Some(attached), only_if: None };
    let message = scope.inbound.receive(row.company_id, row.channel_id, row.contact_id, execute).await?;
    let row = row_after_message(&message, row);
    Ok((message, Some(row)))
}

/// The changes in the entry of the visitor's message: the session's new row, then those of the caller.
fn changes_with_session(
    row: SessionRow,
    caller_changes: Option<AttachedChanges<MessageRow>>,
) -> AttachedChanges<MessageRow> {
    Arc::new(move |message: &MessageRow| {
        let row = row_after_message(message, row.clone());
        let mut changes = vec![Change::Session(Box::new(row))];
        if let Some(changes_for) = &caller_changes {
            changes.extend(changes_for(message)?);
        }
        Ok(changes)
    })
}

/// The session's row after its visitor's message. The message has another contact if the session's contact
/// was merged into that one.
fn row_after_message(message: &MessageRow, row: SessionRow) -> SessionRow {
    SessionRow { ticket_id: Some(message.ticket_id), contact_id: message.contact_id, ..row }
}

impl Handler<Envelope<End>> for VisitorSession {
    type Result = ();

    fn handle(&mut self, end: Envelope<End>, _: &mut Self::Context) {
        let Some((end, reply_to)) = end.accept() else { return };
        match self.end(end) {
            Ok(()) => reply_to.send_after(&self.scope.base.store.log, self.status.last_seq(), Ok(self.row.clone())),
            Err(refusal) => reply_to.send(Err(refusal)),
        }
    }
}

impl VisitorSession {
    pub(super) fn end(&mut self, end: End) -> Result<(), Refusal> {
        if self.is_retired {
            return Err(Refusal::Retired);
        }
        if end.idle_since.is_some() && !self.sockets.is_empty() {
            // With an open socket, the visitor is present. This is recorded so that the next sweep of idle sessions
            // does not try to end this one again.
            return self.record_presence(self.sockets.latest_presence(now()));
        }
        let is_idle = end.idle_since.is_none_or(|since| self.row.last_seen_at < since);
        if self.row.status == SessionStatus::Ended || !is_idle {
            return Ok(());
        }
        let mut row = self.row.clone();
        row.status = SessionStatus::Ended;
        row.ended_at = Some(now());
        row.by = Some(end.by);
        self.append(row, end.attached)
    }
}

impl Handler<Envelope<MarkPresent>> for VisitorSession {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<MarkPresent>, _: &mut Self::Context) {
        let Some((MarkPresent, reply_to)) = envelope.accept() else { return };
        self.status.record_use();
        reply_to.send(self.mark_present());
    }
}

impl VisitorSession {
    fn mark_present(&mut self) -> Result<(), Refusal> {
        let now = now();
        if now - self.row.last_seen_at >= self.presence_step() { self.record_presence(now) } else { Ok(()) }
    }
}

impl Handler<SessionMoved> for VisitorSession {
    type Result = ();

    fn handle(&mut self, SessionMoved { contact, tickets }: SessionMoved, _: &mut Self::Context) {
        self.row.contact_id = contact;
        if let Some((merged, remaining)) = tickets
            && self.row.ticket_id == Some(merged)
        {
            self.row.ticket_id = Some(remaining);
        }
        // Browsers reconnect, and see the conversation of the remaining contact.
        self.sockets.disconnect_all(DisconnectReason::Moved);
    }
}

impl Handler<Envelope<ShowSession>> for VisitorSession {
    type Result = ();

    fn handle(&mut self, show: Envelope<ShowSession>, _: &mut Self::Context) {
        let Some((ShowSession, reply_to)) = show.accept() else { return };
        self.status.record_use();
        if self.is_retired {
            return reply_to.send(Err(Refusal::Retired));
        }
        let row = SessionRow { last_seen_at: self.sockets.latest_presence(self.row.last_seen_at), ..self.row.clone() };
        reply_to.send_after(&self.scope.base.store.log, self.status.last_seq(), Ok(row));
    }
}

impl Handler<Retire> for VisitorSession {
    type Result = ();

    fn handle(&mut self, retire: Retire, _: &mut Self::Context) {
        if self.sockets.is_empty()
            && self.status.idle_s() >= retire.idle_s
            && self.status.last_seq() <= self.scope.base.store.log.flushed()
        {
            self.is_retired = true;
            self.scope.hot.remove(&self.key(), &self.status);
        }
    }
}

/// A message that is being received is completed first: during an `AtomicResponse`, an actor handles no other message.
impl Handler<Dismiss> for VisitorSession {
    type Result = ();

    fn handle(&mut self, Dismiss { end_signal }: Dismiss, _: &mut Self::Context) {
        self.end_signal = Some(end_signal);
        if !self.sockets.is_empty() {
            // A present visitor must not count as idle before the browser reconnects.
            if let Err(refusal) = self.record_presence(self.sockets.latest_presence(now())) {
                tracing::debug!(%refusal, "could not record a visitor's presence");
            }
        }
        self.sockets.disconnect_all(DisconnectReason::Moved);
        self.is_retired = true;
        self.scope.hot.remove(&self.key(), &self.status);
    }
}
