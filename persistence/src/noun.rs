//! Nouns that rows of several tables refer to by their ids, each named once for all of them: then no table needs to know
//! another one's file. `crate::ids` says what each is.
#![allow(missing_docs)]

pub enum Company {}
pub enum Admin {}
pub enum Token {}
pub enum Profile {}
pub enum User {}
pub enum Queue {}
pub enum WrapupType {}
pub enum Channel {}
pub enum Contact {}
pub enum Ticket {}
pub enum Message {}
pub enum Event {}
pub enum LoggedEvent {}
pub enum Board {}
pub enum BoardList {}
pub enum Card {}
pub enum Product {}
pub enum Schedule {}
pub enum Campaign {}
