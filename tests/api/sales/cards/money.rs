//! Amounts of cards, digit for digit.

use hotline_persistence::Amount;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::Method;
use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::{Value, json};

use super::{CARDS, card, digits, product, three_stages};
use crate::plain::{created, deleted};
use crate::steps::{NOBODY, id, sql};
use crate::support::{Reply, TestApp};

/// Sends a body exactly as given.
async fn send_raw(app: &TestApp, method: Method, path: &str, body: &str) -> Reply {
    let request = app.api.request(method, path).header("content-type", "application/json");
    Reply::of(request.body(body.to_owned())).await
}

#[actix_web::test]
async fn amounts_are_returned_digit_for_digit() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let one = card(&app, &board, board.todo, "One").await;
    let path = format!("{CARDS}/{one}/products");
    for (price, quantity, shown, total) in [
        ("1234567890123.4567", "1", "1234567890123.4567", "1234567890123.4567"),
        ("99999999999999.9999", "1.0", "99999999999999.9999", "99999999999999.9999"),
        ("0.1", "3", "0.1", "0.3"),
        ("1e2", "0.5", "100", "50"),
        ("12.50000", "2", "12.5", "25"),
        ("-0", "7", "0", "0"),
        ("0.0001", "0.5", "0.0001", "0.0001"),
        ("0.0001", "0.4999", "0.0001", "0"),
        ("0.3333", "0.3333", "0.3333", "0.1111"),
    ] {
        let body = format!(r#"{{"name": "x", "unitPrice": {price}, "quantity": {quantity}}}"#);
        let keyed = || Reply::of(app.api.keyed(Method::POST, &path, &format!("{price}-{quantity}"), body.clone()));
        let added = keyed().await;
        let line = id(added.data(201));
        assert_eq!((digits(&added.bytes, "unitPrice"), digits(&added.bytes, "totalPrice")), (shown, total), "{body}");
        let replayed = keyed().await;
        assert_eq!((replayed.is_replay(), &replayed.bytes), (true, &added.bytes));
        // A compressed answer has the same digits. Only a long answer is compressed, hence the description.
        let long = json!({"description": "x".repeat(4000)});
        app.api.put(&format!("{CARDS}/{one}"), long).await.data(200);
        let packed = app.api.request(Method::GET, &format!("{CARDS}/{one}")).header("accept-encoding", "gzip");
        let packed = packed.send().await.expect("an answer");
        assert_eq!(packed.headers()["content-encoding"], "gzip");
        let mut text = String::new();
        let bytes = packed.bytes().await.expect("bytes");
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text).expect("text");
        assert_eq!((digits(text.as_bytes(), "unitPrice"), digits(text.as_bytes(), "productsTotal")), (shown, total));
        deleted(&app.api, &format!("{path}/{line}")).await;
        assert_eq!(digits(&app.api.get(&format!("{CARDS}/{one}")).await.bytes, "productsTotal"), "0");
    }
    app.stop().await;
}

