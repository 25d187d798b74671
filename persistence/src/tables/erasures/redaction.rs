//! Finds and removes a contact's data in stored JSON. A redacted event keeps its form, so that readers can parse it.
//! The one-letter fields are those of [`NewEvent`](crate::tables::events::NewEvent) and
//! [`Record`](crate::tables::events::Record).

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::Erasure;

/// Fields of a contact in the API that contain no personal data. They are not redacted.
const NON_PERSONAL_FIELDS: [&str; 5] = ["id", "isGroup", "createdAt", "updatedAt", "mergedFrom"];

/// Redacts the events that a row contains. Returns them as JSON, and the number of changed ones; `None` if none changed
/// or the row is unreadable. Tickets of the contact that are found in the events are added to the erasure's traces.
pub(super) fn redact_row_events(text: &str, erasure: &mut Erasure) -> Option<(String, u64)> {
    let events: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let mut changed = 0;
    let mut redact = |event: &&RawValue| {
        let mut value: Value = serde_json::from_str(event.get()).ok()?;
        if !redact_event(&mut value, erasure) {
            return Some((*event).to_owned());
        }
        changed += 1;
        to_raw_value(&value).ok()
    };
    let events: Vec<Box<RawValue>> = events.iter().map(&mut redact).collect::<Option<_>>()?;
    if changed == 0 { None } else { Some((serde_json::to_string(&events).ok()?, changed)) }
}

/// Adds the contacts that were merged into the contact, according to the events of a row, to the erasure's traces.
pub(super) fn add_merged_contacts(text: &str, erasure: &mut Erasure) {
    let Ok(mut events) = serde_json::from_str::<Vec<Value>>(text) else { return };
    // A contact must be known before those that were merged into it earlier.
    for event in events.iter_mut().rev() {
        let Some(("c", record)) = kind_and_record(event) else { continue };
        let merged = record.get("s").and_then(|contact| contact.get("mergedFrom")).and_then(Value::as_i64);
        if is_of_contact(record.get("i"), erasure) {
            erasure.traces.contacts.extend(merged);
        }
    }
}

/// Whether a value is the id of the contact, or of one that was merged into it.
fn is_of_contact(id: Option<&Value>, erasure: &Erasure) -> bool {
    id.and_then(Value::as_i64).is_some_and(|id| erasure.has_contact(id))
}

/// Redacts an event; returns whether that changed it.
fn redact_event(event: &mut Value, erasure: &mut Erasure) -> bool {
    let before = event.clone();
    let is_redacted = match kind_and_record(event) {
        Some(("t", record)) => redact_ticket(record, erasure),
        Some(("m", record)) => redact_message(record, erasure),
        Some(("s", record)) => redact_fields(record, erasure, &["page", "utm", "claimed"], &["c"]),
        Some(("d", record)) => redact_schedule(record, erasure),
        Some(("c", record)) => redact_contact(record, erasure),
        Some(("k", record)) => {
            redact_card(record.get_mut("s"), erasure);
            false
        }
        _ => false,
    };
    let Some(event) = event.as_object_mut() else { return false };
    if is_redacted {
        event.remove("p");
    } else {
        redact_card(event.get_mut("p"), erasure);
        redact_recipient(event.get_mut("p"), erasure);
    }
    if let Some(by) = event.get_mut("b").and_then(Value::as_object_mut)
        && by.get("t").is_some_and(|kind| kind == "contact")
        && is_of_contact(by.get("i"), erasure)
    {
        by.remove("n");
    }
    before.as_object() != Some(&*event)
}

/// The kind of an event's record, and the record.
fn kind_and_record(event: &mut Value) -> Option<(&str, &mut Map<String, Value>)> {
    let record = event.get_mut("r")?.as_object_mut()?;
    let (kind, record) = record.iter_mut().next()?;
    Some((kind.as_str(), record.as_object_mut()?))
}

/// Removes these fields of a record and of its row, if the row belongs to the contact; returns whether it does.
fn redact_fields(
    record: &mut Map<String, Value>,
    erasure: &Erasure,
    row_fields: &[&str],
    record_fields: &[&str],
) -> bool {
    let Some(row) = record.get_mut("r").and_then(Value::as_object_mut) else { return false };
    if !is_of_contact(row.get("contact_id"), erasure) {
        return false;
    }
    row_fields.iter().for_each(|field| drop(row.remove(*field)));
    record_fields.iter().for_each(|field| drop(record.remove(*field)));
    true
}

fn redact_ticket(record: &mut Map<String, Value>, erasure: &mut Erasure) -> bool {
    let id = record.get("r").and_then(|row| row.get("id")).and_then(Value::as_i64);
    let is_redacted = redact_fields(record, erasure, &["wrapup_note"], &["c", "l"]);
    if is_redacted {
        erasure.traces.tickets.extend(id);
    }
    is_redacted
}

