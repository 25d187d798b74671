//! Changes of plain records that actors use in decisions: queues and their members, users, wrap-up types, global
//! variables.

use futures_util::TryFutureExt;
use hotline_persistence::CompanyId;

use crate::app::App;
use crate::web::ApiResult;

/// Runs such a change, and returns once every conversation uses it: the next request cannot see the old directory.
///
/// # Errors
/// Any error of the change.
pub fn changed<T>(
    app: &App,
    company: CompanyId,
    change: impl Future<Output = ApiResult<T>>,
) -> impl Future<Output = ApiResult<T>> {
    // No `async fn`: it would have room for the change twice, as its argument and as what it awaits.
    change.and_then(move |outcome| async move {
        app.engine.refresh(company).await;
        Ok(outcome)
    })
}
