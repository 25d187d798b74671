//! Large results of the database: few are in memory at a time, as rows and as what is made of them.
//!
//! A page of long texts is several MiB as rows, as much again once they are read, and again as an answer. The rest of a
//! result waits in its connection until its turn. A request keeps the turn until its answer is built ([`until_built`]), unless
//! it asks the database again: those who wait for a turn hold connections, and it might wait for one of them.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};

use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::CompanyId;
use crate::error::STATEMENT_TIME_MAX;
use crate::scheduler::{Permit, Scheduler, Shares, Weight};

/// Bytes of a result that need no turn: more than nearly every page of a list has.
const SMALL_BYTES: usize = 512 << 10;

/// Larger results that are in memory at a time, of all companies and of one.
const LARGE_MAX: usize = 2;
const COMPANY_LARGE_MAX: usize = 1;

/// Large results of a company that may wait: as many as it has statements, so none is refused for this.
const COMPANY_WAITING_MAX: usize = 64;

static TURNS: LazyLock<Arc<Scheduler>> = LazyLock::new(|| {
    Scheduler::new(Shares::of_one_kind(LARGE_MAX, COMPANY_LARGE_MAX, COMPANY_WAITING_MAX, STATEMENT_TIME_MAX))
});

tokio::task_local! {
    /// The turn of the request that runs.
    static TURN: Cell<Option<Permit>>;
}

/// Runs a request to its answer. The turn of a large result that it reads is kept until then.
pub async fn until_built<F: Future>(request: F) -> F::Output {
    TURN.scope(Cell::new(None), request).await
}

/// Gives back the turn of the request that runs, before it waits for a connection.
pub(crate) fn give_back() {
    // Without a request, each result has a turn of its own.
    let _ = TURN.try_with(Cell::take);
}

/// Reads the rows of a result, and waits for a turn once they are large.
pub(crate) async fn gather(
    company: Option<CompanyId>,
    mut rows: BoxStream<'_, sqlx::Result<PgRow>>,
) -> sqlx::Result<Vec<PgRow>> {
    let (mut all, mut bytes, mut turn) = (Vec::new(), 0, None);
    while let Some(row) = rows.try_next().await? {
        bytes += bytes_of(&row);
        all.push(row);
        if let Some(company) = company.filter(|_| turn.is_none() && bytes > SMALL_BYTES) {
            turn = Some(TURNS.permit(company, Weight::Light).await?);
        }
    }
    if let Some(turn) = turn {
        keep(turn);
    }
    Ok(all)
}

fn keep(turn: Permit) {
    let mut turn = Some(turn);
    let _ = TURN.try_with(|kept| kept.set(turn.take()));
}

/// The size of a row, as it came.
fn bytes_of(row: &PgRow) -> usize {
    let column = |index: usize| row.try_get_raw(index).ok().and_then(|value| value.as_bytes().ok().map(<[u8]>::len));
    (0..row.len()).filter_map(column).sum()
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_request_keeps_its_turn_until_its_answer_is_built_or_it_asks_again() {
        // No other test of this process has these.
        let (one, other) = (CompanyId::new(-1), CompanyId::new(-2));
        let turn = |company| TURNS.permit(company, Weight::Light);
        until_built(async {
            keep(turn(one).await.expect("a turn"));
            assert!(turn(one).now_or_never().is_none(), "it is being built");
            assert!(turn(other).now_or_never().is_some_and(|turn| turn.is_ok()), "another company has its own");
            give_back();
            assert!(turn(one).now_or_never().is_some_and(|turn| turn.is_ok()), "it asks the database again");
            keep(turn(one).await.expect("a turn"));
        })
        .await;
        assert!(turn(one).now_or_never().is_some_and(|turn| turn.is_ok()), "it is built");
        keep(turn(one).await.expect("a turn"));
        assert!(turn(one).now_or_never().is_some_and(|turn| turn.is_ok()), "nothing is kept without a request");
    }
}
