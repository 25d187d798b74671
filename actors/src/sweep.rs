//! What happens now and then: idle actors and old knowledge make room, forgotten visitor sessions end, uses of tokens are
//! written, the rows of what was deleted are deleted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use hotline_persistence::tables::{removals, webchat_sessions};

use crate::base::Base;
use crate::clock::now;
use crate::contacts::KnownContacts;
use crate::engine::Sessions;
use crate::tickets::{Retire, TicketScope};
use crate::webchat::{End, SessionScope};

/// Sessions ended in one sweep; more wait for the next.
const SESSIONS_MAX: i64 = 1000;

/// Rows of what was deleted that one statement deletes: some ten milliseconds.
const ROWS_MAX: i64 = 5_000;

/// Such statements for one thing that was deleted, and how many of these, in one sweep; more wait for the next.
const STATEMENTS_MAX: usize = 20;
const REMOVALS_MAX: i64 = 20;

/// Seconds without a look after which a ticket's answer is forgotten: who polls asks more often.
const REST_AFTER_S: u64 = 30;

/// How often what is too old to be remembered makes room: it is looked through whole, and nobody is told it meanwhile.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// What is looked at now and then.
pub(crate) struct Sweeper {
    base: Arc<Base>,
    contacts: Arc<KnownContacts>,
    tickets: Arc<TicketScope>,
    session_scope: Arc<SessionScope>,
    sessions: Arc<Sessions>,
}

impl Sweeper {
    pub(crate) fn new(
        base: Arc<Base>,
        contacts: Arc<KnownContacts>,
        tickets: Arc<TicketScope>,
        session_scope: Arc<SessionScope>,
        sessions: Arc<Sessions>,
    ) -> Self {
        Self { base, contacts, tickets, session_scope, sessions }
    }

    /// Sweeps now and then, for as long as the engine lives.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut clock = tokio::time::interval(self.base.options.sweep_every);
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut forgot = Instant::now();
        loop {
            clock.tick().await;
            self.retire_idle();
            if forgot.elapsed() >= FORGET_EVERY {
                forgot = Instant::now();
                self.contacts.sweep();
                self.base.overviews.sweep(forgot);
            }
            let owned = |company| self.base.owns(company);
            if let Err(error) = self.base.directory.write_uses(self.base.store.housekeeper(), owned).await {
                tracing::debug!(%error, "the uses of tokens are not written now");
            }
            if let Err(refusal) = self.end_idle_sessions().await {
                tracing::debug!(%refusal, "idle sessions are not swept now");
            }
            if let Err(error) = self.finish_removals().await {
                tracing::debug!(%error, "the rows of what was deleted are not deleted now");
            }
        }
    }

    /// Asks actors that nobody has used for long, and whose changes are all in the tables, to make room. Tickets forget
    /// sooner how they are answered. Each actor is looked at once: there may be a million, and whoever starts one waits for
    /// those near it.
    fn retire_idle(&self) {
        let idle_s = self.base.options.idle_after.as_secs();
        let flushed = self.base.store.log.flushed();
        let now = Instant::now();
        let tickets = self.tickets.hot.select(|life| {
            let unused_s = life.idle_s_at(now);
            if unused_s >= REST_AFTER_S {
                life.shared.rest();
            }
            (unused_s >= idle_s || life.is_let_go()) && life.last_seq() <= flushed
        });
        for ticket in tickets {
            // A full mailbox means it is not idle after all.
            let _ = ticket.addr.try_send(Retire { idle_s });
        }
        for session in self.session_scope.hot.select(|life| life.idle_s_at(now) >= idle_s && life.last_seq() <= flushed)
        {
            let _ = session.addr.try_send(Retire { idle_s });
        }
    }

    /// Ends the sessions whose visitors have not been seen for long. The tables know them all, hot or not; the actor
    /// has the last word.
    async fn end_idle_sessions(&self) -> Result<(), crate::Refusal> {
        let since = now() - TimeDelta::from_std(self.base.options.session_idle_after).unwrap_or(TimeDelta::MAX);
        let (db, ownership) = (&self.base.store.housekeeping, self.base.store.ownership());
        for (company, id) in webchat_sessions::idle(db, &ownership.of_slots(), since, SESSIONS_MAX).await? {
            let Some(_presence) = ownership.try_enter(company) else { continue };
            // One session that cannot be ended now must not keep the others.
            if let Err(refusal) = self.sessions.ask(company, &id, End { idle_since: Some(since), attached: None }).await
            {
                tracing::debug!(%refusal, session.id = %id, "an idle session is not ended now");
            }
        }
        Ok(())
    }

    /// Deletes the rows of contact lists, campaigns and webhooks that were deleted. What is left is in a table: a kill only delays it.
    async fn finish_removals(&self) -> Result<(), hotline_persistence::Error> {
        let db = self.base.store.housekeeper();
        let ownership = self.base.store.ownership();
        for removal in removals::unfinished(db, &ownership.of_slots(), REMOVALS_MAX).await? {
            let Some(_presence) = ownership.try_enter(removal.company_id) else { continue };
            for _ in 0..STATEMENTS_MAX {
                if !removals::go_on(db, &removal, ROWS_MAX).await? {
                    break;
                }
            }
        }
        Ok(())
    }
}
