//! Messages in a ticket, both inbound and outbound, and their read state.

use std::sync::Arc;

use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::messages::{DeliveryReceipt, Direction, MessageRow, MessageStatus, MessageType};
use hotline_persistence::tables::source::Source;
use hotline_persistence::tables::ticket_events::EventType;
use hotline_persistence::{Change, ChannelId, ContactId, MessageId, SessionId};
use serde_json::json;

use super::fixture::*;
use crate::tickets::{
    AddNote, AfterSend, Author, Close, ContactFacts, MarkDelivered, MarkRead, MarkSeen, Open, Receive, Send, Show,
    Transfer,
};
use crate::{Refusal, Unreachable};

fn send() -> Send {
    Send::text("hello", ana())
}

fn receive(body: &str) -> Receive {
    Receive::text(body)
}

fn close() -> Close {
    Close { wrapup_type: None, wrapup_note: None, author: ana() }
}

fn kinds<R>(result: &CommandResult<R>) -> Vec<EventType> {
    result.events().iter().map(|event| event.kind).collect()
}

/// A ticket whose contact has no number, and is not known to have written on the channel.
fn unreachable_desk(channel: ChannelId) -> Desk {
    let contact = Arc::new(ContactRef { id: ContactId::new(5), name: "Zoe".into(), number: None, verified: false });
    let opening = Open { contact, reachable: false, ..open(channel) };
    Desk::opened(opening).expect("the ticket opens").0
}

fn assert_last(desk: &Desk, message: &MessageRow) {
    let last = desk.ticket.last_message.as_ref().expect("a last message");
    assert_eq!(desk.ticket.row.last_message_id, Some(message.id));
    assert_eq!((last.body.as_deref(), last.direction), (message.body.as_deref(), message.direction));
    assert_eq!(last.created_at, message.created_at);
}

// Send.

#[test]
fn a_send_queues_an_outbound_message_that_is_its_own_job() {
    let mut desk = Desk::on(PHONE);
    let result = desk.run(send());
    let message = &result.reply;
    assert_eq!((message.direction, message.kind), (Direction::Outbound, MessageType::Text));
    assert_eq!((message.status, message.sent_at), (MessageStatus::Queued, None));
    assert_eq!(message.after_send, Some(json!({"answers": true, "closeTicket": false})));
    assert_eq!(message.job_id, Some(message.id));
    assert_eq!((message.body.as_deref(), message.user_name.as_deref()), (Some("hello"), Some("Ana")));
    assert_eq!((message.ticket_id, message.channel_id), (desk.ticket.row.id, PHONE));
    let expected = [Change::Ticket(desk.ticket.row.clone()), Change::Message(Box::new(message.clone()))];
    assert_eq!(result.changes, expected);
    assert_last(&desk, message);
}

#[test]
fn only_the_first_message_of_an_opening_is_the_first_response() {
    let mut desk = Desk::on(WEBCHAT);
    desk.run(send());
    let first = desk.now;
    assert_eq!(desk.ticket.row.first_response_at, Some(first));
    desk.run(send());
    assert_eq!(desk.ticket.row.first_response_at, Some(first));
    desk.run(close());
    desk.run(Send { reopen: true, ..send() });
    assert_eq!(desk.ticket.row.first_response_at, Some(desk.now));
}

#[test]
fn automatic_messages_do_not_count_as_an_answer() {
    for source in [Source::Automation, Source::Campaign, Source::Schedule] {
        let mut desk = Desk::on(WEBCHAT);
        desk.run(receive("hi"));
        let waiting = desk.ticket.row.waiting_since;
        desk.run(Send::text("hello", Author { user: None, integration: None, source }));
        let row = &desk.ticket.row;
        assert_eq!((row.first_response_at, row.waiting_since, row.answer_id), (None, waiting, None), "{source:?}");
    }
}

