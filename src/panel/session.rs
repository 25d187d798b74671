//! Signing in and out.

use std::borrow::Cow;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::USER_AGENT;
use actix_web::web::Data;
use hotline_actors::clock;
use hotline_persistence::CompanyId;
use hotline_persistence::tables::people::sessions::{self, Origin, SessionState, SignedInPerson};
use hotline_persistence::tables::people::{self, Account, INSTALLATION, display_name, factors};
use serde::Serialize;
use tokio::time::{Instant, sleep_until};
use utoipa::ToSchema;

use super::audit::SignInAudit;
use super::cookie::WithCookie;
use super::extractors::PanelSession;
use super::sign_in::{Membership, SignIn};
use super::values::{TypedSecret, UNAUTHENTICATED_BODY_BYTES_MAX};
use super::{Panel, cookie, device, site};
use crate::app::App;
use crate::web::admission::passwords;
use crate::web::connections::origin::Address;
use crate::web::request::values::Email;
use crate::web::{ApiError, ApiResult, Body, Fields, Input, Json, NoContent};

/// The minimum time from the start of a failed attempt to its response: longer than an attempt normally takes, so that
/// the timing reveals nothing about the account.
const FAILURE_RESPONSE_AFTER: Duration = Duration::from_millis(400);

/// The body of `POST /session`.
pub struct Credentials {
    email: String,
    password: TypedSecret,
    /// The membership to sign in to: a company's, or the installation's ([`INSTALLATION`]). `None`: any.
    company: Option<CompanyId>,
}

impl Input for Credentials {
    const BYTES_MAX: usize = UNAUTHENTICATED_BODY_BYTES_MAX;

    fn name() -> Cow<'static, str> {
        "Credentials".into()
    }

    fn text() -> Option<String> {
        Some("Credentials for signing in.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let email = fields.required::<Email>("email");
        let password = fields.required("password");
        let company = fields.optional::<CompanyId>("companyId");
        let admin = fields.optional::<bool>("admin").unwrap_or(false);
        if admin && company.is_some() {
            fields.refuse("companyId", "must not be given with admin");
        }
        // `INSTALLATION` is an internal id, and not a valid company.
        if company == Some(INSTALLATION) {
            fields.refuse("companyId", "is not one of your companies");
        }
        Some(Self { email: email?.0, password: password?, company: if admin { Some(INSTALLATION) } else { company } })
    }
}

/// The accounts whose passwords are compared. The attempt counts per device for a person whose device is known, and per
/// e-mail and address for all others. Accounts whose attempts are used up are omitted.
///
/// # Errors
/// `429` when no attempt is left.
async fn candidate_accounts(
    app: &App,
    panel: &Panel,
    (email, company): (&str, Option<CompanyId>),
    address: Option<Address>,
    device_cookie: Option<&str>,
) -> ApiResult<Vec<Account>> {
    let mut known_devices = device::known_devices(&app.engine.store().keys, email, device_cookie, clock::now());
    known_devices.retain(|known_device| company.is_none_or(|company| company == known_device.person.company()));
    // Counted before anything is looked up.
    let mut rate_error = None;
    let (mut known_persons, mut exhausted_persons) = (Vec::new(), Vec::new());
    for known_device in &known_devices {
        match panel.limits.try_device(known_device) {
            Ok(()) => known_persons.push(known_device.person),
            Err(error) => {
                exhausted_persons.push(known_device.person);
                rate_error = Some(error);
            }
        }
    }
    match rate_error {
        Some(error) if known_persons.is_empty() => return Err(error),
        _ if known_devices.is_empty() => panel.limits.try_account(email, address)?,
        _ => {}
    }
    let mut accounts = people::accounts(&app.engine.store().housekeeping, email, company).await?;
    accounts.retain(|account| !exhausted_persons.contains(&account.person()));
    let has_unknown_person = accounts.iter().any(|account| !known_persons.contains(&account.person()));
    // Without a known device, the attempt has been counted above.
    let is_uncounted = !known_devices.is_empty() && has_unknown_person;
    if is_uncounted && panel.limits.try_account(email, address).is_err() {
        accounts.retain(|account| known_persons.contains(&account.person()));
    }
    Ok(accounts)
}

