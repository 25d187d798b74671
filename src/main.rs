//! The `hotline` command.

use std::process::ExitCode;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // Tests make the process fail at named points; without the feature nothing of it is compiled.
    #[cfg(feature = "failpoints")]
    let _points = hotline_persistence::fail::FailScenario::setup();
    actix_rt::System::new().block_on(hotline::cli::run())
}
