//! Compares a company's records with the models of its histories.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::history::History;
use super::model::{Expected, Model};
use super::person::{Key, Person, group_id};
use crate::support::Api;
use crate::support::mirror::{Mirror, events};

/// Who a contact is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Person(u64),
    Group(u64),
}

/// The models of a company's histories.
pub struct Agreement {
    models: Vec<(Person, Model)>,
    /// The owner of every spelling of every key.
    owners: HashMap<String, Owner>,
}

/// The records of the company.
pub struct Records {
    contacts: Vec<Value>,
    tickets: Vec<Value>,
    messages: Vec<Value>,
    mirror: Mirror,
    /// How many events of each kind each record has.
    events: HashMap<(String, i64), usize>,
    /// Contacts into which others were merged.
    merged: BTreeSet<i64>,
}

impl Records {
    pub async fn read(api: &Api) -> Self {
        let log = events(api).await;
        let mut events = HashMap::new();
        let mut merged = BTreeSet::new();
        for event in &log {
            let kind = event["type"].as_str().expect("a type").to_owned();
            if kind == "contact.merged" {
                merged.insert(id(&event["data"]));
            }
            *events.entry((kind, id(&event["data"]))).or_insert(0) += 1;
        }
        Self {
            contacts: api.all("/contacts").await,
            tickets: api.all("/tickets").await,
            messages: api.all("/messages").await,
            mirror: Mirror::from_events(&log),
            events,
            merged,
        }
    }

    /// All contacts, tickets and messages: no restart may change one.
    pub fn all(&self) -> impl Iterator<Item = &Value> {
        self.contacts.iter().chain(&self.tickets).chain(&self.messages)
    }
}

impl Agreement {
    pub fn of(histories: &[History]) -> Self {
        let mut owners = HashMap::new();
        for History { person, .. } in histories {
            owners.insert(group_id(person.group()), Owner::Group(person.group()));
            // Also keys that the person never has: no other person has them either.
            for key in (0..8).flat_map(|key| [Key::Number(key), Key::Id(key)]) {
                let spellings = person.spellings(key).into_iter();
                owners.extend(spellings.map(|spelling| (spelling, Owner::Person(person.seed))));
            }
        }
        let models = histories.iter().map(|history| (history.person.clone(), Model::of(history))).collect();
        Self { models, owners }
    }

    /// The differences between the records and the models, each with the seed of its history.
    pub async fn differences(&self, api: &Api, records: &Records) -> Vec<String> {
        let mut found = Vec::new();
        let contacts = self.contacts_by_owner(records, &mut found);
        for (person, model) in &self.models {
            let person_contacts = contacts.get(&Owner::Person(model.seed)).map_or(&[][..], Vec::as_slice);
            let differences = self.person_differences(person, model, person_contacts, records);
            found.extend(differences.into_iter().map(|difference| format!("history {}: {difference}", model.seed)));
        }
        self.add_group_differences(&contacts, records, &mut found);
        let expected: usize = self.models.iter().map(|(_, model)| model.count()).sum();
        if records.messages.len() != expected {
            found.push(format!("there are {} messages, and {expected} were written", records.messages.len()));
        }
        if found.is_empty()
            && let Some(difference) = records.mirror.difference(&Mirror::from_api(api).await)
        {
            found.push(format!("the events do not make the records: {difference}"));
        }
        found
    }

    /// The contacts of each owner. A contact of two owners, or of none, is a difference.
    fn contacts_by_owner<'a>(&self, records: &'a Records, found: &mut Vec<String>) -> BTreeMap<Owner, Vec<&'a Value>> {
        let mut contacts: BTreeMap<Owner, Vec<&Value>> = BTreeMap::new();
        for contact in &records.contacts {
            let owners = identities(contact).map(|value| self.owners.get(value).copied()).collect::<BTreeSet<_>>();
            match owners.iter().collect::<Vec<_>>()[..] {
                [Some(owner)] => contacts.entry(*owner).or_default().push(contact),
                _ => found.push(format!("{owners:?} are one contact: {contact}")),
            }
        }
        contacts
    }

    fn person_differences(
        &self,
        person: &Person,
        model: &Model,
        contacts: &[&Value],
        records: &Records,
    ) -> Vec<String> {
        let [contact] = contacts else { return vec![format!("{} contacts: {contacts:?}", contacts.len())] };
        let mut found = Vec::new();
        let known: BTreeSet<&str> = identities(contact).collect();
        for key in &model.keys {
            if !person.spellings(*key).iter().any(|spelling| known.contains(spelling.as_str())) {
                found.push(format!("{key:?} does not find {contact}"));
            }
        }
        if contact["isGroup"] == true || contact["mergeSuggestions"].as_array().is_none_or(|some| !some.is_empty()) {
            found.push(format!("a group, or more than one contact: {contact}"));
        }
        let number = contact["number"].as_str();
        let has_right_number = match model.number {
            // In a merge, the contact that stays keeps its number, which may be a former number of the person.
            Some(_) if records.merged.contains(&id(contact)) => number.is_some(),
            Some(key) => number.is_some_and(|number| person.spellings(key).contains(number)),
            None => number.is_none(),
        };
        if !has_right_number {
            found.push(format!("{:?} is its number: {contact}", model.number));
        }
        found.extend(conversation_differences(id(contact), &[model], false, records));
        found
    }

    /// Adds the differences of groups: each is a contact of its own, with the messages of all its members.
    fn add_group_differences(
        &self,
        contacts: &BTreeMap<Owner, Vec<&Value>>,
        records: &Records,
        found: &mut Vec<String>,
    ) {
        let groups: BTreeSet<u64> = self.models.iter().map(|(person, _)| person.group()).collect();
        for group in groups {
            let models = self.models.iter().filter(|(person, _)| person.group() == group).map(|(_, model)| model);
            let models: Vec<&Model> = models.filter(|model| !model.in_group.is_empty()).collect();
            let group_contacts = contacts.get(&Owner::Group(group)).map_or(&[][..], Vec::as_slice);
            let differences = match (models.is_empty(), group_contacts) {
                (true, []) => Vec::new(),
                (false, [contact]) if contact["isGroup"] == true && contact["number"].is_null() => {
                    conversation_differences(id(contact), &models, true, records)
                }
                _ => vec![format!("{group_contacts:?}")],
            };
            let seeds = models.iter().map(|model| model.seed).collect::<Vec<_>>();
            found.extend(differences.into_iter().map(|difference| format!("group of {seeds:?}: {difference}")));
        }
    }
}

