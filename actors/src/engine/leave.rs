//! How a record leaves that conversations refer to: nothing new refers to it, and what does is known.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use hotline_persistence::tables::tickets;
use hotline_persistence::{CompanyId, Db, QueueId, TicketId, UserId};

use super::{Core, Engine};
use crate::Refusal;
use crate::directory::Leaving;
use crate::tickets::{Author, Release};

/// How long the answer to a change waits until the directory has it. The change stands anyway, and the directory
/// follows the news.
const REFRESH_TIME_MAX: std::time::Duration = hotline_persistence::error::STATEMENT_TIME_MAX;

/// Tickets of a leaving user that are read at once.
const RELEASED_MAX: i64 = 1000;

/// Tickets that are taken from them at once: enough to share the journal's syncs.
const RELEASES_AT_ONCE: usize = 64;

impl Engine {
    /// Waits until the actors decide by everything of a company that is committed: after a change of what the
    /// directory holds.
    pub async fn refresh(&self, company: CompanyId) {
        let refreshed = self.core.directory.refresh(self.core.store.db(company), company);
        match tokio::time::timeout(REFRESH_TIME_MAX, refreshed).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, %company, "a change of the directory is seen later"),
            Err(_) => tracing::warn!(%company, "a change of the directory is seen later"),
        }
    }

    /// Does `work` while nobody can choose a record any more. What was decided before is in the tables by then.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away, or what `work` says; the record is then as it was.
    pub async fn leave<T, E: From<Refusal>>(
        &self,
        company: CompanyId,
        what: Leaving,
        work: impl AsyncFnOnce(Db<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.leave_all(company, [what], work).await
    }

    /// The same of several records.
    ///
    /// # Errors
    /// As of [`Engine::leave`].
    pub async fn leave_all<T, E: From<Refusal>>(
        &self,
        company: CompanyId,
        what: impl IntoIterator<Item = Leaving>,
        work: impl AsyncFnOnce(Db<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut leavers = Vec::new();
        for what in what {
            self.core.directory.leaves(company, what).await;
            leavers.push(Leaver { core: self.core.clone(), company, what });
        }
        self.core.homes.pass().await;
        let outcome = work(self.reads().tables(company).await?).await;
        drop(leavers);
        self.refresh(company).await;
        outcome
    }

    /// Takes the open tickets from a user who leaves the company, or a queue. Within [`Engine::leave`] none can come after.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when a ticket cannot be taken from them now; those before are.
    pub async fn release(
        &self,
        company: CompanyId,
        user: UserId,
        queue: Option<QueueId>,
        author: Author,
    ) -> Result<(), Refusal> {
        let mut after = TicketId::new(0);
        loop {
            let db = self.reads().tables(company).await?;
            let held = tickets::open_of_user(db, company, user, queue, after, RELEASED_MAX).await?;
            let Some(last) = held.last() else { return Ok(()) };
            after = *last;
            stream::iter(held)
                .map(|ticket| self.ask(company, ticket, Release { user, queue, author: author.clone() }))
                .buffer_unordered(RELEASES_AT_ONCE)
                .try_collect::<Vec<()>>()
                .await?;
        }
    }
}

/// A record on its way out, however that ends: done, refused, given up by its caller.
struct Leaver {
    core: Arc<Core>,
    company: CompanyId,
    what: Leaving,
}

impl Drop for Leaver {
    fn drop(&mut self) {
        self.core.directory.stays(self.company, self.what);
        let (engine, company) = (Engine::of(self.core.clone()), self.company);
        self.core.background.spawn(async move { engine.refresh(company).await });
    }
}
