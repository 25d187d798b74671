//! Lives in PostgreSQL: how a life begins, sends heartbeats and is ended by another, and what then happens to its
//! slots.

mod reports;
mod seals;
mod slots;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{FromRow, PgConnection, PgPool};

pub use self::reports::{PeerReport, Report, report_ages, reports, save_report};
pub use self::seals::{SealRow, adopt, release_slots, seal, seals};
pub use self::slots::{SlotRow, cancel_moves, hand_over, plan, slots};
use super::{LifeId, Moment};
use crate::begin::begin as begin_transaction;
use crate::error::with_timeout;
use crate::journal::Seq;
use crate::{Error, Result};

/// This release's version of the protocol between processes. Incremented by each release whose messages
/// earlier releases do not understand.
pub const PROTOCOL_VERSION: i32 = 1;

/// Maximum difference between the versions of two members. Each release understands the version before its own, and
/// uses that for members of that version, so that processes can be upgraded one after the other.
const VERSION_DIFFERENCE_MAX: i32 = 1;

/// An incompatible life keeps others from joining only while its last heartbeat is younger than this: after an outage
/// of all processes, none is left to end the earlier lives. Longer than the 3 s after which a member ends a life.
const INCOMPATIBLE_BEAT_AGE_MAX: Duration = Duration::from_secs(5);

/// Maximum difference between a machine's clock and the database's. No decision depends on it, but displayed times do.
pub const CLOCK_ERROR_MAX: Duration = Duration::from_secs(2);

/// Attempts of a life to end itself, and the pause in between.
const LEAVE_ATTEMPTS_MAX: usize = 5;
const LEAVE_PAUSE: Duration = Duration::from_millis(100);

/// A run of a process, as stored.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct LifeRow {
    /// Its id.
    pub life: LifeId,
    /// The display name of its machine.
    pub node: String,
    /// Host and port of its listener for the cluster.
    pub address: String,
    /// Its version of the protocol between processes.
    #[sqlx(rename = "speaks")]
    pub protocol_version: i32,
    /// Whether it takes no slots, because it is giving its own away or does not listen yet.
    pub draining: bool,
    /// When it began.
    pub began_at: DateTime<Utc>,
    /// The time of its last heartbeat.
    pub beat_at: DateTime<Utc>,
    /// The age of that heartbeat, by the database's clock.
    pub beat_age_ms: i64,
    /// Processors of its machine.
    pub cores: i32,
}

/// Every life with its last heartbeat. The columns are named, because `*` would invalidate the prepared statements of
/// running processes when a newer release adds a column.
const SELECT_LIVES: &str =
    "select l.life, l.node, l.address, l.speaks, l.draining, l.began_at, b.at as beat_at, b.cores,
        (extract(epoch from clock_timestamp() - b.at) * 1000)::bigint as beat_age_ms
    from lives l join beats b using (life) order by life";

/// A new life.
#[derive(Clone, Debug)]
pub struct NewLife {
    /// The display name of the machine.
    pub node: String,
    /// Host and port of its cluster listener, as other members reach it.
    pub address: String,
    /// Processors of the machine.
    pub cores: i32,
}

/// Fences a writing transaction, as its first statement: until the transaction ends, no process can end this life.
///
/// # Errors
/// [`Error::NotOwner`] when this life is over; other errors when the database cannot answer.
pub(crate) async fn fence(db: &mut PgConnection, life: LifeId) -> Result<()> {
    sqlx::query("select hotline_fence($1)").bind(life).execute(db).await?;
    Ok(())
}

/// SQL that begins a fenced writing transaction in one round trip.
pub(crate) fn begin_fenced(life: LifeId) -> String {
    format!("begin read write; select hotline_fence({life})")
}