/// The differences in the conversation of a contact, which is one person or a group.
fn conversation_differences(contact: i64, models: &[&Model], in_group: bool, records: &Records) -> Vec<String> {
    let tickets: Vec<&Value> = records.tickets.iter().filter(|ticket| ticket["contact"]["id"] == contact).collect();
    let [ticket] = tickets[..] else { return vec![format!("{} tickets: {tickets:?}", tickets.len())] };
    let mut found = Vec::new();
    let unread: usize = models.iter().map(|model| Model::unread(model.messages(in_group))).sum();
    if ticket["status"] != "open" || ticket["unreadCount"] != unread {
        found.push(format!("open, with {unread} unread messages, is {ticket}"));
    }
    let messages = records.messages.iter().filter(|message| message["ticketId"] == ticket["id"]);
    let (notices, messages): (Vec<_>, Vec<_>) = messages.partition(|message| message["direction"] == "internal");
    found.extend(notices_difference(&notices, models, in_group));
    let mut expected: Vec<&Expected> = models.iter().flat_map(|model| model.messages(in_group).values()).collect();
    for message in &messages {
        let Some(place) = expected.iter().position(|expected| expected.matches(message)) else {
            found.push(format!("nobody has written {message}, or it is there twice"));
            continue;
        };
        let expected = expected.swap_remove(place);
        found.extend(expected.difference(message));
        found.extend(events_difference(expected, message, records));
    }
    if !expected.is_empty() {
        found.push(format!("{expected:?} are lost"));
    }
    found.extend(models.iter().filter_map(|model| order_difference(model.messages(in_group), &messages)));
    found
}

/// The difference in notices: each is there once, as a system message for users only.
fn notices_difference(notices: &[&Value], models: &[&Model], in_group: bool) -> Option<String> {
    let expected = models.iter().filter(|_| !in_group).flat_map(|model| &model.notices);
    let mut expected: Vec<&str> = expected.map(String::as_str).collect();
    let mut texts: Vec<&str> = notices.iter().filter_map(|notice| notice["body"].as_str()).collect();
    expected.sort_unstable();
    texts.sort_unstable();
    let are_system = notices.iter().all(|notice| notice["type"] == "system");
    (texts != expected || !are_system).then(|| format!("notices {expected:?} are {notices:?}"))
}

/// The difference in the order of messages, which is that of their waves. Within a wave any order is right.
fn order_difference(expected: &BTreeMap<i64, Expected>, messages: &[&Value]) -> Option<String> {
    let wave =
        |message: &&Value| expected.values().find(|expected| expected.matches(message)).and_then(|found| found.wave);
    let waves: Vec<usize> = messages.iter().filter_map(wave).collect();
    (!waves.is_sorted()).then(|| format!("the messages of the waves are in the order {waves:?}"))
}

/// The difference in a message's events: each report on it is one event.
fn events_difference(expected: &Expected, message: &Value, records: &Records) -> Option<String> {
    let count = |kind: &str| records.events.get(&(kind.to_owned(), id(message))).copied().unwrap_or(0);
    let edits = message["edits"].as_array().map_or(0, Vec::len);
    let (updated, deleted) = (count("message.updated"), count("message.deleted"));
    let (came, reacted) = (count("message.received") + count("message.created"), count("message.reaction"));
    // The edits of a deleted message are no longer shown, and a reaction that comes after a later one has no event.
    let is_once = came == 1
        && deleted == usize::from(expected.is_revoked())
        && (expected.is_revoked() || updated == edits)
        && reacted <= expected.reaction_count;
    (!is_once).then(|| {
        format!(
            "came {came} times, updated {updated}, deleted {deleted}, reacted {reacted}: {message}, of {expected:?}"
        )
    })
}

/// The present and former identities of a contact.
fn identities(contact: &Value) -> impl Iterator<Item = &str> {
    contact["identities"].as_array().into_iter().flatten().filter_map(|identity| identity["value"].as_str())
}

fn id(record: &Value) -> i64 {
    record["id"].as_i64().unwrap_or_default()
}
