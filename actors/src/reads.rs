//! The read rule: a hot record is read from its actor or its published snapshot. Everything else is read from the
//! tables, once they have everything that was acknowledged before. A read that a decision depends on also waits for
//! everything that was decided before.

use hotline_persistence::error::with_timeout;
use hotline_persistence::select::Page;
use hotline_persistence::tables::messages::{self, MessageRow};
use hotline_persistence::tables::tickets::{self, LoadedTicket, SortedPage, TicketFilter, TicketSort};
use hotline_persistence::{ChannelId, CompanyId, Db, MessageId, SessionId, Store, TicketId};

use crate::Refusal;

/// Reads by the read rule.
pub struct Reads<'a> {
    pub(crate) store: &'a Store,
}

impl<'a> Reads<'a> {
    /// The tables for a read that only answers a request, once they have every change of this company that was
    /// acknowledged before. A change that still waits for the journal's disk is not acknowledged yet, so a full disk
    /// does not block readers.
    pub async fn acknowledged_tables(&self, company: CompanyId) -> Result<Db<'a>, Refusal> {
        let log = &self.store.log;
        // Each answer is sent once its entry is durable, so entries that are not durable yet are not waited for.
        log.wait_until_flushed(log.last_of(company).min(log.durable())).await?;
        Ok(self.store.db(company))
    }

    /// The tables for a read that a decision depends on, once they have every change of this company that was decided
    /// before.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is unavailable, or the journal has no room.
    pub async fn tables(&self, company: CompanyId) -> Result<Db<'a>, Refusal> {
        let log = &self.store.log;
        log.wait_until_flushed(log.last_of(company)).await?;
        Ok(self.store.db(company))
    }

    /// The tables of a company, once they have every change in the log, acknowledged or not. For callers that have
    /// begun to watch the log and now read what came before.
    pub async fn tables_as_of_now(&self, company: CompanyId) -> Result<Db<'a>, Refusal> {
        let log = &self.store.log;
        log.wait_until_flushed(log.appended()).await?;
        Ok(self.store.db(company))
    }

    /// A page of a company's tickets.
    pub(crate) async fn tickets(
        &self,
        company: CompanyId,
        filter: &TicketFilter,
        request: SortedPage,
    ) -> Result<Page<LoadedTicket>, Refusal> {
        let db = self.acknowledged_tables(company).await?;
        if request.sort != TicketSort::Id {
            return Ok(with_timeout(tickets::list_sorted(db, company, filter, request)).await?);
        }
        let page = request.page;
        // One query plan suits every value of such a filter, so it is planned once per connection.
        if tickets::is_steady(filter, page) {
            return Ok(tickets::list_steady(&self.store.readers, company, filter.status, page).await?);
        }
        Ok(with_timeout(tickets::list(db, company, filter, page)).await?)
    }

    /// The tickets with these ids, without those that do not exist.
    pub(crate) async fn tickets_by_id(
        &self,
        company: CompanyId,
        ids: Vec<TicketId>,
    ) -> Result<Vec<LoadedTicket>, Refusal> {
        // Only waits: the readers have connections of their own.
        self.acknowledged_tables(company).await?;
        Ok(tickets::find_all_steady(&self.store.readers, company, ids).await?)
    }

    /// One message, or none.
    pub async fn message(&self, company: CompanyId, id: MessageId) -> Result<Option<MessageRow>, Refusal> {
        Ok(messages::find(self.acknowledged_tables(company).await?, company, id).await?)
    }

    /// The message to which the channel's provider has given this id, or none.
    pub async fn message_by_provider_id(
        &self,
        company: CompanyId,
        channel: ChannelId,
        provider_message_id: &str,
    ) -> Result<Option<MessageRow>, Refusal> {
        Ok(messages::by_provider_id(self.tables(company).await?, company, channel, provider_message_id).await?)
    }

    /// The message that a visitor's client sent under this id, or none.
    pub async fn message_by_client_id(
        &self,
        company: CompanyId,
        session: &SessionId,
        client_id: &str,
    ) -> Result<Option<MessageRow>, Refusal> {
        Ok(messages::by_client_id(self.tables(company).await?, company, session, client_id).await?)
    }
}
