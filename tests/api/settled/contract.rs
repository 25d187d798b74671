//! Rules of the contract that were once found broken, with similar cases.

use reqwest::Method;
use serde_json::{Value, json};

use crate::steps::id;
use crate::support::{OwnApp, Reply, TestApp};

/// Every page that exists can be read, and a page number beyond the last finds an empty page.
#[actix_web::test]
async fn every_page_that_exists_can_be_read_however_deep() {
    let app = OwnApp::start().await;
    let seeded = "insert into tags (company_id, name) select $1, 'tag ' || n from generate_series(1, 20250) n";
    sqlx::query(seeded).bind(app.company.id).execute(&app.db).await.expect("tags");
    for (query, rows, has_more) in [
        ("page=202", 100, true),
        ("page=203", 50, false),
        ("page=203&order=desc", 50, false),
        ("page=204", 0, false),
        // Beyond a million rows.
        ("page=10002", 0, false),
        ("page=9223372036854775807", 0, false),
    ] {
        let reply = app.api.get(&format!("/tags?{query}")).await;
        let found = reply.data(200).as_array().expect("a list").len();
        assert_eq!((found, &reply.body["meta"]["hasMore"]), (rows, &json!(has_more)), "{query}");
    }
    app.stop().await;
}

/// A number beyond the range of a float is valid JSON, so the error names its field instead of refusing the whole body.
#[actix_web::test]
async fn a_number_too_large_for_a_float_is_an_error_of_its_field() {
    let app = TestApp::shared().await;
    let product = id(app.api.post("/products", json!({"name": "p", "price": 1})).await.data(201));
    let send = async |method: Method, path: &str, body: String| {
        let request = app.api.request(method, path).header("content-type", "application/json").body(body);
        Reply::of(request).await
    };
    for digits in ["1e400", "-1e400", "1E+9999999999", "123456789e309"] {
        for (method, path, name) in [
            (Method::POST, "/products".to_owned(), "price"),
            (Method::PUT, format!("/products/{product}"), "price"),
            (Method::POST, "/crm/boards".to_owned(), "monthlyGoal"),
            (Method::POST, "/campaigns".to_owned(), "ratePerMinute"),
        ] {
            let body = format!(r#"{{"name": "1e400", "{name}": {digits}}}"#);
            let refused = send(method.clone(), &path, body).await;
            assert!(refused.invalid_fields().contains(&name.to_owned()), "{method} {path} {digits}: {}", refused.body);
        }
        // An unknown field is ignored, whatever number it holds.
        let body = format!(r#"{{"name": "Maria", "unknown": [{digits}]}}"#);
        send(Method::POST, "/contacts", body).await.data(201);
    }
    send(Method::POST, "/products", r#"{"name": "p", "price": 1e400"#.to_owned())
        .await
        .error(400, "ERR_API_BAD_REQUEST");
    app.stop().await;
}

#[actix_web::test]
async fn the_message_of_a_campaign_cannot_be_cleared() {
    let app = TestApp::shared().await;
    let list = id(app.api.post("/contact-lists", json!({"name": "All"})).await.data(201));
    let new = json!({"name": "Spring", "contactListId": list, "channelId": app.company.phone,
        "scheduledAt": "2099-01-01T00:00:00Z", "message": "Hello"});
    let made = app.api.post("/campaigns", new).await.data(201).clone();
    let path = format!("/campaigns/{}", made["id"]);
    for cleared in [json!({"message": null}), json!({"message": " "}), json!({"message": null, "template": null})] {
        assert_eq!(app.api.put(&path, cleared.clone()).await.invalid_fields(), ["message"], "{cleared}");
    }
    // A field that is already null may be sent as null again.
    for same in [json!({"template": null}), json!({"message": "Hello", "template": null})] {
        assert_eq!(app.api.put(&path, same.clone()).await.data(200), &made, "{same}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn every_wrong_custom_value_is_named_by_its_key() {
    let app = TestApp::shared().await;
    for (application, path, new) in [
        ("contact", "/contacts", json!({"name": "Maria"})),
        (
            "card",
            "/crm/cards",
            json!({"name": "Roof", "boardId": id(app.api.post("/crm/boards", json!({"name": "B"})).await.data(201))}),
        ),
    ] {
        for kind in ["text", "textarea", "number", "boolean", "date", "datetime", "email", "url", "phone"] {
            let field = json!({"name": format!("my {kind}"), "application": application, "type": kind});
            app.api.post("/custom-fields", field).await.data(201);
        }
        for kind in ["text", "textarea", "number", "boolean", "date", "datetime", "email", "url", "phone"] {
            let key = format!("my_{kind}");
            for wrong in [json!(5), json!(true), json!([]), json!({}), json!("x".repeat(10_001)), json!("https://x\ny")]
            {
                if kind == "textarea" && wrong.as_str().is_some_and(|text| text.len() < 10_000) {
                    continue;
                }
                let mut body = new.clone();
                body["customFields"] = json!([{"key": key, "value": wrong}]);
                let refused = app.api.post(path, body).await;
                assert_eq!(refused.invalid_fields(), ["customFields[0].value"], "{key} {wrong}");
                let reason = refused.body["error"]["details"][0]["reason"].as_str().expect("a reason");
                assert!(reason.contains(&format!("`{key}`")), "{key}: {reason}");
            }
            let mut body = new.clone();
            body["customFields"] = json!([{"key": key}]);
            let refused = app.api.post(path, body).await;
            let reason = refused.body["error"]["details"][0]["reason"].as_str().expect("a reason");
            assert!(reason.contains(&format!("`{key}`")), "{key}: {reason}");
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_contacts_field_may_be_called_like_a_variable() {
    let app = TestApp::shared().await;
    for (name, key) in [("Company", "contact_company"), ("Date", "contact_date"), ("First Name", "first_name")] {
        let field = json!({"name": name, "application": "contact", "type": "text"});
        let field = app.api.post("/custom-fields", field).await.data(201).clone();
        assert_eq!((&field["name"], &field["key"]), (&json!(name), &json!(key)));
    }
    let values = json!([{"key": "contact_company", "value": "ACME"}]);
    let contact = json!({"name": "Maria", "number": "5511987654321", "customFields": values});
    let contact = id(app.api.post("/contacts", contact).await.data(201));
    let send = json!({"contactId": contact, "channelId": app.company.phone, "type": "text",
        "body": "{{contact_company}}"});
    app.api.post("/messages", send).await.data(202);
    let messages = app.api.all(&format!("/messages?contactId={contact}")).await;
    let bodies: Vec<&Value> = messages.iter().map(|message| &message["body"]).collect();
    assert_eq!(bodies, ["ACME"]);
    app.stop().await;
}

/// A field that cannot be changed may be sent with its present value; another value is refused.
#[actix_web::test]
async fn fixed_fields_may_be_repeated_but_not_changed() {
    let app = TestApp::shared().await;
    let board = async |name: &str| id(app.api.post("/crm/boards", json!({"name": name})).await.data(201));
    let (board, other) = (board("One").await, board("Two").await);
    let card = id(app.api.post("/crm/cards", json!({"name": "Roof", "boardId": board})).await.data(201));
    let field = json!({"name": "Size", "application": "contact", "type": "text"});
    let field = id(app.api.post("/custom-fields", field).await.data(201));
    let variable = id(app.api.post("/global-variables", json!({"key": "hours", "value": "9 to 18"})).await.data(201));
    for (path, name, same, another) in [
        (format!("/crm/cards/{card}"), "boardId", json!(board), json!(other)),
        (format!("/custom-fields/{field}"), "application", json!("contact"), json!("card")),
        (format!("/custom-fields/{field}"), "key", json!("size"), json!("length")),
        (format!("/global-variables/{variable}"), "key", json!("hours"), json!("times")),
    ] {
        app.api.put(&path, json!({name: same})).await.data(200);
        assert_eq!(app.api.put(&path, json!({name: another})).await.invalid_fields(), [name], "{path}");
        assert_eq!(app.api.put(&path, json!({name: Value::Null})).await.invalid_fields(), [name], "{path}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn urls_and_replay_positions_of_webhooks_are_checked() {
    let app = TestApp::shared().await;
    for url in ["https:///x", "https:////x", "https://\\x"] {
        assert_eq!(app.api.post("/webhooks", json!({"url": url})).await.invalid_fields(), ["url"], "{url}");
    }
    let webhook =
        id(app.api.post("/webhooks", json!({"url": "https://example.com/x", "types": ["card.lost"]})).await.data(201));
    let replay = format!("/webhooks/{webhook}/replay");
    assert_eq!(app.api.post(&replay, json!({"after": -1})).await.invalid_fields(), ["after"]);
    app.api.post(&replay, json!({"after": 0})).await.data(202);
    app.stop().await;
}

/// No zone skips a day now; Samoa had no 30 December 2011.
#[actix_web::test]
async fn a_day_that_the_zone_skipped_has_no_row_in_a_report() {
    let app = TestApp::shared().await;
    let span = "timeZone=Pacific/Apia&from=2011-12-28T10:00:00Z&to=2011-12-31T09:59:59.999Z";
    for report in ["tickets", "messages", "sales"] {
        let rows = app.api.get(&format!("/reports/{report}?{span}")).await.data(200).clone();
        let keys: Vec<&str> = rows.as_array().expect("rows").iter().filter_map(|row| row["key"].as_str()).collect();
        assert_eq!(keys, ["2011-12-28", "2011-12-29", "2011-12-31"], "{report}");
    }
    app.stop().await;
}
