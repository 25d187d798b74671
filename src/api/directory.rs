//! Changes of plain records that actors use in decisions: queues and their members, users, wrap-up types, global
//! variables.

use hotline_persistence::CompanyId;

use crate::app::App;
use crate::web::ApiResult;

/// Runs such a change, and returns once every conversation uses it: the next request cannot see the old directory.
///
/// # Errors
/// Any error of the change.
pub async fn changed<T>(app: &App, company: CompanyId, change: impl Future<Output = ApiResult<T>>) -> ApiResult<T> {
    let outcome = change.await?;
    app.engine.refresh(company).await;
    Ok(outcome)
}
