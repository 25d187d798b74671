//! Reads of a campaign from the tables, and the statements that start, complete and cancel it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use actix::{AsyncContext, Context as Mailbox, Handler, Message};
use hotline_persistence::tables::campaigns::{self, CampaignRun, CampaignStatus};
use hotline_persistence::{CampaignId, CompanyId, ContactId, Database, MessageId, Presence};

use super::super::line::{NextRecipient, Reading};
use super::leaving;
use super::{CampaignRunner, CampaignScope, Known, OUTAGE_PAUSE, TICK, VERIFY_EVERY};
use crate::Refusal;
use crate::clock::now;

/// The result of reading the campaign.
#[derive(Message)]
#[rtype(result = "()")]
struct Read {
    version: u64,
    found: Result<Option<Found>, Refusal>,
}

struct Found {
    run: CampaignRun,
    /// Its messages that their provider does not have yet.
    in_transit: Vec<MessageId>,
}

/// Which of the messages in transit still are, as of a time after tracking began.
#[derive(Message)]
#[rtype(result = "()")]
struct Verified {
    asked: Vec<MessageId>,
    still: Result<Vec<MessageId>, Refusal>,
}

/// A page of recipients.
#[derive(Message)]
#[rtype(result = "()")]
struct Loaded {
    reading: Reading,
    found: Result<Vec<NextRecipient>, Refusal>,
}

/// A statement has changed the campaign, or found nothing to change.
#[derive(Message)]
#[rtype(result = "()")]
struct Done {
    what: What,
    outcome: Result<bool, Refusal>,
}

#[derive(Clone, Copy)]
enum What {
    Start,
    Complete,
    CallOff,
}

impl CampaignRunner {
    /// Reads the campaign again.
    pub(super) fn read(&mut self, cx: &mut Mailbox<Self>) {
        let Some(presence) = self.presence(self.is_reading, cx) else { return };
        self.is_reading = true;
        let (scope, company, id, home) = (self.scope.clone(), self.company, self.id, cx.address());
        let version = self.version;
        actix::spawn(async move {
            let _presence = presence;
            let found = found(&scope, company, id).await;
            home.do_send(Read { version, found });
        });
    }

    fn has_read(&mut self, Read { version, found }: Read, cx: &mut Mailbox<Self>) {
        self.is_reading = false;
        let is_current = version == self.version;
        match found {
            Ok(Some(Found { run, in_transit })) => {
                if run.status != CampaignStatus::Processing {
                    self.line.begin_anew();
                }
                let unknown: Vec<MessageId> =
                    in_transit.into_iter().filter(|message| self.in_transit.insert(*message)).collect();
                for message in &unknown {
                    self.scope.in_transit.begin(self.company, *message, None, cx.address().recipient());
                }
                self.verify(unknown, cx);
                let run = Arc::new(run);
                self.known = if is_current { Known::Run(run) } else { Known::Stale(Some(run)) };
            }
            Ok(None) if is_current => self.known = Known::Gone,
            // It may have been created since.
            Ok(None) => self.known = Known::Nothing,
            Err(refusal) => {
                self.note(&refusal, "reading a campaign will be retried");
                self.waiting.drain(..).for_each(|waiting| waiting.give(Err(refusal.clone())));
                self.rest(OUTAGE_PAUSE);
            }
        }
    }

    /// Checks which of the messages that are tracked from now on have arrived before.
    fn verify(&mut self, asked: Vec<MessageId>, cx: &mut Mailbox<Self>) {
        if asked.is_empty() {
            return;
        }
        let (scope, company, id, home) = (self.scope.clone(), self.company, self.id, cx.address());
        actix::spawn(async move {
            let still = async {
                let db = scope.base.reads().tables_as_of_now(company).await?;
                Ok(campaigns::in_transit(db, company, id).await?)
            };
            home.do_send(Verified { asked, still: still.await });
        });
    }

    /// Checks periodically which long-standing messages in transit were deleted with their contact.
    pub(super) fn verify_old(&mut self, clock: Instant, cx: &mut Mailbox<Self>) {
        let (before, at) = &self.verified;
        if clock.saturating_duration_since(*at) < VERIFY_EVERY {
            return;
        }
        let old: Vec<MessageId> = self.in_transit.intersection(before).copied().collect();
        self.verified = (self.in_transit.clone(), clock);
        self.verify(old, cx);
    }

    fn verified(&mut self, Verified { asked, still }: Verified, cx: &mut Mailbox<Self>) {
        match still {
            Ok(still) => {
                for message in asked.iter().filter(|message| !still.contains(message)) {
                    self.has_arrived(*message);
                    self.scope.in_transit.forget(self.company, *message);
                }
            }
            Err(refusal) => {
                self.note(&refusal, "reading a campaign's messages will be retried");
                cx.run_later(OUTAGE_PAUSE, move |this, cx| this.guarded(cx, |this, cx| this.verify(asked, cx)));
            }
        }
    }

    /// Loads the next page of recipients, with what their messages will need to know.
    pub(super) fn load(&mut self, page: i64, run: &Arc<CampaignRun>, cx: &mut Mailbox<Self>) {
        let Some(presence) = self.enter() else { return };
        let Some(reading) = self.line.begin_reading(page) else { return };
        let (scope, company, id, home) = (self.scope.clone(), self.company, self.id, cx.address());
        let run = run.clone();
        actix::spawn(async move {
            let _presence = presence;
            let found = next(&scope, (company, id), &run, reading).await;
            home.do_send(Loaded { reading, found });
        });
    }

