//! Media: the files of messages.
//!
//! An incoming file is written to disk and examined ([`Media::receive`]), and stored ([`Media::publish`]) before the
//! message that refers to it is journaled: a message never refers to a missing file. A file to which no message refers
//! is removed by the sweep. Deleting a message also deletes its file. Everyone who may read the message gets a URL of
//! the file that is valid for a limited time ([`Links`]).

mod archive;
mod disk;
mod error;
mod incoming;
mod links;
mod marker;
mod mime_type;
mod missing;
mod name;
mod outgoing;
mod response_limit;
mod space;
mod storage;
mod sweep;
mod unreferenced_files;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::TimeDelta;
use futures_util::Stream;
use hotline_actors::clock;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::installation_keys;
use hotline_persistence::tables::media::{FileKey, MediaId, StoredMedia};
use hotline_persistence::{CompanyId, Database};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::oneshot;

pub use archive::FileArchive;
use disk::Disk;
pub use error::{FileError, OpenError, ReadError, StoreError, Unavailable};
pub use incoming::Incoming;
pub(crate) use incoming::SpoolError;
use incoming::SpooledFile;
pub use links::{InvalidLink, Links, PATH, SignedLink};
pub use mime_type::FileDeclaration;
use missing::MissingFiles;
pub use object_store::GetResult;
use space::DiskSpace;
pub use storage::StoreUrl;
use storage::{Storage, UnfinishedUpload};
pub use unreferenced_files::UnreferencedFiles;

/// Default maximum size of a file that is uploaded.
pub const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Default maximum size of a file that is fetched from a provider: the largest that contacts can send, a document on
/// WhatsApp.
/// <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/media#supported-media-types>
pub const FETCHED_BYTES_MAX: u64 = 100 * 1024 * 1024;

/// Default validity of a URL: as long as responses are recorded for retries, so that a repeated one has valid URLs.
pub const LINK_VALID_FOR: Duration = Duration::from_secs(24 * 3600);

/// How often the sweep runs. It works in small steps.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Maximum time for storing a file. A slower network counts as unavailable.
const PUBLISH_TIME_MAX: Duration = Duration::from_secs(300);

/// Default minimum of free disk space: room for the journal and the database until an operator reacts.
pub const FREE_BYTES_MIN: u64 = 1024 * 1024 * 1024;

/// The settings of media.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of incoming files, and of stored files unless `store` is set.
    pub folder: PathBuf,
    /// The bucket for stored files.
    pub store: Option<StoreUrl>,
    /// Maximum size of a file that is uploaded.
    pub bytes_max: u64,
    /// Maximum size of a file that is fetched from a provider.
    pub fetched_bytes_max: u64,
    /// Scheme, host and port under which clients reach the service; `None`: URLs are relative.
    pub public_url: Option<String>,
    /// Validity of a URL.
    pub link_valid_for: Duration,
    /// Interval of the sweep.
    pub sweep_every: Duration,
    /// Free space on disk: files that would reduce it below this are refused. 0: no limit.
    pub free_bytes_min: u64,
    /// Whether other processes use the same folder.
    pub is_shared: bool,
    /// Further folders whose disks must have that free space.
    pub watched: Vec<PathBuf>,
}

impl Options {
    /// The defaults, with everything in this folder.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self {
            folder,
            store: None,
            bytes_max: BYTES_MAX,
            fetched_bytes_max: FETCHED_BYTES_MAX,
            public_url: None,
            link_valid_for: LINK_VALID_FOR,
            sweep_every: SWEEP_EVERY,
            free_bytes_min: FREE_BYTES_MIN,
            is_shared: false,
            watched: Vec::new(),
        }
    }
}

/// The files of all companies. Cheap to clone.
#[derive(Clone)]
pub struct Media(Arc<Inner>);

struct Inner {
    bytes_max: u64,
    fetched_bytes_max: u64,
    incoming: Incoming,
    storage: Storage,
    links: Links,
    sweep_every: Duration,
    sweep_request: Notify,
    missing: MissingFiles,
    shared_folder_id: Option<String>,
    /// The runtime for work that must not be canceled with its caller.
    background: Handle,
}

