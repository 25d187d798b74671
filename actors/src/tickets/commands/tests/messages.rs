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
    AddNote, AfterSend, Author, Close, Knowledge, MarkDelivered, MarkRead, MarkSeen, Open, Receive, Send, Show,
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

fn kinds<R>(done: &Done<R>) -> Vec<EventType> {
    done.events().iter().map(|event| event.kind).collect()
}

/// A ticket whose contact has no number and is not known to have written on the channel.
fn unreached(channel: ChannelId) -> Desk {
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
    let done = desk.does(send());
    let message = &done.reply;
    assert_eq!((message.direction, message.kind), (Direction::Outbound, MessageType::Text));
    assert_eq!((message.status, message.sent_at), (MessageStatus::Queued, None));
    assert_eq!(message.after_send, Some(json!({"answers": true, "closeTicket": false})));
    assert_eq!(message.job_id, Some(message.id));
    assert_eq!((message.body.as_deref(), message.user_name.as_deref()), (Some("hello"), Some("Ana")));
    assert_eq!((message.ticket_id, message.channel_id), (desk.ticket.row.id, PHONE));
    let recorded = [Change::Ticket(desk.ticket.row.clone()), Change::Message(Box::new(message.clone()))];
    assert_eq!(done.changes, recorded);
    assert_last(&desk, message);
}

#[test]
fn only_the_first_message_of_an_opening_is_the_first_response() {
    let mut desk = Desk::on(WEBCHAT);
    desk.does(send());
    let first = desk.now;
    assert_eq!(desk.ticket.row.first_response_at, Some(first));
    desk.does(send());
    assert_eq!(desk.ticket.row.first_response_at, Some(first));
    desk.does(close());
    desk.does(Send { reopen: true, ..send() });
    assert_eq!(desk.ticket.row.first_response_at, Some(desk.now));
}

#[test]
fn what_nobody_wrote_for_this_contact_is_no_answer() {
    for source in [Source::Automation, Source::Campaign, Source::Schedule] {
        let mut desk = Desk::on(WEBCHAT);
        desk.does(receive("hi"));
        let waits = desk.ticket.row.waiting_since;
        desk.does(Send::text("hello", Author { user: None, integration: None, source }));
        let row = &desk.ticket.row;
        assert_eq!((row.first_response_at, row.waiting_since, row.answer_id), (None, waits, None), "{source:?}");
    }
}

#[test]
fn a_send_leaves_the_unread_count() {
    let mut desk = Desk::on(PHONE);
    desk.does(receive("one"));
    desk.does(send());
    assert_eq!(desk.ticket.row.unread_count, 1);
}

#[test]
fn a_webchat_has_a_message_at_once() {
    let mut desk = Desk::on(WEBCHAT);
    let message = desk.does(send()).reply;
    assert_eq!((message.status, message.sent_at), (MessageStatus::Sent, Some(desk.now)));
}

#[test]
fn a_send_to_a_closed_ticket_is_refused_unless_it_reopens() {
    let mut desk = Desk::with_closed_ticket();
    assert_eq!(desk.refuses(send()), Refusal::TicketClosed(desk.ticket.row.id));
    let done = desk.does(Send { reopen: true, ..send() });
    assert!(desk.ticket.is_open());
    assert_eq!((desk.ticket.row.reopen_count, desk.ticket.row.closed_at), (1, None));
    assert_eq!(kinds(&done), [EventType::Reopened]);
    assert_eq!(done.changes[0], Change::Ticket(desk.ticket.row.clone()));
    assert_eq!(done.changes.len(), 3);
}

#[test]
fn a_send_that_may_reopen_leaves_an_open_ticket_as_it_is() {
    let mut desk = Desk::on(PHONE);
    let opened_at = desk.ticket.row.opened_at;
    let done = desk.does(Send { reopen: true, ..send() });
    assert_eq!((desk.ticket.row.reopen_count, desk.ticket.row.opened_at), (0, opened_at));
    assert_eq!(kinds(&done), []);
}

