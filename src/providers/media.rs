//! Uploads the files of messages to providers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use hotline_actors::channels::SendFailure;
use hotline_actors::ttl_cache::TtlCache;
use hotline_persistence::tables::messages::{MessageError, MessageRow};
use hotline_persistence::{CompanyId, MessageId};
use reqwest::Body;
use reqwest::multipart::Part;

/// Access to the files of media messages.
pub trait MediaFiles: Send + Sync + 'static {
    /// Opens the file of a message.
    fn open(&self, message: &MessageRow) -> BoxFuture<'static, Result<MediaFile, MediaUnavailable>>;
}

/// A file that can be read once.
pub struct MediaFile {
    /// The name that the recipient sees.
    pub file_name: String,
    /// The content type.
    pub mime_type: String,
    /// Whether it is a voice message.
    pub is_voice: bool,
    /// The size in bytes.
    pub size: u64,
    /// The content in chunks.
    pub content: BoxStream<'static, std::io::Result<Bytes>>,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaUnavailable {
    /// It no longer exists.
    Gone,
    /// The storage is unavailable now.
    StorageUnavailable(String),
}

/// Maximum number of cached uploads, and how long each is cached, so that a retry of a message does not upload its file
/// again. Providers keep an upload for days.
const CACHED_UPLOADS_MAX: usize = 10_000;
const UPLOAD_CACHE_TIME: Duration = Duration::from_secs(3600);

/// Uploads the files of messages, and caches the uploads by message. Cheap to clone.
#[derive(Clone)]
pub(super) struct ProviderUploads {
    files: Arc<dyn MediaFiles>,
    cache: Arc<TtlCache<(CompanyId, MessageId), UploadedFile>>,
}

/// A file at the provider.
#[derive(Clone, Debug)]
pub(super) struct UploadedFile {
    /// The provider's id.
    pub(super) id: Arc<str>,
    pub(super) file_name: Arc<str>,
    pub(super) mime_type: Arc<str>,
    pub(super) is_voice: bool,
}

impl ProviderUploads {
    pub(super) fn of(files: Arc<dyn MediaFiles>) -> Self {
        Self { files, cache: Arc::new(TtlCache::new(CACHED_UPLOADS_MAX, UPLOAD_CACHE_TIME)) }
    }

    /// The message's file at the provider: an earlier upload, or a new one by `upload`, which returns its id.
    pub(super) async fn find_or_upload(
        &self,
        message: &MessageRow,
        upload: impl AsyncFnOnce(&str, Part) -> Result<String, SendFailure>,
    ) -> Result<UploadedFile, SendFailure> {
        let key = (message.company_id, message.id);
        if let Some(uploaded) = self.cache.get(&key) {
            return Ok(uploaded);
        }
        let file = self.files.open(message).await.map_err(|unavailable| match unavailable {
            MediaUnavailable::StorageUnavailable(reason) => SendFailure::Retry { reason, after: None },
            MediaUnavailable::Gone => SendFailure::Failed(MessageError {
                code: "ERR_MEDIA_GONE".to_owned(),
                message: "the message's file no longer exists".to_owned(),
            }),
        })?;
        let part =
            Part::stream_with_length(Body::wrap_stream(file.content), file.size).file_name(file.file_name.clone());
        let part = part.mime_str(&file.mime_type).map_err(|_| {
            SendFailure::Failed(MessageError {
                code: "ERR_MEDIA_TYPE_UNKNOWN".to_owned(),
                message: "the file's type is invalid".to_owned(),
            })
        })?;
        let id = upload(&file.mime_type, part).await?.into();
        let (file_name, mime_type) = (file.file_name.into(), file.mime_type.into());
        let uploaded = UploadedFile { id, file_name, mime_type, is_voice: file.is_voice };
        self.cache.insert(key, uploaded.clone());
        Ok(uploaded)
    }

    /// Drops the uploads of a company's messages.
    pub(super) fn forget_company(&self, company: CompanyId) {
        let Self { files: _, cache } = self;
        cache.remove_where(|(id, _)| *id == company);
    }

    /// Drops the upload of a message that was accepted.
    pub(super) fn forget_message(&self, message: &MessageRow) {
        self.cache.remove(&(message.company_id, message.id));
    }
}
