//! Commands to create, read, change, cancel and fail a scheduled message.

use std::sync::Arc;

use actix::Handler;
use chrono::TimeDelta;
use hotline_persistence::tables::events::By;
use hotline_persistence::tables::schedules::{DeletedContact, ScheduleRow, ScheduleStatus};
use hotline_persistence::{ContactId, Durable};

use super::super::messages::{CancelSchedule, CreateSchedule, FailSchedule, ReadSchedule, Scheduled, UpdateSchedule};
use super::{ScheduleDispatcher, send};
use crate::answers::ReplyTo;
use crate::base::due_work::DueWork;
use crate::clock::now;
use crate::registry::Envelope;
use crate::{Conflict, Refusal};

impl ScheduleDispatcher {
    fn create(&mut self, create: CreateSchedule) -> Result<(Scheduled, Durable), Refusal> {
        let CreateSchedule { new, version, attached } = create;
        if self.work_state.is_retired() {
            return Err(Refusal::Retired);
        }
        self.check_version(new.contact.id, version)?;
        let now = now();
        let row = Arc::new(ScheduleRow {
            company_id: self.company,
            id: self.scope.base.store.ids.schedule()?,
            contact_id: new.contact.id,
            channel_id: new.channel,
            body: new.body,
            queue_id: new.queue,
            send_at: new.send_at,
            status: ScheduleStatus::Pending,
            message_id: None,
            error: None,
            user_id: new.author.user.map(|(id, _)| id),
            integration_id: new.author.integration,
            created_at: now,
            updated_at: now,
            by: Some(new.by),
            contact_was: None,
        });
        let scheduled = Scheduled { row: row.clone(), contact: Some(new.contact) };
        let durable = self.append(row, || attached.map_or(Ok(Vec::new()), |attached| attached(&scheduled)))?;
        Ok((scheduled, durable))
    }

    fn update(&mut self, row: &ScheduleRow, update: UpdateSchedule) -> Result<(Scheduled, Durable), Refusal> {
        check_pending(row)?;
        let UpdateSchedule { changes, contact_id, contact, version, attached, by, .. } = update;
        // The recipient has changed since the caller looked it up; the caller retries.
        if changes.contact.unwrap_or(row.contact_id) != contact_id {
            return Err(Refusal::Retired);
        }
        self.check_version(contact_id, version)?;
        let mut changed = ScheduleRow {
            contact_id,
            channel_id: changes.channel.unwrap_or(row.channel_id),
            body: changes.body.unwrap_or_else(|| row.body.clone()),
            queue_id: changes.queue.unwrap_or(row.queue_id),
            send_at: changes.send_at.unwrap_or(row.send_at),
            ..row.clone()
        };
        // An update without a change neither moves `updated_at` nor creates an event.
        if changed != *row {
            changed.by = Some(by);
            changed.updated_at = now().max(row.updated_at + TimeDelta::milliseconds(1));
        }
        let row = Arc::new(changed);
        let scheduled = Scheduled { row: row.clone(), contact };
        let durable = self.append(row, || attached.map_or(Ok(Vec::new()), |attached| attached(&scheduled)))?;
        Ok((scheduled, durable))
    }

    fn cancel(&mut self, row: &ScheduleRow, by: By) -> Result<((), Durable), Refusal> {
        check_pending(row)?;
        let canceled = ScheduleRow {
            status: ScheduleStatus::Canceled,
            updated_at: now().max(row.updated_at),
            by: Some(by),
            ..row.clone()
        };
        Ok(((), self.append(Arc::new(canceled), || Ok(Vec::new()))?))
    }

    fn fail(
        &mut self,
        row: &ScheduleRow,
        by: By,
        deleted_contact: Option<DeletedContact>,
    ) -> Result<((), Durable), Refusal> {
        check_pending(row)?;
        let failed = row.failed(&send::failure(&Refusal::ContactNotFound, row, None), now(), by);
        Ok(((), self.append(Arc::new(ScheduleRow { contact_was: deleted_contact, ..failed }), || Ok(Vec::new()))?))
    }

