//! Reads a campaign and its recipients from the tables, and runs the statements that start, complete and cancel it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use actix::{AsyncContext, Context as Mailbox, Handler, Message};
use hotline_persistence::tables::campaigns::{self, CampaignRun, CampaignStatus, PausedReason, RECIPIENTS_TOO_SLOW};
use hotline_persistence::{CampaignId, CompanyId, ContactId, Database, MessageId, Presence};

use super::super::recipient_queue::{NextRecipient, PageQuery};
use super::send;
use super::{
    CampaignRunner, CampaignScope, CampaignState, OUTAGE_PAUSE, SCHEDULED_TICK, START_RETRY_PAUSE, VERIFY_EVERY,
};
use crate::Refusal;
use crate::base::due_work::{DueWork, TICK, catch_panic};
use crate::clock::now;

/// The campaign was read.
#[derive(Message)]
#[rtype(result = "()")]
struct CampaignRead {
    version: u64,
    found: Result<Option<StoredCampaign>, Refusal>,
}

struct StoredCampaign {
    run: CampaignRun,
    /// Its messages that their provider does not have yet.
    in_transit: Vec<MessageId>,
}

/// Which of these messages are still in transit, as of a time after tracking began.
#[derive(Message)]
#[rtype(result = "()")]
struct TransitVerified {
    messages: Vec<MessageId>,
    remaining: Result<Vec<MessageId>, Refusal>,
}

/// A page of recipients was loaded.
#[derive(Message)]
#[rtype(result = "()")]
struct PageLoaded {
    query: PageQuery,
    found: Result<Vec<NextRecipient>, Refusal>,
}

/// A statement that changes the campaign has ended.
#[derive(Message)]
#[rtype(result = "()")]
struct UpdateEnded {
    update: CampaignUpdate,
    /// Whether the statement has changed anything.
    outcome: Result<bool, Refusal>,
    /// Why the template of a campaign that has started can no longer be sent.
    template_refusal: Option<PausedReason>,
}

#[derive(Clone, Copy)]
enum CampaignUpdate {
    Start,
    Complete,
    SkipPending,
    Pause(PausedReason),
}

impl CampaignRunner {
    /// Reads the campaign again.
    pub(super) fn read(&mut self, cx: &mut Mailbox<Self>) {
        let Some(presence) = self.enter_unless_running(self.is_reading, cx) else { return };
        self.is_reading = true;
        let (scope, company, id, runner) = (self.scope.clone(), self.company, self.id, cx.address());
        let version = self.version;
        actix::spawn(async move {
            let _presence = presence;
            let found = catch_panic("reading a campaign", load_campaign(&scope, company, id)).await;
            runner.do_send(CampaignRead { version, found });
        });
    }

    fn handle_read(&mut self, CampaignRead { version, found }: CampaignRead, cx: &mut Mailbox<Self>) {
        self.is_reading = false;
        let is_current = version == self.version;
        match found {
            Ok(Some(StoredCampaign { run, in_transit })) => {
                if run.status != CampaignStatus::Processing {
                    self.recipients.restart();
                    self.template_refusal = None;
                }
                let untracked: Vec<MessageId> =
                    in_transit.into_iter().filter(|message| self.in_transit.insert(*message)).collect();
                for message in &untracked {
                    self.scope.in_transit.begin(self.company, *message, None, cx.address().recipient());
                }
                self.verify(untracked, cx);
                let run = Arc::new(run);
                self.state = if is_current { CampaignState::Current(run) } else { CampaignState::Stale(Some(run)) };
            }
            Ok(None) if is_current => self.state = CampaignState::Missing,
            // The campaign may have been created since.
            Ok(None) => self.state = CampaignState::Unread,
            Err(refusal) => {
                self.log_retry(&refusal, "reading a campaign will be retried");
                self.hold_replies.drain(..).for_each(|reply| reply.send(Err(refusal.clone())));
                self.pause(OUTAGE_PAUSE);
            }
        }
    }

