//! The options of the database and of its secrets.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use sqlx::postgres::PgConnectOptions;

/// The name of the key file in a data folder.
const KEY_FILE: &str = "secrets.key";

/// The heading of these options, which are also keys of the configuration file.
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
    /// The file of the keys that seal secrets.
    pub fn key_file(&self) -> PathBuf {
        self.key_file.clone().unwrap_or_else(|| self.data_dir.join(KEY_FILE))
    }

    /// The database of the URL, if there is one.
    ///
    /// # Errors
    /// When the URL is invalid.
    pub fn database(&self) -> Result<Option<PgConnectOptions>, String> {
        self.database_url.as_deref().map(database).transpose()
    }
}

/// Parses a database URL. Errors contain only its scheme, because it may include a password.
fn database(url: &str) -> Result<PgConnectOptions, String> {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    match scheme {
        Some("postgres" | "postgresql") => {
            PgConnectOptions::from_str(url).map_err(|error| format!("--database-url: {error}"))
        }
        Some(scheme) if !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => Err(format!(
            "--database-url must begin with postgres://, not `{scheme}://`: Hotline supports PostgreSQL only"
        )),
        _ => Err("--database-url must be a URL that begins with postgres://".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_postgresql_url_is_accepted_and_an_invalid_one_is_not_printed() {
        for good in ["postgres://hotline@db.example/hotline", "postgresql:///hotline?host=/run/postgresql"] {
            assert!(database(good).is_ok(), "{good}");
        }
        for (bad, expected) in [
            ("mysql://hotline:hidden@db.example/hotline", "`mysql://`"),
            ("https://hotline:hidden@db.example", "`https://`"),
            ("hotline:hidden@db.example", "must be a URL"),
            ("host=db.example password=hidden", "must be a URL"),
            ("postgres://hotline:hidden@db.example:port/hotline", "--database-url"),
            ("", "must be a URL"),
        ] {
            let error = database(bad).expect_err(bad);
            assert!(error.contains(expected) && !error.contains("hidden"), "{bad}: {error}");
        }
    }
}
