//! The tables are those of `docs/schema.md`, and a company stays in its slot.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hotline_persistence::tables::companies::{self, CompanyChanges};
use sqlx::AssertSqlSafe;

use crate::support::TestDatabase;

/// What gives each company its slot.
const SLOTS: &str = include_str!("../../persistence/migrations/0029_company_slots.sql");

/// What gives each unique name its looks.
const LOOKS: &str = include_str!("../../persistence/migrations/0076_looks.sql");

/// How a table is written, as `docs/schema.md` explains.
const KINDS: [&str; 4] = ["live", "plain", "both", "service"];

/// A table by its key and its columns.
#[derive(Debug, Default, PartialEq)]
struct Shape {
    key: Vec<String>,
    columns: BTreeSet<String>,
}

/// The tables of `docs/schema.md`: `- **name** (kind): what for. Key (a, b).`, then the columns.
fn written() -> BTreeMap<String, Shape> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let mut tables = BTreeMap::new();
    for item in page.split("\n- **").skip(1) {
        let item = item.split("\n\n").next().expect("an item");
        let Some((name, rest)) = item.split_once("** (") else { continue };
        let (kind, rest) = rest.split_once("): ").expect("a kind");
        assert!(KINDS.contains(&kind), "{name} is {kind}");
        let (purpose, rest) = rest.split_once("Key (").unwrap_or_else(|| panic!("{name} has no key"));
        assert!(!purpose.trim().is_empty(), "nothing is said of {name}");
        let (key, columns) = rest.split_once(").").expect("the end of the key");
        let shape = Shape {
            key: key.split(", ").map(str::to_owned).collect(),
            columns: columns.split('`').skip(1).step_by(2).map(str::to_owned).collect(),
        };
        assert!(tables.insert(name.to_owned(), shape).is_none(), "{name} is there twice");
    }
    tables
}

#[actix_web::test]
async fn the_page_of_the_schema_has_every_table_with_its_key_and_its_columns() {
    let database = TestDatabase::migrated().await;
    let mut tables: BTreeMap<String, Shape> = BTreeMap::new();
    let columns: Vec<(String, String)> = sqlx::query_as(
        "select table_name::text, column_name::text from information_schema.columns
         where table_schema = 'public' and table_name <> '_sqlx_migrations'
             and table_name not in (select relname from pg_class where relispartition)",
    )
    .fetch_all(&database.db)
    .await
    .expect("columns");
    for (table, column) in columns {
        tables.entry(table).or_default().columns.insert(column);
    }
    let keys: Vec<(String, String)> = sqlx::query_as(
        "select u.table_name::text, u.column_name::text
         from information_schema.table_constraints c join information_schema.key_column_usage u using (constraint_name)
         where c.table_schema = 'public' and c.constraint_type = 'PRIMARY KEY' and c.table_name <> '_sqlx_migrations'
             and c.table_name not in (select relname from pg_class where relispartition)
         order by u.table_name, u.ordinal_position",
    )
    .fetch_all(&database.db)
    .await
    .expect("keys");
    for (table, column) in keys {
        tables.entry(table).or_default().key.push(column);
    }
    assert!(tables.len() > 30, "few tables are found: {}", tables.len());
    let written = written();
    let mut wrong = Vec::new();
    for name in tables.keys().chain(written.keys()).collect::<BTreeSet<_>>() {
        if tables.get(name) != written.get(name) {
            wrong.push(format!("{name}: the database has {:?},\n  the page {:?}", tables.get(name), written.get(name)));
        }
    }
    assert!(wrong.is_empty(), "docs/schema.md is not what the migrations make:\n{}", wrong.join("\n"));
    database.drop().await;
}