#[test]
fn a_send_does_not_reopen_while_another_ticket_of_the_contact_is_open() {
    let mut desk = Desk::with_closed_ticket();
    desk.open_elsewhere = Some(OTHER_TICKET);
    assert_eq!(desk.refuses(Send { reopen: true, ..send() }), Refusal::AlreadyOpen(OTHER_TICKET));
}

#[test]
fn a_phone_channel_reaches_a_number_and_nothing_else() {
    assert_eq!(unreached(PHONE).refuses(send()), Refusal::ContactUnreachable(Unreachable::NoNumber));
    let claimed = Send { knowledge: Knowledge { reachable: true, ..Knowledge::default() }, ..send() };
    assert_eq!(unreached(PHONE).refuses(claimed), Refusal::ContactUnreachable(Unreachable::NoNumber));
}

#[test]
fn a_channel_without_phone_reaches_who_has_talked_there() {
    for (channel, why) in [(WEBCHAT, Unreachable::NoSession), (SOCIAL, Unreachable::NoConversation)] {
        let mut desk = unreached(channel);
        assert_eq!(desk.refuses(send()), Refusal::ContactUnreachable(why));
        desk.does(receive("here I am"));
        desk.does(send());

        let mut desk = unreached(channel);
        desk.does(Send { knowledge: Knowledge { reachable: true, ..Knowledge::default() }, ..send() });
        // The result of the look-up is cached in the ticket.
        desk.does(send());
        assert!(desk.ticket.reachable);
    }
}

#[test]
fn an_unreachable_contact_does_not_reopen_a_ticket() {
    let mut desk = unreached(SOCIAL);
    desk.does(close());
    let refusal = desk.refuses(Send { reopen: true, ..send() });
    assert_eq!(refusal, Refusal::ContactUnreachable(Unreachable::NoConversation));
    assert!(desk.ticket.is_closed());
}

// What follows a send.

fn after() -> AfterSend {
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
    // `SOLD` may close it only because the transfer to its queue came before.
    let done = desk.does(Send { after: after(), ..send() });
    let row = &desk.ticket.row;
    assert_eq!(kinds(&done), [EventType::Transferred, EventType::Closed]);
    assert!(desk.ticket.is_closed());
    assert_eq!((row.queue_id, row.closed_at), (Some(SALES), Some(desk.now)));
    assert_eq!((row.wrapup_type_id, row.wrapup_note.as_deref()), (Some(SOLD), Some("sold one")));
    assert_eq!(row.first_response_at, Some(desk.now));
    assert_eq!(done.reply.after_send, None);
    assert_eq!(done.changes[0], Change::Ticket(row.clone()));
    assert_eq!(done.changes.last(), Some(&Change::Message(Box::new(done.reply.clone()))));
    assert_eq!(done.changes.len(), 4);
}

#[test]
fn a_webchat_send_may_reopen_and_close_in_one_go() {
    let mut desk = Desk::on(WEBCHAT);
    desk.does(close());
    let after = AfterSend { close_ticket: true, ..AfterSend::default() };
    let done = desk.does(Send { reopen: true, after, ..send() });
    assert_eq!(kinds(&done), [EventType::Reopened, EventType::Closed]);
    assert_eq!((desk.ticket.is_closed(), desk.ticket.row.reopen_count), (true, 1));
}

#[test]
fn on_a_phone_channel_what_follows_is_kept_with_the_message_until_it_is_taken() {
    let mut desk = Desk::on(PHONE);
    let done = desk.does(Send { after: after(), ..send() });
    assert!(desk.ticket.is_open());
    assert_eq!(desk.ticket.row.queue_id, Some(SUPPORT));
    assert_eq!(kinds(&done), []);
    let kept = json!({"answers": true, "queueId": 2, "closeTicket": true, "wrapupTypeId": 2, "wrapupNote": "sold one"});
    assert_eq!(done.reply.after_send, Some(kept.clone()));
    let read = serde_json::from_value::<AfterSend>(kept).expect("it is read back");
    assert_eq!(read, AfterSend { answers: true, ..after() });
}