fn redact_message(record: &mut Map<String, Value>, erasure: &Erasure) -> bool {
    let ticket = record.get("t").and_then(Value::as_i64);
    let is_redacted = ticket.is_some_and(|ticket| erasure.traces.tickets.contains(&ticket));
    if is_redacted {
        ["f", "e"].iter().for_each(|field| drop(record.remove(*field)));
    }
    is_redacted
}

fn redact_schedule(record: &mut Map<String, Value>, erasure: &Erasure) -> bool {
    let is_redacted = redact_fields(record, erasure, &["error"], &["c"]);
    if is_redacted && let Some(body) = record.get_mut("r").and_then(|row| row.get_mut("body")) {
        *body = "".into();
    }
    is_redacted
}

fn redact_contact(record: &mut Map<String, Value>, erasure: &Erasure) -> bool {
    let is_redacted = is_of_contact(record.get("i"), erasure);
    if is_redacted && let Some(snapshot) = record.get_mut("s").and_then(Value::as_object_mut) {
        for (field, value) in snapshot.iter_mut().filter(|(field, _)| !NON_PERSONAL_FIELDS.contains(&field.as_str())) {
            *value = match value {
                _ if field == "name" => "".into(),
                Value::Array(_) => Value::Array(Vec::new()),
                Value::Bool(_) => false.into(),
                _ => Value::Null,
            };
        }
    }
    is_redacted
}

/// Removes the contact from a card.
fn redact_card(card: Option<&mut Value>, erasure: &Erasure) {
    let contacts = card.and_then(|card| card.get_mut("contacts")).and_then(Value::as_array_mut);
    if let Some(contacts) = contacts {
        contacts.retain(|embedded| !is_of_contact(embedded.get("id"), erasure));
    }
}

/// Removes the contact from the previous values of a scheduled message that was then changed to another recipient.
fn redact_recipient(previous: Option<&mut Value>, erasure: &Erasure) {
    let recipient = previous.and_then(|previous| previous.get_mut("contact")).and_then(Value::as_object_mut);
    if let Some(recipient) = recipient
        && is_of_contact(recipient.get("id"), erasure)
    {
        recipient.insert("name".to_owned(), "".into());
        recipient.insert("number".to_owned(), Value::Null);
    }
}

/// Whether a response of the API or a row contains the contact, or a record that belongs to it.
pub(super) fn mentions(value: &Value, erasure: &Erasure) -> bool {
    match value {
        Value::Array(values) => values.iter().any(|value| mentions(value, erasure)),
        Value::Object(object) => {
            belongs_to_contact(object, erasure) || object.values().any(|value| mentions(value, erasure))
        }
        _ => false,
    }
}