#[test]
fn a_send_does_not_change_the_unread_count() {
    let mut desk = Desk::on(PHONE);
    desk.run(receive("one"));
    desk.run(send());
    assert_eq!(desk.ticket.row.unread_count, 1);
}

#[test]
fn a_webchat_message_is_sent_at_once() {
    let mut desk = Desk::on(WEBCHAT);
    let message = desk.run(send()).reply;
    assert_eq!((message.status, message.sent_at), (MessageStatus::Sent, Some(desk.now)));
}

#[test]
fn a_send_to_a_closed_ticket_is_refused_unless_it_reopens() {
    let mut desk = Desk::with_closed_ticket();
    assert_eq!(desk.expect_refusal(send()), Refusal::TicketClosed(desk.ticket.row.id));
    let result = desk.run(Send { reopen: true, ..send() });
    assert!(desk.ticket.is_open());
    assert_eq!((desk.ticket.row.reopen_count, desk.ticket.row.closed_at), (1, None));
    assert_eq!(kinds(&result), [EventType::Reopened]);
    assert_eq!(result.changes[0], Change::Ticket(desk.ticket.row.clone()));
    assert_eq!(result.changes.len(), 3);
}

#[test]
fn a_send_that_may_reopen_leaves_an_open_ticket_as_it_is() {
    let mut desk = Desk::on(PHONE);
    let opened_at = desk.ticket.row.opened_at;
    let result = desk.run(Send { reopen: true, ..send() });
    assert_eq!((desk.ticket.row.reopen_count, desk.ticket.row.opened_at), (0, opened_at));
    assert_eq!(kinds(&result), []);
}

#[test]
fn a_send_does_not_reopen_while_another_ticket_of_the_contact_is_open() {
    let mut desk = Desk::with_closed_ticket();
    desk.open_elsewhere = Some(OTHER_TICKET);
    assert_eq!(desk.expect_refusal(Send { reopen: true, ..send() }), Refusal::AlreadyOpen(OTHER_TICKET));
}

#[test]
fn a_phone_channel_reaches_a_number_or_the_providers_id() {
    assert_eq!(unreachable_desk(PHONE).expect_refusal(send()), Refusal::ContactUnreachable(Unreachable::NoNumber));
    // A contact without a number is reached at the provider's id.
    unreachable_desk(PHONE).run(Send { facts: ContactFacts { reachable: true, ..ContactFacts::default() }, ..send() });
}

#[test]
fn a_channel_without_phone_reaches_contacts_who_have_written_on_it() {
    for (channel, why) in [(WEBCHAT, Unreachable::NoSession), (SOCIAL, Unreachable::NoConversation)] {
        let mut desk = unreachable_desk(channel);
        assert_eq!(desk.expect_refusal(send()), Refusal::ContactUnreachable(why));
        desk.run(receive("here I am"));
        desk.run(send());

        let mut desk = unreachable_desk(channel);
        desk.run(Send { facts: ContactFacts { reachable: true, ..ContactFacts::default() }, ..send() });
        // The result of the look-up is cached in the ticket.
        desk.run(send());
        assert!(desk.ticket.reachable);
    }
}

#[test]
fn an_unreachable_contact_does_not_reopen_a_ticket() {
    let mut desk = unreachable_desk(SOCIAL);
    desk.run(close());
    let refusal = desk.expect_refusal(Send { reopen: true, ..send() });
    assert_eq!(refusal, Refusal::ContactUnreachable(Unreachable::NoConversation));
    assert!(desk.ticket.is_closed());
}

// What follows a send.

fn transfer_and_close() -> AfterSend {
    AfterSend {
        queue_id: Some(SALES),
        close_ticket: true,
        wrapup_type_id: Some(SOLD),
        wrapup_note: Some("sold one".to_owned()),
        ..AfterSend::default()
    }
}

