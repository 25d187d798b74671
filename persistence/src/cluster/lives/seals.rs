//! How a life is ended by another, and who inherits its slots.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgPool};

use super::{begin_fenced, journal_of};
use crate::begin::begin;
use crate::cluster::LifeId;
use crate::error::with_timeout;
use crate::pool::session_name;
use crate::{Error, Result};

/// How long a seal waits for a transaction of the life that is ended, before it ends the life's sessions.
const SEAL_LOCK_TIME_MAX: &str = "300ms";

/// How often a seal is tried: once to see who holds the lock, and again for sessions that came meanwhile.
const SEAL_TRIES: usize = 5;

/// A life that was ended by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct SealRow {
    /// Which one.
    pub life: LifeId,
    /// Who looks after what it has left.
    pub heir: LifeId,
    /// When.
    pub sealed_at: DateTime<Utc>,
    /// Whether its slots are others' by now.
    pub done: bool,
}

/// Lives that were ended and whose slots are not others' yet, and those of the last minute.
///
/// # Errors
/// When the database cannot answer.
pub async fn seals(db: &PgPool) -> Result<Vec<SealRow>> {
    with_timeout(sqlx::query_as("select life, heir, sealed_at, done from seals order by life").fetch_all(db)).await
}

/// Ends another life, if nobody has yet; answers whether this did. What a stopped process holds does not keep it alive: its
/// sessions are ended.
///
/// # Errors
/// [`Error::NotOwner`] when the life that asks is over itself; when the database cannot answer, or the sessions come back
/// again and again.
pub async fn seal(db: &PgPool, heir: LifeId, dead: LifeId) -> Result<bool> {
    for _ in 0..SEAL_TRIES {
        match with_timeout(try_seal(db, heir, dead)).await {
            Ok(is_sealed) => {
                // Whatever it still does is refused; this is for what its sessions hold.
                end_sessions(db, dead).await?;
                return Ok(is_sealed);
            }
            Err(Error::Unavailable(_)) => end_sessions(db, dead).await?,
            Err(error) => return Err(error),
        }
    }
    Err(Error::Unavailable(format!("life {dead} does not let go of its row")))
}

async fn try_seal(db: &PgPool, heir: LifeId, dead: LifeId) -> sqlx::Result<bool> {
    let mut transaction = begin(db, Some(begin_fenced(heir)), ()).await?.0;
    let wait = format!("set local lock_timeout = '{SEAL_LOCK_TIME_MAX}'");
    sqlx::query(sqlx::AssertSqlSafe(wait)).execute(&mut *transaction).await?;
    let sealed = sqlx::query(
        "with dead as (delete from lives where life = $2 returning life)
         insert into seals (life, heir) select life, $1 from dead",
    )
    .bind(heir)
    .bind(dead)
    .execute(&mut *transaction)
    .await?;
    for statement in [
        "update seals set heir = $1 where heir = $2 and not done",
        "delete from beats where life = $2 and $1 <> $2",
        // What it was to get, it does not get.
        "update slots set next = null where next = $2 and $1 <> $2",
    ] {
        sqlx::query(statement).bind(heir).bind(dead).execute(&mut *transaction).await?;
    }
    sqlx::query("delete from journal_watermark where journal = $1")
        .bind(journal_of(dead))
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(sealed.rows_affected() == 1)
}

/// Ends the sessions of a life.
async fn end_sessions(db: &PgPool, life: LifeId) -> Result<()> {
    let end = "select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = $1 and datname = current_database() and pid <> pg_backend_pid()";
    with_timeout(sqlx::query(end).bind(session_name(life)).execute(db)).await.map(drop)
}

/// Takes over what lives look after that are gone themselves and have not said who is to: nobody ends those any more. Answers
/// how many that were. Whoever does gives their slots away with [`inherit`], after the same time as if it had ended them.
///
/// # Errors
/// [`Error::NotOwner`] when the life that asks is over itself; when the database cannot answer.
pub async fn adopt(db: &PgPool, life: LifeId) -> Result<u64> {
    with_timeout(async {
        let mut transaction = begin(db, Some(begin_fenced(life)), ()).await?.0;
        // One at a time has each: who comes second finds an heir that is there.
        let adopted =
            "update seals set heir = $1 where not done and not exists (select from lives where life = seals.heir)";
        let adopted = sqlx::query(adopted).bind(life).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(adopted.rows_affected())
    })
    .await
}

/// Gives the slots of a life that was ended to others, and says that this is done. To be called once the time is over in
/// which the life may still have answered. False: somebody else looks after them by now.
///
/// # Errors
/// [`Error::NotOwner`] when this life is over; when the database cannot answer.
pub async fn inherit(db: &PgPool, heir: LifeId, dead: LifeId) -> Result<bool> {
    with_timeout(async {
        let mut transaction = begin(db, Some(begin_fenced(heir)), ()).await?.0;
        let done = "update seals set done = true where life = $2 and heir = $1 and not done";
        let done = sqlx::query(done).bind(heir).bind(dead).execute(&mut *transaction).await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        // Nobody's: whoever plans gives them away at once.
        sqlx::query("update slots set life = null, next = null where life = $1")
            .bind(dead)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(true)
    })
    .await
}
