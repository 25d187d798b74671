//! The verbs of a card: move, win, lose, reopen.
//!
//! A card is open, then won or lost, and can be reopened. A won card is in the board's `doneList`, and stays there.

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_actors::Refusal;
use hotline_persistence::CompanyId;
use hotline_persistence::table;
use hotline_persistence::tables::cards::{self, BoardListId, CardId, CardOutcome, CardRef, LockedCard, Target};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::stages::{check_won_card_stays, lock_stage, state_conflict};
use super::{Card, card_events};
use crate::app::App;
use crate::web::request::values::{FromField, NonBlankText, Text};
use crate::web::{ApiError, ApiResult, Body, Caller, Fields, Idempotency, Input, Json, PathId};

/// From this rank on, a card goes to the bottom of the stage without its cards being counted: no board shows that many.
const BOTTOM_RANK: i64 = 1_000_000;

/// The number of cards above the target position; `None`, like a number beyond the end, means the bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rank(Option<i64>);

impl FromField for Rank {
    fn from_json(value: &Value) -> Result<Self, String> {
        let is_whole = value.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0);
        let rank = value.as_i64().or_else(|| is_whole.then_some(i64::MAX)).filter(|rank| *rank >= 0);
        let rank = rank.ok_or("must be an integer from 0")?;
        Ok(Self(Some(rank).filter(|rank| *rank < BOTTOM_RANK)))
    }

    fn schema() -> Value {
        json!({"type": "integer", "format": "int64", "minimum": 0, "example": 0})
    }
}

/// The body of `POST /crm/cards/{cardId}/move`.
pub struct Move {
    list: BoardListId,
    rank: Option<Rank>,
}

impl Input for Move {
    fn name() -> Cow<'static, str> {
        "CardMove".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let list = fields.required("crmBoardListId");
        let rank = fields.optional("position");
        Some(Self { list: list?, rank })
    }
}

/// `POST /crm/cards/{cardId}/move`: writes only this card. A move to its current position changes nothing.
pub async fn move_to(
    caller: Caller,
    app: Data<App>,
    id: PathId<CardId>,
    body: Body<Move>,
    idempotency: Idempotency,
) -> ApiResult<Json<Card>> {
    let (company, id, Move { list, rank }) = (caller.company, id.0, body.0);
    idempotency
        .transaction(app.db(company), async |db| {
            let card = find_card_ref(db, company, id).await?;
            let stage = lock_stage(db, company, card.board_id, list).await?;
            let position = cards::place(db, company, stage, Some(id), rank.and_then(|rank| rank.0)).await?;
            let locked_card = cards::lock(db, company, id).await?.ok_or_else(ApiError::not_found)?;
            check_won_card_stays(&locked_card, stage)?;
            let tracked = card_events::track_changes(db, company, id).await?;
            if cards::is_in_place(db, company, id, stage.id, &position).await? {
                return Ok(Json::of(tracked.publish(db).await?));
            }
            cards::move_card(db, company, id, stage.id, &position).await?;
            Ok(Json::of(tracked.publish_moved(db).await?))
        })
        .await
}

/// The body of `POST /crm/cards/{cardId}/win`.
pub struct Win {
    reason: Option<Text>,
}

impl Input for Win {
    fn name() -> Cow<'static, str> {
        "CardWin".into()
    }
    const MAY_BE_EMPTY: bool = true;

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { reason: fields.optional("statusReason") })
    }
}

/// `POST /crm/cards/{cardId}/win`: moves the card to the bottom of the board's `doneList`, unless it is already there.
pub async fn win(
    caller: Caller,
    app: Data<App>,
    id: PathId<CardId>,
    body: Body<Win>,
    idempotency: Idempotency,
) -> ApiResult<Json<Card>> {
    let (company, id, reason) = (caller.company, id.0, body.0.reason);
    idempotency
        .transaction(app.db(company), async |db| {
            let card = find_card_ref(db, company, id).await?;
            let stage = cards::lock_stage(db, company, card.board_id, Target::Done).await?;
            let target = match stage {
                Some(stage) => Some((stage, cards::place(db, company, stage, Some(id), None).await?)),
                None => None,
            };
            let locked_card = cards::lock(db, company, id).await?.ok_or_else(ApiError::not_found)?;
            check_open(&locked_card)?;
            let (stage, position) = target
                .ok_or_else(|| Refusal::invalid("boardId", "must be a board with a stage for won cards (doneList)"))?;
            let tracked = card_events::track_changes(db, company, id).await?;
            if stage.id != locked_card.list_id {
                cards::move_card(db, company, id, stage.id, &position).await?;
            }
            cards::conclude(db, company, id, CardOutcome::Won, reason.as_ref().map(|reason| reason.0.as_str())).await?;
            Ok(Json::of(tracked.publish(db).await?))
        })
        .await
}

/// The body of `POST /crm/cards/{cardId}/lose`.
pub struct Lose {
    reason: NonBlankText,
}

impl Input for Lose {
    fn name() -> Cow<'static, str> {
        "CardLose".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { reason: fields.required("statusReason")? })
    }
}

/// `POST /crm/cards/{cardId}/lose`: the card stays in its stage.
pub async fn lose(
    caller: Caller,
    app: Data<App>,
    id: PathId<CardId>,
    body: Body<Lose>,
    idempotency: Idempotency,
) -> ApiResult<Json<Card>> {
    let (company, id, reason) = (caller.company, id.0, body.0.reason);
    idempotency
        .transaction(app.db(company), async |db| {
            let locked_card = cards::lock(db, company, id).await?.ok_or_else(ApiError::not_found)?;
            check_open(&locked_card)?;
            let tracked = card_events::track_changes(db, company, id).await?;
            cards::conclude(db, company, id, CardOutcome::Lost, Some(&reason.0)).await?;
            Ok(Json::of(tracked.publish(db).await?))
        })
        .await
}

/// `POST /crm/cards/{cardId}/reopen`: the card stays in its stage, and its reason is cleared.
pub async fn reopen(
    caller: Caller,
    app: Data<App>,
    id: PathId<CardId>,
    idempotency: Idempotency,
) -> ApiResult<Json<Card>> {
    let (company, id) = (caller.company, id.0);
    idempotency
        .transaction(app.db(company), async |db| {
            let locked_card = cards::lock(db, company, id).await?.ok_or_else(ApiError::not_found)?;
            if !locked_card.won && !locked_card.lost {
                return Err(state_conflict("the card is open", "open", id));
            }
            let tracked = card_events::track_changes(db, company, id).await?;
            cards::reopen(db, company, id).await?;
            Ok(Json::of(tracked.publish(db).await?))
        })
        .await
}

/// Checks that a card is open: only an open card can be won or lost.
fn check_open(locked_card: &LockedCard) -> ApiResult<()> {
    match (locked_card.won, locked_card.lost) {
        (true, _) => Err(state_conflict("the card is won; reopen it first", "won", locked_card.id)),
        (_, true) => Err(state_conflict("the card is lost; reopen it first", "lost", locked_card.id)),
        (false, false) => Ok(()),
    }
}

async fn find_card_ref(db: &mut PgConnection, company: CompanyId, id: CardId) -> ApiResult<CardRef> {
    table::find::<CardRef>(db, company, id).await?.ok_or_else(ApiError::not_found)
}
