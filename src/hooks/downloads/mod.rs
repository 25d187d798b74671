//! Downloads of files that contacts send: the provider keeps them for a while and says where.
//! <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/media>
//!
//! The message comes first: it is durable, and records which file it wants, before the provider gets its response; so
//! the provider need not wait for a download. The file is downloaded afterwards, with retries until the provider no
//! longer has it, then stored and added to its message. Downloads that a restart interrupts are found in the table.
//!
//! The location of a file comes from the call, so it may be anywhere: it is downloaded only through [`Outbound`].
//! Companies take turns (`line.rs`), so that one whose files cannot be downloaded delays only its own. A file is
//! retried after half of the time since it was received, so pauses need no memory of earlier attempts. It is given up
//! after [`ASKED_FOR`] if the provider can be asked for its URL, after [`ADDRESS_TRIED_FOR`] if only a URL is known,
//! and at once if the URL is forbidden.

mod line;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use hotline_actors::channels::Account;
use hotline_actors::tickets::SetMedia;
use hotline_actors::{Engine, Refusal, clock};
use hotline_persistence::tables::messages::{self, MessageError, MessageRow};
use hotline_persistence::{ChannelId, CompanyId, MessageId};
use rand::RngExt;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio::sync::Notify;

use self::line::{Lines, Shares, Wait};
use super::call::Wanted;
use crate::media::{Declared, Media, Refused, StoreError};
use crate::outbound::{Outbound, OutboundError};
use crate::providers::{Graph, GraphError};

/// The type of bytes of which nothing is said.
const OCTETS: &str = "application/octet-stream";

/// Shortest and longest pause before a retry, with jitter: each pause is drawn from its upper half.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// How long a file is requested from the provider, which keeps files for at least a week.
const ASKED_FOR: TimeDelta = TimeDelta::days(7);

/// How long a URL is tried that cannot be renewed. The file exists when the call arrives; a day is longer than an
/// outage of the provider's file servers.
const ADDRESS_TRIED_FOR: TimeDelta = TimeDelta::days(1);

/// How often the table is searched for waiting files, and how many are read at once.
const LOOK_EVERY: Duration = Duration::from_secs(60);
const LOOKED_FOR: i64 = 1000;

/// The downloads. Cheap to clone.
#[derive(Clone)]
pub struct Downloads(Arc<Inner>);

struct Inner {
    engine: Engine,
    graph: Graph,
    outbound: Outbound,
    media: Media,
    lines: Mutex<Lines<Job>>,
    look_asked: Notify,
}

/// A message and its file.
struct Job {
    message: MessageRow,
    wanted: Wanted,
}

impl Job {
    fn of(message: &MessageRow) -> Option<Self> {
        let wanted = message.media.as_ref().and_then(Wanted::of)?;
        Some(Self { message: message.clone(), wanted })
    }
}

impl Wanted {
    /// How long the file is retried.
    fn tried_for(&self) -> TimeDelta {
        if self.id.is_some() { ASKED_FOR } else { ADDRESS_TRIED_FOR }
    }
}

impl Wait for Job {
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
struct Running {
    downloads: Downloads,
    job: Option<Job>,
}

impl Running {
    /// Retries it after a pause, and frees its slot meanwhile.
    fn pause(mut self, pause: Duration) {
        let Some(job) = self.job.take() else { return };
        let (company, message) = (job.message.company_id, job.message.id);
        self.downloads.lines().pause(job);
        self.downloads.go_on();
        let downloads = self.downloads.clone();
        self.downloads.0.engine.spawn(async move {
            tokio::time::sleep(jittered(pause)).await;
            downloads.lines().wake(company, message);
            downloads.go_on();
        });
    }

    /// The file is downloaded. Other files need not wait while its message cannot be changed; until then it still
    /// counts as running, because otherwise it would be downloaded again.
    fn leave(&self) {
        if let Some(job) = &self.job {
            self.downloads.lines().leave(job);
        }
        self.downloads.go_on();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(job) = self.job.take() else { return };
        self.downloads.lines().done(&job);
        self.downloads.go_on();
    }
}

/// Why a file is not available.
enum Missing {
    /// It may become available.
    Yet(String),
    /// It never will.
    Forever(MessageError),
}

impl Downloads {
    /// Creates the downloads with these clients.
    pub fn new(engine: Engine, graph: Graph, outbound: Outbound, media: Media) -> Self {
        let lines = Mutex::new(Lines::new(Shares::default()));
        Self(Arc::new(Inner { engine, graph, outbound, media, lines, look_asked: Notify::new() }))
    }

    /// Drops a company's waiting files; the table still has them.
    pub fn forget(&self, company: CompanyId) {
        let Inner { engine: _, graph: _, outbound: _, media: _, lines: _, look_asked: _ } = &*self.0;
        self.lines().forget(company);
    }

    /// Requests a search for files that are not being downloaded.
    pub fn look_soon(&self) {
        self.0.look_asked.notify_one();
    }

