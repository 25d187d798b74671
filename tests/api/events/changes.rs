//! For every operation: a change of what a record shows is an event with the old values of exactly the changed fields
//! and with who made the change, and sets `updatedAt`. A request that changes nothing has no event and sets nothing.

use std::collections::{BTreeMap, BTreeSet};

use hotline_persistence::{CompanyId, PgPool};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::after;
use crate::support::{Api, Reply, TestApp, eventually};

/// The nouns with events: the list of each, and the fields that other events change.
const NOUNS: [(&str, &str, &[&str]); 6] = [
    ("contact", "/contacts", &["lastChannel"]),
    ("ticket", "/tickets", &["lastMessage", "lastActivityAt", "waitingSince", "unreadCount", "firstResponseAt"]),
    ("message", "/messages", &["readAt"]),
    // A card shows its contacts as they are now; their changes have events of their own.
    ("card", "/crm/cards", &["contacts"]),
    ("schedule", "/schedules", &[]),
    ("campaign", "/campaigns", &["counts", "completedAt"]),
];

/// Lists of nouns without events: a change by another record's deletion sets `updatedAt` all the same.
const LISTS_WITHOUT_EVENTS: [&str; 6] =
    ["/users", "/products", "/wrapup-types", "/crm/boards", "/contact-lists", "/queues"];

type Records = BTreeMap<(String, i64), Value>;

/// A company, its records as last read, and the id of the last event that was read.
struct World {
    api: Api,
    db: PgPool,
    company: CompanyId,
    last: i64,
    shown: Records,
    without_events: Records,
}

async fn records(api: &Api, lists: impl Iterator<Item = (&str, &str)>) -> Records {
    let mut shown = Records::new();
    for (noun, path) in lists {
        for record in api.all(path).await {
            shown.insert((noun.to_owned(), record["id"].as_i64().expect("an id")), record);
        }
    }
    shown
}

/// The old values of the fields that differ, except `updatedAt` and the `ignored` ones.
fn old_values(before: &Value, now: &Value, ignored: &[&str]) -> Map<String, Value> {
    let before = before.as_object().expect("an object");
    let differs = before.iter().filter(|(field, value)| {
        *field != "updatedAt" && !ignored.contains(&field.as_str()) && now.get(field.as_str()) != Some(value)
    });
    differs.map(|(field, value)| (field.clone(), value.clone())).collect()
}

impl World {
    async fn of(api: &Api, db: &PgPool, company: CompanyId) -> Self {
        let last = after(api, 0).await.last().map_or(0, |event| event["id"].as_i64().expect("an id"));
        let shown = records(api, NOUNS.iter().map(|(noun, path, _)| (*noun, *path))).await;
        let without_events = records(api, LISTS_WITHOUT_EVENTS.iter().map(|path| (*path, *path))).await;
        Self { api: api.clone(), db: db.clone(), company, last, shown, without_events }
    }

