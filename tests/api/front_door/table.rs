//! The route table, as the tests walk it: an endpoint is covered the day it is added.

use std::collections::{BTreeMap, BTreeSet};

use hotline::openapi::Operation;
use hotline_persistence::tables::tokens::{self, NewToken, Permissions, TokenRow};
use hotline_persistence::{CompanyId, key};
use reqwest::{Method, RequestBuilder};

use crate::support::{Api, OwnApp, TestApp, eventually};

/// Every operation there is.
pub fn operations() -> Vec<Operation> {
    let operations = hotline::routes::operations(&mut BTreeMap::new());
    assert!(operations.len() >= 25, "the route table is nearly empty");
    operations
}

/// Every path, with the methods it has.
pub fn paths() -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut paths: BTreeMap<String, BTreeSet<&'static str>> = BTreeMap::new();
    for operation in operations() {
        paths.entry(operation.path.clone()).or_default().insert(operation.method);
    }
    paths
}

/// The path with this id in place of every parameter.
pub fn filled(path: &str, id: &str) -> String {
    let parts: Vec<&str> = path.split('/').map(|part| if part.starts_with('{') { id } else { part }).collect();
    parts.join("/")
}

pub fn method(name: &str) -> Method {
    name.parse().expect("a method")
}

/// Method and path, to name an operation in a failure.
pub fn name(operation: &Operation) -> String {
    format!("{} {}", operation.method, operation.path)
}

/// The operation's path, with ids of the form it takes: 1 where that is a number.
pub fn example_path(operation: &Operation) -> String {
    let ids = operation.path_names().zip(&operation.path_ids);
    ids.fold(operation.path.clone(), |path, (name, schema)| {
        let id = if schema["type"] == "integer" { "1" } else { schema["example"].as_str().expect("an example") };
        path.replace(&format!("{{{name}}}"), id)
    })
}

/// A request for the operation: to its [`example_path`], with an empty object if it takes a body.
pub fn request(api: &Api, operation: &Operation) -> RequestBuilder {
    let request = api.request(method(operation.method), &example_path(operation));
    with_empty_object(request, operation)
}

/// The same without a token.
pub fn anonymous(api: &Api, operation: &Operation) -> RequestBuilder {
    let path = format!("/api/v1{}", example_path(operation));
    with_empty_object(api.anonymous(method(operation.method), &path), operation)
}

fn with_empty_object(request: RequestBuilder, operation: &Operation) -> RequestBuilder {
    if operation.body.is_some() { request.json(&serde_json::json!({})) } else { request }
}

/// These methods in this module, and nothing else.
pub fn only(module: &str, methods: &[&str]) -> Permissions {
    [(module.to_owned(), methods.iter().map(|method| (*method).to_owned()).collect())].into()
}

/// Creates another token of the service's company; [`wait_until_known`] waits until the service knows it.
pub async fn create_token(app: &TestApp, new: NewToken<'_>) -> (TokenRow, String) {
    create_token_of(app, app.company.id, new).await
}

pub async fn create_token_of(app: &TestApp, company: CompanyId, new: NewToken<'_>) -> (TokenRow, String) {
    tokens::insert(&app.db, company, new).await.expect("token")
}

/// Waits until the service knows the key, without a use of it.
pub async fn wait_until_known(app: &OwnApp, key: &str) {
    let hash = key::hash(key);
    let directory = app.service.app.engine.directory();
    eventually("the token is known", || async { directory.token(&hash).is_some() }).await;
}
