//! Who serves which slots: how they are given, handed over and kept.

use sqlx::{FromRow, PgPool};

use super::{LIVES, LifeRow, SealRow, begin_fenced};
use crate::Result;
use crate::begin::begin;
use crate::cluster::{LifeId, Slot};
use crate::error::with_timeout;

/// Moves and assignments are decided by one at a time: "hotlinep" in ASCII.
const PLANNER_LOCK: i64 = 0x68_6f_74_6c_69_6e_65_70;

/// Who serves a slot, as the table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct SlotRow {
    /// Which one.
    #[sqlx(try_from = "i16")]
    pub slot: Slot,
    /// Who serves it.
    pub life: Option<LifeId>,
    /// Who is to.
    pub next: Option<LifeId>,
}

/// Every slot, in the order of their numbers.
///
/// # Errors
/// When the database cannot answer.
pub async fn slots(db: &PgPool) -> Result<Vec<SlotRow>> {
    with_timeout(sqlx::query_as("select slot, life, next from slots order by slot").fetch_all(db)).await
}

/// Hands slots over to those that are to have them, after this life has closed them. Answers which: those that are to get
/// some and are over get none.
///
/// # Errors
/// [`crate::Error::NotOwner`] when this life is over; when the database cannot answer: then nobody knows whether they are others'.
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

/// Calls a move off: the slots stay with this life.
///
/// # Errors
/// As of [`hand_over`].
pub async fn keep(db: &PgPool, life: LifeId, slots: &[Slot]) -> Result<()> {
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

/// Plans, if nobody else does at this moment: `plan` answers which slots nobody has are given to whom, and which are to
/// move to whom. Answers how many that were.
///
/// # Errors
/// [`crate::Error::NotOwner`] when this life is over; when the database cannot answer.
pub async fn plan(
    db: &PgPool,
    life: LifeId,
    plan: impl FnOnce(&[LifeRow], &[SlotRow], &[SealRow]) -> Vec<(Slot, LifeId)> + Send,
) -> Result<usize> {
    with_timeout(async {
        let mut transaction = begin(db, Some(begin_fenced(life)), ()).await?.0;
        let lock = "select pg_try_advisory_xact_lock($1)";
        if !sqlx::query_scalar(lock).bind(PLANNER_LOCK).fetch_one(&mut *transaction).await? {
            return Ok(0);
        }
        // Those that are there stay until it is written who has what.
        let lives = sqlx::AssertSqlSafe(format!("{LIVES} for key share of l"));
        let lives: Vec<LifeRow> = sqlx::query_as(lives).fetch_all(&mut *transaction).await?;
        let slots: Vec<SlotRow> =
            sqlx::query_as("select slot, life, next from slots order by slot").fetch_all(&mut *transaction).await?;
        // A row is there for a minute, so that whoever plans knows of it; what is recent the database's clock says.
        let seals = "select life, heir, sealed_at, done from seals
            where not done or sealed_at > now() - interval '30 seconds'";
        let seals: Vec<SealRow> = sqlx::query_as(seals).fetch_all(&mut *transaction).await?;
        let given = plan(&lives, &slots, &seals);
        if given.is_empty() {
            return Ok(0);
        }
        let numbers: Vec<i16> = given.iter().map(|(slot, _)| slot.column()).collect();
        let lives: Vec<LifeId> = given.iter().map(|(_, life)| *life).collect();
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
        Ok(given.len())
    })
    .await
}
