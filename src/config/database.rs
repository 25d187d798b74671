//! The options of the database and of its secrets.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use url::Url;

/// The name of the key file in a data folder.
const KEY_FILE: &str = "secrets.key";

/// The heading of these options in `--help`. It also identifies them for the configuration file.
pub const HEADING: &str = "Database";

/// Which database, for every command.
#[derive(Args, Clone, Debug)]
pub struct DatabaseArgs {
    /// Folder for the journal, message files and the private PostgreSQL server
    #[arg(long, global = true, env = "HOTLINE_DATA_DIR", default_value = "./hotline-data", value_name = "DIR", help_heading = HEADING)]
    pub data_dir: PathBuf,
    /// URL of a PostgreSQL database (15 or newer); without it, Hotline runs a private server in the data folder
    #[arg(long, global = true, env = "HOTLINE_DATABASE_URL", value_name = "URL", hide_env_values = true, help_heading = HEADING)]
    pub database_url: Option<String>,
    /// File with the keys that encrypt credentials; by default `secrets.key` in the data folder
    #[arg(long, global = true, env = "HOTLINE_KEY_FILE", value_name = "FILE", help_heading = HEADING)]
    pub key_file: Option<PathBuf>,
    /// Folder of the PostgreSQL binaries, if they are not found automatically
    #[arg(long, global = true, env = "HOTLINE_PG_BIN", value_name = "DIR", help_heading = HEADING)]
    pub pg_bin: Option<PathBuf>,
}

impl DatabaseArgs {
    /// The file with the keys that encrypt credentials.
    pub fn key_file(&self) -> PathBuf {
        self.key_file.clone().unwrap_or_else(|| self.data_dir.join(KEY_FILE))
    }

    /// The URL, if there is one. An empty one counts as absent: Compose files pass unset variables as empty ones.
    pub fn url(&self) -> Option<&str> {
        self.database_url.as_deref().map(str::trim).filter(|url| !url.is_empty())
    }

    /// The database of the URL, if there is one.
    ///
    /// # Errors
    /// When the URL is invalid, or a TLS file that it names cannot be read.
    pub fn database(&self) -> Result<Option<PgConnectOptions>, String> {
        self.url().map(|url| parse_url(url, |name| std::env::var(name).ok())).transpose()
    }
}

/// Parses a database URL; `variable` reads an environment variable. Errors do not quote the URL, which may include a
/// password. They contain only its scheme, names of parameters, TLS modes, and names of files.
fn parse_url(url: &str, variable: impl Fn(&str) -> Option<String>) -> Result<PgConnectOptions, String> {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    match scheme {
        Some("postgres" | "postgresql") => {}
        Some(scheme) if !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            return Err(format!(
                "--database-url must begin with postgres://, not `{scheme}://`: Hotline supports PostgreSQL only"
            ));
        }
        _ => return Err("--database-url must be a URL that begins with postgres://".to_owned()),
    }
    refuse_several_hosts(url)?;
    let mut parsed = Url::parse(url).map_err(|error| format!("--database-url: {error}"))?;
    let parameters: Vec<(String, String)> = parsed.query_pairs().into_owned().collect();
    for (name, value) in &parameters {
        check_parameter(name, value)?;
    }
    parsed.set_query(None);
    for (name, value) in parameters.iter().filter(|(name, _)| !IGNORED_PARAMETERS.contains(&name.as_str())) {
        parsed.query_pairs_mut().append_pair(name, value);
    }
    let options = PgConnectOptions::from_str(parsed.as_str()).map_err(|error| format!("--database-url: {error}"))?;
    check_tls(options, &parameters, variable)
}

/// Parameters of libpq that have no effect here: Hotline has its own timeouts, and connects to one server, which it
/// checks itself.
const IGNORED_PARAMETERS: [&str; 9] = [
    "connect_timeout",
    "fallback_application_name",
    "gssencmode",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "target_session_attrs",
    "tcp_user_timeout",
];

