//! Large results of the database: few are in memory at a time, as rows and as responses.
//!
//! A page of long texts is several MiB as rows, as much again once they are read, and again as a response. The rest of a
//! result waits in its connection until its turn. A request keeps the turn until its response is built ([`until_built`]).
//! Requests that wait for a turn have a permit for a connection each, so the one with the turn needs none: it would wait
//! for them.

use std::cell::Cell;
use std::sync::LazyLock;

use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use sqlx::postgres::{PgQueryResult, PgRow};
use sqlx::{Either, Row};

use crate::CompanyId;
use crate::error::STATEMENT_TIME_MAX;
use crate::limits::{KeyedPermit, KeyedPermits, PermitLimits};

/// Bytes of a result that need no turn: more than nearly every page of a list has.
const SMALL_BYTES: usize = 512 << 10;

/// Larger results that are in memory at a time, of all companies and of one.
const LARGE_MAX: usize = 2;
const COMPANY_LARGE_MAX: usize = 1;

/// Large results of a company that may wait: as many as it has statements, so none is refused for this.
const COMPANY_WAITING_MAX: usize = 64;

static TURNS: LazyLock<KeyedPermits<CompanyId>> = LazyLock::new(|| {
    let limits = PermitLimits::new(LARGE_MAX, COMPANY_LARGE_MAX);
    KeyedPermits::new(limits.wait(COMPANY_WAITING_MAX, STATEMENT_TIME_MAX))
});

tokio::task_local! {
    /// The turn of the current request.
    static REQUEST_TURN: Turn;
}

#[derive(Default)]
struct Turn {
    /// Whether one of its results waits for it or has it: others that are read at the same time would wait for their own
    /// request.
    is_requested: Cell<bool>,
    permit: Cell<Option<KeyedPermit<CompanyId>>>,
}

/// Runs a request until its response is built. It keeps the turn of a large result until then.
pub async fn until_built<F: Future>(request: F) -> F::Output {
    REQUEST_TURN.scope(Turn::default(), request).await
}

/// Whether the current request has a turn.
pub(crate) fn has_turn() -> bool {
    let has = |turn: &Turn| {
        let permit = turn.permit.take();
        let has = permit.is_some();
        turn.permit.set(permit);
        has
    };
    REQUEST_TURN.try_with(has).unwrap_or_default()
}

/// Whether a result must wait for a turn: without a request, each has one of its own.
fn must_wait() -> bool {
    REQUEST_TURN.try_with(|turn| !turn.is_requested.replace(true)).unwrap_or(true)
}

/// Reads a result, and waits for a turn once its rows are large.
pub(crate) async fn collect<T>(
    company: Option<CompanyId>,
    mut results: BoxStream<'_, sqlx::Result<T>>,
    row_of: fn(&T) -> Option<&PgRow>,
) -> sqlx::Result<Vec<T>> {
    let (mut all, mut bytes, mut turn, mut is_large) = (Vec::new(), 0, None, false);
    while let Some(result) = results.try_next().await? {
        bytes += row_of(&result).map_or(0, bytes_of);
        all.push(result);
        if let Some(company) = company.filter(|_| !is_large && bytes > SMALL_BYTES) {
            is_large = true;
            if must_wait() {
                turn = Some(TURNS.acquire(company).await?);
            }
        }
    }
    if let Some(turn) = turn {
        keep_turn(turn);
    }
    Ok(all)
}

/// A row is a result itself.
pub(crate) fn as_row(row: &PgRow) -> Option<&PgRow> {
    Some(row)
}

/// The row of a result, if it is one.
pub(crate) fn row_in(result: &Either<PgQueryResult, PgRow>) -> Option<&PgRow> {
    result.as_ref().right()
}

fn keep_turn(turn: KeyedPermit<CompanyId>) {
    let mut turn = Some(turn);
    let _ = REQUEST_TURN.try_with(|of_request| of_request.permit.set(turn.take()));
}

/// The size of a row as received.
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
    async fn a_request_has_one_turn_and_keeps_it_until_its_response_is_built() {
        // No other test of this process has these.
        let (one, other) = (CompanyId::new(-1), CompanyId::new(-2));
        let turn = |company| TURNS.acquire(company);
        until_built(async {
            assert!(must_wait() && !must_wait(), "its other results do not wait for the first");
            assert!(!has_turn());
            keep_turn(turn(one).await.expect("a turn"));
            assert!(has_turn() && has_turn());
            assert!(turn(one).now_or_never().is_none(), "it is being built");
            assert!(turn(other).now_or_never().is_some_and(|turn| turn.is_ok()), "another company has its own");
        })
        .await;
        assert!(turn(one).now_or_never().is_some_and(|turn| turn.is_ok()), "it is built");
        keep_turn(turn(one).await.expect("a turn"));
        assert!(turn(one).now_or_never().is_some_and(|turn| turn.is_ok()), "nothing is kept without a request");
        assert!(!has_turn() && must_wait() && must_wait());
    }
}
