//! A company keeps at least one administrator: none of its own people can remove the last one. An administrator of the
//! installation can, since they can appoint another; an integration cannot remove any.

use hotline_persistence::tables::people::sessions::SignedInPerson;
use hotline_persistence::tables::profiles;
use hotline_persistence::{CompanyId, UserId};
use serde_json::json;
use sqlx::PgExecutor;

use crate::web::{ApiError, ApiResult, Caller};

/// Whether to check that the caller does not remove the company's last administrator: only if the caller is one of the
/// company's administrators. An administrator of the installation may remove the last one, and no one else can remove
/// administrators.
pub(super) fn must_keep_last(caller: &Caller) -> bool {
    caller.signed_in().is_some_and(is_company_administrator)
}

/// Whether the person is an administrator of the company, and not of the installation.
pub fn is_company_administrator(signed_in: &SignedInPerson) -> bool {
    signed_in.administers && !signed_in.person().is_admin()
}

/// Refuses the changes of this transaction, which has locked the company's profiles, if they leave the company without
/// an active administrator; the user `without` counts as removed.
///
/// # Errors
/// `409 ERR_API_CONFLICT`.
pub async fn check_remaining(db: impl PgExecutor<'_>, company: CompanyId, without: Option<UserId>) -> ApiResult<()> {
    if profiles::has_administrator(db, company, without).await? {
        return Ok(());
    }
    let details = json!({"state": "last", "reason": "last_administrator"});
    Err(ApiError::conflict("the company must keep at least one active administrator", details))
}
