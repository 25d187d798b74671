//! Opening, transferring, closing and reopening: every transition of the ticket state machine.

use hotline_persistence::tables::source::Source;
use hotline_persistence::tables::ticket_events::EventType;
use hotline_persistence::tables::tickets::TicketStatus;
use hotline_persistence::{Change, QueueId, UserId, WrapupTypeId};
use serde_json::json;

use super::fixture::*;
use crate::Refusal;
use crate::tickets::{
    AddNote, Author, Close, MarkRead, Open, Receive, Release, Reopen, Send, Show, Transfer, default_queue,
};

fn to_queue(queue: QueueId) -> Transfer {
    Transfer { queue: Some(queue), user: None, author: ana() }
}

fn to_user(user: UserId) -> Transfer {
    Transfer { queue: None, user: Some(Some(user)), author: ana() }
}

fn unassign() -> Transfer {
    Transfer { queue: None, user: Some(None), author: ana() }
}

fn close(wrapup_type: Option<WrapupTypeId>) -> Close {
    Close { wrapup_type, wrapup_note: None, author: ana() }
}

fn reopen() -> Reopen {
    Reopen { author: ana() }
}

fn in_queue(queue: QueueId) -> Desk {
    Desk::opened(Open { queue: Some(queue), ..open(PHONE) }).expect("the ticket opens").0
}

fn invalid(field: &str, reason: &str) -> Refusal {
    Refusal::invalid(field, reason)
}

fn refused(open: Open) -> Refusal {
    Desk::opened(open).err().expect("the opening is refused")
}

// Opening.

#[test]
fn a_new_ticket_is_open_unread_and_never_reopened() {
    let row = Desk::on(PHONE).ticket.row;
    assert_eq!((row.status, row.unread_count, row.reopen_count), (TicketStatus::Open, 0, 0));
    assert_eq!((row.closed_at, row.first_response_at, row.last_message_id), (None, None, None));
    assert_eq!((row.wrapup_type_id, row.wrapup_note), (None, None));
    assert_eq!((row.opened_at, row.updated_at), (row.created_at, row.created_at));
    assert_eq!(row.creation_source, Source::User);
}

#[test]
fn a_new_ticket_goes_to_its_channels_queue_unless_it_names_another() {
    assert_eq!(Desk::on(PHONE).ticket.row.queue_id, Some(SUPPORT));
    assert_eq!(Desk::on(WEBCHAT).ticket.row.queue_id, None);
    assert_eq!(in_queue(SALES).ticket.row.queue_id, Some(SALES));
}

#[test]
fn opening_records_the_row_the_event_and_the_contacts_channel() {
    let (desk, opening) = Desk::opened(Open { user: Some(BEN), ..open(PHONE) }).expect("the ticket opens");
    let [Change::Ticket(row), Change::Event(event), Change::ContactChannel(channel)] = &opening.changes[..] else {
        panic!("not the three changes of an opening: {:?}", opening.changes);
    };
    assert_eq!(*row, desk.ticket.row);
    assert_eq!((event.kind, event.ticket_id, event.from.as_ref()), (EventType::Opened, row.id, None));
    let to = json!({
        "status": "open",
        "queue": {"id": 1, "name": "Support"},
        "assignedTo": {"id": 2, "name": "Ben"},
    });
    assert_eq!(event.to, Some(to));
    assert_eq!((event.user_id, event.user_name.as_deref(), event.source), (Some(ANA), Some("Ana"), Source::User));
    assert_eq!((channel.contact_id, channel.channel_id, channel.at), (row.contact_id, PHONE, row.opened_at));
}

#[test]
fn a_ticket_is_not_opened_with_a_missing_channel_queue_or_user() {
    assert_eq!(refused(open(MISSING_CHANNEL)), Refusal::NotFound);
    assert_eq!(refused(Open { queue: Some(MISSING_QUEUE), ..open(PHONE) }), Refusal::NotFound);
    assert_eq!(refused(Open { user: Some(MISSING_USER), ..open(PHONE) }), Refusal::NotFound);
}