    /// Compares what has changed since the last read with the events since then; returns their types.
    async fn check_events(&mut self, operation: &str) -> Vec<String> {
        let events = after(&self.api, self.last).await;
        let now = Self::of(&self.api, &self.db, self.company).await;
        let mut by_record: BTreeMap<(String, i64), Vec<&Value>> = BTreeMap::new();
        for event in &events {
            let kind = event["type"].as_str().expect("a type");
            let noun =
                kind.split('.').next().map(|noun| if noun == "note" { "message" } else { noun }).expect("a noun");
            if noun != "session" {
                let id = event["data"]["id"].as_i64().expect("an id");
                by_record.entry((noun.to_owned(), id)).or_default().push(event);
            }
            let by = &event["by"];
            assert!(
                by["type"].is_string() && by.get("id").is_some() && by.get("name").is_some(),
                "{operation}: {event}"
            );
            let author = match kind {
                "message.received" => "contact",
                "ticket.opened" if event["data"]["creationSource"] == "contact" => "contact",
                "message.sent" | "message.delivered" | "message.read" | "message.failed" => "system",
                _ => "integration",
            };
            assert_eq!(by["type"], author, "{operation}: {event}");
            assert!(author == "system" || by["id"].is_i64() && by["name"].is_string(), "{operation}: {event}");
        }
        for (noun, _, ignored) in NOUNS {
            let of_noun = |records: &Records| -> BTreeSet<i64> {
                records.keys().filter(|(of, _)| of == noun).map(|(_, id)| *id).collect()
            };
            for id in of_noun(&self.shown).union(&of_noun(&now.shown)) {
                let key = (noun.to_owned(), *id);
                let events = by_record.remove(&key).unwrap_or_default();
                let types: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
                let name = format!("{operation}: {noun} {id} {types:?}");
                let (Some(before), Some(new)) = (self.shown.get(&key), now.shown.get(&key)) else { continue };
                let mut previous = Map::new();
                for event in &events {
                    for (field, value) in event["previous"].as_object().into_iter().flatten() {
                        if !ignored.contains(&field.as_str()) {
                            previous.entry(field.clone()).or_insert_with(|| value.clone());
                        }
                    }
                }
                let changed = old_values(before, new, ignored);
                assert_eq!(previous, changed, "{name}: the old values of what changed");
                if let Some(last) = events.last() {
                    if ["contact", "card"].contains(&noun) {
                        assert_eq!(&last["data"], new, "{name}: as its own endpoint shows it");
                    }
                    for field in changed.keys() {
                        assert_eq!(last["data"][field], new[field], "{name}: {field} as it is");
                    }
                }
                let is_only_moved = types == ["card.moved"];
                if noun != "message" && noun != "ticket" {
                    let has_new_updated_at = before["updatedAt"] != new["updatedAt"];
                    assert_eq!(has_new_updated_at, !changed.is_empty() || is_only_moved, "{name}: updatedAt");
                }
                assert!(
                    !changed.is_empty() || is_only_moved || types.iter().all(|kind| *kind == "ticket.read"),
                    "{name}"
                );
            }
        }
        for (key, before) in &self.without_events {
            if let Some(new) = now.without_events.get(key) {
                let has_changed = !old_values(before, new, &[]).is_empty();
                assert_eq!(has_changed, before["updatedAt"] != new["updatedAt"], "{operation}: {key:?} {before} {new}");
            }
        }
        *self = now;
        events.iter().map(|event| event["type"].as_str().expect("a type").to_owned()).collect()
    }

    async fn write(&mut self, method: Method, path: &str, body: Value, expected: &[&str]) -> Value {
        let mut request = self.api.request(method.clone(), path);
        if method != Method::DELETE {
            request = request.json(&body);
        }
        let reply = Reply::of(request).await;
        assert!(reply.status.is_success(), "{method} {path}: {} {}", reply.status, reply.body);
        eventually("what a deletion leaves is gone", || async {
            let left: i64 = sqlx::query_scalar("select count(*) from cascades where company_id = $1")
                .bind(self.company)
                .fetch_one(&self.db)
                .await
                .expect("a count");
            left == 0
        })
        .await;
        let types = self.check_events(&format!("{method} {path} {body}")).await;
        assert_eq!(types, expected, "{method} {path} {body}");
        reply.body["data"].clone()
    }

    async fn post(&mut self, path: &str, body: Value, expected: &[&str]) -> Value {
        self.write(Method::POST, path, body, expected).await
    }

    /// Sends a change twice; the second request changes nothing.
    async fn put(&mut self, path: &str, body: Value, expected: &[&str]) -> Value {
        let shown = self.write(Method::PUT, path, body.clone(), expected).await;
        self.write(Method::PUT, path, body, &[]).await;
        shown
    }

    /// Deletes a record, with the events of what this changes in others.
    async fn delete(&mut self, path: &str, expected: &[&str]) {
        self.write(Method::DELETE, path, Value::Null, expected).await;
    }
}

