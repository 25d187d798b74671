//! What the database must be like, checked by every start and every command before anything is written. All problems
//! are reported at once, each with its remedy.
//!
//! The check also finds how later sessions must connect: with TLS or without, and with which `search_path`. They get
//! both as options, so that a later change of the role's settings does not split the tables over two schemas.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions, Connection, FromRow, PgConnection, Row};
use tokio::time::{Instant, sleep, timeout};

use crate::error::{Reach, connection_failure_reason, with_timeout};
use crate::session::{SESSION_MARK, with_defaults};
use crate::unsuitable::{Problem, UnsuitableDatabase};
use crate::{Error, Result};

/// The oldest major version of PostgreSQL that Hotline works with, and its `server_version_num`.
const VERSION_MIN: i32 = 15;
const VERSION_NUMBER_MIN: i32 = VERSION_MIN * 10_000;

/// Timeout of one attempt to connect, and of the check: longer than that of a request, because a busy server may need
/// the time and no request waits for it.
const REACH_TIME_MAX: Duration = Duration::from_secs(10);

/// How long a start waits for a server that is starting or has too many connections: long enough for the server to end
/// the connections of a machine that died.
const ADMIT_TIME_MAX: Duration = Duration::from_secs(45);

/// Pause between attempts to reach a server that is starting.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// What the database is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For a service, which needs connections.
    Serve {
        /// The most connections that the service opens at a time.
        connections: u32,
    },
    /// For a start that waits for the database: it must accept changes; the store checks everything else when it opens.
    Start,
    /// For a command, which uses few connections and perhaps only reads.
    Command,
}

/// Connects, checks the database, and returns the options with which all later sessions connect.
///
/// # Errors
/// [`Error::Unreachable`] when no connection is possible, [`Error::Unsuitable`] with all problems.
pub async fn prepare(options: &PgConnectOptions, purpose: Purpose) -> Result<PgConnectOptions> {
    let (mut connection, working_options) = connect_with_retry(options).await?;
    let checked = timeout(REACH_TIME_MAX, check(&mut connection, options, purpose)).await;
    let _ = connection.close().await;
    let search_path = checked.unwrap_or_else(|_| Err(unreachable_at(options, no_response(), Reach::Away)))?;
    Ok(working_options.options([("search_path", search_path)]))
}

/// Checks everything, and returns the `search_path` of later sessions.
async fn check(connection: &mut PgConnection, options: &PgConnectOptions, purpose: Purpose) -> Result<String> {
    let unsuitable = |problems| Error::Unsuitable(UnsuitableDatabase::new(address(options), problems));
    let version = read_version(connection, options).await?;
    if version.number < VERSION_NUMBER_MIN {
        let what = format!("its version is {}, and Hotline needs {VERSION_MIN} or newer", version.text);
        return Err(unsuitable(vec![Problem::lasting(what, "upgrade the server".to_owned())]));
    }
    let facts = DatabaseFacts::read(connection).await?;
    let extensions = Extension::read(connection).await?;
    let mut problems = facts.problems(purpose);
    if facts.is_writable() {
        problems.extend(extensions.iter().filter_map(|extension| extension.problem(&facts)));
    }
    if !problems.is_empty() {
        return Err(unsuitable(problems));
    }
    if matches!(purpose, Purpose::Serve { .. }) && !facts.is_encrypted && is_exposed_to_network(options) {
        let place = address(options);
        tracing::warn!(
            place,
            "the connection to PostgreSQL is not encrypted, since the server does not offer TLS; enable it there, and add \
             sslmode=verify-full to --database-url, or sslmode=disable if the network is trusted"
        );
    }
    Ok(facts.search_path(&extensions))
}

/// The server's version.
struct Version {
    number: i32,
    text: String,
}