/// An uploaded file that was examined and is not stored yet; deleted when this is dropped.
#[derive(Debug)]
pub struct Upload {
    file: SpooledFile,
    mime_type: String,
    file_name: String,
}

impl Upload {
    /// The type of its content.
    pub fn mime_type(&self) -> &str {
        &self.mime_type
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.file.size
    }
}

impl Media {
    /// Opens the store. Unless `is_shared`, the caller ensures that no other process uses the folder.
    ///
    /// # Errors
    /// When the folder cannot be used, the store's URL is invalid, or the database cannot answer.
    pub async fn open(
        options: Options,
        db: impl Database<'_>,
        keys: &Keyring,
        background: Handle,
    ) -> Result<Self, OpenError> {
        let key = installation_keys::find_or_create_temporary(db, keys, "media_links").await?;
        let public_url = options.public_url.clone();
        let (bytes_max, fetched_bytes_max) = (options.bytes_max, options.fetched_bytes_max);
        let sweep_every = options.sweep_every;
        let valid_for = TimeDelta::from_std(options.link_valid_for).unwrap_or(TimeDelta::MAX);
        let folder = options.folder.clone();
        let store = options.store.clone();
        let opening = tokio::task::spawn_blocking(move || {
            let watched = options.watched.into_iter().chain([folder.clone()]).collect();
            let disk = Disk::default();
            let space = DiskSpace::of(watched, options.free_bytes_min);
            let incoming = Incoming::open(&folder, space, disk.clone(), options.is_shared)?;
            let id = options.is_shared.then(|| marker::id_of(&folder)).transpose()?;
            Ok::<_, OpenError>((incoming, Storage::open(&folder, store.as_ref(), disk)?, id))
        });
        let (incoming, storage, shared_folder_id) = opening.await.map_err(io::Error::other)??;
        Ok(Self(Arc::new(Inner {
            bytes_max,
            fetched_bytes_max,
            incoming,
            storage,
            links: Links::new(key, public_url.as_deref(), valid_for),
            sweep_every,
            sweep_request: Notify::new(),
            missing: MissingFiles::default(),
            shared_folder_id,
            background,
        })))
    }

    /// The id of the folder that processes share, if they do.
    pub fn shared_folder_id(&self) -> Option<&str> {
        self.0.shared_folder_id.as_deref()
    }

    /// Maximum size of a file that is uploaded.
    pub fn bytes_max(&self) -> u64 {
        self.0.bytes_max
    }

    /// Maximum size of a file that is fetched from a provider.
    pub fn fetched_bytes_max(&self) -> u64 {
        self.0.fetched_bytes_max
    }

    /// The folder of incoming files.
    pub fn incoming(&self) -> &Incoming {
        &self.0.incoming
    }

    /// The public URL of the service, if configured.
    pub fn public_url(&self) -> Option<&str> {
        self.links().public_url()
    }

    /// Creates URLs of files.
    pub fn links(&self) -> &Links {
        &self.0.links
    }

    /// Receives an uploaded file: writes it to disk, and checks that its content matches its declared type.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn receive<E>(
        &self,
        company: CompanyId,
        declared: &FileDeclaration,
        stream: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<Upload, StoreError<E>> {
        self.receive_within(company, declared, stream, self.0.bytes_max).await
    }

    async fn receive_within<E>(
        &self,
        company: CompanyId,
        declared: &FileDeclaration,
        stream: impl Stream<Item = Result<Bytes, E>>,
        bytes_max: u64,
    ) -> Result<Upload, StoreError<E>> {
        let file = self.0.incoming.receive(company, stream, bytes_max, mime_type::HEAD_BYTES).await;
        let file = file.map_err(|error| match error {
            SpoolError::Source(error) => StoreError::Source(error),
            SpoolError::TooLong => FileError::TooLarge(bytes_max).into(),
            SpoolError::Disk(reason) => Unavailable::Store(reason).into(),
            SpoolError::Full => Unavailable::DiskFull.into(),
        })?;
        if file.size == 0 {
            return Err(FileError::Empty.into());
        }
        let mime_type = mime_type::detect(&file.head, declared)?;
        let file_name = name::normalize(declared.file_name.as_deref(), &mime_type);
        Ok(Upload { file, mime_type, file_name })
    }

