//! The comparison itself, rule by rule. It knows neither service nor database.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{Stored, Ticket, Verdict};
use crate::record::{Call, Deed, Outcome, Record};

pub(super) fn compare(record: &Record, stored: &Stored, place: &str, verdict: &mut Verdict) {
    messages_are_those_that_were_said(record, stored, place, verdict);
    order_is_kept(record, stored, place, verdict);
    closings_are_those_that_were_asked_for(record, stored, place, verdict);
    changes_are_as_many_as_were_asked_for(record, stored, place, verdict);
    openings_are_those_that_were_asked_for(record, stored, place, verdict);
    tickets_stand_where_their_events_end(stored, place, verdict);
}

fn messages_are_those_that_were_said(record: &Record, stored: &Stored, place: &str, verdict: &mut Verdict) {
    let mut said = HashMap::new();
    for (id, message) in &stored.messages {
        if let Some(twice) = said.insert(message.body.as_str(), (*id, message)) {
            verdict.contradict(format!("{place} twice: {message:?} as {id} and {}", twice.0));
        }
    }
    for call in record.calls.iter().filter(|call| matches!(call.deed, Deed::Send | Deed::Say)) {
        let found = said.remove(call.label.as_str());
        match (call.outcome, found) {
            (Outcome::Acknowledged { .. }, None) => verdict.lose(call, place),
            (Outcome::Acknowledged { id, ticket }, Some((seen, message))) => {
                let contact = record.people[call.conversation].contact;
                if (id, ticket, contact) != (seen, message.ticket_id, message.contact_id) {
                    verdict.contradict(format!("{place} as {seen}, {message:?}: {call:?}"));
                }
            }
            (Outcome::Refused(_), Some(_)) => verdict.contradict(format!("refused and {place}: {call:?}")),
            (Outcome::Refused(_), None) | (Outcome::Unknown, _) => {}
        }
    }
    for body in said.keys() {
        verdict.contradict(format!("never said, and {place}: {body}"));
    }
}

/// What was answered before another was asked for has the lower id, ticket by ticket: messages among themselves and
/// closings among themselves.
fn order_is_kept(record: &Record, stored: &Stored, place: &str, verdict: &mut Verdict) {
    let closings: HashMap<&str, i64> =
        stored.events.iter().filter_map(|(id, event)| Some((noted_at(&event.to)?, *id))).collect();
    let mut tracks: HashMap<(i64, bool), Vec<(&Call, i64)>> = HashMap::new();
    for call in &record.calls {
        let Some((id, ticket)) = call.acknowledged() else { continue };
        let id = match call.deed {
            Deed::Send | Deed::Say => Some(id),
            Deed::Close => closings.get(call.label.as_str()).copied(),
            _ => None,
        };
        if let Some(id) = id {
            tracks.entry((ticket, call.deed == Deed::Close)).or_default().push((call, id));
        }
    }
    for track in tracks.values() {
        let mut by_asked = track.clone();
        by_asked.sort_unstable_by_key(|(call, _)| call.asked);
        let mut by_answered = track.clone();
        by_answered.sort_unstable_by_key(|(call, _)| call.answered);
        let mut before = by_answered.into_iter().peekable();
        let mut highest = 0;
        for (call, id) in by_asked {
            while let Some((_, earlier)) = before.next_if(|(earlier, _)| earlier.answered < call.asked) {
                highest = earlier.max(highest);
            }
            if id <= highest {
                verdict.contradict(format!("{place} as {id}, before {highest}, which was answered first: {call:?}"));
            }
        }
    }
}

/// A closing is known by its note.
fn closings_are_those_that_were_asked_for(record: &Record, stored: &Stored, place: &str, verdict: &mut Verdict) {
    let mut noted: HashMap<&str, i64> = HashMap::new();
    for (id, event) in stored.events.iter().filter(|(_, event)| event.kind == "closed") {
        let Some(note) = noted_at(&event.to) else {
            verdict.contradict(format!("a closing without its note is {place}: {event:?}"));
            continue;
        };
        if let Some(twice) = noted.insert(note, event.ticket_id) {
            verdict.contradict(format!("closed twice, {place}: {event:?} as {id} and in ticket {twice}"));
        }
    }
    for call in record.calls.iter().filter(|call| call.deed == Deed::Close) {
        let found = noted.remove(call.label.as_str());
        match (call.outcome, found) {
            (Outcome::Acknowledged { .. }, None) => verdict.lose(call, place),
            (Outcome::Refused(_), Some(_)) => verdict.contradict(format!("refused and {place}: {call:?}")),
            (_, Some(ticket)) if Some(ticket) != call.ticket => {
                verdict.contradict(format!("{place} in ticket {ticket}: {call:?}"));
            }
            _ => {}
        }
    }
    for note in noted.keys() {
        verdict.contradict(format!("a closing nobody asked for is {place}: {note}"));
    }
}

