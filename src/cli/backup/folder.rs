//! The folder of all backups, with one folder for each, named by its time. A backup is written under a hidden name and
//! renamed once it is complete. One command at a time writes here.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

use super::Failure;
use super::files::{self, BackupFileError};
use super::manifest::MANIFEST;
use crate::cli::Refusal;
use crate::exit_code::Exit;

/// The format of the names of backups. They sort by time, and have no character that a file system or a shell treats
/// specially.
const NAME_FORMAT: &str = "%Y-%m-%dT%H-%M-%S%.3fZ";
/// Length of every name: those with a year of more than four digits would not sort.
const NAME_CHARACTERS: usize = "2026-01-31T12-00-00.000Z".len();
/// Names of the lock file, of a backup that is being written, and of one that is being removed.
const LOCK: &str = ".lock";
const UNFINISHED: &str = ".unfinished";
const REMOVED: &str = ".removed";

/// The folder of all backups, locked against other commands.
pub struct BackupFolder {
    path: PathBuf,
    _lock: File,
}

impl BackupFolder {
    /// Creates the folder if necessary, locks it, and removes what interrupted commands left.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        files::create_folder(path)?;
        let lock = path.join(LOCK);
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(0o600).open(&lock);
        let file = file.map_err(BackupFileError::new("open", &lock))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("another backup to `{}` is in progress", path.display());
                return Err(Refusal::new(Exit::Retry, message).into());
            }
            Err(TryLockError::Error(error)) => return Err(BackupFileError::new("lock", &lock)(error).into()),
        }
        for name in files::names(path)? {
            if name == UNFINISHED || name == REMOVED {
                remove(&path.join(name))?;
            }
        }
        Ok(Self { path: path.to_owned(), _lock: file })
    }

    /// Creates the folder of a new backup.
    pub fn begin(&self) -> Result<UnfinishedBackup<'_>, BackupFileError> {
        let path = self.path.join(UNFINISHED);
        files::create_folder(&path)?;
        Ok(UnfinishedBackup { folder: self, path, is_complete: false })
    }

    /// Removes the backups older than the newest `keep`, except those for which `is_needed` is true, and returns how
    /// many it removed.
    pub fn retain(&self, keep: usize, is_needed: impl Fn(&Path) -> bool) -> Result<usize, BackupFileError> {
        let names = complete_backups(&self.path)?;
        let excess = names.len().saturating_sub(keep);
        let mut removed = 0;
        for from in names[..excess].iter().map(|name| self.path.join(name)) {
            if is_needed(&from) {
                continue;
            }
            // Renamed first: a backup that is partly removed must not look complete.
            let to = self.path.join(REMOVED);
            fs::rename(&from, &to).map_err(BackupFileError::new("rename", &from))?;
            remove(&to)?;
            removed += 1;
        }
        Ok(removed)
    }
}

/// The folder of a backup that is being written. It is removed if it is dropped before it is complete.
pub struct UnfinishedBackup<'a> {
    folder: &'a BackupFolder,
    path: PathBuf,
    is_complete: bool,
}

impl UnfinishedBackup<'_> {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the backup and gives it its name. The name sorts after all others even if the clock was set back: the
    /// backup that was made last is the newest.
    pub fn complete(mut self, at: DateTime<Utc>) -> Result<PathBuf, BackupFileError> {
        files::sync(&self.path)?;
        let newest = complete_backups(&self.folder.path)?.pop().and_then(|name| time_of(&name));
        let after_newest = newest.and_then(|newest| newest.checked_add_signed(TimeDelta::milliseconds(1)));
        let at = after_newest.map_or(at, |earliest| earliest.max(at));
        let path = self.folder.path.join(at.format(NAME_FORMAT).to_string());
        fs::rename(&self.path, &path).map_err(BackupFileError::new("rename", &self.path))?;
        self.is_complete = true;
        files::sync(&self.folder.path)?;
        Ok(path)
    }
}

impl Drop for UnfinishedBackup<'_> {
    fn drop(&mut self) {
        if !self.is_complete
            && let Err(error) = remove(&self.path)
        {
            eprintln!("hotline: an incomplete backup remains until the next one: {error}");
        }
    }
}

fn remove(path: &Path) -> Result<(), BackupFileError> {
    fs::remove_dir_all(path).map_err(BackupFileError::new("remove", path))
}

/// The names of the complete backups, oldest first.
fn complete_backups(path: &Path) -> Result<Vec<String>, BackupFileError> {
    let mut names = files::names(path)?;
    names.retain(|name| time_of(name).is_some() && path.join(name).join(MANIFEST).is_file());
    Ok(names)
}

/// The time in a backup's name; `None` for another name.
fn time_of(name: &str) -> Option<DateTime<Utc>> {
    let time = NaiveDateTime::parse_from_str(name, NAME_FORMAT).ok().filter(|_| name.len() == NAME_CHARACTERS);
    time.map(|time| time.and_utc())
}

/// The newest complete backup, if there is one.
pub fn newest(path: &Path) -> Result<Option<PathBuf>, BackupFileError> {
    Ok(complete_backups(path)?.pop().map(|name| path.join(name)))
}
