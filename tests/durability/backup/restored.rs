//! What `hotline restore` refuses, before it writes anything.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use hotline::exit_code::Exit;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::{Installation, Postgres, Tables, backup_of, names, run_json, run_refused, text};
use crate::process::with_database;
use crate::support::{empty_folder, eventually};

/// A backup of an installation with a company, and its folder.
async fn create_backup() -> (TempDir, PathBuf) {
    let installation = Installation::new(Postgres::Private).await;
    let (logs, backups) = (empty_folder(), empty_folder());
    let mut process = installation.serve(logs.path());
    installation.company().await;
    process.terminate();
    assert!(process.wait().success());
    let printed = run_json(installation.command(&["backup", text(backups.path())])).await;
    (backups, backup_of(&printed))
}

async fn assert_refused(target: &Installation, backup: &Path, exit: Exit, words: &[&str]) {
    let (code, stderr) = run_refused(target.command(&["restore", text(backup)])).await;
    assert_eq!(code, Some(exit.code().into()), "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "{word} is missing in {stderr}");
    }
}

#[actix_web::test]
async fn a_damaged_or_incomplete_backup_is_refused_and_no_files_are_left() {
    let (backups, backup) = create_backup().await;
    let target = Installation::empty(Postgres::Private).await;
    for name in ["database.dump", "secrets.key", "sums.sha256", "journal/id"] {
        let path = backup.join(name);
        let intact = fs::read(&path).expect("a file");
        let mut damaged = intact.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        fs::write(&path, damaged).expect("written");
        assert_refused(&target, &backup, Exit::Data, &[name, "sum"]).await;
        fs::remove_file(&path).expect("removed");
        assert_refused(&target, &backup, Exit::Data, &[name, "missing"]).await;
        fs::write(&path, intact).expect("written");
    }
    let manifest = backup.join("manifest.json");
    let intact = fs::read_to_string(&manifest).expect("a file");
    fs::write(&manifest, intact.clone() + &" ".repeat(1 << 20)).expect("written");
    assert_refused(&target, &backup, Exit::Data, &["manifest.json", "more than 1048576 bytes"]).await;
    fs::write(&manifest, intact).expect("written");
    let empty = empty_folder();
    assert_refused(&target, empty.path(), Exit::Data, &["no complete backup"]).await;
    assert_eq!(names(target.path()), [""; 0], "a refused restore left files");
    run_json(target.command(&["restore", text(backups.path())])).await;
}

#[actix_web::test]
async fn a_target_that_is_not_empty_is_refused_and_stays_as_it_is() {
    let (_backups, backup) = create_backup().await;
    let target = Installation::empty(Postgres::Private).await;
    fs::create_dir(target.path().join("journal")).expect("a folder");
    assert_refused(&target, &backup, Exit::Usage, &["is not empty", "`journal`", "--data-dir"]).await;
    fs::remove_dir(target.path().join("journal")).expect("removed");
    fs::write(target.path().join("secrets.key"), "other").expect("written");
    assert_refused(&target, &backup, Exit::Usage, &["secrets.key", "--key-file"]).await;
    fs::remove_file(target.path().join("secrets.key")).expect("removed");
    assert_eq!(names(target.path()), [""; 0], "a refused restore left files");

    // A database that has tables.
    let served = Installation::new(Postgres::External).await;
    assert_refused(&served, &backup, Exit::Usage, &["not empty"]).await;
    served.drop().await;
}

/// Creates a schema, which later connections to the installation's database use for its tables.
async fn use_schema(installation: &Installation, schema: &str) {
    let Tables::External(database) = &installation.tables else { panic!("the database is private") };
    for statement in [
        format!("create schema \"{schema}\""),
        format!(
            "do $$ begin execute format('alter database %I set search_path = \"{schema}\"', current_database()); end $$"
        ),
    ] {
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&database.db).await.expect("executed");
    }
}

#[actix_web::test]
async fn the_tables_of_a_schema_are_restored_into_one_that_exists_and_nowhere_else() {
    let source = Installation::empty(Postgres::External).await;
    // A name whose capitals PostgreSQL and its programs would read as small letters, if it was not quoted.
    use_schema(&source, "Support").await;
    let (logs, backups) = (empty_folder(), empty_folder());
    let mut process = source.serve(logs.path());
    process.terminate();
    assert!(process.wait().success());
    run_json(source.command(&["company", "create", "Acme"])).await;
    // A backup does not have what other programs keep in this database.
    let Tables::External(database) = &source.tables else { panic!("the database is private") };
    for statement in ["create schema support", "create schema others", "create table others.diary (entry text)"] {
        sqlx::query(statement).execute(&database.db).await.expect("executed");
    }
    run_json(source.command(&["backup", text(backups.path())])).await;

    let target = Installation::empty(Postgres::External).await;
    let words = ["`Support`", "`public`", "create schema \"Support\"", "set search_path"];
    assert_refused(&target, backups.path(), Exit::Configuration, &words).await;
    use_schema(&target, "Support").await;
    run_json(target.command(&["restore", text(backups.path())])).await;
    let listed = run_json(target.command(&["company", "list"])).await;
    assert_eq!(listed["companies"].as_array().map(Vec::len), Some(1), "{listed}");
    let Tables::External(database) = &target.tables else { panic!("the database is private") };
    let diary: Option<String> = sqlx::query_scalar("select to_regclass('others.diary')::text")
        .fetch_one(&database.db)
        .await
        .expect("an answer");
    assert_eq!(diary, None);
    source.drop().await;
    target.drop().await;
}

