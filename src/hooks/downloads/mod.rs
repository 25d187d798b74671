//! Downloads of files that contacts send: the provider keeps them for a while and returns their URL.
//! <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/media>
//!
//! The message comes first: it is durable, with a reference to its file, before the provider gets its response; so the
//! provider need not wait for a download. The file is downloaded afterwards, with retries until the provider no
//! longer has it, then stored and added to its message. Downloads that a restart interrupts are found in the table. A
//! stored file that cannot be added in time ([`Media::may_be_attached`]) is downloaded again.
//!
//! The URL of a file comes from the provider's call or response, so it may lead anywhere: the file is downloaded only
//! through [`Outbound`].
//!
//! Companies take turns (`queue.rs`), so that one whose files cannot be downloaded delays only its own. The pause
//! before a retry is half of the age of the message, so no count of attempts is stored. Retries end after
//! [`ID_RETRY_MAX`] if the file has an id, by which its URL can be requested again, and after [`URL_RETRY_MAX`] if only
//! a URL is known. A permanent error ([`FetchError::Permanent`]) is not retried.

mod byte_budget;
mod queue;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use actix_web::error::PayloadError;
use bytes::Bytes;
use chrono::TimeDelta;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use hotline_actors::channels::{Account, SendFailure};
use hotline_actors::tickets::SetMedia;
use hotline_actors::{Engine, Refusal, clock};
use hotline_persistence::tables::media::StoredMedia;
use hotline_persistence::tables::messages::{self, MessageError, MessageRow};
use hotline_persistence::{ChannelId, CompanyId, MessageId};
use parking_lot::Mutex;
use rand::RngExt;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio::sync::Notify;

use self::byte_budget::ByteBudget;
use self::queue::{DownloadLimits, DownloadQueue, PendingFile};
use super::call::FileReference;
use crate::media::{FileDeclaration, FileError, Media, StoreError};
use crate::outbound::{Outbound, OutboundError};
use crate::providers::{Graph, GraphError};
use crate::web::connections::{MinRate, MinRateStream};

/// The content type that says nothing about the content.
const OCTET_STREAM: &str = "application/octet-stream";

/// Minimum average bytes per second of a file, beyond the grace time ([`Outbound::call_time_max`]). A file of 100 MiB
/// may take half an hour. A slower server could occupy its company's downloads and bytes for days.
const FILE_BYTES_PER_S_MIN: u32 = 64 * 1024;

/// Bounds of the pause before a retry. Jitter then shortens it by up to half.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// How long a file with an id is retried; the provider keeps files for at least a week.
const ID_RETRY_MAX: TimeDelta = TimeDelta::days(7);

/// How long a file without an id is retried: its URL cannot be renewed. The file exists when the call arrives; a day is
/// longer than a likely outage of the provider's file servers.
const URL_RETRY_MAX: TimeDelta = TimeDelta::days(1);

/// How often the table is searched for waiting files, and how many are read at once.
const SEARCH_EVERY: Duration = Duration::from_secs(60);
const SEARCH_LIMIT: i64 = 1000;

/// The downloads. Cheap to clone.
#[derive(Clone)]
pub struct Downloads(Arc<Inner>);

struct Inner {
    engine: Engine,
    graph: Graph,
    outbound: Outbound,
    media: Media,
    queue: Mutex<DownloadQueue<Download>>,
    /// The bytes of the files that are being downloaded.
    bytes: ByteBudget,
    search_requested: Notify,
}

/// A message and its file.
struct Download {
    message: MessageRow,
    file: FileReference,
}

impl Download {
    fn of(message: &MessageRow) -> Option<Self> {
        let file = message.media.as_ref().and_then(FileReference::of)?;
        Some(Self { message: message.clone(), file })
    }
}

impl FileReference {
    /// How long the file is retried.
    fn retry_max(&self) -> TimeDelta {
        if self.id.is_some() { ID_RETRY_MAX } else { URL_RETRY_MAX }
    }
}

impl PendingFile for Download {
    fn company(&self) -> CompanyId {
        self.message.company_id
    }

    fn channel(&self) -> ChannelId {
        self.message.channel_id
    }

    fn message(&self) -> MessageId {
        self.message.id
    }
}

/// A running download. Its slot is freed however the download ends.
struct RunningDownload {
    downloads: Downloads,
    download: Option<Download>,
}

