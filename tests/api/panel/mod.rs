//! People at the panel.

mod account;
mod administrators;
mod audit;
mod devices;
mod door;
mod factors;
mod hidden_cards;
mod integrations;
mod links;
mod mail;
mod own_name;
mod provider_url;
mod replays;
mod sales;
mod shared;
mod signing_in;
mod tokens;
mod users;

use crate::steps::id;
use crate::support::{Person, TestApp};
use serde_json::json;

/// A user of the test's company with its profile Administrator.
async fn administrator(app: &TestApp) -> Person {
    let profiles = app.api.all("/profiles").await;
    let profile = id(profiles.iter().find(|known| known["name"] == "Administrator").expect("a profile"));
    app.api.put(&format!("/users/{}", app.company.ana), json!({"profileId": profile})).await.data(200);
    Person::user(app, app.company.ana, "ana@example.com").await
}