#[actix_web::test]
async fn an_invalid_or_too_large_amount_is_refused() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let one = card(&app, &board, board.todo, "One").await;
    let lines = format!("{CARDS}/{one}/products");
    let line =
        format!("{lines}/{}", created(&app.api, &lines, json!({"name": "x", "unitPrice": 0.1, "quantity": 2})).await);
    let before = app.api.get(&format!("{CARDS}/{one}")).await;
    for (field, value) in [
        ("unitPrice", "0.00001"),
        ("unitPrice", "1.23456"),
        ("unitPrice", "-0.0001"),
        ("unitPrice", "\"1\""),
        ("unitPrice", "true"),
        ("unitPrice", "100000000000000"),
        ("unitPrice", "1e300"),
        ("quantity", "0"),
        ("quantity", "-0"),
        ("quantity", "-1"),
        ("quantity", "1e-5"),
        ("quantity", "123456789012345678"),
        ("quantity", "\"2\""),
        // Each of the two values is valid, but their product is too large.
        ("quantity", "99999999999999.9999, \"unitPrice\": 99999999999999.9999"),
        ("quantity", "10000000, \"unitPrice\": 10000000"),
    ] {
        let body = format!(r#"{{"name": "y", "unitPrice": 1, "quantity": 1, "{field}": {value}}}"#);
        assert_eq!(send_raw(&app, Method::POST, &lines, &body).await.invalid_fields(), [field], "{body}");
        assert_eq!(send_raw(&app, Method::PUT, &line, &body).await.invalid_fields(), [field], "{body}");
        let body = format!(r#"{{"boardId": {}, "name": "y", "products": [{body}]}}"#, board.id);
        assert_eq!(
            send_raw(&app, Method::POST, CARDS, &body).await.invalid_fields(),
            [format!("products[0].{field}")],
            "{body}"
        );
    }
    // Each line is valid, but their sum is too large.
    let most = r#"{"name": "y", "unitPrice": 99999999999999.9999}"#;
    assert_eq!(send_raw(&app, Method::POST, &lines, most).await.invalid_fields(), ["quantity"]);
    let both = format!(r#"{{"products": [{most}, {{"name": "z", "unitPrice": 0.0001}}]}}"#);
    assert_eq!(
        send_raw(&app, Method::PUT, &format!("{CARDS}/{one}"), &both).await.invalid_fields(),
        ["products[1].quantity"]
    );
    assert_eq!(app.api.get(&format!("{CARDS}/{one}")).await.bytes, before.bytes);
    // A changed line replaces its old amount in the sum, so it may have the largest amount.
    let reply = send_raw(&app, Method::PUT, &line, r#"{"unitPrice": 99999999999999.9999, "quantity": 1}"#).await;
    assert_eq!(digits(&reply.bytes, "totalPrice"), "99999999999999.9999");
    // As many lines as a card can have.
    let many: Vec<Value> = (0..100).map(|_| json!({"name": "x", "unitPrice": 1})).collect();
    app.api.put(&format!("{CARDS}/{one}"), json!({"products": many})).await.data(200);
    let refused = app.api.post(&lines, json!({"name": "x", "unitPrice": 1})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["reason"], "too_many_products");
    app.stop().await;
}

#[actix_web::test]
async fn fields_that_a_line_does_not_give_are_taken_from_its_product() {
    let app = TestApp::shared().await;
    let (api, board) = (&app.api, three_stages(&app).await);
    let panel = product(&app, "Panel", Some("P-1"), "199.9").await;
    let cable = product(&app, "Cable", None, "0.5").await;
    let one = card(&app, &board, board.todo, "One").await;
    let lines = format!("{CARDS}/{one}/products");
    let reply = api.post(&lines, json!({"productId": panel, "quantity": 2, "totalPrice": 1, "id": 3})).await;
    let mut expected = json!({
        "id": reply.data(201)["id"], "productId": panel, "name": "Panel", "sku": "P-1", "quantity": 2, "unitPrice": 199.9,
        "totalPrice": 399.8,
    });
    assert_eq!(reply.body, json!({"data": expected}));
    let line = format!("{lines}/{}", expected["id"]);
    for (body, different) in [
        (json!({"quantity": 3}), json!({"quantity": 3, "totalPrice": 599.7})),
        (json!({"unitPrice": 100}), json!({"unitPrice": 100, "totalPrice": 300})),
        (json!({"name": "Big panel", "sku": null}), json!({"name": "Big panel", "sku": null})),
        (
            json!({"productId": cable}),
            json!({"productId": cable, "name": "Cable", "sku": null, "unitPrice": 0.5, "totalPrice": 1.5}),
        ),
        (
            json!({"productId": panel, "name": "Mine", "unitPrice": 1}),
            json!({"productId": panel, "name": "Mine", "sku": "P-1", "unitPrice": 1, "totalPrice": 3}),
        ),
        (json!({"productId": null}), json!({"productId": null})),
        (json!({}), json!({})),
    ] {
        expected = super::with(&expected, &different);
        assert_eq!(api.put(&line, body.clone()).await.data(200), &expected, "after {body}");
        let card = super::read(&app, one).await;
        assert_eq!(
            (&card["products"], &card["productsTotal"]),
            (&json!([expected]), &expected["totalPrice"]),
            "after {body}"
        );
    }
    // A later change of the product does not change the card.
    api.put(&line, json!({"productId": panel})).await.data(200);
    sql(&app, "update products set name = 'Dear panel', price = 999 where id = $1", panel).await;
    assert_eq!(super::read(&app, one).await["products"][0]["unitPrice"], 199.9);
    for bad in [json!({"name": null}), json!({"quantity": null}), json!({"unitPrice": null})] {
        let field = bad.as_object().and_then(|bad| bad.keys().next()).expect("a field").clone();
        assert_eq!(api.put(&line, bad).await.invalid_fields(), [field]);
    }
    assert_eq!(api.post(&lines, json!({})).await.invalid_fields(), ["name", "unitPrice"]);
    let other = card(&app, &board, board.todo, "Other").await;
    let line_id = expected["id"].clone();
    for reply in [
        api.post(&lines, json!({"productId": NOBODY})).await,
        api.put(&line, json!({"productId": NOBODY})).await,
        api.post(&format!("{CARDS}/{NOBODY}/products"), json!({"productId": panel})).await,
        api.put(&format!("{lines}/{NOBODY}"), json!({})).await,
        api.delete(&format!("{lines}/{NOBODY}")).await,
        // A line is not found under another card.
        api.put(&format!("{CARDS}/{other}/products/{line_id}"), json!({})).await,
        api.delete(&format!("{CARDS}/{other}/products/{line_id}")).await,
    ] {
        reply.error(404, "ERR_API_NOT_FOUND");
    }
    deleted(api, &line).await;
    assert_eq!(super::read(&app, one).await["productsTotal"], 0);
    app.stop().await;
}

/// A random amount of at least `least` ten-thousandths, with at most nine digits.
fn random_amount(random: &mut StdRng, least: i64) -> Decimal {
    let digits = random.random_range(1..=9);
    Decimal::new(random.random_range(least..10_i64.pow(digits)), 4).normalize()
}

/// The total of a line, as the API document defines it.
fn total(price: Decimal, quantity: Decimal) -> Decimal {
    (price * quantity).round_dp_with_strategy(4, RoundingStrategy::MidpointAwayFromZero)
}

#[actix_web::test]
async fn a_total_never_drifts_over_hundreds_of_changes() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let one = card(&app, &board, board.todo, "One").await;
    let lines = format!("{CARDS}/{one}/products");
    let mut random = StdRng::seed_from_u64(15);
    let mut model: Vec<(i64, Decimal)> = Vec::new();
    for change in 0..300 {
        let (price, quantity) = (random_amount(&mut random, 0), random_amount(&mut random, 1));
        let body = format!(r#"{{"name": "x", "unitPrice": {price}, "quantity": {quantity}}}"#);
        let expected = total(price, quantity);
        match random.random_range(0..3) {
            0 if model.len() < 20 => {
                let added = send_raw(&app, Method::POST, &lines, &body).await;
                assert_eq!(digits(&added.bytes, "totalPrice"), expected.normalize().to_string(), "{body}");
                model.push((id(added.data(201)), expected));
            }
            1 if !model.is_empty() => {
                let at = random.random_range(0..model.len());
                let changed = send_raw(&app, Method::PUT, &format!("{lines}/{}", model[at].0), &body).await;
                assert_eq!(digits(&changed.bytes, "totalPrice"), expected.normalize().to_string(), "{body}");
                changed.data(200);
                model[at].1 = expected;
            }
            _ if !model.is_empty() => {
                let (line, _) = model.remove(random.random_range(0..model.len()));
                deleted(&app.api, &format!("{lines}/{line}")).await;
            }
            _ => {}
        }
        if change % 10 == 9 {
            let shown = app.api.get(&format!("{CARDS}/{one}")).await;
            let sum: Decimal = model.iter().map(|(_, total)| total).sum();
            assert_eq!(digits(&shown.bytes, "productsTotal"), sum.normalize().to_string(), "after {change} changes");
        }
    }
    let stored: Amount = sqlx::query_scalar("select products_total from cards where id = $1")
        .bind(one)
        .fetch_one(&app.db)
        .await
        .expect("a total");
    assert_eq!(stored.decimal(), model.iter().map(|(_, total)| *total).sum::<Decimal>());
    app.stop().await;
}

#[actix_web::test]
async fn lines_that_are_added_at_once_are_all_in_the_total() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let one = card(&app, &board, board.todo, "One").await;
    let lines = format!("{CARDS}/{one}/products");
    let line = json!({"name": "x", "unitPrice": 0.1});
    let add = (0..50).map(|_| app.api.post_while_busy(&lines, &line));
    for added in futures_util::future::join_all(add).await {
        added.data(201);
    }
    assert_eq!(super::read(&app, one).await["productsTotal"], 5);
    app.stop().await;
}
