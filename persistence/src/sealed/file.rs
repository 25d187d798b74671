//! The key file: one key per line, as 64 hexadecimal digits; text after `#` is a comment.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use super::{KEY_BYTES, Key, KeyError};

/// Maximum size of a key file: more than a thousand keys. A larger file is a mistake.
const FILE_BYTES_MAX: u64 = 128 * 1024;

/// Permissions of a created file: read and write for its owner.
const MODE: u32 = 0o600;

/// Permissions that a key file must not grant: access by others, and writing by its group. Group reading is allowed, as
/// containers mount secrets that way.
const FORBIDDEN_MODE: u32 = 0o027;

const HEADER: &str = "# The encryption keys of Hotline. The first key encrypts, all keys decrypt.\n# Back this file up separately \
from the database: without these keys, credentials must be entered again.\n";

/// Begins the comment that names a deleted key. By it, a running service that still encrypts with that key recognizes the
/// file as its own.
const DELETED: &str = "# deleted ";

/// Maximum number of deleted keys that a file names, the last ones.
const DELETED_MAX: usize = 100;

/// The content of a key file.
#[derive(Default)]
pub(super) struct KeyFile {
    pub(super) keys: Vec<Key>,
    /// The ids of deleted keys, the last one at the end.
    pub(super) deleted_ids: Vec<String>,
}

impl KeyFile {
    pub(super) fn contains(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id == id)
    }

    /// Whether this is a file that contains this key, or a later state of one.
    pub(super) fn succeeds(&self, id: &str) -> bool {
        self.contains(id) || self.deleted_ids.iter().any(|deleted| deleted == id)
    }
}

/// Reads the file; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<KeyFile>, KeyError> {
    let file_error = |reason: String| KeyError::File { path: path.to_owned(), reason };
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        result => result.map_err(|error| file_error(error.to_string()))?,
    };
    let metadata = file.metadata().map_err(|error| file_error(error.to_string()))?;
    check_metadata(path, &metadata).map_err(file_error)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| file_error(error.to_string()))?;
    let mut content = KeyFile::default();
    for (index, line) in text.lines().enumerate() {
        content.deleted_ids.extend(line.strip_prefix(DELETED).map(|id| id.trim().to_owned()));
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let mut bytes = [0; KEY_BYTES];
        // The line is not quoted: it may contain most of a key.
        hex::decode_to_slice(line, &mut bytes)
            .map_err(|_| file_error(format!("line {} is not a key of 64 hexadecimal digits", index + 1)))?;
        content.keys.push(Key::new(bytes)?);
    }
    if content.keys.is_empty() {
        return Err(file_error("contains no key".to_owned()));
    }
    Ok(Some(content))
}

/// Checks the type, size, owner and permissions of a key file. The error is the reason.
fn check_metadata(path: &Path, metadata: &Metadata) -> Result<(), String> {
    if !metadata.is_file() {
        return Err("is not a file".to_owned());
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(format!("is larger than {FILE_BYTES_MAX} bytes"));
    }
    let user = nix::unistd::geteuid().as_raw();
    if ![0, user].contains(&metadata.uid()) && !is_root_for_owner(user, path, metadata) {
        return Err(format!("belongs to user {}, not to this user ({user}) or root", metadata.uid()));
    }
    if metadata.mode() & FORBIDDEN_MODE != 0 {
        let mode = metadata.mode() & 0o7777;
        return Err(format!("is accessible to other users (mode {mode:04o}); run `chmod 600` on it"));
    }
    Ok(())
}

/// Whether root runs a command for the service's user, who owns the file and its folder.
fn is_root_for_owner(user: u32, path: &Path, file: &Metadata) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    user == 0 && std::fs::metadata(folder).is_ok_and(|folder| folder.uid() == file.uid())
}

/// Creates the file with a key, unless it exists already.
pub(super) fn create(path: &Path, key: &Key) -> Result<(), KeyError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        // The data folder of a first start: others may traverse it, as PostgreSQL's user must.
        DirBuilder::new().recursive(true).mode(0o711).create(folder).map_err(write_error(path))?;
    }
    let owner =
        path.parent().and_then(|folder| std::fs::metadata(folder).ok()).map(|folder| (folder.uid(), folder.gid()));
    let new_file = write_new(path, &format_file([key], &[]), owner, MODE)?;
    // A hard link, since unlike a rename it does not replace a file that another process created meanwhile.
    let link = std::fs::hard_link(&new_file, path);
    let _ = std::fs::remove_file(&new_file);
    match link {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(write_error(path)(error)),
        _ => sync_folder(path),
    }
}

