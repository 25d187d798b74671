//! The key file: one key per line, as 64 hexadecimal digits; text after `#` is a comment.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use super::{KEY_BYTES, Key, KeyError};

/// Maximum size of a key file: a thousand keys. A larger file was named by mistake.
const FILE_BYTES_MAX: u64 = 128 * 1024;

/// Permissions of a created file: read and write for its owner.
const MODE: u32 = 0o600;

/// Permissions that a key file must not grant: access by others, and writing by its group. Group reading is allowed, as
/// containers mount secrets that way.
const TOO_OPEN: u32 = 0o027;

const HEAD: &str = "# The encryption keys of Hotline. The first key encrypts, all keys decrypt.\n# Back this file up separately \
from the database: without these keys, credentials must be entered again.\n";

/// Reads the keys; `None` if the file does not exist.
pub(super) fn read(path: &Path) -> Result<Option<Vec<Key>>, KeyError> {
    let refused = |reason: String| KeyError::File { path: path.to_owned(), reason };
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| refused(error.to_string()))?,
    };
    let about = file.metadata().map_err(|error| refused(error.to_string()))?;
    if !about.is_file() {
        return Err(refused("is not a file".to_owned()));
    }
    let own = nix::unistd::geteuid().as_raw();
    if ![0, own].contains(&about.uid()) {
        return Err(refused(format!("belongs to user {}, not to this user ({own}) or root", about.uid())));
    }
    if about.mode() & TOO_OPEN != 0 {
        return Err(refused(format!(
            "is accessible to other users (mode {:04o}); run `chmod 600` on it",
            about.mode() & 0o7777
        )));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| refused(error.to_string()))?;
    let mut keys = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let mut bytes = [0; KEY_BYTES];
        // The line is not quoted: it may contain most of a key.
        hex::decode_to_slice(line, &mut bytes)
            .map_err(|_| refused(format!("line {} is not a key of 64 hexadecimal digits", index + 1)))?;
        keys.push(Key::new(bytes)?);
    }
    if keys.is_empty() {
        return Err(refused("contains no key".to_owned()));
    }
    Ok(Some(keys))
}

/// Creates the file with a key, unless it exists already.
pub(super) fn create(path: &Path, key: &Key) -> Result<(), KeyError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        // The data folder of a first start: others may traverse it, as PostgreSQL's user must.
        DirBuilder::new().recursive(true).mode(0o711).create(folder).map_err(failed(path))?;
    }
    let owner =
        path.parent().and_then(|folder| std::fs::metadata(folder).ok()).map(|folder| (folder.uid(), folder.gid()));
    let fresh = written(path, [key], owner, MODE)?;
    // A hard link, since unlike a rename it does not replace a file that another process created meanwhile.
    let linked = std::fs::hard_link(&fresh, path);
    let _ = std::fs::remove_file(&fresh);
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(failed(path)(error)),
        _ => synced(path),
    }
}

/// Replaces the file atomically; its owner and mode stay.
pub(super) fn write<'a>(path: &Path, keys: impl IntoIterator<Item = &'a Key>) -> Result<(), KeyError> {
    // A mounted secret is a symbolic link to its file.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let about = std::fs::metadata(&path).ok();
    let owner = about.as_ref().map(|file| (file.uid(), file.gid()));
    let mode = about.map_or(MODE, |file| file.mode() & 0o777);
    let fresh = written(&path, keys, owner, mode)?;
    std::fs::rename(&fresh, &path).map_err(failed(&path))?;
    synced(&path)
}

/// Writes these keys to a new file in the same folder.
fn written<'a>(
    path: &Path,
    keys: impl IntoIterator<Item = &'a Key>,
    owner: Option<(u32, u32)>,
    mode: u32,
) -> Result<PathBuf, KeyError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", crate::key::new_key("")));
    let fresh = path.with_file_name(name);
    let failed = failed(path);
    let mut text = HEAD.to_owned();
    for key in keys {
        text.push_str(&format!("{} # {}\n", hex::encode(key.bytes), key.id));
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&fresh).map_err(&failed)?;
    let outcome = file.write_all(text.as_bytes()).and_then(|()| {
        // Root may manage the file of another user's service.
        if let Some((user, group)) = owner.filter(|_| nix::unistd::geteuid().is_root()) {
            chown(&fresh, Some(user), Some(group))?;
        }
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()
    });
    outcome.map_err(|error| {
        let _ = std::fs::remove_file(&fresh);
        failed(error)
    })?;
    Ok(fresh)
}

fn synced(path: &Path) -> Result<(), KeyError> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(path))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> KeyError {
    let path = path.to_owned();
    move |error| KeyError::File { path: path.clone(), reason: format!("cannot be written: {error}") }
}

#[cfg(test)]
mod tests {
    use super::super::Keyring;
    use super::*;

    #[test]
    fn the_file_is_its_owners_alone_and_one_that_is_open_to_others_is_refused() {
        let folder = tempfile::TempDir::new().expect("folder");
        let path = folder.path().join("secrets.key");
        let keys = Keyring::at(&path);
        keys.load_or_create().expect("a key file");
        keys.add_key().expect("another key");
        let mode = std::fs::metadata(&path).expect("file").mode() & 0o7777;
        assert_eq!(mode, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1, "something is left beside it");
        for (mode, is_taken) in [(0o400, true), (0o640, true), (0o644, false), (0o660, false), (0o602, false)] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("mode");
            assert_eq!(keys.load().is_ok(), is_taken, "{mode:o}");
        }
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("mode");
        for (text, said) in
            [("", "contains no key"), ("# nothing\n", "contains no key"), ("\nabc", "line 2"), ("\u{ff}", "line 1")]
        {
            std::fs::write(&path, text).expect("written");
            let told = keys.load().expect_err("no keys").to_string();
            assert!(told.contains(said) && !told.contains("abc"), "{told}");
        }
        assert_eq!(keys.ids().len(), 2, "what was read before stays");
        // In the format of `openssl rand -hex 32`.
        std::fs::write(&path, format!("{}\n", "0a".repeat(32))).expect("written");
        assert!(keys.load().expect("a key"));
    }

    #[test]
    fn who_comes_second_takes_the_first_ones_key() {
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