/// `POST /session`. All wrong credentials get the same response, after the same time.
pub async fn create(
    request: HttpRequest,
    app: Data<App>,
    panel: Data<Panel>,
    body: Body<Credentials>,
) -> ApiResult<WithCookie<Json<SignIn>>> {
    let Credentials { email, password, company } = body.0;
    let address = site::address(&request, &app.trusted_proxies).map(Address::of);
    let is_https = site::is_https(&request, &app);
    let device_cookie = cookie::read_device(request.headers(), is_https);
    let respond_at = Instant::now() + FAILURE_RESPONSE_AFTER;
    let accounts = candidate_accounts(&app, &panel, (&email, company), address, device_cookie).await?;
    let hashes = accounts.iter().map(|account| account.password_hash.clone()).collect();
    let matching_hashes = passwords::find_matching(password.0, hashes).await?;
    let matching_accounts: Vec<_> = matching_hashes.into_iter().filter_map(|index| accounts.get(index)).collect();
    let account = match matching_accounts[..] {
        [] => {
            record_wrong_password(&app, &request, &accounts, &email).await;
            sleep_until(respond_at).await;
            return Err(ApiError::sign_in_failed());
        }
        [account] => account,
        _ => {
            // Without the address, as for a wrong password: the person has not yet chosen one of the companies.
            let audit = SignInAudit::for_address(&app, None, "signIn");
            for account in &matching_accounts {
                audit.record(account.person(), display_name(&account.name, &email), 200).await;
            }
            let choices = matching_accounts.into_iter().map(membership_of);
            return Ok(WithCookie::unchanged(Json::of(SignIn::choose(choices.collect()))));
        }
    };
    let audit = SignInAudit::of(&app, &request, "signIn");
    let begin = async || begin_session(&app, &request, account, &email).await;
    let begun = audit.run((account.person(), display_name(&account.name, &email)), StatusCode::OK, begin).await;
    if begun.is_err() {
        sleep_until(respond_at).await;
    }
    respond_with_session(&request, &app, &panel, &begun?).await
}

/// Records a wrong password in the audit logs of these accounts.
async fn record_wrong_password(app: &App, request: &HttpRequest, accounts: &[Account], email: &str) {
    // If the accounts are in several companies, their audit logs omit the address: a company must not learn where a
    // person signs in to another one.
    let address = people::are_of_one_company(accounts).then(|| SignInAudit::client_address(app, request));
    let failure_audit = SignInAudit::for_address(app, address.flatten(), "signIn");
    for account in accounts {
        failure_audit.record(account.person(), display_name(&account.name, email), 401).await;
    }
}

fn membership_of(account: &Account) -> Membership {
    Membership {
        company_id: (account.company_id != INSTALLATION).then_some(account.company_id),
        company_name: account.company_name.clone(),
        admin: account.company_id == INSTALLATION,
    }
}

/// Begins a session of an account, and returns the value of its cookie without the signature.
async fn begin_session(app: &App, request: &HttpRequest, account: &Account, email: &str) -> ApiResult<String> {
    let person = account.person();
    let address = site::address(request, &app.trusted_proxies).map(|address| address.to_string());
    let user_agent = request.headers().get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    let origin = Origin { address: address.as_deref(), user_agent };
    let mut transaction = app.db(person.company()).begin().await?;
    let connection = transaction.connection()?;
    // A change of the password since the comparison has ended all sessions, so no new one may start.
    if !people::may_sign_in(&mut *connection, person, email, account.password_hash.as_deref()).await? {
        return Err(ApiError::sign_in_failed());
    }
    let has_factor = factors::count_unused_codes(&mut *connection, person).await?.is_some();
    let state = if has_factor { SessionState::SecondFactor } else { SessionState::Open };
    let session_text = sessions::begin(&mut *connection, person, state, origin).await?;
    transaction.commit().await?;
    Ok(session_text)
}

/// The response that starts a session, or continues one under a new key. `session_text` is the value of its cookie
/// without the signature.
async fn respond_with_session(
    request: &HttpRequest,
    app: &App,
    panel: &Panel,
    session_text: &str,
) -> ApiResult<WithCookie<Json<SignIn>>> {
    let key = sessions::SessionKey::parse(session_text).ok_or_else(|| ApiError::internal("a session has no key"))?;
    let signed_in = sessions::find(app.db(key.company()), &key).await?.ok_or_else(ApiError::sign_in_failed)?;
    let signed_in = panel.with_requirements(signed_in);
    let is_https = site::is_https(request, app);
    let session_cookie = cookie::sign(&app.engine.store().keys, session_text).map_err(ApiError::internal)?;
    let response = WithCookie::set(Json::of(SignIn::of(app, &signed_in)), &session_cookie, is_https);
    // A device becomes known only after the second factor: a guessed password alone must not be enough.
    if signed_in.state != SessionState::Open {
        return Ok(response);
    }
    let device_cookie = cookie::read_device(request.headers(), is_https);
    let owner = (signed_in.person(), signed_in.email.as_str());
    let renewed = device::renew_cookie(&app.engine.store().keys, owner, device_cookie, clock::now())
        .map_err(ApiError::internal)?;
    Ok(response.and_device(&renewed, is_https))
}

