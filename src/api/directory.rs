//! Changes of plain records that actors use in decisions: queues and their members, users, wrap-up types, global
//! variables.

use futures_util::TryFutureExt;
use hotline_persistence::CompanyId;

use crate::app::App;
use crate::web::ApiResult;

/// Runs such a change and then refreshes the directory, so that the next request sees the change.
///
/// # Errors
/// Any error of the change.
pub fn refresh_after<T>(
    app: &App,
    company: CompanyId,
    change: impl Future<Output = ApiResult<T>>,
) -> impl Future<Output = ApiResult<T>> {
    // No `async fn`: its future would contain the change twice, as the argument and as the awaited value.
    change.and_then(move |outcome| async move {
        app.engine.refresh(company).await;
        Ok(outcome)
    })
}
