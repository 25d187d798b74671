//! Where a card stands in its stage.
//!
//! A position is a decimal fraction, and lower ones are higher up. Between two there is always room for one more, so a
//! move writes one row. The digits grow when one spot is asked for again and again; at [`DIGITS_MAX`] the cards behind
//! it are spread anew.
//!
//! Locks are taken in one order, so nobody waits in a circle: the stage, then cards that are spread, then the one card.
//! Who holds their card waits for no stage any more. A card leaves a stage without its lock: the order of the others
//! does not change by that.

use sqlx::{FromRow, PgConnection};

use super::{BoardId, BoardListId, CardId};
use crate::error::with_timeout;
use crate::{CompanyId, Result};

/// Digits of a position behind its point: three hundred moves to one spot use them up, and the key of an index stays
/// small.
const DIGITS_MAX: i32 = 100;

/// Digits between two cards that are spread anew: half of what there is, so that as many moves fit in as before.
const SPREAD_DIGITS: i32 = DIGITS_MAX / 2;

/// Cards that are spread at once, at first; four times as many when they do not reach into free space.
const SPREAD_CARDS: i64 = 128;

/// A stage that is locked: nobody else puts a card into it, and it stays, until the transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
#[allow(missing_docs)]
pub struct Stage {
    pub id: BoardListId,
    pub done_list: bool,
}

/// Which stage of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This one, if it is one of the board's.
    Stage(BoardListId),
    /// The board's first.
    First,
    /// The one that concludes cards.
    Done,
}

/// Where in a stage: so many cards are above. None is the bottom, and so is one beyond it.
pub type Rank = Option<i64>;

/// Locks a stage of a board; none when the board has no such one.
///
/// # Errors
/// When the database cannot answer.
pub async fn lock_stage(
    db: &mut PgConnection,
    company: CompanyId,
    board: BoardId,
    target: Target,
) -> Result<Option<Stage>> {
    // The lock of a change that leaves the key alone: cards refer to the stage meanwhile, and it cannot be deleted.
    let lock = sqlx::query_as(
        "select id, done_list from board_lists where company_id = $1 and board_id = $2
             and case $3::text when 'first' then true when 'done' then done_list else id = $4::bigint end
         order by position, id limit 1 for no key update",
    );
    let (word, id) = match target {
        Target::Stage(id) => ("stage", id.0),
        Target::First => ("first", 0),
        Target::Done => ("done", 0),
    };
    with_timeout(lock.bind(company).bind(board).bind(word).bind(id).fetch_optional(db)).await
}

/// Whether the company has a board, and a stage of any board.
///
/// # Errors
/// When the database cannot answer.
pub async fn are_known(
    db: &mut PgConnection,
    company: CompanyId,
    board: BoardId,
    list: BoardListId,
) -> Result<(bool, bool)> {
    let ask = sqlx::query_as(
        "select exists (select from boards where company_id = $1 and id = $2),
             exists (select from board_lists where company_id = $1 and id = $3)",
    );
    with_timeout(ask.bind(company).bind(board).bind(list).fetch_one(db)).await
}

/// A position that is free, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(pub String);

/// A free place in a stage that is locked, for a card that may be in it already.
///
/// # Errors
/// When the database cannot answer.
pub async fn place(
    db: &mut PgConnection,
    company: CompanyId,
    stage: Stage,
    card: Option<CardId>,
    rank: Rank,
) -> Result<Place> {
    let Some(rank) = rank else { return bottom(db, company, stage).await };
    let Neighbours { above, below } = neighbours(db, company, stage, card, rank).await?;
    match (above, below) {
        (_, None) => bottom(db, company, stage).await,
        (None, Some(below)) => Ok(Place(scalar(db, "select ceil($1::numeric - 1)::text", &[&below]).await?)),
        (Some(above), Some(below)) => match between(db, &above, &below).await? {
            Some(place) => Ok(place),
            None => {
                spread(db, company, stage, &above).await?;
                let Neighbours { below, .. } = neighbours(db, company, stage, card, rank).await?;
                match below {
                    Some(below) => Ok(between(db, &above, &below).await?.unwrap_or(Place(below))),
                    None => bottom(db, company, stage).await,
                }
            }
        },
    }
}

