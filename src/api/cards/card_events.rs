//! Publishes the events of created, changed and deleted cards.

use chrono::{DateTime, Utc};
use hotline_actors::clock;
use hotline_persistence::tables::cards::{self, CardId, CardRef, LoadedCard};
use hotline_persistence::tables::cascades;
use hotline_persistence::tables::events::{self, EventKind, NewEvent, Record, RecordSnapshot};
use hotline_persistence::{CompanyId, table};
use serde_json::Value;
use sqlx::PgConnection;

use super::{Card, find_card};
use crate::web::ApiResult;

/// The state of a locked card before it is changed.
pub struct TrackedCard {
    company: CompanyId,
    before: LoadedCard,
}

/// Loads a locked card before it is changed. First removes its references to deleted records, so that the event of the
/// change does not include their removal.
pub async fn track_changes(db: &mut PgConnection, company: CompanyId, id: CardId) -> ApiResult<TrackedCard> {
    cascades::settle(&mut *db, company, id).await?;
    Ok(TrackedCard { company, before: find_card(db, company, id).await? })
}

/// Publishes that a card was created, and returns the card.
pub async fn publish_created(db: &mut PgConnection, company: CompanyId, id: CardId) -> ApiResult<Card> {
    let card = find_card(&mut *db, company, id).await?;
    publish(db, company, (EventKind::CardCreated, card.card.created_at), card.clone(), None).await?;
    Ok(card.into())
}

/// Publishes that a card was deleted.
pub async fn publish_removed(db: &mut PgConnection, company: CompanyId, card: LoadedCard) -> ApiResult<()> {
    publish(db, company, (EventKind::CardDeleted, clock::now()), card, None).await
}

impl TrackedCard {
    /// Publishes the change since the card was loaded, and returns the changed card. Without a visible change, no event
    /// is published. The event is `CardWon`, `CardLost` or `CardReopened`, otherwise `CardMoved` if the stage has
    /// changed, otherwise `CardUpdated`.
    pub async fn publish(self, db: &mut PgConnection) -> ApiResult<Card> {
        self.publish_as(db, None).await
    }

    /// Like `publish`, for a move: an event is published even without a visible change, because the API does not show a
    /// card's place within its stage, and `CardMoved` replaces `CardUpdated`.
    pub async fn publish_moved(self, db: &mut PgConnection) -> ApiResult<Card> {
        self.publish_as(db, Some(EventKind::CardMoved)).await
    }

    /// `forced_kind`: the event to publish if no more specific one applies, even without a visible change.
    async fn publish_as(self, db: &mut PgConnection, forced_kind: Option<EventKind>) -> ApiResult<Card> {
        let Self { company, before } = self;
        let mut after = find_card(&mut *db, company, before.card.id).await?;
        let json_of = |card: &LoadedCard| serde_json::to_value(Card::from(card.clone())).unwrap_or_default();
        let previous = events::previous_values(&json_of(&before), &json_of(&after));
        if previous.is_some() && after.card.updated_at == before.card.updated_at {
            // Only the card's products or other linked rows have changed: set the time of the change on its own row.
            table::touch::<CardRef>(&mut *db, company, before.card.id).await?;
            after = find_card(&mut *db, company, before.card.id).await?;
        }
        let (previous_card, card) = (&before.card, &after.card);
        let stage_of = |card: &cards::Card| card.list.as_ref().map(|list| list.id);
        let kind = if card.won && !previous_card.won {
            EventKind::CardWon
        } else if card.lost && !previous_card.lost {
            EventKind::CardLost
        } else if (previous_card.won && !card.won) || (previous_card.lost && !card.lost) {
            EventKind::CardReopened
        } else if stage_of(previous_card) != stage_of(card) {
            EventKind::CardMoved
        } else {
            forced_kind.unwrap_or(EventKind::CardUpdated)
        };
        if previous.is_some() || forced_kind.is_some() {
            publish(db, company, (kind, after.card.updated_at), after.clone(), previous).await?;
        }
        Ok(after.into())
    }
}

async fn publish(
    db: &mut PgConnection,
    company: CompanyId,
    (kind, at): (EventKind, DateTime<Utc>),
    card: LoadedCard,
    previous: Option<Value>,
) -> ApiResult<()> {
    let record = Record::Card(RecordSnapshot::of(card.card.id, &Card::from(card))?);
    Ok(events::draft(db, company, &[NewEvent::plain(kind, at, record, previous)]).await?)
}
