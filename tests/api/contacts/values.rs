//! Values of custom fields on contacts.

use serde_json::{Value, json};

use super::{PATH, change_contact, create_contact, create_field, shown};
use crate::plain::{created, deleted};
use crate::steps::id;
use crate::support::TestApp;

fn values(contact: &Value) -> Vec<(&str, &str)> {
    let rows = contact["customFields"].as_array().expect("values");
    rows.iter().map(|row| (row["key"].as_str().expect("key"), row["value"].as_str().expect("value"))).collect()
}

#[actix_web::test]
async fn values_are_merged_by_key_and_null_clears() {
    let app = TestApp::shared().await;
    let size = create_field(&app.api, "Size", "number", &json!({})).await;
    create_field(&app.api, "Note", "textarea", &json!({})).await;
    create_field(&app.api, "Colours", "multiselect", &json!({"options": ["Red", "Blue"]})).await;
    let body = json!({"name": "Ana", "customFields": [
        {"key": "note", "value": " two\nlines "}, {"key": "size", "value": "42.5"}, {"key": "colours", "value": null},
    ]});
    let made = app.api.post(PATH, body).await;
    let made = made.data(201);
    let sized = json!({"key": "size", "value": "42.5", "customFieldId": size, "name": "Size", "type": "number"});
    assert_eq!(made["customFields"][0], sized);
    assert_eq!(values(made), [("size", "42.5"), ("note", "two\nlines")]);

    let put = async |given: Value| change_contact(&app.api, id(made), json!({"customFields": given})).await;
    let merged = put(json!([{"key": "colours", "value": "[\"Blue\"]"}, {"key": "note", "value": null}])).await;
    assert_eq!(values(&merged), [("size", "42.5"), ("colours", "[\"Blue\"]")]);
    let last = put(json!([{"key": "size", "value": "1"}, {"key": "size", "value": "2"}])).await;
    assert_eq!(values(&last), [("size", "2"), ("colours", "[\"Blue\"]")]);
    assert_eq!(values(&put(json!([])).await).len(), 2);
    let refused = app.api.put(&format!("{PATH}/{}", id(made)), json!({"customFields": null})).await;
    assert_eq!(refused.invalid_fields(), ["customFields"]);
    // The value of a renamed field stays.
    app.api.put(&format!("/custom-fields/{size}"), json!({"name": "Shoe size"})).await.data(200);
    assert_eq!(shown(&app.api, id(made)).await["customFields"][0]["name"], "Shoe size");
    deleted(&app.api, &format!("/custom-fields/{size}")).await;
    assert_eq!(values(&shown(&app.api, id(made)).await), [("colours", "[\"Blue\"]")]);
    app.stop().await;
}

#[actix_web::test]
async fn a_wrong_value_is_named_with_its_key_and_nothing_is_stored() {
    let app = TestApp::shared().await;
    let (_, other) = app.another_company().await;
    create_field(&other, "Theirs", "text", &json!({})).await;
    created(&app.api, "/custom-fields", json!({"name": "On cards", "application": "card", "type": "text"})).await;
    let kinds = [
        ("text", "fine", "a\nb"),
        ("number", "-1.25", "1,25"),
        ("boolean", "true", "yes"),
        ("date", "2026-01-31", "31/01/2026"),
        ("datetime", "2026-01-31T12:00:00Z", "2026-01-31"),
        ("email", "a@b.example", "a"),
        ("url", "https://example.com", "example"),
        ("phone", "5511987654321", "1"),
        ("select", "Red", "red"),
        ("multiselect", "[\"Red\"]", "Red"),
    ];
    for (kind, ..) in kinds {
        let options = if kind.ends_with("select") { json!({"options": ["Red", "Blue"]}) } else { json!({}) };
        create_field(&app.api, &format!("a {kind}"), kind, &options).await;
    }
    let all = |pick: fn(&(&'static str, &'static str, &'static str)) -> &'static str| -> Vec<Value> {
        kinds.iter().map(|row| json!({"key": format!("a_{}", row.0), "value": pick(row)})).collect()
    };
    let good = create_contact(&app.api, json!({"name": "Good", "customFields": all(|row| row.1)})).await;
    let before = shown(&app.api, good).await;
    let keys = kinds.map(|(kind, ..)| format!("a_{kind}"));
    let expected: Vec<(&str, &str)> = keys.iter().zip(kinds).map(|(key, (_, good, _))| (key.as_str(), good)).collect();
    assert_eq!(values(&before), expected);
    let mut wrong = all(|row| row.2);
    let unknown = ["theirs", "on_cards", "nothing", "Text"];
    wrong.extend(unknown.map(|key| json!({"key": key, "value": "x"})));
    let body = json!({"name": "Bad", "customFields": wrong});
    for reply in [app.api.post(PATH, body.clone()).await, app.api.put(&format!("{PATH}/{good}"), body).await] {
        let named = reply.invalid_fields();
        let details = reply.body["error"]["details"].as_array().expect("details").clone();
        for (index, (name, detail)) in named.iter().zip(details).enumerate() {
            let part = if index < kinds.len() { "value" } else { "key" };
            assert_eq!(name, &format!("customFields[{index}].{part}"));
            let key = keys.get(index).map_or_else(|| unknown[index - kinds.len()], String::as_str);
            assert!(detail["reason"].as_str().is_some_and(|reason| reason.contains(&format!("`{key}`"))), "{detail}");
        }
        assert_eq!(named.len(), kinds.len() + unknown.len());
    }
    assert_eq!(app.api.all(PATH).await, [before]);
    app.stop().await;
}

#[actix_web::test]
async fn a_required_field_needs_a_value_at_creation_and_keeps_it() {
    let app = TestApp::shared().await;
    let old = create_contact(&app.api, json!({"name": "Old"})).await;
    create_field(&app.api, "Size", "number", &json!({"required": true})).await;
    create_field(&app.api, "Born", "date", &json!({"required": true})).await;
    let refused = app.api.post(PATH, json!({"name": "x", "customFields": [{"key": "size", "value": "1"}]})).await;
    assert_eq!(refused.invalid_fields(), ["customFields"]);
    assert!(refused.body["error"]["message"].as_str().is_some_and(|text| text.contains("`born`")), "{}", refused.body);
    app.api.post(PATH, json!({"name": "x"})).await.error(422, "ERR_API_VALIDATION");
    // A contact that was there before may stay without a value, but not lose one.
    change_contact(&app.api, old, json!({"name": "Older"})).await;
    let both = json!([{"key": "size", "value": "1"}, {"key": "born", "value": "1990-01-01"}]);
    change_contact(&app.api, old, json!({"customFields": both})).await;
    let cleared = json!({"customFields": [{"key": "size", "value": null}]});
    assert_eq!(app.api.put(&format!("{PATH}/{old}"), cleared).await.invalid_fields(), ["customFields[0].value"]);
    create_contact(&app.api, json!({"name": "New", "customFields": both})).await;
    app.stop().await;
}
