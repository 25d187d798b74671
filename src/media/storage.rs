//! The storage of files: a folder, or an S3 bucket. The path of a file is `{hour}/{company}/{id}`. The hour comes
//! first, so that the sweep can list one hour at a time and never all files.

use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use hotline_persistence::CompanyId;
use hotline_persistence::tables::media::{FileKey, MediaId, hour_digits};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Error, GetOptions, GetResult, MultipartUpload, ObjectStore, ObjectStoreExt, RetryConfig};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Semaphore;

use super::disk::Disk;
use super::error::{OpenError, ReadError};
use super::incoming::{SpooledFile, rewind};
use super::response_limit::LimitedConnector;

/// Size of a part in an upload to a bucket: the minimum that S3 allows.
const PART_BYTES: usize = 5 * 1024 * 1024;

/// Concurrent uploads to a bucket, each with a part in memory: 40 MiB at most. Further files wait on disk.
const UPLOADS_MAX: usize = 8;

/// Maximum retries of a request to a bucket, and how long after the request the last one may begin.
const RETRIES_MAX: usize = 4;
const RETRY_TIME_MAX: Duration = Duration::from_secs(30);

/// Maximum attempts to rename a file. One fails if the target folder disappears at that moment, because the last other
/// file in it was removed.
const RENAMES_MAX: usize = 8;

/// A bucket: `s3://bucket`, or `s3://bucket/folder`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl {
    bucket: String,
    folder: String,
}

impl FromStr for StoreUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix("s3://").ok_or("must be s3://bucket or s3://bucket/folder")?;
        let (bucket, folder) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if bucket.is_empty() || !bucket.bytes().all(is_name) {
            return Err("must include a bucket: s3://bucket".to_owned());
        }
        Path::parse(folder).map_err(|error| error.to_string())?;
        Ok(Self { bucket: bucket.to_owned(), folder: folder.trim_matches('/').to_owned() })
    }
}

/// Where files are stored.
pub(super) enum Storage {
    /// In the folder that also has the incoming files. To store a file is to sync and rename it, one at a time per
    /// company.
    Folder { store: LocalFileSystem, disk: Disk },
    /// In a bucket.
    Bucket { store: Arc<dyn ObjectStore>, folder: String, uploads: Semaphore },
}

impl Storage {
    pub(super) fn open(folder: &std::path::Path, url: Option<&StoreUrl>, disk: Disk) -> Result<Self, OpenError> {
        let open_error = |error: Error| OpenError::Store(error.to_string());
        let Some(StoreUrl { bucket, folder: prefix }) = url else {
            let local = LocalFileSystem::new_with_prefix(folder).map_err(open_error)?;
            let store = local.with_fsync(true).with_automatic_cleanup(true);
            return Ok(Self::Folder { store, disk });
        };
        let retry = RetryConfig { max_retries: RETRIES_MAX, retry_timeout: RETRY_TIME_MAX, ..RetryConfig::default() };
        let store = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
        let store = store.with_http_connector(LimitedConnector::default()).build().map_err(open_error)?;
        Ok(Self::Bucket { store: Arc::new(store), folder: prefix.clone(), uploads: Semaphore::new(UPLOADS_MAX) })
    }

    fn store(&self) -> &dyn ObjectStore {
        match self {
            Self::Folder { store, .. } => store,
            Self::Bucket { store, .. } => store,
        }
    }

    fn path(&self, parts: &[&str]) -> Path {
        let folder = match self {
            Self::Folder { .. } => "",
            Self::Bucket { folder, .. } => folder,
        };
        folder.split('/').chain(parts.iter().copied()).filter(|part| !part.is_empty()).collect()
    }

    fn path_of(&self, company: CompanyId, id: &MediaId) -> Path {
        self.path(&[id.hour(), &company.to_string(), id.as_str()])
    }

    /// Stores an incoming file, atomically and durably.
    pub(super) async fn put(&self, company: CompanyId, id: &MediaId, mut file: SpooledFile) -> Result<(), String> {
        let to = self.path_of(company, id);
        match self {
            Self::Folder { store, disk } => {
                let _permit = disk.permit(company).await?;
                file.file.sync_all().await.map_err(|error| error.to_string())?;
                let name = file.name().ok_or("the file has no name")?;
                let from = self.path(&["incoming", &name.to_string_lossy()]);
                rename(store, &from, &to).await.map_err(|error| error.to_string())?;
            }
            Self::Bucket { store, uploads, .. } => {
                let _permit = uploads.acquire().await.map_err(|error| error.to_string())?;
                rewind(&mut file.file).await.map_err(|error| error.to_string())?;
                upload(store.as_ref(), &to, &mut file.file, |_| {}).await?;
            }
        }
        hotline_persistence::fail_point!("media_published", |_| std::process::abort());
        Ok(())
    }

    /// Stores the content of a file, atomically; each part of it is passed to `on_part`.
    pub(super) async fn write(
        &self,
        company: CompanyId,
        id: &MediaId,
        mut content: impl AsyncRead + Unpin,
        on_part: impl FnMut(&[u8]),
    ) -> Result<(), String> {
        upload(self.store(), &self.path_of(company, id), &mut content, on_part).await
    }

