//! The panel's API, which people use after signing in.

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

use crate::support::{Person, TestApp};

/// Ana, signed in, with the company's profile Administrator.
async fn administrator(app: &TestApp) -> Person {
    Person::give_profile(app, app.company.ana, "Administrator").await;
    Person::user(app, app.company.ana, "ana@example.com").await
}
