//! Contacts.

mod conversations;
mod delete;
mod import;
mod pictures;
mod shown;
mod tags;
mod values;
mod write;

use serde_json::{Value, json};

use crate::plain::created;
use crate::support::{Api, TestApp};

const PATH: &str = "/contacts";

/// The marketing fields of a contact: free texts of up to ten thousand characters.
pub const MARKETING_FIELDS: [&str; 12] = [
    "sourceUrl",
    "sourceId",
    "headline",
    "mediaType",
    "mediaUrl",
    "utmSource",
    "utmMedium",
    "utmCampaign",
    "utmId",
    "fbclid",
    "gclid",
    "ctwaClid",
];

/// The `identities` of a contact that has this number and no other identity, or none if it is null.
fn identities(number: &Value) -> Value {
    let known =
        json!({"channelType": null, "scope": null, "kind": "number", "value": number, "since": null, "until": null});
    if number.is_null() { json!([]) } else { json!([known]) }
}

/// A contact that has nothing but a name, as it is shown.
fn bare(shown: &Value, name: &str) -> Value {
    let mut bare = json!({
        "id": shown["id"], "name": name, "isGroup": false, "tags": [], "customFields": [], "lastChannel": null, "verified": false, "marketingOptOut": false,
        "createdAt": shown["createdAt"], "updatedAt": shown["updatedAt"],
        "identities": identities(&shown["number"]), "mergeSuggestions": [],
    });
    let others =
        ["number", "numberCountry", "email", "code", "cpfCnpj", "origin", "profilePicUrl", "socialUsername", "lid"];
    for field in others.into_iter().chain(MARKETING_FIELDS) {
        bare[field] = Value::Null;
    }
    bare
}

/// The object with these fields replaced.
fn with(mut object: Value, fields: &Value) -> Value {
    for (field, value) in fields.as_object().expect("an object") {
        object[field] = value.clone();
    }
    object
}

async fn create_contact(api: &Api, body: Value) -> i64 {
    created(api, PATH, body).await
}

async fn shown(api: &Api, id: i64) -> Value {
    api.get(&format!("{PATH}/{id}")).await.data(200).clone()
}

async fn change_contact(api: &Api, id: i64, body: Value) -> Value {
    api.put(&format!("{PATH}/{id}"), body).await.data(200).clone()
}

async fn create_tag(api: &Api, name: &str) -> i64 {
    created(api, "/tags", json!({"name": name})).await
}

async fn create_field(api: &Api, name: &str, kind: &str, more: &Value) -> i64 {
    let body = with(json!({"name": name, "application": "contact", "type": kind}), more);
    created(api, "/custom-fields", body).await
}

/// How many rows of a table belong to a contact.
async fn count_rows(app: &TestApp, table: &str, contact: i64) -> i64 {
    let statement = format!("select count(*) from {table} where contact_id = $1");
    sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).bind(contact).fetch_one(&app.db).await.expect("a count")
}
