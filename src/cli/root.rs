//! Checks whether the service may be started as root.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{Uid, User, geteuid};

use super::Failure;

/// Refuses to serve as root on the data folder of another user, whose service could not open the files that root
/// creates. On other folders, warns that the service runs as root.
///
/// # Errors
/// When the folder is another user's.
pub(super) fn check(data_dir: &Path) -> Result<(), Failure> {
    if !geteuid().is_root() {
        return Ok(());
    }
    match std::fs::metadata(data_dir) {
        Ok(folder) if folder.uid() != 0 => Err(refusal(data_dir, &sudo_user(folder.uid())).into()),
        _ => {
            tracing::warn!("the service runs as root; give it a user of its own");
            Ok(())
        }
    }
}

fn refusal(data_dir: &Path, user: &str) -> String {
    let folder = data_dir.display();
    format!(
        "the data folder {folder} belongs to another user, whose service could not open files that root creates there; \
         run `sudo -u {user} hotline serve` with the same options"
    )
}

/// The user's name or, if there is none, the user's id, as `sudo -u` takes it.
fn sudo_user(uid: u32) -> String {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    user.map_or_else(|| format!("'#{uid}'"), |user| user.name)
}
