//! Finds files of messages that a folder lacks.

use hotline_persistence::backup::{files_after, referenced_files};
use hotline_persistence::tables::media::FileKey;
use hotline_persistence::{PgConnection, PgPool};

use super::Failure;

/// Number of files per statement.
const PAGE_FILES: i64 = 1000;

/// Calls `on_missing` with each file of the snapshot for which `exists` is false, and returns the number of all files.
/// A file whose message was deleted since the snapshot is not missing: `db` shows the present state.
pub async fn find_missing(
    snapshot: &mut PgConnection,
    db: &PgPool,
    exists: impl Fn(&FileKey) -> bool,
    mut on_missing: impl FnMut(&FileKey),
) -> Result<usize, Failure> {
    let (mut after, mut count) = (None, 0);
    loop {
        let page = files_after(snapshot, after.as_ref(), PAGE_FILES).await?;
        let Some(last) = page.last().cloned() else { return Ok(count) };
        count += page.len();
        let absent: Vec<FileKey> = page.into_iter().filter(|file| !exists(file)).collect();
        if !absent.is_empty() {
            referenced_files(db, &absent).await?.iter().for_each(&mut on_missing);
        }
        after = Some(last);
    }
}

/// The path of a file in the folder of files.
pub fn path_of((company, id): &FileKey) -> String {
    format!("{}/{company}/{id}", id.hour())
}
