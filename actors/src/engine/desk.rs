//! The desk that gives a new ticket its agent, once the loads it goes by are known.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::queues::Distribution;
use hotline_persistence::tables::tickets;
use hotline_persistence::{CompanyId, TicketId, UserId};

use super::Engine;
use crate::Refusal;
use crate::distribution::{Count, Desk, distributing};
use crate::tickets::Open;

/// How long an opening waits until loads are counted. One statement over what a company has open takes some
/// milliseconds; a database that is away keeps no contact waiting.
const COUNT_TIME_MAX: Duration = Duration::from_secs(3);

impl Engine {
    /// The desk that gives a ticket its agent, if one does. Where loads decide they are counted first; while that
    /// cannot be done, agents take turns.
    pub(crate) async fn desk(&self, organization: &Organization, open: &Open) -> Option<Arc<Desk>> {
        let (_, distribution) = distributing(organization, open)?;
        let desk = self.core.desks.of(open.company);
        if distribution == Distribution::LeastBusy {
            self.count(open.company, &desk).await;
        }
        Some(desk)
    }

    /// Waits until loads are counted, but not for long. The count goes on without whoever asked for it.
    async fn count(&self, company: CompanyId, desk: &Arc<Desk>) {
        let mut counted = desk.counted();
        let count = desk.begin_count(Instant::now());
        match count {
            Count::Known | Count::Waits => return,
            Count::Runs => {}
            Count::Begins => {
                let (engine, desk) = (self.clone(), desk.clone());
                self.spawn(async move {
                    let held = engine.held(company).await;
                    let held = held.inspect_err(|refusal| {
                        tracing::debug!(%refusal, company.id = %company, "loads are not known now; agents take turns");
                    });
                    desk.end_count(held.ok(), Instant::now());
                });
            }
        }
        // Whoever waited long enough takes what there is.
        let _ = tokio::time::timeout(COUNT_TIME_MAX, counted.changed()).await;
    }

    /// Who has which open ticket, by the tables.
    async fn held(&self, company: CompanyId) -> Result<Vec<(TicketId, UserId)>, Refusal> {
        Ok(tickets::held(self.reads().tables(company).await?, company).await?)
    }
}
