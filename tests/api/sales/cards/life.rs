//! One card: made, read, changed and deleted.

use reqwest::Method;
use serde_json::{Value, json};

use super::{CARDS, card, cards_in, product, read, three_stages, with};
use crate::plain::{check_created_once, check_foreign, check_refused, created, deleted};
use crate::steps::{NOBODY, assert_timestamp, id, listed, sql};
use crate::support::{Reply, TestApp};

#[actix_web::test]
async fn a_card_is_shown_with_everything_it_has() {
    let app = TestApp::shared().await;
    let (api, board) = (&app.api, three_stages(&app).await);
    let status = created(api, "/crm/statuses", json!({"name": "Waiting", "color": "#112233"})).await;
    let business = created(api, "/crm/businesses", json!({"name": "Roofs"})).await;
    let origin = created(api, "/crm/origins", json!({"name": "Fair"})).await;
    let panel = product(&app, "Panel", Some("P-1"), "199.9").await;
    let tag = created(api, "/tags", json!({"name": "VIP"})).await;
    let maria = created(api, "/contacts", json!({"name": "Maria", "number": "5511988887777", "tagIds": [tag]})).await;
    let john = created(api, "/contacts", json!({"name": "John", "email": "john@x.example"})).await;
    let field = json!({"name": "Roof size", "application": "card", "type": "number"});
    let field = created(api, "/custom-fields", field).await;
    let ticket = app.ticket("5511977776666").await;
    let body = json!({
        "boardId": board.id, "name": " Roof of the school ", "description": " Forty\npanels ",
        "assignedToUserId": app.company.ana, "contactIds": [john, maria, john], "statusId": status,
        "businessId": business, "originId": origin, "due": "2030-01-31T09:00:00-03:00", "ticketId": ticket,
        "products": [
            {"productId": panel, "quantity": 40},
            {"name": "Labour", "unitPrice": 0.3333, "quantity": 1.5},
            {"productId": panel, "name": "Spare panel", "sku": null, "unitPrice": 150},
        ],
        "customFields": [{"key": "roof_size", "value": " 12.5 "}],
        "id": 1, "won": true, "wonDate": "2020-01-01T00:00:00Z", "lost": true, "productsTotal": 5, "creationSource": "bot",
        "position": 7, "companyId": 2, "unknown": true,
    });
    let reply = api.post(CARDS, body).await;
    let made = reply.data(201);
    assert_timestamp(&made["createdAt"]);
    let lines: Vec<&Value> = made["products"].as_array().expect("a list").iter().collect();
    let contacts = [&maria, &john].map(|contact| format!("/contacts/{contact}"));
    let expected = json!({
        "id": made["id"], "name": "Roof of the school", "description": "Forty\npanels",
        "won": false, "wonDate": null, "lost": false, "lostDate": null, "statusReason": null,
        "boardId": board.id, "list": {"id": board.todo, "name": "To do"},
        "status": {"id": status, "name": "Waiting", "color": "#112233"},
        "business": {"id": business, "name": "Roofs"}, "origin": {"id": origin, "name": "Fair"},
        "assignedTo": {"id": app.company.ana, "name": "Ana"},
        "contacts": [api.get(&contacts[0]).await.data(200), api.get(&contacts[1]).await.data(200)],
        "products": [
            {"id": lines[0]["id"], "productId": panel, "name": "Panel", "sku": "P-1", "quantity": 40, "unitPrice": 199.9,
                "totalPrice": 7996},
            {"id": lines[1]["id"], "productId": null, "name": "Labour", "sku": null, "quantity": 1.5, "unitPrice": 0.3333,
                "totalPrice": 0.5},
            {"id": lines[2]["id"], "productId": panel, "name": "Spare panel", "sku": null, "quantity": 1, "unitPrice": 150,
                "totalPrice": 150},
        ],
        "productsTotal": 8146.5,
        "customFields": [{"key": "roof_size", "value": "12.5", "customFieldId": field, "name": "Roof size", "type": "number"}],
        "creationSource": "api", "due": "2030-01-31T12:00:00.000Z", "ticketId": ticket,
        "createdAt": made["createdAt"], "updatedAt": made["createdAt"],
    });
    assert_eq!(reply.body, json!({"data": expected}));
    let path = format!("{CARDS}/{}", id(made));
    assert_eq!(app.api.get(&path).await.body, reply.body);
    for list in [CARDS.to_owned(), format!("/crm/boards/{}/cards", board.id)] {
        assert_eq!(api.all(&list).await, std::slice::from_ref(&expected), "{list}");
    }
    let bare = api.post(CARDS, json!({"boardId": board.id, "name": "Bare"})).await;
    let bare = bare.data(201);
    let nothing = json!({
        "name": "Bare", "description": null, "status": null, "business": null, "origin": null, "assignedTo": null,
        "contacts": [], "products": [], "productsTotal": 0, "customFields": [], "due": null, "ticketId": null,
        "id": bare["id"], "createdAt": bare["createdAt"], "updatedAt": bare["updatedAt"],
    });
    assert_eq!(bare, &with(&expected, &nothing));
    app.stop().await;
}

