//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::scenario::Scenario;

/// Hotline under load, beside yardsticks.
#[derive(Parser)]
#[command(name = "load")]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub shared: Shared,
}

#[derive(Subcommand)]
pub enum Command {
    /// Measure the scenarios, or those named (the default)
    Run(Run),
    /// Throughput against connections, and latency against the rate that is offered
    Curves(Curves),
    /// The mix for long: whether memory stops growing and the tables keep up
    Soak(Soak),
    /// Bytes of a hot ticket and of a hot session, and whether idle ones make room
    Memory(Memory),
    /// A database that has been in use for a year: every list and report, and the scenarios beside an empty one
    Grown(Grown),
    /// This build and another one, in short turns: what a change costs
    Against(Against),
    /// One, two and three processes on one PostgreSQL, each with the same share of the processors
    Cluster(Cluster),
    /// Serve the yardsticks
    #[command(hide = true)]
    Yardstick { settings: PathBuf },
}

/// What every command takes.
#[derive(Args)]
pub struct Shared {
    /// Contacts with an open ticket and a visitor session
    #[arg(long, env = "HOTLINE_LOAD_TICKETS", default_value_t = 10_000, global = true)]
    pub tickets: usize,
    /// Copy the tables and plots to benches/load/results, to be committed
    #[arg(long, global = true)]
    pub keep: bool,
}

#[derive(Args)]
pub struct Run {
    /// Which; none: all
    pub scenarios: Vec<Scenario>,
    /// Seconds of one measurement
    #[arg(long, env = "HOTLINE_LOAD_SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Measurements of each, in turn with those it is compared with; medians are shown
    #[arg(long, env = "HOTLINE_LOAD_ROUNDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: u64,
    /// Connections that are kept alive
    #[arg(long, env = "HOTLINE_LOAD_CONNECTIONS", default_value = "32,128", value_delimiter = ',')]
    pub connections: Vec<u32>,
    /// Contacts without a ticket, for those that are opened and closed
    #[arg(long, env = "HOTLINE_LOAD_POOL", default_value_t = 80_000)]
    pub pool: usize,
}

impl Default for Run {
    /// As without a word on the command line.
    fn default() -> Self {
        match Arguments::parse_from(["load", "run"]).command {
            Some(Command::Run(options)) => options,
            _ => unreachable!("`run` was parsed"),
        }
    }
}

#[derive(Args)]
pub struct Curves {
    /// Seconds of one measurement
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Messages of the databases that are compared
    #[arg(long, value_delimiter = ',', default_value = "10000,100000,1000000,5000000", value_parser = clap::value_parser!(i64).range(1000..))]
    pub messages: Vec<i64>,
}

#[derive(Args)]
pub struct Soak {
    /// How long
    #[arg(long, env = "HOTLINE_LOAD_SOAK_SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(20..))]
    pub seconds: u64,
    /// Connections that are kept alive
    #[arg(long, default_value_t = 32)]
    pub connections: u32,
}

#[derive(Args)]
pub struct Memory {
    /// How many are hot in the process that the other is compared with
    #[arg(long, default_value_t = 1_000)]
    pub few: usize,
    /// How many are hot in the other
    #[arg(long, default_value_t = 100_000)]
    pub many: usize,
}

#[derive(Args)]
pub struct Grown {
    /// Messages of all companies
    #[arg(long, default_value_t = 20_000_000)]
    pub messages: i64,
    /// Conversations of all companies, each a ticket; nearly all are closed
    #[arg(long, default_value_t = 2_000_000)]
    pub conversations: i64,
    /// Contacts of all companies
    #[arg(long, default_value_t = 1_000_000)]
    pub contacts: i64,
    /// How much of all this the one company has that is measured, in percent
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..100))]
    pub percent: i64,
    /// Cards of the one
    #[arg(long, default_value_t = 100_000)]
    pub cards: i64,
    /// Companies
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i64).range(2..))]
    pub companies: i64,
    /// Times each list and report is asked for
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: u64,
    /// Sends a second beside them
    #[arg(long, default_value_t = 500.0)]
    pub sends_per_second: f64,
    /// Keep the database in this folder as it was made, and begin with it the next time
    #[arg(long, value_name = "FOLDER")]
    pub keep_in: Option<PathBuf>,
    /// Only those whose path holds one of these
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Seconds of one measurement of a scenario; 0: none is measured
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Measurements of each scenario, in turn with the empty database
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub scenario_rounds: u64,
    /// Connections of a scenario
    #[arg(long, default_value_t = 32)]
    pub connections: u32,
    /// Contacts without a ticket, for those that are opened and closed
    #[arg(long, default_value_t = 80_000)]
    pub pool: usize,
}

impl Grown {
    /// So many messages, in the proportions of a year of use.
    pub fn with(messages: i64) -> Self {
        match Arguments::parse_from(["load", "grown"]).command {
            Some(Command::Grown(options)) => {
                let part = |count: i64| (count * messages / options.messages).max(1);
                let (conversations, contacts, cards) =
                    (part(options.conversations), part(options.contacts), part(options.cards));
                Self { messages, conversations, contacts, cards, ..options }
            }
            _ => unreachable!("`grown` was parsed"),
        }
    }
}

#[derive(Args)]
pub struct Against {
    /// The binary of the other build
    pub other: PathBuf,
    /// Which; none: all that have no rate of their own
    pub scenarios: Vec<Scenario>,
    /// Seconds of one turn
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Turns of each build
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u64).range(1..))]
    pub turns: u64,
    /// Connections that are kept alive
    #[arg(long, default_value_t = 32)]
    pub connections: u32,
    /// Contacts without a ticket, for those that are opened and closed
    #[arg(long, default_value_t = 20_000)]
    pub pool: usize,
}

#[derive(Args)]
pub struct Cluster {
    /// Seconds of one measurement
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Measurements of each number of processes, half of them on the way down from three to one, half on the way back
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: u64,
    /// Connections that are kept alive, of all processes together
    #[arg(long, default_value_t = 96)]
    pub connections: u32,
    /// How much of one processor each process has, in percent
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub percent: u64,
    /// Companies of each of three processes
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    pub companies: u64,
}
