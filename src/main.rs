//! The `hotline` command.

use std::process::ExitCode;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    actix_rt::System::new().block_on(hotline::cli::run())
}
