//! Deletions that change many other records: from the answer on no reader sees the old state, and each changed
//! record has one event.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{after, newest, types};
use crate::support::{TestApp, eventually};

/// Contacts with a tag: enough for several steps of a deletion.
const MANY: usize = 330;

/// Rows of one import.
const ROWS: usize = 110;

/// Cards that show one record: more than a step takes.
const CARDS: usize = 120;

/// Waits until the company's deletions have done all their steps.
pub async fn wait_for_cascades(app: &TestApp) {
    eventually("the steps are done", || async {
        let left: i64 = sqlx::query_scalar("select count(*) from cascades where company_id = $1")
            .bind(app.company.id)
            .fetch_one(&app.db)
            .await
            .expect("a count");
        left == 0
    })
    .await;
}

/// The events of a type, by the id of their record.
fn by_record(events: &[Value], kind: &str) -> BTreeMap<i64, Vec<Value>> {
    let mut found: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["type"] == kind) {
        found.entry(event["data"]["id"].as_i64().expect("an id")).or_default().push(event.clone());
    }
    found
}

fn id(record: &Value) -> i64 {
    record["id"].as_i64().expect("an id")
}

#[actix_web::test]
async fn a_deleted_tag_of_many_contacts_is_gone_at_once_and_each_contact_has_one_event() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let tag = id(api.post("/tags", json!({"name": "VIP"})).await.data(201));
    let other = id(api.post("/tags", json!({"name": "Other"})).await.data(201));
    for from in (0..MANY).step_by(ROWS) {
        let row = |nth: usize| json!({"name": format!("Contact {nth}"), "tagIds": [tag, other]});
        let rows: Vec<Value> = (from..from + ROWS).map(row).collect();
        let imported = api.post("/contacts/import", json!({"contacts": rows})).await;
        assert_eq!(imported.data(200)["errors"], json!([]));
    }
    let before = api.all("/contacts").await;
    assert_eq!(before.len(), MANY);
    let last = newest(api).await;

    assert_eq!(api.delete(&format!("/tags/{tag}")).await.status, 204);
    let path = format!("/tags/{tag}");
    api.get(&path).await.error(404, "ERR_API_NOT_FOUND");
    api.put(&path, json!({"name": "Back"})).await.error(404, "ERR_API_NOT_FOUND");
    api.delete(&path).await.error(404, "ERR_API_NOT_FOUND");
    api.get(&format!("/contacts?tagId={tag}")).await.error(404, "ERR_API_NOT_FOUND");
    assert!(api.all("/tags").await.iter().all(|listed| id(listed) != tag));
    // A contact is shown without the tag, even if it waits for the last step.
    let late = before.last().expect("a contact");
    let late_path = format!("/contacts/{}", late["id"]);
    let names = |contact: &Value| -> Vec<String> {
        let tags = contact["tags"].as_array().expect("tags").iter();
        tags.map(|tag| tag["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(api.get(&late_path).await.data(200)), ["Other"]);
    api.put(&late_path, json!({"tagIds": [tag]})).await.error(404, "ERR_API_NOT_FOUND");
    api.put(&format!("{late_path}/tags/{tag}"), json!({})).await.error(404, "ERR_API_NOT_FOUND");
    api.delete(&format!("{late_path}/tags/{tag}")).await.error(404, "ERR_API_NOT_FOUND");
    // The tag's name is free, and replacing a contact's tags does not hide the deletion's event.
    let new = id(api.post("/tags", json!({"name": "VIP"})).await.data(201));
    assert_ne!(new, tag);
    assert_eq!(names(api.put(&late_path, json!({"tagIds": [new]})).await.data(200)), ["VIP"]);

    wait_for_cascades(&app).await;
    let events = after(api, last).await;
    let untagged = by_record(&events, "contact.untagged");
    let token = events[0]["by"].clone();
    assert_eq!(token["type"], "integration");
    assert!(token["id"].is_i64(), "{token}");
    let now = api.all("/contacts").await;
    assert_eq!(now.len(), MANY);
    for (contact, shown) in before.iter().zip(&now) {
        assert_eq!(id(contact), id(shown));
        let listed = untagged.get(&id(contact)).map(Vec::as_slice).unwrap_or_default();
        // The last contact has lost the other tag too, by the request above.
        let lost: Vec<&Value> = listed
            .iter()
            .filter(|event| {
                let had = event["previous"]["tags"].as_array().expect("tags");
                had.iter().any(|had| had["id"] == json!(tag))
            })
            .collect();
        assert_eq!(lost.len(), 1, "{contact}: {listed:?}");
        assert_eq!(lost[0]["by"], token);
        assert!(shown["updatedAt"].as_str() > contact["updatedAt"].as_str(), "{shown}");
        if contact != late {
            assert_eq!(listed.len(), 1, "{listed:?}");
            assert_eq!((&lost[0]["data"], names(shown)), (shown, vec!["Other".to_owned()]));
            assert_eq!(lost[0]["previous"], json!({"tags": contact["tags"]}));
        }
    }
    assert_eq!(names(api.get(&late_path).await.data(200)), ["VIP"]);
    app.stop().await;
}

/// Creates a board, and [`CARDS`] cards on it with these fields.
async fn create_cards(app: &TestApp, fields: &Value) -> Vec<Value> {
    let board = id(app.api.post("/crm/boards", json!({"name": "Sales"})).await.data(201));
    let mut cards = Vec::new();
    for nth in 0..CARDS {
        let mut card = json!({"boardId": board, "name": format!("Card {nth}")});
        let (card_fields, fields) = (card.as_object_mut().expect("an object"), fields.as_object().expect("an object"));
        card_fields.extend(fields.clone());
        cards.push(app.api.post("/crm/cards", card).await.data(201).clone());
    }
    cards
}

#[actix_web::test]
async fn a_deleted_user_with_many_cards_is_gone_at_once_and_each_card_has_one_event() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let (ana, ben) = (app.company.ana.0, app.company.ben.0);
    let user = api.get(&format!("/users/{ben}")).await.data(200).clone();
    let cards = create_cards(&app, &json!({"assignedToUserId": ben})).await;
    let last = newest(api).await;

    assert_eq!(api.delete(&format!("/users/{ben}")).await.status, 204);
    api.get(&format!("/users/{ben}")).await.error(404, "ERR_API_NOT_FOUND");
    api.get(&format!("/crm/cards?assignedToUserId={ben}")).await.error(404, "ERR_API_NOT_FOUND");
    let late = cards.last().expect("a card");
    let late_path = format!("/crm/cards/{}", late["id"]);
    assert_eq!(api.get(&late_path).await.data(200)["assignedTo"], Value::Null);
    api.put(&late_path, json!({"assignedToUserId": ben})).await.error(404, "ERR_API_NOT_FOUND");
    let again = json!({"name": user["name"], "email": user["email"]});
    assert_ne!(id(api.post("/users", again).await.data(201)), ben);
    // Another user in the deleted one's place does not hide the deletion's event.
    api.put(&late_path, json!({"assignedToUserId": ana})).await.data(200);

    wait_for_cascades(&app).await;
    let events = after(api, last).await;
    let updated = by_record(&events, "card.updated");
    let was = json!({"assignedTo": {"id": ben, "name": user["name"]}});
    let now = api.all("/crm/cards").await;
    assert_eq!(now.len(), CARDS);
    for (card, shown) in cards.iter().zip(&now) {
        assert_eq!(id(card), id(shown));
        let listed = updated.get(&id(card)).map(Vec::as_slice).unwrap_or_default();
        assert_eq!((&listed[0]["previous"], &listed[0]["data"]["assignedTo"]), (&was, &Value::Null), "{listed:?}");
        assert_eq!(listed[0]["by"]["type"], "integration");
        assert!(shown["updatedAt"].as_str() > card["updatedAt"].as_str(), "{shown}");
        if card == late {
            assert_eq!(listed.len(), 2, "{listed:?}");
            assert_eq!(listed[1]["previous"], json!({"assignedTo": null}));
        } else {
            assert_eq!(listed.len(), 1, "{listed:?}");
            assert_eq!(&listed[0]["data"], shown);
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_deleted_contact_leaves_each_of_its_many_cards_with_one_event_and_its_schedules_fail_with_its_name() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let contact = api.post("/contacts", json!({"name": "Maria", "number": "5511987654321"})).await.data(201).clone();
    let cards = create_cards(&app, &json!({"contactIds": [contact["id"]]})).await;
    let pending = json!({"contactId": contact["id"], "channelId": app.company.phone, "body": "Hello",
        "sendAt": "2099-01-01T00:00:00Z"});
    let pending = api.post("/schedules", pending).await.data(201).clone();
    let last = newest(api).await;

    assert_eq!(api.delete(&format!("/contacts/{}", contact["id"])).await.status, 204);
    let late = cards.last().expect("a card");
    let late_path = format!("/crm/cards/{}", late["id"]);
    assert_eq!(api.get(&late_path).await.data(200)["contacts"], json!([]));
    api.get(&format!("/crm/cards?contactId={}", contact["id"])).await.error(404, "ERR_API_NOT_FOUND");
    api.put(&late_path, json!({"contactIds": [contact["id"]]})).await.error(404, "ERR_API_NOT_FOUND");
    // The deleted contact's number is free.
    api.post("/contacts", json!({"name": "Maria", "number": "5511987654321"})).await.data(201);
    // Replacing a card's contacts does not hide the deletion's event.
    api.put(&late_path, json!({"contactIds": []})).await.data(200);

    wait_for_cascades(&app).await;
    let events = after(api, last).await;
    assert_eq!(types(&events).iter().filter(|kind| **kind == "contact.deleted").count(), 1);
    let updated = by_record(&events, "card.updated");
    for card in &cards {
        let listed = updated.get(&id(card)).map(Vec::as_slice).unwrap_or_default();
        assert_eq!(listed.len(), 1, "{listed:?}");
        let had = &listed[0]["previous"]["contacts"];
        assert_eq!((&had[0]["id"], &had[0]["name"]), (&contact["id"], &json!("Maria")));
        assert_eq!(listed[0]["data"]["contacts"], json!([]));
    }
    let failed = by_record(&events, "schedule.failed");
    let listed = &failed[&id(&pending)];
    assert_eq!(listed.len(), 1, "{listed:?}");
    let was = json!({"id": contact["id"], "name": "Maria", "number": "5511987654321"});
    assert_eq!((&listed[0]["previous"]["contact"], &listed[0]["data"]["contact"]), (&was, &Value::Null));
    assert_eq!(listed[0]["by"]["type"], "integration");
    app.stop().await;
}

/// A number that PostgreSQL writes with 309 digits, which are read as infinity.
const POISON: &str = "jsonb_build_object('a', 1.7976931348623157e308)";

#[actix_web::test]
async fn a_cascade_with_unreadable_columns_is_finished_without_events() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let tag = id(api.post("/tags", json!({"name": "VIP"})).await.data(201));
    let contact = api.post("/contacts", json!({"name": "Maria", "tagIds": [tag]})).await.data(201).clone();
    let last = newest(api).await;
    for statement in [
        "delete from tags where company_id = $1 and id = $2".to_owned(),
        format!("insert into cascades (company_id, noun, id, shown, by) values ($1, 'tag', $2, {POISON}, {POISON})"),
    ] {
        let statement = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(app.company.id).bind(tag);
        statement.execute(&app.db).await.expect("a statement");
    }
    wait_for_cascades(&app).await;
    let shown = api.get(&format!("/contacts/{}", contact["id"])).await.data(200).clone();
    assert_eq!(shown["tags"], json!([]));
    assert!(shown["updatedAt"].as_str() > contact["updatedAt"].as_str(), "{shown}");
    assert!(after(api, last).await.is_empty(), "an event was made from an unreadable cascade");
    app.stop().await;
}
