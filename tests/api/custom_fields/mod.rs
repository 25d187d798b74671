//! Definitions of custom fields.

mod definitions;
mod lists;

use hotline_persistence::ContactId;
use serde_json::{Value, json};

use crate::plain::created;
use crate::support::{Api, TestApp};

const PATH: &str = "/custom-fields";

const TYPES: [&str; 11] =
    ["text", "textarea", "number", "boolean", "date", "datetime", "email", "url", "phone", "select", "multiselect"];

async fn create_field(api: &Api, name: &str, application: &str) -> i64 {
    created(api, PATH, json!({"name": name, "application": application, "type": "text"})).await
}

async fn create_choice_field(api: &Api, kind: &str, options: &[&str]) -> i64 {
    let body = json!({"name": "Choice", "application": "contact", "type": kind, "options": options});
    created(api, PATH, body).await
}

fn path_of(field: i64) -> String {
    format!("{PATH}/{field}")
}

/// Inserts a contact's value of a field.
async fn insert_value(app: &TestApp, contact: ContactId, field: i64, value: &str) {
    sqlx::query("insert into contact_custom_field_values values ($1, $2, $3, $4)")
        .bind(app.company.id)
        .bind(contact)
        .bind(field)
        .bind(value)
        .execute(&app.db)
        .await
        .expect("value");
}

/// Changes a field, and asserts that only the fields of `different` and `updatedAt` have changed.
async fn check_change(api: &Api, field: i64, body: Value, different: Value) {
    let before = api.get(&path_of(field)).await;
    let mut expected = before.data(200).clone();
    let reply = api.put(&path_of(field), body.clone()).await;
    let after = reply.data(200);
    for (name, value) in different.as_object().expect("an object") {
        expected[name] = value.clone();
    }
    expected["updatedAt"] = after["updatedAt"].clone();
    assert!(after["updatedAt"].as_str() >= before.data(200)["updatedAt"].as_str());
    assert_eq!(after, &expected, "{body}");
    assert_eq!(api.get(&path_of(field)).await.data(200), after);
}