    /// Checks that a contact has not changed since the caller read it: it may have been deleted.
    fn check_version(&self, contact: ContactId, version: u64) -> Result<(), Refusal> {
        let is_current = self.scope.contacts.cache().version((self.company, contact)) == version;
        if is_current { Ok(()) } else { Err(Refusal::ContactChanging(contact)) }
    }

    fn reply<R: Send + 'static>(&self, reply_to: ReplyTo<R>, outcome: Result<(R, Durable), Refusal>) {
        match outcome {
            Ok((reply, durable)) => reply_to.send_when_durable(durable, reply),
            // The state that the refusal reveals must be durable before the caller sees it.
            Err(refusal) if refusal.reveals_state() => {
                reply_to.send_after(&self.scope.base.store.log, self.status.last_seq(), Err(refusal));
            }
            Err(refusal) => reply_to.send(Err(refusal)),
        }
    }
}

/// Refuses changes of a message that is not pending.
fn check_pending(row: &ScheduleRow) -> Result<(), Refusal> {
    let state = match row.status {
        ScheduleStatus::Pending => return Ok(()),
        ScheduleStatus::Sent => "the scheduled message was sent",
        ScheduleStatus::Canceled => "the scheduled message was canceled",
        ScheduleStatus::Failed => "the scheduled message has failed",
    };
    Err(Refusal::Conflict(Conflict::of(state, row.status.as_str(), "scheduleId", row.id)))
}

impl Handler<Envelope<CreateSchedule>> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, create: Envelope<CreateSchedule>, cx: &mut Self::Context) {
        let Some((create, reply_to)) = create.accept() else { return };
        self.status.record_use();
        self.supervise(cx, |this, _| {
            let outcome = this.create(create);
            this.reply(reply_to, outcome);
        });
    }
}

impl Handler<Envelope<UpdateSchedule>> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, update: Envelope<UpdateSchedule>, cx: &mut Self::Context) {
        let Some((update, reply_to)) = update.accept() else { return };
        self.status.record_use();
        let id = update.id;
        let task = |this: &mut Self, row: Result<Arc<ScheduleRow>, Refusal>| {
            let outcome = row.and_then(|row| this.update(&row, update));
            this.reply(reply_to, outcome);
        };
        self.supervise(cx, move |this, cx| this.run_task(id, cx, Box::new(task)));
    }
}

impl Handler<Envelope<CancelSchedule>> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, cancel: Envelope<CancelSchedule>, cx: &mut Self::Context) {
        let Some((CancelSchedule(id, by), reply_to)) = cancel.accept() else { return };
        self.status.record_use();
        let task = |this: &mut Self, row: Result<Arc<ScheduleRow>, Refusal>| {
            let outcome = row.and_then(|row| this.cancel(&row, by));
            this.reply(reply_to, outcome);
        };
        self.supervise(cx, move |this, cx| this.run_task(id, cx, Box::new(task)));
    }
}

impl Handler<Envelope<FailSchedule>> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, fail: Envelope<FailSchedule>, cx: &mut Self::Context) {
        let Some((FailSchedule { id, by, deleted_contact }, reply_to)) = fail.accept() else { return };
        self.status.record_use();
        let task = |this: &mut Self, row: Result<Arc<ScheduleRow>, Refusal>| {
            let outcome = row.and_then(|row| this.fail(&row, by, deleted_contact));
            this.reply(reply_to, outcome);
        };
        self.supervise(cx, move |this, cx| this.run_task(id, cx, Box::new(task)));
    }
}

impl Handler<Envelope<ReadSchedule>> for ScheduleDispatcher {
    type Result = ();

    fn handle(&mut self, read: Envelope<ReadSchedule>, cx: &mut Self::Context) {
        let Some((ReadSchedule(id), reply_to)) = read.accept() else { return };
        self.status.record_use();
        let task = |_: &mut Self, row: Result<Arc<ScheduleRow>, Refusal>| reply_to.send(row);
        self.supervise(cx, move |this, cx| this.run_task(id, cx, Box::new(task)));
    }
}
