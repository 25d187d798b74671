//! Webhooks and refusals reveal nothing about cards that a person does not see.

use std::time::Duration;

use hotline::webhooks::WebhookOptions;
use reqwest::Method;
use serde_json::{Value, json};

use crate::steps::id;
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Person, Receiver, Reply, TestApp, eventually};

/// The permissions that these tests need.
fn permissions() -> Value {
    let all = json!(["GET", "POST", "PUT", "DELETE"]);
    json!({"crm": all, "webhooks": all, "events": ["GET"], "customFields": all, "contacts": all})
}

/// Signs Ana in, with a profile that does not administer the company and sees only her own cards.
async fn seller_ana(app: &TestApp) -> Person {
    let email = format!("root-{}@example.com", app.company.id);
    let (admin, _) = Person::admin(app, &email).await;
    let profile = json!({"name": "Seller", "permissions": permissions(), "seesAllCards": false});
    let profile = id(admin.in_company(app.company.id).post("/profiles", profile).await.data(201));
    app.api.put(&format!("/users/{}", app.company.ana), json!({"profileId": profile})).await.data(200);
    Person::user(app, app.company.ana, "ana@example.com").await
}

#[actix_web::test]
async fn a_seller_cannot_create_or_change_a_webhook_with_card_events() {
    let app = OwnApp::start().await;
    let receiver = Receiver::start().await;
    let url = receiver.url();
    // The company's webhooks: one for all events, one for cards alone, and one for contacts alone.
    let all = id(app.api.post("/webhooks", json!({"url": url})).await.data(201));
    let cards = id(app.api.post("/webhooks", json!({"url": url, "types": ["card.won"]})).await.data(201));
    let contacts = id(app.api.post("/webhooks", json!({"url": url, "types": ["contact.created"]})).await.data(201));
    app.api.post("/contacts", json!({"name": "Maria"})).await.data(201);
    for sees_all in [false, true] {
        let ana = if sees_all {
            let profiles = app.api.all("/profiles").await;
            let seller = profiles.iter().find(|profile| profile["name"] == "Seller").expect("the profile");
            let change = "update profiles set sees_all_cards = true where company_id = $1 and id = $2";
            let change = sqlx::query(change).bind(app.company.id).bind(id(seller));
            change.execute(&app.db).await.expect("a change");
            Person::user(&app, app.company.ana, "ana@example.com").await
        } else {
            seller_ana(&app).await
        };
        for types in [json!(["card.created"]), json!(["contact.created", "card.deleted"]), json!([]), Value::Null] {
            let made = ana.post("/webhooks", json!({"url": url, "types": types})).await;
            made.error(403, "ERR_API_FORBIDDEN_SCOPE");
            let changed = ana.put(&format!("/webhooks/{contacts}"), json!({"types": types})).await;
            // `null` changes nothing.
            if !types.is_null() {
                changed.error(403, "ERR_API_FORBIDDEN_SCOPE");
            }
        }
        ana.post("/webhooks", json!({"url": url})).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
        // She cannot send their events to another address or again, nor have them signed with a secret she knows.
        for webhook in [all, cards] {
            let path = format!("/webhooks/{webhook}");
            for change in
                [json!({"url": url}), json!({"types": ["contact.created"]}), json!({"active": true}), json!({})]
            {
                ana.put(&path, change).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
            }
            for (verb, body) in [("rotate-secret", json!({})), ("replay", json!({"after": 0}))] {
                ana.post(&format!("{path}/{verb}"), body).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
            }
        }
        // She may create a webhook without events of cards.
        let own = id(ana.post("/webhooks", json!({"url": url, "types": ["contact.created"]})).await.data(201));
        ana.put(&format!("/webhooks/{own}"), json!({"url": url, "types": ["contact.updated"]})).await.data(200);
        ana.post(&format!("/webhooks/{own}/replay"), json!({"after": 0})).await.data(202);
        ana.delete(&format!("/webhooks/{own}")).await;
    }
    app.stop().await;
}

