//! Connections for the reads that are asked again and again, each kept by the thread that serves.
//!
//! What goes through here has one good plan, whatever the values: PostgreSQL makes it once for a connection, where a list
//! that is planned for its values spends most of its time on the plan. And it only reads, so it may be asked twice:
//! no connection is tried out before it is used or given back, which are two of a pool's three ways to the server and
//! back. One that has died meanwhile is noticed by the statement, which goes to a new one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use futures_util::future::BoxFuture;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection};

use crate::cluster::LifeId;
use crate::error::{is_outage, with_timeout};
use crate::pool::{PLAN_ONCE, READERS_MAX, STATEMENT_TIMEOUT, named, of_life, request_shares};
use crate::scheduler::{Scheduler, Shares, Weight};
use crate::{CompanyId, Result};

/// A statement that can be asked again. What it returns has a name, unlike the future of an async closure, so whoever waits
/// for it can change threads.
pub trait Statement<T>: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, sqlx::Result<T>> + Send + Sync {}

impl<T, F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, sqlx::Result<T>> + Send + Sync> Statement<T> for F {}

/// The connections of this process for such reads; none is open before it is needed.
#[derive(Debug)]
pub struct Readers {
    options: PgConnectOptions,
    shelves: Box<[Shelf]>,
}

/// Those of one thread, or of all where there are more threads than connections.
#[derive(Debug)]
struct Shelf {
    scheduler: Arc<Scheduler>,
    idle: Mutex<Vec<PgConnection>>,
}

impl Readers {
    /// Of this database.
    pub fn new(options: PgConnectOptions, life: Option<LifeId>) -> Self {
        let threads = available_parallelism().map_or(1, usize::from);
        let shelves = if threads > READERS_MAX as usize { 1 } else { threads };
        let all = READERS_MAX as usize / shelves;
        // All of them to one company: who comes next is before all but what is under way.
        let shares = Shares { all, company: all, ..request_shares() };
        let shelf = |_| Shelf { scheduler: Scheduler::new(shares), idle: Mutex::default() };
        let options = of_life(named(options).options([PLAN_ONCE, STATEMENT_TIMEOUT]), life);
        Self { options, shelves: (0..shelves).map(shelf).collect() }
    }

    /// Runs a company's statement, a second time on another connection if the first had died.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] when the database is away or slow, else what the statement says.
    pub async fn read<T>(&self, company: CompanyId, statement: impl Statement<T>) -> Result<T> {
        with_timeout(self.attempt(company, statement)).await
    }

    async fn attempt<T>(&self, company: CompanyId, statement: impl Statement<T>) -> sqlx::Result<T> {
        // A connection is driven by the thread that opened it: asked by another, each answer wakes both.
        let shelf = &self.shelves[number_of_this_thread() % self.shelves.len()];
        let _permit = shelf.scheduler.permit(company, Weight::Light).await?;
        // One that a statement has failed on, or was left in, is closed by being dropped.
        while let Some(mut kept) = shelf.take() {
            match statement(&mut kept).await {
                Ok(found) => {
                    shelf.keep(kept);
                    return Ok(found);
                }
                Err(error) if is_outage(&error) => tracing::debug!(%error, "a kept connection is no good any more"),
                Err(error) => return Err(error),
            }
        }
        let mut fresh = self.options.connect().await?;
        let found = statement(&mut fresh).await?;
        shelf.keep(fresh);
        Ok(found)
    }

    /// Closes what is open; nothing is read any more.
    pub fn close(&self) {
        for shelf in &self.shelves {
            shelf.scheduler.close();
            shelf.lock().clear();
        }
    }
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, Vec<PgConnection>> {
        // Nothing that can panic runs under the lock.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one that was used last, which is the warmest.
    fn take(&self) -> Option<PgConnection> {
        self.lock().pop()
    }

    fn keep(&self, connection: PgConnection) {
        self.lock().push(connection);
    }
}

/// Threads are numbered as they come to read, so that those that serve are spread evenly.
fn number_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static HERE: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    HERE.with(|here| *here)
}
