//! How a failed command ends: its message, and its exit code by the kind of the error.
//!
//! Errors are classified here and nowhere else. A message alone (`"…".into()`) is a command's refusal of its input; an
//! error of another kind has a type, or is a [`Refusal`].

use std::error::Error as StdError;
use std::io::{Error as IoError, ErrorKind, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use hotline_persistence::error::{Reach, is_outage, without_values};
use hotline_persistence::journal::JournalError;
use hotline_persistence::migration::SchemaError;
use hotline_persistence::sealed::KeyError;
use hotline_persistence::{Error, MigrateError};
use hotline_postgres::ClusterError;

use super::masking::{MASK, masked_url};
use crate::exit_code::Exit;
use crate::media::{OpenError, ReadError, Unavailable};
use crate::service::ServiceError;
use crate::telemetry;

/// Why a command failed, as the terminal shows it.
pub type Failure = Box<dyn StdError>;

/// A message with the kind of its failure.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    exit: Exit,
    message: String,
}

impl Refusal {
    /// A failure of this kind.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    /// The configuration is wrong.
    pub fn configuration(message: impl Into<String>) -> Self {
        Self::new(Exit::Configuration, message)
    }
}

/// Why a file or folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct FileFailure {
    exit: Exit,
    error: IoError,
}

impl FileFailure {
    /// The failure of a file or folder that exists.
    pub fn of(error: IoError) -> Self {
        Self { exit: classify_io(&error), error }
    }

    /// The failure of a file or folder that is to be created.
    pub fn of_new(error: IoError) -> Self {
        Self { exit: classify_new_file(&error), error }
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.error.kind()
    }
}

/// The section of `--help` about exit codes.
pub fn exit_code_help() -> String {
    let lines = Exit::ALL.iter().map(|exit| format!("\n  {:>2}  {}", exit.code(), exit.meaning()));
    format!("Exit codes:{}", lines.collect::<String>())
}

