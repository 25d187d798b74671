//! Outcomes of sending scheduled messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use actix::{AsyncContext, Context as Mailbox, Handler, Message};
use hotline_persistence::tables::schedules::{ScheduleRow, ScheduleStatus};

use super::super::agenda::MessageLookup;
use super::send::{self, DispatchReport};
use super::tables::find_row;
use super::{OUTAGE_PAUSE, ScheduleDispatcher};
use crate::Refusal;
use crate::base::due_work::{DueWork, catch_panic};
use crate::base::retry::while_unavailable;
use crate::clock::now;

/// The sending of a message has ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct DispatchEnded(pub(super) DispatchReport);

/// The result of looking up a message in the tables because its outcome is unknown.
#[derive(Message)]
#[rtype(result = "()")]
struct OutcomeChecked {
    row: Arc<ScheduleRow>,
    refusal: Refusal,
    found: Result<Option<ScheduleRow>, Refusal>,
}

impl ScheduleDispatcher {
    /// Handles the outcome of sending a message.
    fn handle_report(&mut self, report: DispatchReport, cx: &mut Mailbox<Self>) {
        let DispatchReport { row, outcome, may_be_recorded } = report;
        if self.work_state.is_retired() {
            return;
        }
        match outcome {
            Ok(message) => {
                let row = Arc::new(row.sent(&message));
                self.scope.sent.fetch_add(1, Ordering::Relaxed);
                self.agenda.apply(row.clone(), now());
                self.finish_send(&row, cx);
            }
            // The log may have the message as sent, although the send was refused.
            Err(refusal) if may_be_recorded => self.check_outcome(row, refusal, cx),
            Err(refusal) => {
                self.handle_refusal(&row, &refusal);
                self.finish_send(&row, cx);
            }
        }
    }

    /// Looks up a message of unknown outcome in the tables, once these have all earlier decisions.
    fn check_outcome(&mut self, row: Arc<ScheduleRow>, refusal: Refusal, cx: &mut Mailbox<Self>) {
        if self.work_state.is_retired() {
            return;
        }
        let (scope, company, dispatcher) = (self.scope.clone(), self.company, cx.address());
        actix::spawn(async move {
            let look_up = while_unavailable(OUTAGE_PAUSE, || find_row(&scope, company, row.id));
            let found = catch_panic("reading a scheduled message", look_up).await;
            dispatcher.do_send(OutcomeChecked { row, refusal, found });
        });
    }

    fn handle_checked_outcome(&mut self, checked: OutcomeChecked, cx: &mut Mailbox<Self>) {
        let OutcomeChecked { row, refusal, found } = checked;
        if self.work_state.is_retired() {
            return;
        }
        match found {
            Ok(Some(found)) if found.status != ScheduleStatus::Pending => {
                let found = Arc::new(found);
                self.scope.sent.fetch_add(1, Ordering::Relaxed);
                self.agenda.apply(found.clone(), now());
                return self.finish_send(&found, cx);
            }
            Ok(Some(_)) => self.handle_refusal(&row, &refusal),
            Ok(None) => self.agenda.remove(row.id),
            // The message may have been sent, so it is not retried before that is known, and its tasks keep waiting.
            Err(defect) => {
                let schedule = row.id;
                tracing::error!(%defect, company.id = %self.company, schedule.id = %schedule, "unknown whether a scheduled message was sent; checking again");
                cx.run_later(OUTAGE_PAUSE, move |this, cx| {
                    this.supervise(cx, |this, cx| this.check_outcome(row, refusal, cx))
                });
                return;
            }
        }
        self.finish_send(&row, cx);
    }

    /// Runs the tasks that wait for a message whose sending has ended with this state.
    fn finish_send(&mut self, row: &Arc<ScheduleRow>, cx: &mut Mailbox<Self>) {
        self.pending_sends.remove(&row.id);
        for task in self.tasks.remove(&row.id).unwrap_or_default() {
            match self.agenda.look_up(row.id) {
                MessageLookup::Idle(row) => task(self, Ok(row)),
                // A message that is no longer pending does not change, so the tasks need no further read.
                MessageLookup::Unknown if row.status != ScheduleStatus::Pending => task(self, Ok(row.clone())),
                _ => self.run_task(row.id, cx, task),
            }
        }
    }

    /// Handles a refused send: the message has failed, or is retried after an outage.
    fn handle_refusal(&mut self, row: &ScheduleRow, refusal: &Refusal) {
        if !refusal.is_transient() {
            let organization = self.scope.base.organization(self.company).ok();
            let error = send::failure(refusal, row, organization.as_deref());
            let user = row.user_id.and_then(|id| organization.as_ref()?.users.get(&id));
            let by = row.scheduled_by(user.map(|user| user.name.as_str()));
            if self.append(Arc::new(row.failed(&error, now(), by)), || Ok(Vec::new())).is_ok() {
                self.scope.failed.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%refusal, company.id = %self.company, "scheduled message failed");
                return;
            }
        }
        self.agenda.retry_at(row.id, Instant::now() + OUTAGE_PAUSE);
    }
}

impl Handler<DispatchEnded> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, DispatchEnded(report): DispatchEnded, cx: &mut Self::Context) {
        self.supervise(cx, |this, cx| this.handle_report(report, cx));
    }
}

impl Handler<OutcomeChecked> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, checked: OutcomeChecked, cx: &mut Self::Context) {
        self.supervise(cx, |this, cx| this.handle_checked_outcome(checked, cx));
    }
}
