//! Files between their storing and the message that names them.

use hotline_actors::Refusal;
use hotline_persistence::CompanyId;
use hotline_persistence::tables::media::StoredMedia;

use super::{Media, Unavailable, Upload};

/// Files that are stored, and that no message names yet. Dropped, they are removed.
#[must_use]
pub struct Published {
    media: Media,
    company: CompanyId,
    files: Vec<StoredMedia>,
}

impl Published {
    /// Stores files of one message or job, one after the other, or none of them.
    ///
    /// # Errors
    /// When one cannot be stored now; those before it are removed.
    pub async fn store(media: &Media, company: CompanyId, uploads: Vec<Upload>) -> Result<Self, Unavailable> {
        let mut published = Self { media: media.clone(), company, files: Vec::with_capacity(uploads.len()) };
        for upload in uploads {
            published.files.push(media.publish(company, upload).await?);
        }
        Ok(published)
    }

    /// What they are.
    pub fn files(&self) -> &[StoredMedia] {
        &self.files
    }

    /// Waits for the command whose message is to name them. What is refused for certain names none; of what is done
    /// `names` says which. Should nobody wait for the end, or nobody know it, they stay: the sweep comes by.
    ///
    /// # Errors
    /// Why the command is refused.
    pub async fn named_by<T>(
        mut self,
        command: impl Future<Output = Result<T, Refusal>>,
        names: impl Fn(&T, &StoredMedia) -> bool,
    ) -> Result<T, Refusal> {
        let files = std::mem::take(&mut self.files);
        let outcome = command.await;
        self.files = match &outcome {
            Ok(done) => files.into_iter().filter(|file| !names(done, file)).collect(),
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
