//! The provider's calls of a history.

use serde_json::{Value, json};

use super::history::{Act, History, Side, group_keys};
use super::person::{Keys, group_id};
use crate::support::provider::hooks::{Message, Phone, edit, reaction, revoke, text};

impl History {
    /// The call of a step; `None` if the provider has no part in it.
    pub fn call(&self, phone: &Phone, step: usize) -> Option<Value> {
        let (id, text_of) = (self.message_id(step), self.text(step));
        Some(match &self.steps[step] {
            Act::Writes { keys, in_group } => self.contact_call(phone, step, keys, *in_group, text(&id, &text_of)),
            Act::Answers { to } => self.company_call(phone, step, to, text(&id, &text_of)),
            Act::Edits { of, side } => {
                self.update_call(phone, step, (*of, *side), edit(&id, &self.message_id(*of), &text_of))
            }
            Act::Revokes { of, side } => {
                self.update_call(phone, step, (*of, *side), revoke(&id, &self.message_id(*of)))
            }
            Act::Reacts { of, side, emoji } => {
                self.update_call(phone, step, (*of, *side), reaction(&id, &self.message_id(*of), *emoji))
            }
            Act::ChangesStatus { of, status } => {
                let to = self.person.number((0, false));
                phone.status(&self.message_id(*of), &to, status, self.at_s(step))
            }
            Act::Changes { old, new } => self.notice_call(phone, step, old, self.key_change(old, new)),
            Act::Notice { keys } => {
                let part = json!({"type": "customer_identity_changed", "body": text_of});
                self.notice_call(phone, step, keys, part)
            }
            Act::Merges => return None,
        })
    }

    /// The call about an edit, a deletion or a reaction, by the side that makes it.
    fn update_call(&self, phone: &Phone, step: usize, (of, side): (usize, Side), message: Message) -> Value {
        let (keys, in_group) = match &self.steps[of] {
            Act::Writes { in_group: true, .. } => (group_keys(&self.person), true),
            Act::Writes { keys, .. } | Act::Answers { to: keys } => (*keys, false),
            _ => panic!("step {of} of history {} is not a message", self.person.seed),
        };
        match side {
            Side::Contact => self.contact_call(phone, step, &keys, in_group, message),
            Side::Company => self.company_call(phone, step, &keys, message),
        }
    }

    fn contact_call(&self, phone: &Phone, step: usize, keys: &Keys, in_group: bool, message: Message) -> Value {
        let mut message = message.at(self.at_s(step)).0;
        let mut contact = json!({"profile": {"name": self.person.name()}});
        let fields =
            [("from", "wa_id", self.person.number_of(keys)), ("from_user_id", "user_id", self.person.id_of(keys))];
        for (of_message, of_contact, key) in fields {
            if let Some(key) = key {
                message[of_message] = json!(key);
                contact[of_contact] = json!(key);
            }
        }
        if in_group {
            message["group_id"] = json!(group_id(self.person.group()));
        }
        phone.call_body(json!({"contacts": [contact], "messages": [message]}))
    }

    fn company_call(&self, phone: &Phone, step: usize, to: &Keys, message: Message) -> Value {
        let mut echo = message.at(self.at_s(step)).0;
        echo["from"] = json!(phone.number);
        for (field, key) in [("to", self.person.number_of(to)), ("to_user_id", self.person.id_of(to))] {
            if let Some(key) = key {
                echo[field] = json!(key);
            }
        }
        phone.call_body_of("smb_message_echoes", json!({"message_echoes": [echo]}))
    }

    /// The part of a call about changed keys: the number, perhaps with the id, or the id alone.
    fn key_change(&self, old: &Keys, new: &Keys) -> Value {
        let has_number = old.number.map(|(number, _)| number) != new.number.map(|(number, _)| number);
        let kind = if has_number { "user_changed_number" } else { "user_changed_user_id" };
        let mut part = json!({"type": kind, "body": "somebody has changed"});
        if let Some(number) = self.person.number_of(new) {
            part["wa_id"] = json!(number);
        }
        if let Some(id) = self.person.id_of(new) {
            part["user_id"] = json!(id);
            part["previous_user_id"] = json!(self.person.id_of(old));
        }
        part
    }

    /// The call with a notice of the provider about a person.
    fn notice_call(&self, phone: &Phone, step: usize, keys: &Keys, part: Value) -> Value {
        let mut message = json!({"id": self.message_id(step), "timestamp": self.at_s(step).to_string(),
            "type": "system", "system": part});
        for (field, key) in [("from", self.person.number_of(keys)), ("from_user_id", self.person.id_of(keys))] {
            if let Some(key) = key {
                message[field] = json!(key);
            }
        }
        phone.call_body(json!({"messages": [message]}))
    }
}
