//! Steps shared by the tests of queues, wrap-up types, users and profiles, and of some other records.

use std::collections::HashMap;

use reqwest::Method;
use serde_json::{Value, json};

use crate::steps::id;
use crate::support::{Reply, TestApp};

/// The ids of these names, in ascending order.
pub fn ids_by(ids: &HashMap<&str, i64>, names: &[&str]) -> Vec<i64> {
    let mut ids: Vec<i64> = names.iter().map(|name| ids[name]).collect();
    ids.sort_unstable();
    ids
}

/// Opens a ticket on the phone channel, with these further fields. Returns its id.
pub async fn opened(app: &TestApp, number: &str, extra_fields: Value) -> i64 {
    let contact = app.contact(number).await;
    let mut body = json!({"channelId": app.company.phone, "contactId": contact});
    for (field, value) in extra_fields.as_object().expect("an object") {
        body[field] = value.clone();
    }
    id(app.api.post("/tickets", body).await.data(201))
}

/// Checks that each call is answered with the same `404`, which reveals nothing.
pub async fn check_absent(app: &TestApp, calls: Vec<(Method, String, Option<Value>)>) {
    for (method, path, body) in calls {
        let request = app.api.request(method.clone(), &path);
        let request = match &body {
            Some(body) => request.json(body),
            None => request,
        };
        let reply = Reply::of(request).await;
        assert_eq!(reply.status.as_u16(), 404, "{method} {path}: {}", reply.body);
        assert_eq!(
            reply.body,
            json!({"error": {"code": "ERR_API_NOT_FOUND", "message": "record not found"}}),
            "{method} {path}"
        );
    }
}