    /// Looks up which of these messages are still in transit: others arrived before they were tracked, or were deleted.
    fn verify(&mut self, messages: Vec<MessageId>, cx: &mut Mailbox<Self>) {
        if messages.is_empty() {
            return;
        }
        let (scope, company, id, runner) = (self.scope.clone(), self.company, self.id, cx.address());
        actix::spawn(async move {
            let query = catch_panic("reading a campaign's messages", async {
                let db = scope.base.reads().tables_as_of_now(company).await?;
                Ok(campaigns::messages_in_transit(db, company, id).await?)
            });
            runner.do_send(TransitVerified { messages, remaining: query.await });
        });
    }

    /// Checks periodically which long-standing messages in transit were deleted with their contact.
    pub(super) fn verify_old(&mut self, instant: Instant, cx: &mut Mailbox<Self>) {
        let (earlier_messages, verified_at) = &self.last_verification;
        if instant.saturating_duration_since(*verified_at) < VERIFY_EVERY {
            return;
        }
        let old_messages: Vec<MessageId> = self.in_transit.intersection(earlier_messages).copied().collect();
        self.last_verification = (self.in_transit.clone(), instant);
        self.verify(old_messages, cx);
    }

    fn handle_verification(
        &mut self,
        TransitVerified { messages, remaining }: TransitVerified,
        cx: &mut Mailbox<Self>,
    ) {
        match remaining {
            Ok(remaining) => {
                for message in messages.iter().filter(|message| !remaining.contains(message)) {
                    self.end_transit(*message);
                    self.scope.in_transit.forget(self.company, *message);
                }
            }
            Err(refusal) => {
                self.log_retry(&refusal, "reading a campaign's messages will be retried");
                cx.run_later(OUTAGE_PAUSE, move |this, cx| this.supervise(cx, |this, cx| this.verify(messages, cx)));
            }
        }
    }

    /// Loads the next page of recipients, with the data that their messages will need.
    pub(super) fn load(&mut self, page: i64, run: &Arc<CampaignRun>, cx: &mut Mailbox<Self>) {
        let Some(presence) = self.enter() else { return };
        let Some(query) = self.recipients.begin_load(page) else { return };
        let (scope, company, id, runner) = (self.scope.clone(), self.company, self.id, cx.address());
        let run = run.clone();
        actix::spawn(async move {
            let _presence = presence;
            let load = load_page(&scope, (company, id), &run, query);
            let found = catch_panic("reading a campaign's recipients", load).await;
            runner.do_send(PageLoaded { query, found });
        });
    }

    fn handle_page(&mut self, PageLoaded { query, found }: PageLoaded) {
        if let Err(refusal) = &found {
            self.log_retry(refusal, "reading a campaign's recipients will be retried");
            // Meanwhile the campaign continues with the recipients in memory.
            if self.recipients.len() == 0 {
                self.pause(OUTAGE_PAUSE);
            }
        }
        self.recipients.end_load(query, found.ok());
    }

    /// Starts the campaign at its scheduled time.
    pub(super) fn start_due(&mut self, cx: &mut Mailbox<Self>) {
        let remaining = self.start_retry_at.map(|at| at.saturating_duration_since(Instant::now()));
        match remaining.filter(|remaining| !remaining.is_zero()) {
            Some(remaining) => self.schedule_tick(remaining.min(SCHEDULED_TICK), cx),
            None => self.update(CampaignUpdate::Start, cx),
        }
    }

    /// Postpones a start whose recipients were not inserted in time. Logs this once, until the campaign is changed.
    fn postpone_start(&mut self) {
        let retry_at = Instant::now() + START_RETRY_PAUSE;
        if self.start_retry_at.replace(retry_at).is_none() {
            tracing::warn!(
                company.id = %self.company, campaign.id = %self.id,
                "a scheduled campaign does not start: the contacts of its list were not copied within two minutes; it \
                 is retried every ten minutes: divide the list among several campaigns, or relieve PostgreSQL"
            );
        }
    }

    /// Completes the campaign after its last recipient.
    pub(super) fn complete(&mut self, cx: &mut Mailbox<Self>) {
        self.update(CampaignUpdate::Complete, cx);
    }

    /// Pauses the campaign, because its provider refuses its template: every other recipient would be refused too.
    pub(super) fn pause_refused(&mut self, reason: PausedReason, cx: &mut Mailbox<Self>) {
        self.update(CampaignUpdate::Pause(reason), cx);
    }

