//! Where the parts of one cluster lie, and making the folders they lie in.

use std::fs::{DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::os_user::OsUser;
use super::{ClusterError, socket};

/// Name of the cluster, or of the link to it, in the data folder.
pub(super) const CLUSTER: &str = "postgres";

/// Where clusters go whose data folder lies where PostgreSQL's user cannot follow, such as below `/root`.
const ELSEWHERE: &str = "/var/lib/hotline";

/// Others may pass through the data folder, which PostgreSQL's user must, but not list it.
const PASS_ONLY: u32 = 0o711;

/// Where the parts of one cluster lie.
#[derive(Debug, Clone)]
pub(super) struct Home {
    /// Hotline's data folder.
    pub(super) data_dir: PathBuf,
    /// PostgreSQL's data folder.
    pub(super) cluster: PathBuf,
    /// The link in the data folder, when the cluster lies elsewhere.
    link: Option<PathBuf>,
    pub(super) socket_dir: PathBuf,
    pub(super) log_file: PathBuf,
    pub(super) user: OsUser,
}

impl Home {
    /// Decides where the cluster lies and finishes what a killed start left half done. Needs the owner lock.
    pub(super) fn prepare(data_dir: &Path) -> Result<Self, ClusterError> {
        let entry = data_dir.join(CLUSTER);
        match entry.symlink_metadata() {
            Ok(found) if found.is_symlink() => Self::linked(data_dir, entry),
            Ok(found) => {
                let user = OsUser::choose(Some((&entry, &found)))?;
                Self::new(data_dir, entry, None, user).reachable()
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Self::placed(data_dir, entry),
            Err(error) => Err(ClusterError::io("read", &entry)(error)),
        }
    }

    /// Where an existing cluster lies; changes nothing. None when there is none yet.
    pub(super) fn locate(data_dir: &Path) -> Option<Self> {
        let entry = data_dir.join(CLUSTER);
        let found = entry.metadata().ok()?;
        let cluster = entry.canonicalize().ok()?;
        let user = OsUser::choose(Some((&cluster, &found))).ok()?;
        Some(Self::new(data_dir, cluster, None, user))
    }

    /// Where a new cluster is made before it gets its name, so that a kill leaves nothing half made.
    pub(super) fn unfinished(&self) -> PathBuf {
        unfinished(&self.cluster)
    }

    /// Gives the finished cluster its name. For a cluster elsewhere the link comes first: it is the sign that
    /// the unfinished folder is complete, and `linked` continues from there after a kill in between.
    pub(super) fn finish(&self, fsync: bool) -> Result<(), ClusterError> {
        if let Some(link) = &self.link {
            symlink(&self.cluster, link).map_err(ClusterError::io("create the link", link))?;
            if fsync {
                sync_parent(link)?;
            }
            tracing::info!(
                cluster = %self.cluster.display(),
                user = self.user.name,
                "the database lies outside the data folder, which PostgreSQL's user cannot enter"
            );
        }
        rename(&self.unfinished(), &self.cluster)?;
        if fsync {
            sync_parent(&self.cluster)?;
        }
        Ok(())
    }

    fn new(data_dir: &Path, cluster: PathBuf, link: Option<PathBuf>, user: OsUser) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            socket_dir: socket::directory(&cluster),
            log_file: data_dir.join("postgres.log"),
            cluster,
            link,
            user,
        }
    }

    fn linked(data_dir: &Path, link: PathBuf) -> Result<Self, ClusterError> {
        let target = link.read_link().map_err(ClusterError::io("read the link", &link))?;
        let target = data_dir.join(target);
        if !target.exists() {
            if !unfinished(&target).join("PG_VERSION").exists() {
                return Err(ClusterError::Missing { link, target });
            }
            rename(&unfinished(&target), &target)?;
        }
        let cluster = target.canonicalize().map_err(ClusterError::io("find", &target))?;
        let found = cluster.metadata().map_err(ClusterError::io("read", &cluster))?;
        let user = OsUser::choose(Some((&cluster, &found)))?;
        Self::new(data_dir, cluster, None, user).reachable()
    }

    fn placed(data_dir: &Path, entry: PathBuf) -> Result<Self, ClusterError> {
        let user = OsUser::choose(None)?;
        if user.stopped_at(data_dir)?.is_none() {
            return Ok(Self::new(data_dir, entry, None, user));
        }
        let elsewhere = Path::new(ELSEWHERE);
        create_folders(elsewhere)?;
        let cluster = elsewhere.join(socket::hash(data_dir));
        // Left by a data folder of this name that was removed: never reused, never deleted.
        if cluster.exists() {
            return Err(ClusterError::Unlinked { link: entry, target: cluster });
        }
        Self::new(data_dir, cluster, Some(entry), user).reachable()
    }

    fn reachable(self) -> Result<Self, ClusterError> {
        let parent = self.cluster.parent().unwrap_or(&self.cluster);
        match self.user.stopped_at(parent)? {
            Some(path) => Err(ClusterError::Unreachable { user: self.user.name, path }),
            None => Ok(self),
        }
    }
}

/// Makes Hotline's data folder if need be, and says where it really is.
pub(super) fn data_dir(path: &Path) -> Result<PathBuf, ClusterError> {
    if !path.exists() {
        create_folders(path)?;
    }
    path.canonicalize().map_err(ClusterError::io("find", path))
}

/// Makes sure that a new name survives a crash of the machine.
fn sync_parent(path: &Path) -> Result<(), ClusterError> {
    let parent = path.parent().unwrap_or(path);
    std::fs::File::open(parent).and_then(|folder| folder.sync_all()).map_err(ClusterError::io("sync", parent))
}

fn unfinished(cluster: &Path) -> PathBuf {
    let mut name = cluster.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

fn create_folders(path: &Path) -> Result<(), ClusterError> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(PASS_ONLY).create(path).map_err(ClusterError::io("create", path))?;
    // Again, since the umask may have taken bits away.
    std::fs::set_permissions(path, Permissions::from_mode(PASS_ONLY))
        .map_err(ClusterError::io("set the permissions of", path))
}

fn rename(from: &Path, to: &Path) -> Result<(), ClusterError> {
    std::fs::rename(from, to).map_err(ClusterError::io("name the new cluster", to))
}
