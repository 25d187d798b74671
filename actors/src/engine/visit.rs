//! What a visitor's own browser asks for, and what is told to it.

use std::sync::Arc;

use hotline_persistence::key::KeyHash;
use hotline_persistence::tables::webchat_sessions::{self, SessionRow};
use hotline_persistence::{ChannelId, CompanyId};

use super::Engine;
use crate::Refusal;
use crate::webchat::{Conversation, Doing, Push, ShowSession, Told};

impl Engine {
    /// The session that the token with this hash opens in a webchat, or none.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the session is not hot and the database is away.
    pub async fn visitor(
        &self,
        company: CompanyId,
        channel: ChannelId,
        hash: &KeyHash,
    ) -> Result<Option<SessionRow>, Refusal> {
        let hot = self.core.visitor_tokens.get(hash).map(|known| known.clone());
        let id = match hot {
            Some((owner, id)) => (owner == company).then_some(id),
            None => webchat_sessions::by_token(self.reads().tables(company).await?, company, channel, hash).await?,
        };
        let Some(id) = id else { return Ok(None) };
        match self.ask_session(company, &id, ShowSession).await {
            Ok(row) => Ok(Some(row).filter(|row| row.channel_id == channel)),
            Err(Refusal::NotFound) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// An agent types to a visitor, or has stopped. Nobody keeps it.
    pub fn agent_types(&self, conversation: Conversation, agent: Option<&str>, typing: bool) {
        let agent: Option<Arc<str>> = agent.map(Arc::from);
        self.core.watchers.send(conversation, || Told { session: None, push: Push::Typing { agent, typing } });
    }

    /// What the visitor of a conversation is doing.
    pub fn visitor_doing(&self, conversation: Conversation) -> Doing {
        self.core.watchers.doing(conversation)
    }

    /// Sessions that have sockets.
    pub fn watching(&self) -> usize {
        self.core.watchers.len()
    }
}
