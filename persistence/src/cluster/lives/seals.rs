//! How a life is ended by another, which inherits its slots.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgPool};

use super::{begin_fenced, journal_of};
use crate::begin::begin;
use crate::cluster::LifeId;
use crate::error::with_timeout;
use crate::pool::session_name;
use crate::{Error, Result};

/// How long an attempt to seal waits for a transaction of the dead life before that life's sessions are terminated.
const SEAL_LOCK_TIME_MAX: &str = "300ms";

/// Attempts to seal. After each, the sessions of the dead life are terminated; it may open new ones meanwhile.
const SEAL_ATTEMPTS_MAX: usize = 5;

/// A life that was ended by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct SealRow {
    /// The ended life.
    pub life: LifeId,
    /// The life that inherits from it.
    pub heir: LifeId,
    /// When it was ended.
    pub sealed_at: DateTime<Utc>,
    /// Whether its slots were already released.
    pub done: bool,
}

/// The sealed lives: those whose slots are not released yet, and others until [`super::forget_seals`] deletes them.
pub async fn seals(db: &PgPool) -> Result<Vec<SealRow>> {
    with_timeout(sqlx::query_as("select life, heir, sealed_at, done from seals order by life").fetch_all(db)).await
}

/// Ends the life `dead` unless another process already has, or it has sent a heartbeat since `beat_at`; returns whether
/// `heir` ended it, with this call or one whose answer was lost. Locks that a frozen process holds do not prevent
/// this: the sessions of that process are terminated.
///
/// # Errors
/// [`Error::NotOwner`] when the calling life is itself over; other errors when the database cannot answer, or the
/// sessions keep reconnecting.
pub async fn seal(db: &PgPool, heir: LifeId, dead: LifeId, beat_at: DateTime<Utc>) -> Result<bool> {
    for _ in 0..SEAL_ATTEMPTS_MAX {
        match with_timeout(try_seal(db, heir, dead, beat_at)).await {
            Ok(SealAttempt::StillAlive) => return Ok(false),
            Ok(SealAttempt::Ended { by_heir }) => {
                // The life's writes are refused from now on; ending its sessions releases their locks.
                end_sessions(db, dead).await?;
                return Ok(by_heir);
            }
            Err(Error::Unavailable(_)) => end_sessions(db, dead).await?,
            Err(error) => return Err(error),
        }
    }
    Err(Error::Unavailable(format!("life {dead} still holds its row")))
}

/// What an attempt to seal found or did.
enum SealAttempt {
    /// The life has sent another heartbeat.
    StillAlive,
    /// The life is over. `by_heir`: whether the calling life ended it, now or before.
    Ended { by_heir: bool },
}

async fn try_seal(db: &PgPool, heir: LifeId, dead: LifeId, beat_at: DateTime<Utc>) -> sqlx::Result<SealAttempt> {
    let mut transaction = begin(db, Some(begin_fenced(heir)), ()).await?.0;
    let set_timeout = format!("set local lock_timeout = '{SEAL_LOCK_TIME_MAX}'");
    sqlx::query(sqlx::AssertSqlSafe(set_timeout)).execute(&mut *transaction).await?;
    // Once this row is locked, the next statement sees the life's last heartbeat: each heartbeat locks the row too.
    sqlx::query("select life from lives where life = $1 for update").bind(dead).execute(&mut *transaction).await?;
    let last_beat_at: Option<DateTime<Utc>> =
        sqlx::query_scalar("select at from beats where life = $1").bind(dead).fetch_optional(&mut *transaction).await?;
    if last_beat_at.is_some_and(|last_beat_at| last_beat_at != beat_at) {
        return Ok(SealAttempt::StillAlive);
    }
    sqlx::query(
        "with dead as (delete from lives where life = $2 returning life)
         insert into seals (life, heir) select life, $1 from dead",
    )
    .bind(heir)
    .bind(dead)
    .execute(&mut *transaction)
    .await?;
    // `$1 <> $2` is always true, because a life does not seal itself; it lets each statement use both parameters.
    for statement in [
        "update seals set heir = $1 where heir = $2 and not done",
        "delete from beats where life = $2 and $1 <> $2",
        // Slots it was about to receive stay where they are.
        "update slots set next = null where next = $2 and $1 <> $2",
    ] {
        sqlx::query(statement).bind(heir).bind(dead).execute(&mut *transaction).await?;
    }
    sqlx::query("delete from journal_watermark where journal = $1")
        .bind(journal_of(dead))
        .execute(&mut *transaction)
        .await?;
    let by_heir = sqlx::query_scalar("select exists (select from seals where life = $1 and heir = $2)")
        .bind(dead)
        .bind(heir)
        .fetch_one(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(SealAttempt::Ended { by_heir })
}

/// Terminates the sessions of a life.
async fn end_sessions(db: &PgPool, life: LifeId) -> Result<()> {
    let statement = "select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = $1 and datname = current_database() and pid <> pg_backend_pid()";
    with_timeout(sqlx::query(statement).bind(session_name(life)).execute(db)).await.map(drop)
}

/// Takes over the unfinished seals whose heir has ended without another life inheriting them: no other process
/// would finish them. Returns how many. The new heir calls [`release_slots`] after the same wait as if it had
/// sealed these lives itself.
///
/// # Errors
/// [`Error::NotOwner`] when `life` is over; other errors when the database cannot answer.
pub async fn adopt(db: &PgPool, life: LifeId) -> Result<u64> {
    with_timeout(async {
        let mut transaction = begin(db, Some(begin_fenced(life)), ()).await?.0;
        // Of two concurrent calls, the second finds a living heir.
        let statement =
            "update seals set heir = $1 where not done and not exists (select from lives where life = seals.heir)";
        let updated = sqlx::query(statement).bind(life).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(updated.rows_affected())
    })
    .await
}

/// Releases the slots of a sealed life and marks the seal as done. Call it only when the lease of that life has
/// certainly ended. Returns false when another heir has taken over.
///
/// # Errors
/// [`Error::NotOwner`] when `heir` is over; other errors when the database cannot answer.
pub async fn release_slots(db: &PgPool, heir: LifeId, dead: LifeId) -> Result<bool> {
    with_timeout(async {
        let mut transaction = begin(db, Some(begin_fenced(heir)), ()).await?.0;
        let statement = "update seals set done = true where life = $2 and heir = $1 and not done";
        let updated = sqlx::query(statement).bind(heir).bind(dead).execute(&mut *transaction).await?;
        if updated.rows_affected() == 0 {
            return Ok(false);
        }
        // The next planner assigns these slots at once.
        sqlx::query("update slots set life = null, next = null where life = $1")
            .bind(dead)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(true)
    })
    .await
}
