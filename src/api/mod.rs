//! One file per noun of the API. Each says at its top whether the resource is plain (changed by one SQL transaction)
//! or live (changed only by its actor).

pub mod channels;
pub mod contacts;
pub mod health;
pub mod messages;
pub mod named;
pub mod tags;
pub mod tickets;
pub mod webchat;