/// Transfers and reopenings bear no note; there are as many as were acknowledged, and some of those nobody knows of. Of
/// transfers there may be fewer: one to where the ticket was already is acknowledged, and no event.
fn changes_are_as_many_as_were_asked_for(record: &Record, stored: &Stored, place: &str, verdict: &mut Verdict) {
    for (deed, kind) in [(Deed::Transfer, "transferred"), (Deed::Reopen, "reopened")] {
        for id in stored.tickets.keys() {
            let of_ticket = || record.calls.iter().filter(|call| call.deed == deed && call.ticket == Some(*id));
            let acknowledged = of_ticket().filter(|call| call.acknowledged().is_some()).count();
            let unknown = of_ticket().filter(|call| call.is_unknown()).count();
            let least = if deed == Deed::Transfer { acknowledged.min(1) } else { acknowledged };
            let seen = stored.events.values().filter(|event| event.ticket_id == *id && event.kind == kind).count();
            verdict.lost += least.saturating_sub(seen);
            if !(least..=acknowledged + unknown).contains(&seen) {
                verdict.contradict(format!(
                    "ticket {id} was {kind} {seen} times, {place}: {acknowledged} acknowledged, {unknown} unknown"
                ));
            }
        }
    }
    // Every ticket that was named must be there to be counted.
    let named = record.calls.iter().filter_map(|call| Some((call, call.acknowledged()?.1)));
    for (call, _) in named.filter(|(_, ticket)| !stored.tickets.contains_key(ticket)) {
        verdict.lose(call, place);
    }
}

fn openings_are_those_that_were_asked_for(record: &Record, stored: &Stored, place: &str, verdict: &mut Verdict) {
    for (number, person) in record.people.iter().enumerate() {
        let tickets: Vec<i64> = stored
            .tickets
            .iter()
            .filter(|(_, ticket)| ticket.contact_id == person.contact)
            .map(|(id, _)| *id)
            .collect();
        let open = tickets.iter().filter(|id| stored.tickets[id].status == "open").count();
        if open > 1 {
            verdict.contradict(format!("{open} open tickets of contact {} are {place}", person.contact));
        }
        if person.session.is_some() {
            // What a visitor says opens a ticket, and is the first thing in it.
            let mut opened = HashSet::new();
            let first = stored.messages.values().filter(|message| opened.insert(message.ticket_id));
            let by_visitor: HashSet<i64> = first
                .filter(|first| record.calls.iter().any(|call| call.deed == Deed::Say && call.label == first.body))
                .map(|first| first.ticket_id)
                .collect();
            for id in tickets.iter().filter(|id| !by_visitor.contains(id)) {
                verdict.contradict(format!("ticket {id} is {place}, and its visitor did not open it"));
            }
            continue;
        }
        let opens = || record.calls.iter().filter(|call| call.deed == Deed::Open && call.conversation == number);
        let acknowledged: HashSet<i64> = opens().filter_map(|call| Some(call.acknowledged()?.0)).collect();
        let unknown = opens().filter(|call| call.is_unknown()).count();
        let others = tickets.iter().filter(|id| !acknowledged.contains(id)).count();
        if acknowledged.len() != opens().filter(|call| call.acknowledged().is_some()).count() || others > unknown {
            verdict.contradict(format!(
                "{} tickets of contact {} are {place}; {} openings were acknowledged, {unknown} are unknown",
                tickets.len(),
                person.contact,
                acknowledged.len(),
            ));
        }
    }
}

/// Goes the way of every ticket, event by event.
fn tickets_stand_where_their_events_end(stored: &Stored, place: &str, verdict: &mut Verdict) {
    #[derive(Default)]
    struct Way<'a> {
        /// None before it was opened.
        is_open: Option<bool>,
        note: Option<&'a str>,
        reopened: i32,
        queue_and_user: (Value, Value),
    }
    let at = |side: &Option<Value>| {
        side.as_ref().map(|side| (side["queue"]["id"].clone(), side["assignedTo"]["id"].clone())).unwrap_or_default()
    };
    let mut ways: HashMap<i64, Way<'_>> = HashMap::new();
    for (id, event) in &stored.events {
        let way = ways.entry(event.ticket_id).or_default();
        let is_possible = match (event.kind.as_str(), way.is_open) {
            ("opened", None) => true,
            ("transferred", Some(true)) => at(&event.from) == way.queue_and_user,
            ("closed", Some(true)) => true,
            ("reopened", Some(false)) => noted_at(&event.from) == way.note,
            _ => false,
        };
        if !is_possible {
            verdict.contradict(format!("event {id} cannot follow, {place}: {event:?}"));
        }
        match event.kind.as_str() {
            "opened" | "transferred" => way.queue_and_user = at(&event.to),
            "closed" => way.note = noted_at(&event.to),
            "reopened" => {
                way.note = None;
                way.reopened += 1;
            }
            _ => {}
        }
        way.is_open = Some(event.kind != "closed");
    }
    let mut last: HashMap<i64, i64> = HashMap::new();
    for (id, message) in &stored.messages {
        last.insert(message.ticket_id, *id);
    }
    for (id, ticket) in &stored.tickets {
        let way = ways.remove(id).unwrap_or_default();
        let end = Ticket {
            contact_id: ticket.contact_id,
            status: if way.is_open == Some(true) { "open" } else { "closed" }.to_owned(),
            wrapup_note: way.note.map(str::to_owned),
            reopen_count: way.reopened,
            last_message_id: last.remove(id),
        };
        if *ticket != end || way.is_open.is_none() {
            verdict.contradict(format!("ticket {id} is {place} as {ticket:?}, and its events end with {end:?}"));
        }
    }
    let nowhere = ways.keys().chain(last.keys()).collect::<Vec<_>>();
    if !nowhere.is_empty() {
        verdict.contradict(format!("events or messages are {place} without their tickets: {nowhere:?}"));
    }
}

/// The note of a closing, on one side of an event.
fn noted_at(side: &Option<Value>) -> Option<&str> {
    side.as_ref()?["wrapupNote"].as_str()
}