#[test]
fn on_a_webchat_the_transfer_and_the_close_follow_at_once_in_that_order() {
    let mut desk = Desk::on(WEBCHAT);
    // `SOLD` may close the ticket only because the transfer to its queue comes first.
    let result = desk.run(Send { after: transfer_and_close(), ..send() });
    let row = &desk.ticket.row;
    assert_eq!(kinds(&result), [EventType::Transferred, EventType::Closed]);
    assert!(desk.ticket.is_closed());
    assert_eq!((row.queue_id, row.closed_at), (Some(SALES), Some(desk.now)));
    assert_eq!((row.wrapup_type_id, row.wrapup_note.as_deref()), (Some(SOLD), Some("sold one")));
    assert_eq!(row.first_response_at, Some(desk.now));
    assert_eq!(result.reply.after_send, None);
    assert_eq!(result.changes[0], Change::Ticket(row.clone()));
    assert_eq!(result.changes.last(), Some(&Change::Message(Box::new(result.reply.clone()))));
    assert_eq!(result.changes.len(), 4);
}

#[test]
fn a_webchat_send_may_reopen_and_close_in_one_decision() {
    let mut desk = Desk::on(WEBCHAT);
    desk.run(close());
    let after = AfterSend { close_ticket: true, ..AfterSend::default() };
    let result = desk.run(Send { reopen: true, after, ..send() });
    assert_eq!(kinds(&result), [EventType::Reopened, EventType::Closed]);
    assert_eq!((desk.ticket.is_closed(), desk.ticket.row.reopen_count), (true, 1));
}

#[test]
fn on_a_phone_channel_the_follow_up_is_stored_until_the_message_is_accepted() {
    let mut desk = Desk::on(PHONE);
    let result = desk.run(Send { after: transfer_and_close(), ..send() });
    assert!(desk.ticket.is_open());
    assert_eq!(desk.ticket.row.queue_id, Some(SUPPORT));
    assert_eq!(kinds(&result), []);
    let stored =
        json!({"answers": true, "queueId": 2, "closeTicket": true, "wrapupTypeId": 2, "wrapupNote": "sold one"});
    assert_eq!(result.reply.after_send, Some(stored.clone()));
    let parsed = serde_json::from_value::<AfterSend>(stored).expect("the stored follow-up is valid");
    assert_eq!(parsed, AfterSend { answers: true, ..transfer_and_close() });
}

#[test]
fn an_impossible_follow_up_is_refused_at_once_on_every_channel() {
    let refusals = [
        (AfterSend { queue_id: Some(MISSING_QUEUE), ..AfterSend::default() }, Refusal::NotFound),
        (
            AfterSend { queue_id: Some(OLD_QUEUE), ..AfterSend::default() },
            Refusal::invalid("queueId", "must be an active queue"),
        ),
        (AfterSend { wrapup_type_id: Some(MISSING_TYPE), ..transfer_and_close() }, Refusal::NotFound),
        // The ticket is closed in the queue it was moved to, which requires a wrap-up type linked to that queue.
        (
            AfterSend { wrapup_type_id: None, ..transfer_and_close() },
            Refusal::invalid("wrapupTypeId", "is required by the ticket's queue"),
        ),
        (
            AfterSend { wrapup_type_id: Some(SOLVED), ..transfer_and_close() },
            Refusal::invalid("wrapupTypeId", "must be linked to the ticket's queue"),
        ),
    ];
    for channel in [PHONE, WEBCHAT, SOCIAL] {
        for (after, refusal) in &refusals {
            let mut desk = Desk::on(channel);
            assert_eq!(desk.expect_refusal(Send { after: after.clone(), ..send() }), *refusal, "{after:?}");
        }
    }
}

// Receive.

