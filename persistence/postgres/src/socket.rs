//! The folder of the database socket, and connecting through it.
//!
//! The cluster trusts every local connection. That is safe because the socket is the only way to connect, and is in a
//! folder with mode 0700: only PostgreSQL's user and root can reach it.

use std::fmt::Write;
use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use sha2::{Digest, Sha256};
use sqlx::postgres::{PgConnectOptions, PgSslMode};

use super::os_user::OsUser;
use super::{ClusterError, DATABASE, USER};

/// Part of the socket's file name; nothing listens on a TCP port.
pub(super) const PORT: u16 = 5432;

/// Maximum length of a socket path: 107 bytes on Linux, 103 on macOS. Use the smaller one on both.
const SOCKET_PATH_MAX_BYTES: usize = 103;

/// Parent folder for a socket whose path would be too long. Not `TMPDIR`, which may differ between the service and a
/// command.
const SHORT_PARENT: &str = "/tmp";

/// Bytes of a hash used in names: 64 bits are enough to distinguish a few data folders.
const HASH_BYTES: usize = 8;

const PRIVATE: u32 = 0o700;
const PERMISSION_BITS: u32 = 0o7777;

/// The socket folder of the cluster in `cluster`: inside it, or in `/tmp` if that path is too long or contains special
/// characters.
pub(super) fn directory(cluster: &Path) -> PathBuf {
    let inside = cluster.join("socket");
    let file = inside.join(format!(".s.PGSQL.{PORT}"));
    // PostgreSQL parses a comma-separated list of folders, in which these characters are special.
    let is_plain = inside.to_str().is_some_and(|path| {
        !path.contains(|character: char| character == ',' || character == '"' || character.is_whitespace())
    });
    if is_plain && file.as_os_str().len() <= SOCKET_PATH_MAX_BYTES {
        inside
    } else {
        Path::new(SHORT_PARENT).join(format!("hotline-{}", short_name(cluster)))
    }
}

/// A short name for a path, the same in every process.
pub(super) fn short_name(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    digest.iter().take(HASH_BYTES).fold(String::new(), |mut name, byte| {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// Creates the folder, or verifies that an existing one is private to the user: in a world-writable parent, another
/// user could have created it first.
pub(super) fn prepare(directory: &Path, user: &OsUser) -> Result<(), ClusterError> {
    match DirBuilder::new().mode(PRIVATE).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(ClusterError::io("create", directory)(error));
        }
        _ => {}
    }
    let refuse = |reason| ClusterError::SocketDirectory { path: directory.to_owned(), reason };
    // Everything below uses one open folder, so that it cannot be replaced by a link in between.
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits())
        .open(directory)
        .map_err(|error| match error.raw_os_error() {
            Some(code) if code == Errno::ENOTDIR as i32 || code == Errno::ELOOP as i32 => refuse("it is not a folder"),
            _ => ClusterError::io("open", directory)(error),
        })?;
    let metadata = folder.metadata().map_err(ClusterError::io("read", directory))?;
    // The folder may still belong to our user: just created, perhaps by a process that was killed right after.
    if metadata.uid() != user.uid() && metadata.uid() != geteuid().as_raw() {
        return Err(refuse("it belongs to another user"));
    }
    if metadata.mode() & PERMISSION_BITS != PRIVATE {
        folder
            .set_permissions(Permissions::from_mode(PRIVATE))
            .map_err(ClusterError::io("restrict access to", directory))?;
    }
    user.change_owner(&folder, directory)
}

/// Connection options for the cluster. Everything that the environment could change is set explicitly.
pub(super) fn connect_options(directory: &Path) -> PgConnectOptions {
    PgConnectOptions::new_without_pgpass()
        .socket(directory)
        .port(PORT)
        .username(USER)
        .database(DATABASE)
        // The socket is local to the machine.
        .ssl_mode(PgSslMode::Disable)
        .application_name("hotline")
}

/// [`connect_options`] as a URL, for psql and other libpq programs.
pub(super) fn url(directory: &Path) -> String {
    let mut host = String::new();
    for byte in directory.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                host.push(char::from(*byte));
            }
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(host, "%{byte:02X}");
            }
        }
    }
    format!("postgres:///{DATABASE}?host={host}&port={PORT}&user={USER}")
}
