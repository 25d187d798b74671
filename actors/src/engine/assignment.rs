//! Assignment of tickets: the assigner of a new ticket, and the removal of records that tickets refer to.

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

/// How long an opening waits until loads are counted. One statement over a company's open tickets takes some
/// milliseconds; a database outage must not delay a contact.
const COUNT_TIME_MAX: Duration = Duration::from_secs(3);

/// Assignment of tickets to agents.
pub struct Assignment {
    base: Arc<Base>,
    desks: Arc<Desks>,
}

impl Assignment {
    pub(super) fn new(base: Arc<Base>, desks: Arc<Desks>) -> Self {
        Self { base, desks }
    }

    /// Drops the company's counts of tickets by agent.
    pub(super) fn forget_company(&self, company: CompanyId) {
        let Self { base: _, desks } = self;
        desks.forget_company(company);
    }

    /// The assigner of a new ticket, if its queue distributes. For `LeastBusy` the loads are counted first; while they
    /// cannot be counted, agents take turns.
    pub(super) async fn desk(&self, organization: &Organization, open: &Open) -> Option<Arc<Assigner>> {
        let (_, distribution) = distributing(organization, open)?;
        let desk = self.desks.of(open.company);
        if distribution == Distribution::LeastBusy {
            self.count(open.company, &desk).await;
        }
        Some(desk)
    }

    /// The company's open tickets by queue and user, including every change that was acknowledged before.
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
                        tracing::debug!(%refusal, company.id = %company, "could not read live ticket counts; counting in the database");
                    });
                    overview.end_reading(open.ok(), Instant::now());
                });
            }
        }
        Ok(desk::open_tickets(self.base.reads().shown(company).await?, company).await?)
    }

    /// Waits until loads are counted, with a time limit. The count continues when its caller is gone.
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
                        tracing::debug!(%refusal, company.id = %company, "agents' open tickets could not be counted; assigning in turn");
                    });
                    desk.end_count(held.ok(), Instant::now());
                });
            }
        }
        // After the time limit the opening uses the counts that exist.
        let _ = tokio::time::timeout(COUNT_TIME_MAX, counted.changed()).await;
    }

    /// Runs `work` while no decision can choose the record. Earlier decisions are in the tables by then.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away, or the error of `work`; the record is then unchanged.
    pub async fn delete_guarded<T, E: From<Refusal>>(
        &self,
        company: CompanyId,
        what: Removal,
        work: impl AsyncFnOnce(Db<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.leave_all(company, [what], work).await
    }

    /// Like [`Assignment::delete_guarded`], for several records.
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
            leavers.push(Leaver { base: self.base.clone(), company, what, is_marked: true, is_known: false });
        }
        self.base.arbiters.pass().await;
        let outcome = work(self.base.reads().tables(company).await?).await;
        leavers.iter_mut().for_each(Leaver::stays);
        self.base.refresh(company).await;
        leavers.iter_mut().for_each(|leaver| leaver.is_known = true);
        outcome
    }
}

/// Marks a record as being deleted until dropped, whether the deletion succeeds, is refused or is cancelled.
struct Leaver {
    base: Arc<Base>,
    company: CompanyId,
    what: Removal,
    is_marked: bool,
    /// Whether the directory was loaded since: once is enough.
    is_known: bool,
}

impl Leaver {
    fn stays(&mut self) {
        if std::mem::take(&mut self.is_marked) {
            self.base.directory.stays(self.company, self.what);
        }
    }
}

impl Drop for Leaver {
    fn drop(&mut self) {
        self.stays();
        if self.is_known {
            return;
        }
        let (base, company) = (self.base.clone(), self.company);
        self.base.spawn(async move { base.refresh(company).await });
    }
}