#[test]
fn a_contacts_message_is_received_and_counts_as_unread() {
    let mut desk = Desk::on(WEBCHAT);
    let session = Some(SessionId("s".to_owned()));
    let quoted = Some(MessageId::new(3));
    let message = Receive { quoted, session: session.clone(), client_id: Some("c1".to_owned()), ..receive("hi") };
    let result = desk.run(message);
    let message = &result.reply;
    assert_eq!((message.direction, message.status), (Direction::Inbound, MessageStatus::Received));
    assert_eq!((message.source, message.user_id, message.job_id), (Source::Contact, None, None));
    assert_eq!((message.quoted_message_id, &message.session_id), (quoted, &session));
    assert_eq!(message.client_id.as_deref(), Some("c1"));
    let expected = [Change::Ticket(desk.ticket.row.clone()), Change::Message(Box::new(message.clone()))];
    assert_eq!(result.changes, expected);
    assert_last(&desk, message);
    assert_eq!(desk.run(receive("still there?")).reply.id.0, message.id.0 + 1);
    assert_eq!(desk.ticket.row.unread_count, 2);
    assert_eq!(desk.ticket.row.first_response_at, None);
}

#[test]
fn a_closed_ticket_receives_nothing() {
    let mut desk = Desk::with_closed_ticket();
    assert_eq!(desk.expect_refusal(receive("again")), Refusal::TicketClosed(desk.ticket.row.id));
}

// Notes.

#[test]
fn a_note_is_internal_and_not_the_last_message() {
    let mut desk = Desk::on(WEBCHAT);
    let message = desk.run(receive("hi")).reply;
    let result = desk.run(AddNote { body: "careful".to_owned(), author: ana() });
    let note = &result.reply;
    assert_eq!((note.direction, note.kind), (Direction::Internal, MessageType::Note));
    assert_eq!((note.status, note.job_id, note.sent_at), (MessageStatus::Sent, None, Some(note.created_at)));
    assert_eq!((note.body.as_deref(), note.user_id), (Some("careful"), Some(ANA)));
    assert!(note.id > message.id);
    assert_last(&desk, &message);
    assert_eq!((desk.ticket.row.unread_count, desk.ticket.row.first_response_at), (1, None));
    assert_eq!(desk.ticket.row.updated_at, desk.now);
    assert_eq!(result.changes[0], Change::Ticket(desk.ticket.row.clone()));
    assert_eq!(result.changes.last(), Some(&Change::Message(Box::new(note.clone()))));
    assert_eq!(result.changes.len(), 3);
    let event = result.event();
    assert_eq!((event.kind, &event.from), (EventType::NoteAdded, &None));
    assert_eq!(event.to, Some(json!({"messageId": note.id})));
}

// Read and delivered.

#[test]
fn reading_clears_the_count_and_marks_all_messages() {
    let mut desk = Desk::on(PHONE);
    desk.run(receive("one"));
    let last = desk.run(receive("two")).reply;
    let result = desk.run(MarkRead { author: ana() });
    assert_eq!((desk.ticket.row.unread_count, desk.ticket.row.updated_at), (0, desk.now));
    assert_eq!(result.reply, desk.ticket);
    let receipt = receipt(&desk, last.id);
    assert_eq!(result.changes[0], Change::Ticket(desk.ticket.row.clone()));
    assert_eq!(result.changes.last(), Some(&Change::Read(receipt)));
    assert_eq!(result.changes.len(), 3);
    assert_eq!((result.event().kind, &result.event().from), (EventType::Read, &Some(json!({"unreadCount": 2}))));
    assert_eq!(result.event().to, Some(json!({"unreadCount": 0})));
}

#[test]
fn reading_a_read_ticket_changes_nothing() {
    let mut desk = Desk::on(PHONE);
    desk.run(receive("one"));
    desk.run(MarkRead { author: ana() });
    let before = desk.ticket.clone();
    let result = desk.run(MarkRead { author: ana() });
    assert_eq!((result.changes, &result.reply, &desk.ticket), (Vec::new(), &before, &before));
}

