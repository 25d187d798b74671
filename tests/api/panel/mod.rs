//! People at the panel.

mod account;
mod administrators;
mod door;
mod factors;
mod links;
mod mail;
mod sales;
mod shared;
mod signing_in;
mod tokens;
mod users;
