//! Files that were requested and are not in the store. Files of deleted messages are missing on purpose, so each file
//! is looked up in the tables before it is reported.

use std::collections::BTreeSet;

use hotline_persistence::tables::media::FileKey;
use parking_lot::Mutex;

/// Maximum number of files that are remembered until they are looked up: enough to report that files are missing.
const FILES_MAX: usize = 64;

/// The files that were requested and not looked up yet.
#[derive(Debug, Default)]
pub(super) struct MissingFiles(Mutex<BTreeSet<FileKey>>);

impl MissingFiles {
    /// Remembers files; those for which there is no room are left out.
    pub(super) fn add(&self, new_files: impl IntoIterator<Item = FileKey>) {
        let mut files = self.0.lock();
        for file in new_files {
            if files.len() < FILES_MAX {
                files.insert(file);
            }
        }
    }

    pub(super) fn take(&self) -> Vec<FileKey> {
        std::mem::take(&mut *self.0.lock()).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use hotline_actors::clock;
    use hotline_persistence::CompanyId;
    use hotline_persistence::tables::media::MediaId;

    use super::*;

    #[test]
    fn files_are_remembered_once_and_up_to_the_limit_even_when_returned() {
        let new_files = |count: usize| -> Vec<FileKey> {
            (0..count).map(|_| (CompanyId::new(1), MediaId::new(clock::now()))).collect()
        };
        let missing = MissingFiles::default();
        let files = new_files(FILES_MAX / 2);
        missing.add(files.clone());
        missing.add(files);
        let taken = missing.take();
        assert_eq!((taken.len(), missing.take().len()), (FILES_MAX / 2, 0));
        missing.add(new_files(FILES_MAX - 1));
        missing.add(taken.clone());
        let all = missing.take();
        assert_eq!(all.len(), FILES_MAX);
        assert_eq!(all.iter().filter(|file| taken.contains(file)).count(), 1, "there was room for one of them");
    }
}