#[test]
fn a_delivery_marks_messages_and_leaves_the_ticket() {
    let mut desk = Desk::on(WEBCHAT);
    let sent = desk.run(send()).reply;
    let before = desk.ticket.clone();
    let result = desk.run(MarkDelivered { up_to: sent.id, since: None });
    let receipt = receipt(&desk, sent.id);
    assert_eq!(result.changes, [Change::Delivered(receipt)]);
    assert_eq!(desk.ticket.row, before.row);
    let again = desk.run(MarkDelivered { up_to: sent.id, since: None });
    assert_eq!(again.changes, [], "a repeated receipt changes nothing");
}

#[test]
fn the_seen_position_moves_forward_up_to_the_last_message() {
    let mut desk = Desk::on(WEBCHAT);
    let first = desk.run(send()).reply;
    let second = desk.run(send()).reply;
    let later = MessageId::new(second.id.0 + 1000);
    let result = desk.run(MarkSeen { up_to: later, since: None });
    assert_eq!(result.changes, [Change::Seen(receipt(&desk, second.id))]);
    for up_to in [later, second.id, first.id] {
        assert_eq!(desk.run(MarkSeen { up_to, since: None }).changes, [], "{up_to}");
    }
    assert_eq!(
        desk.run(MarkDelivered { up_to: second.id, since: None }).changes,
        [],
        "a seen message counts as delivered"
    );
    let third = desk.run(send()).reply;
    assert_eq!(desk.run(MarkSeen { up_to: third.id, since: None }).changes, [Change::Seen(receipt(&desk, third.id))]);
}

#[test]
fn what_one_session_has_received_another_one_reports_itself() {
    let mut desk = Desk::on(WEBCHAT);
    let first = desk.run(send()).reply;
    let second = desk.run(send()).reply;
    // A session that does not show the first message has received the second one.
    let since = Some(desk.now);
    let later = |desk: &Desk| DeliveryReceipt { since, ..receipt(desk, second.id) };
    let mark_later = MarkDelivered { up_to: second.id, since };
    let marked = desk.run(mark_later.clone()).changes;
    assert_eq!(marked, [Change::Delivered(later(&desk))]);
    assert_eq!(desk.run(mark_later).changes, [], "a repeated receipt changes something");
    let marked = desk.run(MarkDelivered { up_to: first.id, since: None }).changes;
    assert_eq!(marked, [Change::Delivered(receipt(&desk, first.id))], "the first message stays sent");
    let seen = desk.run(MarkSeen { up_to: second.id, since }).changes;
    assert_eq!(seen, [Change::Seen(later(&desk))]);
    let seen = desk.run(MarkSeen { up_to: first.id, since: None }).changes;
    assert_eq!(seen, [Change::Seen(receipt(&desk, first.id))]);
}

fn receipt(desk: &Desk, up_to: MessageId) -> DeliveryReceipt {
    let row = &desk.ticket.row;
    let conversation = Some((row.channel_id, row.contact_id));
    DeliveryReceipt { company_id: COMPANY, ticket_id: row.id, conversation, up_to, since: None, at: desk.now }
}

#[test]
fn showing_a_ticket_records_nothing() {
    let mut desk = Desk::on(PHONE);
    let result = desk.run(Show);
    assert_eq!((result.changes, &result.reply), (Vec::new(), &desk.ticket));
}

#[test]
fn an_event_keeps_the_names_of_its_time() {
    let mut desk = Desk::on(PHONE);
    let ben = |name: &str| json!({"queue": {"id": 1, "name": "Support"}, "assignedTo": {"id": 2, "name": name}});
    let assigned = desk.run(Transfer { queue: None, user: Some(Some(BEN)), author: ana() });
    desk.organization.users.get_mut(&BEN).expect("Ben").name = "Benjamin".to_owned();
    let unassigned = desk.run(Transfer { queue: None, user: Some(None), author: ana() });
    assert_eq!(assigned.event().to, Some(ben("Ben")));
    assert_eq!(unassigned.event().from, Some(ben("Benjamin")));
}
