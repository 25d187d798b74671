//! Follow-up actions of a send, once the channel has the message.

use chrono::{DateTime, Utc};
use hotline_persistence::tables::messages::{DeliveryStatus, MessageError};
use hotline_persistence::tables::source::Source;
use hotline_persistence::tables::ticket_events::EventType;
use hotline_persistence::{Change, MessageId};

use super::fixture::*;
use crate::tickets::{AfterSend, Author, Close, Receive, Reopen, Send, Transfer, UpdateDeliveryStatus};

/// Ana sends a message whose follow-up moves the ticket to sales and closes it with a wrap-up. Returns the
/// message's id.
fn send_with_follow_up(desk: &mut Desk) -> MessageId {
    let after = AfterSend {
        queue_id: Some(SALES),
        close_ticket: true,
        wrapup_type_id: Some(SOLD),
        wrapup_note: Some("two of them".to_owned()),
        ..AfterSend::default()
    };
    desk.run(Send { after, ..Send::text("hello", ana()) }).reply.id
}

fn status_update(message: MessageId, delivery_status: DeliveryStatus) -> UpdateDeliveryStatus {
    UpdateDeliveryStatus {
        message,
        delivery_status,
        at: DateTime::UNIX_EPOCH,
        provider_message_id: Some(format!("wamid.{message}")),
    }
}

fn failed_status() -> DeliveryStatus {
    DeliveryStatus::Failed(MessageError { code: "131026".to_owned(), message: "undeliverable".to_owned() })
}

fn event_types<R>(result: &CommandResult<R>) -> Vec<EventType> {
    result.events().iter().map(|event| event.kind).collect()
}

#[test]
fn the_first_status_of_a_sent_message_transfers_and_closes_the_ticket() {
    for first in [DeliveryStatus::Sent, DeliveryStatus::Delivered, DeliveryStatus::Read] {
        let mut desk = Desk::on(PHONE);
        let message = send_with_follow_up(&mut desk);
        assert!(desk.ticket.is_open());
        let result = desk.run(status_update(message, first.clone()));
        // All in one entry: the ticket, the status, the events.
        assert!(matches!(result.changes[0], Change::Ticket(_)) && matches!(result.changes[1], Change::Progress(_)));
        assert_eq!(event_types(&result), [EventType::Transferred, EventType::Closed], "{first:?}");
        assert!(result.events().iter().all(|event| event.user_id == Some(ANA) && event.source == Source::User));
        assert!(desk.ticket.is_closed());
        let row = &desk.ticket.row;
        assert_eq!((row.queue_id, row.wrapup_type_id), (Some(SALES), Some(SOLD)));
        assert_eq!(row.wrapup_note.as_deref(), Some("two of them"));

        // Further statuses do not repeat the follow-up.
        for delivery_status in [DeliveryStatus::Sent, DeliveryStatus::Delivered, DeliveryStatus::Read, failed_status()]
        {
            let result = desk.run(status_update(message, delivery_status));
            assert!(matches!(&result.changes[..], [Change::Progress(_)]), "{:?}", result.changes);
        }
    }
}

#[test]
fn a_failed_message_has_no_follow_up_even_if_later_statuses_arrive() {
    let mut desk = Desk::on(PHONE);
    let message = send_with_follow_up(&mut desk);
    for delivery_status in [failed_status(), DeliveryStatus::Sent] {
        let result = desk.run(status_update(message, delivery_status));
        assert!(matches!(&result.changes[..], [Change::Progress(_)]), "{:?}", result.changes);
    }
    assert!(desk.ticket.is_open() && desk.ticket.follow_ups.is_none());
}

