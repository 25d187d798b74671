//! Backs up and restores the tables with the programs of PostgreSQL: `pg_dump` writes a dump, `pg_restore` reads it.
//! The dump can also be used without Hotline.
//!
//! The programs get the connection in environment variables: arguments of a process are visible to every user of the
//! machine.

use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use hotline_persistence::requirements::quoted;
use hotline_postgres::Program;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use url::Url;

use super::files::{self, BackupFileError, Checksum};
use super::manifest::DUMP;
use crate::cli::Refusal;
use crate::exit_code::Exit;

/// Maximum bytes of a program's messages in an error.
const MESSAGES_BYTES_MAX: u64 = 16 * 1024;

/// Paths of the system's root certificates. `sqlx` finds them itself; these programs need the path.
const SYSTEM_CERTIFICATES: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// The extensions that the tables use.
const EXTENSIONS: [&str; 3] = ["unaccent", "pg_trgm", "btree_gin"];

/// The schema that every database has.
pub const PUBLIC: &str = "public";

/// The text in a program's messages by which denied access is recognized.
const ACCESS_DENIED_TEXT: &str = "permission denied";

/// Why the tables were not dumped or restored.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    #[error(transparent)]
    File(#[from] BackupFileError),
    #[error("could not run `{name}`")]
    NotRun { name: String, source: io::Error },
    /// The program failed: its exit status and messages.
    #[error("{0}")]
    Failed(#[source] Refusal),
}

/// How a program connects to a database, as environment variables.
#[derive(Clone)]
pub struct Connection {
    database: String,
    variables: Vec<(&'static str, String)>,
}

impl Connection {
    /// A connection with these options, which were parsed from `url` if there is one.
    pub fn new(options: &PgConnectOptions, url: Option<&str>) -> Self {
        let host = match options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => options.get_host().to_owned(),
        };
        let user = options.get_username().to_owned();
        let database = options.get_database().map_or_else(|| user.clone(), str::to_owned);
        let mut variables = vec![
            ("PGHOST", host),
            ("PGPORT", options.get_port().to_string()),
            ("PGUSER", user),
            ("PGDATABASE", database.clone()),
            ("PGSSLMODE", ssl_mode(options.get_ssl_mode()).to_owned()),
            ("PGAPPNAME", "hotline".to_owned()),
        ];
        variables.extend(url.and_then(|url| Url::parse(url).ok()).iter().flat_map(variables_of_url));
        let needs_roots = matches!(options.get_ssl_mode(), PgSslMode::VerifyCa | PgSslMode::VerifyFull);
        let has_roots = variables.iter().any(|(name, _)| *name == "PGSSLROOTCERT");
        if needs_roots && !has_roots && std::env::var_os("PGSSLROOTCERT").is_none() {
            let system_roots = SYSTEM_CERTIFICATES.into_iter().find(|path| Path::new(path).is_file());
            variables.extend(system_roots.map(|path| ("PGSSLROOTCERT", path.to_owned())));
        }
        Self { database, variables }
    }

    fn command(&self, program: &Program) -> Command {
        let mut command = Command::new(&program.path);
        command.env_remove("PGSERVICE").env_remove("PGSERVICEFILE").env_remove("PGHOSTADDR").env("LC_ALL", "C");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        command
    }
}

fn ssl_mode(mode: PgSslMode) -> &'static str {
    match mode {
        PgSslMode::Disable => "disable",
        PgSslMode::Allow => "allow",
        PgSslMode::Prefer => "prefer",
        PgSslMode::Require => "require",
        PgSslMode::VerifyCa => "verify-ca",
        PgSslMode::VerifyFull => "verify-full",
    }
}

/// The variables that [`PgConnectOptions`] has no getters for: the password, the TLS files and the session's options.
fn variables_of_url(url: &Url) -> Vec<(&'static str, String)> {
    let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let mut variables: Vec<_> = url.password().map(|password| ("PGPASSWORD", decode(password))).into_iter().collect();
    variables.extend(url.query_pairs().filter_map(|(key, value)| {
        let name = match &*key {
            "password" => "PGPASSWORD",
            "sslrootcert" | "ssl-root-cert" | "ssl-ca" => "PGSSLROOTCERT",
            "sslcert" | "ssl-cert" => "PGSSLCERT",
            "sslkey" | "ssl-key" => "PGSSLKEY",
            "options" => "PGOPTIONS",
            _ => return None,
        };
        Some((name, value.into_owned()))
    }));
    variables
}