impl RunningDownload {
    /// Retries it after a pause, and frees its slot meanwhile.
    fn pause(mut self, pause: Duration) {
        let Some(download) = self.download.take() else { return };
        let (company, message) = (download.message.company_id, download.message.id);
        self.downloads.0.queue.lock().pause(download);
        self.downloads.start_next();
        let downloads = self.downloads.clone();
        self.downloads.0.engine.spawn(async move {
            tokio::time::sleep(jittered(pause)).await;
            downloads.0.queue.lock().wake(company, message);
            downloads.start_next();
        });
    }

    /// Frees the slot of a downloaded file, so that other files need not wait until its message can be changed. The
    /// file stays in the queue until then, because otherwise a search would start it again.
    fn release_slot(&self) {
        if let Some(download) = &self.download {
            self.downloads.0.queue.lock().finish(download);
        }
        self.downloads.start_next();
    }
}

impl Drop for RunningDownload {
    fn drop(&mut self) {
        let Some(download) = self.download.take() else { return };
        self.downloads.0.queue.lock().remove(&download);
        self.downloads.start_next();
    }
}

/// Why a file is not available.
enum FetchError {
    /// The file may become available later.
    Transient(String),
    /// The file will never become available.
    Permanent(MessageError),
}

impl Downloads {
    /// Creates the downloads with these clients.
    pub fn new(engine: Engine, graph: Graph, outbound: Outbound, media: Media) -> Self {
        let queue = Mutex::new(DownloadQueue::new(DownloadLimits::default()));
        let bytes = ByteBudget::default();
        Self(Arc::new(Inner { engine, graph, outbound, media, queue, bytes, search_requested: Notify::new() }))
    }

    /// Drops a company's waiting files; the table still has them.
    pub fn forget(&self, company: CompanyId) {
        // Bytes are counted only for as long as a download runs.
        let Inner { engine: _, graph: _, outbound: _, media: _, queue, bytes: _, search_requested: _ } = &*self.0;
        queue.lock().forget(company);
    }

    /// Requests a search for files that are not being downloaded.
    pub fn search_soon(&self) {
        self.0.search_requested.notify_one();
    }

    /// Queues the download of a new message's file. If memory has no room for it, a later search finds it.
    pub(super) fn begin(&self, message: &MessageRow) {
        let Some(download) = Download::of(message) else { return };
        self.0.queue.lock().add_new(download);
        self.start_next();
    }

    /// Removes the file of a deleted message, or cancels its download. `message` is the row before the deletion. A
    /// running download ends first, and its file is then discarded.
    pub(super) fn withdraw(&self, message: &MessageRow) {
        let Some(media) = &message.media else { return };
        self.0.queue.lock().withdraw(message.company_id, message.id);
        if let Some(stored) = StoredMedia::of(media) {
            self.0.media.discard(message.company_id, &[stored]);
        }
        // A file that was added to the message after `message` was read is removed by the sweep.
        self.0.media.sweep_soon();
    }

    /// Searches for files that are not being downloaded, for as long as the process lives.
    pub async fn run_search(&self) {
        let mut ticker = tokio::time::interval(SEARCH_EVERY);
        let mut start_after = MessageId::new(0);
        loop {
            tokio::select! {
                _ = ticker.tick() => {}
                () = self.0.search_requested.notified() => {}
            }
            match self.search(start_after).await {
                Ok(next) => start_after = next,
                Err(error) => tracing::debug!(%error, "search for files to download will be retried"),
            }
        }
    }

    /// Searches all waiting files in the order of message ids: those after `start_after`, and then those up to it.
    /// Returns the `start_after` of the next search, which begins at the first file for which there was no room, so
    /// that none is left out forever.
    async fn search(&self, start_after: MessageId) -> hotline_persistence::Result<MessageId> {
        let store = self.0.engine.store();
        // Once the tables have every durable change, completed files are not found again.
        store.log.wait_until_flushed(store.log.durable()).await?;
        let served_slots = store.ownership().slot_filter();
        let mut next_start_after = None;
        for (mut after, until) in [(start_after, None), (MessageId::new(0), Some(start_after))] {
            loop {
                let waiting = messages::awaiting_media(&store.housekeeping, &served_slots, after, SEARCH_LIMIT).await?;
                let Some(last) = waiting.last() else { break };
                after = last.id;
                let is_last_page = until.is_some_and(|until| after > until);
                let waiting = waiting.iter().filter(|message| until.is_none_or(|until| message.id <= until));
                for message in waiting.filter(|message| self.0.engine.owns(message.company_id)) {
                    let Some(download) = Download::of(message) else { continue };
                    if !self.0.queue.lock().add_found(download) && next_start_after.is_none() {
                        // The next search begins with this message.
                        next_start_after = Some(MessageId::new(message.id.0 - 1));
                    }
                }
                self.start_next();
                if is_last_page {
                    break;
                }
            }
        }
        Ok(next_start_after.unwrap_or(MessageId::new(0)))
    }

