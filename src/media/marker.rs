//! The id of a folder that processes share, in a file that the first of them creates. It distinguishes folders that
//! have the same path on different machines.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use hotline_persistence::key::{KEY_CHARACTERS, new_key};

/// The file's name. The folders of stored files have other names: their hour in hexadecimal digits.
const NAME: &str = "folder-id";

/// Read and write for its owner, read for others: processes may run as different users.
const MODE: u32 = 0o644;

/// How many times the file is read, with a pause in between, until another process has written it.
const READS_MAX: usize = 50;
const READ_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// The id of the folder, created if there is none.
///
/// # Errors
/// When the file cannot be read or written.
pub(super) fn id_of(folder: &Path) -> io::Result<String> {
    let path = folder.join(NAME);
    match OpenOptions::new().write(true).create_new(true).mode(MODE).open(&path) {
        Ok(mut file) => {
            let id = new_key("");
            file.write_all(id.as_bytes())?;
            file.sync_all()?;
            return Ok(id);
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    for _ in 0..READS_MAX {
        let mut text = String::new();
        std::fs::File::open(&path)?.take(KEY_CHARACTERS as u64 + 1).read_to_string(&mut text)?;
        let id = text.trim();
        if id.len() == KEY_CHARACTERS {
            return Ok(id.to_owned());
        }
        std::thread::sleep(READ_PAUSE);
    }
    Err(io::Error::new(ErrorKind::InvalidData, format!("{} has no id; remove it", path.display())))
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_its_id_and_others_have_their_own() {
        let (folder, other_folder) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let id = id_of(folder.path()).expect("an id");
        assert_eq!(id_of(folder.path()).expect("the same id"), id);
        assert_ne!(id_of(other_folder.path()).expect("another id"), id);
        std::fs::write(folder.path().join(NAME), "short").expect("damaged");
        assert!(id_of(folder.path()).is_err_and(|error| error.to_string().contains("folder-id")));
    }
}
