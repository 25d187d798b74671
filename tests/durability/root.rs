//! Root manages an installation of another user, and does not take it away from that user.

use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use crate::process::{Process, data_folder, run};

/// A user without a name, who has no other files.
const USER: u32 = 12_345;

/// The files of a folder that belong to root, without those in subfolders, which are PostgreSQL's.
fn files_of_root(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let of_root = entries.filter(|entry| entry.metadata().expect("metadata").uid() == 0);
    of_root.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
#[ignore = "needs root, to give a folder to another user"]
fn commands_of_root_create_files_of_the_folders_user_and_read_its_key_as_root() {
    let folder = data_folder();
    chown(folder.path(), Some(USER), Some(USER)).expect("another owner");
    let created = run(folder.path(), &["company", "create", "Acme", "--json"]);
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    let company: serde_json::Value = serde_json::from_slice(&created.stdout).expect("JSON");
    let id = company["id"].to_string();
    for name in ["One", "Two"] {
        // The first creates the key for the folder's user, the second reads it.
        let channel = ["channel", "create", name, "--company", &id, "--type", "webchat"];
        let created = run(folder.path(), &channel);
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    }
    let key = std::fs::metadata(folder.path().join("secrets.key")).expect("a key file");
    assert_eq!(key.uid(), USER);
    assert_eq!(files_of_root(folder.path()), [""; 0], "the folder's user could not open these");
    let refused = Process::try_serve(folder.path(), &[]).err().expect("root does not serve there");
    assert!(refused.contains("sudo -u '#12345' hotline serve"), "{refused}");
    // Apart from the test's own log, root has created nothing.
    assert_eq!(files_of_root(folder.path()), ["service.log"]);
}

#[test]
#[ignore = "needs root"]
fn serving_as_root_is_warned_of_in_one_line_as_root() {
    let folder = crate::support::template::prepared_folder();
    let mut process = Process::serve(folder.path());
    let warned = process.log().lines().filter(|line| line.contains("the service runs as root")).count();
    assert_eq!(warned, 1, "{}", process.log());
    process.terminate();
    assert!(process.wait().success());
}
