//! The schema: the migrations of this release, and which of them a database has.
//!
//! Migrations are compatible with the previous release, whose nodes may still restart while the first node of this
//! release runs. An incompatible migration raises `schema_needs.least` to its own number, and releases that do not know
//! it refuse the database with an explanation
//! ([decision 24](../../docs/decisions/0024-the-schema-says-which-releases-may-serve-it.md)).

#[cfg(feature = "failpoints")]
use std::path::PathBuf;

use std::borrow::Cow;

use sqlx::migrate::{Migrate, MigrateError, Migration, Migrator};
use sqlx::{AssertSqlSafe, PgConnection, SqlSafeStr};

use crate::error::{NewerSchema, with_timeout};
use crate::requirements::quoted;
use crate::{Error, Result};

/// The table of applied migrations.
pub(crate) const APPLIED: &str = "_sqlx_migrations";

/// The version of this release.
pub(crate) const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// The number of the migration that assumes the schema `public`.
const BASELINE: i64 = 1;

/// The schema that the baseline was written for.
const PUBLIC: &str = "public";

/// Returns the migration, adapted to this database's schemas. The baseline names the schema `public` where a function
/// must find the extension `unaccent` under any `search_path`. If the tables or the extension are in another schema,
/// its name replaces `public`; the checksum stays that of the file, which never changes.
pub(crate) async fn adapt_to_schemas<'a>(
    connection: &mut PgConnection,
    migration: &'a Migration,
) -> Result<Cow<'a, Migration>> {
    if migration.version != BASELINE {
        return Ok(Cow::Borrowed(migration));
    }
    let query = "select current_schema()::text,
        (select n.nspname::text from pg_extension x join pg_namespace n on n.oid = x.extnamespace
            where x.extname = 'unaccent')";
    let (tables_schema, unaccent_schema): (Option<String>, Option<String>) =
        with_timeout(sqlx::query_as(query).fetch_one(connection)).await?;
    let tables_schema = tables_schema.unwrap_or_else(|| PUBLIC.to_owned());
    // If the extension is not installed, the baseline creates it in the schema of the tables.
    let unaccent_schema = unaccent_schema.unwrap_or_else(|| tables_schema.clone());
    if tables_schema == PUBLIC && unaccent_schema == PUBLIC {
        return Ok(Cow::Borrowed(migration));
    }
    let sql = with_schemas(migration.sql.as_str(), &tables_schema, &unaccent_schema);
    let sql = AssertSqlSafe(sql).into_sql_str();
    Ok(Cow::Owned(Migration { sql, ..migration.clone() }))
}

/// The baseline with these schemas in place of `public`.
fn with_schemas(baseline: &str, tables_schema: &str, unaccent_schema: &str) -> String {
    let (tables_schema, unaccent_schema) = (quoted(tables_schema), quoted(unaccent_schema));
    let literal = |name: &str| format!("'{}'", name.replace('\'', "''"));
    baseline
        .replace("'public.unaccent'", &literal(&format!("{unaccent_schema}.unaccent")))
        .replace("public.unaccent(", &format!("{unaccent_schema}.unaccent("))
        .replace("'public'::regnamespace", &format!("{}::regnamespace", literal(&tables_schema)))
}

fn embedded_migrator() -> Migrator {
    sqlx::migrate!("./migrations")
}

/// The migrations of this release, oldest first: the number and the checksum of each.
pub fn checksums() -> Vec<(i64, Vec<u8>)> {
    embedded_migrator().iter().map(|migration| (migration.version, migration.checksum.to_vec())).collect()
}

/// The number of the last migration of this release.
pub fn newest_migration() -> i64 {
    newest_version(&all_migrations())
}

/// The migrations of this release, oldest first.
pub fn all_migrations() -> Vec<Migration> {
    embedded_migrator().iter().cloned().collect()
}

