//! People at the panel.

mod account;
mod door;
mod factors;
mod links;
mod shared;
mod signing_in;
