//! Prevents privilege escalation. A person who does not administer the company can neither give a user more rights than
//! they have themselves, nor change a user who has more: otherwise the permission to change users would grant every
//! right. An integration has exactly the permissions of its token.

use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::profiles::ProfileRow;
use hotline_persistence::tables::users::User;
use hotline_persistence::{ProfileId, UserId};

use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller};

/// Checks that the caller may change or remove this user.
///
/// # Errors
/// `403 ERR_API_FORBIDDEN_SCOPE` when the user has more rights. A missing user is not an error here; other code reports
/// it.
pub(super) async fn check(caller: &Caller, app: &App, id: UserId) -> ApiResult<()> {
    if is_free(caller) {
        return Ok(());
    }
    let user: Option<User> = table::find(app.db(caller.company), caller.company, id).await?;
    match user.and_then(|user| user.profile) {
        Some(profile) => check_profile(caller, app, profile.id).await,
        None => Ok(()),
    }
}

/// Checks that the caller may assign the given profile.
///
/// # Errors
/// As for [`check`].
pub(super) async fn check_given(caller: &Caller, app: &App, columns: &Columns) -> ApiResult<()> {
    match columns.id("profileId") {
        Some(profile) if !is_free(caller) => check_profile(caller, app, ProfileId::new(profile)).await,
        _ => Ok(()),
    }
}

fn is_free(caller: &Caller) -> bool {
    caller.signed().is_none_or(|signed| signed.administers)
}

async fn check_profile(caller: &Caller, app: &App, id: ProfileId) -> ApiResult<()> {
    let Some(signed) = caller.signed() else { return Ok(()) };
    let row: Option<ProfileRow> = table::find(app.db(caller.company), caller.company, id).await?;
    let Some(row) = row else { return Ok(()) };
    let own = &signed.permissions.0;
    let is_more = row.administers
        || row.sees_all_cards && !signed.sees_all_cards
        || !row.permissions.0.iter().all(|(module, methods)| {
            methods.is_empty() || own.get(module).is_some_and(|permitted| permitted.is_superset(methods))
        });
    if is_more { Err(ApiError::administrators_only()) } else { Ok(()) }
}
