//! Products and their categories.

use std::collections::HashMap;

use reqwest::Method;
use serde_json::{Value, json};

use crate::organization::ids_by;
use crate::plain::{Noun, check_plain, created, deleted};
use crate::steps::{NOBODY, id, listed};
use crate::support::{Api, Reply, TestApp};

const PATH: &str = "/products";
const CATEGORIES: &str = "/product-categories";

#[actix_web::test]
async fn a_product_is_created_listed_changed_and_deleted() {
    let blank = json!({"sku": null, "description": null, "price": 0, "active": true, "category": null});
    check_plain(Noun {
        path: PATH,
        is_shown: true,
        new: (
            json!({"name": "  Panel ", "sku": " SP-400 ", "description": " Has a\nframe ", "price": 19.9, "active": false}),
            json!({
                "name": "Panel", "sku": "SP-400", "description": "Has a\nframe", "price": 19.9, "active": false,
                "category": null,
            }),
        ),
        good: vec![
            (json!({"name": "Plain"}), blank.clone()),
            (json!({"name": "Plain", "price": null, "active": null, "sku": null, "categoryId": null}), blank.clone()),
            (json!({"name": "Blank", "sku": " ", "description": "\t"}), blank),
            (json!({"name": "Cheap", "price": 0.0001}), json!({"price": 0.0001})),
            (json!({"name": "Round", "price": 7.0}), json!({"price": 7})),
        ],
        changes: vec![
            (json!({"name": "Better panel"}), json!({"name": "Better panel"})),
            (json!({"sku": "SP-401"}), json!({"sku": "SP-401"})),
            (json!({"price": 0.3}), json!({"price": 0.3})),
            (json!({"active": true}), json!({"active": true})),
            (json!({"sku": null, "description": " "}), json!({"sku": null, "description": null})),
        ],
        bad: vec![
            (json!({}), &["name"]),
            (
                json!({"name": " ", "sku": 7, "description": [], "price": "1", "active": 1, "categoryId": "x"}),
                &["name", "sku", "description", "price", "active", "categoryId"],
            ),
            (json!({"name": "a\nb", "sku": "a\nb", "price": -0.01}), &["name", "sku", "price"]),
            (json!({"name": "a", "price": 0.00001}), &["price"]),
            (json!({"name": "a", "price": 1e14}), &["price"]),
            (json!({"name": "a", "sku": "x".repeat(256)}), &["sku"]),
        ],
        bad_changes: vec![
            (json!({"name": null, "price": null, "active": null}), &["name", "price", "active"]),
            (json!({"price": 1.23456}), &["price"]),
        ],
        unique: "sku",
        is_fixed: false,
        named: |sku| json!({"name": "Panel", "sku": sku}),
        listed: vec![
            ("Peça", json!({"name": "Peça", "sku": "A-1"})),
            ("100%", json!({"name": "100%"})),
            ("a_b", json!({"name": "Bolt", "sku": "a_b"})),
            ("axb", json!({"name": "Bolt", "sku": "axb"})),
        ],
        searches: &[
            ("PECA", &["Peça"]),
            ("a-1", &["Peça"]),
            ("peca a-1", &["Peça"]),
            ("bolt", &["a_b", "axb"]),
            ("_", &["a_b"]),
            ("100%", &["100%"]),
            ("peca100", &[]),
        ],
    })
    .await;
}