    fn loaded(&mut self, Loaded { reading, found }: Loaded) {
        if let Err(refusal) = &found {
            self.note(refusal, "reading a campaign's recipients will be retried");
            // Recipients in memory are written to meanwhile.
            if self.line.len() == 0 {
                self.rest(OUTAGE_PAUSE);
            }
        }
        self.line.end_reading(reading, found.ok());
    }

    /// Starts the campaign at its scheduled time.
    pub(super) fn start_due(&mut self, cx: &mut Mailbox<Self>) {
        self.change(What::Start, cx);
    }

    /// Completes the campaign after its last recipient.
    pub(super) fn complete(&mut self, cx: &mut Mailbox<Self>) {
        self.change(What::Complete, cx);
    }

    /// Handles the cancellation: pending recipients are skipped. Messages in transit are, once it is their turn.
    pub(super) fn call_off(&mut self, run: &CampaignRun, cx: &mut Mailbox<Self>) {
        if !self.is_called_off && run.pending > 0 {
            self.change(What::CallOff, cx);
        } else if self.in_transit.is_empty() && self.leaving.is_empty() {
            self.make_room(cx);
        }
    }

    fn change(&mut self, what: What, cx: &mut Mailbox<Self>) {
        let Some(presence) = self.presence(self.is_busy, cx) else { return };
        self.is_busy = true;
        let (scope, company, id, home) = (self.scope.clone(), self.company, self.id, cx.address());
        actix::spawn(async move {
            let _presence = presence;
            home.do_send(Done { what, outcome: change(&scope, company, id, what).await });
        });
    }

    fn done(&mut self, Done { what, outcome }: Done) {
        self.is_busy = false;
        match (what, outcome) {
            (_, Err(refusal)) => {
                self.note(&refusal, "updating a campaign will be retried");
                self.rest(OUTAGE_PAUSE);
            }
            (What::CallOff, Ok(is_more)) => self.is_called_off = !is_more,
            // A recipient was not in memory, or the campaign is no longer running.
            (What::Complete, Ok(false)) => {
                self.line.begin_anew();
                self.outdated();
                self.rest(TICK);
            }
            (What::Start | What::Complete, Ok(_)) => self.outdated(),
        }
    }

    /// Enters the company's door unless a task is under way; retried later while the door is closed.
    fn presence(&mut self, is_under_way: bool, cx: &mut Mailbox<Self>) -> Option<Presence> {
        if is_under_way {
            return None;
        }
        let presence = self.enter();
        if presence.is_none() {
            self.ring_in(TICK, cx);
        }
        presence
    }

    fn note(&self, refusal: &Refusal, what: &str) {
        if refusal.is_passing() {
            tracing::debug!(%refusal, company.id = %self.company, campaign.id = %self.id, "{what}");
        } else {
            tracing::error!(%refusal, company.id = %self.company, campaign.id = %self.id, "{what}");
        }
    }
}

/// The campaign from the tables, once these have all earlier decisions.
async fn found(scope: &CampaignScope, company: CompanyId, id: CampaignId) -> Result<Option<Found>, Refusal> {
    let db = scope.base.reads().tables(company).await?;
    let Some(run) = campaigns::run(db, company, id).await? else { return Ok(None) };
    let in_transit = campaigns::in_transit(db, company, id).await?;
    Ok(Some(Found { run, in_transit }))
}

/// A page of recipients. Caches their contacts, and loads ahead what their messages need to know.
async fn next(
    scope: &CampaignScope,
    (company, id): (CompanyId, CampaignId),
    run: &CampaignRun,
    Reading { generation, after, limit }: Reading,
) -> Result<Vec<NextRecipient>, Refusal> {
    let looked = scope.in_transit.withdrawals.stamp(company);
    let db = scope.base.reads().tables_as_of_now(company).await?;
    let page = campaigns::waiting(db, company, id, after, limit).await?;
    let contacts: Vec<ContactId> = page.iter().map(|recipient| recipient.contact_id).collect();
    let fetched: HashSet<ContactId> = scope.contacts.have_at_hand(company, &contacts).await?.into_iter().collect();
    leaving::look_ahead(scope, company, run, &contacts).await;
    let next = page.into_iter().map(|recipient| NextRecipient {
        contact_id: recipient.contact_id,
        is_opted_out: recipient.is_opted_out,
        is_fetched: fetched.contains(&recipient.contact_id),
        looked,
        generation,
    });
    Ok(next.collect())
}

/// Changes the campaign; returns whether anything was to be changed.
async fn change(scope: &CampaignScope, company: CompanyId, id: CampaignId, what: What) -> Result<bool, Refusal> {
    let db = scope.base.reads().tables(company).await?;
    match what {
        What::Start => {
            let mut start = db.heavy().begin().await?;
            let has_started = campaigns::start_due(start.connection()?, company, id, now()).await?;
            start.commit().await?;
            Ok(has_started)
        }
        What::Complete => Ok(campaigns::complete(db, company, id, now()).await?),
        What::CallOff => Ok(campaigns::skip_canceled(db.heavy(), company, id).await? > 0),
    }
}

impl Handler<Read> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, read: Read, cx: &mut Self::Context) {
        self.guarded(cx, |this, cx| {
            if !this.retired {
                this.has_read(read, cx);
            }
        });
    }
}

impl Handler<Verified> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, verified: Verified, cx: &mut Self::Context) {
        self.guarded(cx, |this, cx| {
            if !this.retired {
                this.verified(verified, cx);
            }
        });
    }
}

impl Handler<Loaded> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, loaded: Loaded, cx: &mut Self::Context) {
        self.guarded(cx, |this, _| this.loaded(loaded));
    }
}

impl Handler<Done> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, done: Done, cx: &mut Self::Context) {
        self.guarded(cx, |this, _| this.done(done));
    }
}
