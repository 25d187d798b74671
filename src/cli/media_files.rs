//! The files of messages that the folder lacks.

use hotline_persistence::backup::{files_after, still_used};
use hotline_persistence::tables::media::FileKey;
use hotline_persistence::{PgConnection, PgPool};

use super::Failure;

/// Files per statement.
const PAGE_FILES: i64 = 1000;

/// Calls `missing` with each file of a message for which `is_there` is false, and returns the number of all files. The
/// files of messages that were deleted since the snapshot are not missing.
pub async fn find_missing(
    snapshot: &mut PgConnection,
    db: &PgPool,
    is_there: impl Fn(&FileKey) -> bool,
    mut missing: impl FnMut(&FileKey),
) -> Result<usize, Failure> {
    let (mut last, mut all) = (None, 0);
    loop {
        let page = files_after(snapshot, last.as_ref(), PAGE_FILES).await?;
        let Some(end) = page.last().cloned() else { return Ok(all) };
        all += page.len();
        let absent: Vec<FileKey> = page.into_iter().filter(|file| !is_there(file)).collect();
        if !absent.is_empty() {
            still_used(db, &absent).await?.iter().for_each(&mut missing);
        }
        last = Some(end);
    }
}

/// The path of a file in the folder of files.
pub fn path_of((company, id): &FileKey) -> String {
    format!("{}/{company}/{id}", id.hour())
}