    pub(super) async fn get(
        &self,
        company: CompanyId,
        id: &MediaId,
        range: Option<Range<u64>>,
    ) -> Result<GetResult, ReadError> {
        let options = GetOptions::new().with_range(range);
        Ok(self.store().get_opts(&self.path_of(company, id), options).await?)
    }

    pub(super) async fn size(&self, company: CompanyId, id: &MediaId) -> Result<u64, ReadError> {
        Ok(self.store().head(&self.path_of(company, id)).await?.size)
    }

    /// The files that were stored in an hour.
    pub(super) fn of_hour(&self, hour: i64) -> BoxStream<'static, Result<FileKey, String>> {
        let objects = self.store().list(Some(&self.path(&[&hour_digits(hour)])));
        // Objects that this service has not written are ignored.
        let files = objects.try_filter_map(|object| std::future::ready(Ok(file_key(&object.location))));
        files.map_err(|error| error.to_string()).boxed()
    }

    /// Removes up to a few hundred files; missing ones are not an error.
    pub(super) async fn remove(&self, files: &[FileKey]) -> Result<(), String> {
        let paths: Vec<_> = files.iter().map(|(company, id)| Ok(self.path_of(*company, id))).collect();
        let mut results = self.store().delete_stream(futures_util::stream::iter(paths).boxed());
        while let Some(result) = results.next().await {
            match result {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

/// Renames a file in the folder.
async fn rename(store: &LocalFileSystem, from: &Path, to: &Path) -> Result<(), Error> {
    for _ in 1..RENAMES_MAX {
        if store.rename(from, to).await.is_ok() {
            return Ok(());
        }
    }
    store.rename(from, to).await
}

/// The key of the file at a path; `None` if the service has not written an object there.
fn file_key(path: &Path) -> Option<FileKey> {
    let mut parts = path.as_ref().rsplit('/');
    let id = parts.next()?.parse().ok()?;
    let company = parts.next()?.parse().ok()?;
    Some((company, id))
}

/// Uploads content, with at most one part of it in memory; each part is passed to `on_part`.
async fn upload(
    store: &dyn ObjectStore,
    to: &Path,
    content: &mut (impl AsyncRead + Unpin),
    mut on_part: impl FnMut(&[u8]),
) -> Result<(), String> {
    let first = read_part(content).await?;
    on_part(&first);
    if first.len() < PART_BYTES {
        return store.put(to, first.into()).await.map(drop).map_err(|error| error.to_string());
    }
    let mut upload = store.put_multipart(to).await.map_err(|error| error.to_string())?;
    let result = upload_parts(upload.as_mut(), first, content, on_part).await;
    if result.is_err() {
        // If this fails too, the bucket's own rule for incomplete uploads applies.
        let _ = upload.abort().await;
    }
    result
}

async fn upload_parts(
    upload: &mut dyn MultipartUpload,
    first: Bytes,
    content: &mut (impl AsyncRead + Unpin),
    mut on_part: impl FnMut(&[u8]),
) -> Result<(), String> {
    let mut part = first;
    while !part.is_empty() {
        upload.put_part(part.into()).await.map_err(|error| error.to_string())?;
        part = read_part(content).await?;
        on_part(&part);
    }
    upload.complete().await.map(drop).map_err(|error| error.to_string())
}

/// Reads the next part of the content; empty at its end.
async fn read_part(content: &mut (impl AsyncRead + Unpin)) -> Result<Bytes, String> {
    let mut part = BytesMut::with_capacity(PART_BYTES);
    while part.len() < PART_BYTES {
        let mut rest = (&mut *content).take((PART_BYTES - part.len()) as u64);
        if rest.read_buf(&mut part).await.map_err(|error| error.to_string())? == 0 {
            break;
        }
    }
    Ok(part.freeze())
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound { .. } => Self::NotFound,
            error => Self::Unavailable(error.to_string()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    #[test]
    fn a_store_url_has_a_bucket_and_an_optional_folder() {
        let url = |text: &str| text.parse::<StoreUrl>().map(|url| (url.bucket, url.folder));
        assert_eq!(url("s3://files"), Ok(("files".to_owned(), String::new())));
        assert_eq!(url("s3://files/hotline/media/"), Ok(("files".to_owned(), "hotline/media".to_owned())));
        for text in ["files", "https://files", "s3://", "s3:///folder", "s3://a b", "s3://files/../x"] {
            assert!(url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_paths_of_files_have_a_file_key() {
        let id = MediaId::new(chrono::DateTime::UNIX_EPOCH);
        let key_of = |path: String| file_key(&Path::parse(path).expect("a path"));
        assert_eq!(key_of(format!("a/{}/7/{id}", id.hour())), Some((CompanyId::new(7), id.clone())));
        assert_eq!(key_of(format!("{}/seven/{id}", id.hour())), None);
        assert_eq!(key_of(format!("{}/7/notes.txt", id.hour())), None);
    }
}