#[test]
fn a_ticket_is_not_opened_for_a_queue_or_user_that_may_not_have_it() {
    let inactive_queue = Open { queue: Some(OLD_QUEUE), ..open(PHONE) };
    assert_eq!(refused(inactive_queue), invalid("queueId", "must be an active queue"));
    let inactive_user = Open { user: Some(EVA), ..open(PHONE) };
    assert_eq!(refused(inactive_user), invalid("userId", "must be an active user"));
    // The channel's tickets go to `SUPPORT`, of which Carl is not an agent.
    let user_of_another_queue = Open { user: Some(CARL), ..open(PHONE) };
    assert_eq!(refused(user_of_another_queue), invalid("userId", "must belong to the queue"));
}

#[test]
fn without_a_queue_any_active_user_may_have_a_new_ticket() {
    let (desk, _) = Desk::opened(Open { user: Some(CARL), ..open(WEBCHAT) }).expect("the ticket opens");
    assert_eq!((desk.ticket.row.queue_id, desk.ticket.row.user_id), (None, Some(CARL)));
}

#[test]
fn a_new_ticket_does_not_wait_in_an_inactive_queue() {
    let mut organization = organization();
    organization.queues.get_mut(&SUPPORT).expect("the queue").row.active = false;
    assert_eq!(default_queue(&organization, &organization.channels[&PHONE]), None);
    organization.queues.get_mut(&SUPPORT).expect("the queue").row.active = true;
    assert_eq!(default_queue(&organization, &organization.channels[&PHONE]), Some(SUPPORT));
}

// Transfer.

#[test]
fn a_transfer_moves_the_ticket_to_a_queue_and_a_user() {
    let mut desk = Desk::on(PHONE);
    let result = desk.run(Transfer { queue: Some(SALES), user: Some(Some(CARL)), author: ana() });
    assert_eq!((desk.ticket.row.queue_id, desk.ticket.row.user_id), (Some(SALES), Some(CARL)));
    assert_eq!(desk.ticket.row.updated_at, desk.now);
    assert_eq!(result.reply, desk.ticket);
    assert_eq!(result.changes[0], Change::Ticket(desk.ticket.row.clone()));
    assert_eq!(result.changes.len(), 2);
    let event = result.event();
    assert_eq!((event.kind, event.created_at), (EventType::Transferred, desk.now));
    assert_eq!(event.from, Some(json!({"queue": {"id": 1, "name": "Support"}, "assignedTo": null})));
    let to = json!({"queue": {"id": 2, "name": "Sales"}, "assignedTo": {"id": 3, "name": "Carl"}});
    assert_eq!(event.to, Some(to));
}

#[test]
fn a_transfer_to_where_the_ticket_already_is_changes_nothing() {
    let mut desk = Desk::on(PHONE);
    desk.run(to_user(BEN));
    let before = desk.ticket.clone();
    let to_both = Transfer { queue: Some(SUPPORT), user: Some(Some(BEN)), author: ana() };
    for transfer in [to_user(BEN), to_queue(SUPPORT), to_both] {
        let result = desk.run(transfer);
        assert_eq!((result.changes, result.reply), (vec![], before.clone()));
    }
    // An invalid queue is still refused.
    assert_eq!(desk.expect_refusal(to_queue(OLD_QUEUE)), invalid("queueId", "must be an active queue"));
    desk.run(unassign());
    assert_eq!(desk.run(unassign()).changes, [], "already unassigned");
}

