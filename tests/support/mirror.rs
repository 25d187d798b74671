//! The records of a company in two ways: as an integration derives them from all events, and as the API returns them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use serde_json::{Value, json};

use super::Api;

/// The records, by their ids.
#[derive(Debug, Default, PartialEq)]
pub struct Mirror {
    pub contacts: BTreeMap<i64, Value>,
    /// Each ticket's contact, status and agent.
    pub tickets: BTreeMap<i64, (i64, String, Value)>,
    /// Each message's ticket and its `MESSAGE_FIELDS`; `Null` once it is deleted.
    pub messages: BTreeMap<i64, (i64, Value)>,
}

/// The fields of a message that are compared. Not those that are derived from other records, nor `updatedAt`.
const MESSAGE_FIELDS: [&str; 11] =
    ["direction", "type", "body", "author", "via", "status", "editedAt", "edits", "reactions", "sentAt", "deliveredAt"];

impl Mirror {
    /// The records that result from these events.
    pub fn from_events(events: &[Value]) -> Self {
        let mut mirror = Self::default();
        events.iter().for_each(|event| mirror.apply(event));
        mirror
    }

    fn apply(&mut self, event: &Value) {
        let (kind, data) = (event["type"].as_str().expect("a type"), &event["data"]);
        let merged_from = data["mergedFrom"].as_i64();
        match kind.split('.').next() {
            Some("contact") => {
                if let Some(from) = merged_from {
                    self.contacts.remove(&from);
                    let tickets = self.tickets.values_mut().filter(|(contact, ..)| *contact == from);
                    tickets.for_each(|(contact, ..)| *contact = id(data));
                }
                self.contacts.insert(id(data), comparable_contact(data));
            }
            Some("ticket") => {
                if let Some(from) = merged_from {
                    self.tickets.remove(&from);
                    let messages = self.messages.values_mut().filter(|(ticket, _)| *ticket == from);
                    messages.for_each(|(ticket, _)| *ticket = id(data));
                }
                self.tickets.insert(id(data), comparable_ticket(data));
            }
            Some("message") => {
                self.messages.insert(id(data), comparable_message(data));
            }
            // Other records are not compared.
            _ => {}
        }
    }

    /// The first record that differs: its id, its value here and its value in `other`.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let Self { contacts, tickets, messages } = self;
        first_difference(contacts, &other.contacts)
            .or_else(|| first_difference(tickets, &other.tickets))
            .or_else(|| first_difference(messages, &other.messages))
    }

    /// The records that the API shows.
    pub async fn from_api(api: &Api) -> Self {
        let mut mirror = Self::default();
        mirror.contacts.extend(api.all("/contacts").await.iter().map(|row| (id(row), comparable_contact(row))));
        mirror.tickets.extend(api.all("/tickets").await.iter().map(|row| (id(row), comparable_ticket(row))));
        mirror.messages.extend(api.all("/messages").await.iter().map(|row| (id(row), comparable_message(row))));
        mirror
    }
}

fn first_difference<T: Debug + PartialEq>(ours: &BTreeMap<i64, T>, theirs: &BTreeMap<i64, T>) -> Option<String> {
    let ids: BTreeSet<i64> = ours.keys().chain(theirs.keys()).copied().collect();
    let differing = ids.into_iter().find(|id| ours.get(id) != theirs.get(id))?;
    Some(format!("{differing}: {:?} and {:?}", ours.get(&differing), theirs.get(&differing)))
}

/// Every event of a company.
pub async fn events(api: &Api) -> Vec<Value> {
    let mut events = Vec::new();
    let mut after = 0;
    loop {
        let page = api.get(&format!("/events?after={after}&limit=1000")).await;
        events.extend(page.data(200).as_array().expect("events").iter().cloned());
        after = page.body["meta"]["lastId"].as_i64().expect("an id");
        if page.body["meta"]["hasMore"] == false {
            return events;
        }
    }
}

fn id(record: &Value) -> i64 {
    record["id"].as_i64().expect("an id")
}

fn comparable_contact(contact: &Value) -> Value {
    let mut contact = contact.clone();
    let fields = contact.as_object_mut().expect("a contact");
    fields.remove("mergedFrom");
    // It is derived from events of messages: a change of it alone is not an event of the contact.
    fields.remove("lastChannel");
    contact
}

fn comparable_ticket(ticket: &Value) -> (i64, String, Value) {
    let status = ticket["status"].as_str().expect("a status").to_owned();
    (id(&ticket["contact"]), status, ticket["assignedTo"].clone())
}

fn comparable_message(message: &Value) -> (i64, Value) {
    let ticket = message["ticketId"].as_i64().expect("a ticket");
    if message["deleted"] == true || !message["deletedAt"].is_null() {
        return (ticket, Value::Null);
    }
    let mut comparable = json!({});
    for field in MESSAGE_FIELDS {
        comparable[field] = message[field].clone();
    }
    (ticket, comparable)
}
