//! Signing in and out.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::USER_AGENT;
use actix_web::web::Data;
use hotline_actors::clock;
use hotline_persistence::CompanyId;
use hotline_persistence::tables::people::sessions::{self, Origin, SessionState, Signed};
use hotline_persistence::tables::people::{self, INSTALLATION, Language, PersonId, called, factors};
use serde::Serialize;
use tokio::time::{Instant, sleep_until};
use utoipa::ToSchema;

use super::cookie::WithCookie;
use super::signed::Session;
use super::values::Typed;
use super::{Panel, cookie, device, door, site};
use crate::app::App;
use crate::web::origin::Address;
use crate::web::permissions::everything;
use crate::web::values::Email;
use crate::web::{ApiError, ApiResult, Body, Fields, Input, Json, NoContent, passwords};

/// When a failed attempt is answered, counted from its start: later than any attempt can take, so that the timing
/// reveals nothing about the account.
const FAILED_AFTER: Duration = Duration::from_millis(400);

/// How far signing in has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum SignInState {
    /// The password fits several memberships: sign in again and name one.
    Choose,
    /// The second factor must be given.
    SecondFactor,
    /// A second factor must be set up.
    Enrol,
    /// Done.
    Open,
}

/// How somebody has signed in, and what they may do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignIn {
    /// How far it has come.
    pub state: SignInState,
    /// The memberships to choose from; none but in the state `choose`.
    pub choices: Vec<Membership>,
    /// Who it is; none before the second factor is given.
    pub person: Option<SignedPerson>,
    /// Where they work; none of an administrator of the installation.
    pub company: Option<SignedCompany>,
    /// Methods, by module.
    #[schema(example = json!({"tickets": ["GET", "POST", "PUT"]}))]
    pub permissions: BTreeMap<String, BTreeSet<String>>,
    /// Whether they may do what administrators do.
    #[schema(example = false)]
    pub administers: bool,
    /// Whether they see the cards of others.
    #[schema(example = false)]
    pub sees_all_cards: bool,
    /// Whether they must have a second factor.
    #[schema(example = false)]
    pub second_factor_required: bool,
}

/// A membership that the e-mail and the password fit.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Membership {
    /// The company; none: the installation.
    pub company_id: Option<CompanyId>,
    /// What it is called.
    #[schema(example = "Acme")]
    pub company_name: Option<String>,
    /// Whether it is the installation's administration.
    #[schema(example = false)]
    pub admin: bool,
}

/// Who somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum PersonKind {
    /// A user of a company.
    User,
    /// An administrator of the installation.
    Admin,
}

impl PersonKind {
    /// The kind of a person.
    pub fn of(person: PersonId) -> Self {
        if person.is_admin() { Self::Admin } else { Self::User }
    }
}

/// A person who has signed in.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedPerson {
    /// Whether a user or an administrator of the installation.
    pub kind: PersonKind,
    /// Their id, as a user or as an administrator.
    #[schema(example = 7)]
    pub id: i64,
    /// What they are called.
    #[schema(example = "Ana Souza")]
    pub name: String,
    /// What they sign in with.
    #[schema(example = "ana@example.com")]
    pub email: String,
    /// What the pages speak; none: what the browser does.
    pub language: Option<Language>,
    /// Whether they have a second factor.
    #[schema(example = false)]
    pub second_factor: bool,
}

/// Where a person works.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedCompany {
    /// The company.
    pub id: CompanyId,
    /// What it is called.
    #[schema(example = "Acme")]
    pub name: String,
    /// Where its days begin.
    #[schema(example = "America/Sao_Paulo")]
    pub time_zone: String,
}

impl SignIn {
    fn choose(choices: Vec<Membership>) -> Self {
        Self {
            state: SignInState::Choose,
            choices,
            person: None,
            company: None,
            permissions: BTreeMap::new(),
            administers: false,
            sees_all_cards: false,
            second_factor_required: false,
        }
    }

