//! The mark of a restore in its data folder, from its beginning to its end. Until then the folder and its database are empty
//! or have a part of a backup: a service would begin an installation of its own in them.

use std::path::Path;

use super::Refusal;
use crate::exit_code::Exit;

/// The name of the mark.
pub const FILE: &str = "restore.unfinished";

/// Refuses a data folder whose restore has not ended.
pub fn refuse(data_dir: &Path) -> Result<(), Refusal> {
    if !data_dir.join(FILE).exists() {
        return Ok(());
    }
    let folder = data_dir.display();
    let message = format!(
        "a restore into `{folder}` was interrupted, or is in progress. If it was interrupted, empty this folder, also that of \
         message files if it is elsewhere, and if --database-url names a database, drop and create it; then repeat the restore"
    );
    Err(Refusal::new(Exit::Data, message))
}
