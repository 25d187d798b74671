//! Media: the files of messages.
//!
//! A file comes in on disk ([`Media::receive`]), is looked at, and is stored ([`Media::publish`]) before the message
//! that names it is journaled: a message never names a file that is not there. A file that no message came to name is
//! removed by the sweep. A message's deletion takes its file along. In between, whoever may read the message gets an
//! address of the file that is good for a while ([`Links`]).

mod answers;
mod disk;
mod error;
mod incoming;
mod kind;
mod links;
mod name;
mod outgoing;
mod published;
mod space;
mod storage;
mod sweep;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{TimeDelta, Utc};
use futures_util::Stream;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::installation_keys;
use hotline_persistence::tables::media::{MediaId, StoredMedia};
use hotline_persistence::{CompanyId, Database};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::oneshot;

use disk::Disk;
pub use error::{OpenError, ReadError, Refused, StoreError, Unavailable};
use incoming::Arrived;
pub(crate) use incoming::Cut;
pub use incoming::Incoming;
pub use kind::Declared;
pub use links::{Bad, Claim, Links, PATH};
pub use object_store::GetResult;
pub use published::Published;
use space::Space;
use storage::Storage;
pub use storage::StoreUrl;

/// Bytes of a file, unless the installation says otherwise.
pub const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How long an address of a file is good, unless the installation says otherwise. As long as the answers that retries
/// are given are kept, so that those hold good addresses too.
pub const LINK_VALID_FOR: Duration = Duration::from_secs(24 * 3600);

/// How often files without a message are looked for. What is left to do then is done in small steps.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Longest a file may take from here to where it is stored. A network that is slower is away.
const PUBLISH_TIME_MAX: Duration = Duration::from_secs(300);

/// Bytes that stay free on the disk, unless the installation says otherwise: room for the journal and the database, and
/// for somebody to notice.
pub const FREE_BYTES_MIN: u64 = 1024 * 1024 * 1024;

/// How files are kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where they are while they come in, and, unless `store` says otherwise, for good.
    pub folder: PathBuf,
    /// Where they are stored instead.
    pub store: Option<StoreUrl>,
    /// Bytes of one.
    pub bytes_max: u64,
    /// Scheme, host and port under which others reach the service; none: addresses are paths.
    pub public_url: Option<String>,
    /// How long an address is good.
    pub link_valid_for: Duration,
    /// How often what belongs to no message is looked for.
    pub sweep_every: Duration,
    /// Bytes that stay free on the disk: files that would take of them are refused. 0: none.
    pub free_bytes_min: u64,
    /// Folders whose disks are watched for that, besides the one files come into.
    pub watched: Vec<PathBuf>,
}

impl Options {
    /// The defaults, with everything in this folder.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self {
            folder,
            store: None,
            bytes_max: BYTES_MAX,
            public_url: None,
            link_valid_for: LINK_VALID_FOR,
            sweep_every: SWEEP_EVERY,
            free_bytes_min: FREE_BYTES_MIN,
            watched: Vec::new(),
        }
    }
}

/// The files of every company. Cheap to clone.
#[derive(Clone)]
pub struct Media(Arc<Inner>);

struct Inner {
    bytes_max: u64,
    incoming: Incoming,
    place: Storage,
    links: Links,
    sweep_every: Duration,
    sweep_asked: Notify,
    /// Where work goes on that must not end with its caller.
    background: Handle,
}

/// A file that came in and is what it should be, but is not stored yet; gone again when this is dropped.
#[derive(Debug)]
pub struct Upload {
    arrived: Arrived,
    mime_type: String,
    file_name: String,
}

