//! The records that a history must become: one contact with one open ticket, and in it every message in its last state.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};

use super::history::{Act, History, Side, group_keys};
use super::person::Key;

/// A message as it must be shown.
#[derive(Clone, Debug)]
pub struct Expected {
    side: Side,
    /// The times at which it was written and edited, each with the text from then on.
    texts: Vec<(i64, String)>,
    revoked_at: Option<i64>,
    reactions: BTreeMap<Side, Option<&'static str>>,
    /// How many reactions there were, also removed ones.
    pub reaction_count: usize,
    status: &'static str,
    author: Value,
    /// The wave in which the message first came.
    pub wave: Option<usize>,
}

/// The records that a history must become.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub seed: u64,
    /// The keys by which the contact is found.
    pub keys: BTreeSet<Key>,
    /// The person's present number, if it was ever named.
    pub number: Option<Key>,
    /// Messages with the person, and the person's messages in the group, by the second in which they were written.
    pub private: BTreeMap<i64, Expected>,
    pub in_group: BTreeMap<i64, Expected>,
    /// The texts of the provider's notices.
    pub notices: BTreeSet<String>,
}

impl Model {
    pub fn of(history: &History) -> Self {
        let mut model = Self { seed: history.person.seed, ..Self::default() };
        for (step, act) in history.steps.iter().enumerate() {
            model.apply(history, step, act);
        }
        model
    }

    /// Applies a step. Steps are applied in the order in which they happen, since the order of calls makes no
    /// difference.
    fn apply(&mut self, history: &History, step: usize, act: &Act) {
        self.keys.extend(act.linked());
        self.number = self.keys.iter().filter(|key| matches!(key, Key::Number(_))).max().copied();
        let at_s = history.at_s(step);
        match act {
            Act::Writes { in_group, .. } => {
                let message = Expected::new(history, step, (Side::Contact, *in_group));
                let messages = if *in_group { &mut self.in_group } else { &mut self.private };
                messages.insert(at_s, message);
            }
            Act::Answers { .. } => {
                self.private.insert(at_s, Expected::new(history, step, (Side::Company, false)));
            }
            Act::Edits { of, .. } => {
                let text = history.text(step);
                self.change(history, *of, |message| message.texts.push((at_s, text)));
            }
            Act::Revokes { of, .. } => self.change(history, *of, |message| message.revoked_at = Some(at_s)),
            Act::Reacts { of, side, emoji } => self.change(history, *of, |message| {
                message.reaction_count += 1;
                message.reactions.insert(*side, *emoji);
            }),
            Act::ChangesStatus { of, status } => self.change(history, *of, |message| {
                // A report of the delivery may come after the message was read.
                if message.status != "read" {
                    message.status = *status;
                }
            }),
            Act::Notice { .. } => {
                self.notices.insert(history.text(step));
            }
            Act::Changes { .. } | Act::Merges => {}
        }
    }

    fn change(&mut self, history: &History, of: usize, change: impl FnOnce(&mut Expected)) {
        let at_s = history.at_s(of);
        let message = self.private.get_mut(&at_s).or_else(|| self.in_group.get_mut(&at_s));
        change(message.unwrap_or_else(|| panic!("history {}: there is no message {of}", self.seed)));
    }

    /// The messages with the person, or the person's messages in the group.
    pub fn messages(&self, in_group: bool) -> &BTreeMap<i64, Expected> {
        if in_group { &self.in_group } else { &self.private }
    }

    /// How many messages there are.
    pub fn count(&self) -> usize {
        self.private.len() + self.in_group.len() + self.notices.len()
    }

    /// How many messages no user has read.
    pub fn unread(messages: &BTreeMap<i64, Expected>) -> usize {
        messages.values().filter(|message| message.side == Side::Contact).count()
    }
}