    /// The state of a session.
    fn of(app: &App, signed: &Signed) -> Self {
        let mut shown = Self::choose(Vec::new());
        shown.second_factor_required = signed.needs_factor;
        shown.state = match signed.state {
            SessionState::SecondFactor => {
                shown.state = SignInState::SecondFactor;
                return shown;
            }
            SessionState::Open if door::is_open(signed) => SignInState::Open,
            SessionState::Open => SignInState::Enrol,
        };
        let person = signed.person();
        shown.person = Some(SignedPerson {
            kind: PersonKind::of(person),
            id: person.id(),
            name: called(&signed.name, &signed.email).to_owned(),
            email: signed.email.clone(),
            language: signed.language,
            second_factor: signed.has_factor,
        });
        if let PersonId::User(company, _) = person {
            shown.company = app.engine.directory().company(company).map(|known| SignedCompany {
                id: company,
                name: known.company.name.clone(),
                time_zone: known.company.time_zone.clone(),
            });
        }
        shown.permissions = if person.is_admin() { everything() } else { signed.permissions.0.clone() };
        shown.administers = signed.administers;
        shown.sees_all_cards = signed.sees_all_cards;
        shown
    }
}

/// The body of `POST /session`.
pub struct Credentials {
    email: String,
    password: Typed,
    /// The installation, or one company.
    company: Option<CompanyId>,
}

impl Input for Credentials {
    fn name() -> Cow<'static, str> {
        "Credentials".into()
    }

    fn text() -> Option<String> {
        Some("What somebody signs in with.".to_owned())
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
            fields.refuse("companyId", "is no company");
        }
        Some(Self { email: email?.0, password: password?, company: if admin { Some(INSTALLATION) } else { company } })
    }
}

/// `POST /session`. All failures get the same response, after the same time.
pub async fn create(
    request: HttpRequest,
    app: Data<App>,
    panel: Data<Panel>,
    body: Body<Credentials>,
) -> ApiResult<WithCookie<Json<SignIn>>> {
    let Credentials { email, password, company } = body.0;
    let address = site::address(&request, &app.trusted_proxies);
    let is_https = site::is_https(&request, &app.trusted_proxies);
    let shown = cookie::read_device(request.headers(), is_https);
    let shown = shown.filter(|shown| device::is_known(&app.engine.store().keys, &email, shown, clock::now()));
    panel.limits.try_account(&email, address.map(Address::of), shown)?;
    let answered_at = Instant::now() + FAILED_AFTER;
    let db = &app.engine.store().housekeeping;
    let accounts = people::accounts(db, &email, company).await?;
    let hashes = accounts.iter().map(|account| account.password_hash.clone()).collect();
    let fitting = passwords::fitting(password.0, hashes).await?;
    let fitting: Vec<_> = fitting.into_iter().filter_map(|place| accounts.get(place)).collect();
    let account = match fitting[..] {
        [] => {
            sleep_until(answered_at).await;
            return Err(ApiError::sign_in());
        }
        [account] => account,
        _ => {
            let choices = fitting.into_iter().map(|account| Membership {
                company_id: (account.company_id != INSTALLATION).then_some(account.company_id),
                company_name: account.company_name.clone(),
                admin: account.company_id == INSTALLATION,
            });
            return Ok(WithCookie::unchanged(Json::of(SignIn::choose(choices.collect()))));
        }
    };
    let person = account.person();
    let mut change = app.db(person.company()).begin().await?;
    let connection = change.connection()?;
    let has_factor = factors::codes_left(&mut *connection, person).await?.is_some();
    let state = if has_factor { SessionState::SecondFactor } else { SessionState::Open };
    let address = address.map(|address| address.to_string());
    let user_agent = request.headers().get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    let from = Origin { address: address.as_deref(), user_agent };
    let text = sessions::begin(&mut *connection, person, state, from).await?;
    change.commit().await?;
    with_session(&request, &app, &panel, &text).await
}

