//! The operating system user PostgreSQL runs as.
//!
//! PostgreSQL refuses to run as root, and a database that processes input from the network should not run as root
//! anyway.

use std::fs::{File, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, fchown, lchown};
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User, getegid, geteuid};
use tokio::process::Command;

use super::ClusterError;

/// Users tried in this order when Hotline runs as root.
const PREFERRED_USERS: [&str; 2] = ["postgres", "nobody"];

/// Environment variables passed to PostgreSQL and initdb. All others are withheld: Hotline's environment contains
/// secrets of providers, which another user's processes must not see, and `PG…` variables would change the server.
const PASSED_VARIABLES: [&str; 4] = ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TZ"];

const ENTER_AS_OWNER: u32 = 0o100;
const ENTER_AS_GROUP: u32 = 0o010;
const ENTER_AS_OTHER: u32 = 0o001;

/// Opens a file of a data folder, or creates it. As root, a created file belongs to the folder's user, whose service
/// must open it as well. An existing file keeps its owner: it may be a link to a file elsewhere.
pub(super) fn open_or_create(options: &OpenOptions, path: &Path) -> std::io::Result<File> {
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        result => return result,
    }
    // Creating fails where a link exists, even one without a target.
    let file = match options.clone().create_new(true).write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return options.open(path),
        result => result?,
    };
    if let Some(folder) = path.parent().filter(|_| geteuid().is_root()) {
        let folder = folder.metadata()?;
        fchown(&file, Some(folder.uid()), Some(folder.gid()))?;
    }
    Ok(file)
}

/// The user PostgreSQL runs as.
#[derive(Debug, Clone)]
pub(super) struct OsUser {
    uid: u32,
    gid: u32,
    pub(super) name: String,
    /// Whether this is not the current user: running commands as another user requires root.
    is_other_user: bool,
}

impl OsUser {
    /// The owner of an existing cluster; otherwise an unprivileged user if running as root, or the current user.
    ///
    /// As root, an existing cluster keeps its owner, so that `sudo hotline …` neither fails nor takes files away from
    /// the service's user.
    pub(super) fn choose(cluster: Option<(&Path, &Metadata)>) -> Result<Self, ClusterError> {
        let current_user = geteuid();
        match cluster {
            Some((path, metadata)) if !current_user.is_root() && metadata.uid() != current_user.as_raw() => {
                Err(ClusterError::OtherOwner { path: path.to_owned(), uid: metadata.uid() })
            }
            Some((_, metadata)) if current_user.is_root() && metadata.uid() != 0 => {
                Ok(Self::from_ids(metadata.uid(), metadata.gid()))
            }
            _ if current_user.is_root() => PREFERRED_USERS
                .iter()
                .find_map(|name| User::from_name(name).ok().flatten())
                .map(|user| Self {
                    uid: user.uid.as_raw(),
                    gid: user.gid.as_raw(),
                    name: user.name,
                    is_other_user: true,
                })
                .ok_or(ClusterError::NoUser),
            _ => Ok(Self { is_other_user: false, ..Self::from_ids(current_user.as_raw(), getegid().as_raw()) }),
        }
    }

    fn from_ids(uid: u32, gid: u32) -> Self {
        let name = User::from_uid(Uid::from_raw(uid)).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
        Self { uid, gid, name, is_other_user: true }
    }

    pub(super) fn uid(&self) -> u32 {
        self.uid
    }

    /// A command that runs as this user, detached from our terminal, working directory and environment.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(PASSED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            // Messages in English, so that logs are the same everywhere; on macOS the server does not start without
            // this.
            .env("LC_ALL", "C")
            .current_dir("/")
            .stdin(std::process::Stdio::null());
        if self.is_other_user {
            // Dropping root with `uid` also drops every supplementary group.
            command.gid(self.gid).uid(self.uid);
        }
        command
    }

    /// Changes the owner of an open file or folder to this user.
    pub(super) fn change_owner(&self, file: &File, path: &Path) -> Result<(), ClusterError> {
        if !self.is_other_user {
            return Ok(());
        }
        fchown(file, Some(self.uid), Some(self.gid)).map_err(ClusterError::io("change the owner of", path))
    }

    /// Changes the owner of `path` and everything below it to this user, without following links.
    pub(super) fn change_owner_recursively(&self, path: &Path) -> Result<(), ClusterError> {
        if !self.is_other_user {
            return Ok(());
        }
        let metadata = path.symlink_metadata().map_err(ClusterError::io("read", path))?;
        if metadata.is_dir() {
            for entry in path.read_dir().map_err(ClusterError::io("list", path))? {
                self.change_owner_recursively(&entry.map_err(ClusterError::io("list", path))?.path())?;
            }
        }
        lchown(path, Some(self.uid), Some(self.gid)).map_err(ClusterError::io("change the owner of", path))
    }

    /// The first folder on the way to `path`, inclusive, that this user may not enter; `None` if there is none.
    pub(super) fn first_inaccessible(&self, path: &Path) -> Result<Option<PathBuf>, ClusterError> {
        if !self.is_other_user {
            return Ok(None);
        }
        let mut folders: Vec<&Path> = path.ancestors().collect();
        folders.reverse();
        for folder in folders {
            let metadata = folder.metadata().map_err(ClusterError::io("read", folder))?;
            if !self.may_enter(&metadata) {
                return Ok(Some(folder.to_owned()));
            }
        }
        Ok(None)
    }

    fn may_enter(&self, folder: &Metadata) -> bool {
        let needed_bit = if folder.uid() == self.uid {
            ENTER_AS_OWNER
        } else if folder.gid() == self.gid {
            ENTER_AS_GROUP
        } else {
            ENTER_AS_OTHER
        };
        self.uid == 0 || folder.mode() & needed_bit != 0
    }
}
