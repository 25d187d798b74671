//! The `hotline` command.

use std::process::ExitCode;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // Tests inject failures at named points; without the feature no code for this is compiled.
    #[cfg(feature = "failpoints")]
    let _scenario = hotline_persistence::fail::FailScenario::setup();
    actix_rt::System::new().block_on(hotline::cli::run())
}
