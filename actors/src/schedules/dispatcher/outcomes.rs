//! Outcomes of sending scheduled messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use actix::{AsyncContext, Context as Mailbox, Handler, Message};
use hotline_persistence::tables::schedules::{ScheduleRow, ScheduleStatus};

use super::super::agenda::Look;
use super::leaving::{self, Left};
use super::readings::row_of;
use super::{OUTAGE_PAUSE, ScheduleDispatcher};
use crate::Refusal;
use crate::base::retry::while_unavailable;
use crate::clock::now;

/// The sending of a message has ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct HasLeft(pub(super) Left);

/// The result of reading a message of unknown outcome from the tables.
#[derive(Message)]
#[rtype(result = "()")]
struct Checked {
    row: Arc<ScheduleRow>,
    refusal: Refusal,
    found: Result<Option<ScheduleRow>, Refusal>,
}

impl ScheduleDispatcher {
    /// Handles the outcome of sending a message.
    fn settle(&mut self, left: Left, cx: &mut Mailbox<Self>) {
        let Left { row, outcome, is_recorded } = left;
        if self.retired {
            return;
        }
        match outcome {
            Ok(message) => {
                let row = Arc::new(row.sent(&message));
                self.scope.sent.fetch_add(1, Ordering::Relaxed);
                self.agenda.decided(row.clone(), now());
                self.is_back(&row, cx);
            }
            Err(refusal) if is_recorded => self.check(row, refusal, cx),
            Err(refusal) => {
                self.has_not_left(&row, &refusal);
                self.is_back(&row, cx);
            }
        }
    }

    /// Looks up a message of unknown outcome in the tables, once these have all earlier decisions.
    fn check(&mut self, row: Arc<ScheduleRow>, refusal: Refusal, cx: &mut Mailbox<Self>) {
        if self.retired {
            return;
        }
        let (scope, company, home) = (self.scope.clone(), self.company, cx.address());
        actix::spawn(async move {
            let found = while_unavailable(OUTAGE_PAUSE, || row_of(&scope, company, row.id)).await;
            home.do_send(Checked { row, refusal, found });
        });
    }

    fn checked(&mut self, checked: Checked, cx: &mut Mailbox<Self>) {
        let Checked { row, refusal, found } = checked;
        if self.retired {
            return;
        }
        match found {
            Ok(Some(found)) if found.status != ScheduleStatus::Pending => {
                let found = Arc::new(found);
                self.scope.sent.fetch_add(1, Ordering::Relaxed);
                self.agenda.decided(found.clone(), now());
                return self.is_back(&found, cx);
            }
            Ok(Some(_)) => self.has_not_left(&row, &refusal),
            Ok(None) => self.agenda.gone(row.id),
            // It may have left, so it is not tried again before that is known; whoever waits for it waits on.
            Err(defect) => {
                let schedule = row.id;
                tracing::error!(%defect, company.id = %self.company, schedule.id = %schedule, "unknown whether a scheduled message was sent; checking again");
                cx.run_later(OUTAGE_PAUSE, move |this, cx| this.guarded(cx, |this, cx| this.check(row, refusal, cx)));
                return;
            }
        }
        self.is_back(&row, cx);
    }

    /// The sending of a message has ended with this state: waiting tasks are run.
    fn is_back(&mut self, row: &Arc<ScheduleRow>, cx: &mut Mailbox<Self>) {
        self.leaving.remove(&row.id);
        for task in self.waiting.remove(&row.id).unwrap_or_default() {
            match self.agenda.look(row.id) {
                Look::Settled(row) => task(self, Ok(row)),
                // A message that is no longer pending does not change, so the tasks need no further read.
                Look::Unknown if row.status != ScheduleStatus::Pending => task(self, Ok(row.clone())),
                _ => self.with(row.id, cx, task),
            }
        }
    }

    /// Handles a refused send: the message has failed, or is retried after an outage.
    fn has_not_left(&mut self, row: &ScheduleRow, refusal: &Refusal) {
        if !refusal.is_passing() {
            let organization = self.scope.base.organization(self.company).ok();
            let error = leaving::failure(refusal, row, organization.as_deref());
            let user = row.user_id.and_then(|id| organization.as_ref()?.users.get(&id));
            let by = row.scheduled_by(user.map(|user| user.name.as_str()));
            if self.append(Arc::new(row.failed(&error, now(), by)), Vec::new).is_ok() {
                self.scope.failed.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%refusal, company.id = %self.company, "scheduled message failed");
                return;
            }
        }
        self.agenda.rest(row.id, Instant::now() + OUTAGE_PAUSE);
    }
}

impl Handler<HasLeft> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, HasLeft(left): HasLeft, cx: &mut Self::Context) {
        self.guarded(cx, |this, cx| this.settle(left, cx));
    }
}

impl Handler<Checked> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, checked: Checked, cx: &mut Self::Context) {
        self.guarded(cx, |this, cx| this.checked(checked, cx));
    }
}
