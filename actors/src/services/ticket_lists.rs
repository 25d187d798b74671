//! Lists of tickets: from memory where their order is known there, else from the tables.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use hotline_persistence::select::{Page, Position, TimePosition};
use hotline_persistence::tables::tickets::{SortedPage, TicketFilter, TicketSort};
use hotline_persistence::{ChannelId, CompanyId, TicketId};
use tokio::sync::Mutex;

use super::tickets::Tickets;
use super::warming::{self, WarmingBudget};
use crate::Refusal;
use crate::overview::OpenTicketQuery;
use crate::registry::ActorStatus;
use crate::tickets::Ticket;

/// Maximum times that a page requested by its number is listed from memory: it is listed again if its tickets changed
/// meanwhile.
const LISTINGS_MAX: usize = 3;

impl Tickets {
    /// A page of a company's tickets. Open ones, of all or of one queue, user or channel, are listed from memory.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the tables have to be read, and the database is unavailable.
    pub async fn list(
        self: &Arc<Self>,
        company: CompanyId,
        filter: &TicketFilter,
        request: SortedPage,
    ) -> Result<Page<Arc<Ticket>>, Refusal> {
        if let Some(query) = OpenTicketQuery::of(filter, request)
            && let Some(overview) = self.assignment.overview(company)
        {
            let mut tries = 0;
            while tries < LISTINGS_MAX
                && let Some(found) = overview.list(&query).await
            {
                tries += 1;
                let expected_rows = found.len().min(usize::try_from(request.page.size).unwrap_or(usize::MAX));
                let page = self.open_tickets_page(company, found, &query, request).await?;
                // A page by number that is too short would look like the last one.
                if page.rows.len() == expected_rows || request.page.is_by_cursor() {
                    return Ok(page);
                }
            }
        }
        let mut page = self.base.reads().tickets(company, filter, request).await?;
        let loaded = std::mem::take(&mut page.rows);
        Ok(page.with_rows(loaded.into_iter().map(|loaded| Arc::new(Ticket::loaded(loaded, false))).collect()))
    }

    /// The page of open tickets that were found in memory, without those that have changed since and no longer match.
    async fn open_tickets_page(
        self: &Arc<Self>,
        company: CompanyId,
        mut found: Vec<TimePosition>,
        query: &OpenTicketQuery,
        SortedPage { sort, page, .. }: SortedPage,
    ) -> Result<Page<Arc<Ticket>>, Refusal> {
        let size = usize::try_from(page.size).unwrap_or(usize::MAX);
        let has_more = found.len() > size;
        found.truncate(size);
        let ids: Vec<TicketId> = found.iter().map(|position| TicketId::new(position.id)).collect();
        let (tickets, cold) = self.get_all(company, &ids).await?;
        let cursor_position = |position: TimePosition| match sort {
            TicketSort::Id => Position::Id(position.id),
            TicketSort::Activity | TicketSort::Waiting => Position::Time(position),
        };
        let end = found.last().copied().map(cursor_position).filter(|_| page.is_by_cursor());
        let (mut rows, mut positions) = (Vec::with_capacity(found.len()), Vec::new());
        for (ticket, position) in tickets.into_iter().zip(found) {
            let Some(ticket) = ticket.filter(|ticket| query.includes(&ticket.row)) else { continue };
            rows.push(ticket);
            positions.extend(page.is_by_cursor().then(|| cursor_position(position)));
        }
        if query.is_first() && !cold.is_empty() {
            let cold_rows = rows.iter().map(|ticket| &ticket.row).filter(|row| cold.contains(&row.id));
            self.warm(company, cold_rows.map(|row| (row.channel_id, row.id)).collect());
        }
        Ok(Page { rows, has_more, positions, end })
    }

    /// Starts the actors of listed tickets in the background, so that the next lists need not read the tables.
    fn warm(self: &Arc<Self>, company: CompanyId, cold: Vec<(ChannelId, TicketId)>) {
        let is_ending = self.base.is_stopping() || !self.base.owns(company);
        if is_ending || self.scope.hot.len() >= warming::HOT_MAX {
            return;
        }
        let now = Instant::now();
        let budget =
            self.warming.entry(company).or_insert_with(|| Arc::new(Mutex::new(WarmingBudget::new(now)))).clone();
        // Another list of the company is starting actors, mostly of the same tickets.
        let Ok(mut budget) = budget.try_lock_owned() else { return };
        if !budget.try_spend(cold.len(), now, self.base.options.idle_after) {
            return;
        }
        let tickets = self.clone();
        self.base.spawn_for(company, async move {
            // The conversations are loaded first: actors are started under a lock that blocks changes to contacts, so
            // it is held briefly.
            let channels: HashSet<ChannelId> = cold.iter().map(|(channel, _)| *channel).collect();
            for channel in channels {
                if let Err(refusal) = tickets.conversations(company, channel).await {
                    tracing::debug!(%refusal, company.id = %company, "listed tickets stay in the tables until they are listed again");
                    return;
                }
            }
            // For the same reason, the wait for the tables is here, and not under the lock.
            if tickets.base.reads().tables(company).await.is_ok() {
                let ids: Vec<TicketId> = cold.into_iter().map(|(_, id)| id).collect();
                tickets.keep_all_hot(company, &ids).await;
            }
            // Held until here, so that no other list starts actors before these are started.
            drop(budget);
        });
    }

    /// The current states of tickets, in the order of `ids`, with `None` for one that does not exist; and the ids that
    /// were looked up in the tables.
    async fn get_all(
        &self,
        company: CompanyId,
        ids: &[TicketId],
    ) -> Result<(Vec<Option<Arc<Ticket>>>, HashSet<TicketId>), Refusal> {
        let peek_snapshot = |id: &TicketId| self.scope.hot.read_status(&(company, *id), ActorStatus::peek_snapshot);
        let mut tickets: Vec<_> = ids.iter().map(peek_snapshot).collect();
        // A ticket that has just changed has no published snapshot, so its actor is asked. A ticket whose actor does
        // not answer is read from the tables.
        let missing = tickets.iter_mut().zip(ids).filter(|(ticket, _)| ticket.is_none());
        let mut missing: HashMap<_, _> = missing.map(|(ticket, id)| (*id, ticket)).collect();
        let requests = join_all(missing.iter_mut().map(async |(id, ticket)| {
            **ticket = self.get_if_hot(company, *id).await.and_then(Result::ok);
        }));
        requests.await;
        let cold: HashSet<TicketId> =
            missing.iter().filter(|(_, ticket)| ticket.is_none()).map(|(id, _)| *id).collect();
        if !cold.is_empty() {
            for loaded in self.base.reads().tickets_by_id(company, cold.iter().copied().collect()).await? {
                if let Some(ticket) = missing.remove(&loaded.ticket.id) {
                    *ticket = Some(Arc::new(Ticket::loaded(loaded, false)));
                }
            }
        }
        Ok((tickets, cold))
    }
}