#[test]
fn what_could_not_follow_a_send_is_refused_at_once_on_every_channel() {
    let refusals = [
        (AfterSend { queue_id: Some(NO_QUEUE), ..AfterSend::default() }, Refusal::NotFound),
        (
            AfterSend { queue_id: Some(OLD_QUEUE), ..AfterSend::default() },
            Refusal::invalid("queueId", "must be an active queue"),
        ),
        (AfterSend { wrapup_type_id: Some(NO_TYPE), ..after() }, Refusal::NotFound),
        // It closes in the queue the message moves it to, which requires a wrap-up, and one of its own.
        (
            AfterSend { wrapup_type_id: None, ..after() },
            Refusal::invalid("wrapupTypeId", "is required by the ticket's queue"),
        ),
        (
            AfterSend { wrapup_type_id: Some(SOLVED), ..after() },
            Refusal::invalid("wrapupTypeId", "must be linked to the ticket's queue"),
        ),
    ];
    for channel in [PHONE, WEBCHAT, SOCIAL] {
        for (after, refusal) in &refusals {
            let mut desk = Desk::on(channel);
            assert_eq!(desk.refuses(Send { after: after.clone(), ..send() }), *refusal, "{after:?}");
        }
    }
}

// Receive.

#[test]
fn what_a_contact_writes_is_received_and_counts_as_unread() {
    let mut desk = Desk::on(WEBCHAT);
    let session = Some(SessionId("s".to_owned()));
    let quoted = Some(MessageId::new(3));
    let said = Receive { quoted, session: session.clone(), client_id: Some("c1".to_owned()), ..receive("hi") };
    let done = desk.does(said);
    let message = &done.reply;
    assert_eq!((message.direction, message.status), (Direction::Inbound, MessageStatus::Received));
    assert_eq!((message.source, message.user_id, message.job_id), (Source::Contact, None, None));
    assert_eq!((message.quoted_message_id, &message.session_id), (quoted, &session));
    assert_eq!(message.client_id.as_deref(), Some("c1"));
    let recorded = [Change::Ticket(desk.ticket.row.clone()), Change::Message(Box::new(message.clone()))];
    assert_eq!(done.changes, recorded);
    assert_last(&desk, message);
    assert_eq!(desk.does(receive("still there?")).reply.id.0, message.id.0 + 1);
    assert_eq!(desk.ticket.row.unread_count, 2);
    assert_eq!(desk.ticket.row.first_response_at, None);
}

#[test]
fn a_closed_ticket_receives_nothing() {
    let mut desk = Desk::with_closed_ticket();
    assert_eq!(desk.refuses(receive("again")), Refusal::TicketClosed(desk.ticket.row.id));
}

// Notes.

#[test]
fn a_note_is_internal_and_not_the_last_thing_said() {
    let mut desk = Desk::on(WEBCHAT);
    let said = desk.does(receive("hi")).reply;
    let done = desk.does(AddNote { body: "careful".to_owned(), author: ana() });
    let note = &done.reply;
    assert_eq!((note.direction, note.kind), (Direction::Internal, MessageType::Note));
    assert_eq!((note.status, note.job_id, note.sent_at), (MessageStatus::Sent, None, Some(note.created_at)));
    assert_eq!((note.body.as_deref(), note.user_id), (Some("careful"), Some(ANA)));
    assert!(note.id > said.id);
    assert_last(&desk, &said);
    assert_eq!((desk.ticket.row.unread_count, desk.ticket.row.first_response_at), (1, None));
    assert_eq!(desk.ticket.row.updated_at, desk.now);
    assert_eq!(done.changes[0], Change::Ticket(desk.ticket.row.clone()));
    assert_eq!(done.changes.last(), Some(&Change::Message(Box::new(note.clone()))));
    assert_eq!(done.changes.len(), 3);
    let event = done.event();
    assert_eq!((event.kind, &event.from), (EventType::NoteAdded, &None));
    assert_eq!(event.to, Some(json!({"messageId": note.id})));
}

// Read and delivered.