/// The migrations that this process applies: those of this release, and those of a folder that a test may name.
///
/// # Errors
/// When the folder cannot be read.
pub async fn supported_migrations() -> Result<Vec<Migration>> {
    #[cfg(feature = "failpoints")]
    if let Some(folder) = extra_folder() {
        let extra = Migrator::new(folder).await?;
        return Ok(Migrator::with_migrations(all_migrations().into_iter().chain(extra.iter().cloned()).collect())
            .iter()
            .cloned()
            .collect());
    }
    Ok(all_migrations())
}

/// The folder of further migrations that a test passes to the fail point `migrations`.
#[cfg(feature = "failpoints")]
fn extra_folder() -> Option<PathBuf> {
    crate::fail_point!("migrations", |folder: Option<String>| folder.map(PathBuf::from));
    None
}

/// The number of the last of these migrations; 0 if there are none.
pub(crate) fn newest_version(migrations: &[Migration]) -> i64 {
    migrations.iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// Which of a release's migrations a database has.
#[derive(Debug, Default)]
pub(crate) struct SchemaState {
    /// Whether no migration has been applied to the database.
    pub(crate) is_empty: bool,
    /// The migrations that the database lacks, oldest first.
    pub(crate) pending: Vec<Migration>,
    /// The number of the database's last migration.
    pub(crate) newest: i64,
    /// The release that migrated the database last.
    pub(crate) release: String,
}

impl SchemaState {
    /// Reads the state, and changes nothing.
    ///
    /// # Errors
    /// [`Error::Newer`] when a newer release made changes this one cannot serve, [`Error::Migrate`] when an applied
    /// migration is incomplete or differs from this release's; other errors when the database cannot answer.
    pub(crate) async fn read(connection: &mut PgConnection, migrations: &[Migration]) -> Result<Self> {
        let (is_migrated, has_needs): (bool, bool) = with_timeout(
            sqlx::query_as(
                // Only the first schema of the search path: others contain extensions, and perhaps another Hotline's
                // tables.
                "select to_regclass(own || '._sqlx_migrations') is not null, to_regclass(own || '.schema_needs') is not null
                 from quote_ident(current_schema()) own",
            )
            .fetch_one(&mut *connection),
        )
        .await?;
        if !is_migrated {
            return Ok(Self { is_empty: true, pending: migrations.to_vec(), ..Self::default() });
        }
        let release = if has_needs { find_release(connection, newest_version(migrations)).await? } else { None };
        if let Some(version) = connection.dirty_version(APPLIED).await? {
            return Err(MigrateError::Dirty(version).into());
        }
        let applied = connection.list_applied_migrations(APPLIED).await?;
        let mut pending = Vec::new();
        for migration in migrations {
            match applied.iter().find(|applied| applied.version == migration.version) {
                None => pending.push(migration.clone()),
                Some(applied) if applied.checksum == migration.checksum => {}
                Some(_) => return Err(MigrateError::VersionMismatch(migration.version).into()),
            }
        }
        let newest = applied.iter().map(|applied| applied.version).max().unwrap_or_default();
        Ok(Self { is_empty: applied.is_empty(), pending, newest, release: release.unwrap_or_default() })
    }
}

/// The release that migrated the database last; `None` if it is not recorded. Refuses a database that this release
/// cannot serve.
async fn find_release(connection: &mut PgConnection, known: i64) -> Result<Option<String>> {
    let needs = sqlx::query_as("select least, release from schema_needs").fetch_optional(connection);
    let needs: Option<(i64, String)> = with_timeout(needs).await?;
    match needs {
        Some((least, release)) if least > known => Err(Error::Newer(NewerSchema { release, least, known })),
        needs => Ok(needs.map(|(_, release)| release)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_names_public_only_where_it_is_replaced() {
        let migrations = all_migrations();
        let baseline = migrations.iter().find(|migration| migration.version == BASELINE).expect("the baseline");
        let sql = with_schemas(baseline.sql.as_str(), "my app", "ext");
        assert!(sql.contains("\"ext\".unaccent('\"ext\".unaccent', value)"));
        assert!(sql.contains("'\"my app\"'::regnamespace"));
        assert!(!sql.contains("public.") && !sql.contains("'public'"));
    }
}
