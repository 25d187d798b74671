//! Files of messages on their way to a provider.

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

/// Where the files of media messages are read.
pub trait MediaFiles: Send + Sync + 'static {
    /// The file of a message, from its beginning.
    fn open(&self, message: &MessageRow) -> BoxFuture<'static, Result<MediaFile, MediaUnavailable>>;
}

/// A file to be read once.
pub struct MediaFile {
    /// As the recipient sees it.
    pub file_name: String,
    /// What it is.
    pub mime_type: String,
    /// In bytes.
    pub size: u64,
    /// Its content, piece by piece.
    pub content: BoxStream<'static, std::io::Result<Bytes>>,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaUnavailable {
    /// It is not there, and will not be.
    Gone,
    /// Whatever keeps it cannot answer now.
    Later(String),
}

/// Uploads that are remembered, and for how long: a message that is tried again is not uploaded again. Providers keep
/// an upload for days.
const UPLOADS_MAX: usize = 10_000;
const UPLOAD_TIME_MAX: Duration = Duration::from_secs(3600);

/// What was uploaded for which message. Cheap to clone.
#[derive(Clone)]
pub(super) struct Uploads {
    files: Arc<dyn MediaFiles>,
    known: Arc<TtlCache<(CompanyId, MessageId), Uploaded>>,
}

/// A file the provider has.
#[derive(Clone, Debug)]
pub(super) struct Uploaded {
    /// What the provider calls it.
    pub(super) id: Arc<str>,
    pub(super) file_name: Arc<str>,
    pub(super) mime_type: Arc<str>,
}

impl Uploads {
    pub(super) fn of(files: Arc<dyn MediaFiles>) -> Self {
        Self { files, known: Arc::new(TtlCache::new(UPLOADS_MAX, UPLOAD_TIME_MAX)) }
    }

    /// The message's file at the provider: uploaded before, or now by `upload`, which answers its id.
    pub(super) async fn of_message(
        &self,
        message: &MessageRow,
        upload: impl AsyncFnOnce(&str, Part) -> Result<String, SendFailure>,
    ) -> Result<Uploaded, SendFailure> {
        let key = (message.company_id, message.id);
        if let Some(uploaded) = self.known.get(&key) {
            return Ok(uploaded);
        }
        let file = self.files.open(message).await.map_err(|unavailable| match unavailable {
            MediaUnavailable::Later(reason) => SendFailure::Retry { reason, after: None },
            MediaUnavailable::Gone => SendFailure::Failed(MessageError {
                code: "ERR_MEDIA_GONE".to_owned(),
                message: "the file of the message is not there".to_owned(),
            }),
        })?;
        let part =
            Part::stream_with_length(Body::wrap_stream(file.content), file.size).file_name(file.file_name.clone());
        let part = part.mime_str(&file.mime_type).map_err(|_| {
            SendFailure::Failed(MessageError {
                code: "ERR_MEDIA_TYPE_UNKNOWN".to_owned(),
                message: "the file's type is none".to_owned(),
            })
        })?;
        let id = upload(&file.mime_type, part).await?.into();
        let uploaded = Uploaded { id, file_name: file.file_name.into(), mime_type: file.mime_type.into() };
        self.known.insert(key, uploaded.clone());
        Ok(uploaded)
    }

    /// Drops what was uploaded for a company's messages.
    pub(super) fn forget_company(&self, company: CompanyId) {
        let Self { files: _, known } = self;
        known.remove_where(|(of, _)| *of == company);
    }

    /// The message was taken: its upload has served.
    pub(super) fn forget(&self, message: &MessageRow) {
        self.known.remove(&(message.company_id, message.id));
    }
}