/// Prints the error, and returns its exit code.
pub fn report(failure: &(dyn StdError + 'static)) -> ExitCode {
    print(&message_with_causes(failure));
    classify(failure).code().into()
}

/// Prints an error: as text, or with `--json` as an object.
pub fn print(message: &str) {
    if telemetry::is_json() {
        let _ = writeln!(std::io::stderr(), "{}", telemetry::json_line("ERROR", message));
    } else if is_json() {
        eprintln!("{}", serde_json::json!({"error": {"message": message}}));
    } else {
        eprintln!("hotline: {message}");
    }
}

/// Exits because of an invalid command line, or after `--help` and `--version`.
pub fn exit_on_usage_error(error: &clap::Error) -> ! {
    if !error.use_stderr() {
        error.exit();
    }
    // Standard error may be closed; the exit code remains.
    if is_json() {
        print(&usage_message(error));
    } else if let Some(masked) = masked_message(error) {
        let _ = std::io::stderr().write_all(masked.as_bytes());
    } else {
        let _ = error.print();
    }
    std::process::exit(Exit::Usage.code().into())
}

/// The first paragraph of the message, without the `error:` prefix. The other paragraphs are hints for people.
pub fn usage_message(error: &clap::Error) -> String {
    let message = masked_message(error).unwrap_or_else(|| error.render().to_string());
    message.split("\n\n").next().unwrap_or_default().trim().trim_start_matches("error: ").to_owned()
}

/// The whole message with passwords masked; `None` if it shows no value with a password.
fn masked_message(error: &clap::Error) -> Option<String> {
    let kinds = [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    let shown_values = kinds.into_iter().filter_map(|kind| error.get(kind));
    let secrets = shown_values.filter_map(|value| match value {
        ContextValue::String(value) => {
            Some((value, without_password(value))).filter(|(value, masked)| *value != masked)
        }
        _ => None,
    });
    let mut secrets = secrets.peekable();
    secrets.peek()?;
    Some(secrets.fold(error.render().to_string(), |message, (value, masked)| message.replace(value, &masked)))
}

fn without_password(value: &str) -> String {
    // A URL with `@` that cannot be parsed is masked completely. An option (`-`) is shown with a placeholder for its
    // value.
    let mask_if_not_url =
        if value.contains("://") && value.contains('@') && !value.starts_with('-') { MASK } else { value };
    masked_url(value).unwrap_or_else(|| mask_if_not_url.to_owned())
}

/// Whether the command line asks for JSON, even if it is otherwise invalid.
fn is_json() -> bool {
    std::env::args_os()
        .take_while(|argument| argument != "--")
        .any(|argument| argument == "--json" || argument == "--json=true")
}

/// The error and its causes: many errors name only the attempt, and leave the reason to their source.
pub fn message_with_causes(failure: &(dyn StdError + 'static)) -> String {
    let mut message = String::new();
    let mut next = Some(failure);
    while let Some(error) = next {
        let statement_error = error.downcast_ref::<sqlx::Error>();
        let reason = statement_error.map_or_else(|| error.to_string(), without_values);
        if message.is_empty() {
            message = reason;
        } else if !message.contains(&reason) {
            message = format!("{message}: {reason}");
        }
        // The cause of a failed statement would repeat PostgreSQL's text, with a line number of PostgreSQL's source.
        next = error.source().filter(|_| statement_error.is_none());
    }
    message
}

/// Whether a statement failed with the exit code of a schema that is older than this release.
pub(super) fn is_older_schema_failure(failure: &(dyn StdError + 'static)) -> bool {
    let exit = failure.downcast_ref().map(classify_store);
    exit.or_else(|| failure.downcast_ref().map(classify_statement)) == Some(Exit::Configuration)
}

/// The exit code of an error: that of the first error in its chain of causes whose type has one.
fn classify(failure: &(dyn StdError + 'static)) -> Exit {
    let mut next = Some(failure);
    while let Some(error) = next {
        if let Some(exit) = classify_type(error) {
            return exit;
        }
        next = error.source();
    }
    Exit::Usage
}

fn classify_type(error: &(dyn StdError + 'static)) -> Option<Exit> {
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        return Some(refusal.exit);
    }
    if let Some(failure) = error.downcast_ref::<FileFailure>() {
        return Some(failure.exit);
    }
    if let Some(error) = error.downcast_ref::<ServiceError>() {
        return Some(classify_service(error));
    }
    let is_internal = error.is::<serde_json::Error>()
        || error.is::<std::num::TryFromIntError>()
        || error.is::<tokio::task::JoinError>()
        || error.is::<std::fmt::Error>();
    error
        .downcast_ref()
        .map(classify_store)
        .or_else(|| error.downcast_ref().map(classify_private_server))
        .or_else(|| error.downcast_ref().map(classify_journal))
        .or_else(|| error.downcast_ref().map(classify_key))
        .or_else(|| error.downcast_ref().map(classify_statement))
        .or_else(|| error.downcast_ref().map(classify_io))
        .or_else(|| error.downcast_ref().map(|_: &hotline_actors::Refusal| Exit::Unavailable))
        .or_else(|| error.downcast_ref().map(|_: &Unavailable| Exit::Unavailable))
        .or_else(|| error.downcast_ref().map(|_: &ReadError| Exit::Unavailable))
        .or(is_internal.then_some(Exit::Internal))
}

fn classify_service(error: &ServiceError) -> Exit {
    match error {
        ServiceError::Postgres(error) => classify_private_server(error),
        ServiceError::Store(error) => classify_store(error),
        ServiceError::Outbox(_) => Exit::Unavailable,
        ServiceError::Client(_) | ServiceError::Mail(_) => Exit::Configuration,
        ServiceError::Dispatcher(_) | ServiceError::Interrupted => Exit::Internal,
        ServiceError::Media(OpenError::Folder(error)) => classify_new_file(error),
        ServiceError::Media(OpenError::Store(_)) => Exit::Configuration,
        ServiceError::Media(OpenError::Database(error)) => classify_store(error),
        ServiceError::Listen { error, .. } => match error.kind() {
            // A machine may start its services before it has its addresses.
            ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable => Exit::Retry,
            ErrorKind::PermissionDenied => Exit::AccessDenied,
            _ => Exit::Configuration,
        },
    }
}

fn classify_store(error: &Error) -> Exit {
    match error {
        Error::NotFound(_) | Error::Taken(_) | Error::Changed | Error::InUse => Exit::Usage,
        Error::Unavailable(_) => Exit::Unavailable,
        Error::Unreachable { reach: Reach::Away, .. } => Exit::Unavailable,
        Error::Unreachable { reach: Reach::Denied, .. } => Exit::AccessDenied,
        Error::Unreachable { reach: Reach::Misconfigured, .. } => Exit::Configuration,
        // A standby may be promoted.
        Error::Unsuitable(unsuitable) if unsuitable.is_temporary() => Exit::Unavailable,
        // A time service sets the clock some time after a machine has started.
        Error::ClockDifference { .. }
        | Error::Unknown(_)
        | Error::Elsewhere
        | Error::NotOwner
        | Error::Held(_)
        | Error::LostCommits { .. } => Exit::Retry,
        Error::Database(error) => classify_statement(error),
        Error::Migrate(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) => {
            classify_statement(error)
        }
        Error::Schema(SchemaError::Blocked { .. }) => Exit::Retry,
        Error::Schema(_)
        | Error::Unsuitable(_)
        | Error::Pooler { .. }
        | Error::Migrate(_)
        | Error::Newer(_)
        | Error::IncompatibleMember { .. } => Exit::Configuration,
        Error::Journal(error) => classify_journal(error),
        Error::Key(error) => classify_key(error),
        Error::UndecodableEntry { .. }
        | Error::Superseded { .. }
        | Error::Older { .. }
        | Error::UnreplayedJournal { .. }
        | Error::ForeignJournal { .. } => Exit::Data,
        _ => Exit::Internal,
    }
}

fn classify_journal(error: &JournalError) -> Exit {
    match error {
        JournalError::Io { action, source, .. } if action.starts_with("create") => classify_new_file(source),
        JournalError::Io { source, .. } => classify_io(source),
        JournalError::Locked { .. } => Exit::Retry,
        JournalError::Damaged { .. } | JournalError::Gap { .. } | JournalError::Released { .. } => Exit::Data,
        JournalError::Options { .. } => Exit::Usage,
        JournalError::Poisoned | JournalError::Unwritten { .. } => Exit::Io,
        _ => Exit::Internal,
    }
}

fn classify_key(error: &KeyError) -> Exit {
    match error {
        KeyError::NoFile { .. } | KeyError::OtherKey { .. } | KeyError::File { .. } | KeyError::NoKey { .. } => {
            Exit::Configuration
        }
        KeyError::Unwritable { source, .. } => classify_new_file(source),
        KeyError::Damaged => Exit::Data,
        KeyError::Unsealable(_) => Exit::Internal,
    }
}

fn classify_private_server(error: &ClusterError) -> Exit {
    match error {
        ClusterError::OtherOwner { .. } | ClusterError::Unreachable { .. } => Exit::AccessDenied,
        ClusterError::InUse { .. } => Exit::Retry,
        ClusterError::NotServed { .. }
        | ClusterError::ExitedEarly { .. }
        | ClusterError::NoAnswer { .. }
        | ClusterError::Foreign { .. }
        | ClusterError::StillRunning { .. } => Exit::Unavailable,
        ClusterError::InitFailed { .. } => Exit::CannotCreate,
        ClusterError::Database { source, .. } => classify_statement(source),
        ClusterError::Io { source, .. } => classify_new_file(source),
        _ => Exit::Configuration,
    }
}

/// Prefixes of SQLSTATEs: the class that denies the connection, and the code of a missing privilege.
const DENIED: [&str; 2] = ["28", "42501"];

/// The SQLSTATEs of a statement that is newer than the schema: no such column, table, function or schema.
const OLDER_SCHEMA: [&str; 4] = ["42703", "42P01", "42883", "3F000"];

fn classify_statement(error: &sqlx::Error) -> Exit {
    let code = error.as_database_error().and_then(|error| error.code());
    let code_has_prefix =
        |prefixes: &[&str]| code.as_ref().is_some_and(|code| prefixes.iter().any(|prefix| code.starts_with(prefix)));
    match error {
        _ if code_has_prefix(&DENIED) => Exit::AccessDenied,
        _ if code_has_prefix(&OLDER_SCHEMA) => Exit::Configuration,
        sqlx::Error::Configuration(_) | sqlx::Error::Tls(_) => Exit::Configuration,
        _ if is_outage(error) => Exit::Unavailable,
        _ => Exit::Internal,
    }
}

fn classify_io(error: &IoError) -> Exit {
    if error.kind() == ErrorKind::PermissionDenied { Exit::AccessDenied } else { Exit::Io }
}

/// The exit code for a file or folder that is created if it does not exist.
fn classify_new_file(error: &IoError) -> Exit {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Exit::Io,
        ErrorKind::PermissionDenied => Exit::AccessDenied,
        _ => Exit::CannotCreate,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;

    fn journal_io(kind: ErrorKind) -> JournalError {
        JournalError::Io { action: "write", path: PathBuf::from("/journal"), source: kind.into() }
    }

    #[test]
    fn the_exit_code_of_an_error_is_that_of_its_cause() {
        let create = JournalError::Io {
            action: "create",
            path: PathBuf::from("/journal"),
            source: ErrorKind::ReadOnlyFilesystem.into(),
        };
        let unreachable = |reach| Error::Unreachable { place: "x".to_owned(), reason: "y".to_owned(), reach };
        let json = serde_json::from_str::<u8>("x").expect_err("no number");
        let read_only = || IoError::from(ErrorKind::ReadOnlyFilesystem);
        let listen = |kind: ErrorKind| ServiceError::Listen {
            option: "--listen",
            address: ([192, 0, 2, 1], 80).into(),
            error: kind.into(),
        };
        let nine_seconds = Duration::from_secs(9);
        let failures: [(Failure, Exit); 23] = [
            ("--company is required".into(), Exit::Usage),
            (Error::NotFound("token").into(), Exit::Usage),
            (ServiceError::Store(Error::Journal(journal_io(ErrorKind::StorageFull))).into(), Exit::Io),
            (Error::Journal(journal_io(ErrorKind::PermissionDenied)).into(), Exit::AccessDenied),
            (Error::Journal(create).into(), Exit::CannotCreate),
            (Error::ForeignJournal { journal: "x".to_owned() }.into(), Exit::Data),
            (Error::Key(KeyError::NoKey { path: PathBuf::new() }).into(), Exit::Configuration),
            (unreachable(Reach::Away).into(), Exit::Unavailable),
            (unreachable(Reach::Denied).into(), Exit::AccessDenied),
            (ServiceError::Store(unreachable(Reach::Misconfigured)).into(), Exit::Configuration),
            (sqlx::Error::PoolTimedOut.into(), Exit::Unavailable),
            (sqlx::Error::RowNotFound.into(), Exit::Internal),
            (Error::NotOwner.into(), Exit::Retry),
            (Error::ClockDifference { difference: nine_seconds, maximum: nine_seconds }.into(), Exit::Retry),
            (listen(ErrorKind::AddrNotAvailable).into(), Exit::Retry),
            (listen(ErrorKind::PermissionDenied).into(), Exit::AccessDenied),
            (json.into(), Exit::Internal),
            (IoError::from(ErrorKind::StorageFull).into(), Exit::Io),
            (Refusal::configuration("hotline.toml: unknown key").into(), Exit::Configuration),
            (FileFailure::of(read_only()).into(), Exit::Io),
            (FileFailure::of_new(read_only()).into(), Exit::CannotCreate),
            (ReadError::Unavailable("the bucket".to_owned()).into(), Exit::Unavailable),
            (Unavailable::DiskFull.into(), Exit::Unavailable),
        ];
        for (failure, exit) in failures {
            assert_eq!(classify(&*failure), exit, "{failure}");
        }
    }

    /// An error of PostgreSQL, with the text that sqlx gives it.
    #[derive(Debug, thiserror::Error)]
    #[error("{0} at line 1234")]
    struct FakeDatabaseError(&'static str);

    impl sqlx::error::DatabaseError for FakeDatabaseError {
        fn message(&self) -> &str {
            self.0
        }

        fn kind(&self) -> sqlx::error::ErrorKind {
            sqlx::error::ErrorKind::Other
        }

        fn as_error(&self) -> &(dyn StdError + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn StdError + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn StdError + Send + Sync + 'static> {
            self
        }
    }

    #[test]
    fn a_failed_statement_is_reported_without_the_line_of_postgresqls_source() {
        let statement = || sqlx::Error::Database(Box::new(FakeDatabaseError("permission denied for table companies")));
        let cluster = ClusterError::Database { action: "read its settings", source: statement() };
        let expected = "PostgreSQL reports: permission denied for table companies";
        assert_eq!(message_with_causes(&statement()), expected);
        let message = message_with_causes(&ServiceError::Postgres(cluster));
        assert!(message.ends_with(&format!("could not read its settings: {expected}")), "{message}");
    }

    #[test]
    fn the_help_lists_every_code() {
        let help = exit_code_help();
        assert!(help.lines().count() == Exit::ALL.len() + 1 && help.contains("\n  78  wrong configuration"), "{help}");
    }
}
