//! `hotline restore`: creates an installation from a backup, in an empty data folder and an empty database.
//!
//! IMPORTANT: no process may serve a partly restored backup. The tables are restored last, in one transaction. Until
//! the end of the restore the data folder has a mark, and every other command refuses a folder with this mark.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use clap::Args;
use hotline_persistence::backup::{TargetDatabase, is_empty};
use hotline_persistence::requirements::quoted;
use hotline_persistence::{PgPool, schema};
use hotline_postgres::find_program;
use serde::Serialize;

use super::backup::{self, BackupFileError, Checksums, Connection, DamagedFiles, JOURNAL, KEY, MEDIA, Manifest};
use super::database::with_database_to_restore;
use super::{Failure, GlobalArgs, Refusal, unfinished_restore};
use crate::config::{DatabaseArgs, MediaPlaceArgs};
use crate::exit_code::Exit;

/// The program that reads the tables.
const PG_RESTORE: &str = "pg_restore";

/// The names that a data folder may contain before a restore: those of a private PostgreSQL without tables, which an
/// interrupted restore leaves, and those that file systems and operators put there.
const ALLOWED_NAMES: [&str; 7] =
    ["postgres", "postgres.log", "postgres.lock", "postgres.guests.lock", "lost+found", "hotline.toml", KEY];

/// How many files are verified between two lines of progress.
const PROGRESS_FILES: usize = 1000;

/// Restore a backup into an empty data folder and an empty database
#[derive(Args)]
pub struct RestoreArgs {
    /// A backup, or a folder for backups, of which the newest is restored
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Restore everything but the files of messages that are damaged or missing in the backup
    #[arg(long)]
    skip_damaged_files: bool,
    #[command(flatten)]
    place: MediaPlaceArgs,
}

/// The result of a restore.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CompletedRestore {
    backup: PathBuf,
    /// The backup contains every change that was acknowledged before this time.
    complete_to: DateTime<Utc>,
    data_dir: PathBuf,
    files: u64,
    /// Number of files that were left out, because they are damaged in the backup.
    damaged_files: u64,
    /// What to do next.
    next: String,
}

pub async fn run(args: RestoreArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let path = find_backup(&args.dir)?;
    let manifest = Manifest::read(&path)?;
    check_schema(&manifest)?;
    let media = args.place.folder(&global.database)?;
    let is_quiet = global.output.json || !std::io::stderr().is_terminal();
    let target = RestoreTarget { database: &global.database, media: &media };
    target.check(&manifest)?;
    let damaged_files = if args.skip_damaged_files { DamagedFiles::Skip } else { DamagedFiles::Refuse };
    let verified = manifest.verify(&path, damaged_files, |count| {
        if !is_quiet && count.is_multiple_of(PROGRESS_FILES) {
            eprintln!("verified: {count} files");
        }
    })?;
    target.mark_unfinished()?;
    let result = with_database_to_restore(&global.database, async |db| {
        target.restore(&manifest, &path, &verified.checksums, db).await
    })
    .await;
    // The mark is removed after a failure too: `restore` has then removed what it wrote, unless only `analyze` failed.
    let mark_removed = target.remove_mark();
    result?;
    mark_removed?;
    global.output.one(CompletedRestore {
        backup: path,
        complete_to: manifest.complete_to,
        data_dir: global.database.data_dir.clone(),
        files: manifest.files.count.saturating_sub(verified.damaged),
        damaged_files: verified.damaged,
        next: next_step(&manifest),
    })
}

fn next_step(manifest: &Manifest) -> String {
    let bucket_note =
        if manifest.files.in_bucket { "; files of messages are in the bucket of --media-store" } else { "" };
    format!("start it with `hotline serve`, and never together with the installation that was backed up{bucket_note}")
}

/// The backup in this folder, or the newest one if it is a folder for backups.
fn find_backup(dir: &Path) -> Result<PathBuf, Failure> {
    if dir.join(JOURNAL).is_dir() || Manifest::read(dir).is_ok() {
        return Ok(dir.to_owned());
    }
    let newest = backup::newest(dir)?;
    let missing = || Refusal::new(Exit::Data, format!("there is no complete backup in `{}`", dir.display()));
    Ok(newest.ok_or_else(missing)?)
}

/// Refuses a backup whose schema needs a later release.
fn check_schema(manifest: &Manifest) -> Result<(), Failure> {
    let (required, newest) = (manifest.database.least_migration, schema::newest_migration());
    if required <= newest {
        return Ok(());
    }
    let message = format!(
        "the backup was written by Hotline {} and needs a release with schema {required} or newer; this is Hotline {} with \
         schema {newest}",
        manifest.release,
        env!("CARGO_PKG_VERSION")
    );
    Err(Refusal::configuration(message).into())
}

/// Refuses a database in which the role would not find the restored tables, because the role's schema has another name.
fn check_place(manifest: &Manifest, place: &TargetDatabase) -> Result<(), Refusal> {
    let schema = &manifest.database.schema;
    if place.schema.as_ref() == Some(schema) {
        return Ok(());
    }
    let found = place.schema.as_ref().map_or("none".to_owned(), |name| format!("`{name}`"));
    Err(Refusal::configuration(format!(
        "the tables of this backup belong to the schema `{schema}`, and that of this role in the database is {found}. Create it \
         and make it the role's: `create schema {quoted} authorization ROLE`, `alter role ROLE set search_path = \
         {quoted}`",
        quoted = quoted(schema)
    )))
}