#[test]
fn a_ticket_may_stay_in_a_queue_and_with_a_user_that_are_no_longer_active() {
    let mut desk = Desk::on(PHONE);
    desk.run(to_user(BEN));
    let before = desk.ticket.clone();
    let to_both = |user| Transfer { queue: Some(SUPPORT), user: Some(Some(user)), author: ana() };
    desk.organization.queues.get_mut(&SUPPORT).expect("the queue").row.active = false;
    desk.organization.users.get_mut(&BEN).expect("the user").active = false;
    for transfer in [to_user(BEN), to_queue(SUPPORT), to_both(BEN)] {
        let result = desk.run(transfer);
        assert_eq!((result.changes, result.reply), (vec![], before.clone()));
    }
    desk.organization.queues.get_mut(&SUPPORT).expect("the queue").users.retain(|user| *user != BEN);
    for transfer in [to_user(BEN), to_queue(SUPPORT), to_both(BEN)] {
        assert_eq!(desk.run(transfer).changes, [], "the user has also left the queue");
    }
    desk.run(to_both(ANA));
    assert_eq!(desk.ticket.row.user_id, Some(ANA));
    assert_eq!(desk.expect_refusal(to_user(BEN)), invalid("userId", "must be an active user"));
    desk.run(to_queue(SALES));
    assert_eq!(desk.expect_refusal(to_queue(SUPPORT)), invalid("queueId", "must be an active queue"));
}

#[test]
fn a_transfer_to_a_user_keeps_the_queue() {
    let mut desk = Desk::on(PHONE);
    desk.run(to_user(BEN));
    assert_eq!((desk.ticket.row.queue_id, desk.ticket.row.user_id), (Some(SUPPORT), Some(BEN)));
}

#[test]
fn a_transfer_to_no_user_unassigns_and_keeps_the_queue() {
    let mut desk = Desk::on(PHONE);
    desk.run(to_user(BEN));
    let result = desk.run(unassign());
    assert_eq!((desk.ticket.row.queue_id, desk.ticket.row.user_id), (Some(SUPPORT), None));
    assert_eq!(result.event().to, Some(json!({"queue": {"id": 1, "name": "Support"}, "assignedTo": null})));
}

#[test]
fn a_user_who_does_not_belong_to_the_new_queue_is_unassigned() {
    let mut desk = Desk::on(PHONE);
    desk.run(to_user(BEN));
    let result = desk.run(to_queue(SALES));
    assert_eq!((desk.ticket.row.queue_id, desk.ticket.row.user_id), (Some(SALES), None));
    let from = json!({"queue": {"id": 1, "name": "Support"}, "assignedTo": {"id": 2, "name": "Ben"}});
    assert_eq!(result.event().from, Some(from));
}

#[test]
fn a_user_who_belongs_to_the_new_queue_stays() {
    let mut desk = Desk::on(PHONE);
    desk.run(to_user(ANA));
    desk.run(to_queue(SALES));
    assert_eq!((desk.ticket.row.queue_id, desk.ticket.row.user_id), (Some(SALES), Some(ANA)));
}

#[test]
fn a_user_must_belong_to_the_queue_the_ticket_is_in_or_goes_to() {
    let not_in_queue = invalid("userId", "must belong to the queue");
    let mut desk = Desk::on(PHONE);
    assert_eq!(desk.expect_refusal(to_user(CARL)), not_in_queue);
    // In the old queue, but not in the new one.
    let transfer = Transfer { queue: Some(SALES), user: Some(Some(BEN)), author: ana() };
    assert_eq!(desk.expect_refusal(transfer), not_in_queue);
}

#[test]
fn any_active_user_may_have_a_ticket_without_a_queue() {
    let mut desk = Desk::on(WEBCHAT);
    desk.run(to_user(CARL));
    assert_eq!((desk.ticket.row.queue_id, desk.ticket.row.user_id), (None, Some(CARL)));
}

#[test]
fn a_transfer_to_a_missing_queue_or_user_is_not_found() {
    let mut desk = Desk::on(PHONE);
    assert_eq!(desk.expect_refusal(to_queue(MISSING_QUEUE)), Refusal::NotFound);
    assert_eq!(desk.expect_refusal(to_user(MISSING_USER)), Refusal::NotFound);
}

#[test]
fn a_transfer_to_an_inactive_queue_or_user_is_refused() {
    let mut desk = Desk::on(PHONE);
    assert_eq!(desk.expect_refusal(to_queue(OLD_QUEUE)), invalid("queueId", "must be an active queue"));
    assert_eq!(desk.expect_refusal(to_user(EVA)), invalid("userId", "must be an active user"));
}

// Close.

