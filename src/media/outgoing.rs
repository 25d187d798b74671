//! Opens the files of messages that are sent to providers.

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, TryStreamExt};
use hotline_persistence::tables::media::StoredMedia;
use hotline_persistence::tables::messages::MessageRow;

use super::{Media, ReadError, name};
use crate::providers::media::{MediaFile, MediaFiles, MediaUnavailable};

impl MediaFiles for Media {
    fn open(&self, message: &MessageRow) -> BoxFuture<'static, Result<MediaFile, MediaUnavailable>> {
        let (media, company) = (self.clone(), message.company_id);
        let stored = message.media.as_ref().and_then(StoredMedia::of);
        Box::pin(async move {
            let StoredMedia { id, mime_type, file_name, size, voice } = stored.ok_or(MediaUnavailable::Gone)?;
            let file = media.read(company, &id, None).await.map_err(|error| match error {
                ReadError::NotFound => MediaUnavailable::Gone,
                ReadError::Unavailable(reason) => MediaUnavailable::StorageUnavailable(reason),
            })?;
            let content = file.into_stream().map_err(std::io::Error::other).boxed();
            // Providers check a file's name as well as its type.
            let file_name = name::with_extension_of(file_name, &mime_type);
            Ok(MediaFile { file_name, mime_type, is_voice: voice, size, content })
        })
    }
}
