//! Events of plain records.

use serde_json::{Value, json};

use super::{after, newest, types};
use crate::support::{Api, TestApp};

/// The events since `last`, which is set to the newest.
async fn events_since(api: &Api, last: &mut i64) -> Vec<Value> {
    let events = after(api, *last).await;
    *last = events.last().map_or(*last, |event| event["id"].as_i64().expect("an id"));
    events
}

#[actix_web::test]
async fn each_change_of_a_contact_is_an_event() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let mut last = newest(api).await;
    let tag = api.post("/tags", json!({"name": "VIP"})).await.data(201)["id"].as_i64().expect("id");
    assert!(events_since(api, &mut last).await.is_empty(), "a tag has an event");
    let made = api.post("/contacts", json!({"name": "Maria", "number": "5511987654321"})).await.data(201).clone();
    let path = format!("/contacts/{}", made["id"]);
    let shown = async || api.get(&path).await.data(200).clone();
    let events = events_since(api, &mut last).await;
    assert_eq!(types(&events), ["contact.created"]);
    assert_eq!((&events[0]["data"], &events[0]["previous"]), (&made, &Value::Null));

    // A change of fields and tags is one event for the fields and one for the tags.
    api.put(&path, json!({"name": "Maria Lima", "email": "maria@example.com", "tagIds": [tag]})).await.data(200);
    let events = events_since(api, &mut last).await;
    assert_eq!(types(&events), ["contact.updated", "contact.tagged"]);
    assert_eq!(events[0]["previous"], json!({"name": "Maria", "email": null}));
    assert_eq!(events[1]["previous"], json!({"tags": []}));
    assert!(events.iter().all(|event| event["createdAt"] == event["data"]["updatedAt"]));
    assert_eq!(events[1]["data"], shown().await);
    // A request that changes nothing has no event.
    api.put(&path, json!({"name": "Maria Lima"})).await.data(200);
    api.put(&format!("{path}/tags/{tag}"), json!({})).await;
    assert!(events_since(api, &mut last).await.is_empty());

    api.delete(&format!("{path}/tags/{tag}")).await;
    let events = events_since(api, &mut last).await;
    assert_eq!(types(&events), ["contact.untagged"]);
    assert_eq!(events[0]["data"]["tags"], json!([]));
    assert_eq!(events[0]["previous"]["tags"][0]["name"], "VIP");
    let before = shown().await;
    api.put(&format!("{path}/tags/{tag}"), json!({})).await;
    assert_eq!(types(&events_since(api, &mut last).await), ["contact.tagged"]);
    api.delete(&format!("{path}/tags/{tag}")).await;
    events_since(api, &mut last).await;

    assert_eq!(api.delete(&path).await.status, 204);
    let events = events_since(api, &mut last).await;
    assert_eq!(types(&events), ["contact.deleted"]);
    assert_eq!(events[0]["data"]["name"], before["name"]);

    let rows = json!({"contacts": [{"name": "A", "number": "5511900000001"}, {"name": "B", "email": "b@example.com"}]});
    api.post("/contacts/import", rows).await.data(200);
    assert_eq!(types(&events_since(api, &mut last).await), ["contact.created", "contact.created"]);
    let again =
        json!({"contacts": [{"name": "A", "number": "5511900000001"}, {"name": "C", "email": "b@example.com"}]});
    api.post("/contacts/import", again).await.data(200);
    let events = events_since(api, &mut last).await;
    assert_eq!(types(&events), ["contact.updated"], "only the changed contact has an event");
    assert_eq!(events[0]["previous"], json!({"name": "B"}));
    // A visitor's session creates a contact as well.
    app.session("somebody").await;
    assert_eq!(types(&events_since(api, &mut last).await), ["contact.created", "session.started"]);
    app.stop().await;
}

#[actix_web::test]
async fn each_change_of_a_card_is_an_event() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let mut last = newest(api).await;
    let board = api.post("/crm/boards", json!({"name": "Sales"})).await.data(201)["id"].clone();
    let lists = api.get(&format!("/crm/boards/{board}")).await.data(200)["lists"].clone();
    assert!(events_since(api, &mut last).await.is_empty(), "a board has an event");
    let made = api.post("/crm/cards", json!({"boardId": board, "name": "Roof"})).await.data(201).clone();
    let path = format!("/crm/cards/{}", made["id"]);
    let mut check_event = async |kind: &str, shown: Option<&Value>, previous: Value| {
        let events = events_since(api, &mut last).await;
        assert_eq!(types(&events), [kind]);
        let shown = match shown {
            Some(shown) => shown.clone(),
            None => api.get(&path).await.data(200).clone(),
        };
        assert_eq!((&events[0]["data"], &events[0]["previous"]), (&shown, &previous), "{kind}");
    };
    check_event("card.created", Some(&made), Value::Null).await;
    let changed = api.put(&path, json!({"name": "Roof of the school"})).await.data(200).clone();
    check_event("card.updated", Some(&changed), json!({"name": "Roof"})).await;
    let line = json!({"name": "Panel", "unitPrice": 12.5, "quantity": 2});
    let line = api.post(&format!("{path}/products"), line).await.data(201)["id"].clone();
    check_event("card.updated", None, json!({"products": [], "productsTotal": 0})).await;
    api.put(&format!("{path}/products/{line}"), json!({"quantity": 4})).await.data(200);
    let was = json!([{"id": line, "productId": null, "name": "Panel", "sku": null, "quantity": 2, "unitPrice": 12.5,
        "totalPrice": 25}]);
    check_event("card.updated", None, json!({"products": was, "productsTotal": 25})).await;
    let moved = json!({"crmBoardListId": lists[1]["id"]});
    let moved = api.post(&format!("{path}/move"), moved).await.data(200).clone();
    let first = json!({"id": lists[0]["id"], "name": lists[0]["label"]});
    check_event("card.moved", Some(&moved), json!({"list": first})).await;
    // A move among the cards of its stage changes only a card's place.
    let other = json!({"boardId": board, "crmBoardListId": lists[1]["id"], "name": "Other"});
    let other = api.post("/crm/cards", other).await.data(201).clone();
    check_event("card.created", Some(&other), Value::Null).await;
    let down = json!({"crmBoardListId": lists[1]["id"]});
    let down = api.post(&format!("{path}/move"), down).await.data(200).clone();
    check_event("card.moved", Some(&down), Value::Null).await;
    let up = json!({"crmBoardListId": lists[1]["id"], "position": 0});
    let up = api.post(&format!("{path}/move"), up).await.data(200).clone();
    check_event("card.moved", Some(&up), Value::Null).await;
    let won = api.post(&format!("{path}/win"), json!({"statusReason": "Best price"})).await.data(200).clone();
    let second = json!({"id": lists[1]["id"], "name": lists[1]["label"]});
    check_event("card.won", Some(&won), json!({"won": false, "wonDate": null, "statusReason": null, "list": second}))
        .await;
    let open = api.post(&format!("{path}/reopen"), json!({})).await.data(200).clone();
    check_event(
        "card.reopened",
        Some(&open),
        json!({"won": true, "wonDate": won["wonDate"], "statusReason": "Best price"}),
    )
    .await;
    let lost = api.post(&format!("{path}/lose"), json!({"statusReason": "Too late"})).await.data(200).clone();
    check_event("card.lost", Some(&lost), json!({"lost": false, "lostDate": null, "statusReason": null})).await;
    assert_eq!(api.delete(&path).await.status, 204);
    check_event("card.deleted", Some(&lost), Value::Null).await;
    assert_eq!(api.delete(&path).await.status, 404);
    assert!(after(api, last).await.is_empty());
    app.stop().await;
}
