//! The command line. Most commands, like `company`, have a file or folder of their own.

mod admin;
mod archive;
mod audit;
mod backup;
mod booleans;
mod channel;
mod check;
mod cluster;
mod company;
mod completions;
mod config;
mod config_file;
mod contact;
mod data_folder;
mod database;
mod demo;
mod doctor;
mod environment;
mod failure;
mod findings;
mod health;
mod man;
mod masking;
mod media_files;
mod migrate;
mod output;
mod permissions;
mod profile;
mod report;
mod restore;
mod retention;
mod root;
mod secret;
mod serve;
mod service_manager;
mod signals;
mod subject;
mod token;
mod unfinished_restore;
mod webhook;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use hotline_persistence::controls;

use self::config::EffectiveOption;
use self::failure::usage_message;
pub use self::failure::{Failure, FileFailure, Refusal};
use self::output::OutputArgs;
use crate::config::{DatabaseArgs, ServeArgs};
pub use crate::web::admission::permissions::everything;
pub use demo::seed as seed_demo;

/// A customer-service and CRM API in one binary.
#[derive(Parser)]
#[command(name = "hotline", version = crate::version::LONG, arg_required_else_help = true)]
struct Cli {
    /// TOML configuration file; by default hotline.toml in the working folder, if it exists
    #[arg(long, global = true, env = "HOTLINE_CONFIG", value_name = "FILE", help_heading = "Configuration")]
    config: Option<PathBuf>,
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

/// The options of every command.
#[derive(Args)]
struct GlobalArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    output: OutputArgs,
}

