//! Campaigns: held while they are changed, and begun and ended for a company.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hotline_persistence::tables::campaigns;
use hotline_persistence::{CampaignId, CompanyId};

use super::contacts::Contacts;
use super::forget::dismissed;
use super::sending::Sending;
use crate::Refusal;
use crate::base::Base;
use crate::base::retry::{nothing, on_conflict};
use crate::campaigns::{CampaignRunner, CampaignScope, Changed, Hold, Withdraw};
use crate::channels::InTransit;
use crate::registry::{ActorHandle, Population, Registry};

/// How long who changes a campaign waits until it stands still: as long as a statement may take.
const HOLD_TIME_MAX: Duration = hotline_persistence::error::STATEMENT_TIME_MAX;

/// All campaigns, about now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CampaignStats {
    /// Campaigns that are sent.
    pub running: usize,
    /// Recipients at hand.
    pub held: usize,
    /// Messages that are decided, and that their provider does not have yet.
    pub under_way: usize,
    /// Recipients that were written to since the start.
    pub handed_over: u64,
    /// Recipients that were skipped since the start.
    pub skipped: u64,
    /// Recipients whose message could not be made since the start.
    pub failed: u64,
}

/// Campaigns.
pub struct Campaigns {
    base: Arc<Base>,
    contacts: Arc<Contacts>,
    scope: Arc<CampaignScope>,
}

/// A campaign that may come to be: whatever becomes of who makes it, it is begun if it stands.
pub struct Begins {
    campaigns: Option<Arc<Campaigns>>,
    company: CompanyId,
}

impl Begins {
    /// It is this one.
    ///
    /// # Errors
    /// None is known.
    pub async fn with(mut self, id: CampaignId) -> Result<(), Refusal> {
        match self.campaigns.take() {
            Some(campaigns) => campaigns.begin(self.company, id).await,
            None => Ok(()),
        }
    }
}

impl Drop for Begins {
    fn drop(&mut self) {
        if let Some(campaigns) = self.campaigns.take() {
            campaigns.go_on(self.company);
        }
    }
}

/// A campaign that writes to nobody for as long as this lives.
pub struct HeldCampaign {
    scope: Arc<CampaignScope>,
    hot: ActorHandle<CampaignRunner>,
    holder: Option<Arc<()>>,
}

impl HeldCampaign {
    /// The campaign was canceled: what its provider does not have does not leave.
    ///
    /// # Errors
    /// When the actor has ended; then nothing of it leaves either.
    pub async fn withdraw(&self) -> Result<(), Refusal> {
        self.scope.base.deliver(&self.scope.hot, &self.hot, Withdraw).await
    }
}

impl Drop for HeldCampaign {
    fn drop(&mut self) {
        // Let go of before the actor looks.
        drop(self.holder.take());
        self.hot.addr.do_send(Changed);
    }
}

impl Campaigns {
    pub(super) fn new(
        base: Arc<Base>,
        contacts: Arc<Contacts>,
        sending: Arc<Sending>,
        in_transit: Arc<InTransit>,
    ) -> Self {
        let scope = Arc::new(CampaignScope {
            base: base.clone(),
            contacts: contacts.clone(),
            sending,
            in_transit,
            hot: Registry::default(),
            handed_over: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        });
        Self { base, contacts, scope }
    }

    /// Goes on with what was begun before, and begins to wait for what is to come. Once, after sending has begun.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away.
    pub async fn start(&self) -> Result<(), Refusal> {
        let store = &self.base.store;
        let unfinished = campaigns::unfinished(&store.housekeeping, &store.ownership().of_slots()).await?;
        for (company, id) in unfinished.into_iter().filter(|(company, _)| self.base.owns(*company)) {
            self.begin(company, id).await?;
        }
        Ok(())
    }

    /// To be asked for before a campaign is made.
    pub fn begins(self: &Arc<Self>, company: CompanyId) -> Begins {
        Begins { campaigns: Some(self.clone()), company }
    }

