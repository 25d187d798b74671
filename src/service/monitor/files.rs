//! Message files that are missing from their store: after a restore without them, or while their folder is not mounted.

use hotline_persistence::tables::media::{self, FileKey};

use super::Monitor;
use crate::telemetry::conditions::Condition;

/// A file that a message refers to and that is not in the store. [`Condition::MessageFiles`] ends once the file is in
/// the store again, or its message was deleted.
pub(super) struct MissingFile(FileKey);

impl Monitor {
    pub(super) async fn observe_files(&mut self) {
        let db = &self.app.engine.store().housekeeping;
        let absent_files = self.app.media.take_missing();
        if !absent_files.is_empty() {
            // The file of a deleted message is absent on purpose.
            let Ok(missing_files) = media::with_message(db, &absent_files).await else {
                self.app.media.return_missing(absent_files);
                return;
            };
            if let Some(first) = missing_files.first() {
                let reason = format!("a file of company {} is missing", first.0);
                self.conditions().begin(Condition::MessageFiles, "", &reason);
                self.conditions().add(Condition::MessageFiles, "", missing_files.len() as u64);
                self.missing_file = Some(MissingFile(first.clone()));
            }
            return;
        }
        let Some(MissingFile(file)) = &self.missing_file else { return };
        let result = media::with_message(db, std::slice::from_ref(file)).await;
        let has_ended = match result {
            Ok(files) if files.is_empty() => true,
            Ok(_) => self.app.media.has_file(file).await.unwrap_or(false),
            Err(_) => false,
        };
        if has_ended {
            self.conditions().end(Condition::MessageFiles, "");
            self.missing_file = None;
        }
    }
}
