//! What `hotline restore` refuses, before it writes anything.

use std::fs;
use std::path::{Path, PathBuf};

use hotline::exit_code::Exit;
use tempfile::TempDir;

use super::{Installation, backup_of, done, names, refused, text};
use crate::process::with_database;
use crate::support::{empty_folder, eventually};

/// A backup of an installation with a company, and its folder.
async fn backup() -> (TempDir, PathBuf) {
    let installation = Installation::new(true).await;
    let (logs, backups) = (empty_folder(), empty_folder());
    let mut process = installation.serve(logs.path());
    installation.company().await;
    process.terminate();
    assert!(process.wait().success());
    let printed = done(installation.command(&["backup", text(backups.path())])).await;
    (backups, backup_of(&printed))
}

async fn says(target: &Installation, backup: &Path, exit: Exit, words: &[&str]) {
    let (code, said) = refused(target.command(&["restore", text(backup)])).await;
    assert_eq!(code, Some(exit.code().into()), "{said}");
    for word in words {
        assert!(said.contains(word), "{word} is missing in {said}");
    }
}

#[actix_web::test]
async fn a_damaged_or_incomplete_backup_is_refused_and_nothing_is_made() {
    let (backups, backup) = backup().await;
    let target = Installation::empty(true).await;
    for name in ["database.dump", "secrets.key", "sums.sha256", "journal/id"] {
        let path = backup.join(name);
        let whole = fs::read(&path).expect("a file");
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        fs::write(&path, damaged).expect("written");
        says(&target, &backup, Exit::Data, &[name, "sum"]).await;
        fs::remove_file(&path).expect("removed");
        says(&target, &backup, Exit::Data, &[name, "missing"]).await;
        fs::write(&path, whole).expect("written");
    }
    let empty = empty_folder();
    says(&target, empty.path(), Exit::Data, &["no complete backup"]).await;
    assert_eq!(names(target.path()), [""; 0], "something was made");
    done(target.command(&["restore", text(backups.path())])).await;
}

#[actix_web::test]
async fn a_target_that_is_not_empty_is_refused_and_stays_as_it_is() {
    let (_backups, backup) = backup().await;
    let target = Installation::empty(true).await;
    fs::create_dir(target.path().join("journal")).expect("a folder");
    says(&target, &backup, Exit::Usage, &["is not empty", "`journal`", "--data-dir"]).await;
    fs::remove_dir(target.path().join("journal")).expect("removed");
    fs::write(target.path().join("secrets.key"), "other").expect("written");
    says(&target, &backup, Exit::Usage, &["secrets.key", "--key-file"]).await;
    fs::remove_file(target.path().join("secrets.key")).expect("removed");
    assert_eq!(names(target.path()), [""; 0], "something was made");

    // A database that has tables.
    let served = Installation::new(false).await;
    says(&served, &backup, Exit::Usage, &["not empty"]).await;
    served.drop().await;
}

#[actix_web::test]
async fn a_restore_that_fails_can_be_repeated() {
    let (_backups, backup) = backup().await;
    let target = Installation::empty(true).await;
    let mut command = target.command(&["restore", text(&backup)]);
    command.env("FAILPOINTS", "backup_write=return");
    let (code, said) = refused(command).await;
    assert_eq!(code, Some(74), "{said}");
    let left = names(target.path());
    assert!(left.iter().all(|name| name.starts_with("postgres")), "{left:?}");
    done(target.command(&["restore", text(&backup)])).await;
    with_database(target.path(), async |db| {
        let count = async || -> i64 {
            sqlx::query_scalar("select count(*) from companies").fetch_one(db).await.expect("a count")
        };
        eventually("the company is restored", || async { count().await == 1 }).await;
    })
    .await;
}
