//! What `hotline backup` refuses, and what it leaves behind.

use std::collections::BTreeSet;

use hotline::exit_code::Exit;
use serde_json::{Value, json};

use super::{Installation, Postgres, backup_of, client, finish, names, run_json, run_refused, text};
use crate::process::{command, with_database};
use crate::support::{empty_folder, eventually};

#[actix_web::test]
async fn a_full_disk_ends_a_backup_with_its_exit_code_and_leaves_nothing() {
    let installation = Installation::new(Postgres::Private).await;
    let (logs, backups) = (empty_folder(), empty_folder());
    let mut process = installation.serve(logs.path());
    let company = installation.company().await;
    let api = client(&process, &company).await;
    for point in ["backup_write", "journal_copy"] {
        let mut command = installation.command(&["backup", text(backups.path())]);
        command.env("FAILPOINTS", format!("{point}=return"));
        let (code, stderr) = run_refused(command).await;
        assert_eq!(code, Some(74), "{stderr}");
        assert!(stderr.contains("cannot write") && stderr.lines().count() == 1, "{stderr}");
        assert_eq!(names(backups.path()), [".lock"], "a failed backup left files");
    }
    assert!(!installation.path().join("backup.json").exists(), "a backup that failed is recorded");
    let send = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "hello"});
    api.post("/messages", send).await.data(202);
    run_json(installation.command(&["backup", text(backups.path())])).await;
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

#[actix_web::test]
async fn a_backup_writes_one_file_into_the_data_folder_and_says_what_it_has() {
    let installation = Installation::new(Postgres::Private).await;
    let backups = empty_folder();
    // The data folder is as a first start leaves it.
    let logs = empty_folder();
    let mut process = installation.serve(logs.path());
    process.terminate();
    assert!(process.wait().success());
    let before: BTreeSet<String> = names(installation.path()).into_iter().collect();
    let printed = run_json(installation.command(&["backup", text(backups.path())])).await;
    let after: BTreeSet<String> = names(installation.path()).into_iter().collect();
    // A command that uses the private PostgreSQL leaves its lock.
    let new = after.difference(&before).filter(|name| !name.starts_with("postgres"));
    assert_eq!(new.collect::<Vec<_>>(), ["backup.json"]);
    let recorded = std::fs::read_to_string(installation.path().join("backup.json")).expect("the result");
    let recorded: Value = serde_json::from_str(&recorded).expect("JSON");
    assert_eq!(recorded, printed);
    let backup = backup_of(&printed);
    assert_eq!(names(&backup), ["database.dump", "journal", "manifest.json", "secrets.key", "sums.sha256"]);
    // Anyone can verify it like this.
    let mut verify = std::process::Command::new("sha256sum");
    let verified = verify.args(["--check", "--quiet", "sums.sha256"]).current_dir(&backup).status();
    assert!(verified.expect("sha256sum runs").success());
    let without_key = run_json(installation.command(&["backup", text(backups.path()), "--include-key=false"])).await;
    assert!(!names(&backup_of(&without_key)).contains(&"secrets.key".to_owned()));
}

#[actix_web::test]
async fn one_backup_at_a_time_writes_to_a_folder() {
    let installation = Installation::new(Postgres::Private).await;
    let backups = empty_folder();
    let lock = std::fs::File::create(backups.path().join(".lock")).expect("a lock");
    lock.try_lock().expect("locked");
    let (code, stderr) = run_refused(installation.command(&["backup", text(backups.path())])).await;
    assert_eq!(code, Some(Exit::Retry.code().into()), "{stderr}");
    assert!(stderr.contains("another backup") && stderr.contains("in progress"), "{stderr}");
    drop(lock);
    let (code, stderr) = run_refused(installation.command(&["backup", "/proc/backups"])).await;
    assert_eq!(code, Some(Exit::CannotCreate.code().into()), "{stderr}");
    // What an interrupted backup has left is removed.
    std::fs::create_dir_all(backups.path().join(".unfinished/journal")).expect("a folder");
    run_json(installation.command(&["backup", text(backups.path())])).await;
    assert_eq!(names(backups.path()).len(), 2, "{:?}", names(backups.path()));
}