impl Expected {
    fn new(history: &History, step: usize, (side, in_group): (Side, bool)) -> Self {
        let person = &history.person;
        let keys = group_keys(person);
        let author = json!({"name": person.name(), "number": person.number_of(&keys), "address": person.id_of(&keys)});
        Self {
            side,
            texts: vec![(history.at_s(step), history.text(step))],
            revoked_at: None,
            reactions: BTreeMap::new(),
            reaction_count: 0,
            status: if side == Side::Contact { "received" } else { "sent" },
            author: if in_group { author } else { Value::Null },
            wave: history.wave_of(step),
        }
    }

    pub fn is_revoked(&self) -> bool {
        self.revoked_at.is_some()
    }

    /// Whether `shown` is this message: it has one of its texts or, once it is deleted, its time of deletion. Both are
    /// unique.
    pub fn matches(&self, shown: &Value) -> bool {
        match shown["body"].as_str() {
            Some(body) => self.texts.iter().any(|(_, text)| text == body),
            None => self.revoked_at.is_some_and(|at_s| shown["deletedAt"] == shown_at(at_s)),
        }
    }

    /// How the shown message differs from the expected one; `None` if it does not.
    pub fn difference(&self, shown: &Value) -> Option<String> {
        let (expected, found) = (self.as_shown(), Self::compared(shown));
        let edits = shown["edits"].as_array().map_or(&[][..], Vec::as_slice);
        let earlier = edits.iter().map(|edit| edit["body"].as_str().unwrap_or_default()).collect::<Vec<_>>();
        if expected != found {
            Some(format!("{expected} is shown as {found}"))
        } else if !self.may_have_had(&earlier) {
            Some(format!("{:?} is shown with the earlier texts {earlier:?}", self.texts))
        } else {
            None
        }
    }

    fn as_shown(&self) -> Value {
        let (last_at, text) = self.texts.last().cloned().unwrap_or_default();
        let is_revoked = self.is_revoked();
        let edited_at = (self.texts.len() > 1 && !is_revoked).then(|| shown_at(last_at));
        let by = |side: &Side| if *side == Side::Contact { "contact" } else { "user" };
        let reactions = self.reactions.iter().filter(|_| !is_revoked);
        let reactions = reactions.filter_map(|(side, emoji)| Some((by(side).to_owned(), (*emoji)?.to_owned())));
        json!({
            "direction": if self.side == Side::Contact { "inbound" } else { "outbound" },
            "type": "text",
            "via": (self.side == Side::Company).then_some("nativeApp"),
            "status": self.status,
            "body": (!is_revoked).then_some(text),
            "editedAt": edited_at,
            "deletedAt": self.revoked_at.map(shown_at),
            "reactions": reactions.collect::<BTreeSet<_>>(),
            // Of a deleted message, only its existence is shown.
            "author": if is_revoked { &Value::Null } else { &self.author },
        })
    }

    /// The compared fields of a message that the API shows.
    fn compared(shown: &Value) -> Value {
        let mut compared = json!({});
        for field in ["direction", "type", "via", "status", "body", "editedAt", "deletedAt", "author"] {
            compared[field] = shown[field].clone();
        }
        let text = |reaction: &Value, field: &str| reaction[field].as_str().unwrap_or_default().to_owned();
        let reactions = shown["reactions"].as_array().into_iter().flatten();
        let reactions = reactions.map(|reaction| (text(reaction, "by"), text(reaction, "emoji")));
        compared["reactions"] = json!(reactions.collect::<BTreeSet<_>>());
        compared
    }

    /// Whether these may be its earlier texts: the first text is there, and all are in their order, each once. The text
    /// of an edit may be missing if its call came after that of a later edit, since it then changed nothing.
    fn may_have_had(&self, earlier: &[&str]) -> bool {
        if self.is_revoked() || self.texts.len() == 1 {
            return earlier.is_empty();
        }
        let mut texts = self.texts[..self.texts.len() - 1].iter().map(|(_, text)| text.as_str());
        earlier.first() == self.texts.first().map(|(_, text)| text.as_str()).as_ref()
            && earlier.iter().all(|text| texts.any(|had| had == *text))
    }
}

/// A time as the API shows it.
fn shown_at(at_s: i64) -> String {
    let at = DateTime::from_timestamp(at_s, 0).expect("a time");
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
