//! Scheduled messages. One actor for each company that has any, [`ScheduleDispatcher`], serializes sending, changing
//! and canceling them. `agenda/` is its state in memory, without clock or I/O.

mod agenda;
mod dispatcher;
mod messages;

pub(crate) use dispatcher::ScheduleScope;
pub use dispatcher::{ScheduleDispatcher, ScheduleGauges};
pub(crate) use messages::{CancelSchedule, CreateSchedule, FailSchedule, ReadSchedule, ReloadAgenda, UpdateSchedule};
pub use messages::{NewSchedule, ScheduleChanges, Scheduled};
