//! Begins visitor sessions, finds them by their visitors' tokens, and passes messages to their actors.

mod identity;

use std::sync::Arc;

use actix::dev::ToEnvelope;
use actix::{Actor, Handler, Message};
use hotline_persistence::key::KeyHash;
use hotline_persistence::tables::messages;
use hotline_persistence::tables::webchat_sessions::{self, SessionRow};
use hotline_persistence::{Change, ChannelId, CompanyId, Durable, SessionId};

use identity::VisitorLocks;
pub use identity::{Identified, VisitorLock};

use crate::Refusal;
use crate::base::Base;
use crate::base::retry::{no_other_conflict, on_conflict};
use crate::registry::{ActorHandle, Envelope, Population, dismiss};
use crate::services::Contacts;
use crate::tickets::AttachedChanges;
use crate::webchat::{
    CLIENT_IDS_MAX, Conversation, NewSession, Push, PushToSession, SessionMoved, SessionScope, ShowSession,
    VisitorActivity, VisitorSession,
};

/// Access to all visitor sessions.
pub struct Sessions {
    base: Arc<Base>,
    contacts: Arc<Contacts>,
    scope: Arc<SessionScope>,
    visitor_locks: VisitorLocks,
}

impl Sessions {
    pub(super) fn new(base: Arc<Base>, contacts: Arc<Contacts>, scope: Arc<SessionScope>) -> Self {
        Self { base, contacts, scope, visitor_locks: VisitorLocks::default() }
    }

    /// Begins a visitor session.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the contact does not exist, or is verified and the session's visitor is not;
    /// [`Refusal::Unavailable`] when the session cannot be made durable.
    pub async fn begin(&self, new: NewSession) -> Result<SessionRow, Refusal> {
        let NewSession { row, attached } = new;
        let attempt = || self.attempt_to_begin(&row, attached.as_ref());
        on_conflict(self.contacts.cache(), row.company_id, attempt, no_other_conflict).await?.wait().await?;
        self.contacts.cache().remember_reachable(row.company_id, row.channel_id, row.contact_id);
        Ok(row)
    }

    async fn attempt_to_begin(
        &self,
        row: &SessionRow,
        attached: Option<&AttachedChanges<SessionRow>>,
    ) -> Result<Durable, Refusal> {
        let (cache, contact_key) = (self.contacts.cache(), (row.company_id, row.contact_id));
        let version = cache.version(contact_key);
        let contact = self.contacts.get(row.company_id, row.contact_id).await?.ok_or(Refusal::NotFound)?;
        cache.marks.unless_marked(contact_key, || {
            if cache.version(contact_key) != version {
                return Err(Refusal::ContactChanging(row.contact_id));
            }
            // A merge has verified the contact since this unverified visitor was matched with it.
            if contact.verified && !row.verified {
                return Err(Refusal::NotFound);
            }
            self.append(row, attached)
        })
    }

    /// Appends the beginning of a session and registers its actor, before anyone can learn of the session.
    fn append(&self, row: &SessionRow, attached: Option<&AttachedChanges<SessionRow>>) -> Result<Durable, Refusal> {
        let reservation = self.base.store.log.reserve(row.company_id)?;
        let mut changes = vec![Change::Session(Box::new(row.clone()))];
        if let Some(attached) = attached {
            changes.extend(attached(row)?);
        }
        let (seq, durable) = reservation.append(changes)?;
        let hot = VisitorSession::start_with(&self.scope, row.clone(), &[]);
        hot.status.record_append(seq);
        self.scope.hot.insert((row.company_id, row.id.clone()), hot);
        Ok(durable)
    }

    /// Sends a message to a visitor session's actor.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the company has no such session; the actor's refusal of the message.
    pub async fn ask<M, R>(&self, company: CompanyId, id: &SessionId, message: M) -> Result<R, Refusal>
    where
        M: Message<Result = Result<R, Refusal>> + Clone + Send + 'static,
        R: Send + 'static,
        VisitorSession: Handler<Envelope<M>>,
        <VisitorSession as Actor>::Context: ToEnvelope<VisitorSession, Envelope<M>>,
    {
        let attempt = || {
            let message = message.clone();
            async move {
                let hot = self.get_or_start(company, id).await?;
                self.base.deliver(&self.scope.hot, &hot, message).await
            }
        };
        on_conflict(self.contacts.cache(), company, attempt, no_other_conflict).await
    }