    /// Begins with a campaign that was made, or goes on with one that was changed.
    ///
    /// # Errors
    /// None is known.
    pub async fn begin(&self, company: CompanyId, id: CampaignId) -> Result<(), Refusal> {
        self.hot(company, id).await.map(|hot| hot.addr.do_send(Changed))
    }

    /// Has a campaign write to nobody, and waits until it is known what became of all it was writing to. When it is let go
    /// it is read anew.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it does not come to stand still, or the database is away.
    pub async fn hold(&self, company: CompanyId, id: CampaignId) -> Result<HeldCampaign, Refusal> {
        let attempt = || async {
            let hot = self.hot(company, id).await?;
            let holder = Arc::new(());
            let hold = Hold(Arc::downgrade(&holder));
            // However this ends: the actor hears of it.
            let held = HeldCampaign { scope: self.scope.clone(), hot, holder: Some(holder) };
            self.base.deliver(&self.scope.hot, &held.hot, hold).await?;
            Ok(held)
        };
        let held = on_conflict(self.contacts.known(), company, attempt, nothing);
        let in_time = tokio::time::timeout(HOLD_TIME_MAX, held).await;
        let held = in_time.map_err(|_| Refusal::Unavailable("the campaign does not stand still".to_owned()))??;
        // What it has decided is in the tables by then.
        self.base.reads().tables(company).await?;
        Ok(held)
    }

    /// Ends the actors of a company that is closed: nothing of it leaves any more.
    pub(super) async fn forget_company(&self, company: CompanyId) -> Result<(), Refusal> {
        let Self { base: _, contacts: _, scope } = self;
        let CampaignScope {
            base: _,
            contacts: _,
            sending: _,
            in_transit: _,
            hot,
            handed_over: _,
            skipped: _,
            failed: _,
        } = &**scope;
        // What is in transit is known for as long as its campaign's actor lives.
        dismissed(hot, |(of, _)| *of == company).await
    }

    /// Begins anew for a company, from the tables.
    pub(super) fn go_on(self: &Arc<Self>, company: CompanyId) {
        if !self.base.store.ownership().is_placed_here(company) {
            return;
        }
        let campaigns = self.clone();
        self.base.spawn(async move {
            let begun = crate::base::retry::while_unavailable(HOLD_TIME_MAX, || async {
                let db = campaigns.base.store.db(company);
                for (company, id) in campaigns::unfinished_of_company(db, company).await? {
                    campaigns.begin(company, id).await?;
                }
                Ok(())
            });
            if let Err(refusal) = begun.await {
                tracing::error!(%refusal, company.id = %company, "campaigns do not begin again");
            }
        });
    }

    /// How they are getting on.
    pub fn figures(&self) -> CampaignStats {
        let scope = &self.scope;
        let stats = CampaignStats {
            handed_over: scope.handed_over.load(Ordering::Relaxed),
            skipped: scope.skipped.load(Ordering::Relaxed),
            failed: scope.failed.load(Ordering::Relaxed),
            ..CampaignStats::default()
        };
        scope.hot.select(|_| true).into_iter().fold(stats, |stats, hot| {
            let shown = &hot.life.shared;
            CampaignStats {
                running: stats.running + shown.is_sent.load(Ordering::Relaxed),
                held: stats.held + shown.held.load(Ordering::Relaxed),
                under_way: stats.under_way + shown.under_way.load(Ordering::Relaxed),
                ..stats
            }
        })
    }

    pub(super) fn population(&self) -> Population {
        self.scope.hot.population()
    }

    async fn hot(&self, company: CompanyId, id: CampaignId) -> Result<ActorHandle<CampaignRunner>, Refusal> {
        self.scope.hot.get_or_start(&(company, id), || async { Ok(self.scope.start(company, id)) }).await
    }
}
