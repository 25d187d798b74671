//! The folder of the database socket, and how to connect through it.
//!
//! The cluster trusts every local connection. That is safe because the socket is the only way in, and it
//! lies in a folder of mode 0700: nobody but the user PostgreSQL runs as, and root, can reach it.

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

/// Longest path of a socket: 107 bytes on Linux, 103 on macOS. One limit, so that both behave alike.
const SOCKET_PATH_MAX_BYTES: usize = 103;

/// Where the folder of a socket goes whose path would be too long. Not `TMPDIR`, which may differ between the
/// service and a command run beside it.
const SHORT_PARENT: &str = "/tmp";

/// Bytes of a hash used in names: 64 bits keep a handful of data folders apart.
const HASH_BYTES: usize = 8;

const PRIVATE: u32 = 0o700;
const PERMISSION_BITS: u32 = 0o7777;

/// Where the socket of the cluster in `cluster` is: inside it if the path fits.
pub(super) fn directory(cluster: &Path) -> PathBuf {
    let inside = cluster.join("socket");
    let file = inside.join(format!(".s.PGSQL.{PORT}"));
    // PostgreSQL reads a comma-separated list of folders, in which these characters have a meaning.
    let plain = inside
        .to_str()
        .is_some_and(|path| !path.contains(|letter: char| letter == ',' || letter == '"' || letter.is_whitespace()));
    if plain && file.as_os_str().len() <= SOCKET_PATH_MAX_BYTES {
        inside
    } else {
        Path::new(SHORT_PARENT).join(format!("hotline-{}", hash(cluster)))
    }
}

/// A short name for a path that is the same in every process.
pub(super) fn hash(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    digest.iter().take(HASH_BYTES).fold(String::new(), |mut name, byte| {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// Creates the folder, or verifies that the one there is private to the user: in a folder anybody may write
/// to, somebody else could have put it there first.
pub(super) fn prepare(directory: &Path, user: &OsUser) -> Result<(), ClusterError> {
    match DirBuilder::new().mode(PRIVATE).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(ClusterError::io("create", directory)(error));
        }
        _ => {}
    }
    let refuse = |reason| ClusterError::SocketDirectory { path: directory.to_owned(), reason };
    // Everything below goes through one open folder, so that it cannot be exchanged for a link in between.
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits())
        .open(directory)
        .map_err(|error| match error.raw_os_error() {
            Some(code) if code == Errno::ENOTDIR as i32 || code == Errno::ELOOP as i32 => refuse("it is not a folder"),
            _ => ClusterError::io("open", directory)(error),
        })?;
    let found = folder.metadata().map_err(ClusterError::io("read", directory))?;
    // Ours but not yet given away: just created, perhaps by a process that was killed right then.
    if found.uid() != user.uid() && found.uid() != geteuid().as_raw() {
        return Err(refuse("it belongs to another user"));
    }
    if found.mode() & PERMISSION_BITS != PRIVATE {
        folder.set_permissions(Permissions::from_mode(PRIVATE)).map_err(ClusterError::io("make private", directory))?;
    }
    user.give_open(&folder, directory)
}

/// How to connect to the cluster. Everything the environment could change is set.
pub(super) fn connect_options(directory: &Path) -> PgConnectOptions {
    PgConnectOptions::new_without_pgpass()
        .socket(directory)
        .port(PORT)
        .username(USER)
        .database(DATABASE)
        // The socket does not leave the machine.
        .ssl_mode(PgSslMode::Disable)
        .application_name("hotline")
}

/// The same as a URL, for psql and whoever else speaks libpq.
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