impl Media {
    /// Opens the store. The caller makes sure that no other process uses the folder.
    ///
    /// # Errors
    /// When the folder cannot be used, the store's address is none, or the database cannot answer.
    pub async fn open(
        options: Options,
        db: impl Database<'_>,
        keys: &Keyring,
        background: Handle,
    ) -> Result<Self, OpenError> {
        let key = installation_keys::find_or_create(db, keys, "media_links").await?;
        let public_url = options.public_url.clone();
        let (bytes_max, sweep_every) = (options.bytes_max, options.sweep_every);
        let valid_for = TimeDelta::from_std(options.link_valid_for).unwrap_or(TimeDelta::MAX);
        let folder = options.folder.clone();
        let store = options.store.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let watched = options.watched.into_iter().chain([folder.clone()]).collect();
            let disk = Disk::default();
            let incoming = Incoming::open(&folder, Space::of(watched, options.free_bytes_min), disk.clone())?;
            Ok::<_, OpenError>((incoming, Storage::open(&folder, store.as_ref(), disk)?))
        });
        let (incoming, place) = opened.await.map_err(io::Error::other)??;
        Ok(Self(Arc::new(Inner {
            bytes_max,
            incoming,
            place,
            links: Links::new(key, public_url.as_deref(), valid_for),
            sweep_every,
            sweep_asked: Notify::new(),
            background,
        })))
    }

    /// Bytes of a file.
    pub fn bytes_max(&self) -> u64 {
        self.0.bytes_max
    }

    /// Where files are while they come in.
    pub fn incoming(&self) -> &Incoming {
        &self.0.incoming
    }

    /// Where others reach the service, if that was said.
    pub fn public_url(&self) -> Option<&str> {
        self.links().public_url()
    }

    /// Makes addresses of files.
    pub fn links(&self) -> &Links {
        &self.0.links
    }

    /// Takes a file of this company's in: it is on disk then, and known to be what it is said to be.
    ///
    /// # Errors
    /// Why it is not taken.
    pub async fn receive<E>(
        &self,
        company: CompanyId,
        declared: &Declared,
        stream: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<Upload, StoreError<E>> {
        let arrived = self.0.incoming.take(company, stream, self.0.bytes_max, kind::HEAD_BYTES).await;
        let arrived = arrived.map_err(|cut| match cut {
            Cut::Source(error) => StoreError::Source(error),
            Cut::TooLong => Refused::TooLarge(self.0.bytes_max).into(),
            Cut::Disk(reason) => Unavailable::Store(reason).into(),
            Cut::Full => Unavailable::DiskFull.into(),
        })?;
        if arrived.size == 0 {
            return Err(Refused::Empty.into());
        }
        let mime_type = kind::of(&arrived.head, declared)?;
        let file_name = name::of(declared.file_name.as_deref(), &mime_type);
        Ok(Upload { arrived, mime_type, file_name })
    }

    /// Stores a file that was taken in: it outlives a crash then. The message that names it must be journaled within
    /// the hour; a file that none names is removed.
    ///
    /// # Errors
    /// When it cannot be stored now.
    pub async fn publish(&self, company: CompanyId, upload: Upload) -> Result<StoredMedia, Unavailable> {
        let Upload { arrived, mime_type, file_name } = upload;
        let stored = StoredMedia { id: MediaId::new(Utc::now()), mime_type, file_name, size: arrived.size };
        let media = self.clone();
        let id = stored.id.clone();
        // What has begun ends: half a file at a store of somebody else's would stay there unseen.
        let (publishes, published) = oneshot::channel();
        let unnamed = stored.clone();
        drop(self.0.background.spawn(async move {
            let putting = media.0.place.put(company, &id, arrived);
            let put = tokio::time::timeout(PUBLISH_TIME_MAX, putting).await;
            // The request that was to name the file has gone.
            if let Err(Ok(Ok(()))) = publishes.send(put) {
                media.discard(company, &[unnamed]);
            }
        }));
        match published.await {
            Ok(Ok(Ok(()))) => Ok(stored),
            Ok(Ok(Err(reason))) => Err(Unavailable::Store(reason)),
            Ok(Err(_)) => Err(Unavailable::Store(format!("it took more than {} s", PUBLISH_TIME_MAX.as_secs()))),
            Err(_) => Err(Unavailable::Store("a panic while it was stored".to_owned())),
        }
    }

    /// Removes files that no message names, and that none ever will: what named them was refused. It is not waited
    /// for; should it fail, the sweep comes by.
    pub fn discard(&self, company: CompanyId, files: &[StoredMedia]) {
        let files: Vec<_> = files.iter().map(|file| (company, file.id.clone())).collect();
        if files.is_empty() {
            return;
        }
        let media = self.clone();
        drop(self.0.background.spawn(async move {
            if let Err(error) = media.0.place.remove(&files).await {
                tracing::debug!(error, "files of a refused message are left to the sweep");
            }
        }));
    }

    /// Takes a file in and stores it: [`Media::receive`], then [`Media::publish`].
    ///
    /// # Errors
    /// Why it is not taken, or not stored.
    pub async fn store<E>(
        &self,
        company: CompanyId,
        declared: &Declared,
        stream: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<StoredMedia, StoreError<E>> {
        let upload = self.receive(company, declared, stream).await?;
        Ok(self.publish(company, upload).await?)
    }

    /// A file of a company, or a range of its bytes, as a stream.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn read(
        &self,
        company: CompanyId,
        id: &MediaId,
        range: Option<std::ops::Range<u64>>,
    ) -> Result<GetResult, ReadError> {
        self.0.place.get(company, id, range).await
    }

    /// How many bytes a file of a company has.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn size(&self, company: CompanyId, id: &MediaId) -> Result<u64, ReadError> {
        self.0.place.size(company, id).await
    }
}
