//! The model of a ticket: a second implementation of its state machine, without the crate's types. `random.rs` compares
//! the commands with it, and `tests/api/model.rs` the API's calls. The latter includes this file, which therefore must
//! not refer to the crate.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

/// One command, and whether the contact has another open ticket at the time.
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

/// A wrap-up's type and note.
pub type Wrapup = (Option<i64>, Option<String>);

/// A company's configuration, as far as it affects tickets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setup {
    pub queues: BTreeMap<i64, Queue>,
    /// Whether each is active.
    pub users: BTreeMap<i64, bool>,
    pub wrapup_types: BTreeMap<i64, WrapupType>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue {
    pub is_active: bool,
    pub requires_wrapup: bool,
    pub agents: Vec<i64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrapupType {
    pub is_active: bool,
    pub queues: Vec<i64>,
}

/// How a channel reaches a contact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Line {
    /// By number.
    Phone,
    /// At the address that the contact has written from.
    Social,
    /// In a session of the visitor; a durable message counts as handed over.
    Webchat,
}

/// The modelled state of a ticket.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub setup: Setup,
    pub line: Line,
    pub has_number: bool,
    pub reachable: bool,
    pub is_open: bool,
    pub queue: Option<i64>,
    pub user: Option<i64>,
    pub wrapup: Wrapup,
    pub unread: i32,
    pub reopens: i32,
    pub opened_at: DateTime<Utc>,
    pub first_response_at: Option<DateTime<Utc>>,
    pub closed_at: Option<DateTime<Utc>>,
    pub updated_at: DateTime<Utc>,
}

impl Model {
    /// A ticket that was just opened for a reachable contact.
    pub fn opened(setup: Setup, line: Line, queue: Option<i64>, now: DateTime<Utc>) -> Self {
        Self {
            setup,
            line,
            has_number: true,
            reachable: true,
            is_open: true,
            queue,
            user: None,
            wrapup: (None, None),
            unread: 0,
            reopens: 0,
            opened_at: now,
            first_response_at: None,
            closed_at: None,
            updated_at: now,
        }
    }

    /// The names of the changes that a step records, or why it is refused. A refused step leaves the model unchanged.
    pub fn step(&mut self, step: &Step, now: DateTime<Utc>) -> Result<Vec<&'static str>, &'static str> {
        let mut after = self.clone();
        let mut recorded = after.apply(step, now)?;
        // A message's status alone leaves the ticket unchanged.
        if after != *self || !matches!(recorded[..], [] | ["delivered"]) {
            after.updated_at = now;
            recorded.insert(0, "ticket");
        }
        *self = after;
        Ok(recorded)
    }

    fn apply(&mut self, step: &Step, now: DateTime<Utc>) -> Result<Vec<&'static str>, &'static str> {
        match &step.call {
            Call::Transfer { queue, user } => self.transfer(*queue, *user),
            Call::Close(wrapup) => self.close(wrapup, now),
            Call::Reopen => self.reopen(step.open_elsewhere, now),
            Call::SetWrapup { kind, note } => {
                if self.is_open {
                    return Err("conflict");
                }
                if self.wrapup.0 != Some(*kind) {
                    self.check_type(*kind)?;
                }
                let before = self.wrapup.clone();
                self.wrapup = (Some(*kind), note.clone().unwrap_or(self.wrapup.1.clone()));
                Ok(if self.wrapup == before { Vec::new() } else { vec!["wrapup_changed"] })
            }
            Call::AddNote(_) if !self.is_open => Err("closed"),
            Call::AddNote(_) => Ok(vec!["note_added", "message"]),
            Call::Receive(_) if !self.is_open => Err("closed"),
            Call::Receive(_) => {
                self.unread += 1;
                // A contact on a phone channel who has no number is reached at the id from which they wrote.
                self.reachable |= self.line != Line::Phone || !self.has_number;
                Ok(vec!["message"])
            }
            Call::MarkRead if self.unread == 0 => Ok(vec![]),
            Call::MarkRead => {
                self.unread = 0;
                // The event, and the last message that was read.
                Ok(vec!["read", "read up to"])
            }
            Call::MarkDelivered(_) => Ok(vec!["delivered"]),
            Call::Show => Ok(vec![]),
            Call::Send { reopen, reachable, queue, close, .. } => {
                if !self.is_open && !reopen {
                    return Err("closed");
                }
                self.reachable |= reachable;
                if !(self.reachable || self.line == Line::Phone && self.has_number) {
                    return Err("unreachable");
                }
                let mut recorded = if self.is_open { vec![] } else { self.reopen(step.open_elsewhere, now)? };
                // On other channels a message counts as a response once the provider has it.
                if self.line == Line::Webchat {
                    self.first_response_at = self.first_response_at.or(Some(now));
                }
                // What follows the send is checked now, and applied once the message is handed over.
                let mut after_send = self.clone();
                let mut follow_ups = vec![];
                if queue.is_some() {
                    follow_ups.extend(after_send.transfer(*queue, None)?);
                }
                if let Some(wrapup) = close {
                    follow_ups.extend(after_send.close(wrapup, now)?);
                }
                if self.line == Line::Webchat {
                    *self = after_send;
                    recorded.extend(follow_ups);
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
        let keeps_queue = queue.is_none() || queue == self.queue;
        match queue.filter(|_| !keeps_queue).map(|queue| self.setup.queues.get(&queue)) {
            Some(None) => return Err("not found"),
            Some(Some(queue)) if !queue.is_active => return Err("queueId"),
            None | Some(Some(_)) => {}
        }
        let queue = queue.or(self.queue);
        let agents = queue.and_then(|queue| self.setup.queues.get(&queue)).map(|queue| &queue.agents);
        let belongs = |user: &i64| agents.is_none_or(|agents| agents.contains(user));
        let before = (self.queue, self.user);
        let after = match user {
            None if keeps_queue => self.user,
            Some(user) if keeps_queue && user == self.user => user,
            Some(Some(user)) => match self.setup.users.get(&user) {
                None => return Err("not found"),
                Some(true) if belongs(&user) => Some(user),
                Some(_) => return Err("userId"),
            },
            Some(None) => None,
            None => self.user.filter(belongs),
        };
        self.user = after;
        self.queue = queue;
        // A move to the same queue and user is not a transfer.
        Ok(if before == (self.queue, self.user) { vec![] } else { vec!["transferred"] })
    }

    fn close(&mut self, wrapup: &Wrapup, now: DateTime<Utc>) -> Result<Vec<&'static str>, &'static str> {
        if !self.is_open {
            return Err("closed");
        }
        match wrapup.0 {
            Some(kind) => self.check_type(kind)?,
            None if self.requires_wrapup() => return Err("wrapupTypeId"),
            None => {}
        }
        self.is_open = false;
        self.closed_at = Some(now);
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
        (self.opened_at, self.closed_at, self.first_response_at) = (now, None, None);
        self.wrapup = (None, None);
        Ok(vec!["reopened"])
    }

    fn requires_wrapup(&self) -> bool {
        self.queue.and_then(|queue| self.setup.queues.get(&queue)).is_some_and(|queue| queue.requires_wrapup)
    }

    fn check_type(&self, kind: i64) -> Result<(), &'static str> {
        let kind = self.setup.wrapup_types.get(&kind).ok_or("not found")?;
        let is_linked = self.queue.is_none_or(|queue| kind.queues.contains(&queue));
        if kind.is_active && is_linked { Ok(()) } else { Err("wrapupTypeId") }
    }
}
