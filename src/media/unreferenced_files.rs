//! Files that are stored before the message that refers to them.

use hotline_actors::Refusal;
use hotline_persistence::CompanyId;
use hotline_persistence::tables::media::StoredMedia;

use super::{Media, Unavailable, Upload};

/// Stored files to which no message refers yet. Dropping this removes them.
#[must_use]
pub struct UnreferencedFiles {
    media: Media,
    company: CompanyId,
    files: Vec<StoredMedia>,
}

impl UnreferencedFiles {
    /// Stores the files of one message or job, all or none.
    ///
    /// # Errors
    /// When one cannot be stored now; those before it are removed.
    pub async fn store(media: &Media, company: CompanyId, uploads: Vec<Upload>) -> Result<Self, Unavailable> {
        let mut stored = Self { media: media.clone(), company, files: Vec::with_capacity(uploads.len()) };
        for upload in uploads {
            // Boxed, because even a message without files would carry and copy this large future.
            stored.files.push(Box::pin(media.publish(company, upload)).await?);
        }
        Ok(stored)
    }

    /// The files.
    pub fn files(&self) -> &[StoredMedia] {
        &self.files
    }

    /// Runs the command whose message refers to the files, and removes those that are not used: all if it was certainly
    /// refused, and if it succeeded, those for which `is_used` is false. If the wait is canceled or the outcome is
    /// unknown, the sweep removes unused ones.
    ///
    /// # Errors
    /// Why the command is refused.
    pub async fn attach_with<T>(
        mut self,
        command: impl AsyncFnOnce() -> Result<T, Refusal>,
        is_used: impl Fn(&T, &StoredMedia) -> bool,
    ) -> Result<T, Refusal> {
        let files = std::mem::take(&mut self.files);
        let outcome = command().await;
        self.files = match &outcome {
            Ok(reply) => files.into_iter().filter(|file| !is_used(reply, file)).collect(),
            Err(refusal) if refusal.changed_nothing() => files,
            Err(_) => Vec::new(),
        };
        outcome
    }
}

impl Drop for UnreferencedFiles {
    fn drop(&mut self) {
        self.media.discard(self.company, &self.files);
    }
}
