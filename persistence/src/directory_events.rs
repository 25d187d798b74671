//! PostgreSQL notifications: changes to a company's directory or webhooks, and events of plain changes.

use std::time::Duration;

use sqlx::postgres::PgListener;
use sqlx::{Executor, PgPool};
use tokio::time::{Instant, timeout, timeout_at};

use crate::{CompanyId, LoggedEventId, Result, unanswered};

/// The PostgreSQL channel on which changes to a directory are announced, by the tables' triggers `directory_changed`.
const DIRECTORY_CHANNEL: &str = "hotline_directory";

/// The PostgreSQL channel on which events of plain changes are announced, by `hotline_number_events`.
const EVENTS_CHANNEL: &str = "hotline_events";

/// The PostgreSQL channel on which changes to webhooks are announced, by `hotline_webhooks_changed`.
const WEBHOOKS_CHANNEL: &str = "hotline_webhooks";

/// A notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    /// A company's directory changed.
    Directory(CompanyId),
    /// A company's webhooks changed.
    Webhooks(CompanyId),
    /// Events of a company up to this one can be read.
    Events(CompanyId, LoggedEventId),
}

impl Notification {
    /// Parses a notification; `None` if its payload has another form.
    fn parse(channel: &str, payload: &str) -> Option<Self> {
        if channel == DIRECTORY_CHANNEL {
            return payload.parse().ok().map(|id| Self::Directory(CompanyId::new(id)));
        }
        if channel == WEBHOOKS_CHANNEL {
            return payload.parse().ok().map(|id| Self::Webhooks(CompanyId::new(id)));
        }
        // The channel of events: the ids of the company and of its last event.
        let (company, last) = payload.split_once(' ')?;
        Some(Self::Events(CompanyId::new(company.parse().ok()?), LoggedEventId::new(last.parse().ok()?)))
    }
}

/// After this time without data the server is asked for a reply. Otherwise the listener would wait forever on a
/// connection that the network has dropped.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// How long the server may take to reply.
const REPLY_TIME_MAX: Duration = Duration::from_secs(5);

/// A connection that listens for notifications.
pub struct NotificationListener {
    listener: PgListener,
    /// When the server last sent something.
    received_at: Instant,
}

impl NotificationListener {
    /// Starts listening.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn listen(db: &PgPool) -> Result<Self> {
        let mut listener = PgListener::connect_with(db).await?;
        listener.ignore_pool_close_event(true);
        // After a lost connection the caller starts over with a new listener, so do not reconnect here.
        listener.eager_reconnect(false);
        listener.listen_all([DIRECTORY_CHANNEL, EVENTS_CHANNEL, WEBHOOKS_CHANNEL]).await?;
        Ok(Self { listener, received_at: Instant::now() })
    }

    /// The next notification. `None`: the connection broke, and notifications may have been missed.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn next(&mut self) -> Result<Option<Notification>> {
        loop {
            let Ok(received) = timeout_at(self.received_at + SILENCE_MAX, self.listener.try_recv()).await else {
                match timeout(REPLY_TIME_MAX, self.listener.execute("select 1")).await {
                    Ok(reply) => reply?,
                    Err(_) => {
                        unanswered::record_loss();
                        return Ok(None);
                    }
                };
                self.received_at = Instant::now();
                continue;
            };
            self.received_at = Instant::now();
            match received? {
                None => return Ok(None),
                Some(notification) => {
                    let channel = notification.channel();
                    if let Some(parsed) = Notification::parse(channel, notification.payload()) {
                        return Ok(Some(parsed));
                    }
                    tracing::warn!(channel, "notification is unreadable and was skipped");
                }
            }
        }
    }
}
