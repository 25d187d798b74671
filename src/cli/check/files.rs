//! Checks that every message has its file, and every file its message.

use std::path::Path;

use hotline_persistence::tables::media::{self, FileKey, MediaId, hour_digits, hour_of};
use hotline_persistence::{PgConnection, PgPool, clock};

use crate::cli::Failure;
use crate::cli::backup::names;
use crate::cli::findings::Finding;
use crate::cli::media_files::{find_missing, path_of};

/// Files per statement.
const PAGE_FILES: usize = 1000;

/// Maximum number of missing files that the finding names.
const EXAMPLES_MAX: usize = 5;

/// For how many hours a file may be without a message: it is stored before the message, and the service deletes unused
/// files later.
const GRACE_HOURS: i64 = 3;

pub async fn check(folder: &Path, db: &PgPool, snapshot: &mut PgConnection) -> Result<Vec<Finding>, Failure> {
    Ok(vec![check_missing(folder, db, snapshot).await?, check_unused(folder, db).await?])
}

/// Searches the messages of the snapshot for files that the folder lacks. `db` shows whether such a message still
/// exists: one that was deleted since the snapshot needs no file.
async fn check_missing(folder: &Path, db: &PgPool, snapshot: &mut PgConnection) -> Result<Finding, Failure> {
    const FILES: &str = "files";
    let (mut missing, mut examples) = (0, Vec::new());
    let exists = |file: &FileKey| folder.join(path_of(file)).is_file();
    let count = find_missing(snapshot, db, exists, |file| {
        missing += 1;
        if examples.len() < EXAMPLES_MAX {
            examples.push(path_of(file));
        }
    })
    .await?;
    if missing == 0 {
        return Ok(Finding::ok(FILES, format!("all {count} files of messages exist")));
    }
    let examples = examples.join(", ");
    let next = format!("restore them into `{}` from a backup; until then their URLs answer 404", folder.display());
    Ok(Finding::problem(FILES, format!("{missing} of {count} files of messages are missing: {examples}"), next))
}

/// Counts the files that belong to no message, except those of the last [`GRACE_HOURS`].
async fn check_unused(folder: &Path, db: &PgPool) -> Result<Finding, Failure> {
    const UNUSED: &str = "unused files";
    let first_recent_hour = hour_digits(hour_of(clock::now()) - GRACE_HOURS);
    let (mut count, mut page) = (0, Vec::new());
    for hour in names(folder)?.into_iter().filter(|hour| *hour < first_recent_hour) {
        for company in names(&folder.join(&hour))? {
            let Ok(company_id) = company.parse() else { continue };
            let ids = names(&folder.join(&hour).join(&company))?;
            page.extend(ids.iter().filter_map(|id| id.parse::<MediaId>().ok()).map(|id| (company_id, id)));
            while page.len() >= PAGE_FILES {
                let rest = page.split_off(PAGE_FILES);
                count += media::without_message(db, &page).await?.len();
                page = rest;
            }
        }
    }
    if !page.is_empty() {
        count += media::without_message(db, &page).await?.len();
    }
    if count == 0 {
        return Ok(Finding::ok(UNUSED, "none"));
    }
    Ok(Finding::note(UNUSED, format!("{count} files belong to no message"), "they only use space"))
}
