//! Lists of fields, their order, and their values when a field is deleted.

use std::collections::HashMap;

use futures_util::future::join_all;
use hotline_persistence::table;
use hotline_persistence::tables::custom_fields::{Application, CustomField};
use reqwest::Method;
use serde_json::{Value, json};

use super::{PATH, create_field, insert_value, path_of};
use crate::check_list::check_list;
use crate::plain::{check_refused, check_searches, deleted};
use crate::steps::{NOBODY, id, ids, listed};
use crate::support::TestApp;

#[actix_web::test]
async fn fields_are_listed_by_position_and_found() {
    let app = TestApp::shared().await;
    let mut named = HashMap::new();
    for (name, application) in [("100% Size", "card"), ("x", "card"), ("Situação", "contact"), ("Shoe size", "contact")]
    {
        named.insert(name, create_field(&app.api, name, application).await);
    }
    let mut all: Vec<i64> = named.values().copied().collect();
    all.sort_unstable();
    check_list(&app, PATH, &all, &["created", "updated"]).await;
    check_searches(
        &app,
        PATH,
        &named,
        &[
            ("SITUACAO", &["Situação"]),
            ("ção", &["Situação"]),
            ("size", &["100% Size", "Shoe size"]),
            ("%", &["100% Size"]),
            ("e_s", &["Shoe size"]),
            ("0_s", &["100% Size"]),
            ("_", &["100% Size", "Shoe size"]),
            (r"\", &[]),
            ("", &["Situação", "100% Size", "Shoe size", "x"]),
        ],
    )
    .await;
    for (query, expected) in [
        ("application=contact", vec![named["Situação"], named["Shoe size"]]),
        ("application=card&search=size", vec![named["100% Size"]]),
        ("type=text", all.clone()),
        ("type=number", vec![]),
    ] {
        assert_eq!(listed(&app.api, &format!("{PATH}?{query}")).await, expected, "{query}");
    }
    let backwards: Vec<i64> = [named["Shoe size"], named["Situação"]].into();
    let order = json!({"application": "contact", "orderedIds": backwards});
    app.api.put("/custom-fields/order", order).await.data(200);
    assert_eq!(listed(&app.api, &format!("{PATH}?application=contact")).await, backwards);
    let refused = app.api.get(&format!("{PATH}?application=ticket&type=json")).await;
    assert_eq!(refused.invalid_fields(), ["application", "type"]);
    app.stop().await;
}

#[actix_web::test]
async fn an_order_must_name_every_field_of_its_application_once() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let (_, other) = app.another_company().await;
    let theirs = create_field(&other, "Theirs", "contact").await;
    let card = create_field(api, "Card", "card").await;
    let mut fields = Vec::new();
    for name in ["a", "b", "c"] {
        fields.push(create_field(api, name, "contact").await);
    }
    let [a, b, c] = fields[..] else { panic!("three fields") };
    let order =
        async |ids: &[i64]| api.put("/custom-fields/order", json!({"application": "contact", "orderedIds": ids})).await;
    let before = api.all(PATH).await;
    for bad in
        [&[a, b][..], &[a, b, c, c], &[a, b, b], &[a, b, c, card], &[a, b, theirs], &[a, b, c, theirs], &[a, b, NOBODY]]
    {
        assert_eq!(order(bad).await.invalid_fields(), ["orderedIds"], "{bad:?}");
    }
    let bodies = vec![
        (json!({}), &["application", "orderedIds"][..]),
        (json!({"application": "ticket", "orderedIds": []}), &["application", "orderedIds"]),
        (json!({"application": null, "orderedIds": null}), &["application", "orderedIds"]),
        (json!({"application": "card", "orderedIds": [card, "x"]}), &["orderedIds"]),
        (json!({"application": "card", "orderedIds": card}), &["orderedIds"]),
        (json!({"application": "card", "orderedIds": [a, b, c]}), &["orderedIds"]),
    ];
    check_refused(&app, Method::PUT, "/custom-fields/order", bodies).await;
    assert_eq!(api.all(PATH).await, before);
    api.get("/custom-fields/order").await.error(405, "ERR_API_METHOD_NOT_ALLOWED");

    let reply = order(&[c, a, b]).await;
    let ordered = reply.data(200).as_array().expect("a list");
    assert_eq!(reply.body["meta"], json!({"page": 1, "perPage": 100, "hasMore": false}));
    assert_eq!(ids(ordered), [c, a, b]);
    let positions: Vec<&Value> = ordered.iter().map(|field| &field["position"]).collect();
    assert_eq!(positions, [1, 2, 3]);
    for field in ordered {
        assert_eq!(api.get(&path_of(id(field))).await.data(200), field);
    }
    assert_eq!(api.get(&path_of(card)).await.data(200)["position"], 1);
    assert_eq!(
        listed(api, &format!("{PATH}?application=contact")).await,
        [c, a, b],
        "the list is not in the order of the positions"
    );

    // Contacts show their values in this order.
    let contact = app.contact("5511900000001").await;
    for field in [a, b, c] {
        insert_value(&app, contact, field, "x").await;
    }
    let shown = api.get(&format!("/contacts/{contact}")).await;
    let shown: Vec<&Value> =
        shown.data(200)["customFields"].as_array().expect("a list").iter().map(|value| &value["key"]).collect();
    assert_eq!(shown, ["c", "a", "b"]);
    app.stop().await;
}

