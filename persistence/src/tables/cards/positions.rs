//! The position of a card within its stage.
//!
//! A position is a decimal fraction; lower ones are higher up. There is always space between two positions, so a move
//! writes one row. The fractions get longer when cards are repeatedly moved to the same spot; at [`DIGITS_MAX`] digits,
//! the cards after that spot are respaced.
//!
//! Locks are taken in a fixed order, which avoids deadlocks: the stage, then the cards that are respaced, then the
//! moved card. After locking its card, a transaction locks no stage. The stage that a card leaves is not locked,
//! because the order of its other cards does not change.

use sqlx::{FromRow, PgConnection};

use super::{BoardId, BoardListId, CardId};
use crate::error::with_timeout;
use crate::{CompanyId, Result};

/// Maximum decimals of a position: about three hundred moves to one spot use them up, and index keys stay small.
const DIGITS_MAX: i32 = 100;

/// Decimals of the smallest step between respaced cards: half of the maximum, which leaves the other half for new
/// moves.
const RESPACE_DIGITS: i32 = DIGITS_MAX / 2;

/// Number of cards that are respaced at first. It is multiplied by four until their steps are large enough.
const RESPACE_CARDS: i64 = 128;

/// A locked stage: until the transaction ends, no other transaction can delete it, or lock it to add cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct LockedStage {
    pub id: BoardListId,
    pub done_list: bool,
}

/// The stage of a board that [`lock_stage`] locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This stage, if it belongs to the board.
    Stage(BoardListId),
    /// The board's first stage.
    First,
    /// The stage for won cards.
    Done,
}

/// Number of cards above the position. `None`, or more than the stage has, means the bottom.
pub type Rank = Option<i64>;

/// Locks a stage of a board; `None` if the board does not have it.
pub async fn lock_stage(
    db: &mut PgConnection,
    company: CompanyId,
    board: BoardId,
    target: Target,
) -> Result<Option<LockedStage>> {
    // With `for no key update`, cards can still reference the stage meanwhile, but it cannot be deleted.
    let lock = sqlx::query_as(
        "select id, done_list from board_lists where company_id = $1 and board_id = $2
             and case $3::text when 'first' then true when 'done' then done_list else id = $4::bigint end
         order by position, id limit 1 for no key update",
    );
    let (selector, id) = match target {
        Target::Stage(id) => ("stage", id.0),
        Target::First => ("first", 0),
        Target::Done => ("done", 0),
    };
    with_timeout(lock.bind(company).bind(board).bind(selector).bind(id).fetch_optional(db)).await
}

/// Whether the company has the board, and whether it has the stage, on any board.
pub async fn board_and_list_exist(
    db: &mut PgConnection,
    company: CompanyId,
    board: BoardId,
    list: BoardListId,
) -> Result<(bool, bool)> {
    let query = sqlx::query_as(
        "select exists (select from boards where company_id = $1 and id = $2),
             exists (select from board_lists where company_id = $1 and id = $3)",
    );
    with_timeout(query.bind(company).bind(board).bind(list).fetch_one(db)).await
}

/// A free position, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardPosition(pub String);

/// Finds a free position in a locked stage, for a card that may be in the stage already.
pub async fn place(
    db: &mut PgConnection,
    company: CompanyId,
    stage: LockedStage,
    card: Option<CardId>,
    rank: Rank,
) -> Result<CardPosition> {
    let Some(rank) = rank else { return bottom_position(db, company, stage).await };
    let Neighbours { above, below } = find_neighbours(db, company, stage, card, rank).await?;
    match (above, below) {
        (_, None) => bottom_position(db, company, stage).await,
        (None, Some(below)) => Ok(CardPosition(fetch_text(db, "select ceil($1::numeric - 1)::text", &[&below]).await?)),
        (Some(above), Some(below)) => match position_between(db, &above, &below).await? {
            Some(position) => Ok(position),
            None => {
                respace(db, company, stage, &above).await?;
                let Neighbours { below, .. } = find_neighbours(db, company, stage, card, rank).await?;
                match below {
                    // A respaced gap always has room for a position; if not, the card would share that of `below`.
                    Some(below) => Ok(position_between(db, &above, &below).await?.unwrap_or(CardPosition(below))),
                    None => bottom_position(db, company, stage).await,
                }
            }
        },
    }
}