    /// Stores a received file durably. The message that refers to it must be journaled within an hour; otherwise the
    /// file is removed.
    ///
    /// # Errors
    /// When it cannot be stored now.
    pub async fn publish(&self, company: CompanyId, upload: Upload) -> Result<StoredMedia, Unavailable> {
        let Upload { file, mime_type, file_name } = upload;
        let stored =
            StoredMedia { id: MediaId::new(clock::now()), mime_type, file_name, size: file.size, voice: false };
        let media = self.clone();
        let id = stored.id.clone();
        // Not canceled with the request: an incomplete upload would remain in the bucket.
        let (result_sender, result_receiver) = oneshot::channel();
        let stored_copy = stored.clone();
        drop(self.0.background.spawn(async move {
            let mut unfinished = UnfinishedUpload::default();
            let storing = media.0.storage.put(company, &id, file, &mut unfinished);
            let result = tokio::time::timeout(PUBLISH_TIME_MAX, storing).await;
            // The file is stored, but the request was canceled: no message will refer to it.
            if let Err(Ok(Ok(()))) = result_sender.send(result) {
                media.discard(company, &[stored_copy]);
            }
            unfinished.abort().await;
        }));
        match result_receiver.await {
            Ok(Ok(Ok(()))) => Ok(stored),
            Ok(Ok(Err(reason))) => Err(Unavailable::Store(reason)),
            Ok(Err(_)) => Err(Unavailable::Store(format!("it took more than {} s", PUBLISH_TIME_MAX.as_secs()))),
            Err(_) => Err(Unavailable::Store("storing it panicked".to_owned())),
        }
    }

    /// Removes files to which no message will refer, for example because the command was refused. Runs in the
    /// background; if it fails, the sweep removes them.
    pub fn discard(&self, company: CompanyId, files: &[StoredMedia]) {
        let files: Vec<_> = files.iter().map(|file| (company, file.id.clone())).collect();
        if files.is_empty() {
            return;
        }
        let media = self.clone();
        drop(self.0.background.spawn(async move {
            if let Err(error) = media.0.storage.remove(&files).await {
                tracing::debug!(error, "could not remove files of a refused message; the sweep will");
            }
        }));
    }

    /// Receives and stores a file that is fetched from a provider.
    ///
    /// # Errors
    /// Why it is refused, or could not be stored.
    pub async fn store<E>(
        &self,
        company: CompanyId,
        declared: &FileDeclaration,
        stream: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<StoredMedia, StoreError<E>> {
        let upload = self.receive_within(company, declared, stream, self.0.fetched_bytes_max).await?;
        Ok(self.publish(company, upload).await?)
    }

    /// Reads a company's file, or a range of it, as a stream.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn read(
        &self,
        company: CompanyId,
        id: &MediaId,
        range: Option<std::ops::Range<u64>>,
    ) -> Result<GetResult, ReadError> {
        self.0.storage.get(company, id, range).await.inspect_err(|error| self.note_missing(company, id, error))
    }

    /// The size of a company's file in bytes.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn size(&self, company: CompanyId, id: &MediaId) -> Result<u64, ReadError> {
        self.0.storage.size(company, id).await.inspect_err(|error| self.note_missing(company, id, error))
    }

    fn note_missing(&self, company: CompanyId, id: &MediaId, error: &ReadError) {
        if matches!(error, ReadError::NotFound) {
            self.0.missing.add([(company, id.clone())]);
        }
    }

    /// The files requested since the last call that are not in the store; at most a few dozen.
    pub fn take_missing(&self) -> Vec<FileKey> {
        self.0.missing.take()
    }

    /// Takes files back that [`Media::take_missing`] returned, because they could not be looked up. The next call
    /// returns them again, as far as there is room beside newer ones.
    pub fn return_missing(&self, files: Vec<FileKey>) {
        self.0.missing.add(files);
    }

    /// Whether a file is in the store.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn has_file(&self, (company, id): &FileKey) -> Result<bool, ReadError> {
        match self.0.storage.size(*company, id).await {
            Ok(_) => Ok(true),
            Err(ReadError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
