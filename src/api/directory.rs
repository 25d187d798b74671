//! Changes to the plain records in the directory, which actors use in decisions: queues and their members, users,
//! wrap-up types, global variables.

use futures_util::TryFutureExt;
use hotline_actors::{Conflict, Refusal};
use hotline_persistence::CompanyId;
use hotline_persistence::table::Links;
use sqlx::PgConnection;

use crate::app::App;
use crate::web::ApiResult;

/// Maximum number of a company's links between users and queues, and also of those between wrap-up types and queues.
/// Each link takes about 30 bytes in the memory of every process, and is read again at each change to the directory.
pub const LINKS_OF_COMPANY_MAX: i64 = 100_000;

/// Checks, after links were added, that a company does not exceed [`LINKS_OF_COMPANY_MAX`]. Other additions of the company
/// wait until the caller's transaction ends, so rows that the transaction changes must be locked before.
///
/// # Errors
/// `409` with the limit.
pub async fn check_links<A, B>(db: &mut PgConnection, company: CompanyId, links: &Links<A, B>) -> ApiResult<()> {
    if !links.has_at_least(db, company, LINKS_OF_COMPANY_MAX + 1).await? {
        return Ok(());
    }
    let state = "the company has reached its maximum number of links to queues";
    Err(Refusal::Conflict(Conflict::used_by(state, "limit", [("queueLink", LINKS_OF_COMPANY_MAX)])).into())
}

/// Runs a change to records that the directory contains, and then refreshes the directory, so that the next request
/// sees the change.
///
/// # Errors
/// Any error of the change.
pub fn refresh_after<T>(
    app: &App,
    company: CompanyId,
    change: impl Future<Output = ApiResult<T>>,
) -> impl Future<Output = ApiResult<T>> {
    // Not an `async fn`, because its future would contain the change twice, as the argument and as the awaited value.
    change.and_then(move |outcome| async move {
        app.engine.refresh(company).await;
        Ok(outcome)
    })
}