/// Whether a card need not move: it is in the locked stage, and no other card is between its position and `position`.
pub async fn is_in_place(
    db: &mut PgConnection,
    company: CompanyId,
    card: CardId,
    stage: BoardListId,
    position: &CardPosition,
) -> Result<bool> {
    let query = sqlx::query_scalar(
        "select exists (select from cards k where k.company_id = $1 and k.id = $2 and k.list_id = $3
             and not exists (select from cards o where o.company_id = $1 and o.list_id = $3 and o.id <> $2
                 and o.position between least(k.position, $4::numeric) and greatest(k.position, $4::numeric)))",
    );
    with_timeout(query.bind(company).bind(card).bind(stage).bind(&position.0).fetch_one(db)).await
}

#[derive(FromRow)]
struct Neighbours {
    above: Option<String>,
    below: Option<String>,
}

/// The positions of the cards just above and below a rank, ignoring the card itself.
async fn find_neighbours(
    db: &mut PgConnection,
    company: CompanyId,
    stage: LockedStage,
    card: Option<CardId>,
    rank: i64,
) -> Result<Neighbours> {
    let query = sqlx::query_as(
        // By position only, so that the index suffices.
        "with own as (select position from cards where company_id = $1 and list_id = $2 and id = $3::bigint),
         near as (
             select position, row_number() over (order by position) as nth from (
                 select position from cards where company_id = $1 and list_id = $2
                     and position is distinct from (select position from own)
                 order by position offset greatest($4::bigint - 1, 0) limit 2) found)
         select (select position::text from near where $4::bigint > 0 and nth = 1) as above,
             (select position::text from near where nth = case when $4::bigint > 0 then 2 else 1 end) as below",
    );
    with_timeout(query.bind(company).bind(stage.id).bind(card).bind(rank).fetch_one(db)).await
}

/// The position after the last card.
async fn bottom_position(db: &mut PgConnection, company: CompanyId, stage: LockedStage) -> Result<CardPosition> {
    let query = sqlx::query_scalar(
        "select (floor(coalesce(max(position), 0)) + 1)::text from cards where company_id = $1 and list_id = $2",
    );
    with_timeout(query.bind(company).bind(stage.id).fetch_one(db)).await.map(CardPosition)
}

/// The shortest fraction near the middle of two positions; `None` if it would be too long.
async fn position_between(db: &mut PgConnection, above: &str, below: &str) -> Result<Option<CardPosition>> {
    let query = sqlx::query_scalar(
        // One digit more than the gap's first digit: rounding moves the middle by at most a twentieth of the gap.
        "select trim_scale(round((above + below) * 0.5, digits))::text from (
             select above, below, greatest(0, ceil(-log(below - above))::int + 1) as digits
             from (select $1::numeric as above, $2::numeric as below) given) gap
         where digits <= $3::int",
    );
    let found: Option<String> = with_timeout(query.bind(above).bind(below).bind(DIGITS_MAX).fetch_optional(db)).await?;
    Ok(found.map(CardPosition))
}

/// Spreads cards after the position `above` evenly: as many as needed for steps larger than the minimum.
async fn respace(db: &mut PgConnection, company: CompanyId, stage: LockedStage, above: &str) -> Result<()> {
    let mut card_count = RESPACE_CARDS;
    let step = loop {
        // The first card that is not respaced, if any, determines how far apart the others can be.
        let query = sqlx::query_scalar(
            "select step::text from (
                 select coalesce((select (position - $3::numeric) / ($4::bigint + 2) from cards
                     where company_id = $1 and list_id = $2 and position > $3::numeric
                     order by position offset $4::bigint limit 1), 1) as step) found
             where step > $5::numeric",
        );
        let query =
            query.bind(company).bind(stage.id).bind(above).bind(card_count).bind(format!("1e-{RESPACE_DIGITS}"));
        let step: Option<String> = with_timeout(query.fetch_optional(&mut *db)).await?;
        if let Some(step) = step {
            break step;
        }
        card_count *= 4;
    };
    let update = sqlx::query(
        "with respaced as (
             select id, round($3::numeric + $5::numeric * row_number() over (order by position), $6::int) as place from (
                 select id, position from cards where company_id = $1 and list_id = $2 and position > $3::numeric
                 order by position limit $4::bigint) behind)
         update cards set position = respaced.place from respaced
         where cards.company_id = $1 and cards.id = respaced.id and cards.list_id = $2",
    );
    let update = update.bind(company).bind(stage.id).bind(above).bind(card_count).bind(step).bind(RESPACE_DIGITS + 2);
    with_timeout(update.execute(db)).await?;
    Ok(())
}

async fn fetch_text(db: &mut PgConnection, statement: &'static str, values: &[&str]) -> Result<String> {
    let query = values.iter().fold(sqlx::query_scalar(statement), |query, value| query.bind(*value));
    with_timeout(query.fetch_one(db)).await
}