    /// Starts as many downloads as there are free slots.
    fn start_next(&self) {
        while let Some(download) = { self.0.queue.lock().start_next() } {
            let downloads = self.clone();
            self.0.engine.spawn(async move { downloads.run_download(download).await });
        }
    }

    /// Tries to download a file. Adds it to its message, or schedules a retry.
    async fn run_download(&self, download: Download) {
        let running = RunningDownload { downloads: self.clone(), download: Some(download) };
        let Some(Download { message, file }) = &running.download else { return };
        let age = clock::now() - message.created_at;
        let media = match self.locate_and_store(message, file).await {
            Ok(media) => Ok(media),
            Err(FetchError::Permanent(error)) => Err(error),
            Err(FetchError::Transient(reason)) if age > file.retry_max() => Err(unavailable(&reason)),
            Err(FetchError::Transient(reason)) => {
                tracing::debug!(reason, message.id = %message.id, "file download will be retried");
                return running.pause(pause_for_age(age));
            }
        };
        if let Err(error) = &media {
            tracing::warn!(code = error.code, message.id = %message.id, "file download failed");
        }
        running.release_slot();
        if self.0.queue.lock().is_withdrawn(message.company_id, message.id) {
            let stored = media.ok().as_ref().and_then(StoredMedia::of);
            return self.0.media.discard(message.company_id, stored.as_slice());
        }
        let is_outdated = !self.attach(message, media).await;
        // Removed from the queue first: a search skips what is in it.
        drop(running);
        if is_outdated {
            self.search_soon();
        }
    }

    /// Adds the file, or the error, to its message. Retries while changes cannot be made durable. Returns false, and
    /// gives the file up, when so much time has passed that the sweep may remove the file before it is added.
    async fn attach(&self, message: &MessageRow, media: Result<Value, MessageError>) -> bool {
        let stored = media.as_ref().ok().and_then(StoredMedia::of);
        let command = SetMedia { message: message.id, media };
        let ownership = self.0.engine.store().ownership();
        loop {
            let presence = ownership.enter_without_limit(message.company_id).await;
            // Checked right before the change: the company may not have been served for hours.
            if stored.as_ref().is_some_and(|stored| !Media::may_be_attached(&stored.id, clock::now())) {
                tracing::debug!(message.id = %message.id, "file waited too long; it will be downloaded again");
                // Not discarded: the outcome of the last attempt may be unknown. The sweep looks for the message.
                return false;
            }
            match self.set_media(message, command.clone()).await {
                Err(Refusal::Unavailable(reason)) => {
                    tracing::debug!(reason, message.id = %message.id, "attaching a file to its message will be retried");
                    drop(presence);
                    tokio::time::sleep(jittered(PAUSE_MIN)).await;
                }
                // Refused if the message was deleted with its contact; the sweep then removes the file.
                Ok(()) | Err(_) => return true,
            }
        }
    }

    async fn set_media(&self, message: &MessageRow, command: SetMedia) -> Result<(), Refusal> {
        hotline_persistence::fail_point!("file_unattached", |_| Err(Refusal::Unavailable("fail point".to_owned())));
        self.0.engine.tickets.ask_following(message.company_id, message.ticket_id, command).await
    }

