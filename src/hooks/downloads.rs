//! Files contacts send: the provider keeps them for a while, and tells where.
//! <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/media>
//!
//! The message comes first: it is durable and says which file it wants before the provider is answered, which then
//! need not wait for a download. The file is fetched behind the answer, tried again until the provider has it no more,
//! stored, and put into its message. What a restart interrupts is found in the table.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use dashmap::{DashMap, DashSet};
use hotline_actors::channels::Account;
use hotline_actors::tickets::SetMedia;
use hotline_actors::{Engine, Refusal, clock};
use hotline_persistence::tables::messages::{self, MessageError, MessageRow};
use hotline_persistence::{ChannelId, CompanyId, MessageId};
use rand::RngExt;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::call::Wanted;
use crate::media::{Declared, Media, Refused, StoreError};
use crate::providers::{Graph, GraphError};

/// Files fetched at once, and of one channel: a provider that hangs holds up its own channel's.
const AT_ONCE_MAX: usize = 16;
const OF_CHANNEL_AT_ONCE_MAX: usize = 4;

/// Files that wait in memory to be fetched, some 500 bytes each. Others wait in the table.
const WAITING_MAX: usize = 20_000;

/// First and longest pause before a file is asked for again. Each is drawn from its upper half.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// How long a file is asked for. The provider keeps them for a week at least.
const ASKED_FOR: TimeDelta = TimeDelta::days(7);

/// How often files are looked for that wait in the table only, and how many at once.
const LOOK_EVERY: Duration = Duration::from_secs(60);
const LOOKED_FOR: i64 = 1000;

/// The files that are being fetched. Cheap to clone.
#[derive(Clone)]
pub struct Downloads(Arc<Inner>);

struct Inner {
    engine: Engine,
    graph: Graph,
    media: Media,
    waiting: DashSet<MessageId>,
    at_once: Semaphore,
    of_channel: DashMap<(CompanyId, ChannelId), Arc<Semaphore>>,
}

/// Why a file is not there.
enum Missing {
    /// It may be later.
    Yet(String),
    /// It never will.
    Forever(MessageError),
}

impl Downloads {
    /// Fetches by these means.
    pub fn new(engine: Engine, graph: Graph, media: Media) -> Self {
        Self(Arc::new(Inner {
            engine,
            graph,
            media,
            waiting: DashSet::new(),
            at_once: Semaphore::new(AT_ONCE_MAX),
            of_channel: DashMap::new(),
        }))
    }

    /// Begins to fetch the file of a message, unless that has begun or there is too much to do: it is found later then.
    pub(super) fn begin(&self, message: &MessageRow) {
        let Some(wanted) = message.media.as_ref().and_then(Wanted::of) else { return };
        if self.0.waiting.len() >= WAITING_MAX || !self.0.waiting.insert(message.id) {
            return;
        }
        let (downloads, message) = (self.clone(), message.clone());
        self.0.engine.spawn(async move {
            downloads.fetch(&message, &wanted).await;
            downloads.0.waiting.remove(&message.id);
        });
    }

    /// Looks for files that nobody is fetching, for as long as the process lives.
    pub async fn keep_looking(&self) {
        let mut clock = tokio::time::interval(LOOK_EVERY);
        loop {
            clock.tick().await;
            if let Err(error) = self.look().await {
                tracing::debug!(%error, "files that are wanted are looked for later");
            }
        }
    }

    async fn look(&self) -> hotline_persistence::Result<()> {
        let store = self.0.engine.store();
        // What was put into its message is in the table then, and not looked for again.
        store.log.reached(store.log.durable()).await?;
        let mut after = MessageId(0);
        loop {
            let wanted = messages::media_wanted(&store.housekeeping, after, LOOKED_FOR).await?;
            let Some(last) = wanted.last() else { return Ok(()) };
            after = last.id;
            wanted.iter().for_each(|message| self.begin(message));
        }
    }

    /// Fetches a file, however often that takes, and puts it into its message.
    async fn fetch(&self, message: &MessageRow, wanted: &Wanted) {
        let mut pause = PAUSE_MIN;
        loop {
            let media = match self.attempt(message, wanted).await {
                Ok(media) => Ok(media),
                Err(Missing::Forever(error)) => Err(error),
                Err(Missing::Yet(reason)) if clock::now() - message.created_at > ASKED_FOR => {
                    Err(MessageError { code: "ERR_MEDIA_UNAVAILABLE".to_owned(), message: reason })
                }
                Err(Missing::Yet(reason)) => {
                    tracing::debug!(reason, message.id = %message.id, "a file is fetched later");
                    tokio::time::sleep(jittered(pause)).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                    continue;
                }
            };
            if let Err(error) = &media {
                tracing::warn!(code = error.code, message.id = %message.id, "a file cannot be fetched");
            }
            self.put(message, media).await;
            return;
        }
    }

    /// Puts the file into its message, as soon as changes are taken.
    async fn put(&self, message: &MessageRow, media: Result<Value, MessageError>) {
        let command = SetMedia { message: message.id, media };
        loop {
            match self.0.engine.ask(message.company_id, message.ticket_id, command.clone()).await {
                Err(Refusal::Unavailable(reason)) => {
                    tracing::debug!(reason, message.id = %message.id, "a file is put into its message later");
                    tokio::time::sleep(jittered(PAUSE_MIN)).await;
                }
                // The message went with its contact; the file is swept.
                Ok(()) | Err(_) => return,
            }
        }
    }