/// Whether a webhook sends events of cards depends on its creator's rights at the delivery, not at the creation.
#[actix_web::test]
async fn a_webhook_sends_no_card_once_its_creator_may_not_see_every_card() {
    // No delivery is repeated because its endpoint was slow to answer.
    let defaults = TestOptions::default();
    let webhooks = WebhookOptions { response_time_max: Duration::from_secs(3600), ..defaults.webhooks.clone() };
    let app = OwnApp::start_with(TestOptions { webhooks, ..defaults }).await;
    let receiver = Receiver::start().await;
    let company = &app.company;
    let administrators = Person::give_profile(&app, company.ana, "Administrator").await;
    Person::give_profile(&app, company.ben, "Administrator").await;
    let ana = Person::user(&app, company.ana, "ana@example.com").await;
    let (root, _) = Person::admin(&app, &format!("root-{}@example.com", company.id)).await;
    let root = root.in_company(company.id);
    let agent = app.api.all("/profiles").await.into_iter().find(|profile| profile["name"] == "Agent").expect("agents");
    let board = id(app.api.post("/crm/boards", json!({"name": "Sales"})).await.data(201));
    let webhook = id(ana.post("/webhooks", json!({"url": receiver.url()})).await.data(201));
    let path = format!("/webhooks/{webhook}");
    let create_card = async |name: &str| {
        let card = json!({"boardId": board, "name": name, "assignedToUserId": company.ben});
        id(app.api.post("/crm/cards", card).await.data(201))
    };
    let count_received = |kind: &str, record: i64| {
        let events = receiver.received().into_iter().map(|received| received.event());
        events.filter(|event| event["type"] == kind && event["data"]["id"] == record).count()
    };
    let failed_deliveries = async || app.api.all(&format!("{path}/deliveries?status=failed")).await;
    let (user, profile) = (format!("/users/{}", company.ana), format!("/profiles/{administrators}"));
    let changes = [
        (profile, json!({"seesAllCards": false}), json!({"seesAllCards": true})),
        (user.clone(), json!({"profileId": agent["id"]}), json!({"profileId": administrators})),
        (user.clone(), json!({"active": false}), json!({"active": true})),
    ];
    let mut withheld = Vec::new();
    for (record, withdrawal, restoration) in &changes {
        let shown = create_card("shown").await;
        eventually("the event of a card is delivered", || async { count_received("card.created", shown) == 1 }).await;
        root.put(record, withdrawal.clone()).await.data(200);
        withheld.push(create_card("hidden").await);
        let contact = id(app.api.post("/contacts", json!({"name": "Maria"})).await.data(201));
        eventually("the event of the hidden card is withheld", || async {
            failed_deliveries().await.len() == withheld.len()
        })
        .await;
        eventually("the event of the contact is delivered", || async {
            count_received("contact.created", contact) == 1
        })
        .await;
        root.put(record, restoration.clone()).await.data(200);
    }
    assert_eq!(root.delete(&user).await.status, 204);
    withheld.push(create_card("hidden").await);
    eventually("the event of the hidden card is withheld", || async {
        failed_deliveries().await.len() == withheld.len()
    })
    .await;
    for delivery in failed_deliveries().await {
        let attempt =
            delivery["attempts"].as_array().and_then(|attempts| attempts.last()).cloned().expect("an attempt");
        assert_eq!(attempt["error"], "the webhook's creator may not see every card", "{delivery}");
        assert!(attempt["status"].is_null(), "{delivery}");
    }
    // A replay checks the right again, also for cards whose events were sent while she had it.
    let before = receiver.received().iter().filter(|request| request.event()["type"] == "card.created").count();
    app.api.post(&format!("{path}/replay"), json!({"after": 0})).await.data(202);
    eventually("all events of cards are withheld", || async {
        failed_deliveries().await.len() == withheld.len() + changes.len()
    })
    .await;
    let count = receiver.received().iter().filter(|request| request.event()["type"] == "card.created").count();
    assert_eq!(count, before);
    assert!(withheld.iter().all(|card| count_received("card.created", *card) == 0));
    let shown = app.api.get(&path).await;
    assert_eq!((&shown.data(200)["active"], &shown.data(200)["disabledReason"]), (&json!(true), &Value::Null));

    // A caller who sees every card takes the webhook over.
    app.api.put(&path, json!({"active": true})).await.data(200);
    app.api.post(&format!("{path}/replay"), json!({"failedSince": "2020-01-01T00:00:00Z"})).await.data(202);
    for card in &withheld {
        eventually("the event is delivered now", || async { count_received("card.created", *card) == 1 }).await;
    }
    app.stop().await;
}

