//! The contract's table once more, in plain numbers, with the fixture's company written out by hand.

use chrono::{DateTime, Utc};
use hotline_persistence::ChannelId;
use hotline_persistence::tables::tickets::TicketStatus;

use super::fixture::{Desk, PHONE, WEBCHAT};
use crate::tickets::Open;

/// One command, and whether another ticket of the contact is open meanwhile.
#[derive(Clone, Debug)]
pub struct Step {
    pub call: Call,
    pub open_elsewhere: bool,
}

#[derive(Clone, Debug)]
pub enum Call {
    Transfer { queue: Option<i64>, user: Option<Option<i64>> },
    Close(Wrapup),
    Reopen,
    SetWrapup { kind: i64, note: Option<Option<String>> },
    AddNote(String),
    Send { body: String, reopen: bool, reachable: bool, queue: Option<i64>, close: Option<Wrapup> },
    Receive(String),
    MarkRead,
    MarkDelivered(i64),
    Show,
}

pub type Wrapup = (Option<i64>, Option<String>);

/// What is known of a ticket.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    channel: ChannelId,
    has_number: bool,
    reachable: bool,
    is_open: bool,
    queue: Option<i64>,
    user: Option<i64>,
    wrapup: Wrapup,
    unread: i32,
    reopens: i32,
    opened: DateTime<Utc>,
    responded: Option<DateTime<Utc>>,
    closed: Option<DateTime<Utc>>,
    updated: DateTime<Utc>,
}

fn agents(queue: i64) -> &'static [i64] {
    match queue {
        1 => &[1, 2, 4],
        2 => &[1, 3],
        _ => &[],
    }
}

fn types(queue: Option<i64>) -> &'static [i64] {
    match queue {
        Some(1) => &[1],
        Some(2) => &[2],
        Some(_) => &[],
        None => &[1, 2, 4],
    }
}

impl Model {
    pub fn of(desk: &Desk, open: &Open) -> Self {
        let channels_queue = (open.channel == PHONE).then_some(1);
        Self {
            channel: open.channel,
            has_number: open.contact.number.is_some(),
            reachable: open.reachable,
            is_open: true,
            queue: open.queue.map(|id| id.0).or(channels_queue),
            user: open.user.map(|id| id.0),
            wrapup: (None, None),
            unread: 0,
            reopens: 0,
            opened: desk.now,
            responded: None,
            closed: None,
            updated: desk.now,
        }
    }

    /// What is recorded, or why the step is refused. The model is as it was then.
    pub fn step(&mut self, step: &Step, now: DateTime<Utc>) -> Result<Vec<&'static str>, &'static str> {
        let mut after = self.clone();
        let mut recorded = after.follow(step, now)?;
        if after != *self || !matches!(recorded[..], [] | ["delivered"]) {
            after.updated = now;
            recorded.insert(0, "ticket");
        }
        *self = after;
        Ok(recorded)
    }

    fn follow(&mut self, step: &Step, now: DateTime<Utc>) -> Result<Vec<&'static str>, &'static str> {
        match &step.call {
            Call::Transfer { queue, user } => self.transfer(*queue, *user),
            Call::Close(wrapup) => self.close(wrapup, now),
            Call::Reopen => self.reopen(step.open_elsewhere, now),
            Call::SetWrapup { kind, note } => {
                if self.is_open {
                    return Err("conflict");
                }
                self.check_type(*kind)?;
                self.wrapup = (Some(*kind), note.clone().unwrap_or(self.wrapup.1.clone()));
                Ok(vec!["wrapup_changed"])
            }
            Call::AddNote(_) if !self.is_open => Err("closed"),
            Call::AddNote(_) => Ok(vec!["note_added", "message"]),
            Call::Receive(_) if !self.is_open => Err("closed"),
            Call::Receive(_) => {
                self.unread += 1;
                self.reachable = true;
                Ok(vec!["message"])
            }
            Call::MarkRead if self.unread == 0 => Ok(vec![]),
            Call::MarkRead => {
                self.unread = 0;
                Ok(vec!["read", "read up to"])
            }
            Call::MarkDelivered(_) => Ok(vec!["delivered"]),
            Call::Show => Ok(vec![]),
            Call::Send { reopen, reachable, queue, close, .. } => {
                if !self.is_open && !reopen {
                    return Err("closed");
                }
                self.reachable |= reachable;
                if !(if self.channel == PHONE { self.has_number } else { self.reachable }) {
                    return Err("unreachable");
                }
                let mut recorded = if self.is_open { vec![] } else { self.reopen(step.open_elsewhere, now)? };
                self.responded = self.responded.or(Some(now));
                let mut then = self.clone();
                let mut follows = vec![];
                if queue.is_some() {
                    follows.extend(then.transfer(*queue, None)?);
                }
                if let Some(wrapup) = close {
                    follows.extend(then.close(wrapup, now)?);
                }
                if self.channel == WEBCHAT {
                    *self = then;
                    recorded.extend(follows);
                }
                recorded.push("message");
                Ok(recorded)
            }
        }
    }