/// Creates a product. The price is raw JSON: parsing it here could lose digits.
async fn create_with_price(api: &Api, price: &str) -> Reply {
    let body = format!(r#"{{"name": "Panel", "price": {price}}}"#);
    let request = api.request(Method::POST, PATH).header("content-type", "application/json");
    Reply::of(request.body(body)).await
}

#[actix_web::test]
async fn a_price_keeps_every_digit() {
    let app = TestApp::shared().await;
    for (input, output) in [
        ("12345678901234.5671", "12345678901234.5671"),
        ("99999999999999.9999", "99999999999999.9999"),
        ("0.1", "0.1"),
        ("1.50", "1.5"),
        ("1e2", "100"),
        ("-0", "0"),
    ] {
        let created = create_with_price(&app.api, input).await;
        let price = format!(r#""price":{output},"#);
        let read = app.api.get(&format!("{PATH}/{}", id(created.data(201)))).await;
        for reply in [created, read] {
            let text = String::from_utf8_lossy(&reply.bytes).into_owned();
            assert!(text.contains(&price), "{input}: {text}");
        }
    }
    for bad in ["100000000000000", "1.00000000000000001", "0.00001", "-0.0001", r#""1""#, "[1]"] {
        assert_eq!(create_with_price(&app.api, bad).await.invalid_fields(), ["price"], "{bad}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_product_shows_its_current_category_and_survives_the_categorys_deletion() {
    let app = TestApp::shared().await;
    let (_, other) = app.another_company().await;
    let foreign = created(&other, CATEGORIES, json!({"name": "Theirs"})).await;
    let goods = created(&app.api, CATEGORIES, json!({"name": "Goods"})).await;
    let hours = created(&app.api, CATEGORIES, json!({"name": "Hours"})).await;
    let panel = created(&app.api, PATH, json!({"name": "Panel", "categoryId": goods})).await;
    let visit = created(&app.api, PATH, json!({"name": "Visit", "categoryId": hours})).await;
    let category = async |product: i64| -> Value {
        let reply = app.api.get(&format!("{PATH}/{product}")).await;
        reply.data(200)["category"].clone()
    };
    assert_eq!(category(panel).await, json!({"id": goods, "name": "Goods"}));
    app.api.put(&format!("{CATEGORIES}/{goods}"), json!({"name": "Wares"})).await.data(200);
    assert_eq!(category(panel).await, json!({"id": goods, "name": "Wares"}));
    for absent in [foreign, NOBODY] {
        app.api.post(PATH, json!({"name": "x", "categoryId": absent})).await.error(404, "ERR_API_NOT_FOUND");
        let path = format!("{PATH}/{panel}");
        app.api.put(&path, json!({"name": "x", "categoryId": absent})).await.error(404, "ERR_API_NOT_FOUND");
        assert_eq!(app.api.get(&path).await.data(200)["name"], "Panel");
    }
    for (body, expected) in [
        (json!({"categoryId": hours}), json!({"id": hours, "name": "Hours"})),
        (json!({"categoryId": null}), Value::Null),
        (json!({"categoryId": goods}), json!({"id": goods, "name": "Wares"})),
    ] {
        let changed = app.api.put(&format!("{PATH}/{panel}"), body).await;
        assert_eq!(changed.data(200)["category"], expected);
    }
    deleted(&app.api, &format!("{CATEGORIES}/{goods}")).await;
    assert_eq!(category(panel).await, Value::Null);
    assert_eq!(category(visit).await, json!({"id": hours, "name": "Hours"}));
    assert_eq!(listed(&app.api, PATH).await, [panel, visit]);
    app.stop().await;
}

#[actix_web::test]
async fn products_are_filtered_by_category_and_by_whether_they_are_active() {
    let app = TestApp::shared().await;
    let goods = created(&app.api, CATEGORIES, json!({"name": "Goods"})).await;
    let empty = created(&app.api, CATEGORIES, json!({"name": "Empty"})).await;
    let mut products = HashMap::new();
    for (name, category, active) in
        [("Panel", Some(goods), true), ("Cable", Some(goods), false), ("Visit", None, true), ("Advice", None, false)]
    {
        let body = json!({"name": name, "categoryId": category, "active": active});
        products.insert(name, created(&app.api, PATH, body).await);
    }
    let filters: [(String, &[&str]); 6] = [
        ("active=true".to_owned(), &["Panel", "Visit"]),
        ("active=false".to_owned(), &["Cable", "Advice"]),
        (format!("categoryId={goods}"), &["Panel", "Cable"]),
        (format!("categoryId={empty}"), &[]),
        (format!("categoryId={goods}&active=true"), &["Panel"]),
        (format!("categoryId={goods}&search=ab"), &["Cable"]),
    ];
    for (filter, names) in filters {
        assert_eq!(listed(&app.api, &format!("{PATH}?{filter}")).await, ids_by(&products, names), "{filter}");
    }
    let refused = app.api.get(&format!("{PATH}?active=x&categoryId=x")).await;
    assert_eq!(refused.invalid_fields(), ["categoryId", "active"]);
    app.stop().await;
}
