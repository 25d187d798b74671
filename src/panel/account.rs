//! A person's own account.

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_actors::{FieldError, clock};
use hotline_persistence::password::Password;
use hotline_persistence::tables::people::sessions::{self, PersonSessionId, SignedInPerson};
use hotline_persistence::tables::people::{self, Changes, Language, PersonId, display_name, factors};
use hotline_persistence::{Error, PgConnection, Timestamp, totp};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::extractors::PanelSession;
use super::sign_in::PersonKind;
use super::values::TypedSecret;
use crate::api::directory::refresh_after;
use crate::app::App;
use crate::web::admission::passwords;
use crate::web::request::params::Span;
use crate::web::request::values::Name;
use crate::web::response::reply::{Confidential, HasSecrets};
use crate::web::{ApiError, ApiResult, Body, Fields, Filter, Input, Json, NoContent, Page, Params, PathId, Query};

/// The issuer that authenticator apps show beside the code.
const ISSUER: &str = "Hotline";

/// The signed-in person's account.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// A user or an administrator of the installation.
    pub kind: PersonKind,
    /// The user's or administrator's id.
    #[schema(example = 7)]
    pub id: i64,
    /// The person's name.
    #[schema(example = "Ana Souza")]
    pub name: String,
    /// E-mail address for signing in.
    #[schema(example = "ana@example.com")]
    pub email: String,
    /// The panel's language; `null` for the browser's.
    pub language: Option<Language>,
    /// Whether a second factor is enabled.
    #[schema(example = true)]
    pub second_factor: bool,
    /// Number of unused recovery codes; `null` without a second factor.
    #[schema(example = 10)]
    pub recovery_codes_left: Option<i32>,
    /// When it was created.
    pub created_at: Timestamp,
}

async fn load(app: &App, signed_in: &SignedInPerson) -> ApiResult<Account> {
    let (person, db) = (signed_in.person(), app.db(signed_in.company_id));
    let row = people::find(db, person).await?.ok_or_else(ApiError::signed_out)?;
    let unused_codes = factors::count_unused_codes(db, person).await?;
    Ok(Account {
        kind: PersonKind::of(person),
        id: person.id(),
        name: display_name(&row.name, &row.email).to_owned(),
        email: row.email,
        language: row.language,
        second_factor: unused_codes.is_some(),
        recovery_codes_left: unused_codes,
        created_at: row.created_at.into(),
    })
}

/// `GET /account`.
pub async fn show(session: PanelSession, app: Data<App>) -> ApiResult<Json<Account>> {
    Ok(Json::of(load(&app, &session.0).await?))
}

/// The body of `PUT /account`.
pub struct AccountChange(Changes);

impl Input for AccountChange {
    fn name() -> Cow<'static, str> {
        "AccountUpdate".into()
    }

    fn text() -> Option<String> {
        Some("Changes to the account.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let name = fields.non_null::<Name>("name").map(|name| name.0);
        let language = fields.patch::<Language>("language").into_option();
        Some(Self(Changes { name, language }))
    }
}

/// `PUT /account`.
pub async fn update(session: PanelSession, app: Data<App>, body: Body<AccountChange>) -> ApiResult<Json<Account>> {
    let signed_in = &session.0;
    let change = async {
        people::update(app.db(signed_in.company_id), signed_in.person(), body.0.0).await?;
        Ok(Json::of(load(&app, signed_in).await?))
    };
    match signed_in.person() {
        // Conversations show the name, which they take from the directory.
        PersonId::User(company, _) => refresh_after(&app, company, change).await,
        PersonId::Admin(_) => change.await,
    }
}

fn invalid(field: &str, reason: &str) -> ApiError {
    ApiError::validation(&[FieldError { field: field.to_owned(), reason: reason.to_owned() }])
}

/// Checks the person's own password, and returns the stored hash it matches. The error for a wrong password names
/// `field`.
async fn check_password(
    app: &App,
    panel: &super::Panel,
    signed_in: &SignedInPerson,
    password: TypedSecret,
    field: &str,
) -> ApiResult<Option<String>> {
    let person = signed_in.person();
    panel.limits.try_own_password(person)?;
    let row = people::find(app.db(signed_in.company_id), person).await?.ok_or_else(ApiError::signed_out)?;
    let matching_hashes = passwords::find_matching(password.0, vec![row.password_hash.clone()]).await?;
    if matching_hashes.is_empty() { Err(invalid(field, "is not your password")) } else { Ok(row.password_hash) }
}

