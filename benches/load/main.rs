//! The whole service under load, beside yardsticks that are measured in the same run: `make load`.
//!
//! `load run` measures requests a second, latencies, CPU and memory of each scenario; `load curves` how they go with the
//! number of connections and the rate that is offered; `load soak` ten minutes of the mix; `load memory` what a hot ticket
//! and a hot session cost; `load grown` all of it on a database that has been in use for a year; `load against` what a
//! change costs, beside a build without it; `load cluster` what more processes give. `docs/benchmarks.md` says how, and what
//! the figures do not say.

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

/// As in the service, so that the yardsticks have no other.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = match &arguments.command {
        Some(Command::Yardstick { settings }) => yardstick::serve(settings),
        command => actix_rt::System::new().block_on(async {
            // What was started is stopped by being dropped.
            tokio::select! {
                ended = drive(&arguments, command.as_ref()) => ended,
                _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
            }
        }),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("load: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn drive(arguments: &Arguments, command: Option<&Command>) -> Outcome<()> {
    let shared = &arguments.shared;
    let keep = shared.keep;
    match command {
        Some(Command::Curves(options)) => report::curves(&curves::run(shared, options).await?, keep),
        Some(Command::Soak(options)) => report::soak(&soak::run(shared, options).await?, keep),
        Some(Command::Against(options)) => report::against(&against::run(shared, options).await?, keep),
        Some(Command::Cluster(options)) => report::cluster(&cluster::run(shared, options).await?, keep),
        Some(Command::Grown(options)) => grown::run(shared, options, |measured| report::grown(measured, keep)).await,
        Some(Command::Memory(options)) => report::memory(&memory::run(options).await?, keep),
        Some(Command::Run(options)) => report::throughput(&run::run(shared, options).await?, keep),
        Some(Command::Yardstick { .. }) | None => {
            report::throughput(&run::run(shared, &options::Run::default()).await?, keep)
        }
    }
}