/// Replaces the file atomically; its owner and mode stay.
pub(super) fn write<'a>(
    path: &Path,
    keys: impl IntoIterator<Item = &'a Key>,
    deleted_ids: &[String],
) -> Result<(), KeyError> {
    // A mounted secret is a symbolic link to its file.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let metadata = std::fs::metadata(&path).ok();
    let owner = metadata.as_ref().map(|file| (file.uid(), file.gid()));
    let mode = metadata.map_or(MODE, |file| file.mode() & 0o777);
    let new_file = write_new(&path, &format_file(keys, deleted_ids), owner, mode)?;
    std::fs::rename(&new_file, &path).map_err(write_error(&path))?;
    sync_folder(&path)
}

/// The text of a key file.
fn format_file<'a>(keys: impl IntoIterator<Item = &'a Key>, deleted_ids: &[String]) -> String {
    let keys = keys.into_iter().map(|key| format!("{} # {}\n", hex::encode(key.bytes), key.id));
    let deleted = deleted_ids.iter().skip(deleted_ids.len().saturating_sub(DELETED_MAX));
    std::iter::once(HEADER.to_owned()).chain(keys).chain(deleted.map(|id| format!("{DELETED}{id}\n"))).collect()
}

/// Writes a new file in the same folder, and returns its path.
fn write_new(path: &Path, text: &str, owner: Option<(u32, u32)>, mode: u32) -> Result<PathBuf, KeyError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", crate::key::new_key("")));
    let new_file = path.with_file_name(name);
    let write_error = write_error(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&new_file).map_err(&write_error)?;
    let result = file.write_all(text.as_bytes()).and_then(|()| {
        // Root may manage the file of another user's service.
        if let Some((user, group)) = owner.filter(|_| nix::unistd::geteuid().is_root()) {
            chown(&new_file, Some(user), Some(group))?;
        }
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()
    });
    result.map_err(|error| {
        let _ = std::fs::remove_file(&new_file);
        write_error(error)
    })?;
    Ok(new_file)
}

fn sync_folder(path: &Path) -> Result<(), KeyError> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(write_error(path))
}

fn write_error(path: &Path) -> impl Fn(std::io::Error) -> KeyError {
    let path = path.to_owned();
    move |source| KeyError::Unwritable { path: path.clone(), source }
}

#[cfg(test)]
mod tests {
    use super::super::Keyring;
    use super::*;

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::TempDir::new().expect("folder");
        let path = folder.path().join("secrets.key");
        let keys = Keyring::at(&path);
        keys.load_or_create().expect("a key file");
        keys.add_key().expect("another key");
        let mode = std::fs::metadata(&path).expect("file").mode() & 0o7777;
        assert_eq!(mode, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1, "a temporary file was left");
        for (mode, is_accepted) in [(0o400, true), (0o640, true), (0o644, false), (0o660, false), (0o602, false)] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("mode");
            assert_eq!(keys.load().is_ok(), is_accepted, "{mode:o}");
        }
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("mode");
        for (text, expected) in
            [("", "contains no key"), ("# nothing\n", "contains no key"), ("\nabc", "line 2"), ("\u{ff}", "line 1")]
        {
            std::fs::write(&path, text).expect("written");
            let message = keys.load().expect_err("no keys").to_string();
            assert!(message.contains(expected) && !message.contains("abc"), "{message}");
        }
        std::fs::write(&path, vec![b'#'; FILE_BYTES_MAX as usize + 1]).expect("written");
        let message = keys.load().expect_err("too large").to_string();
        assert!(message.contains("is larger than"), "{message}");
        assert_eq!(keys.ids().len(), 2, "the keys that were loaded before are kept");
        // In the format of `openssl rand -hex 32`.
        std::fs::write(&path, format!("{}\n", "0a".repeat(32))).expect("written");
        assert!(keys.load().expect("a key"));
    }

    #[test]
    fn concurrent_starts_use_the_same_key() {
        let folder = tempfile::TempDir::new().expect("folder");
        let path = folder.path().join("secrets.key");
        let keyrings: Vec<Keyring> = std::thread::scope(|scope| {
            let create = || {
                let keys = Keyring::at(&path);
                keys.load_or_create().expect("a key file");
                keys
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(create)).collect();
            threads.into_iter().map(|thread| thread.join().expect("a keyring")).collect()
        });
        assert!(keyrings.iter().all(|keys| keys.ids() == keyrings[0].ids() && keys.ids().len() == 1));
    }
}
