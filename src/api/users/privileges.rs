//! Prevents privilege escalation: without these checks, the permission to change users would grant every right.
//!
//! A person who does not administer the company can neither give a user more rights than their own, nor change a user
//! who has more. No token administers the company, so an integration can neither change a protected field of an
//! administrator, nor make a user one.

use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::profiles::{self, ProfileRow};
use hotline_persistence::tables::users::{self, User};
use hotline_persistence::{CompanyId, ProfileId, UserId};
use sqlx::{PgConnection, PgExecutor};

use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller};

/// Checks that a person may change or remove this user; an integration is checked by [`check_integration`].
///
/// # Errors
/// `403 ERR_API_FORBIDDEN_SCOPE` when the user has more rights than the caller. A missing user is not an error here;
/// other code reports it.
pub(super) async fn check(caller: &Caller, app: &App, id: UserId) -> ApiResult<()> {
    if caller.signed_in().is_none_or(|person| person.administers) {
        return Ok(());
    }
    let user: Option<User> = table::find(app.db(caller.company), caller.company, id).await?;
    match user.and_then(|user| user.profile) {
        Some(profile) => check_profile(caller, app, profile.id).await,
        None => Ok(()),
    }
}

/// Repeats [`check`] in the transaction of the change, since the user may have got more rights in between. If the
/// caller's rights matter, the user's are locked until the end of the transaction.
///
/// # Errors
/// As [`check`].
pub(super) async fn check_in_transaction(caller: &Caller, db: &mut PgConnection, id: UserId) -> ApiResult<()> {
    let company = caller.company;
    if caller.signed_in().is_none_or(|person| person.administers) {
        return Ok(());
    }
    users::lock(&mut *db, company, id).await?;
    profiles::lock(&mut *db, company).await?;
    let user: Option<User> = table::find(&mut *db, company, id).await?;
    let Some(profile) = user.and_then(|user| user.profile) else { return Ok(()) };
    let row: Option<ProfileRow> = table::find(db, company, profile.id).await?;
    row.map_or(Ok(()), |row| check_rights(caller, &row))
}

/// Checks that the caller may assign the profile in the body. A new user without a profile in the body, and any user
/// with `null`, gets the agent profile. An integration's change of a user is checked by [`check_integration`].
///
/// # Errors
/// As [`check`].
pub(super) async fn check_assigned_profile(
    caller: &Caller,
    app: &App,
    columns: &Columns,
    is_new: bool,
) -> ApiResult<()> {
    let needs_check = match caller.signed_in() {
        Some(person) => !person.administers,
        None => is_new,
    };
    if !needs_check {
        return Ok(());
    }
    let new_profile = match columns.id("profileId") {
        Some(profile) => Some(ProfileId::new(profile)),
        None if is_new || columns.has("profileId") => {
            profiles::find_default(app.db(caller.company), caller.company).await?
        }
        None => None,
    };
    match new_profile {
        Some(profile) => check_profile(caller, app, profile).await,
        None => Ok(()),
    }
}

/// Checks that the caller may assign this profile, or change a user who has it.
async fn check_profile(caller: &Caller, app: &App, id: ProfileId) -> ApiResult<()> {
    let row: Option<ProfileRow> = table::find(app.db(caller.company), caller.company, id).await?;
    row.map_or(Ok(()), |row| check_rights(caller, &row))
}

/// Checks that the profile gives no more rights than the caller has.
fn check_rights(caller: &Caller, row: &ProfileRow) -> ApiResult<()> {
    let Some(person) = caller.signed_in() else {
        return if row.administers { Err(ApiError::administrators_protected()) } else { Ok(()) };
    };
    let own_permissions = &person.permissions.0;
    let has_more_rights = row.administers
        || row.sees_all_cards && !person.sees_all_cards
        || !row.permissions.0.iter().all(|(module, methods)| {
            methods.is_empty() || own_permissions.get(module).is_some_and(|permitted| permitted.is_superset(methods))
        });
    if has_more_rights { Err(ApiError::administrators_only()) } else { Ok(()) }
}

/// A change of a user by an integration.
pub(super) enum UserChange<'a> {
    /// Their membership ends.
    Removal,
    /// These columns change.
    Update(&'a Columns),
}

/// Checks that an integration neither removes an administrator nor makes a user one. It may change an administrator,
/// except the fields that affect sign-in or permissions: password, e-mail, profile and `active`. This locks the user
/// and the company's profiles until the end of the transaction.
///
/// # Errors
/// `403 ERR_API_FORBIDDEN_SCOPE`. A missing user is not an error here; other code reports it.
pub(super) async fn check_integration(
    db: &mut PgConnection,
    company: CompanyId,
    id: UserId,
    change: UserChange<'_>,
) -> ApiResult<()> {
    users::lock(&mut *db, company, id).await?;
    profiles::lock(&mut *db, company).await?;
    let user: Option<User> = table::find(&mut *db, company, id).await?;
    let Some(user) = user else { return Ok(()) };
    let current_profile = user.profile.as_ref().map(|profile| profile.id);
    let new_profile = match &change {
        UserChange::Update(columns) if columns.has("profileId") => match columns.id("profileId") {
            Some(profile) => Some(ProfileId::new(profile)),
            None => profiles::find_default(&mut *db, company).await?,
        },
        UserChange::Update(_) | UserChange::Removal => current_profile,
    };
    let is_protected_change = match change {
        UserChange::Removal => true,
        UserChange::Update(columns) => {
            let changes_email = users::changes_email(&mut *db, company, id, columns).await?;
            let will_be_active = !columns.is_false("active");
            let changes_active = columns.has("active") && will_be_active != user.active;
            columns.has("passwordHash") || changes_email || changes_active || new_profile != current_profile
        }
    };
    let is_refused = is_protected_change && is_administrator_profile(&mut *db, company, current_profile).await?
        || new_profile != current_profile && is_administrator_profile(&mut *db, company, new_profile).await?;
    if is_refused { Err(ApiError::administrators_protected()) } else { Ok(()) }
}

async fn is_administrator_profile(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    profile: Option<ProfileId>,
) -> ApiResult<bool> {
    let Some(profile) = profile else { return Ok(false) };
    let row: Option<ProfileRow> = table::find(db, company, profile).await?;
    Ok(row.is_some_and(|row| row.administers))
}
