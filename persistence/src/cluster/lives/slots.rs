//! Which life serves which slots: assignment, handover and canceled moves.

use sqlx::{FromRow, PgPool};

use super::{LifeRow, SELECT_LIVES, SealRow, begin_fenced};
use crate::Result;
use crate::begin::begin;
use crate::cluster::{LifeId, Slot};
use crate::error::with_timeout;

/// Advisory lock of the planner, so that only one process plans at a time: "hotlinep" in ASCII.
const PLANNER_LOCK: i64 = 0x68_6f_74_6c_69_6e_65_70;

/// The assignment of a slot, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct SlotRow {
    /// The slot.
    #[sqlx(try_from = "i16")]
    pub slot: Slot,
    /// The life that serves it; `None` if it is unassigned.
    pub life: Option<LifeId>,
    /// The life it is to move to; `None` if it stays.
    pub next: Option<LifeId>,
}

/// Every slot, in the order of their numbers.
pub async fn slots(db: &PgPool) -> Result<Vec<SlotRow>> {
    with_timeout(sqlx::query_as("select slot, life, next from slots order by slot").fetch_all(db)).await
}

/// Hands closed slots over to the lives they are to move to. Returns the slots that moved: those whose new life is
/// already over stay.
///
/// # Errors
/// [`crate::Error::NotOwner`] when this life is over; other errors when the database cannot answer: then it is unknown
/// whether the slots moved.
pub async fn hand_over(db: &PgPool, life: LifeId, slots: &[Slot]) -> Result<Vec<Slot>> {
    let numbers: Vec<i16> = slots.iter().map(|slot| slot.column()).collect();
    with_timeout(async {
        let mut transaction = begin(db, Some(begin_fenced(life)), ()).await?.0;
        let moved: Vec<i16> = sqlx::query_scalar(
            "with heirs as (select life from lives where life in (select next from slots where slot = any($2)) for key share)
             update slots s set life = s.next, next = null from heirs
             where s.slot = any($2) and s.life = $1 and s.next = heirs.life returning s.slot",
        )
        .bind(life)
        .bind(&numbers)
        .fetch_all(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(moved)
    })
    .await
    .map(|moved| moved.into_iter().filter_map(Slot::from_column).collect())
}

/// Cancels the moves of slots: they stay with this life.
///
/// # Errors
/// As [`hand_over`].
pub async fn cancel_moves(db: &PgPool, life: LifeId, slots: &[Slot]) -> Result<()> {
    let numbers: Vec<i16> = slots.iter().map(|slot| slot.column()).collect();
    with_timeout(async {
        let mut transaction = begin(db, Some(begin_fenced(life)), ()).await?.0;
        sqlx::query("update slots set next = null where slot = any($2) and life = $1")
            .bind(life)
            .bind(&numbers)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await
    })
    .await
}

/// Plans the placement unless another process is planning. `plan` returns which slots go to which life: unassigned ones
/// directly, others as a move. Returns how many slots were planned.
///
/// # Errors
/// [`crate::Error::NotOwner`] when this life is over; other errors when the database cannot answer.
pub async fn plan(
    db: &PgPool,
    life: LifeId,
    plan: impl FnOnce(&[LifeRow], &[SlotRow], &[SealRow]) -> Vec<(Slot, LifeId)> + Send,
) -> Result<usize> {
    with_timeout(async {
        let mut transaction = begin(db, Some(begin_fenced(life)), ()).await?.0;
        let try_lock = "select pg_try_advisory_xact_lock($1)";
        if !sqlx::query_scalar(try_lock).bind(PLANNER_LOCK).fetch_one(&mut *transaction).await? {
            return Ok(0);
        }
        // `for key share` keeps these lives from ending until the plan is written.
        let statement = sqlx::AssertSqlSafe(format!("{SELECT_LIVES} for key share of l"));
        let lives: Vec<LifeRow> = sqlx::query_as(statement).fetch_all(&mut *transaction).await?;
        let slots: Vec<SlotRow> =
            sqlx::query_as("select slot, life, next from slots order by slot").fetch_all(&mut *transaction).await?;
        // The planner gets unfinished seals, and those of the last 30 s by the database's clock.
        let statement = "select life, heir, sealed_at, done from seals
            where not done or sealed_at > now() - interval '30 seconds'";
        let seals: Vec<SealRow> = sqlx::query_as(statement).fetch_all(&mut *transaction).await?;
        let assignments = plan(&lives, &slots, &seals);
        if assignments.is_empty() {
            return Ok(0);
        }
        let numbers: Vec<i16> = assignments.iter().map(|(slot, _)| slot.column()).collect();
        let lives: Vec<LifeId> = assignments.iter().map(|(_, life)| *life).collect();
        sqlx::query(
            "update slots s set
                 life = coalesce(s.life, g.life),
                 next = case when s.life is null then null else g.life end
             from unnest($1::smallint[], $2::bigint[]) g (slot, life)
             where s.slot = g.slot and s.life is distinct from g.life",
        )
        .bind(&numbers)
        .bind(&lives)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(assignments.len())
    })
    .await
}
