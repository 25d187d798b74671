//! Marker types for the ids of records that several tables refer to, so that no table needs another one's module.
//! [`crate::ids`] describes them.

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