#[test]
fn closing_records_the_wrapup() {
    let mut desk = Desk::on(PHONE);
    let note = Some("Sent a new one.".to_owned());
    let result = desk.run(Close { wrapup_type: Some(SOLVED), wrapup_note: note.clone(), author: ana() });
    let row = &desk.ticket.row;
    assert_eq!((row.status, row.closed_at, row.updated_at), (TicketStatus::Closed, Some(desk.now), desk.now));
    assert_eq!((row.wrapup_type_id, row.wrapup_note.as_deref()), (Some(SOLVED), note.as_deref()));
    assert_eq!(result.reply, desk.ticket);
    assert_eq!(result.changes[0], Change::Ticket(row.clone()));
    assert_eq!(result.changes.len(), 2);
    assert_eq!((result.event().kind, &result.event().from), (EventType::Closed, &Some(json!({"status": "open"}))));
    let to = json!({
        "status": "closed",
        "wrapupType": {"id": 1, "name": "Solved"},
        "wrapupNote": "Sent a new one.",
    });
    assert_eq!(result.event().to, Some(to));
}

// What a closed ticket refuses and accepts.

#[test]
fn a_closed_ticket_cannot_be_closed_again() {
    let mut desk = Desk::with_closed_ticket();
    let closed = Refusal::TicketClosed(desk.ticket.row.id);
    assert_eq!(desk.expect_refusal(close(None)), closed);
    // The closed state is reported before other errors.
    assert_eq!(desk.expect_refusal(close(Some(MISSING_TYPE))), closed);
}

#[test]
fn a_closed_ticket_cannot_be_transferred() {
    let mut desk = Desk::with_closed_ticket();
    let closed = Refusal::TicketClosed(desk.ticket.row.id);
    assert_eq!(desk.expect_refusal(to_queue(SALES)), closed);
    assert_eq!(desk.expect_refusal(to_user(BEN)), closed);
    assert_eq!(desk.expect_refusal(unassign()), closed);
}

#[test]
fn a_closed_ticket_accepts_no_note() {
    let mut desk = Desk::with_closed_ticket();
    let closed = Refusal::TicketClosed(desk.ticket.row.id);
    assert_eq!(desk.expect_refusal(AddNote { body: "late".to_owned(), author: ana() }), closed);
}

#[test]
fn a_closed_ticket_can_be_shown_and_marked_as_read() {
    let mut desk = Desk::on(PHONE);
    desk.run(Receive::text("hi"));
    desk.run(close(None));
    assert_eq!(desk.run(Show).reply, desk.ticket);
    assert_eq!(desk.run(MarkRead { author: ana() }).reply.row.unread_count, 0);
    assert!(desk.ticket.is_closed());
}

// Reopen.

#[test]
fn reopening_clears_the_fields_of_the_last_opening() {
    let mut desk = Desk::on(WEBCHAT);
    let author = Author::API;
    desk.run(Send::text("hi", author.clone()));
    desk.run(Close { wrapup_type: Some(SOLVED), wrapup_note: Some("done".to_owned()), author: author.clone() });
    let closed = desk.ticket.row.clone();
    assert!(closed.first_response_at.is_some());

    let result = desk.run(Reopen { author });
    let row = &desk.ticket.row;
    assert_eq!((row.status, row.reopen_count), (TicketStatus::Open, 1));
    assert_eq!((row.wrapup_type_id, &row.wrapup_note), (None, &None));
    assert_eq!((row.closed_at, row.first_response_at), (None, None));
    assert_eq!((row.opened_at, row.updated_at, row.created_at), (desk.now, desk.now, closed.created_at));
    assert_eq!((row.queue_id, row.last_message_id), (closed.queue_id, closed.last_message_id));
    assert_eq!(result.reply, desk.ticket);
    assert_eq!(result.changes[0], Change::Ticket(row.clone()));
    assert_eq!(result.changes.len(), 2);
    let event = result.event();
    assert_eq!((event.kind, event.user_id, event.source), (EventType::Reopened, None, Source::Api));
    let from = json!({"status": "closed", "wrapupType": {"id": 1, "name": "Solved"}, "wrapupNote": "done"});
    assert_eq!((&event.from, &event.to), (&Some(from), &Some(json!({"status": "open"}))));
}

