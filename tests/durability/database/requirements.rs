//! A start reports what is wrong with a database that it cannot use, and does not depend on settings that others made.

use futures_util::future::join_all;
use hotline::exit_code::Exit;
use serde_json::json;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};

use super::link::Link;
use crate::process::{Process, command, data_folder, serving};
use crate::support::{Api, Company, TestDatabase, database, eventually};

/// A database whose owner is a role of its own, which is not an administrator.
pub struct OwnedDatabase {
    database: TestDatabase,
    pub name: String,
    pub role: String,
}

impl OwnedDatabase {
    pub async fn create(encoding: &str) -> Self {
        let database = TestDatabase::create().await;
        let name = hotline_persistence::key::new_key("owned_").to_lowercase();
        let owned = Self { role: format!("{name}_owner"), name, database };
        owned.execute_outside(&format!("create role {} login", owned.role)).await;
        let create = format!(
            "create database {} owner {} encoding '{encoding}' lc_collate 'C' lc_ctype 'C' template template0",
            owned.name, owned.role
        );
        owned.execute_outside(&create).await;
        owned
    }

    /// Runs a statement as an administrator, outside of the owned database.
    pub async fn execute_outside(&self, statement: &str) {
        sqlx::query(AssertSqlSafe(statement)).execute(&self.database.db).await.expect(statement);
    }

    /// How an administrator connects to the owned database.
    pub fn options(&self) -> PgConnectOptions {
        self.database.options.clone().database(&self.name)
    }

    /// Runs a statement as an administrator, in the owned database.
    pub async fn execute_inside(&self, statement: &str) {
        let mut connection = self.options().connect().await.expect("the owned database");
        sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await.expect(statement);
        connection.close().await.expect("a close");
    }

    /// How the owner connects to the owned database.
    pub fn url(&self) -> String {
        database::url(&self.database.options.clone().database(&self.name).username(&self.role))
    }

    pub async fn drop(self) {
        self.execute_outside(&format!("drop database {} with (force)", self.name)).await;
        self.execute_outside(&format!("drop role {}", self.role)).await;
        self.database.drop().await;
    }
}

/// Runs a start that must fail; what it printed to stderr.
fn refusal(url: &str) -> String {
    let folder = data_folder();
    let mut serve = serving(folder.path());
    let output = serve.args(["--database-url", url, "--start-wait", "0"]).output().expect("hotline runs");
    assert!(!output.status.success() && output.stdout.is_empty(), "it started");
    // In JSON, the quotes of a log line are escaped.
    String::from_utf8_lossy(&output.stderr).replace("\\\"", "\"")
}

#[actix_web::test]
async fn everything_that_is_wrong_with_a_database_is_reported_at_once_with_what_corrects_it() {
    let owned = OwnedDatabase::create("LATIN1").await;
    let (name, role) = (&owned.name, &owned.role);
    owned.execute_outside(&format!("alter role {role} connection limit 5")).await;
    owned.execute_outside(&format!("alter database {name} connection limit 6")).await;
    owned.execute_outside(&format!("alter database {name} owner to {}", owned.database.options.get_username())).await;
    owned.execute_inside("revoke create on schema public from public").await;
    owned.execute_inside("create schema closed").await;
    owned.execute_inside("create extension pg_trgm schema closed").await;
    let stderr = refusal(&owned.url());
    for words in [
        "encoding of database",
        "LATIN1",
        "encoding 'UTF8'",
        "may not create tables in schema \"public\"",
        "grant create on schema",
        "allows 5 connections, and 18 are needed",
        "connection limit 18",
        "allows 6 connections",
        "extension unaccent is missing",
        "create extension unaccent",
        "extension btree_gin is missing",
        "may not use schema \"closed\", which has the extension pg_trgm",
        "grant usage on schema \"closed\"",
    ] {
        assert!(stderr.contains(words), "`{words}` is missing in {stderr}");
    }
    owned.drop().await;
}

#[actix_web::test]
async fn a_read_only_database_and_a_search_path_without_a_schema_are_refused() {
    let owned = OwnedDatabase::create("UTF8").await;
    let name = &owned.name;
    owned.execute_outside(&format!("alter database {name} set default_transaction_read_only = on")).await;
    let stderr = refusal(&owned.url());
    assert!(stderr.contains("read-only") && stderr.contains("reset default_transaction_read_only"), "{stderr}");
    owned.execute_outside(&format!("alter database {name} reset default_transaction_read_only")).await;
    let stderr = refusal(&format!("{}&options=-csearch_path%3Dmissing", owned.url()));
    assert!(stderr.contains("create schema missing authorization"), "{stderr}");
    owned.drop().await;
}

