//! Message files that are missing in their store: after a restore without them, or while their folder is not mounted.

use hotline_persistence::tables::media::{self, FileKey};

use super::Monitor;
use crate::telemetry::conditions::Condition;

/// A file that a message refers to and that is not in the store. [`Condition::MessageFiles`] ends once the file is in
/// the store again, or its message was deleted.
pub(super) struct MissingFile(FileKey);

impl Monitor {
    pub(super) async fn observe_files(&mut self) {
        let db = &self.app.engine.store().housekeeping;
        // Files of deleted messages are missing on purpose.
        let requested = self.app.media.take_missing();
        if !requested.is_empty() {
            let Ok(missing) = media::with_message(db, &requested).await else { return };
            if let Some(first) = missing.first() {
                let reason = format!("a file of company {} is missing", first.0);
                self.conditions().begin(Condition::MessageFiles, "", &reason);
                self.conditions().add(Condition::MessageFiles, "", missing.len() as u64);
                self.missing_file = Some(MissingFile(first.clone()));
            }
            return;
        }
        let Some(MissingFile(file)) = &self.missing_file else { return };
        let referenced = media::with_message(db, std::slice::from_ref(file)).await;
        let has_ended = match referenced {
            Ok(referenced) if referenced.is_empty() => true,
            Ok(_) => self.app.media.has_file(file).await.unwrap_or(false),
            Err(_) => false,
        };
        if has_ended {
            self.conditions().end(Condition::MessageFiles, "");
            self.missing_file = None;
        }
    }
}