    /// Handles the cancellation: pending recipients are skipped now; messages in transit are withdrawn, and their
    /// channel fails them.
    pub(super) fn handle_cancellation(&mut self, run: &CampaignRun, instant: Instant, cx: &mut Mailbox<Self>) {
        if !self.has_skipped_pending && run.pending > 0 {
            self.update(CampaignUpdate::SkipPending, cx);
        } else if self.in_transit.is_empty() && self.pending_sends.is_empty() {
            self.retire_if_idle(cx);
        } else {
            // A message that was deleted with its contact before it was read into memory never reports its end.
            self.verify_old(instant, cx);
            self.schedule_tick(TICK, cx);
        }
    }

    fn update(&mut self, update: CampaignUpdate, cx: &mut Mailbox<Self>) {
        let Some(presence) = self.enter_unless_running(self.is_updating, cx) else { return };
        self.is_updating = true;
        let (scope, company, id, runner) = (self.scope.clone(), self.company, self.id, cx.address());
        actix::spawn(async move {
            let _presence = presence;
            let outcome = catch_panic("updating a campaign", run_update(&scope, company, id, update)).await;
            let template_refusal = match (update, &outcome) {
                (CampaignUpdate::Start, Ok(true)) => {
                    let check = async { Ok(check_template(&scope, company, id).await) };
                    catch_panic("checking a campaign's template", check).await.unwrap_or_default()
                }
                _ => None,
            };
            runner.do_send(UpdateEnded { update, outcome, template_refusal });
        });
    }

    fn handle_update(&mut self, UpdateEnded { update, outcome, template_refusal }: UpdateEnded) {
        self.is_updating = false;
        match (update, outcome) {
            (CampaignUpdate::Start, Err(Refusal::Unavailable(reason))) if reason == RECIPIENTS_TOO_SLOW => {
                self.postpone_start();
            }
            (_, Err(refusal)) => {
                self.log_retry(&refusal, "updating a campaign will be retried");
                self.pause(OUTAGE_PAUSE);
            }
            // A statement skips a limited number of recipients, so it is repeated until it finds none.
            (CampaignUpdate::SkipPending, Ok(has_skipped)) => self.has_skipped_pending = !has_skipped,
            // The tables have a recipient that was not in memory, or the campaign is no longer running.
            (CampaignUpdate::Complete, Ok(false)) => {
                self.recipients.restart();
                self.mark_stale();
                self.pause(TICK);
            }
            (CampaignUpdate::Start | CampaignUpdate::Complete, Ok(_)) => {
                self.template_refusal = self.template_refusal.or(template_refusal);
                self.mark_stale();
            }
            (CampaignUpdate::Pause(reason), Ok(has_paused)) => {
                if has_paused {
                    tracing::warn!(company.id = %self.company, campaign.id = %self.id, reason = reason.as_str(), "campaign was paused");
                }
                self.template_refusal = None;
                self.mark_stale();
            }
        }
    }

    /// Begins work of the company unless a task is running. While the company is closed, sets the timer for a retry.
    fn enter_unless_running(&mut self, is_running: bool, cx: &mut Mailbox<Self>) -> Option<Presence> {
        if is_running {
            return None;
        }
        let presence = self.enter();
        if presence.is_none() {
            self.schedule_tick(TICK, cx);
        }
        presence
    }

    fn log_retry(&self, refusal: &Refusal, message: &str) {
        if refusal.is_transient() {
            tracing::debug!(%refusal, company.id = %self.company, campaign.id = %self.id, "{message}");
        } else {
            tracing::error!(%refusal, company.id = %self.company, campaign.id = %self.id, "{message}");
        }
    }
}

/// The campaign from the tables, once these have all earlier decisions.
async fn load_campaign(
    scope: &CampaignScope,
    company: CompanyId,
    id: CampaignId,
) -> Result<Option<StoredCampaign>, Refusal> {
    hotline_persistence::fail_point!("campaign_read");
    let db = scope.base.reads().tables(company).await?;
    let Some(run) = campaigns::find_run(db, company, id).await? else { return Ok(None) };
    let in_transit = campaigns::messages_in_transit(db, company, id).await?;
    Ok(Some(StoredCampaign { run, in_transit }))
}

