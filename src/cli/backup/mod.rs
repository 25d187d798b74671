//! `hotline backup`: copies an installation, so that `hotline restore` can create another one from the copy. The
//! service may be running or stopped.
//!
//! IMPORTANT: the order is journal, tables, files ([`hotline_persistence::backup`] has the reason). A change that was
//! acknowledged before the journal was read is in the journal's copy or in the tables. Files are copied twice: most
//! before the journal, so that the later steps are short, and the new ones after the tables, because a message's file
//! is stored before the message.

mod dump;
mod files;
mod folder;
mod manifest;
mod media;

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use clap::Args;
use hotline_persistence::backup::{Snapshot, State};
use hotline_persistence::journal::{self, Contents};
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::secret_keys;
use hotline_persistence::{PgPool, clock};
use hotline_postgres::find_program;
use serde::{Deserialize, Serialize};

pub use self::dump::{Connection, restore as restore_tables};
pub use self::files::{BackupFileError, Checksums, copy as copy_file, create_folder, names, sync};
pub use self::folder::newest;
use self::folder::{BackupFolder, UnfinishedBackup};
pub use self::manifest::{DamagedFiles, JOURNAL, KEY, MEDIA, Manifest};
use self::manifest::{DatabasePart, FORMAT, FilesPart, JournalPart, write_checksums};
use self::media::PreviousBackup;
use super::database::with_any_schema;
use super::{Failure, GlobalArgs, data_folder};
use crate::config::{DatabaseArgs, MediaPlaceArgs};

/// The file in the data folder with the result of the last backup, for metrics.
pub const RECORD: &str = "backup.json";

/// The program that writes the tables.
const PG_DUMP: &str = "pg_dump";

/// Number of files between two lines of progress.
const PROGRESS_FILES: u64 = 1000;

/// Back up the installation: tables, journal, message files and keys
#[derive(Args)]
pub struct BackupArgs {
    /// Folder for backups; each gets a folder named by its time
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Number of backups to keep in this folder; older ones are deleted after a success. Without it, all are kept
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Include the keys that encrypt credentials: without them, a restored installation cannot use its channels. With
    /// --include-key=false, keep a copy of the key file in another place
    #[arg(long, action = clap::ArgAction::Set, default_value_t = true)]
    include_key: bool,
    #[command(flatten)]
    place: MediaPlaceArgs,
}

/// The result of a backup, as printed and as stored in the data folder.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletedBackup {
    pub backup: PathBuf,
    /// The backup contains every change that was acknowledged before this time.
    pub complete_to: DateTime<Utc>,
    pub completed_at: DateTime<Utc>,
    /// Bytes of tables and journal, and of the files that were copied or linked.
    pub bytes: u64,
    pub files: u64,
    pub linked_files: u64,
    /// Number of older backups that were deleted.
    pub deleted_backups: usize,
    /// The keys that encrypt credentials but are no longer in the key file. An older backup with one of them is not
    /// deleted.
    #[serde(default)]
    pub missing_keys: Vec<String>,
    /// The number of files of messages that the folder for files lacks. An older backup with one of them is not
    /// deleted.
    #[serde(default)]
    pub missing_files: u64,
}

/// What the backup lacks, and a restored installation would miss.
struct Gaps {
    /// Ids of keys.
    keys: Vec<String>,
    /// Names of files of messages.
    files: BTreeSet<String>,
}

impl Gaps {
    /// Whether an older backup has some of the missing keys or files. An unreadable one may have the files.
    fn may_be_in(&self, backup: &Path) -> bool {
        let mut has_key = false;
        if !self.keys.is_empty() {
            let keys = Keyring::at(backup.join(KEY));
            has_key = keys.load().is_ok() && keys.ids().iter().any(|id| self.keys.contains(id));
        }
        let has_file = || match read_previous(backup.to_owned()) {
            Some(previous) => self.files.iter().any(|name| previous.checksums.contains_key(name)),
            None => true,
        };
        has_key || !self.files.is_empty() && has_file()
    }
}

pub async fn run(args: BackupArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let media = args.place.folder(&global.database)?;
    // First, so that a folder that cannot be written to is reported before a stopped PostgreSQL is started.
    let folder = BackupFolder::open(&args.dir)?;
    let completed = with_any_schema(&global.database, async |db| {
        let job =
            BackupJob { args: &args, database: &global.database, db, media: &media, is_quiet: global.output.json };
        job.run(&folder).await
    })
    .await?;
    global.output.one(completed)
}

/// A backup that is being made.
struct BackupJob<'a> {
    args: &'a BackupArgs,
    database: &'a DatabaseArgs,
    db: &'a PgPool,
    media: &'a Path,
    is_quiet: bool,
}

