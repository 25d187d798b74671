//! Files that were requested and are not in the store. Files of deleted messages are missing on purpose, so each file
//! is looked up in the tables before it is reported.

use std::collections::BTreeSet;

use hotline_persistence::CompanyId;
use hotline_persistence::tables::media::{FileKey, MediaId};
use parking_lot::Mutex;

/// Maximum number of files that are remembered until they are looked up: enough to report that files are missing.
const FILES_MAX: usize = 64;

/// The files that were requested since the last look-up.
#[derive(Debug, Default)]
pub(super) struct MissingFiles(Mutex<BTreeSet<FileKey>>);

impl MissingFiles {
    pub(super) fn add(&self, company: CompanyId, id: &MediaId) {
        let mut files = self.0.lock();
        if files.len() < FILES_MAX {
            files.insert((company, id.clone()));
        }
    }

    pub(super) fn take(&self) -> Vec<FileKey> {
        std::mem::take(&mut *self.0.lock()).into_iter().collect()
    }
}