#[test]
fn every_reopening_counts() {
    let mut desk = Desk::with_closed_ticket();
    for count in 1..=3 {
        assert_eq!(desk.run(reopen()).reply.row.reopen_count, count);
        desk.run(close(None));
    }
}

#[test]
fn a_ticket_is_not_reopened_while_another_one_of_the_contact_is_open() {
    let mut desk = Desk::with_closed_ticket();
    desk.open_elsewhere = Some(OTHER_TICKET);
    assert_eq!(desk.expect_refusal(reopen()), Refusal::AlreadyOpen(OTHER_TICKET));
    desk.open_elsewhere = None;
    desk.run(reopen());
    assert!(desk.ticket.is_open());
}

#[test]
fn a_reopened_ticket_is_not_assigned_to_a_user_who_is_inactive_or_has_left() {
    for leave in [
        |desk: &mut Desk| drop(desk.organization.users.remove(&BEN)),
        |desk: &mut Desk| {
            desk.organization.users.get_mut(&BEN).expect("Ben").active = false;
        },
        |desk: &mut Desk| {
            desk.organization.queues.get_mut(&SUPPORT).expect("Support").users.remove(&BEN);
        },
    ] {
        let mut desk = in_queue(SUPPORT);
        desk.run(to_user(BEN));
        desk.run(close(None));
        assert_eq!(desk.run(reopen()).reply.row.user_id, Some(BEN), "an active user keeps the ticket");
        desk.run(close(None));
        leave(&mut desk);
        let result = desk.run(reopen());
        assert_eq!((result.reply.row.user_id, result.reply.row.queue_id), (None, Some(SUPPORT)));
        let kinds: Vec<EventType> = result.events().iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [EventType::Reopened, EventType::Transferred]);
        assert_eq!(result.events()[1].to, Some(json!({"queue": {"id": 1, "name": "Support"}, "assignedTo": null})));
    }
}

#[test]
fn an_open_ticket_cannot_be_reopened() {
    let refusal = Desk::on(PHONE).expect_refusal(reopen());
    assert!(matches!(&refusal, Refusal::Conflict(conflict) if conflict.reason == "open"), "{refusal:?}");
}

// Release.

#[test]
fn a_leaving_user_is_unassigned_from_their_open_tickets() {
    let release = |user| Release { user, queue: None, author: Author::API };
    let mut desk = in_queue(SUPPORT);
    assert_eq!(desk.run(release(BEN)).changes, [], "unassigned");
    desk.run(to_user(BEN));
    assert_eq!(desk.run(release(ANA)).changes, [], "assigned to another user");
    let result = desk.run(release(BEN));
    assert_eq!((desk.ticket.row.user_id, desk.ticket.row.queue_id), (None, Some(SUPPORT)));
    assert_eq!(result.changes.len(), 2);
    let queue = json!({"id": 1, "name": "Support"});
    let event = result.event();
    assert_eq!((event.kind, event.source), (EventType::Transferred, Source::Api));
    assert_eq!(event.from, Some(json!({"queue": queue, "assignedTo": {"id": 2, "name": "Ben"}})));
    assert_eq!(event.to, Some(json!({"queue": queue, "assignedTo": null})));
    desk.run(to_user(BEN));
    desk.run(close(None));
    assert_eq!(desk.run(release(BEN)).changes, [], "the ticket is closed");
}

#[test]
fn an_agent_who_leaves_a_queue_loses_its_tickets_and_no_others() {
    let leave = |queue| Release { user: ANA, queue: Some(queue), author: Author::API };
    let mut desk = Desk::on(PHONE);
    desk.run(to_user(ANA));
    assert_eq!(desk.run(leave(SALES)).changes, [], "the ticket is in another queue");
    let result = desk.run(leave(SUPPORT));
    assert_eq!((desk.ticket.row.queue_id, desk.ticket.row.user_id), (Some(SUPPORT), None));
    assert_eq!(result.event().kind, EventType::Transferred);
}