fn belongs_to_contact(object: &Map<String, Value>, erasure: &Erasure) -> bool {
    let number = |field: &str| object.get(field).and_then(Value::as_i64);
    let is_contact = |field: &str| is_of_contact(object.get(field), erasure);
    let is_ticket = |field| number(field).is_some_and(|ticket| erasure.traces.tickets.contains(&ticket));
    let is_session =
        |field: &str| object.get(field).and_then(Value::as_str).is_some_and(|id| erasure.traces.sessions.contains(id));
    is_contact("contactId")
        || is_contact("contact_id")
        || is_ticket("ticketId")
        || is_ticket("ticket_id")
        || is_session("sessionId")
        || is_session("session_id")
        || is_of_contact(object.get("contact").and_then(|embedded| embedded.get("id")), erasure)
        // A contact itself, alone or on a card.
        || object.contains_key("isGroup") && is_contact("id")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::tables::erasures::{RemovedCounts, Traces};
    use crate::{CompanyId, ContactId};

    fn erasure() -> Erasure {
        Erasure {
            company_id: CompanyId::new(1),
            contact_id: ContactId::new(7),
            traces: Traces { tickets: [70].into(), sessions: ["ses".to_owned()].into(), ..Traces::default() },
            removed: RemovedCounts::new(),
            failure: None,
            done_at: None,
            is_readable: true,
        }
    }

    #[test]
    fn every_kind_of_event_loses_the_contacts_data_and_keeps_its_form() {
        let events = json!([
            {"k": 1, "a": 5, "r": {"t": {"r": {"id": 71, "contact_id": 7, "wrapup_note": "Zelda"}, "c": {"n": "Zelda"},
                "l": {"b": "Zelda"}}}, "p": {"wrapupNote": "Zelda"}, "b": {"t": "contact", "i": 7, "n": "Zelda"}},
            {"k": 1, "a": 5, "r": {"m": {"i": 9, "t": 71, "s": "sent", "f": {"n": "Zelda"}}}, "p": {"body": "Zelda"}},
            {"k": 1, "a": 5, "r": {"s": {"r": {"id": "ses", "contact_id": 7, "page": {"title": "Zelda"}}, "c": {"name": "Zelda"}}}},
            {"k": 1, "a": 5, "r": {"d": {"r": {"contact_id": 7, "body": "Hi Zelda"}, "c": {"n": "Zelda"}}}},
            {"k": 1, "a": 5, "r": {"c": {"i": 7, "s": {"id": 7, "name": "Zelda", "number": "Zelda", "isGroup": false,
                "tags": [{"name": "Zelda"}], "createdAt": "then"}}}, "p": {"name": "Zelda"}},
            {"k": 1, "a": 5, "r": {"k": {"i": 3, "s": {"id": 3, "name": "Card", "contacts": [{"id": 7, "name": "Zelda"},
                {"id": 8, "name": "Link"}]}}}, "p": {"contacts": [{"id": 7, "name": "Zelda"}], "name": "Old"}},
            {"k": 1, "a": 5, "r": {"t": {"r": {"id": 72, "contact_id": 8}, "c": {"n": "Link"}}}, "p": {"status": "open"}},
        ]);
        let mut erasure = erasure();
        let (text, changed) = redact_row_events(&events.to_string(), &mut erasure).expect("changed");
        assert_eq!(changed, 6);
        assert!(!text.contains("Zelda") && text.contains("Link"), "{text}");
        let redacted: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(redacted.as_array().map(Vec::len), Some(7), "an event was removed");
        assert_eq!(redacted[6], events[6]);
        assert_eq!(redacted[5]["p"], json!({"contacts": [], "name": "Old"}));
        let contact = json!({"id": 7, "name": "", "number": null, "isGroup": false, "tags": [], "createdAt": "then"});
        assert_eq!(redacted[4]["r"]["c"]["s"], contact);
        assert!(redact_row_events(&text, &mut erasure).is_none(), "a second run changes something");
        assert!(redact_row_events("no JSON", &mut erasure).is_none());
    }

    #[test]
    fn an_event_of_another_recipient_loses_who_the_message_was_to_before() {
        let from = |contact: Value| {
            let schedule = json!({"r": {"contact_id": 8, "body": "Hi"}, "c": {"n": "Link"}});
            json!({"k": 1, "a": 5, "r": {"d": schedule}, "p": {"body": "Hello", "contact": contact}})
        };
        let (person, other) = (json!({"id": 7, "name": "Zelda", "number": "1"}), json!({"id": 6, "name": "Ganon"}));
        let events = json!([from(person), from(other)]);
        let (text, changed) = redact_row_events(&events.to_string(), &mut erasure()).expect("changed");
        assert_eq!(changed, 1);
        let redacted: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(redacted, json!([from(json!({"id": 7, "name": "", "number": null})), events[1]]));
        assert!(redact_row_events(&text, &mut erasure()).is_none(), "a second run changes something");
    }

    #[test]
    fn contacts_that_were_merged_into_the_contact_are_redacted_too() {
        let event = |id: i64, contact: Value| json!({"k": 1, "a": 5, "r": {"c": {"i": id, "s": contact}}});
        let created = |id: i64| event(id, json!({"id": id, "name": "Zelda"}));
        let merged = |into: i64, from: i64| event(into, json!({"id": into, "name": "Zelda", "mergedFrom": from}));
        let events = json!([created(4), created(6), merged(5, 4), merged(6, 3), merged(7, 5)]);
        let mut erasure = erasure();
        add_merged_contacts(&events.to_string(), &mut erasure);
        add_merged_contacts("no JSON", &mut erasure);
        assert_eq!(erasure.traces.contacts, BTreeSet::from([4, 5]));
        let (text, changed) = redact_row_events(&events.to_string(), &mut erasure).expect("changed");
        assert_eq!(changed, 3);
        let redacted: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&redacted[1], &redacted[3]), (&events[1], &events[3]));
        assert_eq!(redacted[4]["r"]["c"]["s"], json!({"id": 7, "name": "", "mergedFrom": 5}));
        assert!(mentions(&json!({"data": {"contactId": 4}}), &erasure));
    }

    #[test]
    fn responses_and_rows_of_the_contact_are_found() {
        let erasure = erasure();
        for (value, is_found) in [
            (json!({"data": {"id": 7, "name": "Zelda", "isGroup": false}}), true),
            (json!({"data": {"id": 7, "name": "a tag"}}), false),
            (json!({"data": [{"id": 70, "contact": {"id": 7}}]}), true),
            (json!({"data": {"id": 1, "ticketId": 70}}), true),
            (json!({"Message": {"contact_id": 7}}), true),
            (json!({"data": {"sessionId": "ses"}}), true),
            (json!({"data": {"contactId": 8, "ticketId": 71}}), false),
        ] {
            assert_eq!(mentions(&value, &erasure), is_found, "{value}");
        }
    }
}
