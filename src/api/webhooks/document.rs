//! The requests that are sent to webhooks, for the API document: one per type of event.

use hotline_persistence::tables::campaigns::Campaign;
use hotline_persistence::tables::events::EventKind;
use serde_json::{Map, Value, json};

use crate::api::cards::Card;
use crate::api::channels::Channel;
use crate::api::contacts::Contact;
use crate::api::events::{
    EventAuthor, EventMessage, EventTemplate, GoneMessage, GoneSession, MergedContact, MergedTicket,
};
use crate::api::messages::Message;
use crate::api::schedules::Schedule;
use crate::api::tickets::Ticket;
use crate::api::webchat::Session;
use crate::web::response::schema::{self, Schemas};

/// The requests by type of event, including that of a test.
pub fn webhook_operations(schemas: &mut Schemas) -> Map<String, Value> {
    let mut operations = Map::new();
    let author = schema::of::<EventAuthor>(schemas);
    for kind in EventKind::ALL {
        let data = data_schema(*kind, schemas);
        operations.insert(kind.as_str().to_owned(), request_item(kind.as_str(), &data, &author));
    }
    let id = json!({"type": "integer", "format": "int64", "description": "The webhook.", "example": 7});
    let test = json!({
        "type": "object",
        "description": "The webhook under test.",
        "properties": {"webhookId": id},
        "required": ["webhookId"],
    });
    operations.insert("webhook.test".to_owned(), request_item("webhook.test", &test, &author));
    operations
}

/// The schema of the record that an event of this type is about.
fn data_schema(kind: EventKind, schemas: &mut Schemas) -> Value {
    match kind {
        EventKind::MessageReceived => {
            return one_of([schema::of::<EventMessage>(schemas), schema::of::<GoneMessage>(schemas)]);
        }
        EventKind::ChannelTemplateChanged => return schema::of::<EventTemplate>(schemas),
        EventKind::TicketMerged => return schema::of::<MergedTicket>(schemas),
        EventKind::ContactMerged => return schema::of::<MergedContact>(schemas),
        _ => {}
    }
    match kind.as_str().split('.').next() {
        Some("ticket") => schema::of::<Ticket>(schemas),
        Some("session") => one_of([schema::of::<Session>(schemas), schema::of::<GoneSession>(schemas)]),
        Some("contact") => schema::of::<Contact>(schemas),
        Some("card") => schema::of::<Card>(schemas),
        Some("schedule") => schema::of::<Schedule>(schemas),
        Some("campaign") => schema::of::<Campaign>(schemas),
        Some("channel") => schema::of::<Channel>(schemas),
        // Messages, including notes.
        _ => one_of([schema::of::<Message>(schemas), schema::of::<GoneMessage>(schemas)]),
    }
}

/// A record, or what is left of it once it was deleted.
fn one_of(forms: [Value; 2]) -> Value {
    json!({"oneOf": forms})
}

/// The path item of the request for one type of event.
fn request_item(kind: &str, data: &Value, author: &Value) -> Value {
    let header = |name: &str, text: &str, example: Value| {
        json!({
            "name": name,
            "in": "header",
            "required": true,
            "description": text,
            "schema": {"type": "string", "example": example},
        })
    };
    let name: String = kind.split(['.', '_']).map(capitalized).collect();
    let event = event_schema(&name, kind, data, author);
    json!({"post": {
        "operationId": format!("on{name}"),
        "summary": kind,
        "description": format!("Sent to webhooks subscribed to `{kind}`. Respond with any 2xx status within 15 seconds; any other result is retried."),
        "tags": ["webhooks"],
        "security": [],
        "parameters": [
            header("webhook-id", "The event's id; the same in every attempt.", json!("evt_1_4711")),
            header("webhook-timestamp", "When the attempt is made, in seconds since 1970.", json!("1769860800")),
            header("webhook-signature", "`v1,` and the base64 HMAC-SHA-256 of id, timestamp and body, joined by dots; one signature per valid secret, separated by spaces.", json!("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")),
        ],
        "requestBody": {"required": true, "content": {"application/json": {"schema": event}}},
        "responses": {
            "2XX": {"description": "The event was accepted."},
            "410": {"description": "The endpoint no longer exists; the webhook is disabled."},
        },
    }})
}

/// The schema of an event of this type.
fn event_schema(name: &str, kind: &str, data: &Value, author: &Value) -> Value {
    json!({
        // A unique title: the names that client generators choose themselves may be taken.
        "title": format!("{name}Event"),
        "type": "object",
        "description": "The event, as `GET /events` returns it.",
        "properties": {
            "id": {"type": "integer", "format": "int64", "description": "Increases within the company; 0 in a test.", "example": 4711},
            "type": {"type": "string", "enum": [kind], "description": "What happened."},
            "createdAt": {"type": "string", "format": "date-time", "description": "When it happened.", "example": "2026-01-31T12:00:00.000Z"},
            "by": author,
            "data": data,
            "previous": {
                "type": ["object", "null"], "additionalProperties": {},
                "description": "The previous values of the changed fields; `null` if there are none.",
            },
        },
        "required": ["id", "type", "createdAt", "by", "data", "previous"],
    })
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
    format!("{}{rest}", first.to_uppercase())
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    #[test]
    fn every_type_of_event_has_its_request_with_its_payload() {
        let mut schemas = Schemas::new();
        let operations = webhook_operations(&mut schemas);
        assert_eq!(operations.len(), EventKind::ALL.len() + 1);
        for (kind, item) in &operations {
            let schema = &item["post"]["requestBody"]["content"]["application/json"]["schema"];
            assert_eq!(schema["properties"]["type"]["enum"], json!([kind]));
            let data = &schema["properties"]["data"];
            let forms = data["oneOf"].as_array().map_or(std::slice::from_ref(data), Vec::as_slice);
            let is_defined = |form: &Value| {
                let name = form["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
                name.is_some_and(|name| schemas.contains_key(name))
            };
            assert!(forms.iter().all(is_defined) || kind == "webhook.test", "{kind}: {data}");
        }
        let data_of = |kind: &str| {
            let schema = &operations[kind]["post"]["requestBody"]["content"]["application/json"]["schema"];
            schema["properties"]["data"].clone()
        };
        let form = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        assert_eq!(data_of("ticket.closed"), form("Ticket"));
        assert_eq!(data_of("note.added"), json!({"oneOf": [form("Message"), form("GoneMessage")]}));
        assert_eq!(data_of("message.received"), json!({"oneOf": [form("EventMessage"), form("GoneMessage")]}));
        assert_eq!(data_of("session.ended"), json!({"oneOf": [form("Session"), form("GoneSession")]}));
        assert_eq!(operations["ticket.wrapup_changed"]["post"]["operationId"], "onTicketWrapupChanged");
    }
}
