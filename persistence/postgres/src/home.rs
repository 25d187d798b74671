//! The locations of a cluster's parts, and the creation of their folders.

use std::fs::{DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::os_user::OsUser;
use super::{ClusterError, socket};

/// Name of the cluster, or of the link to it, in the data folder.
pub(super) const CLUSTER_NAME: &str = "postgres";

/// Folder for clusters whose data folder PostgreSQL's user cannot reach, such as one below `/root`.
const EXTERNAL_PARENT: &str = "/var/lib/hotline";

/// Mode of the data folder: other users may traverse it, as PostgreSQL's user must, but not list it.
pub(super) const TRAVERSE_ONLY: u32 = 0o711;

/// The locations of a cluster's parts.
#[derive(Debug, Clone)]
pub(super) struct Home {
    /// Hotline's data folder.
    pub(super) data_dir: PathBuf,
    /// PostgreSQL's data folder.
    pub(super) cluster: PathBuf,
    /// The link to create in the data folder, if a new cluster is stored elsewhere.
    link_to_create: Option<PathBuf>,
    pub(super) socket_dir: PathBuf,
    pub(super) log_file: PathBuf,
    pub(super) user: OsUser,
}

impl Home {
    /// Determines the cluster's location, and completes what a killed start left unfinished. Requires the owner lock.
    pub(super) fn prepare(data_dir: &Path) -> Result<Self, ClusterError> {
        let entry = data_dir.join(CLUSTER_NAME);
        match entry.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => Self::from_link(data_dir, entry),
            Ok(metadata) => {
                let user = OsUser::choose(Some((&entry, &metadata)))?;
                Self::new(data_dir, entry, None, user).check_reachable()
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Self::choose_location(data_dir, entry),
            Err(error) => Err(ClusterError::io("read", &entry)(error)),
        }
    }

    /// Finds an existing cluster and changes nothing; `None` if there is none.
    pub(super) fn locate(data_dir: &Path) -> Option<Self> {
        let entry = data_dir.join(CLUSTER_NAME);
        let metadata = entry.metadata().ok()?;
        let cluster = entry.canonicalize().ok()?;
        let user = OsUser::choose(Some((&cluster, &metadata))).ok()?;
        Some(Self::new(data_dir, cluster, None, user))
    }

    /// The temporary location of a new cluster before its rename, so that a killed process leaves nothing incomplete.
    pub(super) fn temporary_path(&self) -> PathBuf {
        temporary_path(&self.cluster)
    }

    /// Renames the finished cluster to its final name. For a cluster stored elsewhere the link is created first: it
    /// marks the temporary folder as complete. If the process is killed before the rename, the next start's `from_link`
    /// renames that folder.
    pub(super) fn finish(&self, fsync: bool) -> Result<(), ClusterError> {
        if let Some(link) = &self.link_to_create {
            symlink(&self.cluster, link).map_err(ClusterError::io("create the link", link))?;
            if fsync {
                sync_parent(link)?;
            }
            tracing::info!(
                cluster = %self.cluster.display(),
                user = self.user.name,
                "database is outside the data folder because PostgreSQL's user cannot access that folder"
            );
        }
        rename(&self.temporary_path(), &self.cluster)?;
        if fsync {
            sync_parent(&self.cluster)?;
        }
        Ok(())
    }

    fn new(data_dir: &Path, cluster: PathBuf, link_to_create: Option<PathBuf>, user: OsUser) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            socket_dir: socket::directory(&cluster),
            log_file: data_dir.join("postgres.log"),
            cluster,
            link_to_create,
            user,
        }
    }

    fn from_link(data_dir: &Path, link: PathBuf) -> Result<Self, ClusterError> {
        let target = link.read_link().map_err(ClusterError::io("read the link", &link))?;
        let target = data_dir.join(target);
        if !target.exists() {
            if !temporary_path(&target).join("PG_VERSION").exists() {
                return Err(ClusterError::TargetMissing { link, target });
            }
            rename(&temporary_path(&target), &target)?;
        }
        let cluster = target.canonicalize().map_err(ClusterError::io("find", &target))?;
        let metadata = cluster.metadata().map_err(ClusterError::io("read", &cluster))?;
        let user = OsUser::choose(Some((&cluster, &metadata)))?;
        Self::new(data_dir, cluster, None, user).check_reachable()
    }

    fn choose_location(data_dir: &Path, entry: PathBuf) -> Result<Self, ClusterError> {
        let user = OsUser::choose(None)?;
        if user.first_inaccessible(data_dir)?.is_none() {
            return Ok(Self::new(data_dir, entry, None, user));
        }
        let parent = Path::new(EXTERNAL_PARENT);
        create_folders(parent)?;
        let cluster = parent.join(socket::short_name(data_dir));
        if cluster.exists() {
            // It belongs to a removed data folder with this path, or its link was lost: never reuse or delete it.
            return Err(ClusterError::Unlinked { link: entry, target: cluster });
        }
        Self::new(data_dir, cluster, Some(entry), user).check_reachable()
    }

    fn check_reachable(self) -> Result<Self, ClusterError> {
        let parent = self.cluster.parent().unwrap_or(&self.cluster);
        match self.user.first_inaccessible(parent)? {
            Some(path) => Err(ClusterError::Unreachable { user: self.user.name, path }),
            None => Ok(self),
        }
    }
}

/// Creates Hotline's data folder if needed, and returns its real path.
pub(super) fn prepare_data_dir(path: &Path) -> Result<PathBuf, ClusterError> {
    if !path.exists() {
        create_folders(path)?;
    }
    path.canonicalize().map_err(ClusterError::io("find", path))
}

/// Ensures that a new name survives a machine crash.
fn sync_parent(path: &Path) -> Result<(), ClusterError> {
    let parent = path.parent().unwrap_or(path);
    std::fs::File::open(parent).and_then(|folder| folder.sync_all()).map_err(ClusterError::io("sync", parent))
}

fn temporary_path(cluster: &Path) -> PathBuf {
    let mut name = cluster.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

fn create_folders(path: &Path) -> Result<(), ClusterError> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(TRAVERSE_ONLY).create(path).map_err(ClusterError::io("create", path))?;
    // Set again, since the umask may have removed bits.
    std::fs::set_permissions(path, Permissions::from_mode(TRAVERSE_ONLY))
        .map_err(ClusterError::io("set the permissions of", path))
}

fn rename(from: &Path, to: &Path) -> Result<(), ClusterError> {
    std::fs::rename(from, to).map_err(ClusterError::io("move the new cluster to", to))
}
