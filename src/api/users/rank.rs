//! Prevents privilege escalation. A person who does not administer the company can neither give a user more rights than
//! they have themselves, nor change a user who has more: otherwise the permission to change users would grant every
//! right. An integration has exactly the permissions of its token, and none of them administers the company: it neither
//! touches who does, nor makes anybody one of them.

use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::profiles::{self, ProfileRow};
use hotline_persistence::tables::users::{self, User};
use hotline_persistence::{CompanyId, ProfileId, UserId};
use sqlx::{PgConnection, PgExecutor};

use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller};

/// Checks that a person may change or remove this user; an integration is checked by [`check_untouched`].
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

/// Whether the caller may give the profile that is given: an agent's, where none is given to somebody new, or `null` to
/// anybody. What an integration changes of a user who exists is checked by [`check_untouched`].
///
/// # Errors
/// As of [`check`].
pub(super) async fn check_given(caller: &Caller, app: &App, columns: &Columns, is_new: bool) -> ApiResult<()> {
    if caller.signed().is_some_and(|signed| signed.administers) || caller.signed().is_none() && !is_new {
        return Ok(());
    }
    let given = match columns.id("profileId") {
        Some(profile) => Some(ProfileId::new(profile)),
        None if is_new || columns.has("profileId") => profiles::agent(app.db(caller.company), caller.company).await?,
        None => None,
    };
    match given {
        Some(profile) => check_profile(caller, app, profile).await,
        None => Ok(()),
    }
}

fn is_free(caller: &Caller) -> bool {
    caller.signed().is_none_or(|signed| signed.administers)
}

async fn check_profile(caller: &Caller, app: &App, id: ProfileId) -> ApiResult<()> {
    let row: Option<ProfileRow> = table::find(app.db(caller.company), caller.company, id).await?;
    let Some(row) = row else { return Ok(()) };
    let Some(signed) = caller.signed() else {
        return if row.administers { Err(ApiError::administrators_protected()) } else { Ok(()) };
    };
    let own = &signed.permissions.0;
    let is_more = row.administers
        || row.sees_all_cards && !signed.sees_all_cards
        || !row.permissions.0.iter().all(|(module, methods)| {
            methods.is_empty() || own.get(module).is_some_and(|permitted| permitted.is_superset(methods))
        });
    if is_more { Err(ApiError::administrators_only()) } else { Ok(()) }
}

/// What an integration wants of a user.
pub(super) enum Wanted<'a> {
    /// Their membership ends.
    Removal,
    /// These columns change.
    Change(&'a Columns),
}

/// Checks that an integration does not touch who administers the company, and makes nobody one of them. What lets them in and
/// what they may do is theirs: password, e-mail, profile, and whether they are switched on. Nobody changes who administers
/// until the end of the transaction.
///
/// # Errors
/// `403 ERR_API_FORBIDDEN_SCOPE`. A missing user is not an error here; other code reports it.
pub(super) async fn check_untouched(
    db: &mut PgConnection,
    company: CompanyId,
    id: UserId,
    wanted: Wanted<'_>,
) -> ApiResult<()> {
    profiles::lock(&mut *db, company).await?;
    users::hold(&mut *db, company, id).await?;
    let user: Option<User> = table::find(&mut *db, company, id).await?;
    let Some(user) = user else { return Ok(()) };
    let own = user.profile.as_ref().map(|profile| profile.id);
    let given = match &wanted {
        Wanted::Change(columns) if columns.has("profileId") => match columns.id("profileId") {
            Some(profile) => Some(ProfileId::new(profile)),
            None => profiles::agent(&mut *db, company).await?,
        },
        Wanted::Change(_) | Wanted::Removal => own,
    };
    let is_touched = match wanted {
        Wanted::Removal => true,
        Wanted::Change(columns) => {
            let email = columns.text("email").is_some_and(|email| email.to_lowercase() != user.email.to_lowercase());
            let active = columns.has("active") && columns.is_false("active") == user.active;
            columns.has("passwordHash") || email || active || given != own
        }
    };
    let refused = is_touched && administers(&mut *db, company, own).await?
        || given != own && administers(&mut *db, company, given).await?;
    if refused { Err(ApiError::administrators_protected()) } else { Ok(()) }
}

async fn administers(db: impl PgExecutor<'_>, company: CompanyId, profile: Option<ProfileId>) -> ApiResult<bool> {
    let Some(profile) = profile else { return Ok(false) };
    let row: Option<ProfileRow> = table::find(db, company, profile).await?;
    Ok(row.is_some_and(|row| row.administers))
}
