//! Lives in PostgreSQL: how one begins, shows that it is there, is ended by another, and what then becomes of its slots.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{FromRow, PgConnection, PgPool};

use super::{LifeId, Moment, Slot};
use crate::error::with_timeout;
use crate::pool::session_name;
use crate::{Error, Result};

/// Which messages of other processes this release understands.
pub const SPEAKS: i32 = 1;

/// By how much the clock of a machine may differ from the database's. No decision goes by it; times that are shown do.
pub const CLOCK_ERROR_MAX: Duration = Duration::from_secs(2);

/// How long a seal waits for a transaction of the life that is ended, before it ends the life's sessions.
const SEAL_LOCK_TIME_MAX: &str = "300ms";

/// How often a seal is tried: once to see who holds the lock, and again for sessions that came meanwhile.
const SEAL_TRIES: usize = 5;

/// How often a life is ended by itself, and the pause in between.
const LEAVE_TRIES: usize = 5;
const LEAVE_PAUSE: Duration = Duration::from_millis(100);

/// Moves and assignments are decided by one at a time: "hotlinep" in ASCII.
const PLANNER_LOCK: i64 = 0x68_6f_74_6c_69_6e_65_70;

/// A run of a process, as the tables have it.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct LifeRow {
    /// Which one.
    pub life: LifeId,
    /// What people call its machine.
    pub node: String,
    /// Host and port of its listener for the cluster.
    pub address: String,
    /// Which messages of others it understands.
    pub speaks: i32,
    /// Whether it gives its slots away, or does not take any yet.
    pub draining: bool,
    /// When it began.
    pub began_at: DateTime<Utc>,
    /// When it was heard of last.
    pub beat_at: DateTime<Utc>,
    /// How long ago that is, by the database's clock.
    pub beat_age_ms: i64,
    /// Processors of its machine.
    pub cores: i32,
}

/// Every life with its last beat.
const LIVES: &str = "select l.*, b.at as beat_at, b.cores,
        (extract(epoch from clock_timestamp() - b.at) * 1000)::bigint as beat_age_ms
    from lives l join beats b using (life) order by life";

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

/// A life that begins.
#[derive(Clone, Debug)]
pub struct NewLife {
    /// What people call the machine.
    pub node: String,
    /// Host and port of its listener for the cluster, as others reach it.
    pub address: String,
    /// Its processors.
    pub cores: i32,
}

/// The first statement of a transaction that writes: from here to its end nobody ends this life.
///
/// # Errors
/// [`Error::NotOwner`] when this life is over; when the database cannot answer.
pub(crate) async fn fence(db: &mut PgConnection, life: LifeId) -> Result<()> {
    sqlx::query("select hotline_fence($1)").bind(life).execute(db).await?;
    Ok(())
}

/// Begins a transaction that writes, fence included, with one way to the server and back.
pub(crate) fn begin_fenced(life: LifeId) -> String {
    format!("begin read write; select hotline_fence({life})")
}

/// Refuses a clock that is far from the database's.
///
/// # Errors
/// [`Error::ClockOff`]; when the database cannot answer.
pub async fn check_clock(db: &PgPool) -> Result<()> {
    let asked = Utc::now();
    let theirs: DateTime<Utc> = with_timeout(sqlx::query_scalar("select clock_timestamp()").fetch_one(db)).await?;
    let off_by = off_by(asked, theirs, Utc::now());
    if off_by > CLOCK_ERROR_MAX {
        return Err(Error::ClockOff { off_by, most: CLOCK_ERROR_MAX });
    }
    Ok(())
}

/// By how much two clocks differ at least, when one was read between two readings of the other.
fn off_by(before: DateTime<Utc>, theirs: DateTime<Utc>, after: DateTime<Utc>) -> Duration {
    let off = (before - theirs).max(theirs - after).max(TimeDelta::zero());
    off.to_std().unwrap_or_default()
}

/// Begins a life, and takes the database for the cluster: whoever was its one writer is none any more.
///
/// # Errors
/// When the database cannot answer.
pub async fn begin(db: &PgPool, new: &NewLife) -> Result<LifeId> {
    with_timeout(async {
        let mut transaction = db.begin().await?;
        let epoch: i64 = sqlx::query_scalar("update ownership set epoch = epoch + 1 returning epoch")
            .fetch_one(&mut *transaction)
            .await?;
        let life: LifeId =
            // It is given nothing before it listens.
            sqlx::query_scalar(
                "insert into lives (node, address, speaks, draining) values ($1, $2, $3, true) returning life",
            )
                .bind(&new.node)
                .bind(&new.address)
                .bind(SPEAKS)
                .fetch_one(&mut *transaction)
                .await?;
        sqlx::query("insert into beats (life, cores) values ($1, $2)")
            .bind(life)
            .bind(new.cores.max(1))
            .execute(&mut *transaction)
            .await?;
        // That somebody has written to the database since is remembered when the life's own row is gone.
        let watermarks = "insert into journal_watermark (journal, seq, epoch) values ($1, 0, $3), ($2, 0, $3)
            on conflict (journal) do update set epoch = excluded.epoch";
        sqlx::query(watermarks).bind(journal_of(life)).bind("cluster").bind(epoch).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(life)
    })
    .await
}

/// What stands in the place of a journal's id for a life: its watermark keeps a transaction whose commit was not heard of
/// from being written twice.
pub(crate) fn journal_of(life: LifeId) -> String {
    format!("life {life}")
}