/// Reads the version, and refuses a connection pooler: a pooler shares sessions, and drops their settings. The
/// statement uses the simple protocol, which all poolers understand.
async fn read_version(connection: &mut PgConnection, options: &PgConnectOptions) -> Result<Version> {
    let query = "select current_setting('server_version_num'), current_setting('server_version'),
        coalesce(current_setting('hotline.session', true), '')";
    let row = with_timeout(sqlx::raw_sql(query).fetch_one(connection)).await?;
    let [number, text, mark]: [String; 3] = [row.try_get(0)?, row.try_get(1)?, row.try_get(2)?];
    if mark != SESSION_MARK.1 {
        return Err(Error::Pooler { place: address(options) });
    }
    Ok(Version { number: number.parse().unwrap_or(0), text })
}

/// What a session sees of its database.
#[derive(Clone, Debug, FromRow)]
struct DatabaseFacts {
    encoding: String,
    database: String,
    role: String,
    is_superuser: bool,
    is_standby: bool,
    is_read_only: bool,
    is_encrypted: bool,
    search_path: String,
    /// The first existing schema in the search path.
    schema: Option<String>,
    /// The schema in the search path that has Hotline's tables.
    installed_schema: Option<String>,
    /// Whether the role may create tables in the first schema.
    may_create: bool,
    /// Whether the role may write to Hotline's tables; true if there are none.
    may_write: bool,
    /// Whether the role may create extensions that are marked as trusted.
    may_extend: bool,
    server_connections: i32,
    role_connections: i32,
    database_connections: i32,
}

impl DatabaseFacts {
    async fn read(connection: &mut PgConnection) -> Result<Self> {
        let facts = sqlx::query_as(
            "select current_setting('server_encoding') as encoding, current_database()::text as database,
                current_user::text as role, r.rolsuper as is_superuser, pg_is_in_recovery() as is_standby,
                current_setting('transaction_read_only') = 'on' as is_read_only,
                coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as is_encrypted,
                current_setting('search_path') as search_path, current_schema()::text as schema,
                (select n.nspname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
                    where c.oid = to_regclass('schema_needs')) as installed_schema,
                coalesce(has_schema_privilege(current_schema()::text, 'create'), false) as may_create,
                coalesce(has_table_privilege(to_regclass('ownership')::oid, 'update'), true) as may_write,
                has_database_privilege(current_database(), 'create') as may_extend,
                current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
                    - coalesce(nullif(current_setting('reserved_connections', true), '')::int, 0)
                    as server_connections,
                r.rolconnlimit as role_connections, d.datconnlimit as database_connections
             from pg_roles r, pg_database d where r.rolname = current_user and d.datname = current_database()",
        );
        with_timeout(facts.fetch_one(connection)).await
    }

    /// Whether the database accepts changes.
    fn is_writable(&self) -> bool {
        !self.is_standby && !self.is_read_only
    }

    fn problems(&self, purpose: Purpose) -> Vec<Problem> {
        let mut problems = Vec::new();
        if purpose != Purpose::Command {
            problems.extend(self.refusal_of_changes());
        }
        let mut add = |what: String, remedy: String| problems.push(Problem::lasting(what, remedy));
        let (database, role) = (quoted(&self.database), quoted(&self.role));
        if self.encoding != "UTF8" {
            let remedy = "create database hotline encoding 'UTF8' template template0".to_owned();
            add(format!("the encoding of database {database} is {}, not UTF8", self.encoding), remedy);
        }
        self.schema_problems(&mut add);
        if let Purpose::Serve { connections } = purpose {
            for (limit, holder, remedy) in [
                (self.server_connections, "the server".to_owned(), "raise max_connections".to_owned()),
                (
                    self.role_connections,
                    format!("role {role}"),
                    format!("alter role {role} connection limit {connections}"),
                ),
                (
                    self.database_connections,
                    format!("database {database}"),
                    format!("alter database {database} connection limit {connections}"),
                ),
            ] {
                // A negative number means no limit.
                if u32::try_from(limit).is_ok_and(|limit| limit < connections) {
                    add(format!("{holder} allows {limit} connections, and {connections} are needed"), remedy);
                }
            }
        }
        problems
    }

    /// Why the database accepts no changes; `None` if it does. The problem may pass: a failover promotes a standby.
    fn refusal_of_changes(&self) -> Option<Problem> {
        let (what, remedy) = if self.is_standby {
            ("the server is a standby", "name the primary server in --database-url".to_owned())
        } else if self.is_read_only {
            let remedy = format!("alter database {} reset default_transaction_read_only", quoted(&self.database));
            ("transactions are read-only", remedy)
        } else {
            return None;
        };
        Some(Problem { what: what.to_owned(), remedy, is_temporary: true })
    }