/// Refuses parameters that the library would ignore, although the connection would then differ from the requested one.
fn check_parameter(name: &str, value: &str) -> Result<(), String> {
    match name {
        "host" | "hostaddr" | "port" if value.contains(',') => Err(SEVERAL_HOSTS.to_owned()),
        "target_session_attrs" if !["any", "read-write", "primary"].contains(&value) => {
            Err("--database-url: Hotline writes, so target_session_attrs can only be read-write".to_owned())
        }
        "sslpassword" => Err("--database-url: sslkey must name a key without a password".to_owned()),
        "sslcrl" | "sslcrldir" | "service" | "passfile" | "krbsrvname" | "require_auth" => {
            Err(format!("--database-url: Hotline does not support the parameter {name}"))
        }
        "channel_binding" if value == "require" => Err(
            "--database-url: Hotline does not support channel_binding=require; sslmode=verify-full identifies the server as well"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

const SEVERAL_HOSTS: &str = "--database-url: Hotline connects to one host. Name an address that always leads to the primary \
    server, such as the one of a managed service, HAProxy or a virtual IP address";

fn refuse_several_hosts(url: &str) -> Result<(), String> {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    if hosts.contains(',') { Err(SEVERAL_HOSTS.to_owned()) } else { Ok(()) }
}

/// Checks the TLS settings in the URL and in the environment, and completes them as libpq does.
fn check_tls(
    options: PgConnectOptions,
    parameters: &[(String, String)],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<PgConnectOptions, String> {
    let find_setting = |names: &[&str], variable_name: &str| {
        let in_url = parameters.iter().rev().find(|(name, _)| names.contains(&name.as_str()));
        let in_url = in_url.map(|(name, value)| (name.clone(), value.clone()));
        in_url.or_else(|| Some((variable_name.to_owned(), variable(variable_name)?)))
    };
    if let Some((name, value)) = find_setting(&["sslmode", "ssl-mode"], "PGSSLMODE")
        && value.parse::<PgSslMode>().is_err()
    {
        return Err(format!(
            "{name}: `{value}` is not a TLS mode; use disable, allow, prefer, require, verify-ca or verify-full"
        ));
    }
    let root = find_setting(&["sslrootcert", "ssl-root-cert", "ssl-ca"], "PGSSLROOTCERT");
    let certificate = find_setting(&["sslcert", "ssl-cert"], "PGSSLCERT");
    let key = find_setting(&["sslkey", "ssl-key"], "PGSSLKEY");
    if certificate.is_some() != key.is_some() {
        return Err("sslcert and sslkey must be given together".to_owned());
    }
    for (name, value) in [&root, &certificate, &key].into_iter().flatten() {
        check_file(name, value)?;
    }
    // As in libpq, `require` with a root certificate also checks the server's certificate.
    let mode = if root.is_some() && matches!(options.get_ssl_mode(), PgSslMode::Require) {
        PgSslMode::VerifyCa
    } else {
        options.get_ssl_mode()
    };
    Ok(options.ssl_mode(mode))
}

/// Checks that a TLS file can be read; the error names it. The value may also be the text of a certificate or key.
fn check_file(name: &str, value: &str) -> Result<(), String> {
    if value.starts_with("-----BEGIN ") {
        return Ok(());
    }
    std::fs::read(value).map(drop).map_err(|error| format!("{name}: {value} cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<PgConnectOptions, String> {
        parse_url(url, |_| None)
    }

    #[test]
    fn only_a_postgresql_url_is_accepted_and_an_invalid_one_is_not_printed() {
        for good in ["postgres://hotline@db.example/hotline", "postgresql:///hotline?host=/run/postgresql"] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for (bad, expected) in [
            ("mysql://hotline:hidden@db.example/hotline", "`mysql://`"),
            ("https://hotline:hidden@db.example", "`https://`"),
            ("hotline:hidden@db.example", "must be a URL"),
            ("host=db.example password=hidden", "must be a URL"),
            ("postgres://hotline:hidden@db.example:port/hotline", "--database-url"),
            ("postgres://hotline:hidden@one.example:5432,two.example:5432/hotline", "one host"),
            ("postgres://hotline:hidden@one.example,two.example/hotline", "one host"),
            ("postgres:///hotline?user=hotline&password=hidden&host=one.example,two.example", "one host"),
            ("postgres://hotline:hidden@db.example/hotline?target_session_attrs=standby", "target_session_attrs"),
            ("postgres://hotline@db.example/hotline?sslpassword=hidden", "sslkey"),
            ("postgres://hotline:hidden@db.example/hotline?sslmode=verify_full", "verify_full"),
            ("postgres://hotline:hidden@db.example/hotline?sslrootcert=/nowhere/ca.pem", "/nowhere/ca.pem"),
            ("postgres://hotline:hidden@db.example/hotline?sslcert=/nowhere/client.pem", "together"),
            ("", "must be a URL"),
        ] {
            let error = parse(bad).expect_err(bad);
            assert!(error.contains(expected) && !error.contains("hidden"), "{bad}: {error}");
        }
    }

    #[test]
    fn the_url_sets_the_tls_mode_and_a_root_certificate_turns_require_into_verify_ca() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().display();
        for (query, mode) in [
            ("sslmode=disable".to_owned(), PgSslMode::Disable),
            ("sslmode=require".to_owned(), PgSslMode::Require),
            (format!("sslmode=require&sslrootcert={path}"), PgSslMode::VerifyCa),
            (format!("sslmode=verify-full&sslrootcert={path}"), PgSslMode::VerifyFull),
            (format!("sslmode=prefer&sslrootcert={path}&connect_timeout=3"), PgSslMode::Prefer),
        ] {
            let url = format!("postgres://hotline@db.example/hotline?{query}");
            let parsed_mode = parse(&url).expect(&url).get_ssl_mode();
            assert_eq!(parsed_mode as u8, mode as u8, "{url}");
        }
    }

    #[test]
    fn variables_of_libpq_are_checked_like_the_url() {
        let url = "postgres://hotline@db.example/hotline";
        for (name, value) in [("PGSSLMODE", "strict"), ("PGSSLROOTCERT", "/nowhere/ca.pem")] {
            let error = parse_url(url, |variable| (variable == name).then(|| value.to_owned())).expect_err(name);
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }

    #[test]
    fn an_empty_url_is_none() {
        let args = |url: &str| DatabaseArgs {
            data_dir: PathBuf::new(),
            database_url: Some(url.to_owned()),
            key_file: None,
            pg_bin: None,
        };
        assert!(args("").url().is_none() && args(" ").url().is_none());
        assert!(matches!(args("").database(), Ok(None)));
        assert!(args("postgres:///hotline").url().is_some());
    }
}
