//! People at the panel.

mod account;
mod administrators;
mod audit;
mod devices;
mod door;
mod factors;
mod integrations;
mod links;
mod mail;
mod replays;
mod sales;
mod shared;
mod signing_in;
mod tokens;
mod users;
