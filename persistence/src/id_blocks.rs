//! Ids of live rows, assigned without a database query from blocks reserved ahead.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use sqlx::PgPool;

use crate::error::with_timeout;
use crate::{Database, Error, EventId, MessageId, Result, ScheduleId, TicketId};

/// Ids per block: enough for an hour without the database, at the highest rate measured on two cores, rounded up. Even
/// if every restart loses a block, ids stay below 2^53, which every JSON reader can represent, for a hundred million
/// restarts.
const BLOCK_IDS: i64 = 50_000_000;

/// The blocks of every kind of live row. Cheap to clone.
#[derive(Clone, Debug)]
pub struct IdBlocks {
    inner: Arc<[Block; 4]>,
    owner: BlockOwner,
}

/// The owner of the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockOwner {
    /// The single writer, under its epoch: its blocks are contiguous.
    SingleWriter { epoch: i64 },
    /// One of many writers: blocks of others lie between its own.
    Member,
}

/// The reserved ids of one kind, `next..end`.
#[derive(Debug)]
struct Block {
    kind: &'static str,
    next: AtomicI64,
    end: AtomicI64,
    /// Number of threads that are replacing this block.
    renewals: AtomicUsize,
}

impl IdBlocks {
    /// Reserves a block of each kind.
    ///
    /// Only the database's single writer may call this, under its `epoch` and after recovery. Reserved ids that an
    /// earlier process had not used when it was killed stay unused.
    pub async fn reserve(db: &PgPool, epoch: i64) -> Result<Self> {
        let mut blocks = Vec::new();
        for (kind, highest_id_query) in [
            (
                "ticket",
                Some(
                    "select max(x.id) from companies c, lateral (select id from tickets where company_id = c.id order by id desc limit 1) x",
                ),
            ),
            (
                "message",
                Some(
                    "select max(x.id) from companies c, lateral (select id from messages where company_id = c.id order by id desc limit 1) x",
                ),
            ),
            // Finding the highest id would read all events.
            ("event", None),
            (
                "schedule",
                Some(
                    "select max(x.id) from companies c, lateral (select id from schedules where company_id = c.id order by id desc limit 1) x",
                ),
            ),
        ] {
            let highest_id: Option<i64> = match highest_id_query {
                Some(query) => {
                    let stored: Option<i64> = sqlx::query_scalar(query).fetch_one(db).await?;
                    let rejected: Option<i64> =
                        sqlx::query_scalar("select max(row_id) from rejected_changes where kind = $1")
                            .bind(kind)
                            .fetch_one(db)
                            .await?;
                    Some(stored.unwrap_or(0).max(rejected.unwrap_or(0)))
                }
                None => None,
            };
            let end: i64 = sqlx::query_scalar(
                // Never below `next`: the newest records may have been deleted, and events, jobs and clients still name
                // them by their ids.
                "update id_blocks set next = greatest($2::bigint + 1, next) + $3 where kind = $1 returning next",
            )
            .bind(kind)
            .bind(highest_id)
            .bind(BLOCK_IDS)
            .fetch_one(db)
            .await?;
            blocks.push(Block::new(kind, end - BLOCK_IDS, end));
        }
        match <[Block; 4]>::try_from(blocks) {
            Ok(blocks) => Ok(Self { inner: Arc::new(blocks), owner: BlockOwner::SingleWriter { epoch } }),
            Err(_) => Err(Error::Unavailable("id blocks are missing".to_owned())),
        }
    }

    /// Blocks without a database, for benchmarks and unit tests of upper layers.
    pub fn unbacked() -> Self {
        let block = |kind| Block::new(kind, 1, i64::MAX);
        Self {
            inner: Arc::new([block("ticket"), block("message"), block("event"), block("schedule")]),
            owner: BlockOwner::SingleWriter { epoch: 0 },
        }
    }

    /// Blocks of a cluster member: empty until [`IdBlocks::renew`] is called.
    pub fn of_member() -> Self {
        let block = |kind| Block::new(kind, 0, 0);
        let blocks = [block("ticket"), block("message"), block("event"), block("schedule")];
        Self { inner: Arc::new(blocks), owner: BlockOwner::Member }
    }

    /// Reserves a fresh block of each kind, above every id assigned so far. Call it before this process serves another
    /// slot, so that ids increase within each of the slot's conversations.
    ///
    /// # Errors
    /// When the database cannot answer; then some blocks may be fresh and the others unchanged.
    pub async fn renew(&self, db: impl Database<'_>) -> Result<()> {
        for block in self.inner.iter() {
            block.renew(db).await?;
        }
        Ok(())
    }

    /// A new ticket id.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the block is used up and the database has been down too long to reserve another.
    pub fn ticket(&self) -> Result<TicketId> {
        self.inner[0].take_id().map(TicketId::new)
    }

    /// A new message id, above every one assigned before.
    ///
    /// # Errors
    /// As [`IdBlocks::ticket`].
    pub fn message(&self) -> Result<MessageId> {
        self.inner[1].take_id().map(MessageId::new)
    }

