//! Periodic work: retires idle actors, evicts expired cache entries, ends abandoned visitor sessions, writes the uses
//! of tokens, and deletes the remaining rows of deleted records.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use hotline_persistence::CompanyId;
use hotline_persistence::tables::events::By;
use hotline_persistence::tables::{removals, webchat_sessions};

use super::Sessions;
use crate::Refusal;
use crate::base::Base;
use crate::clock::{self, now};
use crate::contacts::ContactCache;
use crate::registry::Retire;
use crate::ticket_actor::TicketScope;
use crate::webchat::{End, SessionScope};

/// Maximum sessions ended in one sweep; more wait for the next.
const SESSIONS_MAX: i64 = 1000;

/// Maximum rows that one statement deletes, which takes about ten milliseconds.
const ROWS_MAX: i64 = 5_000;

/// Maximum such statements for one deleted record in one sweep; more wait for the next.
const STATEMENTS_MAX: usize = 20;

/// Maximum deleted records whose rows one sweep deletes; more wait for the next.
const REMOVALS_MAX: i64 = 20;

/// Interval between evictions of expired entries. Each scans a whole cache, and none is urgent, because a cache never
/// returns an expired entry.
const EVICT_EVERY: Duration = Duration::from_secs(60);

/// The periodic work.
pub(crate) struct Sweeper {
    base: Arc<Base>,
    contacts: Arc<ContactCache>,
    tickets: Arc<TicketScope>,
    session_scope: Arc<SessionScope>,
    sessions: Arc<Sessions>,
}

impl Sweeper {
    pub(crate) fn new(
        base: Arc<Base>,
        contacts: Arc<ContactCache>,
        tickets: Arc<TicketScope>,
        session_scope: Arc<SessionScope>,
        sessions: Arc<Sessions>,
    ) -> Self {
        Self { base, contacts, tickets, session_scope, sessions }
    }

    /// Sweeps periodically, until the thread that runs it ends.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(self.base.options.sweep_every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut last_eviction = Instant::now();
        loop {
            ticks.tick().await;
            let is_up = self.retire_idle().await;
            if last_eviction.elapsed() >= EVICT_EVERY {
                last_eviction = Instant::now();
                self.contacts.sweep();
                // During an outage, a dropped overview could not be loaded again.
                if is_up {
                    self.base.overviews.sweep(last_eviction);
                }
            }
            let owned = |company| self.base.owns(company);
            if let Err(error) = self.base.directory.write_uses(self.base.store.housekeeper(), owned).await {
                tracing::debug!(%error, "saving token usage will be retried");
            }
            if let Err(refusal) = self.end_idle_sessions().await {
                tracing::debug!(%refusal, "sweep of idle sessions will be retried");
            }
            if let Err(error) = self.finish_removals().await {
                tracing::debug!(%error, "removal of deleted rows will be retried");
            }
        }
    }

    /// Asks idle actors to retire if the tables have all their changes, and the actors could be loaded again. None
    /// retires while the database does not respond. While it refuses changes, an actor also stays if the tables lack a
    /// change of its company. Returns whether the database responds and accepts changes. Makes one pass over each
    /// registry, because there may be a million actors, and each shard of a registry is locked while it is scanned.
    pub(super) async fn retire_idle(&self) -> bool {
        if !self.base.store.responds().await {
            return false;
        }
        let log = &self.base.store.log;
        let (is_up, flushed) = (log.queue().is_up(), log.flushed());
        let is_loadable = |company: CompanyId| is_up || log.last_of(company) <= flushed;
        let idle_s = self.base.options.idle_after.as_secs();
        let now = clock::instant();
        let tickets = self.tickets.hot.select(|(company, _), status| {
            let is_unused = status.idle_s_at(now) >= idle_s || status.is_released();
            is_unused && status.last_seq() <= flushed && is_loadable(*company)
        });
        for ticket in tickets {
            // An actor with a full mailbox is not idle after all.
            let _ = ticket.addr.try_send(Retire { idle_s });
        }
        let sessions = self.session_scope.hot.select(|(company, _), status| {
            status.idle_s_at(now) >= idle_s && status.last_seq() <= flushed && is_loadable(*company)
        });
        for session in sessions {
            let _ = session.addr.try_send(Retire { idle_s });
        }
        is_up
    }

    /// Ends the sessions whose visitors have not been seen for a long time. The tables list all of them, hot or not;
    /// each session's actor decides.
    async fn end_idle_sessions(&self) -> Result<(), Refusal> {
        let idle_after = TimeDelta::from_std(self.base.options.session_idle_after).ok();
        // If there is no such date, no session has been idle for that long.
        let Some(since) = idle_after.and_then(|idle_after| now().checked_sub_signed(idle_after)) else { return Ok(()) };
        let (db, ownership) = (&self.base.store.housekeeping, self.base.store.ownership());
        for (company, id) in webchat_sessions::idle(db, &ownership.slot_filter(), since, SESSIONS_MAX).await? {
            let Some(_presence) = ownership.try_enter(company) else { continue };
            // A session that cannot be ended now must not block the others.
            if let Err(refusal) =
                self.sessions.ask(company, &id, End { idle_since: Some(since), attached: None, by: By::SYSTEM }).await
            {
                tracing::debug!(%refusal, session.id = %id, "ending an idle session will be retried");
            }
        }
        Ok(())
    }

    /// Deletes the remaining rows of deleted contact lists, campaigns and webhooks. The list of them is in a table, so
    /// a kill only delays this.
    async fn finish_removals(&self) -> Result<(), hotline_persistence::Error> {
        let db = self.base.store.housekeeper();
        let ownership = self.base.store.ownership();
        for removal in removals::unfinished(db, &ownership.slot_filter(), REMOVALS_MAX).await? {
            let Some(_presence) = ownership.try_enter(removal.company_id) else { continue };
            for _ in 0..STATEMENTS_MAX {
                if !removals::delete_rows(db, &removal, ROWS_MAX).await? {
                    break;
                }
            }
        }
        Ok(())
    }
}
