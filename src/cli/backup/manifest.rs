//! The files that describe a backup: `manifest.json`, and `sums.sha256`, which `sha256sum -c` reads as well.

use std::fmt::Write;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::files::{self, BackupFileError, Checksum, Checksums, FILES_MAX};
use crate::cli::{Refusal, failure};
use crate::exit_code::Exit;

pub const MANIFEST: &str = "manifest.json";
pub const CHECKSUM_LIST: &str = "sums.sha256";
pub const DUMP: &str = "database.dump";
pub const JOURNAL: &str = "journal";
pub const MEDIA: &str = "media";
pub const KEY: &str = "secrets.key";

/// The version of the layout. A release reads the versions up to its own.
pub const FORMAT: u32 = 1;

/// Maximum size of a manifest; one that a release writes has less than a KiB.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// Maximum size of the list of checksums: the lines of as many files as a backup may have.
const CHECKSUM_LIST_BYTES_MAX: u64 = FILES_MAX as u64 * 256;

/// The content of a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The version of the layout.
    pub format: u32,
    /// The release that wrote the backup.
    pub release: String,
    pub started_at: DateTime<Utc>,
    /// The backup contains every change that was acknowledged before this time.
    pub complete_to: DateTime<Utc>,
    pub completed_at: DateTime<Utc>,
    pub database: DatabasePart,
    /// `None`: no journal writes to this database.
    pub journal: Option<JournalPart>,
    pub files: FilesPart,
    /// Whether the backup contains the keys that decrypt credentials.
    pub has_key: bool,
    /// The SHA-256 checksum of `sums.sha256`.
    #[serde(rename = "sums")]
    pub list_checksum: Checksum,
}

/// The tables.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabasePart {
    /// The server's version, as `server_version_num`.
    pub postgres_version: i32,
    /// The major version of the `pg_dump` that wrote the tables.
    pub pg_dump: u32,
    /// The schema in which the tables are.
    pub schema: String,
    /// The last migration.
    pub migration: i64,
    /// The lowest migration that a release must know to serve this database.
    pub least_migration: i64,
}

/// The journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JournalPart {
    pub id: String,
    /// Entries up to this one are in the tables.
    pub watermark: u64,
    /// The last entry in the journal; `None`: it is empty.
    pub last: Option<u64>,
}

/// The files of messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesPart {
    /// Whether the files are in a bucket, and so not in the backup.
    pub in_bucket: bool,
    pub count: u64,
    pub bytes: u64,
    /// Number of files that were linked to the previous backup instead of copied.
    pub linked: u64,
}

/// How a backup with damaged or missing files of messages is handled. Any other damage is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamagedFiles {
    Refuse,
    Skip,
}

/// The files of a backup that were verified.
pub struct VerifiedFiles {
    /// The checksums of the undamaged files.
    pub checksums: Checksums,
    /// Number of damaged files that were skipped.
    pub damaged: u64,
}

