//! Who gets tickets: the desk that gives a new one its agent, and how a record leaves that tickets refer to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::queues::Distribution;
use hotline_persistence::tables::reports::desk::{self, OpenTickets};
use hotline_persistence::tables::tickets;
use hotline_persistence::{CompanyId, Db};

use crate::Refusal;
use crate::base::Base;
use crate::directory::Removal;
use crate::distribution::{Assigner, Count, Desks, distributing};
use crate::overview::{self, Look};
use crate::tickets::Open;

/// How long an opening waits until loads are counted. One statement over what a company has open takes some
/// milliseconds; a database that is away keeps no contact waiting.
const COUNT_TIME_MAX: Duration = Duration::from_secs(3);

/// Who gets tickets.
pub struct Assignment {
    base: Arc<Base>,
    desks: Arc<Desks>,
}

impl Assignment {
    pub(super) fn new(base: Arc<Base>, desks: Arc<Desks>) -> Self {
        Self { base, desks }
    }

    /// Drops what is known of who has how many tickets of a company.
    pub(super) fn forget_company(&self, company: CompanyId) {
        let Self { base: _, desks } = self;
        desks.forget_company(company);
    }

    /// The desk that gives a ticket its agent, if one does. Where loads decide they are counted first; while that
    /// cannot be done, agents take turns.
    pub(super) async fn desk(&self, organization: &Organization, open: &Open) -> Option<Arc<Assigner>> {
        let (_, distribution) = distributing(organization, open)?;
        let desk = self.desks.of(open.company);
        if distribution == Distribution::LeastBusy {
            self.count(open.company, &desk).await;
        }
        Some(desk)
    }

    /// What a company has open by queue and user, with every change that was acknowledged before.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it has to be read, and the database is away.
    pub async fn open_tickets(&self, company: CompanyId) -> Result<Vec<OpenTickets>, Refusal> {
        let (overview, look) = self.base.overviews.look(company, Instant::now());
        match look {
            Look::Known(open) => return Ok(open),
            Look::Tables => {}
            Look::Begins => {
                let base = self.base.clone();
                self.base.spawn_for(company, async move {
                    let open = async {
                        let db = base.reads().tables_as_of_now(company).await?;
                        Ok::<_, Refusal>(desk::each_open(db, company, overview::TICKETS_MAX as i64 + 1).await?)
                    };
                    let open = open.await.inspect_err(|refusal| {
                        tracing::debug!(%refusal, company.id = %company, "what is open is counted in the tables");
                    });
                    overview.end_reading(open.ok(), Instant::now());
                });
            }
        }
        Ok(desk::open_tickets(self.base.reads().shown(company).await?, company).await?)
    }

    /// Waits until loads are counted, but not for long. The count goes on when its caller has gone.
    async fn count(&self, company: CompanyId, desk: &Arc<Assigner>) {
        let mut counted = desk.counted();
        match desk.begin_count(Instant::now()) {
            Count::Known | Count::Waits => return,
            Count::Runs => {}
            Count::Begins => {
                let (base, desk) = (self.base.clone(), desk.clone());
                self.base.spawn(async move {
                    let held =
                        async { Ok::<_, Refusal>(tickets::held(base.reads().tables(company).await?, company).await?) };
                    let held = held.await.inspect_err(|refusal| {
                        tracing::debug!(%refusal, company.id = %company, "loads are not known now; agents take turns");
                    });
                    desk.end_count(held.ok(), Instant::now());
                });
            }
        }
        // After the time limit the opening uses what is known.
        let _ = tokio::time::timeout(COUNT_TIME_MAX, counted.changed()).await;
    }

    /// Does `work` while nobody can choose a record any more. What was decided before is in the tables by then.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away, or what `work` says; the record is then as it was.
    pub async fn delete_guarded<T, E: From<Refusal>>(
        &self,
        company: CompanyId,
        what: Removal,
        work: impl AsyncFnOnce(Db<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.leave_all(company, [what], work).await
    }

    /// The same of several records.
    ///
    /// # Errors
    /// As of [`Assignment::delete_guarded`].
    pub async fn leave_all<T, E: From<Refusal>>(
        &self,
        company: CompanyId,
        what: impl IntoIterator<Item = Removal>,
        work: impl AsyncFnOnce(Db<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut leavers = Vec::new();
        for what in what {
            self.base.directory.leaves(company, what).await;
            leavers.push(Leaver { base: self.base.clone(), company, what });
        }
        self.base.arbiters.pass().await;
        let outcome = work(self.base.reads().tables(company).await?).await;
        drop(leavers);
        self.base.refresh(company).await;
        outcome
    }
}

/// A record on its way out, however that ends: done, refused, given up by its caller.
struct Leaver {
    base: Arc<Base>,
    company: CompanyId,
    what: Removal,
}

impl Drop for Leaver {
    fn drop(&mut self) {
        self.base.directory.stays(self.company, self.what);
        let (base, company) = (self.base.clone(), self.company);
        self.base.spawn(async move { base.refresh(company).await });
    }
}