/// Refuses to start when the clock is too far from the database's.
///
/// # Errors
/// [`Error::ClockDifference`] when it is; other errors when the database cannot answer.
pub async fn check_clock(db: &PgPool) -> Result<()> {
    let before = Utc::now();
    let database_time: DateTime<Utc> =
        with_timeout(sqlx::query_scalar("select clock_timestamp()").fetch_one(db)).await?;
    let difference = clock_difference(before, database_time, Utc::now());
    if difference > CLOCK_ERROR_MAX {
        return Err(Error::ClockDifference { difference, maximum: CLOCK_ERROR_MAX });
    }
    Ok(())
}

/// The minimum difference of two clocks, when one was read between two readings of the other.
fn clock_difference(before: DateTime<Utc>, database_time: DateTime<Utc>, after: DateTime<Utc>) -> Duration {
    let difference = (before - database_time).max(database_time - after).max(TimeDelta::zero());
    difference.to_std().unwrap_or_default()
}

/// Begins a life and claims the database for the cluster: a process without a cluster that still writes to it loses its
/// ownership.
///
/// # Errors
/// [`Error::IncompatibleMember`] when a living member and this release do not understand each other; other errors when
/// the database cannot answer.
pub async fn begin(db: &PgPool, new: &NewLife) -> Result<LifeId> {
    let result = with_timeout(async {
        let mut transaction = db.begin().await?;
        // The row is locked until the commit, so of two lives that begin at once, one sees the other.
        let epoch: i64 = sqlx::query_scalar("update ownership set epoch = epoch + 1 returning epoch")
            .fetch_one(&mut *transaction)
            .await?;
        let find_incompatible = "select node, speaks from lives join beats using (life)
            where abs(speaks - $1) > $2 and at > clock_timestamp() - make_interval(secs => $3) order by life limit 1";
        let incompatible: Option<(String, i32)> = sqlx::query_as(find_incompatible)
            .bind(PROTOCOL_VERSION)
            .bind(VERSION_DIFFERENCE_MAX)
            .bind(INCOMPATIBLE_BEAT_AGE_MAX.as_secs_f64())
            .fetch_optional(&mut *transaction)
            .await?;
        if let Some((node, version)) = incompatible {
            return Ok(Err(Error::IncompatibleMember { node, version, own_version: PROTOCOL_VERSION }));
        }
        // The life takes no slots before it listens.
        let life: LifeId = sqlx::query_scalar(
            "insert into lives (node, address, speaks, draining) values ($1, $2, $3, true) returning life",
        )
        .bind(&new.node)
        .bind(&new.address)
        .bind(PROTOCOL_VERSION)
        .fetch_one(&mut *transaction)
        .await?;
        sqlx::query("insert into beats (life, cores) values ($1, $2)")
            .bind(life)
            .bind(new.cores.max(1))
            .execute(&mut *transaction)
            .await?;
        // The row `cluster` keeps the epoch of the last write after the life's row is deleted.
        let upsert = "insert into journal_watermark (journal, seq, epoch) values ($1, 0, $3), ($2, 0, $3)
            on conflict (journal) do update set epoch = excluded.epoch";
        sqlx::query(upsert).bind(journal_of(life)).bind("cluster").bind(epoch).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(Ok(life))
    });
    result.await?
}

/// The journal id of a life, which has a watermark but no journal. The watermark prevents a transaction whose commit
/// reply was lost from being applied twice.
pub(crate) fn journal_of(life: LifeId) -> String {
    format!("life {life}")
}

