//! Events of changed cards.

use chrono::{DateTime, Utc};
use hotline_actors::clock;
use hotline_persistence::tables::cards::{self, CardId, CardRef, LoadedCard};
use hotline_persistence::tables::cascades;
use hotline_persistence::tables::events::{self, EventKind, Record, ShownThen, Told};
use hotline_persistence::{CompanyId, table};
use serde_json::Value;
use sqlx::PgConnection;

use super::{Card, found};
use crate::web::ApiResult;

/// The state of a locked card before it is changed.
pub struct Watched {
    company: CompanyId,
    before: LoadedCard,
}

/// Loads a card that is locked and about to be changed. What was deleted and is still to be taken from it goes before.
pub async fn watch(db: &mut PgConnection, company: CompanyId, id: CardId) -> ApiResult<Watched> {
    cascades::settle(&mut *db, company, id).await?;
    Ok(Watched { company, before: found(db, company, id).await? })
}

/// Publishes that a card was created, and returns it.
pub async fn created(db: &mut PgConnection, company: CompanyId, id: CardId) -> ApiResult<Card> {
    let card = found(&mut *db, company, id).await?;
    tell(db, company, (EventKind::CardCreated, card.card.created_at), card.clone(), None).await?;
    Ok(card.into())
}

/// Publishes that a card was deleted.
pub async fn removed(db: &mut PgConnection, company: CompanyId, card: LoadedCard) -> ApiResult<()> {
    tell(db, company, (EventKind::CardDeleted, clock::now()), card, None).await
}

impl Watched {
    /// Publishes what has changed, and returns the card. The event is `CardMoved` if the stage has changed and no more
    /// specific event applies.
    pub async fn tell(self, db: &mut PgConnection) -> ApiResult<Card> {
        self.tell_as(db, None).await
    }

    /// Like `tell`, for a card that may have changed only its place among others.
    pub async fn tell_moved(self, db: &mut PgConnection) -> ApiResult<Card> {
        self.tell_as(db, Some(EventKind::CardMoved)).await
    }

    async fn tell_as(self, db: &mut PgConnection, at_least: Option<EventKind>) -> ApiResult<Card> {
        let Self { company, before } = self;
        let mut after = found(&mut *db, company, before.card.id).await?;
        let shown = |card: &LoadedCard| serde_json::to_value(Card::from(card.clone())).unwrap_or_default();
        let previous = events::previous(&shown(&before), &shown(&after));
        if previous.is_some() && after.card.updated_at == before.card.updated_at {
            // Only something beside its row has changed.
            table::touch::<CardRef>(&mut *db, company, before.card.id).await?;
            after = found(&mut *db, company, before.card.id).await?;
        }
        let (was, is) = (&before.card, &after.card);
        let list = |card: &cards::Card| card.list.as_ref().map(|list| list.id);
        let kind = if is.won && !was.won {
            EventKind::CardWon
        } else if is.lost && !was.lost {
            EventKind::CardLost
        } else if (was.won && !is.won) || (was.lost && !is.lost) {
            EventKind::CardReopened
        } else if list(was) != list(is) {
            EventKind::CardMoved
        } else {
            at_least.unwrap_or(EventKind::CardUpdated)
        };
        if previous.is_some() || at_least.is_some() {
            tell(db, company, (kind, after.card.updated_at), after.clone(), previous).await?;
        }
        Ok(after.into())
    }
}

async fn tell(
    db: &mut PgConnection,
    company: CompanyId,
    (kind, at): (EventKind, DateTime<Utc>),
    card: LoadedCard,
    previous: Option<Value>,
) -> ApiResult<()> {
    let record = Record::Card(ShownThen::of(card.card.id, &Card::from(card))?);
    Ok(events::tell(db, company, &[Told::plain(kind, at, record, previous)]).await?)
}