const CONFIGURATION_HELP: &str = "\
Every option of `serve` and `demo` can also be set by an environment variable (HOTLINE_…) or by a key of the
configuration file, with `_` for `-`. The command line overrides the environment, which overrides the file. Example file:
  database_url = \"postgres://hotline@db.example/hotline\"
  listen = \"0.0.0.0:8080\"
  trusted_proxy = [\"10.0.0.0/8\"]
  on_premise = true

All other commands work whether the service is running or stopped. A running service applies changes within a second.";

const BACKUP_HELP: &str = "\
The service may keep running. The result shows the time up to which the backup is complete: every change that was
acknowledged before it is included. Files of messages are linked to those of the backup before, so a further backup needs
space for new files only. Files in a bucket are not included. Needs `pg_dump` of the database's version.

Example:
  hotline backup backups --keep 7";

const RESTORE_HELP: &str = "\
Run it as the user of the service, with its --data-dir, and with --database-url if the service has one: the database must
exist and be empty. Every file is verified before anything is written. Needs `pg_restore`.

Stop the installation that was backed up before you start the restored one: both would send the same messages.";

const CHECK_HELP: &str = "\
Changes nothing; the service may keep running. Reads the whole journal and whole tables. The exit code is 0 if nothing is
wrong, and 1 if a check found a problem.

Example:
  hotline check";

const MIGRATION_HELP: &str = "\
A migration waits for a lock for two seconds at a time, and names the session that holds it, so that requests continue
meanwhile. `hotline serve` migrates as well, unless it runs with --migrate=false.";

const DOCTOR_HELP: &str = "\
Takes the options of `serve`, so that it examines what the service would use: ports, disk, PostgreSQL, clocks, the other
processes of a cluster, the credentials of channels, webhooks and the mail relay. Nothing is sent to a contact. The exit
code is 0 if nothing has to be done, and 1 if a check found a problem.";

#[derive(Subcommand)]
enum Command {
    /// Run the service
    Serve(ServeArgs),
    /// Run the service with sample data, and print how to try it
    Demo(ServeArgs),
    /// Manage companies
    #[command(subcommand)]
    Company(company::Command),
    /// Manage API tokens
    #[command(subcommand)]
    Token(token::Command),
    /// Manage channels
    #[command(subcommand)]
    Channel(Box<channel::Command>),
    /// Erase people
    #[command(subcommand)]
    Contact(contact::Command),
    /// Manage permission profiles
    #[command(subcommand)]
    Profile(profile::Command),
    /// Manage the keys that encrypt credentials
    #[command(subcommand, alias = "secrets")]
    Secret(secret::Command),
    /// Manage webhook endpoints
    #[command(subcommand)]
    Webhook(Box<webhook::Command>),
    /// Maintain the figures of reports
    #[command(subcommand, alias = "reports")]
    Report(report::Command),
    /// Manage how long conversations are kept
    #[command(subcommand)]
    Retention(retention::Command),
    /// Manage administrators of the installation
    #[command(subcommand)]
    Admin(admin::Command),
    /// Inspect and drain the processes of a cluster
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Back up the installation: tables, journal, message files and keys
    #[command(after_help = BACKUP_HELP)]
    Backup(backup::BackupArgs),
    /// Restore a backup into an empty data folder and an empty database
    #[command(after_help = RESTORE_HELP)]
    Restore(restore::RestoreArgs),
    /// Check that journal, tables, files and keys agree
    #[command(after_help = CHECK_HELP)]
    Check(check::CheckArgs),
    /// Check or print the configuration of the service
    #[command(subcommand)]
    Config(config::Command),
    /// Check whether a running service is ready; exits with status 1 if not
    #[command(after_help = "In a Dockerfile:\n  HEALTHCHECK CMD [\"hotline\", \"health\"]")]
    Health(health::HealthArgs),
    /// Migrate the database to the schema of this release; the service may keep running
    #[command(after_help = MIGRATION_HELP)]
    Migrate(migrate::MigrateArgs),
    /// Examine the machine, the database and the network of the service
    #[command(after_help = DOCTOR_HELP)]
    Doctor(Box<doctor::DoctorArgs>),
    /// Export a company with its files
    Export(archive::ExportArgs),
    /// Import an exported company as a new one
    Import(archive::ImportArgs),
    /// Print the completions of a shell
    #[command(after_help = "Example:\n  hotline completions bash > hotline.bash")]
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Write the manual pages of all commands
    #[command(after_help = "Example:\n  hotline man man1")]
    Man {
        /// Folder for the pages
        dir: PathBuf,
    },
}

/// Parses the command line and runs the command.
pub async fn run() -> ExitCode {
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(failure) => return failure::report(&*failure),
    };
    let global = &cli.global;
    let outcome = match cli.command {
        Command::Serve(args) => serve::run(args, &global.database).await,
        Command::Demo(args) => demo::run(args, &global.database).await,
        Command::Company(command) => company::run(command, global).await,
        Command::Token(command) => token::run(command, global).await,
        Command::Channel(command) => channel::run(*command, global).await,
        Command::Contact(command) => contact::run(command, global).await,
        Command::Profile(command) => profile::run(command, global).await,
        Command::Secret(command) => secret::run(command, global).await,
        Command::Webhook(command) => webhook::run(*command, global).await,
        Command::Report(command) => report::run(command, global).await,
        Command::Retention(command) => retention::run(command, global).await,
        Command::Admin(command) => admin::run(command, global).await,
        Command::Cluster(command) => cluster::run(command, global).await,
        Command::Backup(args) => backup::run(args, global).await,
        Command::Restore(args) => restore::run(args, global).await,
        Command::Check(args) => check::run(args, global).await,
        Command::Config(command) => config::run(command, global).await,
        Command::Health(args) => health::run(args, global).await,
        Command::Migrate(args) => migrate::run(args, global).await,
        Command::Doctor(args) => doctor::run(*args, global).await,
        Command::Export(args) => archive::export(args, global).await,
        Command::Import(args) => archive::import(args, global).await,
        Command::Completions { shell } => completions::run(shell),
        Command::Man { dir } => man::run(&dir),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure::report(&*failure),
    }
}

/// The options with which the service runs.
struct ServiceOptions {
    args: ServeArgs,
    database: DatabaseArgs,
    options: Vec<EffectiveOption>,
}

