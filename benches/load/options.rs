//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::scenario::Scenario;

/// Measures Hotline under load, beside yardsticks.
#[derive(Parser)]
#[command(name = "load")]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub shared: SharedArgs,
}

#[derive(Subcommand)]
pub enum Command {
    /// Measure the scenarios (the default)
    Run(RunArgs),
    /// Measure throughput by connections and rows, and latency by offered rate
    Curves(CurvesArgs),
    /// Run the mix for a long time: does memory stop growing, and do the tables keep up?
    Soak(SoakArgs),
    /// Measure the memory of a hot ticket and of a hot session, and whether idle ones free it
    Memory(MemoryArgs),
    /// Measure every list and report on a year of data, and the scenarios there and on an empty database
    Grown(GrownArgs),
    /// Compare this build with another one, in short alternating turns
    Against(AgainstArgs),
    /// Measure one, two and three processes on one PostgreSQL, each with the same share of the processors
    Cluster(ClusterArgs),
    /// Serve the yardsticks
    #[command(hide = true)]
    Yardstick { settings: PathBuf },
}

/// The arguments of every command.
#[derive(Args)]
pub struct SharedArgs {
    /// Contacts with an open ticket and a visitor session
    #[arg(long, env = "HOTLINE_LOAD_TICKETS", default_value_t = 10_000, global = true)]
    pub tickets: usize,
    /// Copy the tables and plots to benches/load/results, to be committed
    #[arg(long, global = true)]
    pub keep: bool,
}

#[derive(Args)]
pub struct RunArgs {
    /// Scenarios to measure; none: all
    pub scenarios: Vec<Scenario>,
    /// Seconds of one measurement
    #[arg(long, env = "HOTLINE_LOAD_SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Measurements of each scenario and server, alternating between servers; the report shows medians
    #[arg(long, env = "HOTLINE_LOAD_ROUNDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: u64,
    /// Number of keep-alive connections
    #[arg(long, env = "HOTLINE_LOAD_CONNECTIONS", default_value = "32,128", value_delimiter = ',')]
    pub connections: Vec<u32>,
    /// Contacts without a ticket, for opening and closing tickets
    #[arg(long, env = "HOTLINE_LOAD_POOL", default_value_t = 80_000)]
    pub pool: usize,
}

impl Default for RunArgs {
    /// The defaults of the command line.
    fn default() -> Self {
        match Arguments::parse_from(["load", "run"]).command {
            Some(Command::Run(options)) => options,
            _ => unreachable!("`run` was parsed"),
        }
    }
}

#[derive(Args)]
pub struct CurvesArgs {
    /// Seconds of one measurement
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Number of messages of each database
    #[arg(long, value_delimiter = ',', default_value = "10000,100000,1000000,5000000", value_parser = clap::value_parser!(i64).range(1000..))]
    pub messages: Vec<i64>,
}

#[derive(Args)]
pub struct SoakArgs {
    /// Seconds of the run
    #[arg(long, env = "HOTLINE_LOAD_SOAK_SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(20..))]
    pub seconds: u64,
    /// Number of keep-alive connections
    #[arg(long, default_value_t = 32)]
    pub connections: u32,
}

#[derive(Args)]
pub struct MemoryArgs {
    /// Number of hot tickets or sessions in the first process
    #[arg(long, default_value_t = 1_000)]
    pub few: usize,
    /// Number of hot tickets or sessions in the second process
    #[arg(long, default_value_t = 100_000)]
    pub many: usize,
}

#[derive(Args)]
pub struct GrownArgs {
    /// Messages of all companies
    #[arg(long, default_value_t = 20_000_000)]
    pub messages: i64,
    /// Conversations of all companies, each a ticket; nearly all are closed
    #[arg(long, default_value_t = 2_000_000)]
    pub conversations: i64,
    /// Contacts of all companies
    #[arg(long, default_value_t = 1_000_000)]
    pub contacts: i64,
    /// Share of all of these that the measured company has, in percent
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..100))]
    pub percent: i64,
    /// Cards of the measured company
    #[arg(long, default_value_t = 100_000)]
    pub cards: i64,
    /// Number of companies
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i64).range(2..))]
    pub companies: i64,
    /// Requests of each list and report
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: u64,
    /// Concurrent sends per second
    #[arg(long, default_value_t = 500.0)]
    pub sends_per_second: f64,
    /// Store the generated database in this folder, and start from it the next time
    #[arg(long, value_name = "FOLDER")]
    pub keep_in: Option<PathBuf>,
    /// Measure only lists and reports whose path contains one of these
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Seconds of one measurement of a scenario; 0: no scenario is measured
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Measurements of each scenario on each of the two databases, alternating
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub scenario_rounds: u64,
    /// Number of keep-alive connections of a scenario
    #[arg(long, default_value_t = 32)]
    pub connections: u32,
    /// Contacts without a ticket, for opening and closing tickets
    #[arg(long, default_value_t = 80_000)]
    pub pool: usize,
}

impl GrownArgs {
    /// The defaults, scaled to this many messages.
    pub fn with(messages: i64) -> Self {
        match Arguments::parse_from(["load", "grown"]).command {
            Some(Command::Grown(options)) => {
                let scale = |count: i64| (count * messages / options.messages).max(1);
                let (conversations, contacts, cards) =
                    (scale(options.conversations), scale(options.contacts), scale(options.cards));
                Self { messages, conversations, contacts, cards, ..options }
            }
            _ => unreachable!("`grown` was parsed"),
        }
    }
}

#[derive(Args)]
pub struct AgainstArgs {
    /// The binary of the other build
    pub other: PathBuf,
    /// Scenarios to measure; none: all without a fixed rate
    pub scenarios: Vec<Scenario>,
    /// Seconds of one turn
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Turns of each build
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u64).range(1..))]
    pub turns: u64,
    /// Number of keep-alive connections
    #[arg(long, default_value_t = 32)]
    pub connections: u32,
    /// Contacts without a ticket, for opening and closing tickets
    #[arg(long, default_value_t = 20_000)]
    pub pool: usize,
}

#[derive(Args)]
pub struct ClusterArgs {
    /// Seconds of one measurement
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Measurements of each number of processes: half while it decreases from three to one, half while it increases
    /// again
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: u64,
    /// Number of keep-alive connections, of all processes together
    #[arg(long, default_value_t = 96)]
    pub connections: u32,
    /// Share of one processor that each process has, in percent
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub percent: u64,
    /// Companies of each of the three processes
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    pub companies: u64,
}
