//! What a migration does to large tables while it is applied to a database with rows, and others read them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hotline_persistence::{PgPool, migration, schema};
use sqlx::migrate::Migration;
use sqlx::{Connection, PgConnection};

use super::{LARGE, later, sample};
use crate::support::{Company, TestDatabase, patience};

/// How long a migration may hold an ACCESS EXCLUSIVE lock on a large table.
const HOLD_TIME_MAX: Duration = Duration::from_millis(200);

/// How long a reader keeps its transaction open: longer than [`HOLD_TIME_MAX`], and shorter than a migration waits in
/// one attempt.
const READ_TIME: Duration = Duration::from_millis(500);

const WAIT: Duration = Duration::from_secs(60);

/// Rows in a table, which a rewrite or a scan would read.
const FILL: &str = "
    insert into contacts (company_id, name, number) select $1, 'Contact ' || n, '5511' || (900000000 + n)::text
        from generate_series(1, 20000) n";

/// The file of each large table, and of its partitions: another one after a rewrite.
async fn files(db: &PgPool) -> BTreeMap<String, i64> {
    let files = "select c.relname::text, pg_relation_filenode(c.oid)::bigint from pg_class c
        where pg_relation_filenode(c.oid) is not null and c.relkind = 'r' and (c.relname = any ($1)
            or c.oid in (select inhrelid from pg_inherits join pg_class p on p.oid = inhparent where p.relname = any ($1)))";
    let files: Vec<(String, i64)> = sqlx::query_as(files).bind(&LARGE[..]).fetch_all(db).await.expect("the files");
    files.into_iter().collect()
}

/// Reads a large table again and again, each time for as long as a report might.
async fn keep_reading(database: &TestDatabase, table: &str, is_over: &AtomicBool) {
    let mut session = PgConnection::connect_with(&database.options).await.expect("a session");
    let read = format!("begin; select 1 from {table} limit 1; select pg_sleep({}); commit", READ_TIME.as_secs_f64());
    while !is_over.load(Ordering::Acquire) {
        sqlx::raw_sql(sqlx::AssertSqlSafe(read.as_str())).execute(&mut session).await.expect("a read");
    }
}

/// The longest time for which another session held an ACCESS EXCLUSIVE lock on each large table.
async fn watch_locks(database: &TestDatabase, is_over: &AtomicBool) -> BTreeMap<String, Duration> {
    let mut session = PgConnection::connect_with(&database.options).await.expect("a session");
    let held = "select c.relname::text from pg_locks l join pg_class c on c.oid = l.relation
        where l.mode = 'AccessExclusiveLock' and l.granted and c.relname = any ($1)
            and l.database = (select oid from pg_database where datname = current_database())";
    let mut began: BTreeMap<String, Instant> = BTreeMap::new();
    let mut longest: BTreeMap<String, Duration> = BTreeMap::new();
    while !is_over.load(Ordering::Acquire) {
        let held: Vec<String> =
            sqlx::query_scalar(held).bind(&LARGE[..]).fetch_all(&mut session).await.expect("the locks");
        began.retain(|table, _| held.contains(table));
        for table in held {
            let time = began.entry(table.clone()).or_insert_with(Instant::now).elapsed();
            let longest = longest.entry(table).or_default();
            *longest = time.max(*longest);
        }
    }
    longest
}

/// Applies migrations while others read; returns what would interrupt a running release.
async fn find_interruptions(migrations: &[Migration]) -> Vec<String> {
    let database = TestDatabase::migrated().await;
    let company = Company::create(&database.db, "Acme").await;
    sqlx::query(FILL).bind(company.id).execute(&database.db).await.expect("rows");
    let before = files(&database.db).await;
    let missing = "select name from unnest($1::text[]) as named (name) where to_regclass(name) is null";
    let missing: Vec<String> =
        sqlx::query_scalar(missing).bind(&LARGE[..]).fetch_all(&database.db).await.expect("an answer");
    assert_eq!(missing, [""; 0], "no such tables");
    let is_over = AtomicBool::new(false);
    let all: Vec<Migration> = schema::all_migrations().into_iter().chain(migrations.iter().cloned()).collect();
    let apply = async {
        let applied = migration::run(&database.db, &all, WAIT, &mut |_| {}).await;
        is_over.store(true, Ordering::Release);
        applied
    };
    let readers = ["messages", "tickets", "contacts"].map(|table| keep_reading(&database, table, &is_over));
    let readers = futures_util::future::join_all(readers);
    let (applied, held, _) = futures_util::future::join3(apply, watch_locks(&database, &is_over), readers).await;
    let mut interruptions: Vec<String> =
        applied.err().map(|error| format!("not applied: {error}")).into_iter().collect();
    let after = files(&database.db).await;
    let rewritten = before.iter().filter(|(table, file)| after.get(*table).is_some_and(|new| new != *file));
    interruptions.extend(rewritten.map(|(table, _)| format!("{table} was rewritten")));
    let long = held.into_iter().filter(|(_, time)| *time > patience(HOLD_TIME_MAX));
    interruptions.extend(long.map(|(table, time)| format!("{table} was locked for {} ms", time.as_millis())));
    database.drop().await;
    interruptions
}

#[actix_web::test]
async fn migrations_rewrite_no_large_table_and_lock_it_only_briefly() {
    let migrations = later();
    // There may be none: the samples below show what the test finds.
    if !migrations.is_empty() {
        assert_eq!(find_interruptions(&migrations).await, [""; 0]);
    }
}

#[actix_web::test]
async fn a_rewrite_a_long_lock_and_a_failure_are_found() {
    let column = "-- Locks: contacts (access exclusive, catalog only)\nalter table contacts add column later text;";
    assert_eq!(find_interruptions(&[sample(column)]).await, [""; 0]);
    let rewrite = "alter table contacts add column later timestamptz default clock_timestamp();";
    let interruptions = find_interruptions(&[sample(rewrite)]).await;
    assert!(interruptions.contains(&"contacts was rewritten".to_owned()), "{interruptions:?}");
    let long = "alter table contacts add column later text; select pg_sleep(2);";
    let interruptions = find_interruptions(&[sample(long)]).await;
    assert!(interruptions.iter().any(|one| one.starts_with("contacts was locked for ")), "{interruptions:?}");
    let interruptions = find_interruptions(&[sample("alter table nothing add column later text;")]).await;
    assert!(interruptions.iter().any(|one| one.starts_with("not applied")), "{interruptions:?}");
}