    /// The actor of a visitor session, started if it is not hot.
    async fn get_or_start(&self, company: CompanyId, id: &SessionId) -> Result<ActorHandle<VisitorSession>, Refusal> {
        let key = (company, id.clone());
        if let Some(hot) = self.scope.hot.get(&key) {
            return Ok(hot);
        }
        // Boxed, because the future that reads the tables is large, and every request would carry and copy it.
        let start = async {
            let _lock = self.contacts.cache().read_lock(company).await;
            self.scope.hot.get_or_start(&key, || self.load(company, id)).await
        };
        Box::pin(start).await
    }

    async fn load(&self, company: CompanyId, id: &SessionId) -> Result<ActorHandle<VisitorSession>, Refusal> {
        let db = self.base.reads().tables(company).await?;
        let row = webchat_sessions::find(db, company, id).await?.ok_or(Refusal::NotFound)?;
        let client_ids = messages::client_ids(db, company, id, CLIENT_IDS_MAX as i64).await?;
        Ok(VisitorSession::start_with(&self.scope, row, &client_ids))
    }

    /// Drops the actors of sessions that were, or may have been, deleted: the next request reads the session again.
    pub(super) fn forget(&self, company: CompanyId, sessions: &[SessionId]) {
        for session in sessions {
            let key = (company, session.clone());
            if let Some(hot) = self.scope.hot.get(&key) {
                self.scope.hot.remove(&key, &hot.status);
            }
        }
    }

    /// Notifies a hot session that its contact or ticket was merged into another. Does not wait for the actor, which
    /// may be waiting for the contact.
    pub(super) fn notify_moved(&self, company: CompanyId, session: &SessionId, moved: SessionMoved) {
        if let Some(hot) = self.scope.hot.get(&(company, session.clone())) {
            hot.addr.do_send(moved);
        }
    }

    /// The session that the token with this hash opens in a webchat, or none.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the session is not hot and the database is unavailable.
    pub async fn by_token(
        &self,
        company: CompanyId,
        channel: ChannelId,
        hash: &KeyHash,
    ) -> Result<Option<SessionRow>, Refusal> {
        let hot_session = self.scope.tokens.get(hash).map(|session| session.clone());
        let id = match hot_session {
            Some((owner, id)) => (owner == company).then_some(id),
            None => {
                webchat_sessions::by_token(self.base.reads().tables(company).await?, company, channel, hash).await?
            }
        };
        let Some(id) = id else { return Ok(None) };
        match self.ask(company, &id, ShowSession).await {
            Ok(row) => Ok(Some(row).filter(|row| row.channel_id == channel)),
            Err(Refusal::NotFound) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// Shows a visitor that an agent is typing, or has stopped. This is not stored.
    pub fn show_agent_typing(&self, conversation: Conversation, agent: Option<&str>, typing: bool) {
        let agent: Option<Arc<str>> = agent.map(Arc::from);
        self.scope
            .watchers
            .send(conversation, || PushToSession { session: None, push: Push::Typing { agent, typing } });
    }

    /// The current activity of a conversation's visitor.
    pub fn visitor_activity(&self, conversation: Conversation) -> VisitorActivity {
        self.scope.watchers.activity(conversation)
    }

    /// The number of sessions that have sockets.
    pub fn connected_sessions(&self) -> usize {
        self.scope.watchers.len()
    }

    /// Ends the actors of a company's sessions; their sockets are asked to reconnect.
    pub(super) async fn forget_company(&self, company: CompanyId) -> Result<(), Refusal> {
        // Locks exist only during a sign-in. Watchers and tokens are registered for as long as their actor lives.
        let Self { base: _, contacts: _, scope, visitor_locks: _ } = self;
        let SessionScope { base: _, contacts: _, inbound: _, tickets: _, watchers: _, tokens: _, hot } = &**scope;
        dismiss(hot, |(owner, _)| *owner == company).await
    }

    pub(super) fn population(&self) -> Population {
        self.scope.hot.population()
    }
}
