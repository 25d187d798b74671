//! Assignment of tickets: the assigner of a new ticket, the counts of open tickets, and the removal of records that
//! tickets refer to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::queues::Distribution;
use hotline_persistence::tables::reports::desk::{self, OpenTicket, OpenTicketCounts};
use hotline_persistence::tables::tickets;
use hotline_persistence::{CompanyId, Db, TicketId};

use crate::Refusal;
use crate::base::Base;
use crate::directory::Removal;
use crate::distribution::{Assigner, Assigners, CountStatus, find_distribution};
use crate::overview::{LoadOutcome, Overview, OverviewStatus};
use crate::tickets::Open;

/// How long an opening waits for the count of the agents' open tickets. One statement over a company's open tickets
/// takes a few milliseconds; a database outage must not delay a contact.
const COUNT_TIME_MAX: Duration = Duration::from_secs(3);

/// Maximum open tickets that one statement reads, each with its last message.
const BATCH_MAX: i64 = 5_000;

/// Assignment of tickets to agents.
pub struct Assignment {
    base: Arc<Base>,
    assigners: Arc<Assigners>,
}

impl Assignment {
    pub(crate) fn new(base: Arc<Base>, assigners: Arc<Assigners>) -> Self {
        Self { base, assigners }
    }

    /// Drops the company's counts of tickets by agent.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { base: _, assigners } = self;
        assigners.forget_company(company);
    }

    /// The assigner of a new ticket, if its queue distributes tickets. For `LeastBusy`, the open tickets of each agent
    /// are counted first; while they cannot be counted, agents take turns.
    pub(crate) async fn assigner_for(&self, organization: &Organization, open: &Open) -> Option<Arc<Assigner>> {
        let (_, distribution) = find_distribution(organization, open)?;
        let assigner = self.assigners.of(open.company);
        if distribution == Distribution::LeastBusy {
            self.count_open_tickets(open.company, &assigner).await;
        }
        Some(assigner)
    }

    /// The company's open tickets by queue and user, including every change that was acknowledged before.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the tables have to be read, and the database is unavailable.
    pub async fn open_tickets(&self, company: CompanyId) -> Result<Vec<OpenTicketCounts>, Refusal> {
        if let Some(counts) = self.overview(company).and_then(|overview| overview.counts()) {
            return Ok(counts);
        }
        Ok(desk::open_ticket_counts(self.base.reads().acknowledged_tables(company).await?, company).await?)
    }

    /// The company's open tickets in memory; `None` if they are not loaded. They are then loaded for later queries,
    /// unless there are too many; after a failure, that is tried again later.
    pub(crate) fn overview(&self, company: CompanyId) -> Option<Arc<Overview>> {
        let (overview, status) = self.base.overviews.query(company, Instant::now());
        match status {
            OverviewStatus::Loaded => return Some(overview),
            OverviewStatus::ReadTables => {}
            OverviewStatus::Load => {
                let Some(permit) = self.base.overviews.begin_load() else {
                    overview.postpone_load();
                    return None;
                };
                let base = self.base.clone();
                self.base.spawn_for(company, async move {
                    let outcome = load_open_tickets(&base, company, &overview).await.unwrap_or_else(|refusal| {
                        tracing::debug!(%refusal, company.id = %company, "could not read the open tickets; they are read at each query");
                        LoadOutcome::Failed
                    });
                    overview.end_load(outcome).await;
                    drop(permit);
                });
            }
        }
        None
    }

    /// Waits until the open tickets of each agent are counted, with a time limit. The count continues if its caller is
    /// canceled.
    async fn count_open_tickets(&self, company: CompanyId, assigner: &Arc<Assigner>) {
        let mut count_ended = assigner.subscribe_to_count_end();
        match assigner.begin_count(Instant::now()) {
            CountStatus::Known | CountStatus::Delayed => return,
            CountStatus::Running => {}
            CountStatus::Required => {
                let (base, assigner) = (self.base.clone(), assigner.clone());
                self.base.spawn(async move {
                    let read = async {
                        let db = base.reads().tables(company).await?;
                        Ok::<_, Refusal>(tickets::list_assigned(db, company).await?)
                    };
                    let open_tickets = read.await.inspect_err(|refusal| {
                        tracing::debug!(%refusal, company.id = %company, "agents' open tickets could not be counted; assigning in turn");
                    });
                    assigner.end_count(open_tickets.ok(), Instant::now());
                });
            }
        }
        // After the time limit, the agents of the opening's queue take turns.
        let _ = tokio::time::timeout(COUNT_TIME_MAX, count_ended.changed()).await;
    }

    /// Deletes a record by running `work`. Earlier decisions are in the tables before `work` begins; no decision can
    /// choose the record until `work` has ended.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is unavailable, or the error of `work`; the record is then unchanged.
    pub async fn delete_guarded<T, E: From<Refusal>>(
        &self,
        company: CompanyId,
        removal: Removal,
        work: impl AsyncFnOnce(Db<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.delete_all_guarded(company, [removal], work).await
    }

    /// Like [`Assignment::delete_guarded`], for several records.
    ///
    /// # Errors
    /// Those of [`Assignment::delete_guarded`].
    pub async fn delete_all_guarded<T, E: From<Refusal>>(
        &self,
        company: CompanyId,
        removals: impl IntoIterator<Item = Removal>,
        work: impl AsyncFnOnce(Db<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut guards = Vec::new();
        for removal in removals {
            self.base.directory.begin_removal(company, removal).await;
            guards.push(RemovalGuard {
                base: self.base.clone(),
                company,
                removal,
                is_begun: true,
                is_refreshed: false,
            });
        }
        self.base.arbiters.wait_for_current_messages().await;
        let outcome = work(self.base.reads().tables(company).await?).await;
        guards.iter_mut().for_each(RemovalGuard::end);
        self.base.refresh(company).await;
        guards.iter_mut().for_each(|guard| guard.is_refreshed = true);
        outcome
    }
}

/// Reads a company's open tickets in batches, because each ticket needs a look-up of its last message. Stops when there
/// is no room for them in memory, or the overview was dropped. The overview records changes meanwhile, so the batches
/// need not be of one moment.
async fn load_open_tickets(base: &Base, company: CompanyId, overview: &Arc<Overview>) -> Result<LoadOutcome, Refusal> {
    let mut open: Vec<OpenTicket> = Vec::new();
    let db = base.reads().tables_as_of_now(company).await?;
    while base.overviews.is_current(company, overview) {
        let after = open.last().map_or(TicketId::new(0), |last| last.id);
        let batch = desk::open_page(db, company, after, BATCH_MAX).await?;
        let is_last = (batch.len() as i64) < BATCH_MAX;
        open.extend(batch);
        if !base.overviews.has_room(open.len()) {
            return Ok(LoadOutcome::TooMany);
        }
        if is_last {
            return Ok(LoadOutcome::All(open));
        }
    }
    Ok(LoadOutcome::Failed)
}

/// Marks a record as being removed until the guard is dropped, whether the deletion succeeds, is refused or is
/// canceled.
struct RemovalGuard {
    base: Arc<Base>,
    company: CompanyId,
    removal: Removal,
    is_begun: bool,
    /// Whether the directory was reloaded since, so that the drop need not reload it.
    is_refreshed: bool,
}

impl RemovalGuard {
    fn end(&mut self) {
        if std::mem::take(&mut self.is_begun) {
            self.base.directory.end_removal(self.company, self.removal);
        }
    }
}

impl Drop for RemovalGuard {
    fn drop(&mut self) {
        self.end();
        if self.is_refreshed {
            return;
        }
        let (base, company) = (self.base.clone(), self.company);
        self.base.spawn(async move { base.refresh(company).await });
    }
}
