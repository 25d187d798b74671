//! Starts the actors of campaigns, pauses a campaign while it is changed, and resumes and drops a company's campaigns
//! with the company.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hotline_persistence::tables::campaigns::{self, PausedReason};
use hotline_persistence::{CampaignId, ChannelId, CompanyId};

use crate::Refusal;
use crate::base::Base;
use crate::base::retry::{no_other_conflict, on_conflict, while_unavailable};
use crate::campaigns::{CampaignChanged, CampaignRunner, CampaignScope, Hold, TemplateStates};
use crate::channels::InTransit;
use crate::registry::{ActorHandle, Population, Registry, dismiss};
use crate::services::{Contacts, Sending};

/// How long a change to a campaign waits for the campaign to pause: the time limit of a statement.
const HOLD_TIME_MAX: Duration = hotline_persistence::error::STATEMENT_TIME_MAX;

/// Pause between attempts to resume campaigns during an outage.
const RESUME_PAUSE: Duration = hotline_persistence::error::STATEMENT_TIME_MAX;

/// Approximate statistics of all campaigns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CampaignStats {
    /// Running campaigns.
    pub running: usize,
    /// Recipients loaded in memory.
    pub recipients: usize,
    /// Messages that are decided but not yet with their provider.
    pub in_transit: usize,
    /// Recipients whose message was accepted for its channel, since the process started.
    pub handed_over: u64,
    /// Recipients that were skipped, since the process started.
    pub skipped: u64,
    /// Recipients to whom no message could be sent, since the process started.
    pub failed: u64,
}

/// Access to all campaigns.
pub struct Campaigns {
    base: Arc<Base>,
    contacts: Arc<Contacts>,
    scope: Arc<CampaignScope>,
}

/// Guard for the creation of a campaign. If it is dropped before [`CampaignStartGuard::start`], the company's campaigns
/// are started from the tables, in case the creation was committed.
pub struct CampaignStartGuard {
    campaigns: Option<Arc<Campaigns>>,
    company: CompanyId,
}

impl CampaignStartGuard {
    /// Starts the created campaign.
    ///
    /// # Errors
    /// None is expected: starting the actor needs no database.
    pub async fn start(mut self, id: CampaignId) -> Result<(), Refusal> {
        match self.campaigns.take() {
            Some(campaigns) => campaigns.begin(self.company, id).await,
            None => Ok(()),
        }
    }

    /// Discards the guard, because no campaign was created.
    pub fn discard(mut self) {
        self.campaigns = None;
    }
}

impl Drop for CampaignStartGuard {
    fn drop(&mut self) {
        if let Some(campaigns) = self.campaigns.take() {
            campaigns.resume(self.company);
        }
    }
}

/// Pauses a campaign until this guard is dropped. If the campaign was canceled meanwhile, its messages that the
/// provider does not have yet are no longer sent.
pub struct CampaignHold {
    scope: Arc<CampaignScope>,
    company: CompanyId,
    runner: ActorHandle<CampaignRunner>,
    holder: Option<Arc<()>>,
}