#[actix_web::test]
async fn a_card_keeps_what_a_change_leaves_out() {
    let app = TestApp::shared().await;
    let (api, board) = (&app.api, three_stages(&app).await);
    let maria = created(api, "/contacts", json!({"name": "Maria"})).await;
    let john = created(api, "/contacts", json!({"name": "John"})).await;
    let status = created(api, "/crm/statuses", json!({"name": "Waiting"})).await;
    for name in ["Size", "Plan"] {
        created(api, "/custom-fields", json!({"name": name, "application": "card", "type": "text"})).await;
    }
    let one = created(api, CARDS, json!({"boardId": board.id, "name": "One", "contactIds": [maria]})).await;
    let path = format!("{CARDS}/{one}");
    let mut expected = read(&app, one).await;
    let contact = async |contact: i64| api.get(&format!("/contacts/{contact}")).await.data(200).clone();
    for (body, different) in [
        (json!({"name": " Two "}), json!({"name": "Two"})),
        (
            json!({"description": "x", "due": "2030-01-01T00:00:00Z"}),
            json!({"description": "x", "due": "2030-01-01T00:00:00.000Z"}),
        ),
        (json!({"description": " ", "due": null}), json!({"description": null, "due": null})),
        (json!({"assignedToUserId": app.company.ben}), json!({"assignedTo": {"id": app.company.ben, "name": "Ben"}})),
        (json!({"statusId": status}), json!({"status": {"id": status, "name": "Waiting", "color": null}})),
        (
            json!({"assignedToUserId": null, "statusId": null, "businessId": null, "originId": null, "ticketId": null}),
            json!({"assignedTo": null, "status": null}),
        ),
        (json!({"contactIds": [john]}), json!({"contacts": [contact(john).await]})),
        (json!({"contactIds": []}), json!({"contacts": []})),
        (json!({"boardId": board.id, "won": true, "creationSource": "user", "productsTotal": 1}), json!({})),
        (json!({}), json!({})),
    ] {
        let reply = api.put(&path, body.clone()).await;
        expected = with(&expected, &different);
        assert!(reply.data(200)["updatedAt"].as_str() >= expected["updatedAt"].as_str());
        expected["updatedAt"] = reply.data(200)["updatedAt"].clone();
        assert_eq!(reply.data(200), &expected, "after {body}");
        assert_eq!(read(&app, one).await, expected, "after {body}");
    }
    // A list can be emptied, but not set to null.
    for list in ["contactIds", "products", "customFields"] {
        assert_eq!(api.put(&path, json!({list: null})).await.invalid_fields(), [list]);
    }
    // The board of a card is fixed.
    let refused = api.put(&path, json!({"boardId": NOBODY, "name": "Three"})).await;
    assert_eq!(refused.invalid_fields(), ["boardId"]);
    assert_eq!(read(&app, one).await, expected);
    // Values are merged by key, products are replaced.
    let values = |card: &Value| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        card["customFields"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|value| (text(&value["key"]), text(&value["value"])))
            .collect()
    };
    let given = |key: &str, value: Option<&str>| json!({"customFields": [{"key": key, "value": value}]});
    api.put(&path, given("size", Some("L"))).await.data(200);
    let both = api.put(&path, given("plan", Some("gold"))).await;
    assert_eq!(
        values(both.data(200)),
        [("size", "L"), ("plan", "gold")].map(|(key, value)| (key.to_owned(), value.to_owned()))
    );
    let one_left = api.put(&path, given("size", None)).await;
    assert_eq!(values(one_left.data(200)), [("plan".to_owned(), "gold".to_owned())]);
    let lines = |names: &[&str]| {
        let line = |name: &&str| json!({"name": name, "unitPrice": 0.1, "quantity": 3});
        json!({"products": names.iter().map(line).collect::<Vec<_>>()})
    };
    assert_eq!(api.put(&path, lines(&["a", "b"])).await.data(200)["productsTotal"], 0.6);
    let replaced = api.put(&path, lines(&["c"])).await;
    assert_eq!(
        (&replaced.data(200)["productsTotal"], replaced.data(200)["products"].as_array().map(Vec::len)),
        (&json!(0.3), Some(1))
    );
    assert_eq!(api.put(&path, lines(&[])).await.data(200)["productsTotal"], 0);
    // A change to another stage of its board puts the card at the bottom; a change to its own stage does not move it.
    let other = card(&app, &board, board.todo, "Other").await;
    let below = card(&app, &board, board.doing, "Below").await;
    api.put(&path, json!({"crmBoardListId": board.todo})).await.data(200);
    assert_eq!(cards_in(&app, board.todo).await, [one, other]);
    let moved = api.put(&path, json!({"crmBoardListId": board.doing})).await;
    assert_eq!(moved.data(200)["list"], json!({"id": board.doing, "name": "In progress"}));
    assert_eq!(cards_in(&app, board.doing).await, [below, one]);
    deleted(api, &path).await;
    for reply in [api.get(&path).await, api.put(&path, json!({})).await, api.delete(&path).await] {
        reply.error(404, "ERR_API_NOT_FOUND");
    }
    assert_eq!(listed(api, CARDS).await, [other, below]);
    app.stop().await;
}

