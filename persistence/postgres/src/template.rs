//! For tests and benches: clusters that are created once and copied. `initdb`, the first start and the creation of a
//! schema take much longer than a copy.

use std::fs::{DirBuilder, File, create_dir_all, remove_dir_all, rename};
use std::io::Error;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Command;

use super::home::{CLUSTER_NAME, TRAVERSE_ONLY};
use super::{Cluster, ClusterError, ClusterOptions, shared_folder};

/// Copies the template cluster `name` into `data_dir`, which must not contain a cluster yet. If there is no template of
/// this version, those of other versions are removed, and one is created with a database that `prepare` sets up.
///
/// # Errors
/// When the template cannot be created, started, stopped or copied.
pub async fn copy(
    name: &str,
    version: &str,
    data_dir: &Path,
    prepare: impl AsyncFnOnce(&Cluster) -> Result<(), ClusterError>,
) -> Result<(), ClusterError> {
    let folder = shared_folder();
    // PostgreSQL's user must be able to traverse the folders; other users need not list them.
    let create_folders = |path: &Path| DirBuilder::new().recursive(true).mode(TRAVERSE_ONLY).create(path);
    create_folders(&folder).map_err(ClusterError::io("create", &folder))?;
    let prefix = format!("template-{name}-");
    let template = folder.join(format!("{prefix}{version}"));
    let lock_path = folder.join("template.lock");
    {
        // Other callers wait until this block closes the file.
        let lock = File::create(&lock_path).map_err(ClusterError::io("create", &lock_path))?;
        lock.lock().map_err(ClusterError::io("lock", &lock_path))?;
        if !template.exists() {
            remove_templates(&folder, &prefix)?;
            let unfinished = folder.join(format!("{prefix}unfinished"));
            create_folders(&unfinished).map_err(ClusterError::io("create", &unfinished))?;
            let cluster = Cluster::start(ClusterOptions::for_tests(&unfinished)).await?;
            prepare(&cluster).await?;
            cluster.stop().await?;
            rename(&unfinished, &template).map_err(ClusterError::io("rename", &unfinished))?;
        }
    }
    create_dir_all(data_dir).map_err(ClusterError::io("create", data_dir))?;
    let cluster_path = template.join(CLUSTER_NAME);
    // `-a` preserves owners and modes: PostgreSQL refuses a folder of another user.
    let result = Command::new("cp").arg("-a").arg(&cluster_path).arg(data_dir).status();
    match result {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(ClusterError::io("copy", &cluster_path)(Error::other(status.to_string()))),
        Err(error) => Err(ClusterError::io("copy", &cluster_path)(error)),
    }
}

/// Removes the templates whose names begin with `prefix`, including an unfinished one.
fn remove_templates(folder: &Path, prefix: &str) -> Result<(), ClusterError> {
    for entry in folder.read_dir().map_err(ClusterError::io("read", folder))? {
        let entry = entry.map_err(ClusterError::io("read", folder))?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            remove_dir_all(entry.path()).map_err(ClusterError::io("remove", &entry.path()))?;
        }
    }
    Ok(())
}