/// The response that starts a session, or continues one under a new key.
async fn with_session(
    request: &HttpRequest,
    app: &App,
    panel: &Panel,
    text: &str,
) -> ApiResult<WithCookie<Json<SignIn>>> {
    let key = sessions::SessionKey::read(text).ok_or_else(|| ApiError::internal("a session has no key"))?;
    let signed = sessions::find(app.db(key.company()), &key).await?.ok_or_else(ApiError::sign_in)?;
    let signed = panel.asked(signed);
    let is_https = site::is_https(request, &app.trusted_proxies);
    let answer = WithCookie::set(Json::of(SignIn::of(app, &signed)), text, is_https);
    // Not before the second factor: a guessed password alone must not make a device known.
    if signed.state != SessionState::Open {
        return Ok(answer);
    }
    let shown = device::known(&app.engine.store().keys, &signed.email, clock::now()).map_err(ApiError::internal)?;
    Ok(answer.and_device(&shown, is_https))
}

/// The body of `POST /session/second-factor`: one of both.
pub struct Factor {
    code: Option<Typed>,
    recovery_code: Option<Typed>,
}

impl Input for Factor {
    fn name() -> Cow<'static, str> {
        "SecondFactorCode".into()
    }

    fn text() -> Option<String> {
        Some("A code of the authenticator app, or a recovery code.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (code, recovery_code) = (fields.optional("code"), fields.optional("recoveryCode"));
        if code.is_none() && recovery_code.is_none() && !fields.has("code") && !fields.has("recoveryCode") {
            fields.refuse("code", "is required");
        }
        Some(Self { code, recovery_code })
    }
}

/// `POST /session/second-factor`. A code works once; five wrong ones end the session.
pub async fn give_factor(
    session: Session,
    request: HttpRequest,
    app: Data<App>,
    panel: Data<Panel>,
    body: Body<Factor>,
) -> ApiResult<WithCookie<Json<SignIn>>> {
    let signed = session.0;
    if signed.state != SessionState::SecondFactor {
        return Err(ApiError::sign_in());
    }
    let person = signed.person();
    // Anyone with the password can start sessions, so the attempts are counted per account, over all its sessions.
    let address = site::address(&request, &app.trusted_proxies).map(Address::of);
    panel.limits.try_code(person, address)?;
    let answered_at = Instant::now() + FAILED_AFTER;
    let mut change = app.db(person.company()).begin().await?;
    let connection = change.connection()?;
    let keys = &app.engine.store().keys;
    let is_right = match (body.0.code, body.0.recovery_code) {
        (Some(code), _) => factors::is_right(&mut *connection, keys, person, &code.0, clock::now()).await?,
        (None, Some(code)) => factors::recover(&mut *connection, person, &code.0).await?,
        (None, None) => false,
    };
    if !is_right {
        sessions::note_wrong_code(&mut *connection, &signed).await?;
        change.commit().await?;
        sleep_until(answered_at).await;
        return Err(ApiError::sign_in());
    }
    let text = sessions::open(&mut *connection, &signed).await?;
    change.commit().await?;
    with_session(&request, &app, &panel, &text).await
}

/// What signing in offers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignInOptions {
    /// Whether a link to choose another password can be asked for by mail.
    #[schema(example = true)]
    pub resets_by_mail: bool,
}

/// `GET /session/options`.
pub async fn options(panel: Data<Panel>) -> ApiResult<Json<SignInOptions>> {
    Ok(Json::of(SignInOptions { resets_by_mail: panel.mailer.is_some() }))
}

/// `GET /session`.
pub async fn show(session: Session, app: Data<App>) -> ApiResult<Json<SignIn>> {
    Ok(Json::of(SignIn::of(&app, &session.0)))
}

/// `DELETE /session`; has the same response if nobody is signed in.
pub async fn remove(
    request: HttpRequest,
    app: Data<App>,
    session: Option<Session>,
) -> ApiResult<WithCookie<NoContent>> {
    if let Some(Session(signed)) = session {
        sessions::end(app.db(signed.company_id), signed.person(), signed.id).await?;
    }
    Ok(WithCookie::taken(NoContent, site::is_https(&request, &app.trusted_proxies)))
}
