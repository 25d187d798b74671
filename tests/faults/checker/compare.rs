//! The comparison itself, rule by rule. It knows neither service nor database.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{Stored, Ticket, Verdict};
use crate::record::{Action, Call, Outcome, Record};

/// Adds each contradiction between the record and the stored rows to the verdict. `shown_or_held` names the rows in its
/// messages: `shown` by the service, or `held` by PostgreSQL.
pub(super) fn compare(record: &Record, stored: &Stored, shown_or_held: &str, verdict: &mut Verdict) {
    check_messages(record, stored, shown_or_held, verdict);
    check_order(record, stored, shown_or_held, verdict);
    check_closings(record, stored, shown_or_held, verdict);
    check_transfers_and_reopenings(record, stored, shown_or_held, verdict);
    check_openings(record, stored, shown_or_held, verdict);
    check_final_states(stored, shown_or_held, verdict);
}

fn check_messages(record: &Record, stored: &Stored, shown_or_held: &str, verdict: &mut Verdict) {
    let mut by_body = HashMap::new();
    for (id, message) in &stored.messages {
        if let Some(earlier) = by_body.insert(message.body.as_str(), (*id, message)) {
            verdict.contradict(format!("{shown_or_held} twice: {message:?} as {id} and {}", earlier.0));
        }
    }
    for call in record.calls.iter().filter(|call| matches!(call.action, Action::Send | Action::Say)) {
        let found = by_body.remove(call.label.as_str());
        match (call.outcome, found) {
            (Outcome::Acknowledged { .. }, None) => verdict.lose(call, shown_or_held),
            (Outcome::Acknowledged { id, ticket }, Some((stored_id, message))) => {
                let contact = record.people[call.conversation].contact;
                if (id, ticket, contact) != (stored_id, message.ticket_id, message.contact_id) {
                    verdict.contradict(format!("{shown_or_held} as {stored_id}, {message:?}: {call:?}"));
                }
            }
            (Outcome::Refused(_), Some(_)) => verdict.contradict(format!("refused and {shown_or_held}: {call:?}")),
            (Outcome::Refused(_), None) | (Outcome::Unknown, _) => {}
        }
    }
    for body in by_body.keys() {
        verdict.contradict(format!("{shown_or_held}, but sent by no call: {body}"));
    }
}

/// A call that ended before another started has the lower id: of the messages of a ticket, and of its closings.
fn check_order(record: &Record, stored: &Stored, shown_or_held: &str, verdict: &mut Verdict) {
    let closings: HashMap<&str, i64> =
        stored.events.iter().filter_map(|(id, event)| Some((note_of(&event.to)?, *id))).collect();
    let mut answered_by_ticket: HashMap<(i64, bool), Vec<(&Call, i64)>> = HashMap::new();
    for call in &record.calls {
        let Some((id, ticket)) = call.acknowledged() else { continue };
        let id = match call.action {
            Action::Send | Action::Say => Some(id),
            Action::Close => closings.get(call.label.as_str()).copied(),
            _ => None,
        };
        if let Some(id) = id {
            answered_by_ticket.entry((ticket, call.action == Action::Close)).or_default().push((call, id));
        }
    }
    for answered in answered_by_ticket.values() {
        let mut by_start = answered.clone();
        by_start.sort_unstable_by_key(|(call, _)| call.started);
        let mut by_end = answered.clone();
        by_end.sort_unstable_by_key(|(call, _)| call.ended);
        let mut ended_calls = by_end.into_iter().peekable();
        let mut highest = 0;
        for (call, id) in by_start {
            while let Some((_, earlier)) = ended_calls.next_if(|(earlier, _)| earlier.ended < call.started) {
                highest = earlier.max(highest);
            }
            if id <= highest {
                verdict.contradict(format!(
                    "{shown_or_held} as {id}, before {highest}, which was answered first: {call:?}"
                ));
            }
        }
    }
}

