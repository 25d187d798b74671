//! The messages to the actor of a channel's outbox, and what it does with each.

use std::collections::HashSet;
use std::sync::Arc;

use actix::{ActorContext, Handler, Message};
use hotline_persistence::ContactId;
use tokio::sync::oneshot;

use super::sender::ChannelSender;

/// A message was put into the outbox.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct MessageQueued;

/// The service is stopping: the sender starts no further attempt, and ends once none is running.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Stop;

/// Starts no further attempt until [`Resume`].
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Pause {
    /// Notified once no attempt or read is running, and every outcome is recorded.
    pub(super) paused: oneshot::Sender<()>,
}

/// Resumes sending.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Resume;

/// A contact was merged into another.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ContactsMerged {
    pub(super) from: ContactId,
    pub(super) into: ContactId,
}

/// Contacts were changed, perhaps their phone numbers.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ContactsChanged(pub(super) Arc<HashSet<ContactId>>);

/// A contact was deleted with its messages. Once this is answered, no call for it begins; a call that is under way
/// still ends.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ContactRemoved(pub(super) ContactId);

/// Ends the paused sender: its company is dropped from memory.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Terminate;

/// Empty, because `SenderLoop` is polled after each message to the actor, and takes the messages that have arrived.
impl Handler<MessageQueued> for ChannelSender {
    type Result = ();

    fn handle(&mut self, _: MessageQueued, _: &mut Self::Context) {}
}

/// Empty, because `SenderLoop` is polled after each message to the actor, and checks whether the service is stopping.
impl Handler<Stop> for ChannelSender {
    type Result = ();

    fn handle(&mut self, _: Stop, _: &mut Self::Context) {}
}

impl Handler<Pause> for ChannelSender {
    type Result = ();

    fn handle(&mut self, Pause { paused }: Pause, _: &mut Self::Context) {
        self.is_paused = true;
        self.notify_paused = Some(paused);
    }
}

impl Handler<Resume> for ChannelSender {
    type Result = ();

    fn handle(&mut self, _: Resume, _: &mut Self::Context) {
        self.is_paused = false;
        self.notify_paused = None;
        for event in std::mem::take(&mut self.ended_doubts) {
            self.handle_event(event);
        }
    }
}

impl Handler<ContactsMerged> for ChannelSender {
    type Result = ();

    fn handle(&mut self, ContactsMerged { from, into }: ContactsMerged, _: &mut Self::Context) {
        // No message to the merged contact follows those that have arrived.
        self.add_arrivals();
        self.state.lanes.merge(from, into);
        self.state.lanes.end_merge(from, into);
        if self.outbox.is_reading() {
            self.state.contacts_during_read.record_merge(from, into);
        }
    }
}

impl Handler<ContactsChanged> for ChannelSender {
    type Result = ();

    fn handle(&mut self, ContactsChanged(contacts): ContactsChanged, _: &mut Self::Context) {
        self.add_arrivals();
        self.state.lanes.mark_changed(&contacts);
        if self.outbox.is_reading() {
            self.state.contacts_during_read.record_changes(&contacts);
        }
    }
}

impl Handler<ContactRemoved> for ChannelSender {
    type Result = ();

    fn handle(&mut self, ContactRemoved(contact): ContactRemoved, _: &mut Self::Context) {
        self.add_arrivals();
        for outgoing in self.state.lanes.remove_messages_of(contact) {
            self.outbox.finish(&outgoing);
            self.scope.in_transit.end(self.channel.0, outgoing.id());
        }
        if self.outbox.is_reading() {
            self.state.contacts_during_read.record_removal(contact);
        }
    }
}

impl Handler<Terminate> for ChannelSender {
    type Result = ();

    fn handle(&mut self, _: Terminate, cx: &mut Self::Context) {
        cx.stop();
    }
}