#[actix_web::test]
async fn the_backup_that_was_made_last_is_the_newest_and_kept_whatever_the_clock_says() {
    let installation = Installation::new(Postgres::Private).await;
    let (logs, backups) = (empty_folder(), empty_folder());
    let process = installation.serve(logs.path());
    let backup = || run_json(installation.command(&["backup", text(backups.path()), "--keep", "2"]));
    // As if it was made while the clock was ahead.
    let ahead = backups.path().join("2099-01-01T00-00-00.000Z");
    std::fs::rename(backup_of(&backup().await), &ahead).expect("renamed");
    let second = backup_of(&backup().await);
    assert!(ahead.is_dir() && second.is_dir(), "{:?}", names(backups.path()));
    assert!(second > ahead, "{second:?} is the newest");
    let third = backup().await;
    assert_eq!(third["deletedBackups"], 1);
    assert!(!ahead.exists() && second.is_dir() && backup_of(&third).is_dir(), "{:?}", names(backups.path()));
    let restored =
        run_json(Installation::empty(Postgres::Private).await.command(&["restore", text(backups.path())])).await;
    assert_eq!(restored["backup"], third["backup"]);
    process.kill();
}

#[actix_web::test]
async fn a_backup_without_the_keys_that_credentials_need_says_so_and_deletes_none_that_has_them() {
    let installation = Installation::new(Postgres::Private).await;
    let (logs, backups) = (empty_folder(), empty_folder());
    let process = installation.serve(logs.path());
    let company = installation.company().await;
    let webhook = json!({"url": "https://example.com/hook"});
    client(&process, &company).await.post("/webhooks", webhook).await.data(201);
    let backup = || installation.command(&["backup", text(backups.path()), "--keep", "1"]);
    let with_keys = backup_of(&run_json(backup()).await);
    let key = installation.path().join("secrets.key");
    std::fs::write(&key, "no key").expect("written");
    let mut command = backup();
    command.arg("--json");
    let output = finish(command).await;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.contains("lacks keys") && stderr.contains("secrets.key"), "{stderr}");
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(printed["missingKeys"].as_array().map(Vec::len), Some(1));
    assert_eq!(printed["deletedBackups"], 0);
    assert_eq!(run_json(backup()).await["deletedBackups"], 1);
    assert!(with_keys.is_dir() && !backup_of(&printed).exists(), "the backup that has the keys is kept");
    process.kill();
}

#[actix_web::test]
async fn a_backup_with_another_data_folder_than_the_databases_is_refused() {
    let installation = Installation::new(Postgres::External).await;
    let (logs, backups, elsewhere) = (empty_folder(), empty_folder(), empty_folder());
    let process = installation.serve(logs.path());
    let mut command = command(elsewhere.path(), &["backup", text(backups.path())]);
    command.args(installation.options());
    let (code, stderr) = run_refused(command).await;
    assert_eq!(code, Some(Exit::Data.code().into()), "{stderr}");
    assert!(stderr.contains("is not the data folder of this database") && stderr.contains("--data-dir"), "{stderr}");
    assert_eq!(names(backups.path()), [".lock"]);
    process.kill();
    installation.drop().await;
}

#[actix_web::test]
async fn entries_that_the_tables_do_not_have_yet_are_in_a_backup() {
    let installation = Installation::new(Postgres::Private).await;
    let (logs, backups) = (empty_folder(), empty_folder());
    let process = installation.serve(logs.path());
    let company = installation.company().await;
    let api = client(&process, &company).await;
    let send =
        |body: &str| json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": body});
    api.post("/messages", send("before")).await.data(202);
    eventually("it is in the tables", || async { api.all("/messages").await.len() == 1 }).await;
    // From now on the tables take no message.
    with_database(installation.path(), async |db| {
        let mut lock = db.begin().await.expect("a transaction");
        sqlx::query("lock table messages in share mode").execute(&mut *lock).await.expect("a lock");
        for number in 0..20 {
            api.post("/messages", send(&format!("after {number}"))).await.data(202);
        }
        let printed = run_json(installation.command(&["backup", text(backups.path())])).await;
        let manifest = std::fs::read_to_string(backup_of(&printed).join("manifest.json")).expect("the manifest");
        let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
        let (watermark, last) = (&manifest["journal"]["watermark"], &manifest["journal"]["last"]);
        assert!(last.as_u64().expect("entries") >= watermark.as_u64().expect("a number") + 20, "{manifest}");
        lock.rollback().await.expect("released");
    })
    .await;
    process.kill();
    let restored = Installation::empty(Postgres::Private).await;
    run_json(restored.command(&["restore", text(backups.path())])).await;
    let logs = empty_folder();
    let process = restored.serve(logs.path());
    assert!(process.replayed() >= 20, "{}", process.replayed());
    assert_eq!(client(&process, &company).await.all("/messages").await.len(), 21);
    process.kill();
}