impl Cli {
    /// The options with which `serve` would run. They come from the environment, the file, and the global options of
    /// this command line.
    fn read_service() -> Result<ServiceOptions, Failure> {
        let declaration = command();
        let matches = declaration.clone().try_get_matches().map_err(|error| usage_message(&error))?;
        let mut arguments = vec![OsString::from("hotline"), OsString::from("serve")];
        for option in declaration.get_arguments().filter(|option| option.is_global_set()) {
            let (id, long) = (option.get_id().as_str(), option.get_long().unwrap_or_default());
            let is_passed_on = long != "json" && matches.value_source(id) == Some(ValueSource::CommandLine);
            let values = matches.try_get_raw(id).ok().flatten().filter(|_| is_passed_on);
            for value in values.into_iter().flatten() {
                let mut argument = OsString::from(format!("--{long}="));
                argument.push(value);
                arguments.push(argument);
            }
        }
        let path = matches.get_one::<PathBuf>("config").cloned();
        Self::parse_service(declaration, path.as_deref(), arguments)
    }

    /// The options of the service on this command line, with the file as it is now. Unlike [`Cli::read`], it never ends
    /// the process.
    fn reread_service() -> Result<ServiceOptions, Failure> {
        let declaration = command();
        let matches = declaration.clone().try_get_matches().map_err(|error| usage_message(&error))?;
        let path = matches.get_one::<PathBuf>("config").cloned();
        Self::parse_service(declaration, path.as_deref(), std::env::args_os().collect())
    }

    /// Parses the command line `arguments`, with the file at `path`. Fails if the command does not run the service.
    fn parse_service(
        declaration: clap::Command,
        path: Option<&Path>,
        arguments: Vec<OsString>,
    ) -> Result<ServiceOptions, Failure> {
        let options_in_file = config_file::options_in_file(&declaration, path)?;
        let declaration = config_file::apply(declaration, path)?;
        let matches = declaration.clone().try_get_matches_from(arguments).map_err(|error| usage_message(&error))?;
        let cli = Self::from_arg_matches(&matches).map_err(|error| usage_message(&error))?;
        match (cli.command, matches.subcommand()) {
            (Command::Serve(args) | Command::Demo(args), Some((_, service))) => {
                let options = config::effective_options(&declaration, service, &options_in_file);
                Ok(ServiceOptions { args, database: cli.global.database, options })
            }
            _ => Err("the command does not run the service".into()),
        }
    }

    /// Parses the command line, then the file, then the command line again with the file's values as defaults. An
    /// invalid command line, `--help` and `--version` end the process.
    fn read() -> Result<Self, Failure> {
        check_arguments(std::env::args_os())?;
        let parse = |command: clap::Command| {
            let parsed = command.try_get_matches().and_then(|matches| Self::from_arg_matches(&matches));
            parsed.unwrap_or_else(|error| failure::exit_on_usage_error(&error))
        };
        let command = command();
        environment::warn_of_unknown(&command);
        let explicit_path = parse(command.clone()).config;
        let command = config_file::apply(command, explicit_path.as_deref())?;
        Ok(parse(command))
    }
}

/// Refuses characters that the panel and the API refuse as well, because they could not return them. The error does not
/// contain the argument, which may be a secret.
fn check_arguments(arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    for (position, argument) in arguments.enumerate().skip(1) {
        if controls::contains_refused(&argument.to_string_lossy()) {
            return Err(format!("argument {position} {}", controls::REFUSED));
        }
    }
    Ok(())
}

/// The declaration of the command line.
pub fn command() -> clap::Command {
    booleans::unify_booleans(
        Cli::command().after_help(format!("{CONFIGURATION_HELP}\n\n{}", failure::exit_code_help())),
    )
}

/// Validates a name as the API does.
fn parse_name(name: &str) -> Result<String, Failure> {
    use crate::web::request::values::{FromField, Name};
    Ok(Name::from_text(name).map_err(|reason| format!("the name {reason}"))?.0)
}