impl BackupJob<'_> {
    async fn run(&self, folder: &BackupFolder) -> Result<CompletedBackup, Failure> {
        let started_at = clock::now();
        let previous = newest(&self.args.dir)?.and_then(read_previous);
        let unfinished = folder.begin()?;
        let mut checksums = Checksums::new();
        let in_bucket = self.args.place.media_store.is_some();
        let mut files = FilesPart { in_bucket, count: 0, bytes: 0, linked: 0 };
        self.copy_media(&unfinished, previous.as_ref(), &mut checksums, &mut files)?;

        let complete_to = clock::now();
        let (database, journal, bytes) = self.copy_journal_and_tables(&unfinished, &mut checksums).await?;
        self.copy_media(&unfinished, previous.as_ref(), &mut checksums, &mut files)?;
        let missing_files = self.missing_files(&checksums).await?;
        let has_key = self.copy_key(&unfinished, &mut checksums)?;

        let manifest = Manifest {
            format: FORMAT,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            started_at,
            complete_to,
            completed_at: clock::now(),
            database,
            journal,
            files,
            has_key,
            list_checksum: write_checksums(unfinished.path(), &checksums)?,
        };
        manifest.write(unfinished.path())?;
        let gaps = Gaps { keys: self.missing_keys().await?, files: missing_files };
        let path = unfinished.complete(started_at)?;
        self.finish(folder, path, &manifest, bytes, gaps)
    }

    /// Deletes excess backups, and stores and returns the result.
    fn finish(
        &self,
        folder: &BackupFolder,
        path: PathBuf,
        manifest: &Manifest,
        bytes: u64,
        gaps: Gaps,
    ) -> Result<CompletedBackup, Failure> {
        let delete_excess = |keep: u32| folder.retain(keep as usize, |backup| gaps.may_be_in(backup));
        let completed = CompletedBackup {
            backup: path.canonicalize().unwrap_or(path),
            complete_to: manifest.complete_to,
            completed_at: manifest.completed_at,
            bytes: bytes + manifest.files.bytes,
            files: manifest.files.count,
            linked_files: manifest.files.linked,
            deleted_backups: self.args.keep.map_or(Ok(0), delete_excess)?,
            missing_files: gaps.files.len() as u64,
            missing_keys: gaps.keys,
        };
        if let Err(error) = self.store_result(&completed) {
            // The backup is complete even so.
            eprintln!("hotline: the result of the backup was not stored in the data folder: {error}");
        }
        Ok(completed)
    }

    /// Copies the journal, then the tables, and returns their size in bytes with their parts of the manifest.
    async fn copy_journal_and_tables(
        &self,
        unfinished: &UnfinishedBackup<'_>,
        checksums: &mut Checksums,
    ) -> Result<(DatabasePart, Option<JournalPart>, u64), Failure> {
        let (from, copy) = (self.database.data_dir.join(JOURNAL), unfinished.path().join(JOURNAL));
        let to = copy.clone();
        let journal = tokio::task::spawn_blocking(move || journal::copy(&from, &to)).await??;
        self.print_progress(&format!("journal: {} entries", journal.as_ref().map_or(0, entry_count)));
        let snapshot = Snapshot::take(self.db).await?;
        data_folder::check_mismatch(self.database, &snapshot.state, journal.as_ref())?;
        let journal_part = journal.as_ref().map(|journal| describe_journal(journal, &snapshot.state));
        if let Some(part) = &journal_part {
            journal::confirm_copy(&copy, part.watermark)?;
            files::checksum_folder(unfinished.path(), JOURNAL, checksums)?;
        }
        let (database, bytes) = self.dump(unfinished, snapshot, checksums).await?;
        Ok((database, journal_part, bytes + journal.map_or(0, |journal| journal.bytes)))
    }

    /// Writes the tables, and returns their part of the manifest and their size in bytes.
    async fn dump(
        &self,
        unfinished: &UnfinishedBackup<'_>,
        snapshot: Snapshot,
        checksums: &mut Checksums,
    ) -> Result<(DatabasePart, u64), Failure> {
        let major = snapshot.state.server_major();
        let program = find_program(PG_DUMP, self.database.pg_bin.as_deref(), major).await?;
        let connection = Connection::new(&self.db.connect_options(), self.database.database_url.as_deref());
        let part = DatabasePart {
            postgres_version: snapshot.state.server_version,
            pg_dump: program.major,
            schema: snapshot.state.schema.clone(),
            migration: snapshot.state.migration,
            least_migration: snapshot.state.least_migration,
        };
        let (id, path) = (snapshot.id.clone(), unfinished.path().to_owned());
        // A database that only Hotline uses is written completely, because extensions may be in a schema of their own.
        let is_whole_database = part.schema == dump::PUBLIC && !snapshot.state.is_shared;
        let schema = (!is_whole_database).then(|| part.schema.clone());
        let write = move || dump::write(&program, &connection, &id, schema.as_deref(), &path);
        let (size, checksum) = tokio::task::spawn_blocking(write).await??;
        snapshot.end().await?;
        self.print_progress(&format!("tables: {size} bytes"));
        checksums.insert(manifest::DUMP.to_owned(), checksum);
        Ok((part, size))
    }

    fn copy_media(
        &self,
        unfinished: &UnfinishedBackup<'_>,
        previous: Option<&PreviousBackup>,
        checksums: &mut Checksums,
        part: &mut FilesPart,
    ) -> Result<(), Failure> {
        if part.in_bucket {
            return Ok(());
        }
        media::copy(self.media, unfinished.path(), previous, checksums, part, |count| {
            if count.is_multiple_of(PROGRESS_FILES) {
                self.print_progress(&format!("files: {count}"));
            }
        })
    }

    /// Copies the keys, if they are to be included and there are any.
    fn copy_key(&self, unfinished: &UnfinishedBackup<'_>, checksums: &mut Checksums) -> Result<bool, BackupFileError> {
        if !self.args.include_key {
            return Ok(false);
        }
        match files::copy(&self.database.key_file(), &unfinished.path().join(KEY)) {
            Ok((_, checksum)) => {
                checksums.insert(KEY.to_owned(), checksum);
                Ok(true)
            }
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The keys that a restored installation would miss. Reports them; the backup is useful even without them.
    async fn missing_keys(&self) -> Result<Vec<String>, Failure> {
        if !self.args.include_key {
            return Ok(Vec::new());
        }
        let path = self.database.key_file();
        let keys = Keyring::at(&path);
        let available = if keys.load().is_ok() { keys.ids() } else { Vec::new() };
        let used = secret_keys::all(self.db).await?.into_iter().filter(|key| key.sealed > 0).map(|key| key.id);
        let missing: Vec<String> = used.filter(|id| !available.contains(id)).collect();
        if !missing.is_empty() {
            eprintln!(
                "hotline: the backup lacks keys that encrypt credentials ({}), because `{}` lacks them: put the right file \
                 back, and make another backup. Older backups that have them are kept",
                missing.join(", "),
                path.display()
            );
        }
        Ok(missing)
    }

    /// The names of the files of messages that neither the folder nor the backup has, for example because the folder is
    /// not mounted. Reports their number.
    async fn missing_files(&self, checksums: &Checksums) -> Result<BTreeSet<String>, Failure> {
        if self.args.place.media_store.is_some() {
            return Ok(BTreeSet::new());
        }
        let missing = media::missing_names(self.db, self.media, checksums).await?;
        if !missing.is_empty() {
            eprintln!(
                "hotline: {} files of messages are not in `{}` and not in the backup. If they are elsewhere, mount the \
                 folder, or name it with --media-shared or --media-store, and make another backup. Older backups that have \
                 them are kept",
                missing.len(),
                self.media.display()
            );
        }
        Ok(missing)
    }

    /// Stores the result in the data folder, if this machine has it.
    fn store_result(&self, completed: &CompletedBackup) -> Result<(), Failure> {
        let folder = &self.database.data_dir;
        if !folder.is_dir() {
            return Ok(());
        }
        let (path, new) = (folder.join(RECORD), folder.join(format!("{RECORD}.new")));
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(BackupFileError::new("remove", &new)(error).into());
            }
            _ => {}
        }
        files::write(&new, serde_json::to_string(completed)?.as_bytes())?;
        std::fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(RECORD_MODE))
            .map_err(BackupFileError::new("set the permissions of", &new))?;
        std::fs::rename(&new, &path).map_err(BackupFileError::new("rename", &new))?;
        Ok(())
    }

    fn print_progress(&self, text: &str) {
        if !self.is_quiet && std::io::stderr().is_terminal() {
            eprintln!("{text}");
        }
    }
}

/// The service reads the result, and may run as another user than the backup.
const RECORD_MODE: u32 = 0o644;

fn entry_count(journal: &Contents) -> u64 {
    journal.first.zip(journal.last).map_or(0, |(first, last)| last + 1 - first)
}

fn describe_journal(journal: &Contents, state: &State) -> JournalPart {
    JournalPart { id: journal.id.clone(), watermark: state.watermark(&journal.id).unwrap_or(0), last: journal.last }
}

/// The checksums of an older backup; `None` if it cannot be read, so that no file is linked to it.
fn read_previous(path: PathBuf) -> Option<PreviousBackup> {
    let checksums = Manifest::read(&path).and_then(|manifest| manifest.read_checksums(&path)).ok()?;
    Some(PreviousBackup { path, checksums })
}
