//! The cases: which commands tickets carry out.

use std::sync::LazyLock;

/// Maximum commands in flight: as many as a few busy HTTP workers have.
pub const IN_FLIGHT_MAX: usize = 256;

/// Tickets of the largest case.
pub const TICKETS_MAX: usize = 10_000;

/// The kind of a command.
#[derive(Clone, Copy)]
pub enum Kind {
    Open,
    /// Reopens a closed ticket.
    Send,
    Transfer,
    Close,
}

/// One case: which commands, in how many tickets, how often.
pub struct Case {
    pub name: &'static str,
    /// The commands that bring a new ticket to the start of the cycle.
    pub prepare: &'static [Kind],
    /// The repeated commands: after them the ticket, or the next one of its contact, is at the start again.
    pub cycle: &'static [Kind],
    pub tickets: usize,
    /// Concurrent callers; more than tickets only if the commands may come in any order.
    pub in_flight: usize,
    /// Cycles of each caller in each of its tickets in one round. A round stays below the 300,000 changes that are
    /// kept for the persister, and is short, because writing its changes to PostgreSQL takes three times as long.
    pub cycles: usize,
}

/// Number of contacts: each case has its own.
pub static CONTACTS: LazyLock<usize> = LazyLock::new(|| CASES.iter().map(|case| case.tickets).sum());

const CYCLE: &[Kind] = &[Kind::Open, Kind::Send, Kind::Transfer, Kind::Close, Kind::Send, Kind::Close];

pub const CASES: [Case; 9] = [
    Case { name: "cycle", prepare: &[], cycle: CYCLE, tickets: 1, in_flight: 1, cycles: 200 },
    Case { name: "cycle", prepare: &[], cycle: CYCLE, tickets: 100, in_flight: 100, cycles: 50 },
    Case { name: "cycle", prepare: &[], cycle: CYCLE, tickets: TICKETS_MAX, in_flight: IN_FLIGHT_MAX, cycles: 1 },
    Case {
        name: "send",
        prepare: &[Kind::Open],
        cycle: &[Kind::Send],
        tickets: 1,
        in_flight: IN_FLIGHT_MAX,
        cycles: 100,
    },
    Case {
        name: "send",
        prepare: &[Kind::Open],
        cycle: &[Kind::Send],
        tickets: 100,
        in_flight: IN_FLIGHT_MAX,
        cycles: 100,
    },
    Case {
        name: "send",
        prepare: &[Kind::Open],
        cycle: &[Kind::Send],
        tickets: TICKETS_MAX,
        in_flight: IN_FLIGHT_MAX,
        cycles: 2,
    },
    Case {
        name: "transfer",
        prepare: &[Kind::Open],
        cycle: &[Kind::Transfer],
        tickets: TICKETS_MAX,
        in_flight: IN_FLIGHT_MAX,
        cycles: 2,
    },
    Case {
        name: "open_and_close",
        prepare: &[],
        cycle: &[Kind::Open, Kind::Close],
        tickets: TICKETS_MAX,
        in_flight: IN_FLIGHT_MAX,
        cycles: 1,
    },
    Case {
        name: "reopening_send_and_close",
        prepare: &[Kind::Open, Kind::Close],
        cycle: &[Kind::Send, Kind::Close],
        tickets: TICKETS_MAX,
        in_flight: IN_FLIGHT_MAX,
        cycles: 1,
    },
];

impl Case {
    /// The tickets of each caller: every ticket has one caller, unless there are more callers than tickets.
    pub fn lanes(&self) -> Vec<Vec<usize>> {
        let lane = |caller| match self.in_flight <= self.tickets {
            true => (caller..self.tickets).step_by(self.in_flight).collect(),
            false => vec![caller % self.tickets],
        };
        (0..self.in_flight).map(lane).collect()
    }
}