/// Checks, in the transaction that makes a change, that the password and the session are still valid: since
/// [`check_password`], an administrator may have reset the password or ended the session. Locks the person.
async fn check_still_valid(
    db: &mut PgConnection,
    signed_in: &SignedInPerson,
    current_hash: Option<&str>,
) -> ApiResult<()> {
    let is_current = people::may_sign_in(&mut *db, signed_in.person(), &signed_in.email, current_hash).await?;
    if !is_current || sessions::find_live(db, signed_in).await?.is_none() {
        return Err(ApiError::signed_out());
    }
    Ok(())
}

/// The body of `PUT /account/password`.
pub struct PasswordChange {
    current: TypedSecret,
    new: Password,
}

impl Input for PasswordChange {
    fn name() -> Cow<'static, str> {
        "PasswordChange".into()
    }

    fn text() -> Option<String> {
        Some("The new password and the current one.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (current, new) = (fields.required("currentPassword"), fields.required("password"));
        Some(Self { current: current?, new: new? })
    }
}

/// `PUT /account/password`: ends every other session.
pub async fn change_password(
    session: PanelSession,
    app: Data<App>,
    panel: Data<super::Panel>,
    body: Body<PasswordChange>,
) -> ApiResult<NoContent> {
    let (signed_in, PasswordChange { current, new }) = (&session.0, body.0);
    let current_hash = check_password(&app, &panel, signed_in, current, "currentPassword").await?;
    passwords::check_owner(&new, "password", &signed_in.email, &signed_in.name)?;
    let hash = passwords::hash(signed_in.company_id, new).await?;
    let mut transaction = app.db(signed_in.company_id).begin().await?;
    let db = transaction.connection()?;
    check_still_valid(&mut *db, signed_in, current_hash.as_deref()).await?;
    people::set_password(&mut *db, signed_in.person(), &hash).await?;
    sessions::end_all(&mut *db, signed_in.person(), Some(signed_in.id)).await?;
    transaction.commit().await?;
    Ok(NoContent)
}

/// A session of the signed-in person.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnSession {
    /// The session's id.
    pub id: PersonSessionId,
    /// Whether it is the current session.
    #[schema(example = true)]
    pub current: bool,
    /// The IP address it was created from.
    #[schema(example = "203.0.113.7")]
    pub address: Option<String>,
    /// The browser's user agent.
    #[schema(example = "Mozilla/5.0")]
    pub user_agent: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_seen_at: Timestamp,
    /// When it expires unless it is used.
    pub expires_at: Timestamp,
}

/// Filters of the list of a person's own sessions.
pub struct Filters(Span);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(query.span("created"))
    }
}

/// `GET /account/sessions`.
pub async fn list_sessions(
    session: PanelSession,
    app: Data<App>,
    query: Query<Filters>,
) -> ApiResult<Page<OwnSession>> {
    let signed_in = &session.0;
    let rows = sessions::of_person(app.db(signed_in.company_id), signed_in.person(), query.filter.0).await?;
    let own_sessions = rows.into_iter().map(|row| OwnSession {
        id: row.id,
        current: row.id == signed_in.id,
        address: row.address,
        user_agent: row.user_agent,
        created_at: row.created_at.into(),
        last_seen_at: row.seen_at.into(),
        expires_at: row.expires_at.into(),
    });
    Ok(Page::of_complete_list(query.page, query.page.after(), own_sessions.collect(), |session| session.id.0))
}

/// `DELETE /account/sessions/{sessionId}`.
pub async fn end_session(session: PanelSession, app: Data<App>, id: PathId<PersonSessionId>) -> ApiResult<NoContent> {
    let signed_in = &session.0;
    let has_ended = sessions::end(app.db(signed_in.company_id), signed_in.person(), id.0).await?;
    if has_ended { Ok(NoContent) } else { Err(ApiError::not_found()) }
}

/// `POST /account/sessions/end-others`.
pub async fn end_other_sessions(session: PanelSession, app: Data<App>) -> ApiResult<NoContent> {
    let signed_in = &session.0;
    sessions::end_all(app.db(signed_in.company_id), signed_in.person(), Some(signed_in.id)).await?;
    Ok(NoContent)
}

/// A body with the person's own password.
pub struct OwnPassword(TypedSecret);

impl Input for OwnPassword {
    fn name() -> Cow<'static, str> {
        "OwnPassword".into()
    }

    fn text() -> Option<String> {
        Some("The current password, for confirmation.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        fields.required("password").map(Self)
    }
}

/// A second factor that is not enabled yet.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewSecondFactor {
    /// The secret to enter in an authenticator app.
    #[schema(example = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")]
    pub secret: String,
    /// The secret as a URI, for a QR code.
    #[schema(
        example = "otpauth://totp/Hotline:ana%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Hotline"
    )]
    pub uri: String,
}

impl HasSecrets for NewSecondFactor {
    const SECRETS: &'static [&'static str] = &["secret", "uri"];
}

