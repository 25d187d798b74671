//! A database has the schema of this release once it is migrated, and is refused if its schema differs.

use chrono::{DateTime, Utc};
use hotline_persistence::{Error, pool, schema};
use sqlx::PgPool;
use sqlx::migrate::MigrateError;

use crate::support::TestDatabase;

/// The number, the checksum and the time of each applied migration.
async fn read_migrations(db: &PgPool) -> Vec<(i64, Vec<u8>, DateTime<Utc>)> {
    let select = "select version, checksum, installed_on from _sqlx_migrations order by version";
    sqlx::query_as(select).fetch_all(db).await.expect("the migrations")
}

/// Of the rows that migrations insert: the number of slots, the next ids, and the epoch.
async fn read_rows(db: &PgPool) -> (i64, Vec<(String, i64)>, i64) {
    let slots = sqlx::query_scalar("select count(*) from slots").fetch_one(db).await.expect("slots");
    let ids = sqlx::query_as("select kind, next from id_blocks order by kind").fetch_all(db).await.expect("ids");
    let epoch = sqlx::query_scalar("select epoch from ownership").fetch_one(db).await.expect("the epoch");
    (slots, ids, epoch)
}

#[actix_web::test]
async fn a_new_database_has_every_migration_and_the_name_of_the_release() {
    let database = TestDatabase::create().await;
    pool::migrate(&database.db).await.expect("migrate");
    let checksums: Vec<_> =
        read_migrations(&database.db).await.into_iter().map(|(version, checksum, _)| (version, checksum)).collect();
    assert_eq!(checksums, schema::checksums());
    let versions: Vec<i64> = checksums.iter().map(|(version, _)| *version).collect();
    assert_eq!(versions[0], 1, "the baseline is the first");
    let (least, release): (i64, String) =
        sqlx::query_as("select least, release from schema_needs").fetch_one(&database.db).await.expect("its needs");
    assert!(versions.contains(&least), "{least} is not a migration of this release");
    assert_eq!(release, env!("CARGO_PKG_VERSION"));
    database.drop().await;
}

#[actix_web::test]
async fn a_migrated_database_is_left_as_it_is() {
    let database = TestDatabase::migrated().await;
    let db = &database.db;
    sqlx::query("update ownership set epoch = 7").execute(db).await.expect("an epoch");
    let before = (read_migrations(db).await, read_rows(db).await);
    assert_eq!(before.1.2, 7);
    for _ in 0..2 {
        pool::migrate(db).await.expect("migrate");
    }
    assert_eq!((read_migrations(db).await, read_rows(db).await), before);
    database.drop().await;
}

#[actix_web::test]
async fn processes_that_start_at_once_migrate_once() {
    let database = TestDatabase::create().await;
    let other = pool::connect(database.options.clone());
    let (one, two) = futures_util::future::join(pool::migrate(&database.db), pool::migrate(&other)).await;
    one.and(two).expect("both find the schema");
    assert_eq!(read_migrations(&other).await.len(), schema::checksums().len());
    assert_eq!(read_rows(&other).await.0, 1024);
    other.close().await;
    database.drop().await;
}

#[actix_web::test]
async fn a_database_with_another_checksum_of_a_migration_is_refused_and_left_as_it_is() {
    let database = TestDatabase::migrated().await;
    let db = &database.db;
    for version in schema::checksums().into_iter().map(|(version, _)| version) {
        let change = "update _sqlx_migrations set checksum = sha256(checksum) where version = $1";
        sqlx::query(change).bind(version).execute(db).await.expect("another checksum");
        let before = read_migrations(db).await;
        let error = pool::migrate(db).await.expect_err("the schema is another one");
        assert!(matches!(error, Error::Migrate(MigrateError::VersionMismatch(found)) if found == version), "{error}");
        assert!(error.to_string().contains(&version.to_string()), "{error}");
        assert_eq!(read_migrations(db).await, before);
        let original = schema::checksums().into_iter().find(|(number, _)| *number == version).expect("its checksum").1;
        let restore = "update _sqlx_migrations set checksum = $2 where version = $1";
        sqlx::query(restore).bind(version).bind(original).execute(db).await.expect("the checksum");
    }
    pool::migrate(db).await.expect("it is the schema again");
    database.drop().await;
}

#[actix_web::test]
async fn additions_of_a_newer_release_stay() {
    let database = TestDatabase::migrated().await;
    let db = &database.db;
    let newer = "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values ($1, 'later', true, 'x', 0)";
    sqlx::query(newer).bind(schema::newest_migration() + 1).execute(db).await.expect("a migration");
    sqlx::raw_sql("alter table tags add column later text; update schema_needs set release = '9.1.0'")
        .execute(db)
        .await
        .expect("what it did");
    let before = read_migrations(db).await;
    pool::migrate(db).await.expect("this release may serve it");
    assert_eq!(read_migrations(db).await, before);
    let has_column_and_release: (bool, String) = sqlx::query_as(
        "select exists (select from information_schema.columns where table_name = 'tags' and column_name = 'later'),
             release
         from schema_needs",
    )
    .fetch_one(db)
    .await
    .expect("the column and the release");
    assert_eq!(has_column_and_release, (true, "9.1.0".to_owned()));

    sqlx::query("update schema_needs set least = $1")
        .bind(schema::newest_migration() + 1)
        .execute(db)
        .await
        .expect("its needs");
    let error = pool::migrate(db).await.expect_err("this release may not serve it");
    assert!(matches!(error, Error::Newer(_)), "{error}");
    assert_eq!(read_migrations(db).await, before);
    database.drop().await;
}
