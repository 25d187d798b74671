//! The mark of an unfinished restore: a file in the data folder. While it exists, the folder and the database are empty
//! or contain a part of a backup, and every other command refuses them: otherwise a service could create a new
//! installation there.

use std::path::Path;

use super::Refusal;
use crate::exit_code::Exit;

/// The name of the marking file.
pub const FILE: &str = "restore.unfinished";

/// Refuses a data folder with an unfinished restore.
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