impl Drop for CampaignHold {
    fn drop(&mut self) {
        // The change may have canceled the campaign, so each message in transit is checked again before it is sent.
        self.scope.in_transit.withdrawals.invalidate(self.company);
        // Released first, so that the actor no longer sees the hold when it handles `CampaignChanged`.
        drop(self.holder.take());
        hotline_persistence::fail_point!("campaign_released");
        self.runner.addr.do_send(CampaignChanged);
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
            templates: OnceLock::new(),
            hot: Registry::default(),
            handed_over: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        });
        Self { base, contacts, scope }
    }

    /// Starts the actors of campaigns that are scheduled, or that an earlier run of the process did not finish. To be
    /// called once, after sending has begun.
    pub async fn start(&self, templates: Arc<dyn TemplateStates>) -> Result<(), Refusal> {
        if self.scope.templates.set(templates).is_err() {
            return Err(Refusal::Defect("campaigns have already started".to_owned()));
        }
        let store = &self.base.store;
        let unfinished = campaigns::unfinished(&store.housekeeping, &store.ownership().slot_filter()).await?;
        for (company, id) in unfinished.into_iter().filter(|(company, _)| self.base.owns(*company)) {
            self.begin(company, id).await?;
        }
        Ok(())
    }

    /// The guard for the creation of a campaign, to be taken before the creation.
    pub fn start_guard(self: &Arc<Self>, company: CompanyId) -> CampaignStartGuard {
        CampaignStartGuard { campaigns: Some(self.clone()), company }
    }

    /// Starts a campaign that was created, or resumes one that was changed.
    ///
    /// # Errors
    /// None is expected: starting the actor needs no database.
    pub async fn begin(&self, company: CompanyId, id: CampaignId) -> Result<(), Refusal> {
        self.get_or_start(company, id).await.map(|runner| runner.addr.do_send(CampaignChanged))
    }

    /// Pauses a campaign, and waits until every pending send has an outcome. When the hold is released,
    /// the actor reads the campaign again.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the campaign does not pause in time, or the database is unavailable.
    pub async fn hold(&self, company: CompanyId, id: CampaignId) -> Result<CampaignHold, Refusal> {
        let attempt = || async {
            let runner = self.get_or_start(company, id).await?;
            let holder = Arc::new(());
            let message = Hold(Arc::downgrade(&holder));
            // Created before the call, so that its drop notifies the actor even if the call fails or is canceled.
            let hold = CampaignHold { scope: self.scope.clone(), company, runner, holder: Some(holder) };
            self.base.deliver(&self.scope.hot, &hold.runner, message).await?;
            Ok(hold)
        };
        let holding = on_conflict(self.contacts.cache(), company, attempt, no_other_conflict);
        let outcome = tokio::time::timeout(HOLD_TIME_MAX, holding).await;
        let hold = outcome.map_err(|_| Refusal::Unavailable("the campaign did not stop in time".to_owned()))??;
        // The campaign's decisions are in the tables after this.
        self.base.reads().tables(company).await?;
        Ok(hold)
    }

    /// Pauses the campaigns that are being sent with a template through one of these channels: in this language of the
    /// template, or in any if `language` is `None`.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when a campaign does not pause in time, or the database is unavailable.
    pub async fn pause_for_template(
        &self,
        company: CompanyId,
        channels: &[ChannelId],
        (name, language): (&str, Option<&str>),
        reason: PausedReason,
    ) -> Result<(), Refusal> {
        let db = self.base.reads().tables(company).await?;
        for id in campaigns::sending_template(db, company, channels, name, language).await? {
            let hold = self.hold(company, id).await?;
            let mut transaction = self.base.store.db(company).begin().await?;
            if campaigns::pause_for_template(transaction.connection()?, company, id, reason).await? {
                transaction.commit().await?;
                tracing::warn!(company.id = %company, campaign.id = %id, reason = reason.as_str(), template = name, "campaign was paused");
            }
            drop(hold);
        }
        Ok(())
    }

    /// Ends the actors of a closed company, so that none of its campaign messages are sent.
    pub(super) async fn forget_company(&self, company: CompanyId) -> Result<(), Refusal> {
        let Self { base: _, contacts: _, scope } = self;
        // Templates are dropped by the code that reads them from providers.
        let CampaignScope {
            base: _,
            contacts: _,
            sending: _,
            in_transit,
            templates: _,
            hot,
            handed_over: _,
            skipped: _,
            failed: _,
        } = &**scope;
        // Messages in transit are tracked for as long as their campaign's actor lives.
        dismiss(hot, |(owner, _)| *owner == company).await?;
        in_transit.withdrawals.forget_company(company);
        Ok(())
    }

    /// Restarts a company's campaigns from the tables.
    pub(super) fn resume(self: &Arc<Self>, company: CompanyId) {
        if !self.base.store.ownership().is_placed_here(company) {
            return;
        }
        let campaigns = self.clone();
        self.base.spawn(async move {
            let outcome = while_unavailable(RESUME_PAUSE, || campaigns.start_unfinished(company)).await;
            if let Err(refusal) = outcome {
                tracing::error!(%refusal, company.id = %company, "could not resume campaigns");
            }
            hotline_persistence::fail_point!("campaigns_resumed");
        });
    }

    async fn start_unfinished(&self, company: CompanyId) -> Result<(), Refusal> {
        hotline_persistence::fail_point!("campaigns_unread", |_| Err(Refusal::Unavailable("fail point".to_owned())));
        let unfinished = campaigns::unfinished_of_company(self.base.store.db(company), company).await?;
        for (company, id) in unfinished {
            // The company may have moved to another process since: that one starts its campaigns.
            if !self.base.store.ownership().is_placed_here(company) {
                break;
            }
            self.begin(company, id).await?;
        }
        Ok(())
    }

    /// Statistics of all campaigns.
    pub fn stats(&self) -> CampaignStats {
        let scope = &self.scope;
        let stats = CampaignStats {
            handed_over: scope.handed_over.load(Ordering::Relaxed),
            skipped: scope.skipped.load(Ordering::Relaxed),
            failed: scope.failed.load(Ordering::Relaxed),
            ..CampaignStats::default()
        };
        scope.hot.select(|_, _| true).into_iter().fold(stats, |stats, hot| {
            let gauges = &hot.status.shared;
            CampaignStats {
                running: stats.running + gauges.is_running.load(Ordering::Relaxed),
                recipients: stats.recipients + gauges.recipients.load(Ordering::Relaxed),
                in_transit: stats.in_transit + gauges.in_transit.load(Ordering::Relaxed),
                ..stats
            }
        })
    }

    pub(super) fn population(&self) -> Population {
        self.scope.hot.population()
    }

    async fn get_or_start(&self, company: CompanyId, id: CampaignId) -> Result<ActorHandle<CampaignRunner>, Refusal> {
        self.scope.hot.get_or_start(&(company, id), || async { Ok(self.scope.start(company, id)) }).await
    }
}