/// Shows that this life is there. Answers when the beat was sent: the lease counts from there.
///
/// # Errors
/// [`Error::NotOwner`] when this life is over; when the database cannot answer.
pub async fn beat(db: &PgPool, life: LifeId) -> Result<Moment> {
    let sent = Moment::now();
    // The lock makes it one of those that came before the end, or one of those that did not.
    let beat = "with alive as (select life from lives where life = $1 for key share)
        update beats b set at = clock_timestamp() from alive where b.life = alive.life";
    let found = with_timeout(sqlx::query(beat).bind(life).execute(db)).await?;
    if found.rows_affected() == 1 { Ok(sent) } else { Err(Error::NotOwner) }
}

/// Every life, with its last beat.
///
/// # Errors
/// When the database cannot answer.
pub async fn all(db: &PgPool) -> Result<Vec<LifeRow>> {
    with_timeout(sqlx::query_as(LIVES).fetch_all(db)).await
}

/// Every slot, in the order of their numbers.
///
/// # Errors
/// When the database cannot answer.
pub async fn slots(db: &PgPool) -> Result<Vec<SlotRow>> {
    with_timeout(sqlx::query_as("select slot, life, next from slots order by slot").fetch_all(db)).await
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
    let mut transaction = db.begin_with(sqlx::AssertSqlSafe(begin_fenced(heir))).await?;
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

/// Gives the slots of a life that was ended to others, and says that this is done. To be called once the time is over in
/// which the life may still have answered. False: somebody else looks after them by now.
///
/// # Errors
/// [`Error::NotOwner`] when this life is over; when the database cannot answer.
pub async fn inherit(db: &PgPool, heir: LifeId, dead: LifeId) -> Result<bool> {
    with_timeout(async {
        let mut transaction = db.begin_with(sqlx::AssertSqlSafe(begin_fenced(heir))).await?;
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

/// Forgets lives that were ended more than a minute ago.
///
/// # Errors
/// When the database cannot answer.
pub async fn forget_seals(db: &PgPool) -> Result<()> {
    let old = "delete from seals where done and sealed_at < now() - interval '1 minute'";
    with_timeout(sqlx::query(old).execute(db)).await.map(drop)
}

/// Says that a life takes slots: it listens.
///
/// # Errors
/// When the database cannot answer.
pub async fn join(db: &PgPool, life: LifeId) -> Result<()> {
    let join = "update lives set draining = false where life = $1";
    with_timeout(sqlx::query(join).bind(life).execute(db)).await.map(drop)
}

/// Says that a life gives its slots away and takes none; answers whether there is such a life.
///
/// # Errors
/// When the database cannot answer.
pub async fn drain(db: &PgPool, life: LifeId) -> Result<bool> {
    let drain = "update lives set draining = true where life = $1";
    Ok(with_timeout(sqlx::query(drain).bind(life).execute(db)).await?.rows_affected() == 1)
}

/// Hands slots over to those that are to have them, after this life has closed them. Answers which: those that are to get
/// some and are over get none.
///
/// # Errors
/// [`Error::NotOwner`] when this life is over; when the database cannot answer: then nobody knows whether they are others'.
pub async fn hand_over(db: &PgPool, life: LifeId, slots: &[Slot]) -> Result<Vec<Slot>> {
    let numbers: Vec<i16> = slots.iter().map(|slot| slot.column()).collect();
    with_timeout(async {
        let mut transaction = db.begin_with(sqlx::AssertSqlSafe(begin_fenced(life))).await?;
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
        let mut transaction = db.begin_with(sqlx::AssertSqlSafe(begin_fenced(life))).await?;
        sqlx::query("update slots set next = null where slot = any($2) and life = $1")
            .bind(life)
            .bind(&numbers)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await
    })
    .await
}

/// Ends this life, which has no slots any more or leaves them to nobody.
///
/// # Errors
/// When the database cannot answer; others end it then, as one that has died.
pub async fn leave(db: &PgPool, life: LifeId) -> Result<()> {
    let mut tries = 1;
    loop {
        match try_leave(db, life).await {
            // Others hand slots over meanwhile, and PostgreSQL may end one of two that wait for each other.
            Err(Error::Unavailable(_)) if tries < LEAVE_TRIES => tries += 1,
            outcome => return outcome,
        }
        tokio::time::sleep(LEAVE_PAUSE).await;
    }
}

async fn try_leave(db: &PgPool, life: LifeId) -> Result<()> {
    with_timeout(async {
        let mut transaction = db.begin_with(sqlx::AssertSqlSafe(begin_fenced(life))).await?;
        for statement in [
            // First, as everybody does: who is to be given slots is held by its row before the slots' own are.
            "select life from lives where life = $1 for update",
            "update slots set life = null, next = null where life = $1",
            "update slots set next = null where next = $1",
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

/// Plans, if nobody else does at this moment: `plan` answers which slots nobody has are given to whom, and which are to
/// move to whom. Answers how many that were.
///
/// # Errors
/// [`Error::NotOwner`] when this life is over; when the database cannot answer.
pub async fn plan(
    db: &PgPool,
    life: LifeId,
    plan: impl FnOnce(&[LifeRow], &[SlotRow], &[SealRow]) -> Vec<(Slot, LifeId)> + Send,
) -> Result<usize> {
    with_timeout(async {
        let mut transaction = db.begin_with(sqlx::AssertSqlSafe(begin_fenced(life))).await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_off_by_what_the_way_to_the_server_does_not_explain() {
        let at = |ms: i64| DateTime::UNIX_EPOCH + TimeDelta::milliseconds(ms);
        for (before, theirs, after, off) in [
            (0, 5, 10, 0),
            (0, 0, 0, 0),
            (1000, 400, 1010, 600),
            (1000, 1700, 1010, 690),
            (0, 3_600_000, 10, 3_599_990),
        ] {
            assert_eq!(
                off_by(at(before), at(theirs), at(after)),
                Duration::from_millis(off),
                "{before} {theirs} {after}"
            );
        }
    }
}