    fn lines(&self) -> MutexGuard<'_, Lines<Job>> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the download of a new message's file, unless the limits are reached: then a later search finds it.
    pub(super) fn begin(&self, message: &MessageRow) {
        let Some(job) = Job::of(message) else { return };
        self.lines().add_news(job);
        self.go_on();
    }

    /// Searches for files that are not being downloaded, for as long as the process lives.
    pub async fn keep_looking(&self) {
        let mut clock = tokio::time::interval(LOOK_EVERY);
        let mut from = MessageId::new(0);
        loop {
            tokio::select! {
                _ = clock.tick() => {}
                () = self.0.look_asked.notified() => {}
            }
            match self.look(from).await {
                Ok(next) => from = next,
                Err(error) => tracing::debug!(%error, "search for files to download will be retried"),
            }
        }
    }

    /// Searches all waiting files, from this message on and around to it. The id only marks the page: it does not
    /// follow companies or time. Returns where the next search starts: at the first file that found no room, so that
    /// none is left out forever.
    async fn look(&self, from: MessageId) -> hotline_persistence::Result<MessageId> {
        let store = self.0.engine.store();
        // Waits for the tables: completed files are then no longer found.
        store.log.reached(store.log.durable()).await?;
        let served = store.ownership().of_slots();
        let mut first_left = None;
        for (mut after, until) in [(from, None), (MessageId::new(0), Some(from))] {
            loop {
                let wanted = messages::media_wanted(&store.housekeeping, &served, after, LOOKED_FOR).await?;
                let Some(last) = wanted.last() else { break };
                after = last.id;
                let is_round = until.is_some_and(|until| after > until);
                let wanted = wanted.iter().filter(|message| until.is_none_or(|until| message.id <= until));
                for message in wanted.filter(|message| self.0.engine.owns(message.company_id)) {
                    let Some(job) = Job::of(message) else { continue };
                    if !self.lines().add_found(job) && first_left.is_none() {
                        // The search starts after this id.
                        first_left = Some(MessageId::new(message.id.0 - 1));
                    }
                }
                self.go_on();
                if is_round {
                    break;
                }
            }
        }
        Ok(first_left.unwrap_or(MessageId::new(0)))
    }

    /// Starts as many downloads as there are slots.
    fn go_on(&self) {
        while let Some(job) = { self.lines().next() } {
            let downloads = self.clone();
            self.0.engine.spawn(async move { downloads.fetch(job).await });
        }
    }

    /// Tries to download a file. Adds it to its message, or schedules a retry.
    async fn fetch(&self, job: Job) {
        let running = Running { downloads: self.clone(), job: Some(job) };
        let Some(Job { message, wanted }) = &running.job else { return };
        let age = clock::now() - message.created_at;
        let media = match self.attempt(message, wanted).await {
            Ok(media) => Ok(media),
            Err(Missing::Forever(error)) => Err(error),
            Err(Missing::Yet(reason)) if age > wanted.tried_for() => Err(unavailable(&reason)),
            Err(Missing::Yet(reason)) => {
                tracing::debug!(reason, message.id = %message.id, "file download will be retried");
                return running.pause(pause_at(age));
            }
        };
        if let Err(error) = &media {
            tracing::warn!(code = error.code, message.id = %message.id, "file download failed");
        }
        running.leave();
        self.put(message, media).await;
    }

    /// Adds the file to its message, as soon as changes are accepted.
    async fn put(&self, message: &MessageRow, media: Result<Value, MessageError>) {
        let command = SetMedia { message: message.id, media };
        let ownership = self.0.engine.store().ownership();
        loop {
            let _presence = ownership.enter_in_time(message.company_id).await;
            match self.0.engine.tickets.ask(message.company_id, message.ticket_id, command.clone()).await {
                Err(Refusal::Unavailable(reason)) => {
                    tracing::debug!(reason, message.id = %message.id, "attaching a file to its message will be retried");
                    drop(_presence);
                    tokio::time::sleep(jittered(PAUSE_MIN)).await;
                }
                // The message was deleted with its contact; the file will be swept.
                Ok(()) | Err(_) => return,
            }
        }
    }

    async fn attempt(&self, message: &MessageRow, wanted: &Wanted) -> Result<Value, Missing> {
        let (company, channel) = (message.company_id, message.channel_id);
        let organization = self.0.engine.directory().company(company);
        let account = organization.and_then(|organization| Account::of(organization.channels.get(&channel)?));
        let account = account.ok_or_else(|| Missing::Yet("the channel has no usable account".to_owned()))?;
        let found = self.find(&account, wanted).await?;
        let declared = Declared { mime_type: found.mime_type.clone(), file_name: wanted.file_name.clone() };
        match self.take(company, &account, &found, declared).await {
            // The declared type is wrong: the content decides, and what it does not show is bytes.
            Err(Taking::Refused(Refused::TypeMismatch)) => {
                let bytes = Declared { mime_type: Some(OCTETS.to_owned()), file_name: None };
                self.take(company, &account, &found, bytes).await.map_err(Taking::into_missing)
            }
            outcome => outcome.map_err(Taking::into_missing),
        }
    }