#[derive(FromRow)]
struct Neighbours {
    above: Option<String>,
    below: Option<String>,
}

/// The positions of the cards between which a card is to stand, which is not counted itself.
async fn neighbours(
    db: &mut PgConnection,
    company: CompanyId,
    stage: Stage,
    card: Option<CardId>,
    rank: i64,
) -> Result<Neighbours> {
    let ask = sqlx::query_as(
        // By position alone, so that the index is enough.
        "with own as (select position from cards where company_id = $1 and list_id = $2 and id = $3::bigint),
         near as (
             select position, row_number() over (order by position) as nth from (
                 select position from cards where company_id = $1 and list_id = $2
                     and position is distinct from (select position from own)
                 order by position offset greatest($4::bigint - 1, 0) limit 2) found)
         select (select position::text from near where $4::bigint > 0 and nth = 1) as above,
             (select position::text from near where nth = case when $4::bigint > 0 then 2 else 1 end) as below",
    );
    with_timeout(ask.bind(company).bind(stage.id).bind(card).bind(rank).fetch_one(db)).await
}

/// Behind the last card.
async fn bottom(db: &mut PgConnection, company: CompanyId, stage: Stage) -> Result<Place> {
    let ask = sqlx::query_scalar(
        "select (floor(coalesce(max(position), 0)) + 1)::text from cards where company_id = $1 and list_id = $2",
    );
    with_timeout(ask.bind(company).bind(stage.id).fetch_one(db)).await.map(Place)
}

/// The shortest fraction near the middle of two positions; none when it would be too long.
async fn between(db: &mut PgConnection, above: &str, below: &str) -> Result<Option<Place>> {
    let ask = sqlx::query_scalar(
        // One digit more than the gap begins with: rounding to it moves the middle by a twentieth of the gap at most.
        "select trim_scale(round((above + below) * 0.5, digits))::text from (
             select above, below, greatest(0, ceil(-log(below - above))::int + 1) as digits
             from (select $1::numeric as above, $2::numeric as below) given) gap
         where digits <= $3::int",
    );
    let found: Option<String> = with_timeout(ask.bind(above).bind(below).bind(DIGITS_MAX).fetch_optional(db)).await?;
    Ok(found.map(Place))
}

/// Spreads the cards behind a position, as many as it takes to make room.
async fn spread(db: &mut PgConnection, company: CompanyId, stage: Stage, above: &str) -> Result<()> {
    let mut cards = SPREAD_CARDS;
    let step = loop {
        // What stands behind those that are spread, as far as anything does, says how far apart they may come to stand.
        let ask = sqlx::query_scalar(
            "select step::text from (
                 select coalesce((select (position - $3::numeric) / ($4::bigint + 2) from cards
                     where company_id = $1 and list_id = $2 and position > $3::numeric
                     order by position offset $4::bigint limit 1), 1) as step) found
             where step > $5::numeric",
        );
        let ask = ask.bind(company).bind(stage.id).bind(above).bind(cards).bind(format!("1e-{SPREAD_DIGITS}"));
        let step: Option<String> = with_timeout(ask.fetch_optional(&mut *db)).await?;
        if let Some(step) = step {
            break step;
        }
        cards *= 4;
    };
    let spread = sqlx::query(
        "with held as (
             select id, round($3::numeric + $5::numeric * row_number() over (order by position), $6::int) as place from (
                 select id, position from cards where company_id = $1 and list_id = $2 and position > $3::numeric
                 order by position limit $4::bigint) behind)
         update cards set position = held.place from held
         where cards.company_id = $1 and cards.id = held.id and cards.list_id = $2",
    );
    let spread = spread.bind(company).bind(stage.id).bind(above).bind(cards).bind(step).bind(SPREAD_DIGITS + 2);
    with_timeout(spread.execute(db)).await?;
    Ok(())
}

async fn scalar(db: &mut PgConnection, statement: &'static str, values: &[&str]) -> Result<String> {
    let ask = values.iter().fold(sqlx::query_scalar(statement), |ask, value| ask.bind(*value));
    with_timeout(ask.fetch_one(db)).await
}
