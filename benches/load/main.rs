//! The whole service under load, beside yardsticks that are measured in the same run: `make load`.
//!
//! - `load run` measures requests per second, latency, CPU and memory of each scenario.
//! - `load curves` measures throughput and latency by the number of connections, the offered rate and the rows.
//! - `load soak` runs the mix for ten minutes.
//! - `load memory` measures the memory of a hot ticket and of a hot session.
//! - `load grown` measures lists, reports and scenarios on a database with a year of data.
//! - `load against` compares this build with another one.
//! - `load cluster` measures one to three processes on one database.
//!
//! `docs/benchmarks.md` describes the method, and what the figures do not show.

mod against;
mod answers;
mod cluster;
mod curves;
mod disk;
mod figures;
mod generator;
mod grown;
mod machine;
mod memory;
mod options;
mod outcome;
mod report;
mod run;
mod scenario;
mod seed;
mod service;
mod soak;
mod stage;
mod subjects;
mod usage;
mod yardstick;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

use options::{Arguments, Command};
use outcome::Outcome;

/// The allocator of the service, so that the yardsticks use the same.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Some(Command::Yardstick { settings }) => yardstick::serve(settings),
        command => actix_rt::System::new().block_on(async {
            // Ctrl-C drops the run, and with it the processes that it started, which stops them.
            tokio::select! {
                result = run_command(&arguments, command.as_ref()) => result,
                _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
            }
        }),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("load: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run_command(arguments: &Arguments, command: Option<&Command>) -> Outcome<()> {
    let shared = &arguments.shared;
    let keep = shared.keep;
    match command {
        Some(Command::Curves(options)) => report::curves(&curves::run(shared, options).await?, keep),
        Some(Command::Soak(options)) => report::soak(&soak::run(shared, options).await?, keep),
        Some(Command::Against(options)) => report::against(&against::run(shared, options).await?, keep),
        Some(Command::Cluster(options)) => report::cluster(&cluster::run(shared, options).await?, keep),
        Some(Command::Grown(options)) => grown::run(shared, options, |result| report::grown(result, keep)).await,
        Some(Command::Memory(options)) => report::memory(&memory::run(options).await?, keep),
        Some(Command::Run(options)) => report::throughput(&run::run(shared, options).await?, keep),
        Some(Command::Yardstick { .. }) | None => {
            report::throughput(&run::run(shared, &options::RunArgs::default()).await?, keep)
        }
    }
}