    /// The location of the file.
    async fn find(&self, account: &Account, wanted: &Wanted) -> Result<Found, Missing> {
        let mime_type = wanted.mime_type.clone();
        let Some(id) = &wanted.id else {
            let url = wanted
                .url
                .clone()
                .ok_or_else(|| Missing::Forever(unavailable("the provider gave no URL for the file")))?;
            return Ok(Found { url, mime_type, is_asked_for: false });
        };
        let told = self.0.graph.file(account, id).await.map_err(|error| not_told(&error))?;
        let told = told.unwrap_or_default();
        let bytes_max = self.0.media.bytes_max();
        if told["file_size"].as_u64().is_some_and(|size| size > bytes_max) {
            return Err(Taking::Refused(Refused::TooLarge(bytes_max)).into_missing());
        }
        let url = told["url"].as_str().map(str::to_owned);
        let url = url.ok_or_else(|| Missing::Yet("the provider's response has no URL for the file".to_owned()))?;
        let mime_type = told["mime_type"].as_str().map(str::to_owned).or(mime_type);
        Ok(Found { url, mime_type, is_asked_for: true })
    }

    async fn take(
        &self,
        company: CompanyId,
        account: &Account,
        found: &Found,
        declared: Declared,
    ) -> Result<Value, Taking> {
        // The token is only for a URL that the provider returned; a URL in a call may be anyone's.
        let token = found.is_asked_for.then_some(account.access_token.0.as_str());
        let response = self.0.outbound.get(&found.url, token).await;
        let response = response.map_err(|error| Taking::Missing(not_fetched(&error, !found.is_asked_for)))?;
        let declared = match declared {
            Declared { mime_type: None, file_name: None } => Declared {
                mime_type: response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(str::to_owned),
                file_name: None,
            },
            said => said,
        };
        match self.0.media.store(company, &declared, response.bytes_stream()).await {
            Ok(stored) => Ok(json!(stored)),
            Err(StoreError::Refused(refused)) => Err(Taking::Refused(refused)),
            Err(StoreError::Source(error)) => Err(Taking::Missing(Missing::Yet(error.without_url().to_string()))),
            Err(StoreError::Unavailable(reason)) => Err(Taking::Missing(Missing::Yet(reason.to_string()))),
        }
    }
}

/// The location of a file.
struct Found {
    url: String,
    mime_type: Option<String>,
    /// Whether the URL was requested from the provider; it is then valid for some minutes only and needs the token.
    is_asked_for: bool,
}

/// Why a file was not stored.
enum Taking {
    Missing(Missing),
    Refused(Refused),
}

impl Taking {
    fn into_missing(self) -> Missing {
        let refused = match self {
            Self::Missing(missing) => return missing,
            Self::Refused(refused) => refused,
        };
        let code = match refused {
            Refused::Empty => "ERR_API_MEDIA_EMPTY",
            Refused::TooLarge(_) => "ERR_API_PAYLOAD_TOO_LARGE",
            Refused::TypeUnknown => "ERR_API_MEDIA_TYPE_UNKNOWN",
            Refused::TypeMismatch => "ERR_API_MEDIA_TYPE_MISMATCH",
        };
        let message = match refused {
            // For who runs the service: the provider itself may take larger ones.
            Refused::TooLarge(_) => format!("{refused}, the limit set by --media-bytes-max"),
            refused => refused.to_string(),
        };
        Missing::Forever(MessageError { code: code.to_owned(), message })
    }
}

/// Whether a file may still become available, by the provider's error.
fn not_told(error: &GraphError) -> Missing {
    match error {
        GraphError::Refused { status: 400 | 404 | 410, is_transient: false, message, .. } => {
            Missing::Forever(unavailable(message))
        }
        GraphError::Forbidden(_) => Missing::Forever(forbidden(&error.to_string())),
        error => Missing::Yet(error.to_string()),
    }
}

/// Whether a file may still be downloaded from a URL. `for_good`: the URL cannot be renewed.
fn not_fetched(error: &OutboundError, for_good: bool) -> Missing {
    match error {
        OutboundError::Forbidden(_) => Missing::Forever(forbidden(&error.to_string())),
        OutboundError::Status(400 | 404 | 410) if for_good => Missing::Forever(unavailable(&error.to_string())),
        // A `403` without a token means that the URL has expired.
        error => Missing::Yet(error.to_string()),
    }
}

fn forbidden(message: &str) -> MessageError {
    MessageError { code: "ERR_MEDIA_ADDRESS_FORBIDDEN".to_owned(), message: message.to_owned() }
}

fn unavailable(message: &str) -> MessageError {
    MessageError { code: "ERR_MEDIA_UNAVAILABLE".to_owned(), message: message.to_owned() }
}

/// Half of the time since the file was received, within bounds.
fn pause_at(age: TimeDelta) -> Duration {
    (age.to_std().unwrap_or_default() / 2).clamp(PAUSE_MIN, PAUSE_MAX)
}

fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.5..=1.0))
}
