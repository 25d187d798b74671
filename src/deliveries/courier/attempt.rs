//! One attempt of a delivery.

use std::sync::Arc;

use hotline_actors::clock;
use hotline_persistence::tables::webhooks::Endpoint;

use super::statements;
use crate::deliveries::Shared;
use crate::deliveries::attempt_limit::AttemptPermit;
use crate::deliveries::queue::OutgoingEvent;
use crate::webhooks::AttemptResult;

/// Sends an event if its endpoint may still receive it. Returns the event's id, and the result of the attempt if
/// one was made.
pub(super) async fn run(
    shared: Arc<Shared>,
    endpoint: Arc<Endpoint>,
    event: OutgoingEvent,
    permit: AttemptPermit,
) -> (i64, Option<AttemptResult>) {
    if !statements::may_deliver(&shared, &endpoint, &event).await {
        return (event.id, None);
    }
    let id = format!("evt_{}_{}", endpoint.company, event.id);
    let metrics = &shared.app.metrics.webhooks;
    metrics.set_under_way(shared.attempt_limit.in_use());
    let secrets = endpoint.secrets_at(clock::now());
    let result = shared.app.webhooks.deliver(&endpoint.url, secrets, &id, event.json).await;
    drop(permit);
    metrics.set_under_way(shared.attempt_limit.in_use());
    (event.id, Some(result))
}
