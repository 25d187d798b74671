//! Large results of the database: limits how many are in memory at a time, be it as rows or as responses.
//!
//! A page of long texts takes several MiB as rows, as much again once the rows are decoded, and again as a response. So
//! a large result waits for a permit before its remaining rows are read, and its request holds this permit until the
//! response is built ([`until_built`]). A request that waits for this permit already holds a connection's permit. So a
//! request that has the large permit takes connections without a connection's permit: otherwise both could wait for
//! each other.

use std::cell::Cell;
use std::sync::LazyLock;

use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use sqlx::postgres::{PgQueryResult, PgRow};
use sqlx::{Either, Row};

use crate::CompanyId;
use crate::error::STATEMENT_TIME_MAX;
use crate::limits::{KeyedPermit, KeyedPermits, PermitLimits};

/// Maximum bytes of a result that needs no permit: nearly every page of a list is smaller.
const SMALL_BYTES_MAX: usize = 512 << 10;

/// Maximum large results that are in memory at a time, in total and for one company.
const LARGE_MAX: usize = 2;
const COMPANY_LARGE_MAX: usize = 1;

/// Maximum large results of a company that wait: more than it has connections at a time, so that none is refused here.
const COMPANY_WAITING_MAX: usize = 64;

static PERMITS: LazyLock<KeyedPermits<CompanyId>> = LazyLock::new(|| {
    let limits = PermitLimits::new(LARGE_MAX, COMPANY_LARGE_MAX);
    KeyedPermits::new(limits.wait(COMPANY_WAITING_MAX, STATEMENT_TIME_MAX))
});

tokio::task_local! {
    /// The permit of the current request.
    static REQUEST_PERMIT: RequestPermit;
}

#[derive(Default)]
struct RequestPermit {
    /// Whether a result of the request waits for the permit or has it. The request's other results take none: they
    /// would wait for a permit that their own request holds.
    is_requested: Cell<bool>,
    permit: Cell<Option<KeyedPermit<CompanyId>>>,
}

/// Runs a request until its response is built. If it has a large result, it holds the permit until then.
pub async fn until_built<F: Future>(request: F) -> F::Output {
    REQUEST_PERMIT.scope(RequestPermit::default(), request).await
}

/// Whether the current request holds a permit.
pub(crate) fn has_permit() -> bool {
    let has_permit = |request: &RequestPermit| {
        let permit = request.permit.take();
        let is_present = permit.is_some();
        request.permit.set(permit);
        is_present
    };
    REQUEST_PERMIT.try_with(has_permit).unwrap_or_default()
}

/// Whether a large result must wait for a permit: the first one of a request, which this call marks, and each one
/// outside a request.
fn must_wait() -> bool {
    REQUEST_PERMIT.try_with(|request| !request.is_requested.replace(true)).unwrap_or(true)
}

/// Reads a result, and waits for a permit once its rows exceed [`SMALL_BYTES_MAX`].
pub(crate) async fn collect<T>(
    company: Option<CompanyId>,
    mut results: BoxStream<'_, sqlx::Result<T>>,
    row_of: fn(&T) -> Option<&PgRow>,
) -> sqlx::Result<Vec<T>> {
    let (mut all, mut bytes, mut permit, mut is_large) = (Vec::new(), 0, None, false);
    while let Some(result) = results.try_next().await? {
        bytes += row_of(&result).map_or(0, bytes_of);
        all.push(result);
        if let Some(company) = company.filter(|_| !is_large && bytes > SMALL_BYTES_MAX) {
            is_large = true;
            if must_wait() {
                permit = Some(PERMITS.acquire(company).await?);
            }
        }
    }
    if let Some(permit) = permit {
        store_permit(permit);
    }
    Ok(all)
}

/// Waits for a permit once a result that several statements read exceeds [`SMALL_BYTES_MAX`]: each of them alone may be
/// small.
pub(crate) async fn hold(company: CompanyId, bytes: usize) -> sqlx::Result<()> {
    if bytes > SMALL_BYTES_MAX && must_wait() {
        store_permit(PERMITS.acquire(company).await?);
    }
    Ok(())
}

/// The `row_of` of results that are rows.
pub(crate) fn as_row(row: &PgRow) -> Option<&PgRow> {
    Some(row)
}

/// The `row_of` of results that are rows or counts of affected rows.
pub(crate) fn row_in(result: &Either<PgQueryResult, PgRow>) -> Option<&PgRow> {
    result.as_ref().right()
}

/// Stores the permit in the current request; outside a request, releases it.
fn store_permit(permit: KeyedPermit<CompanyId>) {
    let mut permit = Some(permit);
    let _ = REQUEST_PERMIT.try_with(|request| request.permit.set(permit.take()));
}

/// The size of a row as received.
fn bytes_of(row: &PgRow) -> usize {
    let column = |index: usize| row.try_get_raw(index).ok().and_then(|value| value.as_bytes().ok().map(<[u8]>::len));
    (0..row.len()).filter_map(column).sum()
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A failed expectation fails the test.
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_request_holds_one_permit_until_its_response_is_built() {
        // No other test uses these companies.
        let (company, other) = (CompanyId::new(-1), CompanyId::new(-2));
        let acquire = |company| PERMITS.acquire(company);
        until_built(async {
            assert!(must_wait() && !must_wait(), "only the first result of a request waits");
            assert!(!has_permit());
            store_permit(acquire(company).await.expect("a permit"));
            assert!(has_permit() && has_permit());
            assert!(acquire(company).now_or_never().is_none(), "the response is not built yet");
            assert!(
                acquire(other).now_or_never().is_some_and(|permit| permit.is_ok()),
                "another company has its own permit"
            );
        })
        .await;
        assert!(acquire(company).now_or_never().is_some_and(|permit| permit.is_ok()), "the response is built");
        store_permit(acquire(company).await.expect("a permit"));
        assert!(
            acquire(company).now_or_never().is_some_and(|permit| permit.is_ok()),
            "outside a request it is released"
        );
        assert!(!has_permit() && must_wait() && must_wait());
    }
}