    /// Downloads a file and stores it. Tries again at once if its type is unknown or not the declared one.
    async fn locate_and_store(&self, message: &MessageRow, file: &FileReference) -> Result<Value, FetchError> {
        let (company, channel) = (message.company_id, message.channel_id);
        let organization = self.0.engine.directory().company(company);
        let account = organization.and_then(|organization| Account::of(organization.channels.get(&channel)?));
        let account = account.ok_or_else(|| FetchError::Transient("the channel has no usable account".to_owned()))?;
        let location = self.locate(&account, file).await?;
        let declared = FileDeclaration { mime_type: location.mime_type.clone(), file_name: file.file_name.clone() };
        let mut stored = self.store_as(company, &account, &location, declared).await;
        if let Err(DownloadError::Refused(FileError::TypeUnknown)) = stored {
            // Neither the content nor the declaration shows a type. An empty declaration uses the response's header.
            stored = self.store_as(company, &account, &location, FileDeclaration::default()).await;
        }
        if let Err(DownloadError::Refused(FileError::TypeMismatch | FileError::TypeUnknown)) = stored {
            // The declared type is wrong: the content decides, and if it shows no type, the file is plain bytes.
            let plain_bytes = FileDeclaration { mime_type: Some(OCTET_STREAM.to_owned()), file_name: None };
            stored = self.store_as(company, &account, &location, plain_bytes).await;
        }
        Ok(json!(StoredMedia { voice: file.voice, ..stored.map_err(DownloadError::into_fetch_error)? }))
    }

    /// The URL of a file: requested from the provider by the file's id, or, without an id, taken from the call.
    async fn locate(&self, account: &Account, file: &FileReference) -> Result<FileLocation, FetchError> {
        let mime_type = file.mime_type.clone();
        let Some(id) = &file.id else {
            let url = file
                .url
                .clone()
                .ok_or_else(|| FetchError::Permanent(unavailable("the provider gave no URL for the file")))?;
            return Ok(FileLocation { url, mime_type, is_from_provider: false });
        };
        let reply = self.0.graph.file(account, id).await.map_err(|error| lookup_error(&error))?;
        let reply = reply.unwrap_or_default();
        let bytes_max = self.0.media.fetched_bytes_max();
        if reply["file_size"].as_u64().is_some_and(|size| size > bytes_max) {
            return Err(DownloadError::Refused(FileError::TooLarge(bytes_max)).into_fetch_error());
        }
        let url = reply["url"].as_str().map(str::to_owned);
        let url =
            url.ok_or_else(|| FetchError::Transient("the provider's response has no URL for the file".to_owned()))?;
        let mime_type = reply["mime_type"].as_str().map(str::to_owned).or(mime_type);
        Ok(FileLocation { url, mime_type, is_from_provider: true })
    }

    /// Downloads the file from its location and stores it with the declared type and name; without either, with the
    /// type in the response's header.
    async fn store_as(
        &self,
        company: CompanyId,
        account: &Account,
        location: &FileLocation,
        declared: FileDeclaration,
    ) -> Result<StoredMedia, DownloadError> {
        // The token is only for a URL that the provider returned; a URL in a call may be anyone's.
        let token = location.is_from_provider.then_some(account.access_token.0.as_str());
        let response = self.0.outbound.get(&location.url, token).await;
        let response =
            response.map_err(|error| DownloadError::Fetch(fetch_error(&error, location.is_from_provider)))?;
        let declared = match declared {
            FileDeclaration { mime_type: None, file_name: None } => FileDeclaration {
                mime_type: response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(str::to_owned),
                file_name: None,
            },
            declared => declared,
        };
        let bytes_max = self.0.media.fetched_bytes_max();
        let bytes = response.content_length().map_or(bytes_max, |length| length.min(bytes_max));
        let budget_error = || FetchError::Transient("other files of the company are being downloaded".to_owned());
        let reserved = self.0.bytes.reserve(company, bytes).await;
        let _reserved = reserved.ok_or_else(|| DownloadError::Fetch(budget_error()))?;
        match self.0.media.store(company, &declared, self.chunks(response)).await {
            Ok(stored) => Ok(stored),
            Err(StoreError::Refused(error)) => Err(DownloadError::Refused(error)),
            Err(StoreError::Source(error)) => Err(DownloadError::Fetch(FetchError::Transient(error.to_string()))),
            Err(StoreError::Unavailable(reason)) => {
                Err(DownloadError::Fetch(FetchError::Transient(reason.to_string())))
            }
        }
    }