    fn transfer(&mut self, queue: Option<i64>, user: Option<Option<i64>>) -> Result<Vec<&'static str>, &'static str> {
        if !self.is_open {
            return Err("closed");
        }
        match queue {
            None | Some(1 | 2) => {}
            Some(3) => return Err("queueId"),
            Some(_) => return Err("not found"),
        }
        let queue = queue.or(self.queue);
        let belongs = |user: &i64| queue.is_none_or(|queue| agents(queue).contains(user));
        let before = (self.queue, self.user);
        match user {
            Some(Some(user @ 1..=3)) if belongs(&user) => self.user = Some(user),
            Some(Some(1..=4)) => return Err("userId"),
            Some(Some(_)) => return Err("not found"),
            Some(None) => self.user = None,
            None => self.user = self.user.filter(belongs),
        }
        self.queue = queue;
        // To where it is already is no transfer.
        Ok(if before == (self.queue, self.user) { vec![] } else { vec!["transferred"] })
    }

    fn close(&mut self, wrapup: &Wrapup, now: DateTime<Utc>) -> Result<Vec<&'static str>, &'static str> {
        if !self.is_open {
            return Err("closed");
        }
        match wrapup.0 {
            Some(kind) => self.check_type(kind)?,
            None if self.queue == Some(2) => return Err("wrapupTypeId"),
            None => {}
        }
        self.is_open = false;
        self.closed = Some(now);
        self.wrapup = wrapup.clone();
        Ok(vec!["closed"])
    }

    fn reopen(&mut self, open_elsewhere: bool, now: DateTime<Utc>) -> Result<Vec<&'static str>, &'static str> {
        if self.is_open {
            return Err("conflict");
        }
        if open_elsewhere {
            return Err("already open");
        }
        self.is_open = true;
        self.reopens += 1;
        (self.opened, self.closed, self.responded) = (now, None, None);
        self.wrapup = (None, None);
        Ok(vec!["reopened"])
    }

    fn check_type(&self, kind: i64) -> Result<(), &'static str> {
        match kind {
            1..=4 if types(self.queue).contains(&kind) => Ok(()),
            1..=4 => Err("wrapupTypeId"),
            _ => Err("not found"),
        }
    }

    /// What the model says of a ticket, to be compared whole.
    pub fn seen(&self, desk: &Desk) -> Self {
        let row = &desk.ticket.row;
        Self {
            channel: row.channel_id,
            has_number: desk.ticket.contact.number.is_some(),
            reachable: desk.ticket.reachable,
            is_open: row.status == TicketStatus::Open,
            queue: row.queue_id.map(|id| id.0),
            user: row.user_id.map(|id| id.0),
            wrapup: (row.wrapup_type_id.map(|id| id.0), row.wrapup_note.clone()),
            unread: row.unread_count,
            reopens: row.reopen_count,
            opened: row.opened_at,
            responded: row.first_response_at,
            closed: row.closed_at,
            updated: row.updated_at,
        }
    }
}
