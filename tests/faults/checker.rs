//! Compares what callers were answered with what there is: as the service shows it, and as PostgreSQL holds it after a
//! clean stop.
//!
//! What was acknowledged is there once, in the order in which it was answered; what was refused is not there; what
//! nobody knows of is there once or not at all; and nothing is there that nobody asked for. A ticket's events are a way
//! its state can have gone, they are as many as were asked for, and they end where the ticket stands.

use std::collections::{BTreeMap, HashMap, HashSet};

use hotline_persistence::PgPool;
use serde_json::Value;

use crate::record::{Call, Deed, Outcome, Record};
use crate::rig::Rig;
use crate::support::Api;

/// What a comparison came to.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    pub acknowledged: usize,
    pub refused: usize,
    pub unknown: usize,
    /// Acknowledged, and not there.
    pub lost: usize,
    pub contradictions: Vec<String>,
}

/// What there is, by id.
#[derive(Debug, Default, PartialEq)]
struct Stored {
    tickets: BTreeMap<i64, Ticket>,
    messages: BTreeMap<i64, Message>,
    events: BTreeMap<i64, Event>,
}

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
struct Ticket {
    contact_id: i64,
    status: String,
    wrapup_note: Option<String>,
    reopen_count: i32,
    last_message_id: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
struct Message {
    ticket_id: i64,
    contact_id: i64,
    body: String,
}

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
struct Event {
    ticket_id: i64,
    #[sqlx(rename = "type")]
    kind: String,
    from: Option<Value>,
    to: Option<Value>,
}

/// Compares, and stops the service in between.
pub async fn check(record: &Record, rig: &mut Rig) -> Verdict {
    let mut verdict = Verdict { contradictions: record.contradictions.clone(), ..Verdict::default() };
    for call in &record.calls {
        match call.outcome {
            Outcome::Acknowledged { .. } => verdict.acknowledged += 1,
            Outcome::Refused(_) => verdict.refused += 1,
            Outcome::Unknown => verdict.unknown += 1,
        }
    }
    let api = rig.api();
    let shown = Stored::shown(&api, &mut verdict).await;
    compare(record, &shown, "shown", &mut verdict);
    rig.stop();
    let company = rig.company.id.0;
    let (held, rejected) = rig.database(async |db| (Stored::held(db, company).await, rejected(db).await)).await;
    if held != shown {
        verdict.contradict("the tables hold something else than the service shows".to_owned());
    }
    compare(record, &held, "held", &mut verdict);
    if rejected > 0 {
        verdict.contradict(format!("PostgreSQL refused {rejected} rows"));
    }
    verdict
}

impl Verdict {
    fn contradict(&mut self, what: String) {
        self.contradictions.push(what);
    }

    fn lose(&mut self, call: &Call, place: &str) {
        self.lost += 1;
        self.contradict(format!("acknowledged and not {place}: {call:?}"));
    }
}

impl Stored {
    /// As the service shows it. Each ticket is looked at twice: in the list, which is the table's, and by itself, which is
    /// its actor's.
    async fn shown(api: &Api, verdict: &mut Verdict) -> Self {
        let mut stored = Self::default();
        for row in api.all("/tickets?perPage=1000").await {
            let id = int(&row["id"]);
            let alone = api.get(&format!("/tickets/{id}")).await;
            if alone.data(200) != &row {
                verdict.contradict(format!("ticket {id} is {row} in the list and {} by itself", alone.body));
            }
            let ticket = Ticket {
                contact_id: int(&row["contact"]["id"]),
                status: text(&row["status"]),
                wrapup_note: row["wrapupNote"].as_str().map(str::to_owned),
                reopen_count: i32::try_from(int(&row["reopenCount"])).expect("a count"),
                last_message_id: row["lastMessage"]["id"].as_i64(),
            };
            stored.tickets.insert(id, ticket);
            for event in api.all(&format!("/tickets/{id}/events?perPage=1000")).await {
                let [from, to] = ["from", "to"].map(|side| Some(event[side].clone()).filter(|value| !value.is_null()));
                let (kind, key) = (text(&event["type"]), int(&event["id"]));
                stored.events.insert(key, Event { ticket_id: id, kind, from, to });
            }
        }
        for row in api.all("/messages?perPage=1000").await {
            let (ticket_id, contact_id) = (int(&row["ticketId"]), int(&row["contactId"]));
            stored.messages.insert(int(&row["id"]), Message { ticket_id, contact_id, body: text(&row["body"]) });
        }
        stored
    }

    /// As PostgreSQL holds it.
    async fn held(db: &PgPool, company: i64) -> Self {
        Self {
            tickets: held(
                db,
                company,
                "select id, contact_id, status, wrapup_note, reopen_count, last_message_id from tickets
                    where company_id = $1",
            )
            .await,
            messages: held(db, company, "select id, ticket_id, contact_id, body from messages where company_id = $1")
                .await,
            events: held(
                db,
                company,
                r#"select id, ticket_id, type, "from", "to" from ticket_events where company_id = $1"#,
            )
            .await,
        }
    }
}

#[derive(sqlx::FromRow)]
struct Identified<T> {
    id: i64,
    #[sqlx(flatten)]
    row: T,
}

async fn held<T>(db: &PgPool, company: i64, statement: &'static str) -> BTreeMap<i64, T>
where
    T: for<'r> sqlx::FromRow<'r, sqlx::postgres::PgRow> + Send + Unpin,
{
    let rows: Vec<Identified<T>> = sqlx::query_as(statement).bind(company).fetch_all(db).await.expect("rows");
    rows.into_iter().map(|row| (row.id, row.row)).collect()
}

async fn rejected(db: &PgPool) -> i64 {
    sqlx::query_scalar("select count(*) from rejected_changes").fetch_one(db).await.expect("a count")
}

fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

fn compare(record: &Record, stored: &Stored, place: &str, verdict: &mut Verdict) {
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
        let mut by_answered = track.iter().copied().collect::<Vec<_>>();
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

/// Transfers and reopenings bear no note; there are as many as were acknowledged, and some of those nobody knows of.
fn changes_are_as_many_as_were_asked_for(record: &Record, stored: &Stored, place: &str, verdict: &mut Verdict) {
    for (deed, kind) in [(Deed::Transfer, "transferred"), (Deed::Reopen, "reopened")] {
        for id in stored.tickets.keys() {
            let of_ticket = || record.calls.iter().filter(|call| call.deed == deed && call.ticket == Some(*id));
            let acknowledged = of_ticket().filter(|call| call.acknowledged().is_some()).count();
            let unknown = of_ticket().filter(|call| call.is_unknown()).count();
            let seen = stored.events.values().filter(|event| event.ticket_id == *id && event.kind == kind).count();
            verdict.lost += acknowledged.saturating_sub(seen);
            if !(acknowledged..=acknowledged + unknown).contains(&seen) {
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