#[test]
fn reading_clears_the_count_and_marks_everything_said_so_far() {
    let mut desk = Desk::on(PHONE);
    desk.does(receive("one"));
    let last = desk.does(receive("two")).reply;
    let done = desk.does(MarkRead { author: ana() });
    assert_eq!((desk.ticket.row.unread_count, desk.ticket.row.updated_at), (0, desk.now));
    assert_eq!(done.reply, desk.ticket);
    let up_to = last.id;
    let mark = reached(&desk, up_to);
    assert_eq!(done.changes[0], Change::Ticket(desk.ticket.row.clone()));
    assert_eq!(done.changes.last(), Some(&Change::Read(mark)));
    assert_eq!(done.changes.len(), 3);
    assert_eq!((done.event().kind, &done.event().from), (EventType::Read, &Some(json!({"unreadCount": 2}))));
    assert_eq!(done.event().to, Some(json!({"unreadCount": 0})));
}

#[test]
fn reading_what_is_read_changes_nothing() {
    let mut desk = Desk::on(PHONE);
    desk.does(receive("one"));
    desk.does(MarkRead { author: ana() });
    let before = desk.ticket.clone();
    let done = desk.does(MarkRead { author: ana() });
    assert_eq!((done.changes, &done.reply, &desk.ticket), (Vec::new(), &before, &before));
}

#[test]
fn a_delivery_marks_messages_and_leaves_the_ticket() {
    let mut desk = Desk::on(WEBCHAT);
    let sent = desk.does(send()).reply;
    let before = desk.ticket.clone();
    let done = desk.does(MarkDelivered { up_to: sent.id });
    let mark = reached(&desk, sent.id);
    assert_eq!(done.changes, [Change::Delivered(mark)]);
    assert_eq!(desk.ticket.row, before.row);
    let again = desk.does(MarkDelivered { up_to: sent.id });
    assert_eq!(again.changes, [], "what has arrived arrives once");
}

#[test]
fn what_is_seen_moves_forward_and_no_further_than_what_was_said() {
    let mut desk = Desk::on(WEBCHAT);
    let first = desk.does(send()).reply;
    let second = desk.does(send()).reply;
    let later = MessageId::new(second.id.0 + 1000);
    let done = desk.does(MarkSeen { up_to: later });
    assert_eq!(done.changes, [Change::Seen(reached(&desk, second.id))]);
    for up_to in [later, second.id, first.id] {
        assert_eq!(desk.does(MarkSeen { up_to }).changes, [], "{up_to}");
    }
    assert_eq!(desk.does(MarkDelivered { up_to: second.id }).changes, [], "what was read has arrived");
    let third = desk.does(send()).reply;
    assert_eq!(desk.does(MarkSeen { up_to: third.id }).changes, [Change::Seen(reached(&desk, third.id))]);
}

fn reached(desk: &Desk, up_to: MessageId) -> DeliveryReceipt {
    let row = &desk.ticket.row;
    let conversation = Some((row.channel_id, row.contact_id));
    DeliveryReceipt { company_id: COMPANY, ticket_id: row.id, conversation, up_to, at: desk.now }
}

#[test]
fn showing_a_ticket_records_nothing() {
    let mut desk = Desk::on(PHONE);
    let done = desk.does(Show);
    assert_eq!((done.changes, &done.reply), (Vec::new(), &desk.ticket));
}

#[test]
fn an_event_names_things_as_they_were_called_then() {
    let mut desk = Desk::on(PHONE);
    let ben = |name: &str| json!({"queue": {"id": 1, "name": "Support"}, "assignedTo": {"id": 2, "name": name}});
    let came = desk.does(Transfer { queue: None, user: Some(Some(BEN)), author: ana() });
    desk.organization.users.get_mut(&BEN).expect("Ben").name = "Benjamin".to_owned();
    let went = desk.does(Transfer { queue: None, user: Some(None), author: ana() });
    assert_eq!((came.event().to.clone(), went.event().from.clone()), (Some(ben("Ben")), Some(ben("Benjamin"))));
}