/// Dumps the tables as of a snapshot into the folder `backup`, and returns the dump's size and checksum. `schema`
/// limits the dump to one schema.
pub fn write(
    program: &Program,
    connection: &Connection,
    snapshot: &str,
    schema: Option<&str>,
    backup: &Path,
) -> Result<(u64, Checksum), DumpError> {
    let mut command = connection.command(program);
    // The fastest compression, because the service runs at the same time.
    command.args(["--format=custom", "--compress=1", "--no-owner", "--no-privileges", "--no-comments"]);
    command.args(["--no-publications", "--no-subscriptions", "--no-tablespaces", "--no-security-labels"]);
    command.arg(format!("--snapshot={snapshot}"));
    if let Some(schema) = schema {
        // Quoted, because it is a pattern: otherwise, capitals would be small letters, and `.`, `*` and `?` special.
        command.arg(format!("--schema={}", quoted(schema)));
        command.args(EXTENSIONS.map(|extension| format!("--extension={extension}")));
    }
    let mut running = RunningProgram::start(command.stdout(Stdio::piped()), program)?;
    let path = backup.join(DUMP);
    let output = running.child.stdout.take().ok_or_else(|| running.not_run_error(ErrorKind::BrokenPipe.into()))?;
    match files::write_from(output, &program.path, &path) {
        Ok(written) => {
            running.finish()?;
            Ok(written)
        }
        Err(error) => {
            running.stop();
            Err(error.into())
        }
    }
}

/// Restores a backup's tables into an empty database, in one transaction. The database already has the schema and these
/// extensions; they are skipped, because a role without rights on the database could not create them.
pub fn restore(
    program: &Program,
    connection: &Connection,
    backup: &Path,
    schema: &str,
    extensions: &[String],
) -> Result<(), DumpError> {
    hotline_persistence::fail_point!("restore_tables");
    let list = tempfile::NamedTempFile::new().map_err(BackupFileError::new("create", &std::env::temp_dir()))?;
    let entries = list_entries(program, connection, backup)?;
    let missing = entries.lines().filter(|line| !creates_existing(line, schema, extensions));
    let missing: String = missing.flat_map(|line| [line, "\n"]).collect();
    std::fs::write(list.path(), missing).map_err(BackupFileError::new("write", list.path()))?;
    let mut command = connection.command(program);
    command.arg(format!("--use-list={}", list.path().display()));
    command.args(["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", "--no-comments"]);
    // As a parameter, because a bare name with `=` would be read as several parameters.
    command.arg(format!("--dbname=dbname='{}'", connection.database.replace('\\', "\\\\").replace('\'', "\\'")));
    let backup = backup.canonicalize().map_err(BackupFileError::new("find", backup))?;
    command.arg(backup.join(DUMP)).stdout(Stdio::null());
    RunningProgram::start(&mut command, program)?.finish()
}

/// The table of contents of a backup's dump: each line names an object to be created.
fn list_entries(program: &Program, connection: &Connection, backup: &Path) -> Result<String, DumpError> {
    let mut command = connection.command(program);
    command.arg("--list").arg(backup.join(DUMP)).stdout(Stdio::piped());
    let mut running = RunningProgram::start(&mut command, program)?;
    let mut text = String::new();
    let output = running.child.stdout.take();
    let result = output.map_or(Ok(0), |mut output| output.read_to_string(&mut text));
    result.map_err(|error| running.not_run_error(error))?;
    running.finish()?;
    Ok(text)
}

/// Whether a line of the table of contents, like `4; 3079 16387 EXTENSION - unaccent`, would create the schema or an
/// extension that the database already has.
fn creates_existing(line: &str, schema: &str, extensions: &[String]) -> bool {
    let Some((_, entry)) = line.split_once("; ") else { return false };
    let Some((_, entry)) = entry.split_once(' ').and_then(|(_, rest)| rest.split_once(' ')) else { return false };
    let creates = |kind: &str, name: &str| {
        let rest = entry.strip_prefix(kind).and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    creates("SCHEMA - ", schema) || extensions.iter().any(|extension| creates("EXTENSION - ", extension))
}

/// A running program; a thread collects its messages from standard error.
struct RunningProgram {
    name: String,
    child: Child,
    messages: Option<thread::JoinHandle<String>>,
}

impl RunningProgram {
    fn start(command: &mut Command, program: &Program) -> Result<Self, DumpError> {
        let name = program.path.display().to_string();
        let mut child = command.spawn().map_err(|source| DumpError::NotRun { name: name.clone(), source })?;
        let messages = child.stderr.take().map(|mut stderr| {
            thread::spawn(move || {
                let mut beginning = Vec::new();
                let _ = stderr.by_ref().take(MESSAGES_BYTES_MAX).read_to_end(&mut beginning);
                // The rest is read too: a full pipe would block the program.
                let _ = std::io::copy(&mut stderr, &mut std::io::sink());
                String::from_utf8_lossy(&beginning).trim().replace('\n', "; ")
            })
        });
        Ok(Self { name, child, messages })
    }

    fn not_run_error(&self, source: io::Error) -> DumpError {
        DumpError::NotRun { name: self.name.clone(), source }
    }

    fn finish(mut self) -> Result<(), DumpError> {
        let status = self.child.wait().map_err(|error| self.not_run_error(error))?;
        let messages = self.messages.take().and_then(|messages| messages.join().ok()).unwrap_or_default();
        if status.success() {
            return Ok(());
        }
        let exit = if messages.contains(ACCESS_DENIED_TEXT) { Exit::AccessDenied } else { Exit::Unavailable };
        let message = format!("`{}` failed ({status}): {messages}", self.name);
        Err(DumpError::Failed(Refusal::new(exit, message)))
    }

    fn stop(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
