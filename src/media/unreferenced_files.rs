//! Stored files to which no message refers yet.

use hotline_actors::Refusal;
use hotline_persistence::CompanyId;
use hotline_persistence::tables::media::StoredMedia;

use super::{Media, Unavailable, Upload};

/// Stored files to which no message refers yet. Dropping this removes them.
#[must_use]
pub struct Published {
    media: Media,
    company: CompanyId,
    files: Vec<StoredMedia>,
}

impl Published {
    /// Stores the files of one message or job, all or none.
    ///
    /// # Errors
    /// When one cannot be stored now; those before it are removed.
    pub async fn store(media: &Media, company: CompanyId, uploads: Vec<Upload>) -> Result<Self, Unavailable> {
        let mut published = Self { media: media.clone(), company, files: Vec::with_capacity(uploads.len()) };
        for upload in uploads {
            // Boxed: a large future, which a message without files would carry and copy.
            published.files.push(Box::pin(media.publish(company, upload)).await?);
        }
        Ok(published)
    }

    /// The files.
    pub fn files(&self) -> &[StoredMedia] {
        &self.files
    }

    /// Runs the command whose message is to refer to the files. If it was certainly refused, no message refers to
    /// any of them; if it succeeded, `uses` tells which ones are used. If the wait is cancelled or the outcome is
    /// unknown, all files stay, and the sweep removes unused ones.
    ///
    /// # Errors
    /// Why the command is refused.
    pub async fn use_in<T>(
        mut self,
        command: impl AsyncFnOnce() -> Result<T, Refusal>,
        uses: impl Fn(&T, &StoredMedia) -> bool,
    ) -> Result<T, Refusal> {
        let files = std::mem::take(&mut self.files);
        let outcome = command().await;
        self.files = match &outcome {
            Ok(reply) => files.into_iter().filter(|file| !uses(reply, file)).collect(),
            Err(refusal) if refusal.changed_nothing() => files,
            Err(_) => Vec::new(),
        };
        outcome
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.media.discard(self.company, &self.files);
    }
}