#[actix_web::test]
async fn deliveries_of_hidden_cards_are_not_listed() {
    let app = OwnApp::start().await;
    let receiver = Receiver::start().await;
    let webhook = id(app.api.post("/webhooks", json!({"url": receiver.url()})).await.data(201));
    let ana = seller_ana(&app).await;
    let board = id(app.api.post("/crm/boards", json!({"name": "Sales"})).await.data(201));
    let card = json!({"boardId": board, "name": "x", "assignedToUserId": app.company.ben});
    app.api.post("/crm/cards", card).await.data(201);
    app.api.post("/contacts", json!({"name": "Maria"})).await.data(201);
    let path = format!("/webhooks/{webhook}/deliveries");
    let kinds =
        |rows: &[Value]| rows.iter().filter_map(|row| row["type"].as_str().map(str::to_owned)).collect::<Vec<_>>();
    eventually("both are delivered", || async {
        let kinds = kinds(&app.api.all(&format!("{path}?status=delivered")).await);
        kinds.iter().any(|kind| kind == "card.created") && kinds.iter().any(|kind| kind == "contact.created")
    })
    .await;
    for query in ["", "?status=delivered", "?createdFrom=2020-01-01T00:00:00Z"] {
        let listed = ana.get(&format!("{path}{query}")).await;
        let listed = kinds(listed.data(200).as_array().expect("a list"));
        assert!(listed.contains(&"contact.created".to_owned()), "{query}: {listed:?}");
        assert!(!listed.iter().any(|kind| kind.starts_with("card.")), "{query}: {listed:?}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_refusal_counts_no_hidden_card() {
    let app = OwnApp::start().await;
    let ana = seller_ana(&app).await;
    let queues = json!([{"queueId": app.company.support}]);
    let board = app.api.post("/crm/boards", json!({"name": "Support", "crmBoardQueues": queues})).await;
    let board = id(board.data(201));
    let shown = app.api.get(&format!("/crm/boards/{board}")).await;
    let lists = shown.data(200)["lists"].as_array().expect("lists").clone();
    let (first, done) = (id(&lists[0]), id(lists.last().expect("a list")));
    let field = json!({"name": "Roof", "application": "card", "type": "select", "options": ["flat", "steep"]});
    let field = app.api.post("/custom-fields", field).await.data(201).clone();
    let create_cards = async |user: Value| {
        let values = json!([{"key": field["key"], "value": "flat"}]);
        let card = json!({"boardId": board, "name": "x", "assignedToUserId": user, "customFields": values});
        let made = id(app.api.post("/crm/cards", card.clone()).await.data(201));
        let mut won = card;
        won["crmBoardListId"] = json!(done);
        let won = id(app.api.post("/crm/cards", won).await.data(201));
        app.api.post(&format!("/crm/cards/{won}/win"), json!({})).await.data(200);
        (made, won)
    };
    create_cards(json!(app.company.ben)).await;
    create_cards(Value::Null).await;
    let field = format!("/custom-fields/{}", field["id"]);
    let refusals = async |person: &Person| -> Vec<Value> {
        let mut counted = Vec::new();
        for (method, path, body) in [
            (Method::DELETE, format!("/crm/boards/{board}"), json!({})),
            (Method::DELETE, format!("/crm/boards/{board}/lists/{first}"), json!({})),
            (Method::PUT, format!("/crm/boards/{board}/lists/{done}"), json!({"doneList": false})),
            (Method::PUT, field.clone(), json!({"type": "text"})),
            (Method::PUT, field.clone(), json!({"options": ["steep"]})),
        ] {
            let reply = Reply::of(person.request(method, &path).json(&body)).await;
            counted.push(reply.error(409, "ERR_API_CONFLICT")["by"].clone());
        }
        counted
    };
    assert_eq!(refusals(&ana).await, vec![json!([]); 5], "a card that she does not see was counted");
    create_cards(json!(app.company.ana)).await;
    let counts = |counts: [i64; 5]| counts.map(|count| json!([{"type": "card", "count": count}])).to_vec();
    assert_eq!(refusals(&ana).await, counts([2, 1, 1, 2, 2]));
    // An administrator sees all cards.
    let (admin, _) = Person::admin(&app, "other-root@example.com").await;
    assert_eq!(refusals(&admin.in_company(app.company.id)).await, counts([6, 3, 3, 6, 6]));
    // With a profile that sees all cards, those on the boards that the person sees are counted.
    let elsewhere = json!({"name": "Sales", "crmBoardQueues": [{"queueId": app.company.sales}]});
    let elsewhere = id(app.api.post("/crm/boards", elsewhere).await.data(201));
    let values = json!([{"key": "roof", "value": "flat"}]);
    let hidden = json!({"boardId": elsewhere, "name": "x", "customFields": values});
    app.api.post("/crm/cards", hidden).await.data(201);
    sqlx::query("update profiles set sees_all_cards = true where company_id = $1 and name = 'Seller'")
        .bind(app.company.id)
        .execute(&app.db)
        .await
        .expect("a change");
    assert_eq!(refusals(&ana).await, counts([6, 3, 3, 6, 6]));
    app.stop().await;
}