/// Sends a heartbeat. Returns when it was sent: the lease counts from there. `committed` is the newest entry of this
/// life that the database had committed before the call.
///
/// # Errors
/// [`Error::NotOwner`] when this life is over, [`Error::LostCommits`] when the database no longer has that entry;
/// other errors when the database cannot answer.
pub async fn beat(db: &PgPool, life: LifeId, committed: Seq) -> Result<Moment> {
    let sent_at = Moment::now();
    // The lock orders the heartbeat either before or after the end of the life.
    let statement = "with alive as (select life from lives where life = $1 for key share)
        update beats b set at = clock_timestamp() from alive where b.life = alive.life
        returning (select seq from journal_watermark where journal = $2)";
    let query = sqlx::query_scalar(statement).bind(life).bind(journal_of(life));
    let row: Option<Option<i64>> = with_timeout(query.fetch_optional(db)).await?;
    let watermark = row.ok_or(Error::NotOwner)?.and_then(|seq| u64::try_from(seq).ok()).unwrap_or(0);
    if watermark < committed {
        return Err(Error::LostCommits { watermark, committed });
    }
    Ok(sent_at)
}

/// Every life with its last heartbeat.
pub async fn all(db: &PgPool) -> Result<Vec<LifeRow>> {
    with_timeout(sqlx::query_as(SELECT_LIVES).fetch_all(db)).await
}

/// Deletes completed seals older than a minute.
pub async fn forget_seals(db: &PgPool) -> Result<()> {
    let statement = "delete from seals where done and sealed_at < now() - interval '1 minute'";
    with_timeout(sqlx::query(statement).execute(db)).await.map(drop)
}

/// Marks a life as ready to take slots, once it listens.
pub async fn join(db: &PgPool, life: LifeId) -> Result<()> {
    let statement = "update lives set draining = false where life = $1";
    with_timeout(sqlx::query(statement).bind(life).execute(db)).await.map(drop)
}

/// Marks a life as draining: it gives its slots away and takes none. Returns whether the life exists.
pub async fn drain(db: &PgPool, life: LifeId) -> Result<bool> {
    let statement = "update lives set draining = true where life = $1";
    Ok(with_timeout(sqlx::query(statement).bind(life).execute(db)).await?.rows_affected() == 1)
}

/// Ends this life. Slots that it still has become unassigned.
///
/// # Errors
/// When the database cannot answer; other members then seal it like one that died.
pub async fn leave(db: &PgPool, life: LifeId) -> Result<()> {
    let mut attempts = 1;
    loop {
        match try_leave(db, life).await {
            // Other members hand slots over concurrently, so PostgreSQL may abort this transaction in a deadlock.
            Err(Error::Unavailable(_)) if attempts < LEAVE_ATTEMPTS_MAX => attempts += 1,
            result => return result,
        }
        tokio::time::sleep(LEAVE_PAUSE).await;
    }
}

async fn try_leave(db: &PgPool, life: LifeId) -> Result<()> {
    with_timeout(async {
        let mut transaction = begin_transaction(db, Some(begin_fenced(life)), ()).await?.0;
        for statement in [
            // Lock order of all transactions: the life's row before its slots' rows.
            "select life from lives where life = $1 for update",
            "update slots set life = null, next = null where life = $1",
            "update slots set next = null where next = $1",
            // Another life inherits its unfinished seals; if there is none, a later one adopts them.
            "update seals set heir = other.life from
                (select min(life) as life from lives where life <> $1 and not draining) other
                where heir = $1 and not done and other.life is not null",
            "delete from beats where life = $1",
            "delete from lives where life = $1",
        ] {
            sqlx::query(statement).bind(life).execute(&mut *transaction).await?;
        }
        sqlx::query("delete from journal_watermark where journal = $1")
            .bind(journal_of(life))
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_error_excludes_the_round_trip_to_the_server() {
        let at = |ms: i64| DateTime::UNIX_EPOCH + TimeDelta::milliseconds(ms);
        for (before, database_time, after, difference_ms) in [
            (0, 5, 10, 0),
            (0, 0, 0, 0),
            (1000, 400, 1010, 600),
            (1000, 1700, 1010, 690),
            (0, 3_600_000, 10, 3_599_990),
        ] {
            assert_eq!(
                clock_difference(at(before), at(database_time), at(after)),
                Duration::from_millis(difference_ms),
                "{before} {database_time} {after}"
            );
        }
    }
}
