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

    /// Stores an incoming file, atomically and durably. The caller must abort what is left in `unfinished`, even if it
    /// has dropped the future.
    pub(super) async fn put(
        &self,
        company: CompanyId,
        id: &MediaId,
        mut file: SpooledFile,
        unfinished: &mut UnfinishedUpload,
    ) -> Result<(), String> {
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
                upload(store.as_ref(), &to, &mut file.file, |_| {}, unfinished).await?;
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
        let mut unfinished = UnfinishedUpload::default();
        let to = self.path_of(company, id);
        let result = upload(self.store(), &to, &mut content, on_part, &mut unfinished).await;
        unfinished.abort().await;
        result
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

/// The key of the file at a path; `None` for an object that this service has not written.
fn file_key(path: &Path) -> Option<FileKey> {
    let mut parts = path.as_ref().rsplit('/');
    let id = parts.next()?.parse().ok()?;
    let company = parts.next()?.parse().ok()?;
    Some((company, id))
}

/// An upload in parts that has begun and is not complete. It is kept outside the future that uploads, so that the parts
/// can be removed from the bucket even if that is dropped.
#[derive(Default)]
pub(super) struct UnfinishedUpload(Option<Box<dyn MultipartUpload>>);

impl UnfinishedUpload {
    /// Removes the parts from the bucket; does nothing if the upload is complete.
    pub(super) async fn abort(self) {
        if let Some(mut upload) = self.0 {
            // If this fails too, the bucket's own rule for incomplete uploads applies.
            let _ = upload.abort().await;
        }
    }
}

/// Uploads content, with at most one part of it in memory; each part is passed to `on_part`. An upload in parts is in
/// `unfinished` until it is complete.
async fn upload(
    store: &dyn ObjectStore,
    to: &Path,
    content: &mut (impl AsyncRead + Unpin),
    mut on_part: impl FnMut(&[u8]),
    unfinished: &mut UnfinishedUpload,
) -> Result<(), String> {
    let first = read_part(content).await?;
    on_part(&first);
    if first.len() < PART_BYTES {
        return store.put(to, first.into()).await.map(drop).map_err(|error| error.to_string());
    }
    let upload = unfinished.0.insert(store.put_multipart(to).await.map_err(|error| error.to_string())?);
    upload_parts(upload.as_mut(), first, content, on_part).await?;
    unfinished.0 = None;
    Ok(())
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
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;

    use super::*;

    /// Starts a bucket that never answers a part; returns its URL, and the method of each request.
    async fn start_stalled_bucket() -> (String, mpsc::UnboundedReceiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
        let address = listener.local_addr().expect("an address");
        let (method_sender, methods) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let method_sender = method_sender.clone();
                tokio::spawn(async move {
                    let mut head = [0; 4096];
                    let length = stream.read(&mut head).await.unwrap_or_default();
                    let head = String::from_utf8_lossy(&head[..length]);
                    let method = head.split(' ').next().unwrap_or_default().to_owned();
                    let response = match method.as_str() {
                        "POST" => {
                            let id =
                                "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>";
                            let length = id.len();
                            format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{id}")
                        }
                        "DELETE" => "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".to_owned(),
                        _ => String::new(),
                    };
                    let _ = method_sender.send(method);
                    if response.is_empty() {
                        std::future::pending::<()>().await;
                    }
                    let _ = stream.write_all(response.as_bytes()).await;
                });
            }
        });
        (format!("http://{address}"), methods)
    }

    #[tokio::test]
    async fn the_parts_of_an_upload_that_is_dropped_are_removed() {
        let (url, mut methods) = start_stalled_bucket().await;
        let store = AmazonS3Builder::new().with_bucket_name("files").with_region("eu-test-1").with_endpoint(url);
        let store = store.with_allow_http(true).with_access_key_id("key").with_secret_access_key("secret");
        let store = store.with_http_connector(LimitedConnector::default()).build().expect("a bucket");
        let bytes = vec![0; PART_BYTES + 1];
        let (mut content, to) = (bytes.as_slice(), Path::from("a"));
        let mut unfinished = UnfinishedUpload::default();
        tokio::select! {
            result = upload(&store, &to, &mut content, |_| {}, &mut unfinished) => panic!("it ended: {result:?}"),
            () = async { while methods.recv().await.is_some_and(|method| method != "PUT") {} } => {}
        }
        unfinished.abort().await;
        assert_eq!(methods.recv().await.as_deref(), Some("DELETE"));
    }

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