/// `POST /account/second-factor`: the factor is enabled once its first code is confirmed.
pub async fn begin_factor(
    session: PanelSession,
    app: Data<App>,
    panel: Data<super::Panel>,
    body: Body<OwnPassword>,
) -> ApiResult<Confidential<Json<NewSecondFactor>>> {
    let signed_in = &session.0;
    let current_hash = check_password(&app, &panel, signed_in, body.0.0, "password").await?;
    let mut transaction = app.db(signed_in.company_id).begin().await?;
    let db = transaction.connection()?;
    check_still_valid(&mut *db, signed_in, current_hash.as_deref()).await?;
    let keys = &app.engine.store().keys;
    let secret = match factors::begin(db, keys, signed_in.person()).await {
        Err(Error::InUse) => {
            return Err(ApiError::conflict("a second factor is already set up", json!({"reason": "in_force"})));
        }
        outcome => outcome?,
    };
    transaction.commit().await?;
    let uri = totp::uri(&secret, ISSUER, &signed_in.email);
    Ok(Confidential(Json::of(NewSecondFactor { secret: totp::base32(&secret), uri })))
}

/// A body with a code from the authenticator app.
pub struct FactorCode(TypedSecret);

impl Input for FactorCode {
    fn name() -> Cow<'static, str> {
        "SecondFactorConfirm".into()
    }

    fn text() -> Option<String> {
        Some("The first code of an authenticator app.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        fields.required("code").map(Self)
    }
}

/// Recovery codes; each can be used once.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryCodes {
    /// The codes, which are shown only once.
    #[schema(example = json!(["abcd-efgh-jkmn-pqrs"]))]
    pub recovery_codes: Vec<String>,
}

impl HasSecrets for RecoveryCodes {
    const SECRETS: &'static [&'static str] = &["recoveryCodes"];
}

/// `POST /account/second-factor/confirm`: ends all other sessions, because they were opened without the second factor.
pub async fn confirm_factor(
    session: PanelSession,
    app: Data<App>,
    panel: Data<super::Panel>,
    body: Body<FactorCode>,
) -> ApiResult<Confidential<Json<RecoveryCodes>>> {
    let signed_in = &session.0;
    let person = signed_in.person();
    panel.limits.try_code(person, None)?;
    let mut transaction = app.db(signed_in.company_id).begin().await?;
    let db = transaction.connection()?;
    let keys = &app.engine.store().keys;
    let codes = factors::confirm(&mut *db, keys, person, &body.0.0.0, clock::now()).await?;
    // An administrator may have ended the session before `confirm` locked the person.
    sessions::find_live(&mut *db, signed_in).await?.ok_or_else(ApiError::signed_out)?;
    let recovery_codes = codes.ok_or_else(|| invalid("code", "is not the current code"))?;
    sessions::end_all(&mut *db, person, Some(signed_in.id)).await?;
    transaction.commit().await?;
    Ok(Confidential(Json::of(RecoveryCodes { recovery_codes })))
}

/// `POST /account/second-factor/recovery-codes`: replaces all earlier codes.
pub async fn renew_codes(
    session: PanelSession,
    app: Data<App>,
    panel: Data<super::Panel>,
    body: Body<OwnPassword>,
) -> ApiResult<Confidential<Json<RecoveryCodes>>> {
    let signed_in = &session.0;
    let current_hash = check_password(&app, &panel, signed_in, body.0.0, "password").await?;
    let mut transaction = app.db(signed_in.company_id).begin().await?;
    let db = transaction.connection()?;
    check_still_valid(&mut *db, signed_in, current_hash.as_deref()).await?;
    let codes = factors::renew_codes(db, signed_in.person()).await?;
    let recovery_codes = codes.ok_or_else(no_factor)?;
    transaction.commit().await?;
    Ok(Confidential(Json::of(RecoveryCodes { recovery_codes })))
}

fn no_factor() -> ApiError {
    ApiError::conflict("no second factor is set up", json!({"reason": "none"}))
}

/// `POST /account/second-factor/remove`.
pub async fn remove_factor(
    session: PanelSession,
    app: Data<App>,
    panel: Data<super::Panel>,
    body: Body<OwnPassword>,
) -> ApiResult<NoContent> {
    let signed_in = &session.0;
    let current_hash = check_password(&app, &panel, signed_in, body.0.0, "password").await?;
    if signed_in.needs_factor {
        return Err(ApiError::conflict("the company requires a second factor", json!({"reason": "required"})));
    }
    let mut transaction = app.db(signed_in.company_id).begin().await?;
    let db = transaction.connection()?;
    check_still_valid(&mut *db, signed_in, current_hash.as_deref()).await?;
    let had_factor = factors::remove(db, signed_in.person()).await?;
    transaction.commit().await?;
    if had_factor { Ok(NoContent) } else { Err(no_factor()) }
}
