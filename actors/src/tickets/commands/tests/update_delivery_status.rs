//! Follow-up actions of a send, once the channel has the message.

use chrono::{DateTime, Utc};
use hotline_persistence::tables::messages::{DeliveryStatus, MessageError};
use hotline_persistence::tables::source::Source;
use hotline_persistence::tables::ticket_events::EventType;
use hotline_persistence::{Change, MessageId};

use super::fixture::*;
use crate::tickets::{AfterSend, Author, Close, Receive, Reopen, Send, Transfer, UpdateDeliveryStatus};

/// Ana sends, and the ticket is then moved to sales, with its wrap-up, and closed.
fn sent(desk: &mut Desk) -> MessageId {
    let after = AfterSend {
        queue_id: Some(SALES),
        close_ticket: true,
        wrapup_type_id: Some(SOLD),
        wrapup_note: Some("two of them".to_owned()),
        ..AfterSend::default()
    };
    desk.does(Send { after, ..Send::text("hello", ana()) }).reply.id
}

fn progress(message: MessageId, milestone: DeliveryStatus) -> UpdateDeliveryStatus {
    UpdateDeliveryStatus {
        message,
        milestone,
        at: DateTime::UNIX_EPOCH,
        provider_message_id: Some(format!("wamid.{message}")),
    }
}

fn failed() -> DeliveryStatus {
    DeliveryStatus::Failed(MessageError { code: "131026".to_owned(), message: "undeliverable".to_owned() })
}

fn kinds<R>(done: &Done<R>) -> Vec<EventType> {
    done.events().iter().map(|event| event.kind).collect()
}

#[test]
fn the_first_word_that_the_provider_has_the_message_moves_and_closes_the_ticket() {
    for first in [DeliveryStatus::Sent, DeliveryStatus::Delivered, DeliveryStatus::Read] {
        let mut desk = Desk::on(PHONE);
        let message = sent(&mut desk);
        assert!(desk.ticket.is_open());
        let done = desk.does(progress(message, first.clone()));
        // All in one entry: the ticket, the status, the events.
        assert!(matches!(done.changes[0], Change::Ticket(_)) && matches!(done.changes[1], Change::Progress(_)));
        assert_eq!(kinds(&done), [EventType::Transferred, EventType::Closed], "{first:?}");
        assert!(done.events().iter().all(|event| event.user_id == Some(ANA) && event.source == Source::User));
        assert!(desk.ticket.is_closed());
        let row = &desk.ticket.row;
        assert_eq!((row.queue_id, row.wrapup_type_id), (Some(SALES), Some(SOLD)));
        assert_eq!(row.wrapup_note.as_deref(), Some("two of them"));

        // Further reports do not repeat the action.
        for milestone in [DeliveryStatus::Sent, DeliveryStatus::Delivered, DeliveryStatus::Read, failed()] {
            let done = desk.does(progress(message, milestone));
            assert!(matches!(&done.changes[..], [Change::Progress(_)]), "{:?}", done.changes);
        }
    }
}

#[test]
fn a_failed_message_is_followed_by_nothing_whatever_is_told_later() {
    let mut desk = Desk::on(PHONE);
    let message = sent(&mut desk);
    for milestone in [failed(), DeliveryStatus::Sent] {
        let done = desk.does(progress(message, milestone));
        assert!(matches!(&done.changes[..], [Change::Progress(_)]), "{:?}", done.changes);
    }
    assert!(desk.ticket.is_open() && desk.ticket.following.is_none());
}

