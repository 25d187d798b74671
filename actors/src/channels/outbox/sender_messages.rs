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
pub(super) struct ServiceStopping;

/// Starts no further attempt until [`Resume`].
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Pause {
    /// Completed once no attempt and no read is running, and every outcome is recorded.
    pub(super) paused_signal: oneshot::Sender<()>,
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

/// A contact and its messages were deleted. Once this is answered, no further call to the provider begins for the
/// contact; one that is under way is completed.
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
impl Handler<ServiceStopping> for ChannelSender {
    type Result = ();

    fn handle(&mut self, _: ServiceStopping, _: &mut Self::Context) {}
}

impl Handler<Pause> for ChannelSender {
    type Result = ();

    fn handle(&mut self, Pause { paused_signal }: Pause, _: &mut Self::Context) {
        self.is_paused = true;
        self.paused_signal = Some(paused_signal);
    }
}

impl Handler<Resume> for ChannelSender {
    type Result = ();

    fn handle(&mut self, _: Resume, _: &mut Self::Context) {
        self.is_paused = false;
        self.paused_signal = None;
        for ended_doubt in std::mem::take(&mut self.ended_doubts) {
            self.handle_event(ended_doubt);
        }
    }
}

impl Handler<ContactsMerged> for ChannelSender {
    type Result = ();

    fn handle(&mut self, ContactsMerged { from, into }: ContactsMerged, _: &mut Self::Context) {
        // No message to `from` will follow those that have arrived, so the merge can end at once.
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