#[actix_web::test]
async fn every_company_is_in_a_slot_and_stays_there() {
    let database = TestDatabase::migrated().await;
    let db = &database.db;
    let slot_of = async |id| -> i16 {
        sqlx::query_scalar("select slot from companies where id = $1").bind(id).fetch_one(db).await.expect("a slot")
    };
    let hash_of = async |id| -> i16 {
        sqlx::query_scalar("select hotline_slot($1)").bind(id).fetch_one(db).await.expect("a hash")
    };
    // The same on every machine and every version of PostgreSQL: the first ten bits of SHA-256, as bytes.
    for (id, hash) in [(1_i64, 294), (2, 260), (3, 360), (1000, 594)] {
        assert_eq!(hash_of(id).await, hash, "of {id}");
    }
    let one = companies::insert(db, "One").await.expect("company").id;
    let slot = slot_of(one).await;
    assert_eq!(slot, hash_of(one.0).await);
    let changes = CompanyChanges { name: Some("Uno".to_owned()), active: Some(false), ..CompanyChanges::default() };
    companies::update(db, one, changes).await.expect("a change");
    assert_eq!(slot_of(one).await, slot);

    // An operator gives a large company a slot of its own.
    sqlx::query("update companies set slot = 1023 where id = $1").bind(one).execute(db).await.expect("a slot");
    companies::update(db, one, CompanyChanges { active: Some(true), ..CompanyChanges::default() })
        .await
        .expect("a change");
    assert_eq!(slot_of(one).await, 1023);
    let refused = sqlx::query("update companies set slot = 1024 where id = $1").bind(one).execute(db).await;
    assert!(refused.is_err(), "there are 1024 slots, from 0");

    let slots: i64 = sqlx::query_scalar("select count(distinct hotline_slot(id)) from generate_series(1, 20000) id")
        .fetch_one(db)
        .await
        .expect("a count");
    assert_eq!(slots, 1024, "some slots stay empty");
    database.drop().await;
}

#[actix_web::test]
async fn companies_of_an_earlier_release_are_given_their_slots() {
    let database = TestDatabase::migrated().await;
    let db = &database.db;
    let mut ids = Vec::new();
    for name in ["One", "Two", "Three"] {
        ids.push(companies::insert(db, name).await.expect("company").id);
    }
    let slots = "select array_agg(slot order by id) from companies";
    let before: Vec<i16> = sqlx::query_scalar(slots).fetch_one(db).await.expect("slots");
    let back = "alter table companies drop column slot; drop trigger company_slot on companies;
         drop function hotline_company_slot; drop function hotline_slot";
    sqlx::raw_sql(back).execute(db).await.expect("the schema of before");
    sqlx::raw_sql(AssertSqlSafe(SLOTS)).execute(db).await.expect("the migration");
    let after: Vec<i16> = sqlx::query_scalar(slots).fetch_one(db).await.expect("slots");
    assert_eq!(after, before);
    assert_eq!(after.len(), ids.len());
    database.drop().await;
}

#[actix_web::test]
async fn names_that_looked_the_same_before_stay_and_no_others_come() {
    let database = TestDatabase::migrated().await;
    let db = &database.db;
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.columns where table_schema = 'public' and column_name = 'looks'",
    )
    .fetch_all(db)
    .await
    .expect("tables");
    assert_eq!(tables.len(), 11, "{tables:?}");
    let mut back = "drop function hotline_note_looks cascade;".to_owned();
    tables.iter().for_each(|table| back.push_str(&format!("alter table {table} drop column looks;")));
    back.push_str("drop function hotline_looks;");
    sqlx::raw_sql(AssertSqlSafe(back)).execute(db).await.expect("the schema of before");
    let (one, two) = (companies::insert(db, "One").await.expect("company").id, companies::insert(db, "Two").await);
    let two = two.expect("company").id;
    let add = async |company, name: &str| {
        let add = "insert into tags (company_id, name) values ($1, $2) returning id";
        sqlx::query_scalar::<_, i64>(add).bind(company).bind(name).fetch_one(db).await
    };
    let oldest = add(one, "Big deal").await.expect("a tag");
    let second = add(one, "Big\u{a0}deal").await.expect("a tag");
    let third = add(one, "Big  deal").await.expect("a tag");
    let elsewhere = add(two, "Big\u{200f} deal").await.expect("a tag");
    sqlx::raw_sql(AssertSqlSafe(LOOKS)).execute(db).await.expect("the migration");

    let seen: Vec<(i64, Option<String>)> =
        sqlx::query_as("select id, looks from tags order by id").fetch_all(db).await.expect("tags");
    let big = Some("Big deal".to_owned());
    assert_eq!(seen, [(oldest, big.clone()), (second, None), (third, None), (elsewhere, big)]);
    assert!(add(one, "Bi\u{200d}g deal").await.is_err(), "another that looks the same");
    let change = async |id: i64, name: &str| {
        let change = "update tags set name = $2, color = '#000000' where id = $1";
        sqlx::query(change).bind(id).bind(name).execute(db).await
    };
    change(second, "Big\u{a0}deal").await.expect("it keeps its name");
    assert!(change(second, "Big\u{2003}deal").await.is_err(), "it is another now, which looks the same");
    change(second, "Small deal").await.expect("another name");
    assert!(change(third, "Small\u{a0}deal").await.is_err(), "that is taken now");
    database.drop().await;
}