#[test]
fn an_impossible_step_of_a_follow_up_is_skipped() {
    // The ticket was moved meanwhile: the wrap-up type of the follow-up is not linked to its new queue.
    let mut desk = Desk::on(PHONE);
    let after = AfterSend { queue_id: Some(SALES), close_ticket: true, ..AfterSend::default() };
    let refusal = desk.expect_refusal(Send { after: after.clone(), ..Send::text("hello", ana()) });
    assert!(matches!(refusal, crate::Refusal::Invalid(_)), "the follow-up is checked with the message: {refusal:?}");
    let after = AfterSend { wrapup_type_id: Some(SOLVED), queue_id: None, ..after };
    let message = desk.run(Send { after, ..Send::text("hello", ana()) }).reply.id;
    desk.run(Transfer { queue: Some(SALES), user: None, author: Author::API });
    let result = desk.run(status_update(message, DeliveryStatus::Sent));
    assert_eq!(event_types(&result), [], "the wrap-up type is not linked to the queue");
    assert!(desk.ticket.is_open());

    // A user has closed the ticket: the message's status is still recorded.
    let mut desk = Desk::on(PHONE);
    let message = send_with_follow_up(&mut desk);
    desk.run(Close { wrapup_type: Some(SOLVED), wrapup_note: None, author: ana() });
    let result = desk.run(status_update(message, DeliveryStatus::Sent));
    assert_eq!(event_types(&result), []);
    assert_eq!(desk.ticket.row.wrapup_type_id, Some(SOLVED));
}

#[test]
fn each_message_has_its_own_follow_up() {
    let mut desk = Desk::on(PHONE);
    let send = |queue| Send {
        after: AfterSend { queue_id: Some(queue), ..AfterSend::default() },
        ..Send::text("hello", ana())
    };
    let first = desk.run(send(SALES)).reply.id;
    let second = desk.run(send(SUPPORT)).reply.id;
    let without_follow_up = desk.run(Send::text("hello", ana())).reply.id;
    assert_eq!(event_types(&desk.run(status_update(without_follow_up, DeliveryStatus::Sent))), []);
    assert_eq!(event_types(&desk.run(status_update(first, DeliveryStatus::Sent))), [EventType::Transferred]);
    assert_eq!(desk.ticket.row.queue_id, Some(SALES));
    assert_eq!(event_types(&desk.run(status_update(second, DeliveryStatus::Sent))), [EventType::Transferred]);
    assert_eq!(desk.ticket.row.queue_id, Some(SUPPORT));
}

// What counts as an answer.

/// The time of the ticket's first response, and the time since which its contact waits.
fn answer_times(desk: &Desk) -> (Option<DateTime<Utc>>, Option<DateTime<Utc>>) {
    (desk.ticket.row.first_response_at, desk.ticket.row.waiting_since)
}

#[test]
fn a_sent_message_counts_as_an_answer_at_the_time_it_was_written() {
    for delivery_status in [DeliveryStatus::Sent, DeliveryStatus::Delivered, DeliveryStatus::Read] {
        let mut desk = Desk::on(PHONE);
        desk.run(Receive::text("hi"));
        let asked_at = desk.now;
        let failed_message = desk.run(Send::text("one", ana())).reply.id;
        desk.run(status_update(failed_message, failed_status()));
        assert_eq!(answer_times(&desk), (None, Some(asked_at)), "a failed message is no answer");
        let message = desk.run(Send::text("two", Author::API)).reply;
        let later = desk.run(Send::text("three", ana())).reply;
        assert_eq!(answer_times(&desk), (None, Some(asked_at)), "a queued message is no answer");
        desk.run(status_update(message.id, delivery_status));
        assert_eq!(answer_times(&desk), (Some(message.created_at), None));
        desk.run(status_update(later.id, DeliveryStatus::Sent));
        assert_eq!(answer_times(&desk), (Some(message.created_at), None), "a later answer does not replace the first");
    }
}

#[test]
fn a_contact_who_writes_before_the_answer_is_sent_keeps_waiting() {
    let mut desk = Desk::on(PHONE);
    desk.run(Receive::text("hi"));
    let message = desk.run(Send::text("hello", ana())).reply;
    desk.run(Receive::text("and one more thing"));
    let asked_at = desk.now;
    desk.run(status_update(message.id, DeliveryStatus::Sent));
    assert_eq!(answer_times(&desk), (Some(message.created_at), Some(asked_at)));
}

#[test]
fn an_answer_of_an_earlier_opening_does_not_count_for_this_one() {
    let mut desk = Desk::on(PHONE);
    let early = desk.run(Send::text("hello", ana())).reply;
    desk.run(Close { wrapup_type: Some(SOLVED), wrapup_note: None, author: ana() });
    desk.run(Reopen { author: ana() });
    desk.run(status_update(early.id, DeliveryStatus::Sent));
    assert_eq!(answer_times(&desk), (None, None));
    let message = desk.run(Send::text("again", ana())).reply;
    desk.run(status_update(message.id, DeliveryStatus::Sent));
    assert_eq!(answer_times(&desk), (Some(message.created_at), None));
}