    async fn attempt(&self, message: &MessageRow, wanted: &Wanted) -> Result<Value, Missing> {
        let (company, channel) = (message.company_id, message.channel_id);
        // Nothing of the map is held while this waits.
        let of_channel = self.of_channel((company, channel));
        let closed = |_| Missing::Yet("the service stops".to_owned());
        let _of_channel = of_channel.acquire().await.map_err(closed)?;
        let _at_once = self.0.at_once.acquire().await.map_err(closed)?;
        let organization = self.0.engine.directory().company(company);
        let account = organization.and_then(|organization| Account::of(organization.channels.get(&channel)?));
        let account = account.ok_or_else(|| Missing::Yet("the channel cannot be spoken for".to_owned()))?;
        let found = self.find(&account, wanted).await?;
        let declared = Declared { mime_type: found.mime_type.clone(), file_name: wanted.file_name.clone() };
        match self.take(company, &account, &found, Some(declared)).await {
            // The provider, or who sent it, is wrong about what it is: its content counts.
            Err(Taking::Refused(Refused::TypeMismatch)) => {
                self.take(company, &account, &found, None).await.map_err(Taking::into_missing)
            }
            outcome => outcome.map_err(Taking::into_missing),
        }
    }

    fn of_channel(&self, channel: (CompanyId, ChannelId)) -> Arc<Semaphore> {
        let made = || Arc::new(Semaphore::new(OF_CHANNEL_AT_ONCE_MAX));
        self.0.of_channel.entry(channel).or_insert_with(made).clone()
    }

    /// Where the file is.
    async fn find(&self, account: &Account, wanted: &Wanted) -> Result<Found, Missing> {
        let mime_type = wanted.mime_type.clone();
        let Some(id) = &wanted.id else {
            let url = wanted.url.clone().filter(|url| url.starts_with("https://") || url.starts_with("http://"));
            let url = url.ok_or_else(|| Missing::Forever(unavailable("the provider names no address")))?;
            return Ok(Found { url, mime_type, is_asked_for: false });
        };
        let told = self.0.graph.get(account, &path_segment(id)).await.map_err(|error| missing(&error, true))?;
        let told = told.unwrap_or_default();
        let bytes_max = self.0.media.bytes_max();
        if told["file_size"].as_u64().is_some_and(|size| size > bytes_max) {
            return Err(Taking::Refused(Refused::TooLarge(bytes_max)).into_missing());
        }
        let url = told["url"].as_str().map(str::to_owned);
        let url = url.ok_or_else(|| Missing::Yet("the provider's answer names no address".to_owned()))?;
        let mime_type = told["mime_type"].as_str().map(str::to_owned).or(mime_type);
        Ok(Found { url, mime_type, is_asked_for: true })
    }

    async fn take(
        &self,
        company: CompanyId,
        account: &Account,
        found: &Found,
        declared: Option<Declared>,
    ) -> Result<Value, Taking> {
        let response = if found.is_asked_for {
            self.0.graph.download(account, &found.url).await
        } else {
            self.0.graph.fetch(&found.url).await
        };
        let response = response.map_err(|error| Taking::Missing(missing(&error, !found.is_asked_for)))?;
        let declared = declared.map(|said| match said {
            Declared { mime_type: None, file_name: None } => Declared {
                mime_type: response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(str::to_owned),
                file_name: None,
            },
            said => said,
        });
        let declared = declared.unwrap_or_default();
        match self.0.media.store(company, &declared, response.bytes_stream()).await {
            Ok(stored) => Ok(json!(stored)),
            Err(StoreError::Refused(refused)) => Err(Taking::Refused(refused)),
            Err(StoreError::Source(error)) => Err(Taking::Missing(Missing::Yet(error.without_url().to_string()))),
            Err(StoreError::Unavailable(reason)) => Err(Taking::Missing(Missing::Yet(reason.to_string()))),
        }
    }
}

/// Where a file is.
struct Found {
    url: String,
    mime_type: Option<String>,
    /// Whether the provider was asked for the address, which is good for some minutes only and needs the token.
    is_asked_for: bool,
}

/// Why a file was not taken.
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
        Missing::Forever(MessageError { code: code.to_owned(), message: refused.to_string() })
    }
}

/// Whether a file may still come. `for_good`: that it is not there is no matter of an address that has expired.
fn missing(error: &GraphError, for_good: bool) -> Missing {
    match error {
        GraphError::Refused { status: 400 | 404 | 410, is_transient: false, message, .. } if for_good => {
            Missing::Forever(unavailable(message))
        }
        // An address without a token that is forbidden has expired.
        error => Missing::Yet(error.to_string()),
    }
}

fn unavailable(message: &str) -> MessageError {
    MessageError { code: "ERR_MEDIA_UNAVAILABLE".to_owned(), message: message.to_owned() }
}

/// An id as one segment of a path, whatever it holds.
fn path_segment(id: &str) -> String {
    percent_encoding::utf8_percent_encode(id, percent_encoding::NON_ALPHANUMERIC).to_string()
}

fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.5..=1.0))
}
