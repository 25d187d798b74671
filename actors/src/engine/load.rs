//! What is read from the tables when it is not in memory: actors, conversations, contacts.

use std::sync::Arc;

use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::contacts::{ContactRef, Numbered};
use hotline_persistence::tables::{contacts, messages, tickets, webchat_sessions};
use hotline_persistence::{ChannelId, CompanyId, ContactId, SessionId, TicketId};

use super::Engine;
use crate::Refusal;
use crate::conversations::Conversations;
use crate::registry::Hot;
use crate::tickets::{Author, Heard, Ticket, TicketActor};
use crate::webchat::{CLIENT_IDS_MAX, VisitorSession};

impl Engine {
    /// A contact, or none.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it is not remembered and the database is away.
    pub async fn contact(&self, company: CompanyId, id: ContactId) -> Result<Option<Arc<ContactRef>>, Refusal> {
        if let Some(contact) = self.core.contacts.get(company, id) {
            return Ok(Some(contact));
        }
        let _turn = self.core.contacts.looking(company).await;
        let found = contacts::find_ref(self.core.store.db(company), company, id).await?;
        Ok(found.map(|contact| self.remember(company, contact)))
    }

    /// The contact with a number: found, or created.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it is not remembered and the database is away.
    pub async fn contact_with_number(&self, company: CompanyId, new: Numbered<'_>) -> Result<Arc<ContactRef>, Refusal> {
        if let Some(contact) = self.core.contacts.with_number(company, new.number) {
            return Ok(contact);
        }
        let _turn = self.core.contacts.looking(company).await;
        let api = Author::API.source;
        let contact = contacts::find_or_create_by_number(self.core.store.db(company), company, new, api).await?;
        Ok(self.remember(company, contact))
    }

    /// Whether there is a contact with this number.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it is not remembered and the database is away.
    pub async fn is_known_number(&self, company: CompanyId, number: &str) -> Result<bool, Refusal> {
        if self.core.contacts.with_number(company, number).is_some() {
            return Ok(true);
        }
        let _turn = self.core.contacts.looking(company).await;
        let found = contacts::find_ref_by_number(self.core.store.db(company), company, number).await?;
        Ok(found.map(|contact| self.remember(company, contact)).is_some())
    }

    pub(super) fn remember(&self, company: CompanyId, contact: ContactRef) -> Arc<ContactRef> {
        let contact = Arc::new(contact);
        self.core.contacts.remember(company, &contact);
        contact
    }

    /// A channel's conversations; read once, kept for the life of the process.
    pub(super) async fn conversations(
        &self,
        company: CompanyId,
        channel: ChannelId,
    ) -> Result<Arc<Conversations>, Refusal> {
        let cell = match self.core.conversations.get(&(company, channel)) {
            Some(cell) => cell.clone(),
            None => self.core.conversations.entry((company, channel)).or_default().clone(),
        };
        let load = || async {
            let db = self.reads().tables(company).await?;
            let open = tickets::open_of_channel(db, company, channel).await?;
            Ok::<_, Refusal>(Arc::new(Conversations::of(open)))
        };
        cell.get_or_try_init(load).await.cloned()
    }

    /// The actor of a ticket, started if it is not hot.
    pub(super) async fn hot_ticket(&self, company: CompanyId, id: TicketId) -> Result<Hot<TicketActor>, Refusal> {
        let key = (company, id);
        if let Some(hot) = self.core.tickets.get(&key) {
            return Ok(hot);
        }
        // Until it can be found: whoever changes its contact tells it, or it reads the change.
        let _turn = self.core.contacts.looking(company).await;
        self.core.tickets.get_or_start(&key, || self.load_ticket(company, id)).await
    }

    /// The actor of a visitor session, started if it is not hot.
    pub(super) async fn hot_session(&self, company: CompanyId, id: &SessionId) -> Result<Hot<VisitorSession>, Refusal> {
        let key = (company, id.clone());
        if let Some(hot) = self.core.sessions.get(&key) {
            return Ok(hot);
        }
        let _turn = self.core.contacts.looking(company).await;
        self.core.sessions.get_or_start(&key, || self.load_session(company, id)).await
    }

    async fn load_ticket(&self, company: CompanyId, id: TicketId) -> Result<Hot<TicketActor>, Refusal> {
        let db = self.reads().tables(company).await?;
        let loaded = tickets::find(db, company, id).await?.ok_or(Refusal::NotFound)?;
        let (channel, contact) = (loaded.ticket.channel_id, loaded.ticket.contact_id);
        let conversations = self.conversations(company, channel).await?;
        let reachable = self.core.contacts.is_reachable(company, channel, contact);
        let mut ticket = Ticket::loaded(loaded, reachable);
        for following in tickets::following(db, company, id).await? {
            ticket.follow(following.id, following.into());
        }
        self.core.contacts.remember(company, &ticket.contact);
        Ok(TicketActor::start_with(&self.core, conversations, ticket))
    }

    async fn load_session(&self, company: CompanyId, id: &SessionId) -> Result<Hot<VisitorSession>, Refusal> {
        let db = self.reads().tables(company).await?;
        let row = webchat_sessions::find(db, company, id).await?.ok_or(Refusal::NotFound)?;
        let used = messages::client_ids(db, company, id, CLIENT_IDS_MAX as i64).await?;
        Ok(VisitorSession::start_with(&self.core, row, &used))
    }

    /// When a contact last wrote on a channel: known, once it was looked up.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it is not remembered and the database is away.
    pub async fn heard(&self, company: CompanyId, channel: ChannelId, contact: ContactId) -> Result<Heard, Refusal> {
        let remembered = self.core.contacts.heard(company, channel, contact);
        if remembered != Heard::Unknown {
            return Ok(remembered);
        }
        let db = self.reads().tables(company).await?;
        let heard = messages::last_inbound_at(db, company, channel, contact).await?.into();
        self.core.contacts.remember_heard(company, channel, contact, heard);
        Ok(heard)
    }

    /// Whether a channel without phone reaches a contact: on a webchat a session of theirs, elsewhere a message
    /// from them.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it is not remembered and the database is away.
    pub async fn is_reachable(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contact: ContactId,
    ) -> Result<bool, Refusal> {
        if self.core.contacts.is_reachable(company, channel, contact) {
            return Ok(true);
        }
        let organization = self.core.directory.company(company).ok_or(Refusal::NotFound)?;
        let kind = organization.channels.get(&channel).ok_or(Refusal::NotFound)?.kind;
        if kind.has_phone() {
            return Ok(false); // The number decides, and the ticket knows it.
        }
        let db = self.reads().tables(company).await?;
        let reachable = match kind {
            ChannelType::Webchat => webchat_sessions::exists(db, company, channel, contact).await?,
            _ => messages::has_received(db, company, channel, contact).await?,
        };
        if reachable {
            self.core.contacts.remember_reachable(company, channel, contact);
        }
        Ok(reachable)
    }
}