#[actix_web::test]
async fn concurrent_orders_and_new_fields_leave_one_of_the_orders() {
    let app = TestApp::shared().await;
    let mut fields = Vec::new();
    for name in ["a", "b", "c", "d"] {
        fields.push(create_field(&app.api, name, "card").await);
    }
    let orders: Vec<Vec<i64>> = (0..4)
        .map(|turn| {
            let mut order = fields.clone();
            order.rotate_left(turn);
            order
        })
        .collect();
    let mut replies = Vec::new();
    // Four at once, so that none waits for a connection: each succeeds, and none deadlock.
    for _ in 0..5 {
        let order_all = orders.iter().map(async |order| {
            (order, app.api.put("/custom-fields/order", json!({"application": "card", "orderedIds": order})).await)
        });
        replies.extend(join_all(order_all).await);
    }
    for (order, reply) in &replies {
        assert_eq!(&ids(reply.data(200).as_array().expect("a list")), *order, "the answer is another's order");
    }
    let left = table::all_of::<CustomField>(&app.db, app.company.id, Application::Card).await.expect("fields");
    let left: Vec<i64> = left.iter().map(|field| field.id.0).collect();
    assert!(orders.contains(&left), "{left:?} is none of the orders");

    // A field that is added meanwhile makes an order incomplete, which is then refused and never half applied.
    let new = json!({"name": "New", "application": "card", "type": "text"});
    let order = json!({"application": "card", "orderedIds": fields});
    let (made, ordered) = tokio::join!(app.api.post(PATH, new), app.api.put("/custom-fields/order", order));
    assert_eq!(made.data(201)["position"], 5, "a new field is the last one either way");
    assert!([200, 422].contains(&ordered.status.as_u16()), "{}", ordered.body);
    app.stop().await;
}

#[actix_web::test]
async fn more_fields_than_a_page_are_ordered_in_one_answer() {
    let app = TestApp::shared().await;
    sqlx::query(
        "insert into custom_fields (company_id, key, name, application, type, position)
         select $1, 'f' || n, 'f' || n, 'card', 'text', n from generate_series(1, 130) n",
    )
    .bind(app.company.id)
    .execute(&app.db)
    .await
    .expect("fields");
    let mut order = listed(&app.api, PATH).await;
    order.reverse();
    let reply = app.api.put("/custom-fields/order", json!({"application": "card", "orderedIds": order})).await;
    assert_eq!(ids(reply.data(200).as_array().expect("a list")), order);
    assert_eq!(reply.body["meta"], json!({"page": 1, "perPage": 130, "hasMore": false}));
    app.stop().await;
}

#[actix_web::test]
async fn a_deleted_field_takes_its_values_with_it_and_no_others() {
    let app = TestApp::shared().await;
    let contact = app.contact("5511900000001").await;
    let (size, color) =
        (create_field(&app.api, "Size", "contact").await, create_field(&app.api, "Color", "contact").await);
    insert_value(&app, contact, size, "42").await;
    insert_value(&app, contact, color, "red").await;
    deleted(&app.api, &path_of(size)).await;
    let shown = app.api.get(&format!("/contacts/{contact}")).await;
    assert_eq!(
        shown.data(200)["customFields"],
        json!([{"key": "color", "value": "red", "customFieldId": color, "name": "Color", "type": "text"}])
    );
    let left = sqlx::query_scalar("select count(*) from contact_custom_field_values where company_id = $1");
    let left: i64 = left.bind(app.company.id).fetch_one(&app.db).await.expect("count");
    assert_eq!(left, 1);
    app.stop().await;
}