/// Why a folder is not a complete backup.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error(transparent)]
    File(#[from] BackupFileError),
    #[error("{0}")]
    Invalid(#[source] Refusal),
}

impl Manifest {
    /// Reads the manifest of a backup.
    pub fn read(backup: &Path) -> Result<Self, ManifestError> {
        let path = backup.join(MANIFEST);
        let mut bytes = Vec::new();
        // One byte more, so that a larger file is refused instead of cut.
        File::open(&path)
            .and_then(|file| file.take(MANIFEST_BYTES_MAX + 1).read_to_end(&mut bytes))
            .map_err(BackupFileError::new("read", &path))?;
        if bytes.len() as u64 > MANIFEST_BYTES_MAX {
            return Err(invalid_backup(&path, format!("it has more than {MANIFEST_BYTES_MAX} bytes")));
        }
        let manifest: Self =
            serde_json::from_slice(&bytes).map_err(|error| invalid_backup(&path, error.to_string()))?;
        if manifest.format > FORMAT {
            let reason = format!("its format is {}, and this release reads up to {FORMAT}", manifest.format);
            return Err(invalid_backup(&path, reason));
        }
        Ok(manifest)
    }

    /// Writes the manifest as the last file of a backup.
    pub fn write(&self, backup: &Path) -> Result<(), BackupFileError> {
        // Cannot fail: its types have no map whose keys are not strings.
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        files::write(&backup.join(MANIFEST), format!("{text}\n").as_bytes()).map(drop)
    }

    /// Reads the checksums of all files of this backup.
    pub fn read_checksums(&self, backup: &Path) -> Result<Checksums, ManifestError> {
        let path = backup.join(CHECKSUM_LIST);
        if checksum_of(&path)? != self.list_checksum {
            return Err(invalid_backup(&path, "its checksum is not the one in the manifest".to_owned()));
        }
        if fs::metadata(&path).map_err(BackupFileError::new("read", &path))?.len() > CHECKSUM_LIST_BYTES_MAX {
            return Err(invalid_backup(&path, format!("it has more than {CHECKSUM_LIST_BYTES_MAX} bytes")));
        }
        let text = fs::read_to_string(&path).map_err(BackupFileError::new("read", &path))?;
        let lines = text
            .lines()
            .map(|line| line.split_once("  ").map(|(checksum, name)| (name.to_owned(), checksum.to_owned())));
        lines.collect::<Option<Checksums>>().ok_or_else(|| invalid_backup(&path, "a line has no checksum".to_owned()))
    }

    /// Verifies every file of this backup, calling `progress` with the number of verified files. Reports each skipped
    /// file on standard error.
    pub fn verify(
        &self,
        backup: &Path,
        damaged_files: DamagedFiles,
        mut progress: impl FnMut(usize),
    ) -> Result<VerifiedFiles, ManifestError> {
        let expected = self.read_checksums(backup)?;
        let mut verified = VerifiedFiles { checksums: Checksums::new(), damaged: 0 };
        for (index, (name, checksum)) in expected.into_iter().enumerate() {
            if name.split('/').any(|part| part.is_empty() || part.starts_with('.')) {
                return Err(invalid_backup(
                    &backup.join(CHECKSUM_LIST),
                    format!("the name `{name}` is not one of a backup"),
                ));
            }
            match verify_file(&backup.join(&name), &checksum) {
                Ok(()) => drop(verified.checksums.insert(name, checksum)),
                Err(ManifestError::Invalid(refusal))
                    if is_message_file(&name) && damaged_files == DamagedFiles::Refuse =>
                {
                    let hint = "`--skip-damaged-files` restores everything else";
                    return Err(ManifestError::Invalid(Refusal::new(Exit::Data, format!("{refusal}. {hint}"))));
                }
                // Files that a damaged disk cannot read are skipped too.
                Err(error) if is_message_file(&name) && damaged_files == DamagedFiles::Skip => {
                    eprintln!("hotline: skipped: {}", failure::message_with_causes(&error));
                    verified.damaged += 1;
                }
                Err(error) => return Err(error),
            }
            progress(index + 1);
        }
        Ok(verified)
    }
}

/// Whether a file of a backup belongs to a message.
fn is_message_file(name: &str) -> bool {
    name.split_once('/').is_some_and(|(folder, _)| folder == MEDIA)
}

fn verify_file(path: &Path, expected: &Checksum) -> Result<(), ManifestError> {
    if checksum_of(path)? == *expected {
        Ok(())
    } else {
        Err(invalid_backup(path, "the file is damaged: its SHA-256 sum differs".to_owned()))
    }
}

/// The checksum of a file; a missing file makes the backup invalid.
fn checksum_of(path: &Path) -> Result<Checksum, ManifestError> {
    files::checksum(path).map_err(|error| {
        if error.is_missing() { invalid_backup(path, "the file is missing".to_owned()) } else { error.into() }
    })
}

/// Writes the list of the checksums of all files, and returns its own checksum.
pub fn write_checksums(backup: &Path, checksums: &Checksums) -> Result<Checksum, BackupFileError> {
    let mut text = String::new();
    for (name, checksum) in checksums {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{checksum}  {name}");
    }
    files::write(&backup.join(CHECKSUM_LIST), text.as_bytes())
}

fn invalid_backup(path: &Path, reason: String) -> ManifestError {
    ManifestError::Invalid(Refusal::new(Exit::Data, format!("`{}` is not a complete backup: {reason}", path.display())))
}
