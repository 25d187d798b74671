//! Each backup has all files of messages, and copies only those that it cannot link from the backup before it.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use hotline::exit_code::Exit;
use reqwest::Method;
use serde_json::json;

use super::{Installation, Postgres, backup_of, client, names, run_json, run_refused, text};
use crate::support::form::Form;
use crate::support::{Api, Company, empty_folder};

/// Bytes of a file.
const FILE_BYTES: usize = 40_000;

async fn send_file(api: &Api, company: &Company, number: u8) {
    let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01".to_vec();
    picture.resize(FILE_BYTES, number);
    let form = Form::default().text("type", "media").text("channelId", company.phone).text("number", "5511900000001");
    api.send_form(form.file("a.png", "image/png", &picture)).await.data(202);
}

/// The files of messages below a folder, each with its inode.
fn files(folder: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for hour in names(folder) {
        for company in names(&folder.join(&hour)) {
            for id in names(&folder.join(&hour).join(&company)) {
                let file = folder.join(&hour).join(&company).join(&id);
                found.push((format!("{hour}/{company}/{id}"), file.metadata().expect("a file").ino()));
            }
        }
    }
    found
}

#[actix_web::test]
async fn a_damaged_file_of_a_message_is_not_linked_into_the_next_backup_and_can_be_skipped_by_a_restore() {
    let installation = Installation::new(Postgres::Private).await;
    let (logs, backups) = (empty_folder(), empty_folder());
    let process = installation.serve(logs.path());
    let company = installation.company().await;
    let api = client(&process, &company).await;
    send_file(&api, &company, 1).await;
    let backup = || run_json(installation.command(&["backup", text(backups.path())]));
    let damaged = backup_of(&backup().await);
    let (name, _) = files(&damaged.join("media")).pop().expect("a file");
    let path = damaged.join("media").join(&name);
    let mut bytes = std::fs::read(&path).expect("a file");
    bytes[FILE_BYTES / 2] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    let intact = backup().await;
    assert_eq!((&intact["files"], &intact["linkedFiles"]), (&json!(1), &json!(0)));

    // The folder of files is missing, as if it was not mounted.
    std::fs::rename(installation.path().join("media"), installation.path().join("elsewhere")).expect("renamed");
    let keep = || run_json(installation.command(&["backup", text(backups.path()), "--keep", "1"]));
    let without_file = keep().await;
    assert_eq!((&without_file["missingFiles"], &without_file["deletedBackups"]), (&json!(1), &json!(0)));
    let again = keep().await;
    assert_eq!((&again["missingFiles"], &again["deletedBackups"]), (&json!(1), &json!(1)));
    assert!(!backup_of(&without_file).exists() && backup_of(&intact).is_dir(), "the one that has the file is kept");
    process.kill();

    let restored = Installation::empty(Postgres::Private).await;
    let (code, stderr) = run_refused(restored.command(&["restore", text(&damaged)])).await;
    assert_eq!(code, Some(Exit::Data.code().into()), "{stderr}");
    assert!(stderr.contains(&name) && stderr.contains("--skip-damaged-files"), "{stderr}");
    let skipped = run_json(restored.command(&["restore", text(&damaged), "--skip-damaged-files"])).await;
    assert_eq!((&skipped["files"], &skipped["damagedFiles"]), (&json!(0), &json!(1)));
    // The same with a file that cannot be read at all, as on a damaged disk.
    std::fs::remove_file(&path).and_then(|()| std::fs::create_dir(&path)).expect("a folder in its place");
    let unreadable = Installation::empty(Postgres::Private).await;
    let skipped = run_json(unreadable.command(&["restore", text(&damaged), "--skip-damaged-files"])).await;
    assert_eq!((&skipped["files"], &skipped["damagedFiles"]), (&json!(0), &json!(1)));
    let process = restored.serve(logs.path());
    assert_eq!(client(&process, &company).await.all("/messages?type=media").await.len(), 1);
    process.kill();
    run_json(Installation::empty(Postgres::Private).await.command(&["restore", text(&backup_of(&intact))])).await;
}

#[actix_web::test]
async fn a_file_that_cannot_be_examined_fails_the_backup() {
    let installation = Installation::new(Postgres::Private).await;
    let backups = empty_folder();
    let hour = installation.path().join("media/1a");
    std::fs::create_dir_all(hour.join("7")).expect("folders");
    // A link to itself: unlike something that was deleted, it cannot be examined, not even by root.
    for link in [hour.join("7/file"), hour.join("folder")] {
        symlink(link.file_name().expect("a name"), &link).expect("a link");
        let (code, stderr) = run_refused(installation.command(&["backup", text(backups.path())])).await;
        assert_eq!(code, Some(Exit::Io.code().into()), "{stderr}");
        assert!(stderr.contains(text(&link)), "{stderr}");
        std::fs::remove_file(&link).expect("removed");
    }
    // A link to nothing counts as a file that does not exist.
    symlink("nothing", hour.join("7/deleted")).expect("a link");
    let printed = run_json(installation.command(&["backup", text(backups.path())])).await;
    assert_eq!(printed["files"], 0, "{printed}");
}

#[actix_web::test]
async fn a_further_backup_has_every_file_and_copies_only_new_ones() {
    let installation = Installation::new(Postgres::Private).await;
    let (logs, backups) = (empty_folder(), empty_folder());
    let process = installation.serve(logs.path());
    let company = installation.company().await;
    let api = client(&process, &company).await;
    let backup = || run_json(installation.command(&["backup", text(backups.path()), "--keep", "2"]));
    send_file(&api, &company, 1).await;
    let first = backup().await;
    assert_eq!((&first["files"], &first["linkedFiles"]), (&json!(1), &json!(0)));
    send_file(&api, &company, 2).await;
    let second = backup().await;
    assert_eq!((&second["files"], &second["linkedFiles"]), (&json!(2), &json!(1)));
    let files_of = |printed: &serde_json::Value| files(&backup_of(printed).join("media"));
    let (one, two) = (files_of(&first), files_of(&second));
    assert_eq!(
        two.iter().filter(|file| one.contains(file)).count(),
        1,
        "the first file is there once: {one:?} {two:?}"
    );

    // More files than a backup may have.
    let mut command = installation.command(&["backup", text(backups.path())]);
    command.env("FAILPOINTS", "backup_files_max=return(1)");
    let (code, stderr) = run_refused(command).await;
    assert_eq!(code, Some(Exit::Configuration.code().into()), "{stderr}");
    assert!(stderr.contains("more than 1 files") && stderr.contains("--media-store"), "{stderr}");

    // The first backup is removed, and the second is still complete.
    let third = backup().await;
    assert_eq!(third["deletedBackups"], 1);
    assert!(!backup_of(&first).exists() && backup_of(&second).exists() && backup_of(&third).exists());
    process.kill();
    let restored = Installation::empty(Postgres::Private).await;
    run_json(restored.command(&["restore", text(&backup_of(&second))])).await;
    let logs = empty_folder();
    let process = restored.serve(logs.path());
    let api = client(&process, &company).await;
    let messages = api.all("/messages?type=media").await;
    assert_eq!(messages.len(), 2);
    for message in &messages {
        let url = message["media"]["url"].as_str().expect("an address");
        let path = &url[url.find("/media/").expect("the path of a file")..];
        let served = api.anonymous(Method::GET, path).send().await.expect("an answer");
        assert_eq!(served.status(), 200);
        assert_eq!(served.bytes().await.expect("a file").len(), FILE_BYTES);
    }
    process.kill();
}
