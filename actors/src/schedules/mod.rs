//! Scheduled messages. One actor for each company that has any, [`ScheduleDispatcher`], decides of each of them whether
//! it leaves now or is changed or canceled; `agenda/` is what it knows, without a clock and without I/O.

mod agenda;
mod dispatcher;
mod messages;

pub(crate) use dispatcher::ScheduleScope;
pub use dispatcher::{ScheduleDispatcher, ScheduleFigures};
pub(crate) use messages::{CancelSchedule, CreateSchedule, LookAtSchedule, UpdateSchedule};
pub use messages::{NewSchedule, ScheduleChanges, Scheduled};
