//! Backs up files of messages. They never change, so a file of the previous backup is linked instead of copied: each
//! backup is complete, but only new files take space. A file is verified before it is linked: its damage would
//! otherwise be in every later backup.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hotline_persistence::PgPool;
use hotline_persistence::tables::media::FileKey;

use super::files::{self, BackupFileError, Checksum, Checksums, FILES_MAX};
use super::manifest::{FilesPart, MEDIA};
use crate::cli::media_files::{find_missing, path_of};
use crate::cli::{Failure, Refusal};

/// The previous backup, and the checksums of its files.
pub struct PreviousBackup {
    pub path: PathBuf,
    pub checksums: Checksums,
}

/// Copies or links the files that the backup does not have yet, and calls `progress` with their number after each. A
/// file that is deleted meanwhile is skipped.
pub fn copy(
    from: &Path,
    backup: &Path,
    previous: Option<&PreviousBackup>,
    checksums: &mut Checksums,
    part: &mut FilesPart,
    mut progress: impl FnMut(u64),
) -> Result<(), Failure> {
    let files_max = files_max();
    // {hour}/{company}/{id}. Uploads in progress are in `incoming`; no message refers to them yet.
    for hour in files::names(from)?.into_iter().filter(|name| is_hour(name)) {
        for company in files::names(&from.join(&hour))? {
            let folder = from.join(&hour).join(&company);
            if !metadata_of(&folder)?.is_some_and(|metadata| metadata.is_dir()) {
                continue;
            }
            for id in files::names(&folder)? {
                let name = format!("{MEDIA}/{hour}/{company}/{id}");
                if checksums.contains_key(&name) {
                    continue;
                }
                files::create_folder(&backup.join(MEDIA).join(&hour).join(&company))?;
                if checksums.len() >= files_max {
                    return Err(too_many_files(from, files_max).into());
                }
                let Some((size, checksum, is_linked)) = link_or_copy(&folder.join(&id), backup, &name, previous)?
                else {
                    continue;
                };
                checksums.insert(name, checksum);
                part.count += 1;
                part.bytes += size;
                part.linked += u64::from(is_linked);
                progress(part.count);
            }
        }
    }
    Ok(())
}

fn too_many_files(folder: &Path, files_max: usize) -> Refusal {
    Refusal::configuration(format!(
        "`{}` has more than {files_max} files, which is the limit of a backup: store them in a bucket \
         (--media-store), which keeps versions of its own",
        folder.display()
    ))
}

/// The names of the files of messages that neither the backup nor the folder has.
pub async fn missing_names(db: &PgPool, folder: &Path, checksums: &Checksums) -> Result<BTreeSet<String>, Failure> {
    let mut connection = db.acquire().await?;
    let mut missing = BTreeSet::new();
    let name_of = |file: &FileKey| format!("{MEDIA}/{}", path_of(file));
    let exists = |file: &FileKey| checksums.contains_key(&name_of(file)) || folder.join(path_of(file)).is_file();
    find_missing(&mut connection, db, exists, |file| missing.extend([name_of(file)])).await?;
    Ok(missing)
}

/// [`FILES_MAX`], which a test can lower.
fn files_max() -> usize {
    hotline_persistence::fail_point!("backup_files_max", |value: Option<String>| {
        value.and_then(|value| value.parse().ok()).unwrap_or(FILES_MAX)
    });
    FILES_MAX
}

fn is_hour(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a file of the previous backup is as it was written. Reports one that is not.
fn is_undamaged(path: &Path, size: u64, checksum: &Checksum) -> bool {
    let is_undamaged = fs::metadata(path).is_ok_and(|metadata| metadata.len() == size)
        && files::checksum(path).is_ok_and(|found| found == *checksum);
    if !is_undamaged {
        eprintln!("hotline: `{}` is damaged or missing; the file is copied again", path.display());
    }
    is_undamaged
}

/// The metadata of a file or folder; `None` if it no longer exists. Any other error is returned: it could hide a
/// file that exists.
fn metadata_of(path: &Path) -> Result<Option<fs::Metadata>, BackupFileError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(BackupFileError::new("read", path)(error)),
    }
}

/// Links or copies a file, and returns its size, its checksum, and whether it was linked; `None` if it no longer
/// exists.
fn link_or_copy(
    from: &Path,
    backup: &Path,
    name: &str,
    previous: Option<&PreviousBackup>,
) -> Result<Option<(u64, Checksum, bool)>, BackupFileError> {
    let to = backup.join(name);
    let Some(metadata) = metadata_of(from)? else { return Ok(None) };
    if let Some(previous) = previous
        && let Some(checksum) = previous.checksums.get(name)
        && is_undamaged(&previous.path.join(name), metadata.len(), checksum)
        // Not every file system has hard links; without them, the file is copied.
        && fs::hard_link(previous.path.join(name), &to).is_ok()
    {
        return Ok(Some((metadata.len(), checksum.clone(), true)));
    }
    match files::copy(from, &to) {
        Ok((size, checksum)) => Ok(Some((size, checksum, false))),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}