    /// A new event id, above every one assigned before.
    ///
    /// # Errors
    /// As [`IdBlocks::ticket`].
    pub fn event(&self) -> Result<EventId> {
        self.inner[2].take_id().map(EventId::new)
    }

    /// A new id of a scheduled message.
    ///
    /// # Errors
    /// As [`IdBlocks::ticket`].
    pub fn schedule(&self) -> Result<ScheduleId> {
        self.inner[3].take_id().map(ScheduleId::new)
    }

    /// Reserves another block of each kind whose block is half used. Call it periodically.
    ///
    /// # Errors
    /// When the database cannot answer; the current blocks stay in use.
    pub async fn refill(&self, db: impl Database<'_>) -> Result<()> {
        for block in self.inner.iter() {
            let end = block.end.load(Ordering::Acquire);
            if end - block.next.load(Ordering::Acquire) < BLOCK_IDS / 2 {
                if self.owner == BlockOwner::Member {
                    block.renew(db).await?;
                    continue;
                }
                // The single writer's blocks are contiguous: the new one starts where this one ends.
                let end: i64 = with_timeout(
                    sqlx::query_scalar(
                        "update id_blocks set next = greatest(next, $2) + $3 where kind = $1 returning next",
                    )
                    .bind(block.kind)
                    .bind(end)
                    .bind(BLOCK_IDS)
                    .fetch_one(db),
                )
                .await?;
                block.end.store(end, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Gives unused ids back to the table. Call it at a clean shutdown, after the last flush.
    ///
    /// # Errors
    /// When the database cannot answer; then the ids are never used.
    pub async fn give_back(&self, db: &PgPool) -> Result<()> {
        let BlockOwner::SingleWriter { epoch } = self.owner else { return Ok(()) };
        for block in self.inner.iter() {
            with_timeout(
                // Changes nothing once a later owner, with its own blocks, has taken a new epoch.
                sqlx::query("update id_blocks set next = $2 from ownership where kind = $1 and epoch = $3")
                    .bind(block.kind)
                    .bind(block.next.load(Ordering::Acquire))
                    .bind(epoch)
                    .execute(db),
            )
            .await?;
        }
        Ok(())
    }
}

impl Block {
    fn new(kind: &'static str, next: i64, end: i64) -> Self {
        Self { kind, next: next.into(), end: end.into(), renewals: 0.into() }
    }

    fn take_id(&self) -> Result<i64> {
        let mut end = self.end.load(Ordering::Acquire);
        loop {
            let id =
                self.next.fetch_update(Ordering::AcqRel, Ordering::Acquire, |next| (next < end).then_some(next + 1));
            if let Ok(id) = id {
                return Ok(id);
            }
            // A renewed block's start is set first, its end a moment later. Check in this order: if no renewal is in
            // progress, `end` is up to date.
            let is_being_renewed = self.renewals.load(Ordering::Acquire) > 0;
            let previous_end = std::mem::replace(&mut end, self.end.load(Ordering::Acquire));
            if end == previous_end && !is_being_renewed {
                return Err(Error::Unavailable(format!("no {} ids left", self.kind)));
            }
            std::thread::yield_now();
        }
    }

    async fn renew(&self, db: impl Database<'_>) -> Result<()> {
        let statement = "update id_blocks set next = next + $2 where kind = $1 returning next";
        let end: i64 =
            with_timeout(sqlx::query_scalar(statement).bind(self.kind).bind(BLOCK_IDS).fetch_one(db)).await?;
        self.switch_to(end - BLOCK_IDS, end);
        Ok(())
    }

    /// Switches to another block. `next` is set before `end`: in between there are no ids, rather than ids of other
    /// processes.
    fn switch_to(&self, next: i64, end: i64) {
        self.renewals.fetch_add(1, Ordering::AcqRel);
        self.next.fetch_max(next, Ordering::AcqRel);
        self.end.fetch_max(end, Ordering::AcqRel);
        self.renewals.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_renewed_block_assigns_only_its_own_ids() {
        // Large enough that no block is used up, however late the next one arrives.
        const LENGTH: i64 = 1_000_000_000;
        let starts = [0, 5 * LENGTH, 9 * LENGTH];
        let block = Block::new("ticket", 0, LENGTH);
        let ids: Vec<i64> = std::thread::scope(|scope| {
            let take_until_the_last_block = || {
                let mut ids = Vec::new();
                while ids.last().is_none_or(|id| *id < starts[2]) {
                    ids.push(block.take_id().expect("an id is available at any time"));
                    std::thread::yield_now();
                }
                ids
            };
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(take_until_the_last_block)).collect();
            for start in &starts[1..] {
                std::thread::yield_now();
                block.switch_to(*start, start + LENGTH);
            }
            threads.into_iter().flat_map(|thread| thread.join().expect("no thread panics")).collect()
        });
        let is_reserved = |id: i64| starts.iter().any(|start| (*start..start + LENGTH).contains(&id));
        assert!(ids.iter().all(|id| is_reserved(*id)), "an id is outside the blocks");
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "an id was assigned twice");
        let empty = Block::new("ticket", 0, 0);
        assert!(empty.take_id().is_err());
    }
}