#[test]
fn what_has_become_impossible_is_left_out_and_the_rest_is_done() {
    // The queue was closed meanwhile: the ticket stays where it is, whose wrap-up types it then needs.
    let mut desk = Desk::on(PHONE);
    let after = AfterSend { queue_id: Some(SALES), close_ticket: true, ..AfterSend::default() };
    let strict = desk.refuses(Send { after: after.clone(), ..Send::text("hello", ana()) });
    assert!(matches!(strict, crate::Refusal::Invalid(_)), "checked when it is accepted: {strict:?}");
    let after = AfterSend { wrapup_type_id: Some(SOLVED), queue_id: None, ..after };
    let message = desk.does(Send { after, ..Send::text("hello", ana()) }).reply.id;
    desk.does(Transfer { queue: Some(SALES), user: None, author: Author::API });
    let done = desk.does(progress(message, DeliveryStatus::Sent));
    assert_eq!(kinds(&done), [], "the wrap-up is not the queue's");
    assert!(desk.ticket.is_open());

    // Somebody has closed it: the message's status is recorded all the same.
    let mut desk = Desk::on(PHONE);
    let message = sent(&mut desk);
    desk.does(Close { wrapup_type: Some(SOLVED), wrapup_note: None, author: ana() });
    let done = desk.does(progress(message, DeliveryStatus::Sent));
    assert_eq!(kinds(&done), []);
    assert_eq!(desk.ticket.row.wrapup_type_id, Some(SOLVED));
}

#[test]
fn each_message_is_followed_by_its_own() {
    let mut desk = Desk::on(PHONE);
    let send = |queue| Send {
        after: AfterSend { queue_id: Some(queue), ..AfterSend::default() },
        ..Send::text("hello", ana())
    };
    let first = desk.does(send(SALES)).reply.id;
    let second = desk.does(send(SUPPORT)).reply.id;
    let plain = desk.does(Send::text("hello", ana())).reply.id;
    assert_eq!(kinds(&desk.does(progress(plain, DeliveryStatus::Sent))), []);
    assert_eq!(kinds(&desk.does(progress(first, DeliveryStatus::Sent))), [EventType::Transferred]);
    assert_eq!(desk.ticket.row.queue_id, Some(SALES));
    assert_eq!(kinds(&desk.does(progress(second, DeliveryStatus::Sent))), [EventType::Transferred]);
    assert_eq!(desk.ticket.row.queue_id, Some(SUPPORT));
}

// What counts as an answer.

/// What the ticket says of its first response and of who waits.
fn answers(desk: &Desk) -> (Option<DateTime<Utc>>, Option<DateTime<Utc>>) {
    (desk.ticket.row.first_response_at, desk.ticket.row.waiting_since)
}

#[test]
fn a_message_answers_once_it_has_left_and_as_of_when_it_was_written() {
    for milestone in [DeliveryStatus::Sent, DeliveryStatus::Delivered, DeliveryStatus::Read] {
        let mut desk = Desk::on(PHONE);
        desk.does(Receive::text("hi"));
        let asked = desk.now;
        let lost = desk.does(Send::text("one", ana())).reply.id;
        desk.does(progress(lost, failed()));
        assert_eq!(answers(&desk), (None, Some(asked)), "a failed one is none");
        let message = desk.does(Send::text("two", Author::API)).reply;
        let later = desk.does(Send::text("three", ana())).reply;
        assert_eq!(answers(&desk), (None, Some(asked)), "the contact still waits");
        desk.does(progress(message.id, milestone));
        assert_eq!(answers(&desk), (Some(message.created_at), None));
        desk.does(progress(later.id, DeliveryStatus::Sent));
        assert_eq!(answers(&desk), (Some(message.created_at), None), "the first one is the first");
    }
}

#[test]
fn who_has_written_again_before_the_answer_left_waits_for_another() {
    let mut desk = Desk::on(PHONE);
    desk.does(Receive::text("hi"));
    let message = desk.does(Send::text("hello", ana())).reply;
    desk.does(Receive::text("and one more thing"));
    let asked = desk.now;
    desk.does(progress(message.id, DeliveryStatus::Sent));
    assert_eq!(answers(&desk), (Some(message.created_at), Some(asked)));
}

#[test]
fn an_answer_of_an_earlier_opening_is_none_of_this_one() {
    let mut desk = Desk::on(PHONE);
    let early = desk.does(Send::text("hello", ana())).reply;
    desk.does(Close { wrapup_type: Some(SOLVED), wrapup_note: None, author: ana() });
    desk.does(Reopen { author: ana() });
    desk.does(progress(early.id, DeliveryStatus::Sent));
    assert_eq!(answers(&desk), (None, None));
    let message = desk.does(Send::text("again", ana())).reply;
    desk.does(progress(message.id, DeliveryStatus::Sent));
    assert_eq!(answers(&desk), (Some(message.created_at), None));
}
