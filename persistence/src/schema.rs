//! The schema: migrated to this release's at every start, except that a newer release's schema is left unchanged.
//!
//! Migrations are compatible with the previous release, so that a node of it may restart while the first newer one
//! runs. A migration that is not raises `schema_needs.least` to its own number, and releases that do not know it refuse
//! the database with an explanation
//! ([decision 24](../../docs/decisions/0024-the-schema-says-which-releases-may-serve-it.md)).

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{AssertSqlSafe, PgConnection, PgPool, SqlSafeStr};

use crate::error::{NewerSchema, with_timeout};
use crate::requirements::quoted;
use crate::{Error, Result};

fn migrations() -> Migrator {
    let mut migrations = sqlx::migrate!("./migrations");
    // A node of the previous release may restart while the first newer one runs.
    migrations.set_ignore_missing(true);
    migrations
}

/// The number of the migration that assumes the schema `public`.
const BASELINE: i64 = 1;

/// The schema that the baseline was written for.
const PUBLIC: &str = "public";

/// The migrations for a database whose tables, or whose extension `unaccent`, are in another schema than `public`: the baseline
/// names that schema where a function must find the extension under any `search_path`. Its checksum stays that of the file,
/// which never changes.
async fn placed_migrations(connection: &mut PgConnection) -> Result<Migrator> {
    let mut migrations = migrations();
    let schemas = "select current_schema()::text,
        (select n.nspname::text from pg_extension x join pg_namespace n on n.oid = x.extnamespace
            where x.extname = 'unaccent')";
    let (own, unaccent): (Option<String>, Option<String>) =
        with_timeout(sqlx::query_as(schemas).fetch_one(connection)).await?;
    let own = own.unwrap_or_else(|| PUBLIC.to_owned());
    // The baseline creates it in the first schema if it is nowhere.
    let unaccent = unaccent.unwrap_or_else(|| own.clone());
    if own != PUBLIC || unaccent != PUBLIC {
        let baseline = migrations.migrations.to_mut().iter_mut().filter(|migration| migration.version == BASELINE);
        for migration in baseline {
            migration.sql = AssertSqlSafe(placed(migration.sql.as_str(), &own, &unaccent)).into_sql_str();
        }
    }
    Ok(migrations)
}

/// The baseline with other schemas.
fn placed(baseline: &str, own: &str, unaccent: &str) -> String {
    let (own, unaccent) = (quoted(own), quoted(unaccent));
    let literal = |name: &str| format!("'{}'", name.replace('\'', "''"));
    baseline
        .replace("'public.unaccent'", &literal(&format!("{unaccent}.unaccent")))
        .replace("public.unaccent(", &format!("{unaccent}.unaccent("))
        .replace("'public'::regnamespace", &format!("{}::regnamespace", literal(&own)))
}

/// The version of this release.
const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// The migrations of this release, oldest first: the number and the checksum of each.
pub fn checksums() -> Vec<(i64, Vec<u8>)> {
    migrations().iter().map(|migration| (migration.version, migration.checksum.to_vec())).collect()
}

/// The number of the last migration of this release.
pub fn known() -> i64 {
    migrations().iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// Migrates the database to this release's schema. Additions of a newer release are left unchanged.
///
/// # Errors
/// [`Error::Newer`] when a newer release made changes this one cannot serve; other errors when the database cannot be
/// reached or a migration fails.
pub async fn migrate(db: &PgPool) -> Result<()> {
    refuse_newer(db).await?;
    let mut connection = db.acquire().await.map_err(MigrateError::from)?;
    let migrations = placed_migrations(&mut connection).await?;
    if let Err(error) = migrations.run(&mut *connection).await {
        // Its session still has the lock on migrations; in the pool it would block the next migration.
        let _ = connection.close().await;
        return Err(error.into());
    }
    // An older release must not overwrite the release that migrated last.
    let update = "update schema_needs set release = $1
         where release <> $1 and $2 >= (select max(version) from _sqlx_migrations)";
    with_timeout(sqlx::query(update).bind(RELEASE).bind(known()).execute(db)).await?;
    Ok(())
}

async fn refuse_newer(db: &PgPool) -> Result<()> {
    let exists: bool =
        with_timeout(sqlx::query_scalar("select to_regclass('schema_needs') is not null").fetch_one(db)).await?;
    if !exists {
        return Ok(());
    }
    let needs: Option<(i64, String)> =
        with_timeout(sqlx::query_as("select least, release from schema_needs").fetch_optional(db)).await?;
    match needs {
        Some((least, release)) if least > known() => Err(Error::Newer(NewerSchema { release, least, known: known() })),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_names_public_only_where_it_is_placed_elsewhere() {
        let migrations = migrations();
        let baseline = migrations.iter().find(|migration| migration.version == BASELINE).expect("the baseline");
        let sql = placed(baseline.sql.as_str(), "my app", "ext");
        assert!(sql.contains("\"ext\".unaccent('\"ext\".unaccent', value)"));
        assert!(sql.contains("'\"my app\"'::regnamespace"));
        assert!(!sql.contains("public.") && !sql.contains("'public'"));
    }
}
