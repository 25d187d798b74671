//! Wrap-ups: which ones close a ticket, and how one is set later.

use hotline_persistence::tables::ticket_events::EventType;
use hotline_persistence::tables::tickets::TicketStatus;
use hotline_persistence::{Change, WrapupTypeId};
use serde_json::json;

use super::fixture::*;
use crate::Refusal;
use crate::tickets::{Close, Open, SetWrapup};

fn close(wrapup_type: Option<WrapupTypeId>) -> Close {
    Close { wrapup_type, wrapup_note: None, author: ana() }
}

fn set_wrapup(wrapup_type: WrapupTypeId, wrapup_note: Option<Option<&str>>) -> SetWrapup {
    SetWrapup { wrapup_type, wrapup_note: wrapup_note.map(|note| note.map(str::to_owned)), author: ana() }
}

fn invalid(field: &str, reason: &str) -> Refusal {
    Refusal::invalid(field, reason)
}

// At the close.

#[test]
fn a_ticket_closes_without_a_wrapup_where_none_is_required() {
    let mut desk = Desk::on(PHONE);
    let result = desk.run(close(None));
    assert_eq!((desk.ticket.row.wrapup_type_id, &desk.ticket.row.wrapup_note), (None, &None));
    assert_eq!(result.event().to, Some(json!({"status": "closed", "wrapupType": null, "wrapupNote": null})));
    Desk::on(WEBCHAT).run(close(None));
}

#[test]
fn a_queue_that_requires_a_wrapup_refuses_to_close_without_one() {
    let (mut desk, _) = Desk::opened(Open { queue: Some(SALES), ..open(PHONE) }).expect("the ticket opens");
    assert_eq!(desk.expect_refusal(close(None)), invalid("wrapupTypeId", "is required by the ticket's queue"));
    desk.run(close(Some(SOLD)));
    assert_eq!(desk.ticket.row.wrapup_type_id, Some(SOLD));
}

#[test]
fn a_wrapup_type_must_be_linked_to_the_tickets_queue() {
    let unlinked = invalid("wrapupTypeId", "must be linked to the ticket's queue");
    let mut desk = Desk::on(PHONE);
    assert_eq!(desk.expect_refusal(close(Some(SOLD))), unlinked);
    assert_eq!(desk.expect_refusal(close(Some(UNLINKED))), unlinked);
}

#[test]
fn without_a_queue_any_active_wrapup_type_closes_a_ticket() {
    for kind in [SOLVED, SOLD, UNLINKED] {
        let mut desk = Desk::on(WEBCHAT);
        desk.run(close(Some(kind)));
        assert_eq!(desk.ticket.row.wrapup_type_id, Some(kind));
    }
}

#[test]
fn an_inactive_or_unknown_wrapup_type_closes_no_ticket() {
    let inactive = invalid("wrapupTypeId", "must be an active wrap-up type");
    for mut desk in [Desk::on(PHONE), Desk::on(WEBCHAT)] {
        assert_eq!(desk.expect_refusal(close(Some(RETIRED))), inactive);
        assert_eq!(desk.expect_refusal(close(Some(MISSING_TYPE))), Refusal::NotFound);
    }
}

// After the close.

#[test]
fn a_wrapup_is_set_on_a_closed_ticket_and_the_event_has_the_old_one() {
    let mut desk = Desk::with_closed_ticket();
    let closed_at = desk.ticket.row.closed_at;
    let result = desk.run(set_wrapup(SOLVED, Some(Some("found it"))));
    let row = &desk.ticket.row;
    assert_eq!((row.wrapup_type_id, row.wrapup_note.as_deref()), (Some(SOLVED), Some("found it")));
    assert_eq!((row.status, row.closed_at, row.updated_at), (TicketStatus::Closed, closed_at, desk.now));
    assert_eq!(result.reply, desk.ticket);
    assert_eq!(result.changes[0], Change::Ticket(row.clone()));
    assert_eq!(result.changes.len(), 2);
    assert_eq!(result.event().kind, EventType::WrapupChanged);
    assert_eq!(result.event().from, Some(json!({"wrapupType": null, "wrapupNote": null})));
    let to = json!({"wrapupType": {"id": 1, "name": "Solved"}, "wrapupNote": "found it"});
    assert_eq!(result.event().to, Some(to));
}

#[test]
fn a_wrapup_without_a_note_leaves_the_note_and_with_null_clears_it() {
    let mut desk = Desk::with_closed_ticket();
    desk.run(set_wrapup(SOLVED, Some(Some("kept"))));
    let before = desk.ticket.clone();
    assert!(desk.run(set_wrapup(SOLVED, None)).changes.is_empty(), "the wrap-up is unchanged");
    assert_eq!(desk.ticket, before);
    assert_eq!(desk.ticket.row.wrapup_note.as_deref(), Some("kept"));
    desk.run(set_wrapup(SOLVED, Some(None)));
    assert_eq!(desk.ticket.row.wrapup_note, None);
}

#[test]
fn a_wrapup_of_an_open_ticket_is_a_conflict() {
    let refusal = Desk::on(PHONE).expect_refusal(set_wrapup(SOLVED, None));
    assert!(matches!(&refusal, Refusal::Conflict(conflict) if conflict.reason == "open"), "{refusal:?}");
}

#[test]
fn a_wrapup_set_later_follows_the_rules_of_one_at_the_close() {
    let mut desk = Desk::with_closed_ticket();
    assert_eq!(desk.expect_refusal(set_wrapup(MISSING_TYPE, None)), Refusal::NotFound);
    assert_eq!(
        desk.expect_refusal(set_wrapup(RETIRED, None)),
        invalid("wrapupTypeId", "must be an active wrap-up type")
    );
    assert_eq!(
        desk.expect_refusal(set_wrapup(SOLD, None)),
        invalid("wrapupTypeId", "must be linked to the ticket's queue")
    );
    let mut desk = Desk::on(WEBCHAT);
    desk.run(close(None));
    desk.run(set_wrapup(UNLINKED, None));
    assert_eq!(desk.ticket.row.wrapup_type_id, Some(UNLINKED));
}

#[test]
fn the_current_wrapup_may_be_set_again_although_its_type_was_deactivated() {
    let mut desk = Desk::with_closed_ticket();
    desk.run(set_wrapup(SOLVED, Some(Some("kept"))));
    let before = desk.ticket.clone();
    desk.organization.wrapup_types.get_mut(&SOLVED).expect("the type").active = false;
    assert_eq!(desk.run(set_wrapup(SOLVED, None)).changes, []);
    assert_eq!(desk.run(set_wrapup(SOLVED, Some(Some("kept")))).changes, []);
    assert_eq!(desk.ticket, before);
    desk.run(set_wrapup(SOLVED, Some(Some("corrected"))));
    assert_eq!(desk.ticket.row.wrapup_note.as_deref(), Some("corrected"));
}