#[actix_web::test]
async fn every_invalid_field_of_a_card_is_named() {
    let app = TestApp::shared().await;
    let (api, board) = (&app.api, three_stages(&app).await);
    let (_, foreign) = app.another_company().await;
    let other_stage = three_stages(&app).await.todo;
    created(api, "/custom-fields", json!({"name": "Size", "application": "card", "type": "number"})).await;
    created(api, "/custom-fields", json!({"name": "Shoe", "application": "contact", "type": "number"})).await;
    let new = |fields: Value| with(&json!({"boardId": board.id, "name": "x"}), &fields);
    let line = |fields: Value| json!({"products": [with(&json!({"name": "x", "unitPrice": 1}), &fields)]});
    let values = |key: &str, value: Value| json!({"customFields": [{"key": key, "value": value}]});
    let many = |count: usize| json!((0..count).map(|_| json!({"name": "x", "unitPrice": 1})).collect::<Vec<_>>());
    let bad: Vec<(Value, &[&str])> = vec![
        (json!({"crmBoardListId": other_stage}), &["crmBoardListId"]),
        (json!({"crmBoardListId": "x", "name": " ", "description": 7}), &["crmBoardListId", "name", "description"]),
        (
            json!({"name": "a\nb", "statusId": "1", "businessId": true, "originId": []}),
            &["name", "statusId", "businessId", "originId"],
        ),
        (
            json!({"assignedToUserId": "ana", "contactIds": 7, "due": "soon", "ticketId": {}}),
            &["assignedToUserId", "contactIds", "due", "ticketId"],
        ),
        (json!({"contactIds": vec![1; 101]}), &["contactIds"]),
        (json!({"products": {}}), &["products"]),
        (json!({"products": many(101)}), &["products"]),
        (json!({"products": [{"quantity": 1}, 7]}), &["products[0].name", "products[0].unitPrice", "products[1]"]),
        (line(json!({"quantity": 0})), &["products[0].quantity"]),
        (
            line(json!({"unitPrice": -1, "sku": 7, "productId": "x"})),
            &["products[0].productId", "products[0].sku", "products[0].unitPrice"],
        ),
        (values("size", json!("large")), &["customFields[0].value"]),
        (values("shoe", json!("1")), &["customFields[0].key"]),
        (
            json!({"due": "soon", "customFields": [7, {"key": "size", "value": 7}, {"key": "size", "value": "large"}]}),
            &["due", "customFields[0]", "customFields[1].value", "customFields[2].value"],
        ),
    ];
    let incomplete: Vec<(Value, &[&str])> =
        vec![(json!({}), &["boardId", "name"]), (json!({"boardId": null, "name": null}), &["boardId", "name"])];
    let bad_new = bad.iter().map(|(body, fields)| (new(body.clone()), *fields)).chain(incomplete).collect();
    check_refused(&app, Method::POST, CARDS, bad_new).await;
    let one = card(&app, &board, board.todo, "One").await;
    let path = format!("{CARDS}/{one}");
    let nulls: Vec<(Value, &[&str])> = vec![(
        json!({"crmBoardListId": null, "name": null, "contactIds": null}),
        &["crmBoardListId", "name", "contactIds"],
    )];
    check_refused(&app, Method::PUT, &path, bad.into_iter().chain(nulls).collect()).await;

    // A record that the request names must exist in the company.
    let theirs = created(&foreign, "/contacts", json!({"name": "Theirs"})).await;
    for (field, value) in [
        ("crmBoardListId", json!(NOBODY)),
        ("assignedToUserId", json!(NOBODY)),
        ("contactIds", json!([theirs])),
        ("statusId", json!(NOBODY)),
        ("businessId", json!(1e30)),
        ("originId", json!(u64::MAX)),
        ("ticketId", json!(NOBODY)),
        ("products", json!([{"productId": NOBODY}])),
    ] {
        let mut body = json!({});
        body[field] = value;
        assert_eq!(api.post(CARDS, new(body.clone())).await.status, 404, "{body}");
        assert_eq!(api.put(&path, body.clone()).await.status, 404, "{body}");
    }
    assert_eq!(api.post(CARDS, json!({"boardId": NOBODY, "name": "x"})).await.status, 404);
    let required = json!({"name": "Why", "application": "card", "type": "text", "required": true});
    created(api, "/custom-fields", required).await;
    assert_eq!(api.post(CARDS, new(json!({}))).await.invalid_fields(), ["customFields"]);
    api.put(&path, json!({"name": "Still good"})).await.data(200);
    // A board without stages has no place for a card.
    let empty = three_stages(&app).await.id;
    sql(&app, "delete from board_lists where board_id = $1", empty).await;
    assert_eq!(api.post(CARDS, json!({"boardId": empty, "name": "x"})).await.invalid_fields(), ["boardId"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_card_is_created_and_changed_once_per_key_and_only_by_its_company() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let body = |name: &str| json!({"boardId": board.id, "name": name, "products": [{"name": "x", "unitPrice": 0.1}]});
    check_created_once(&app, CARDS, &body("once"), &body("twice")).await;
    let one = card(&app, &board, board.todo, "Ours").await;
    check_foreign(&app, CARDS, one, &json!({"name": "Stolen"})).await;
    let keyed = |name: &str| {
        let body = json!({"name": name}).to_string();
        Reply::of(app.api.keyed(Method::PUT, &format!("{CARDS}/{one}"), "change", body))
    };
    let first = keyed("Changed").await;
    first.data(200);
    app.api.put(&format!("{CARDS}/{one}"), json!({"name": "Between"})).await.data(200);
    let again = keyed("Changed").await;
    assert_eq!((again.is_replay(), &again.bytes), (true, &first.bytes));
    assert_eq!(read(&app, one).await["name"], "Between");
    keyed("Other").await.error(409, "ERR_API_IDEMPOTENCY_CONFLICT");
    app.stop().await;
}
