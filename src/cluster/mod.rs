//! This process as one of many: it joins, shows that it is there, takes over from those that are not, and gives and takes
//! slots. What decides is in PostgreSQL ([`hotline_persistence::cluster`]).

mod member;
mod observer;
pub mod planner;

pub use self::member::{Leave, Member, Parts};