#[actix_web::test]
async fn every_command_refuses_what_an_interrupted_restore_leaves_and_the_database_stays_empty() {
    let (_backups, backup) = create_backup().await;
    let target = Installation::empty(Postgres::External).await;
    // A `pg_restore` that does not end, so that the restore is killed while it runs.
    let programs = empty_folder();
    let program = programs.path().join("pg_restore");
    let lines = "#!/bin/sh\n[ \"$1\" = --version ] && exec pg_restore --version\nexec sleep 600\n";
    fs::write(&program, lines).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    let mut command = target.command(&["restore", text(&backup), "--pg-bin", text(programs.path())]);
    let mut restore = command.process_group(0).spawn().expect("hotline runs");
    let key = target.path().join("secrets.key");
    eventually("the files are restored", || async { key.exists() }).await;
    killpg(Pid::from_raw(restore.id().try_into().expect("a process")), Signal::SIGKILL).expect("killed");
    restore.wait().expect("ended");

    for arguments in
        [&["serve"][..], &["company", "list"], &["check"], &["backup", text(backup.parent().expect("a folder"))]]
    {
        let (code, stderr) = run_refused(target.command(arguments)).await;
        assert_eq!(code, Some(Exit::Data.code().into()), "{arguments:?}: {stderr}");
        assert!(stderr.contains("was interrupted") && stderr.contains("repeat the restore"), "{arguments:?}: {stderr}");
    }
    assert_refused(&target, &backup, Exit::Data, &["was interrupted"]).await;
    for name in names(target.path()) {
        let path = target.path().join(name);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removed");
    }
    // The database has no tables, or the restore would be refused.
    run_json(target.command(&["restore", text(&backup)])).await;
    target.drop().await;
}

#[actix_web::test]
async fn a_restore_that_fails_can_be_repeated() {
    let (_backups, backup) = create_backup().await;
    let target = Installation::empty(Postgres::Private).await;
    for (point, exit) in [("backup_write=return", Exit::Io), ("restore_tables=panic", Exit::Internal)] {
        let mut command = target.command(&["restore", text(&backup)]);
        command.env("FAILPOINTS", point);
        let (code, stderr) = run_refused(command).await;
        assert_eq!(code, Some(exit.code().into()), "{point}: {stderr}");
        let left = names(target.path());
        assert!(left.iter().all(|name| name.starts_with("postgres")), "{point}: {left:?}");
    }
    run_json(target.command(&["restore", text(&backup)])).await;
    with_database(target.path(), async |db| {
        let count = async || -> i64 {
            sqlx::query_scalar("select count(*) from companies").fetch_one(db).await.expect("a count")
        };
        eventually("the company is restored", || async { count().await == 1 }).await;
    })
    .await;
}

#[actix_web::test]
async fn a_restore_fails_if_files_or_keys_on_another_disk_cannot_be_synced() {
    let (_backups, backup) = create_backup().await;
    let target = Installation::empty(Postgres::Private).await;
    let disk = empty_folder();
    let (media, key) = (disk.path().join("media"), disk.path().join("secrets.key"));
    let restore = ["restore", text(&backup), "--media-shared", text(&media), "--key-file", text(&key)];
    // The mark and the data folder are synced first.
    for (synced, place) in [(2, &media), (3, &key)] {
        fs::create_dir(&media).expect("a folder");
        let mut command = target.command(&restore);
        command.env("FAILPOINTS", format!("backup_sync={synced}*off->1*return"));
        let (code, stderr) = run_refused(command).await;
        assert_eq!(code, Some(Exit::Io.code().into()), "{stderr}");
        assert!(stderr.contains(&format!("cannot sync `{}`", place.display())), "{stderr}");
        assert_eq!(names(disk.path()), [""; 0], "a failed restore left files");
    }
    run_json(target.command(&restore)).await;
    assert!(key.is_file(), "the key is restored");
}