/// Each closing has a note of its own.
fn check_closings(record: &Record, stored: &Stored, shown_or_held: &str, verdict: &mut Verdict) {
    let mut by_note: HashMap<&str, i64> = HashMap::new();
    for (id, event) in stored.events.iter().filter(|(_, event)| event.kind == "closed") {
        let Some(note) = note_of(&event.to) else {
            verdict.contradict(format!("a closing without its note is {shown_or_held}: {event:?}"));
            continue;
        };
        if let Some(earlier) = by_note.insert(note, event.ticket_id) {
            verdict.contradict(format!("closed twice, {shown_or_held}: {event:?} as {id} and in ticket {earlier}"));
        }
    }
    for call in record.calls.iter().filter(|call| call.action == Action::Close) {
        let found = by_note.remove(call.label.as_str());
        match (call.outcome, found) {
            (Outcome::Acknowledged { .. }, None) => verdict.lose(call, shown_or_held),
            (Outcome::Refused(_), Some(_)) => verdict.contradict(format!("refused and {shown_or_held}: {call:?}")),
            (_, Some(ticket)) if Some(ticket) != call.ticket => {
                verdict.contradict(format!("{shown_or_held} in ticket {ticket}: {call:?}"));
            }
            _ => {}
        }
    }
    for note in by_note.keys() {
        verdict.contradict(format!("a closing that no call requested is {shown_or_held}: {note}"));
    }
}

/// Transfers and reopenings have no note. There are as many as were acknowledged, and perhaps some of unknown outcome.
/// Transfers may be fewer: one to where the ticket already is has no event.
fn check_transfers_and_reopenings(record: &Record, stored: &Stored, shown_or_held: &str, verdict: &mut Verdict) {
    for (action, kind) in [(Action::Transfer, "transferred"), (Action::Reopen, "reopened")] {
        for id in stored.tickets.keys() {
            let of_ticket = || record.calls.iter().filter(|call| call.action == action && call.ticket == Some(*id));
            let acknowledged = of_ticket().filter(|call| call.acknowledged().is_some()).count();
            let unknown = of_ticket().filter(|call| call.is_unknown()).count();
            let count_min = if action == Action::Transfer { acknowledged.min(1) } else { acknowledged };
            let found = stored.events.values().filter(|event| event.ticket_id == *id && event.kind == kind).count();
            verdict.lost += count_min.saturating_sub(found);
            if !(count_min..=acknowledged + unknown).contains(&found) {
                verdict.contradict(format!(
                    "ticket {id} was {kind} {found} times, {shown_or_held}: {acknowledged} acknowledged, {unknown} unknown"
                ));
            }
        }
    }
    // The loop above counts only in tickets that exist.
    let acknowledged_calls = record.calls.iter().filter_map(|call| Some((call, call.acknowledged()?.1)));
    for (call, _) in acknowledged_calls.filter(|(_, ticket)| !stored.tickets.contains_key(ticket)) {
        verdict.lose(call, shown_or_held);
    }
}