#[actix_web::test]
async fn each_change_is_an_event_with_old_values_and_author_and_a_repeated_request_is_none() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let world = &mut World::of(&app.api, &app.db, app.company.id).await;
    let tag = world.post("/tags", json!({"name": "VIP"}), &[]).await["id"].clone();
    let other_tag = world.post("/tags", json!({"name": "Partner"}), &[]).await["id"].clone();
    let field = json!({"name": "Company", "application": "contact", "type": "text"});
    let field = world.post("/custom-fields", field, &[]).await["id"].clone();
    let card_field = json!({"name": "Size", "application": "card", "type": "number"});
    let card_field = world.post("/custom-fields", card_field, &[]).await["id"].clone();

    // Contacts.
    let new = json!({"name": "Maria", "number": "5511987654321", "tagIds": [tag],
        "customFields": [{"key": "contact_company", "value": "ACME"}]});
    let contact = world.post("/contacts", new, &["contact.created"]).await["id"].clone();
    let contact_path = format!("/contacts/{contact}");
    world.put(&contact_path, json!({"name": "Maria Lima", "email": "m@example.com"}), &["contact.updated"]).await;
    let both = json!({"tagIds": [other_tag], "code": "C-1"});
    world.put(&contact_path, both, &["contact.updated", "contact.tagged", "contact.untagged"]).await;
    world.put(&format!("{contact_path}/tags/{tag}"), json!({}), &["contact.tagged"]).await;
    let value = json!({"customFields": [{"key": "contact_company", "value": "Other"}]});
    world.put(&contact_path, value, &["contact.updated"]).await;
    let rows =
        json!({"contacts": [{"number": "5511987654321", "origin": "fair"}, {"name": "New", "email": "n@example.com"}]});
    world.post("/contacts/import", rows.clone(), &["contact.updated", "contact.created"]).await;
    world.post("/contacts/import", rows, &[]).await;

    // Conversations.
    let open = json!({"channelId": company.phone, "contactId": contact, "queueId": company.support});
    let ticket = world.post("/tickets", open, &["ticket.opened"]).await["id"].clone();
    let at = |verb: &str| format!("/tickets/{ticket}/{verb}");
    for (body, expected) in [
        (json!({"userId": company.ana}), ["ticket.assigned"]),
        (json!({"queueId": company.sales, "userId": company.ben}), ["ticket.transferred"]),
        (json!({"queueId": company.support}), ["ticket.transferred"]),
    ] {
        world.post(&at("transfer"), body.clone(), &expected).await;
        world.post(&at("transfer"), body, &[]).await;
    }
    world.post(&at("notes"), json!({"body": "Call back"}), &["note.added"]).await;
    let close = json!({"wrapupTypeId": company.solved, "wrapupNote": "Done"});
    world.post(&at("close"), close, &["ticket.closed"]).await;
    world
        .put(&at("wrapup"), json!({"wrapupTypeId": company.solved, "wrapupNote": "All"}), &["ticket.wrapup_changed"])
        .await;
    world.put(&at("wrapup"), json!({"wrapupTypeId": company.solved}), &[]).await;
    world.post(&at("reopen"), json!({}), &["ticket.reopened"]).await;
    world.post(&at("read"), json!({}), &[]).await;
    world.post(&at("close"), json!({"wrapupTypeId": company.solved}), &["ticket.closed"]).await;

    // Sales.
    let label = |path: &'static str, name: &str| (path, json!({"name": name}));
    let mut labels = Vec::new();
    for (path, body) in
        [label("/crm/statuses", "Waiting"), label("/crm/businesses", "Roofs"), label("/crm/origins", "Fair")]
    {
        labels.push(format!("{path}/{}", world.post(path, body, &[]).await["id"]));
    }
    let id = |path: &String| path.rsplit('/').next().and_then(|id| id.parse::<i64>().ok()).expect("an id");
    let category = world.post("/product-categories", json!({"name": "Panels"}), &[]).await["id"].clone();
    let product = json!({"name": "Panel", "price": 12.5, "categoryId": category});
    let product = world.post("/products", product, &[]).await["id"].clone();
    world.put(&format!("/products/{product}"), json!({"price": 13}), &[]).await;
    let board = json!({"name": "Sales", "crmBoardQueues": [{"queueId": company.sales}]});
    let board = world.post("/crm/boards", board, &[]).await["id"].clone();
    let stages = app.api.get(&format!("/crm/boards/{board}")).await.data(200)["lists"].clone();
    let card = json!({"boardId": board, "name": "Roof", "contactIds": [contact], "statusId": id(&labels[0]),
        "businessId": id(&labels[1]), "originId": id(&labels[2]), "assignedToUserId": company.ana, "ticketId": ticket,
        "products": [{"productId": product}], "customFields": [{"key": "size", "value": "12"}]});
    let card = world.post("/crm/cards", card, &["card.created"]).await["id"].clone();
    let card_path = format!("/crm/cards/{card}");
    world.put(&card_path, json!({"name": "Roof of the school", "boardId": board}), &["card.updated"]).await;
    world.put(&card_path, json!({"products": [{"productId": product, "quantity": 2}]}), &["card.updated"]).await;
    world.put(&card_path, json!({"customFields": [{"key": "size", "value": "14"}]}), &["card.updated"]).await;
    let second = json!({"boardId": board, "name": "Second"});
    world.post("/crm/cards", second, &["card.created"]).await;
    let top = json!({"crmBoardListId": stages[0]["id"], "position": 0});
    world.post(&format!("{card_path}/move"), top.clone(), &[]).await;
    let below = json!({"crmBoardListId": stages[0]["id"], "position": 1});
    world.post(&format!("{card_path}/move"), below.clone(), &["card.moved"]).await;
    world.post(&format!("{card_path}/move"), below, &[]).await;
    world.post(&format!("{card_path}/move"), json!({"crmBoardListId": stages[0]["id"]}), &[]).await;
    world.post(&format!("{card_path}/move"), json!({"crmBoardListId": stages[1]["id"]}), &["card.moved"]).await;
    let line =
        world.post(&format!("{card_path}/products"), json!({"name": "Work", "unitPrice": 5}), &["card.updated"]).await;
    world.put(&format!("{card_path}/products/{}", line["id"]), json!({"quantity": 3}), &["card.updated"]).await;
    world.delete(&format!("{card_path}/products/{}", line["id"]), &["card.updated"]).await;
    world.post(&format!("{card_path}/win"), json!({"statusReason": "Best price"}), &["card.won"]).await;
    world.post(&format!("{card_path}/reopen"), json!({}), &["card.reopened"]).await;
    world.post(&format!("{card_path}/lose"), json!({"statusReason": "Too late"}), &["card.lost"]).await;

    // Outreach.
    let schedule =
        json!({"contactId": contact, "channelId": company.phone, "body": "Hello", "sendAt": "2099-01-01T00:00:00Z"});
    let schedule = world.post("/schedules", schedule, &["schedule.created"]).await["id"].clone();
    let schedule = format!("/schedules/{schedule}");
    world.put(&schedule, json!({"body": "Good morning", "queueId": company.sales}), &["schedule.updated"]).await;
    world.delete(&schedule, &["schedule.canceled"]).await;
    let pending =
        json!({"contactId": contact, "channelId": company.phone, "body": "Hello", "sendAt": "2099-01-01T00:00:00Z"});
    let pending = world.post("/schedules", pending, &["schedule.created"]).await["id"].clone();
    let contact_list = world.post("/contact-lists", json!({"name": "All"}), &[]).await["id"].clone();
    world.post(&format!("/contact-lists/{contact_list}/contacts"), json!({"contactIds": [contact]}), &[]).await;

    // Deletions, and what they change in other records.
    world.delete(&format!("/tags/{tag}"), &["contact.untagged"]).await;
    world.delete(&format!("/custom-fields/{field}"), &["contact.updated"]).await;
    world.delete(&format!("/custom-fields/{card_field}"), &["card.updated"]).await;
    for label in &labels {
        world.delete(label, &["card.updated"]).await;
    }
    world.delete(&format!("/products/{product}"), &["card.updated"]).await;
    world.delete(&format!("/product-categories/{category}"), &[]).await;
    world.delete(&format!("/users/{}", company.ana), &["card.updated"]).await;
    world.delete(&contact_path, &["card.updated", "contact.deleted", "card.updated", "schedule.failed"]).await;
    let failed = app.api.get(&format!("/schedules/{pending}")).await.data(200).clone();
    assert_eq!((&failed["contact"], &failed["status"]), (&Value::Null, &json!("failed")));
    assert_eq!(failed["error"]["code"], "ERR_API_CONTACT_NOT_FOUND");
    world.delete(&card_path, &["card.deleted"]).await;
    app.stop().await;
}

/// A deletion of several steps: every record that it changes has its event and a new `updatedAt`.
#[actix_web::test]
async fn a_deletion_of_several_steps_has_an_event_for_every_changed_record() {
    const MANY: usize = 130;
    let app = TestApp::shared().await;
    let world = &mut World::of(&app.api, &app.db, app.company.id).await;
    let tag = world.post("/tags", json!({"name": "VIP"}), &[]).await["id"].clone();
    let field = json!({"name": "Size", "application": "contact", "type": "text"});
    let field = world.post("/custom-fields", field, &[]).await["id"].clone();
    let row = |nth: usize| json!({"name": format!("Contact {nth}"), "tagIds": [tag], "customFields": [{"key": "size", "value": "12"}]});
    let rows: Vec<Value> = (0..MANY).map(row).collect();
    world.post("/contacts/import", json!({"contacts": rows}), &["contact.created"; MANY]).await;
    world.delete(&format!("/tags/{tag}"), &["contact.untagged"; MANY]).await;
    world.delete(&format!("/custom-fields/{field}"), &["contact.updated"; MANY]).await;
    app.api.get(&format!("/tags/{tag}")).await.error(404, "ERR_API_NOT_FOUND");
    app.stop().await;
}
