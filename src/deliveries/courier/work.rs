//! The statements of a courier: writing outcomes, reading due deliveries, and disabling its webhook.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use hotline_actors::clock;
use hotline_persistence::tables::events::EventKind;
use hotline_persistence::tables::webhooks::deliveries::{self, Due, Waiting};
use hotline_persistence::tables::webhooks::{self, Endpoint};

use super::RETRY_AFTER;
use crate::deliveries::Shared;
use crate::deliveries::line::{Letter, Why, Writing};
use crate::deliveries::log::{self, Page, Unread};

/// Why a statement is not begun: the company is about to move, and its courier has nothing in memory.
pub(super) const NOT_SERVED: &str = "the company is unavailable";

/// The result of a courier's statement.
pub(super) enum Work {
    Written(Result<Recorded, Unwritten>),
    Due(Result<Vec<(Due, Option<Letter>)>, Unread>),
    Read(Result<Page, Unread>),
}

pub(super) struct Recorded {
    /// Whether the webhook exists, and its position was not changed.
    pub(super) stands: bool,
    /// What waits in the table; `None`: this was not queried.
    pub(super) waiting: Option<Waiting>,
}

pub(super) struct Unwritten {
    pub(super) writing: Writing,
    pub(super) reason: String,
}

/// What is in memory of a webhook's events.
#[derive(Clone)]
pub(super) struct Known {
    /// The position up to which the log was read.
    pub(super) read_to: i64,
    /// The ids of the events in memory.
    pub(super) held: Vec<i64>,
}

pub(super) async fn write(
    shared: &Shared,
    endpoint: &Endpoint,
    writing: Writing,
    Known { read_to, held }: Known,
) -> Result<Recorded, Unwritten> {
    let store = shared.app.engine.store();
    let Some(_presence) = store.ownership().follow(endpoint.company) else {
        return Err(Unwritten { writing, reason: NOT_SERVED.to_owned() });
    };
    let (company, id) = (endpoint.company, endpoint.id);
    let written = async {
        let mut change = store.db(company).begin().await?;
        let connection = change.connection()?;
        let stands =
            deliveries::record(connection, endpoint, writing.standing, &writing.outcomes, writing.frees).await?;
        change.commit().await?;
        Ok::<_, hotline_persistence::Error>(stands)
    };
    let stands = match written.await {
        Ok(stands) => stands,
        Err(error) => return Err(Unwritten { writing, reason: error.to_string() }),
    };
    if !writing.frees {
        return Ok(Recorded { stands, waiting: None });
    }
    // If this query fails, the next statement reports the failure.
    let waiting = deliveries::waiting(store.db(company), company, id, (read_to, &held)).await;
    let waiting = waiting.unwrap_or_else(|_| Waiting { next_at: Some(clock::now()), oldest: Some(clock::now()) });
    Ok(Recorded { stands, waiting: Some(waiting) })
}

pub(super) async fn due(
    shared: &Shared,
    endpoint: &Endpoint,
    now: DateTime<Utc>,
    Known { read_to, held }: Known,
    limit: usize,
) -> Result<Vec<(Due, Option<Letter>)>, Unread> {
    let store = shared.app.engine.store();
    let Some(_presence) = store.ownership().follow(endpoint.company) else {
        return Err(NOT_SERVED.to_owned());
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (company, id) = (endpoint.company, endpoint.id);
    let due = deliveries::due(store.db(company), company, id, now, (read_to, &held), limit).await;
    log::of_due(&shared.app, endpoint.company, due.map_err(|error| error.to_string())?).await
}

/// Whether a webhook may be told of an event, decided when it is tried: an event of a card is only for who may see every card,
/// and a right may have been taken since the webhook was made. Asks until the database answers; who rests or stops drops it.
pub(super) async fn may_tell(shared: &Arc<Shared>, endpoint: &Arc<Endpoint>, letter: &Letter) -> bool {
    let is_of_card = letter.kind.parse::<EventKind>().is_ok_and(EventKind::is_of_card);
    if !is_of_card || endpoint.maker.is_none() {
        return true;
    }
    loop {
        let (asking, asked) = (shared.clone(), endpoint.clone());
        let asking = shared.app.engine.background().spawn(async move {
            let store = asking.app.engine.store();
            let _presence = store.ownership().follow(asked.company)?;
            webhooks::may_tell_of_cards(store.db(asked.company), asked.company, asked.id).await.ok()
        });
        if let Ok(Some(may)) = asking.await {
            return may;
        }
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

/// Disables a webhook, and retries until this succeeds: otherwise it would be tried again after the next start.
pub(super) async fn switch_off(shared: &Shared, endpoint: &Endpoint, why: Why) {
    let reason = match why {
        Why::Gone => "the endpoint responded with 410 Gone".to_owned(),
        Why::FailingSince(since) => {
            format!("every delivery has failed since {}", since.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
        }
    };
    loop {
        match webhooks::switch_off(shared.app.db(endpoint.company), endpoint, &reason).await {
            Ok(is_off) => {
                if is_off {
                    shared.app.figures.webhooks.switched_off();
                    tracing::info!(webhook.id = %endpoint.id, company.id = %endpoint.company, reason, "disabled a webhook");
                }
                return;
            }
            Err(error) => {
                tracing::debug!(%error, webhook.id = %endpoint.id, "disabling a webhook will be retried");
                if *shared.stopping.borrow() {
                    return;
                }
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}