fn check_openings(record: &Record, stored: &Stored, shown_or_held: &str, verdict: &mut Verdict) {
    for (number, person) in record.people.iter().enumerate() {
        let tickets: Vec<i64> = stored
            .tickets
            .iter()
            .filter(|(_, ticket)| ticket.contact_id == person.contact)
            .map(|(id, _)| *id)
            .collect();
        let open = tickets.iter().filter(|id| stored.tickets[id].status == "open").count();
        if open > 1 {
            verdict.contradict(format!("{open} open tickets of contact {} are {shown_or_held}", person.contact));
        }
        if person.session.is_some() {
            // A visitor's message opens a ticket, and is its first.
            let mut opened = HashSet::new();
            let first_messages = stored.messages.values().filter(|message| opened.insert(message.ticket_id));
            let by_visitor: HashSet<i64> = first_messages
                .filter(|first| record.calls.iter().any(|call| call.action == Action::Say && call.label == first.body))
                .map(|first| first.ticket_id)
                .collect();
            for id in tickets.iter().filter(|id| !by_visitor.contains(id)) {
                verdict.contradict(format!("ticket {id} is {shown_or_held}, and its visitor did not open it"));
            }
            continue;
        }
        let opens = || record.calls.iter().filter(|call| call.action == Action::Open && call.conversation == number);
        let acknowledged: HashSet<i64> = opens().filter_map(|call| Some(call.acknowledged()?.0)).collect();
        let unknown = opens().filter(|call| call.is_unknown()).count();
        let others = tickets.iter().filter(|id| !acknowledged.contains(id)).count();
        if acknowledged.len() != opens().filter(|call| call.acknowledged().is_some()).count() || others > unknown {
            verdict.contradict(format!(
                "{} tickets of contact {} are {shown_or_held}; {} openings were acknowledged, {unknown} are unknown",
                tickets.len(),
                person.contact,
                acknowledged.len(),
            ));
        }
    }
}

/// Replays every ticket, event by event.
fn check_final_states(stored: &Stored, shown_or_held: &str, verdict: &mut Verdict) {
    #[derive(Default)]
    struct TicketReplay<'a> {
        /// `None` before the ticket is opened.
        is_open: Option<bool>,
        note: Option<&'a str>,
        reopen_count: i32,
        queue_and_user: (Value, Value),
    }
    let queue_and_user_of = |side: &Option<Value>| {
        side.as_ref().map(|side| (side["queue"]["id"].clone(), side["assignedTo"]["id"].clone())).unwrap_or_default()
    };
    let mut replays: HashMap<i64, TicketReplay<'_>> = HashMap::new();
    for (id, event) in &stored.events {
        let replay = replays.entry(event.ticket_id).or_default();
        let is_possible = match (event.kind.as_str(), replay.is_open) {
            ("opened", None) => true,
            ("transferred", Some(true)) => queue_and_user_of(&event.from) == replay.queue_and_user,
            ("closed", Some(true)) => true,
            ("reopened", Some(false)) => note_of(&event.from) == replay.note,
            _ => false,
        };
        if !is_possible {
            verdict.contradict(format!("event {id} cannot follow, {shown_or_held}: {event:?}"));
        }
        match event.kind.as_str() {
            "opened" | "transferred" => replay.queue_and_user = queue_and_user_of(&event.to),
            "closed" => replay.note = note_of(&event.to),
            "reopened" => {
                replay.note = None;
                replay.reopen_count += 1;
            }
            _ => {}
        }
        replay.is_open = Some(event.kind != "closed");
    }
    let mut last: HashMap<i64, i64> = HashMap::new();
    for (id, message) in &stored.messages {
        last.insert(message.ticket_id, *id);
    }
    for (id, ticket) in &stored.tickets {
        let replay = replays.remove(id).unwrap_or_default();
        let expected = Ticket {
            contact_id: ticket.contact_id,
            status: if replay.is_open == Some(true) { "open" } else { "closed" }.to_owned(),
            wrapup_note: replay.note.map(str::to_owned),
            reopen_count: replay.reopen_count,
            last_message_id: last.remove(id),
        };
        if *ticket != expected || replay.is_open.is_none() {
            verdict.contradict(format!(
                "ticket {id} is {shown_or_held} as {ticket:?}, and its events end with {expected:?}"
            ));
        }
    }
    let without_ticket = replays.keys().chain(last.keys()).collect::<Vec<_>>();
    if !without_ticket.is_empty() {
        verdict.contradict(format!("events or messages are {shown_or_held} without their tickets: {without_ticket:?}"));
    }
}

/// The note of a closing, on one side of an event: `from` or `to`.
fn note_of(side: &Option<Value>) -> Option<&str> {
    side.as_ref()?["wrapupNote"].as_str()
}
