//! Whether every message has its file, and every file its message.

use std::path::{Path, PathBuf};

use hotline_persistence::backup::{files_after, still_used};
use hotline_persistence::tables::media::{self, FileKey, MediaId, hour_digits, hour_of};
use hotline_persistence::{PgConnection, PgPool, clock};

use crate::cli::Failure;
use crate::cli::backup::names;
use crate::cli::findings::Finding;

/// Files per statement.
const PAGE_FILES: usize = 1000;

/// Missing files that are named.
const NAMED_MAX: usize = 5;

/// For how many hours a file may be without a message: it is stored first, and the service deletes unused ones later.
const GRACE_HOURS: i64 = 3;

pub async fn check(folder: &Path, db: &PgPool, snapshot: &mut PgConnection) -> Result<Vec<Finding>, Failure> {
    Ok(vec![missing(folder, db, snapshot).await?, unused(folder, db).await?])
}

fn path_of(folder: &Path, (company, id): &FileKey) -> PathBuf {
    folder.join(id.hour()).join(company.to_string()).join(id.as_str())
}

async fn missing(folder: &Path, db: &PgPool, snapshot: &mut PgConnection) -> Result<Finding, Failure> {
    const FILES: &str = "files";
    let (mut last, mut all, mut missing, mut named) = (None, 0, 0, Vec::new());
    loop {
        let page = files_after(snapshot, last.as_ref(), PAGE_FILES as i64).await?;
        let Some(end) = page.last().cloned() else { break };
        all += page.len();
        let paths = folder.to_owned();
        let find = move || page.into_iter().filter(|file| !path_of(&paths, file).is_file()).collect::<Vec<_>>();
        let absent = tokio::task::spawn_blocking(find).await?;
        // A running service may have deleted the message meanwhile.
        let absent = if absent.is_empty() { absent } else { still_used(db, &absent).await? };
        missing += absent.len();
        named.extend(absent.iter().take(NAMED_MAX - named.len()).map(|file| path_of(Path::new(""), file)));
        last = Some(end);
    }
    if missing == 0 {
        return Ok(Finding::ok(FILES, format!("all {all} files of messages exist")));
    }
    let named = named.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let next = format!("restore them into `{}` from a backup; until then their URLs answer 404", folder.display());
    Ok(Finding::problem(FILES, format!("{missing} of {all} files of messages are missing: {named}"), next))
}

async fn unused(folder: &Path, db: &PgPool) -> Result<Finding, Failure> {
    const UNUSED: &str = "unused files";
    let last_hour = hour_digits(hour_of(clock::now()) - GRACE_HOURS);
    let (mut count, mut page) = (0, Vec::new());
    for hour in names(folder)?.into_iter().filter(|hour| *hour < last_hour) {
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
