//! The moments at which a fault is a useful test.

use nix::sys::signal::Signal;
use sqlx::AssertSqlSafe;
use tokio::sync::watch;

use crate::member::Member;
use crate::rig::Rig;
use crate::support::eventually;

/// What a member is doing when it is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PausePoint {
    /// It writes live changes.
    Flush,
    /// It writes a tag, for a caller who waits.
    PlainChange,
}

impl PausePoint {
    /// A table that nothing else writes to.
    fn table(self) -> &'static str {
        match self {
            Self::Flush => "ticket_events",
            Self::PlainChange => "tags",
        }
    }
}

impl Rig {
    /// Pauses a member in the middle of a transaction, which holds the lock on its life and is about to write its
    /// rows. The load must request such transactions, or `ask` must. Returns the result of `ask`.
    pub async fn pause_during<A>(&self, member: usize, point: PausePoint, ask: impl FnOnce() -> A) -> A {
        let Member { name, .. } = &self.members[member];
        let statement = "select count(*) from pg_stat_activity a
            join lives l on a.application_name = 'hotline ' || l.life
            join pg_locks fence on fence.pid = a.pid and fence.relation = 'lives'::regclass
                and fence.mode = 'RowShareLock' and fence.granted
            join pg_locks written on written.pid = a.pid and written.relation = to_regclass($2)
                and written.mode = 'RowExclusiveLock' and written.granted = $3
            where l.node = $1 and (not $3 or a.wait_event = 'ClientRead')";
        // Once the lock is granted, the transaction waits for the member: its next statement, or the rows of a `COPY`.
        let has_writer = async |is_granted: bool| -> bool {
            let found = sqlx::query_scalar::<_, i64>(statement).bind(name).bind(point.table()).bind(is_granted);
            found.fetch_one(&self.db).await.expect("a count") > 0
        };
        // A writer of that table waits for this lock, so it cannot have finished when it is paused.
        let mut transaction = self.db.begin().await.expect("a transaction");
        let lock = AssertSqlSafe(format!("lock table {} in share mode", point.table()));
        sqlx::query(lock).execute(&mut *transaction).await.expect("a lock");
        let asking = ask();
        eventually("the member waits for the lock of the table", || has_writer(false)).await;
        self.members[member].signal(Signal::SIGSTOP);
        transaction.rollback().await.expect("the lock is released");
        eventually("the paused member has the lock of the table", || has_writer(true)).await;
        asking
    }

    /// Waits for a takeover. Returns the member that has ended another's life, and has not yet given its slots away.
    pub async fn heir(&self) -> usize {
        let statement = "select l.node from seals s join lives l on l.life = s.heir where not s.done";
        let (heir_sender, heir_receiver) = watch::channel(None);
        eventually("a member takes over", || async {
            let heir = sqlx::query_scalar::<_, String>(statement).fetch_optional(&self.db).await.expect("an answer");
            let is_found = heir.is_some();
            heir_sender.send_replace(heir);
            is_found
        })
        .await;
        let name = heir_receiver.borrow().clone().expect("a member");
        self.members.iter().position(|member| member.name == name).expect("a member")
    }

    /// Whether a member that is down has ended another's life, and given none of its slots away.
    pub async fn has_left_a_takeover(&self, member: usize) -> bool {
        assert!(!self.members[member].is_up(), "it may still finish the takeover");
        let statement = "select exists (select from seals s join lives l on l.life = s.heir
            where not s.done and l.node = $1)";
        let left = sqlx::query_scalar(statement).bind(&self.members[member].name);
        left.fetch_one(&self.db).await.expect("an answer")
    }
}