    /// The chunks of a file; they fail when they arrive too slowly.
    fn chunks(&self, response: Response) -> MinRateStream<BoxStream<'static, Result<Bytes, PayloadError>>> {
        let min_rate = MinRate { grace: self.0.outbound.call_time_max(), bytes_per_s: FILE_BYTES_PER_S_MIN };
        let to_error = |error: reqwest::Error| PayloadError::Io(io::Error::other(error.without_url()));
        MinRateStream::with_rate(min_rate, response.bytes_stream().map(move |chunk| chunk.map_err(to_error)).boxed())
    }
}

/// The location of a file.
struct FileLocation {
    url: String,
    mime_type: Option<String>,
    /// Whether the URL was requested from the provider; it is then valid for only a few minutes and needs the token.
    is_from_provider: bool,
}

/// Why a file was not stored.
enum DownloadError {
    Fetch(FetchError),
    Refused(FileError),
}

impl DownloadError {
    fn into_fetch_error(self) -> FetchError {
        let file_error = match self {
            Self::Fetch(error) => return error,
            Self::Refused(file_error) => file_error,
        };
        let code = match file_error {
            FileError::Empty => "ERR_API_MEDIA_EMPTY",
            FileError::TooLarge(_) => "ERR_API_PAYLOAD_TOO_LARGE",
            FileError::TypeUnknown => "ERR_API_MEDIA_TYPE_UNKNOWN",
            FileError::TypeMismatch => "ERR_API_MEDIA_TYPE_MISMATCH",
        };
        let message = match file_error {
            // Names the option, because the provider itself may accept larger files.
            FileError::TooLarge(_) => format!("{file_error}, the limit set by --media-fetch-max-size"),
            file_error => file_error.to_string(),
        };
        FetchError::Permanent(MessageError { code: code.to_owned(), message })
    }
}

/// Classifies the error of a look-up: whether the file may still become available.
fn lookup_error(error: &GraphError) -> FetchError {
    // The code decides before the status: a refused token, a rate limit and an outage often have status 400.
    let is_final = matches!(SendFailure::from(error.clone()), SendFailure::Failed(_));
    match error {
        GraphError::Refused { status: 400 | 404 | 410, message, .. } if is_final => {
            FetchError::Permanent(unavailable(message))
        }
        GraphError::Forbidden(_) => FetchError::Permanent(forbidden(&error.to_string())),
        error => FetchError::Transient(error.to_string()),
    }
}

/// Classifies the error of a download: whether the file may still become available. `is_renewable`: the provider can
/// return another URL for it.
fn fetch_error(error: &OutboundError, is_renewable: bool) -> FetchError {
    match error {
        OutboundError::Forbidden(_) => FetchError::Permanent(forbidden(&error.to_string())),
        OutboundError::Status(400 | 404 | 410) if !is_renewable => {
            FetchError::Permanent(unavailable(&error.to_string()))
        }
        // A renewable URL may have expired (`403`): the next attempt requests another one.
        error => FetchError::Transient(error.to_string()),
    }
}

fn forbidden(message: &str) -> MessageError {
    MessageError { code: "ERR_MEDIA_ADDRESS_FORBIDDEN".to_owned(), message: message.to_owned() }
}

fn unavailable(message: &str) -> MessageError {
    MessageError { code: "ERR_MEDIA_UNAVAILABLE".to_owned(), message: message.to_owned() }
}

/// Half of the message's age, within bounds.
fn pause_for_age(age: TimeDelta) -> Duration {
    (age.to_std().unwrap_or_default() / 2).clamp(PAUSE_MIN, PAUSE_MAX)
}

fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.5..=1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_up_is_retried_unless_the_file_itself_is_refused() {
        for (status, code, is_final) in [
            (400, Some(100), true),
            (400, None, true),
            (404, None, true),
            (410, None, true),
            (400, Some(190), false),
            (400, Some(4), false),
            (400, Some(80_007), false),
            (400, Some(130_429), false),
            (400, Some(131_000), false),
            (404, Some(1), false),
            (401, None, false),
            (403, Some(10), false),
            (429, None, false),
            (500, None, false),
        ] {
            let message = "the reason".to_owned();
            let error = GraphError::Refused { status, code, is_transient: false, message, retry_after: None };
            let is_permanent = matches!(lookup_error(&error), FetchError::Permanent(_));
            assert_eq!(is_permanent, is_final, "{status} {code:?}");
        }
    }
}
