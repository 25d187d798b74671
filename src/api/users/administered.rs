//! A company goes on to be administered: none of its own people takes that from the last one who does. An administrator
//! of the installation may, since they can give it back; an integration touches nobody who does.

use hotline_persistence::tables::people::sessions::Signed;
use hotline_persistence::tables::profiles;
use hotline_persistence::{CompanyId, UserId};
use serde_json::json;
use sqlx::PgExecutor;

use crate::web::{ApiError, ApiResult, Caller};

/// Whether the caller could take the last administrator away and must not. Who does not administer changes nobody who does.
pub(super) fn binds(caller: &Caller) -> bool {
    caller.signed().is_some_and(is_bound)
}

/// Whether it is one of the company's own people, who administer it.
pub fn is_bound(signed: &Signed) -> bool {
    signed.administers && !signed.person().is_admin()
}

/// Refuses what was done in this transaction, which has locked the company's profiles before, if no user who is not switched
/// off would administer the company any more; or without this one.
///
/// # Errors
/// `409 ERR_API_CONFLICT`.
pub async fn check(db: impl PgExecutor<'_>, company: CompanyId, without: Option<UserId>) -> ApiResult<()> {
    if profiles::has_administrator(db, company, without).await? {
        return Ok(());
    }
    let details = json!({"state": "last", "reason": "last_administrator"});
    Err(ApiError::conflict("the company must keep at least one active administrator", details))
}
