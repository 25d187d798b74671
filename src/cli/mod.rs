//! The command line: one file per noun.

mod channel;
mod company;
mod database;
mod demo;
mod output;
mod serve;
mod token;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use demo::seed as seed_demo;
pub use token::everything;

/// A customer-service and CRM API: every conversation is an actor, every answer is durable before it leaves.
#[derive(Parser)]
#[command(name = "hotline", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service
    Serve(crate::config::ServeArgs),
    /// Run the service with a company, conversations and a token to try it with
    Demo(crate::config::ServeArgs),
    /// Companies
    #[command(subcommand)]
    Company(company::Command),
    /// API tokens
    #[command(subcommand)]
    Token(token::Command),
    /// Channels
    #[command(subcommand)]
    Channel(channel::Command),
}

/// Why a command failed, as it is told to the person at the terminal.
pub type Failure = Box<dyn std::error::Error>;

/// Reads the command line and does as it says.
pub async fn run() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve(args) => serve::run(args).await,
        Command::Demo(args) => demo::run(args).await,
        Command::Company(command) => company::run(command).await,
        Command::Token(command) => token::run(command).await,
        Command::Channel(command) => channel::run(command).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("hotline: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// A name as the API would take it.
fn named(name: &str) -> Result<String, Failure> {
    use crate::web::values::{Accepted, Name};
    Ok(Name::from_text(name).map_err(|reason| format!("the name {reason}"))?.0)
}