/// Loads a page of recipients. Caches their contacts, and prefetches the data that their messages need.
async fn load_page(
    scope: &CampaignScope,
    (company, id): (CompanyId, CampaignId),
    run: &CampaignRun,
    PageQuery { generation, after, limit }: PageQuery,
) -> Result<Vec<NextRecipient>, Refusal> {
    hotline_persistence::fail_point!("campaign_page_read");
    let withdrawal_version = scope.in_transit.withdrawals.version(company);
    let db = scope.base.reads().tables_as_of_now(company).await?;
    let page = campaigns::waiting_recipients(db, company, id, after, limit).await?;
    let contacts: Vec<ContactId> = page.iter().map(|recipient| recipient.contact_id).collect();
    let fetched: HashSet<ContactId> = scope.contacts.prefetch(company, &contacts).await?.into_iter().collect();
    send::prefetch(scope, company, run, &contacts).await;
    let recipients = page.into_iter().map(|recipient| NextRecipient {
        contact_id: recipient.contact_id,
        is_opted_out: recipient.is_opted_out,
        is_group: recipient.is_group,
        is_cached_for_campaign: fetched.contains(&recipient.contact_id),
        withdrawal_version,
        generation,
    });
    Ok(recipients.collect())
}

/// Runs a statement that changes the campaign; returns whether it changed anything.
async fn run_update(
    scope: &CampaignScope,
    company: CompanyId,
    id: CampaignId,
    update: CampaignUpdate,
) -> Result<bool, Refusal> {
    hotline_persistence::fail_point!("campaign_updated");
    let db = scope.base.reads().tables(company).await?;
    match update {
        CampaignUpdate::Start => {
            let mut transaction = db.heavy().begin().await?;
            let has_started = campaigns::start_due(transaction.connection()?, company, id, now()).await?;
            transaction.commit().await?;
            Ok(has_started)
        }
        CampaignUpdate::Pause(reason) => {
            let mut transaction = db.begin().await?;
            let has_paused = campaigns::pause_for_template(transaction.connection()?, company, id, reason).await?;
            transaction.commit().await?;
            Ok(has_paused)
        }
        CampaignUpdate::Complete => Ok(campaigns::complete(db, company, id, now()).await?),
        CampaignUpdate::SkipPending => Ok(campaigns::skip_canceled(db.heavy(), company, id).await? > 0),
    }
}

/// Why the template of a campaign that has just started can no longer be sent. If that cannot be found out, the
/// campaign is paused at the provider's first refusal.
async fn check_template(scope: &CampaignScope, company: CompanyId, id: CampaignId) -> Option<PausedReason> {
    let templates = scope.templates.get()?;
    let db = scope.base.reads().tables(company).await.ok()?;
    let run = campaigns::find_run(db, company, id).await.ok()??;
    let template = &run.built_template.as_ref()?["template"];
    let (name, language) = (template["name"].as_str()?, template["language"]["code"].as_str()?);
    let organization = scope.base.organization(company).ok()?;
    let channel = organization.channels.get(&run.channel_id)?;
    templates.paused_reason(channel, name, language).await
}

impl Handler<CampaignRead> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, read: CampaignRead, cx: &mut Self::Context) {
        self.supervise(cx, |this, cx| {
            if !this.work_state.is_retired() {
                this.handle_read(read, cx);
            }
        });
    }
}

impl Handler<TransitVerified> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, verified: TransitVerified, cx: &mut Self::Context) {
        self.supervise(cx, |this, cx| {
            if !this.work_state.is_retired() {
                this.handle_verification(verified, cx);
            }
        });
    }
}

impl Handler<PageLoaded> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, page: PageLoaded, cx: &mut Self::Context) {
        self.supervise(cx, |this, _| this.handle_page(page));
    }
}

impl Handler<UpdateEnded> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, update: UpdateEnded, cx: &mut Self::Context) {
        self.supervise(cx, |this, _| this.handle_update(update));
    }
}
