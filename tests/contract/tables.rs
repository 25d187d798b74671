//! The tables are those of `docs/schema.md`, a company stays in its slot, and no two unique names look the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hotline_persistence::tables::companies::{self, CompanyChanges};

use crate::support::TestDatabase;

/// How a table is written, as `docs/schema.md` explains.
const KINDS: [&str; 4] = ["live", "plain", "both", "service"];

/// A table by its key and its columns.
#[derive(Debug, Default, PartialEq)]
struct Shape {
    key: Vec<String>,
    columns: BTreeSet<String>,
}

/// The tables of `docs/schema.md`: `- **name** (kind): what for. Key (a, b).`, then the columns.
fn documented_tables() -> BTreeMap<String, Shape> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let mut tables = BTreeMap::new();
    for item in page.split("\n- **").skip(1) {
        let item = item.split("\n\n").next().expect("an item");
        let Some((name, rest)) = item.split_once("** (") else { continue };
        let (kind, rest) = rest.split_once("): ").expect("a kind");
        assert!(KINDS.contains(&kind), "{name} is {kind}");
        let (purpose, rest) = rest.split_once("Key (").unwrap_or_else(|| panic!("{name} has no key"));
        assert!(!purpose.trim().is_empty(), "{name} has no purpose");
        let (key, columns) = rest.split_once(").").expect("the end of the key");
        let shape = Shape {
            key: key.split(", ").map(str::to_owned).collect(),
            columns: columns.split('`').skip(1).step_by(2).map(str::to_owned).collect(),
        };
        assert!(tables.insert(name.to_owned(), shape).is_none(), "{name} is listed twice");
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
    let written = documented_tables();
    let mut wrong = Vec::new();
    for name in tables.keys().chain(written.keys()).collect::<BTreeSet<_>>() {
        if tables.get(name) != written.get(name) {
            wrong.push(format!("{name}: the database has {:?},\n  the page {:?}", tables.get(name), written.get(name)));
        }
    }
    assert!(wrong.is_empty(), "docs/schema.md differs from what the migrations create:\n{}", wrong.join("\n"));
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
async fn names_of_a_company_that_look_the_same_are_refused_by_the_database() {
    let database = TestDatabase::migrated().await;
    let db = &database.db;
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.columns where table_schema = 'public' and column_name = 'looks'",
    )
    .fetch_all(db)
    .await
    .expect("tables");
    let with_triggers: Vec<String> = sqlx::query_scalar(
        "select tgrelid::regclass::text from pg_trigger join pg_index on indrelid = tgrelid and indisunique
         where tgname in (tgrelid::regclass || '_look', tgrelid::regclass || '_look_other')
             and indexrelid::regclass::text = tgrelid::regclass || '_looks'
         group by tgrelid having count(*) = 2",
    )
    .fetch_all(db)
    .await
    .expect("tables");
    assert_eq!(tables.iter().collect::<BTreeSet<_>>(), with_triggers.iter().collect());
    assert_eq!(tables.len(), 11, "{tables:?}");

    let one = companies::insert(db, "One").await.expect("company").id;
    let two = companies::insert(db, "Two").await.expect("company").id;
    let add = async |company, name: &str| {
        let add = "insert into tags (company_id, name) values ($1, $2) returning id";
        sqlx::query_scalar::<_, i64>(add).bind(company).bind(name).fetch_one(db).await
    };
    let big = add(one, "Big deal").await.expect("a tag");
    let other = add(one, "Small deal").await.expect("a tag");
    add(two, "Big\u{200f} deal").await.expect("a tag of another company");
    assert!(add(one, "Big\u{a0}deal").await.is_err(), "another that looks the same");
    let change = async |id: i64, name: &str| {
        let change = "update tags set name = $2, color = '#000000' where id = $1";
        sqlx::query(change).bind(id).bind(name).execute(db).await
    };
    assert!(change(other, "Big\u{2003}deal").await.is_err(), "a change that looks like another");
    change(big, "Big\u{a0}deal").await.expect("the record itself may be written like this");
    change(other, "Smaller deal").await.expect("another name");
    add(one, "Small deal").await.expect("the name is free");
    let looks: Vec<String> = sqlx::query_scalar("select looks from tags where company_id = $1 order by id")
        .bind(one)
        .fetch_all(db)
        .await
        .expect("tags");
    assert_eq!(looks, ["Big deal", "Smaller deal", "Small deal"]);
    database.drop().await;
}
