//! For tests and benches: clusters that are made once and copied. `initdb`, the first start and a schema take much
//! longer than a copy.

use std::fs::{DirBuilder, File, create_dir_all, remove_dir_all, rename};
use std::io::Error;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Command;

use super::home::{CLUSTER, PASS_ONLY};
use super::{Cluster, ClusterError, ClusterOptions, shared_folder};

/// Puts a copy of the cluster called `name` into the data folder, which has none. The first caller of a version makes it,
/// and removes those of others: `prepare` does what is to be done once in its database.
///
/// # Errors
/// When it cannot be made, started, stopped or copied.
pub async fn copy(
    name: &str,
    version: &str,
    data_dir: &Path,
    prepare: impl AsyncFnOnce(&Cluster) -> Result<(), ClusterError>,
) -> Result<(), ClusterError> {
    let folder = shared_folder();
    // Others pass through the folders, as PostgreSQL's user must, and do not list them.
    let folders = |path: &Path| DirBuilder::new().recursive(true).mode(PASS_ONLY).create(path);
    folders(&folder).map_err(ClusterError::io("create", &folder))?;
    let others = format!("template-{name}-");
    let template = folder.join(format!("{others}{version}"));
    let path = folder.join("template.lock");
    {
        // Until the file is closed, other callers wait.
        let turn = File::create(&path).map_err(ClusterError::io("create", &path))?;
        turn.lock().map_err(ClusterError::io("lock", &path))?;
        if !template.exists() {
            for entry in folder.read_dir().map_err(ClusterError::io("read", &folder))? {
                let entry = entry.map_err(ClusterError::io("read", &folder))?;
                if entry.file_name().to_string_lossy().starts_with(&others) {
                    remove_dir_all(entry.path()).map_err(ClusterError::io("remove", &entry.path()))?;
                }
            }
            let unfinished = folder.join(format!("{others}unfinished"));
            folders(&unfinished).map_err(ClusterError::io("create", &unfinished))?;
            let cluster = Cluster::start(ClusterOptions::for_tests(&unfinished)).await?;
            prepare(&cluster).await?;
            cluster.stop().await?;
            rename(&unfinished, &template).map_err(ClusterError::io("rename", &unfinished))?;
        }
    }
    create_dir_all(data_dir).map_err(ClusterError::io("create", data_dir))?;
    let cluster = template.join(CLUSTER);
    // Owners and modes are kept: PostgreSQL refuses a folder that is not its own.
    let copied = Command::new("cp").arg("-a").arg(&cluster).arg(data_dir).status();
    match copied {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(ClusterError::io("copy", &cluster)(Error::other(status.to_string()))),
        Err(error) => Err(ClusterError::io("copy", &cluster)(error)),
    }
}
