//! Plain changes of what the actors decide by: queues and who works in them, users, wrap-up types, global variables.

use hotline_persistence::CompanyId;

use crate::app::App;
use crate::web::ApiResult;

/// Makes such a change, and answers once every conversation is decided by it: what is asked next cannot meet the
/// directory as it was before.
///
/// # Errors
/// Whatever the change says.
pub async fn changed<T>(app: &App, company: CompanyId, change: impl Future<Output = ApiResult<T>>) -> ApiResult<T> {
    let outcome = change.await?;
    app.engine.refresh(company).await;
    Ok(outcome)
}