    fn schema_problems(&self, add: &mut impl FnMut(String, String)) {
        let role = quoted(&self.role);
        let Some(schema) = self.installed_schema.as_ref().or(self.schema.as_ref()) else {
            let first = self.search_path.split(',').next().unwrap_or_default().trim();
            let remedy = format!("create schema {first} authorization {role}");
            add(format!("no schema of the search_path {} exists", self.search_path), remedy);
            return;
        };
        let schema = quoted(schema);
        if self.installed_schema.is_none() && self.is_writable() && !self.may_create {
            let remedy = format!("grant create on schema {schema} to {role}");
            add(format!("role {role} may not create tables in schema {schema}"), remedy);
        }
        if !self.may_write {
            let remedy =
                format!("connect as the owner of the tables, or grant all on all tables in schema {schema} to {role}");
            add(format!("role {role} may not write to the tables in schema {schema}"), remedy);
        }
    }

    /// The schema of the tables, and then those of the extensions: the database's administrator chooses where they are.
    fn search_path(&self, extensions: &[Extension]) -> String {
        let own = self.installed_schema.as_ref().or(self.schema.as_ref());
        let mut path: Vec<String> = own.map(|schema| quoted(schema)).into_iter().collect();
        for schema in extensions.iter().filter_map(|extension| extension.schema.as_deref()).map(quoted) {
            if !path.contains(&schema) {
                path.push(schema);
            }
        }
        path.join(", ")
    }
}

/// An extension that the tables need.
#[derive(Clone, Debug, FromRow)]
struct Extension {
    name: String,
    /// Where it is installed; `None` if it is not in this database.
    schema: Option<String>,
    may_use: bool,
    is_available: bool,
    is_trusted: bool,
}

impl Extension {
    async fn read(connection: &mut PgConnection) -> Result<Vec<Self>> {
        let extensions = sqlx::query_as(
            "select e.name, n.nspname::text as schema, coalesce(has_schema_privilege(n.oid, 'usage'), false) as may_use,
                a.name is not null as is_available,
                coalesce((select bool_or(v.trusted) from pg_available_extension_versions v where v.name = e.name), false)
                    as is_trusted
             from unnest(array['unaccent', 'pg_trgm', 'btree_gin']) e(name)
                left join pg_extension x on x.extname = e.name left join pg_namespace n on n.oid = x.extnamespace
                left join pg_available_extensions a on a.name = e.name
             order by e.name",
        );
        with_timeout(extensions.fetch_all(connection)).await
    }

    fn problem(&self, facts: &DatabaseFacts) -> Option<Problem> {
        let name = &self.name;
        let (what, remedy) = match &self.schema {
            Some(_) if self.may_use => return None,
            Some(schema) => {
                let (schema, role) = (quoted(schema), quoted(&facts.role));
                let remedy = format!("grant usage on schema {schema} to {role}");
                (format!("role {role} may not use schema {schema}, which has the extension {name}"), remedy)
            }
            None if !self.is_available => {
                let remedy =
                    "install the package of PostgreSQL's additional modules, such as postgresql-contrib".to_owned();
                (format!("the server has no extension {name}"), remedy)
            }
            None if facts.is_superuser || (self.is_trusted && facts.may_extend) => return None,
            None => {
                let role = quoted(&facts.role);
                let remedy = format!("as an administrator, in database {}: create extension {name}", facts.database);
                (format!("the extension {name} is missing, and role {role} may not create it"), remedy)
            }
        };
        Some(Problem::lasting(what, remedy))
    }
}