/// The body of `POST /session/second-factor`: a code from the authenticator app, or a recovery code.
pub struct EnteredFactor {
    code: Option<TypedSecret>,
    recovery_code: Option<TypedSecret>,
}

impl Input for EnteredFactor {
    const BYTES_MAX: usize = UNAUTHENTICATED_BODY_BYTES_MAX;

    fn name() -> Cow<'static, str> {
        "SecondFactorCode".into()
    }

    fn text() -> Option<String> {
        Some("A code from the authenticator app, or a recovery code.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (code, recovery_code) = (fields.optional("code"), fields.optional("recoveryCode"));
        if code.is_none() && recovery_code.is_none() && !fields.has("code") && !fields.has("recoveryCode") {
            fields.refuse("code", "is required");
        }
        Some(Self { code, recovery_code })
    }
}

/// `POST /session/second-factor`. A code is accepted once; five wrong ones end the session, and codes are limited per
/// day.
pub async fn enter_factor(
    session: PanelSession,
    request: HttpRequest,
    app: Data<App>,
    panel: Data<Panel>,
    body: Body<EnteredFactor>,
) -> ApiResult<WithCookie<Json<SignIn>>> {
    let signed_in = session.0;
    if signed_in.state != SessionState::SecondFactor {
        return Err(ApiError::sign_in_failed());
    }
    let person = signed_in.person();
    // Anyone with the password can start sessions, so the attempts are counted per account, across all its sessions.
    let address = site::address(&request, &app.trusted_proxies).map(Address::of);
    panel.limits.try_code(person, address)?;
    if body.0.code.is_some() {
        panel.limits.try_daily_code(person)?;
    }
    let respond_at = Instant::now() + FAILURE_RESPONSE_AFTER;
    let audit = SignInAudit::of(&app, &request, "giveSecondFactor");
    let open = async || open_session(&app, &signed_in, body.0).await;
    let opened = audit.run((person, display_name(&signed_in.name, &signed_in.email)), StatusCode::OK, open).await;
    if opened.is_err() {
        sleep_until(respond_at).await;
    }
    let session_text = opened?;
    panel.limits.reset_codes(person);
    respond_with_session(&request, &app, &panel, &session_text).await
}

/// Opens a session whose second factor is right, and returns the new value of its cookie without the signature. A wrong
/// code is counted.
async fn open_session(app: &App, signed_in: &SignedInPerson, entered: EnteredFactor) -> ApiResult<String> {
    let person = signed_in.person();
    let mut transaction = app.db(person.company()).begin().await?;
    let connection = transaction.connection()?;
    let keys = &app.engine.store().keys;
    let is_right = match (entered.code, entered.recovery_code) {
        (Some(code), _) => factors::use_app_code(&mut *connection, keys, person, &code.0, clock::now()).await?,
        (None, Some(code)) => factors::use_recovery_code(&mut *connection, person, &code.0).await?,
        (None, None) => false,
    };
    if !is_right {
        sessions::note_wrong_code(&mut *connection, signed_in).await?;
        transaction.commit().await?;
        return Err(ApiError::sign_in_failed());
    }
    let session_text = sessions::open(&mut *connection, signed_in).await?;
    transaction.commit().await?;
    Ok(session_text)
}

/// Sign-in options.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignInOptions {
    /// Whether password resets can be requested by e-mail.
    #[schema(example = true)]
    pub resets_by_mail: bool,
}

/// `GET /session/options`.
pub async fn options(panel: Data<Panel>) -> ApiResult<Json<SignInOptions>> {
    Ok(Json::of(SignInOptions { resets_by_mail: panel.mailer.is_some() }))
}

/// `GET /session`.
pub async fn show(session: PanelSession, app: Data<App>) -> ApiResult<Json<SignIn>> {
    Ok(Json::of(SignIn::of(&app, &session.0)))
}

/// `DELETE /session`: the response is the same without a session.
pub async fn remove(
    request: HttpRequest,
    app: Data<App>,
    session: Option<PanelSession>,
) -> ApiResult<WithCookie<NoContent>> {
    if let Some(PanelSession(signed_in)) = session {
        let audit = SignInAudit::of(&app, &request, "signOut");
        let person = signed_in.person();
        let end_session = async || Ok(sessions::end(app.db(signed_in.company_id), person, signed_in.id).await?);
        audit
            .run((person, display_name(&signed_in.name, &signed_in.email)), StatusCode::NO_CONTENT, end_session)
            .await?;
    }
    Ok(WithCookie::deleted(NoContent, site::is_https(&request, &app)))
}