/// Where a backup is restored to.
struct RestoreTarget<'a> {
    database: &'a DatabaseArgs,
    media: &'a Path,
}

impl RestoreTarget<'_> {
    /// Refuses folders that are not empty, and a key file that does not fit the backup. Changes nothing.
    fn check(&self, manifest: &Manifest) -> Result<(), Failure> {
        let folder = &self.database.data_dir;
        unfinished_restore::refuse(folder)?;
        let names = backup::names(folder)?;
        if let Some(name) = names.iter().find(|name| !ALLOWED_NAMES.contains(&name.as_str())) {
            return Err(format!(
                "the data folder `{}` is not empty: it has `{name}`. Restore into an empty folder (--data-dir), or move \
                 its content away",
                folder.display()
            )
            .into());
        }
        if !backup::names(self.media)?.is_empty() {
            let media = self.media.display();
            return Err(format!("the folder for files `{media}` is not empty; restore into an empty one").into());
        }
        let key_file = self.database.key_file();
        match (manifest.has_key, key_file.exists()) {
            (true, true) => Err(format!(
                "`{}` exists, and the backup has its own keys: move the file away, or name another one with --key-file",
                key_file.display()
            )
            .into()),
            (false, false) => Err(Refusal::configuration(format!(
                "the backup was made without keys: first copy the key file of the installation to `{}`, or name it with \
                 --key-file",
                key_file.display()
            ))
            .into()),
            _ => Ok(()),
        }
    }

    /// Marks the data folder as that of an unfinished restore.
    fn mark_unfinished(&self) -> Result<(), BackupFileError> {
        let folder = &self.database.data_dir;
        backup::create_folder(folder)?;
        let path = folder.join(unfinished_restore::FILE);
        std::fs::File::create_new(&path).map_err(BackupFileError::new("create", &path))?;
        backup::sync(folder)
    }

    /// Removes the mark, after everything that it protects is on disk.
    fn remove_mark(&self) -> Result<(), BackupFileError> {
        let folder = &self.database.data_dir;
        backup::sync(folder)?;
        let path = folder.join(unfinished_restore::FILE);
        std::fs::remove_file(&path).map_err(BackupFileError::new("remove", &path))?;
        backup::sync(folder)
    }

    async fn restore(
        &self,
        manifest: &Manifest,
        path: &Path,
        checksums: &Checksums,
        db: &PgPool,
    ) -> Result<(), Failure> {
        let place = {
            let mut connection = db.acquire().await?;
            if !is_empty(&mut connection).await? {
                return Err("the database is not empty: restore into a new one, with `create database`".into());
            }
            TargetDatabase::read(&mut connection).await?
        };
        check_place(manifest, &place)?;
        let program = find_program(PG_RESTORE, self.database.pg_bin.as_deref(), manifest.database.pg_dump).await?;
        let connection = Connection::new(&db.connect_options(), self.database.database_url.as_deref());
        let result = self.copy_files(path, checksums).map_err(Failure::from);
        let result = match result {
            Ok(()) => {
                let path = path.to_owned();
                let schema = manifest.database.schema.clone();
                let restore = move || backup::restore_tables(&program, &connection, &path, &schema, &place.extensions);
                // A panic too is a failure, after which everything that was written is removed.
                match tokio::task::spawn_blocking(restore).await {
                    Ok(result) => result.map_err(Failure::from),
                    Err(panic) => Err(panic.into()),
                }
            }
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            self.discard(manifest);
            return Err(error);
        }
        // The first requests would otherwise be planned without statistics.
        sqlx::query("analyze").execute(db).await?;
        Ok(())
    }

    /// Copies everything but the tables, and syncs it.
    fn copy_files(&self, path: &Path, checksums: &Checksums) -> Result<(), BackupFileError> {
        let folder = &self.database.data_dir;
        for name in checksums.keys() {
            let to = match name.split_once('/') {
                Some((MEDIA, rest)) => self.media.join(rest),
                Some((JOURNAL, rest)) => folder.join(JOURNAL).join(rest),
                None if name == KEY => self.database.key_file(),
                _ => continue,
            };
            if let Some(parent) = to.parent().filter(|parent| !parent.exists()) {
                backup::create_folder(parent)?;
            }
            backup::copy_file(&path.join(name), &to)?;
        }
        // The files of messages and the key may be on other file systems than the data folder.
        let key = checksums.contains_key(KEY).then(|| self.database.key_file());
        let written = [Some(folder.as_path()), Some(self.media), key.as_deref()];
        written.into_iter().flatten().filter(|path| path.exists()).try_for_each(backup::sync)
    }

    /// Removes what was written, so that the restore can be repeated.
    fn discard(&self, manifest: &Manifest) {
        // What cannot be removed is named in the refusal of the next restore.
        let _ = std::fs::remove_dir_all(self.database.data_dir.join(JOURNAL));
        if let Ok(names) = backup::names(self.media) {
            names.iter().for_each(|name| drop(std::fs::remove_dir_all(self.media.join(name))));
        }
        let _ = std::fs::remove_dir(self.media);
        if manifest.has_key {
            let _ = std::fs::remove_file(self.database.key_file());
        }
    }
}