/// Quotes an SQL identifier.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Connects, and retries while the server starts or has too many connections. Returns the connection, and the options
/// with which it succeeded ([`connect`]).
async fn connect_with_retry(options: &PgConnectOptions) -> Result<(PgConnection, PgConnectOptions)> {
    let started_at = Instant::now();
    let mut is_logged = false;
    loop {
        let error = match timeout(REACH_TIME_MAX, connect(options)).await {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(error)) => error,
            Err(_) => return Err(unreachable_at(options, no_response(), Reach::Away)),
        };
        if is_pooler_refusal(&error) {
            return Err(Error::Pooler { place: address(options) });
        }
        if !is_transient(&error) || started_at.elapsed() > ADMIT_TIME_MAX {
            return Err(unreachable_at(options, connection_failure_reason(&error), Reach::of(&error)));
        }
        if !is_logged {
            tracing::warn!(
                place = address(options),
                reason = connection_failure_reason(&error),
                "PostgreSQL does not admit sessions yet; waiting"
            );
            is_logged = true;
        }
        sleep(RETRY_PAUSE).await;
    }
}

/// Connects once. If the mode allows both TLS and plain text and the server refuses the first, the second is tried
/// here, since the library does not do so.
async fn connect(options: &PgConnectOptions) -> sqlx::Result<(PgConnection, PgConnectOptions)> {
    let error = match with_defaults(options.clone()).connect().await {
        Ok(connection) => return Ok((connection, options.clone())),
        Err(error) => error,
    };
    // No line of pg_hba.conf allows this mode. A wrong password has another code, and is not sent again without TLS.
    let is_refused = error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "28000");
    let other_mode = match options.get_ssl_mode() {
        PgSslMode::Allow if is_refused => PgSslMode::Require,
        PgSslMode::Prefer if is_refused => PgSslMode::Disable,
        _ => return Err(error),
    };
    let options = options.clone().ssl_mode(other_mode);
    match with_defaults(options.clone()).connect().await {
        Ok(connection) => Ok((connection, options)),
        // The error of the first attempt is reported, since its mode is the preferred one.
        Err(_) => Err(error),
    }
}

/// Whether the network could read what is sent: the host is another machine, and the mode allows both TLS and plain
/// text.
fn is_exposed_to_network(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    let is_local = options.get_socket().is_some()
        || host.starts_with('/')
        || host == "localhost"
        || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    !is_local && matches!(options.get_ssl_mode(), PgSslMode::Prefer | PgSslMode::Allow)
}

/// Whether the server exists and will soon accept us: it is starting, or has too many connections.
fn is_transient(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "57P03" || code == "53300")
}

/// Whether the error is that of a connection pooler that refuses the session's settings.
fn is_pooler_refusal(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.message().contains("unsupported startup parameter"))
}

fn no_response() -> String {
    format!("no response within {} s", REACH_TIME_MAX.as_secs())
}

fn unreachable_at(options: &PgConnectOptions, reason: String, reach: Reach) -> Error {
    Error::Unreachable { place: address(options), reason, reach }
}

/// The database's address and user, never the password.
pub(crate) fn address(options: &PgConnectOptions) -> String {
    let port = options.get_port();
    let server = match options.get_socket() {
        Some(folder) => format!("the socket {}/.s.PGSQL.{port}", folder.display()),
        None => format!("{}:{port}", options.get_host()),
    };
    let user = options.get_username();
    format!("{server} (database {}, user {user})", options.get_database().unwrap_or(user))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_for_sql() {
        for (name, sql) in [("app", "\"app\""), ("my app", "\"my app\""), ("A\"b", "\"A\"\"b\"")] {
            assert_eq!(quoted(name), sql);
        }
    }

    #[test]
    fn a_connection_to_another_machine_with_optional_tls_is_exposed() {
        let options = |host: &str, mode| PgConnectOptions::new_without_pgpass().host(host).ssl_mode(mode);
        for (host, mode, is_exposed) in [
            ("db.example", PgSslMode::Prefer, true),
            ("192.0.2.7", PgSslMode::Allow, true),
            ("db.example", PgSslMode::Disable, false),
            ("localhost", PgSslMode::Prefer, false),
            ("127.0.0.9", PgSslMode::Prefer, false),
            ("[::1]", PgSslMode::Prefer, false),
            ("/run/postgresql", PgSslMode::Prefer, false),
        ] {
            assert_eq!(is_exposed_to_network(&options(host, mode)), is_exposed, "{host} {mode:?}");
        }
    }
}