#[actix_web::test]
async fn a_start_waits_until_its_database_accepts_changes_as_after_a_failover() {
    let (owned, folder) = (OwnedDatabase::create("UTF8").await, data_folder());
    let name = &owned.name;
    owned.execute_outside(&format!("alter database {name} set default_transaction_read_only = on")).await;
    let mut serve = serving(folder.path());
    // Longer than the first attempt takes: without time left after it, a start does not wait.
    let output = serve.args(["--database-url", &owned.url(), "--start-wait", "5s"]).output().expect("hotline runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(Exit::Unavailable.code().into()), "{stderr}");
    assert_eq!(stderr.matches("waiting for the database").count(), 1, "{stderr}");

    let (path, url) = (folder.path().to_owned(), owned.url());
    let starting = std::thread::spawn(move || Process::start(&path, serving(&path).args(["--database-url", &url])));
    let log = folder.path().join("service.log");
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    eventually("the start waits", || async { read().contains("waiting for the database") }).await;
    owned.execute_outside(&format!("alter database {name} reset default_transaction_read_only")).await;
    let started =
        actix_web::rt::task::spawn_blocking(move || starting.join()).await.expect("joined").expect("a thread");
    started.unwrap_or_else(|log| panic!("not served: {log}")).kill();
    owned.drop().await;
}

#[actix_web::test]
async fn an_empty_url_means_the_private_database() {
    let folder = data_folder();
    let mut list = command(folder.path(), &["company", "list"]);
    let output = list.env("HOTLINE_DATABASE_URL", "").output().expect("hotline runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("no Hotline installation in"), "{stderr}");
}

/// Under these settings, parallel changes of the same rows would fail, and migrations would be ended.
#[actix_web::test]
async fn what_others_set_for_the_role_changes_nothing() {
    let owned = OwnedDatabase::create("UTF8").await;
    for setting in [
        "default_transaction_isolation = 'serializable'",
        "statement_timeout = '5ms'",
        "lock_timeout = '1ms'",
        "idle_in_transaction_session_timeout = '1ms'",
        "idle_session_timeout = '100ms'",
        "standard_conforming_strings = off",
        "gin_fuzzy_search_limit = 1",
    ] {
        owned.execute_outside(&format!("alter role {} set {setting}", owned.role)).await;
    }
    let folder = data_folder();
    let mut serve = serving(folder.path());
    serve.args(["--database-url", &owned.url()]);
    let process =
        Process::start(folder.path(), &mut serve).unwrap_or_else(|log| panic!("hotline does not start: {log}"));
    let db = crate::support::database::pool(owned.database.options.clone().database(&owned.name));
    let company = Company::create(&db, "Acme").await;
    let api = Api::new(process.address, &company.key);
    crate::support::eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    let changes = (0..16).map(|number| {
        let api = &api;
        async move {
            let contact = json!({"name": format!("Ana {number}"), "number": format!("55119000000{number:02}")});
            api.post("/contacts", contact).await.status
        }
    });
    let statuses = join_all(changes).await;
    assert!(statuses.iter().all(|status| *status == 201), "{statuses:?}");
    let found = api.get("/contacts?search=ana").await;
    assert_eq!(found.body["data"].as_array().map(Vec::len), Some(16), "{}", found.body);
    process.kill();
    db.close().await;
    owned.drop().await;
}

#[actix_web::test]
async fn a_pooler_that_drops_the_settings_of_a_session_is_named() {
    let database = TestDatabase::migrated().await;
    let link = Link::without_settings(&database.options);
    let stderr = refusal(&link.url());
    assert!(stderr.contains("PgBouncer") && stderr.contains("must name PostgreSQL itself"), "{stderr}");
    database.drop().await;
}

#[actix_web::test]
async fn several_hosts_and_unknown_parameters_are_refused_without_a_password() {
    for (url, words) in [
        ("postgres://hotline:hidden@one.example:5432,two.example:5432/hotline", "one host"),
        ("postgres://hotline:hidden@db.example/hotline?sslmode=strict", "strict"),
    ] {
        let stderr = refusal(url);
        assert!(stderr.contains(words) && !stderr.contains("hidden"), "{stderr}");
    }
}

#[actix_web::test]
async fn errors_of_postgresql_are_reported_without_their_source_lines() {
    let owned = OwnedDatabase::create("UTF8").await;
    // What an earlier program left behind.
    owned.execute_inside("create table companies (id int)").await;
    let stderr = refusal(&owned.url());
    assert!(stderr.contains("companies") && !stderr.contains("at line"), "{stderr}");
    owned.drop().await;
}

/// The schemas that have tables of the service.
pub(super) async fn schemas_of_tables(connection: &mut PgConnection) -> Vec<String> {
    let schemas = "select distinct n.nspname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relname in ('companies', 'messages', '_sqlx_migrations') order by 1";
    sqlx::query_scalar(schemas).fetch_all(connection).await.expect("schemas")
}

#[actix_web::test]
async fn each_way_to_name_a_schema_of_its_own_works_with_extensions_anywhere() {
    for (preparations, parameter, schema) in [
        (&["create schema app authorization {role}", "alter role {role} set search_path = app"][..], "", "app"),
        (&["create schema \"my app\" authorization {role}"], "&options=-csearch_path%3D%22my%5C%20app%22", "my app"),
        // The first schema of the default path.
        (&["create schema {role} authorization {role}"], "", "{role}"),
        (
            &[
                "create schema app authorization {role}",
                "create schema ext",
                "grant usage on schema ext to {role}",
                "create extension unaccent schema ext",
                "create extension pg_trgm schema ext",
            ],
            "&options=-csearch_path%3Dapp",
            "app",
        ),
    ] {
        let owned = OwnedDatabase::create("UTF8").await;
        for statement in preparations {
            owned.execute_inside(&statement.replace("{role}", &owned.role)).await;
        }
        let (folder, url) = (data_folder(), format!("{}{parameter}", owned.url()));
        // The second start finds what the first has made.
        for _ in 0..2 {
            let mut serve = serving(folder.path());
            serve.args(["--database-url", &url]);
            let process = Process::start(folder.path(), &mut serve).unwrap_or_else(|log| panic!("{parameter}: {log}"));
            process.kill();
        }
        let options = owned.database.options.clone().database(&owned.name);
        let mut connection = options.connect().await.expect("the owned database");
        let schema = schema.replace("{role}", &owned.role);
        assert_eq!(schemas_of_tables(&mut connection).await, [schema.as_str()], "{parameter}");
        let fold = format!("select \"{schema}\".hotline_fold('Ação')");
        let folded: String = sqlx::query_scalar(AssertSqlSafe(fold)).fetch_one(&mut connection).await.expect("folded");
        assert_eq!(folded, "acao");
        connection.close().await.expect("a close");
        owned.drop().await;
    }
}

/// The process id and the lock key of the session of each writer of a database.
async fn writers(owned: &OwnedDatabase) -> Vec<(i32, i64)> {
    let options = owned.database.options.clone().database(&owned.name);
    let mut connection = options.connect().await.expect("the owned database");
    let locks = "select pid, classid::bigint << 32 | objid::bigint from pg_locks
        join pg_stat_activity using (pid) where locktype = 'advisory' and granted and objsubid = 1
            and application_name like 'hotline writer %' and datname = current_database()";
    let locks = sqlx::query_as(locks).fetch_all(&mut connection).await.expect("the locks");
    connection.close().await.expect("a close");
    locks
}

/// The lock that the first release takes in any schema. In `public` it is still used, so that an upgrade excludes that
/// release.
const FIRST_LOCK: i64 = 0x68_6f_74_6c_69_6e_65;

#[actix_web::test]
async fn several_services_in_schemas_of_one_database_serve_their_own_tables() {
    let owned = OwnedDatabase::create("UTF8").await;
    let mut services = Vec::new();
    // The first one creates the extensions, so `public` is on the path of the others.
    for schema in ["public", "app", "my_other"] {
        owned.execute_inside(&format!("create schema if not exists {schema} authorization {}", owned.role)).await;
        let folder = data_folder();
        let mut serve = serving(folder.path());
        serve.args(["--database-url", &format!("{}&options=-csearch_path%3D{schema}", owned.url())]);
        let process = Process::start(folder.path(), &mut serve).unwrap_or_else(|log| panic!("{schema}: {log}"));
        let options = owned.database.options.clone().database(&owned.name).username(&owned.role);
        let options = options.options([("search_path", format!("{schema}, public"))]);
        let db = crate::support::database::pool(options);
        let company = Company::create(&db, schema).await;
        db.close().await;
        let api = Api::new(process.address, &company.key);
        crate::support::eventually("the company is seen", || async { api.get("/tags").await.status == 200 }).await;
        services.push((schema, folder, process, api));
    }
    for (schema, _, _, api) in &services {
        api.post("/contacts", json!({"name": schema, "number": "5511900000001"})).await.data(201);
    }
    for (schema, _, _, api) in &services {
        let contacts = api.get("/contacts").await.data(200).clone();
        let names: Vec<_> = contacts.as_array().expect("a list").iter().map(|contact| &contact["name"]).collect();
        assert_eq!(names, [schema]);
    }
    let writers = writers(&owned).await;
    let keys: std::collections::BTreeSet<i64> = writers.iter().map(|(_, key)| *key).collect();
    assert_eq!((writers.len(), keys.len()), (services.len(), services.len()), "{writers:?}");
    assert!(keys.contains(&FIRST_LOCK), "{writers:?}");
    for (.., process, _) in services {
        process.kill();
    }
    owned.drop().await;
}
