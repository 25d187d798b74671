//! The one read rule: a hot record is asked, or shows what it would answer; everything else waits until what was
//! acknowledged before is in the tables, and is read there. Who decides by the tables waits for what was decided before
//! as well.

use hotline_persistence::error::with_timeout;
use hotline_persistence::select::{Page, PageRequest};
use hotline_persistence::tables::messages::{self, MessageRow};
use hotline_persistence::tables::tickets::{self, LoadedTicket, TicketFilter};
use hotline_persistence::{ChannelId, CompanyId, Db, MessageId, SessionId, Store};

use crate::Refusal;

/// Reads of live rows.
pub struct Reads<'a> {
    pub(crate) store: &'a Store,
}

impl<'a> Reads<'a> {
    /// The tables to be shown, as soon as they hold every change of this company that was acknowledged before. A change
    /// that still waits for the journal's disk is nobody's yet: a disk without room keeps no reader waiting.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away.
    pub async fn shown(&self, company: CompanyId) -> Result<Db<'a>, Refusal> {
        let log = &self.store.log;
        // Every earlier answer was sent after its sync.
        log.reached(log.last_of(company).min(log.durable())).await?;
        Ok(self.store.db(company))
    }

    /// The tables to decide by, as soon as they hold every change of this company that was decided before.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away, or the journal has no room.
    pub async fn tables(&self, company: CompanyId) -> Result<Db<'a>, Refusal> {
        let log = &self.store.log;
        log.reached(log.last_of(company)).await?;
        Ok(self.store.db(company))
    }

    /// A company's tables, as soon as they hold every change that is in the log by now, acknowledged or not: what those owe
    /// who have begun to watch the log, and now read what came before.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away.
    pub async fn tables_as_of_now(&self, company: CompanyId) -> Result<Db<'a>, Refusal> {
        let log = &self.store.log;
        log.reached(log.appended()).await?;
        Ok(self.store.db(company))
    }

    /// A page of a company's tickets.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away.
    pub async fn tickets(
        &self,
        company: CompanyId,
        filter: &TicketFilter,
        page: PageRequest,
    ) -> Result<Page<LoadedTicket>, Refusal> {
        let db = self.shown(company).await?;
        if tickets::is_steady(filter, page) {
            return Ok(tickets::list_steady(&self.store.readers, company, filter.status, page).await?);
        }
        Ok(with_timeout(tickets::list(db, company, filter, page)).await?)
    }

    /// One message, or none.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away.
    pub async fn message(&self, company: CompanyId, id: MessageId) -> Result<Option<MessageRow>, Refusal> {
        Ok(messages::find(self.shown(company).await?, company, id).await?)
    }

    /// The message a channel's provider knows by this id, or none.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away.
    pub async fn message_by_provider_id(
        &self,
        company: CompanyId,
        channel: ChannelId,
        provider_message_id: &str,
    ) -> Result<Option<MessageRow>, Refusal> {
        Ok(messages::by_provider_id(self.tables(company).await?, company, channel, provider_message_id).await?)
    }

    /// The message a visitor sent under an id of their own, or none.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away.
    pub async fn message_by_client_id(
        &self,
        company: CompanyId,
        session: &SessionId,
        client_id: &str,
    ) -> Result<Option<MessageRow>, Refusal> {
        Ok(messages::by_client_id(self.tables(company).await?, company, session, client_id).await?)
    }
}
