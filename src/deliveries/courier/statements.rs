//! The statements of a courier: writing outcomes, reading due deliveries, and disabling its webhook.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use hotline_actors::clock;
use hotline_persistence::tables::events::EventKind;
use hotline_persistence::tables::webhooks::deliveries::{self, DueDelivery, StoredProgress, WaitingDeliveries};
use hotline_persistence::tables::webhooks::{self, Endpoint};

use super::RETRY_AFTER;
use crate::deliveries::Shared;
use crate::deliveries::log::{self, EventBatch, EventReadError};
use crate::deliveries::queue::{DisableReason, OutgoingEvent, WriteBatch};

/// Why a statement is not begun: this process does not serve the company, or the company is about to move.
pub(super) const NOT_SERVED: &str = "the company is unavailable";

/// The result of a courier's statement.
pub(super) enum StatementResult {
    Written(Result<WriteResult, WriteFailure>),
    Due(Result<Vec<(DueDelivery, Option<OutgoingEvent>)>, EventReadError>),
    Read(Result<EventBatch, EventReadError>),
}

pub(super) struct WriteResult {
    pub(super) stored: StoredProgress,
    /// What waits in the table; `None`: this was not queried.
    pub(super) waiting: Option<WaitingDeliveries>,
}

pub(super) struct WriteFailure {
    pub(super) batch: WriteBatch,
    pub(super) reason: String,
}

/// A webhook's events in memory.
#[derive(Clone)]
pub(super) struct QueueContents {
    /// The position up to which the log was read.
    pub(super) read_to: i64,
    /// The ids of the events in memory.
    pub(super) event_ids: Vec<i64>,
}

/// Writes a batch of outcomes. If they may unblock waiting deliveries, also queries when these are due.
pub(super) async fn write_outcomes(
    shared: &Shared,
    endpoint: &Endpoint,
    batch: WriteBatch,
    QueueContents { read_to, event_ids }: QueueContents,
) -> Result<WriteResult, WriteFailure> {
    let store = shared.app.engine.store();
    let Some(_presence) = store.ownership().follow(endpoint.company) else {
        return Err(WriteFailure { batch, reason: NOT_SERVED.to_owned() });
    };
    let (company, id) = (endpoint.company, endpoint.id);
    let statement = async {
        let mut transaction = store.db(company).begin().await?;
        let connection = transaction.connection()?;
        let stored =
            deliveries::record(connection, endpoint, batch.progress, &batch.outcomes, batch.may_unblock).await?;
        transaction.commit().await?;
        Ok::<_, hotline_persistence::Error>(stored)
    };
    let stored = match statement.await {
        Ok(stored) => stored,
        Err(error) => return Err(WriteFailure { batch, reason: error.to_string() }),
    };
    if !batch.may_unblock {
        return Ok(WriteResult { stored, waiting: None });
    }
    // If this query fails, deliveries count as due now, and the next statement, which reads them, reports the failure.
    let waiting = deliveries::waiting(store.db(company), company, id, (read_to, &event_ids)).await;
    let waiting =
        waiting.unwrap_or_else(|_| WaitingDeliveries { next_at: Some(clock::now()), oldest: Some(clock::now()) });
    Ok(WriteResult { stored, waiting: Some(waiting) })
}

/// Reads the deliveries that are due, at most `limit`, with their events; `None`: the event has expired.
pub(super) async fn read_due(
    shared: &Shared,
    endpoint: &Endpoint,
    now: DateTime<Utc>,
    QueueContents { read_to, event_ids }: QueueContents,
    limit: usize,
) -> Result<Vec<(DueDelivery, Option<OutgoingEvent>)>, EventReadError> {
    let store = shared.app.engine.store();
    let Some(_presence) = store.ownership().follow(endpoint.company) else {
        return Err(NOT_SERVED.to_owned());
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (company, id) = (endpoint.company, endpoint.id);
    let due = deliveries::due(store.db(company), company, id, now, (read_to, &event_ids), limit).await;
    log::due_events(&shared.app, endpoint.company, due.map_err(|error| error.to_string())?).await
}

/// Whether a webhook may receive an event, decided at each attempt: events of cards require that the webhook's creator
/// may see every card, and this permission may have been revoked since. Retries until the database responds; a courier
/// that retires or stops drops this future.
pub(super) async fn may_deliver(shared: &Arc<Shared>, endpoint: &Arc<Endpoint>, event: &OutgoingEvent) -> bool {
    let is_of_card = event.kind.parse::<EventKind>().is_ok_and(EventKind::is_of_card);
    if !is_of_card || endpoint.maker.is_none() {
        return true;
    }
    loop {
        let (task_shared, task_endpoint) = (shared.clone(), endpoint.clone());
        let task = shared.app.engine.background().spawn(async move {
            let store = task_shared.app.engine.store();
            let _presence = store.ownership().follow(task_endpoint.company)?;
            webhooks::may_include_cards(store.db(task_endpoint.company), task_endpoint.company, task_endpoint.id)
                .await
                .ok()
        });
        if let Ok(Some(may_include_cards)) = task.await {
            return may_include_cards;
        }
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

/// Disables a webhook. Retries until this succeeds or the service stops: otherwise a new courier would make further
/// attempts. Also returns when the company was closed, usually because it moves: then the next attempt, perhaps by
/// another process, has the same result.
pub(super) async fn disable(shared: &Shared, endpoint: &Endpoint, disable_reason: DisableReason) {
    let (failing_since, reason) = match disable_reason {
        DisableReason::Gone => (None, "the endpoint responded with 410 Gone".to_owned()),
        DisableReason::FailingSince(since) => {
            let text = since.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
            (Some(since), format!("every delivery has failed since {text}"))
        }
    };
    let ownership = shared.app.engine.store().ownership();
    loop {
        // Released before the pause, so that the company can move then.
        let Some(presence) = ownership.follow(endpoint.company) else { return };
        let result = webhooks::disable(shared.app.db(endpoint.company), endpoint, failing_since, &reason).await;
        drop(presence);
        match result {
            Ok(was_disabled) => {
                if was_disabled {
                    shared.app.metrics.webhooks.add_disabled();
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
