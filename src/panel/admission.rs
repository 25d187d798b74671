//! The checks before a request is read: it comes from the panel's own page, a person has signed in, their rate limit is
//! not exceeded, their session is open, and in a company their profile permits the request.

use std::sync::Arc;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{CACHE_CONTROL, HeaderMap, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage, HttpRequest, ResponseError};
use hotline_persistence::CompanyId;
use hotline_persistence::tables::people::sessions::{self, SessionKey, SessionState, SignedInPerson};
use hotline_persistence::tables::people::{INSTALLATION, PersonId, STRANGERS};

use super::audit::{self, RequestActor};
use super::extractors::PanelSession;
use super::{Panel, cookie, site};
use crate::api::cards;
use crate::app::App;
use crate::web::admission::auth::{Admission, check_permission, register_presence};
use crate::web::admission::idempotency::{KeyOwner, execute_once};
use crate::web::admission::modules::PANEL_API;
use crate::web::admission::rate::{Allowance, RateLimits, Unlimited};
use crate::web::connections::origin::Address;
use crate::web::response::cursor::ListOwner;
use crate::web::tenant::{COMPANY_HEADER, Tenant};
use crate::web::{ApiError, ApiResult, Caller};

/// The paths below the API's path that set up a second factor. A session without a required second factor may use only
/// these.
const FACTOR_SETUP_PATHS: [&str; 2] = ["/account/second-factor", "/account/second-factor/confirm"];

/// The company that a request to this path below the panel's API names in its session cookie, in the header
/// `Hotline-Company` or in the path; nothing is verified. `None` for a request outside any company.
pub fn company_of(headers: &HeaderMap, path: &str) -> Option<CompanyId> {
    let is_below = |top: &str| path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if super::OPEN_SCOPES.iter().any(|scope| is_below(scope)) {
        return None;
    }
    // The cookie's name depends on the scheme; a browser has only the one that matches.
    let key = [true, false].into_iter().find_map(|is_https| {
        cookie::read_session(headers, is_https).and_then(|cookie| SessionKey::parse(cookie.text))
    })?;
    if key.company() != INSTALLATION {
        return Some(key.company());
    }
    let named_company = headers.get(COMPANY_HEADER).and_then(|text| text.to_str().ok()?.trim().parse().ok());
    named_company.or_else(|| path.strip_prefix("/companies/")?.split('/').next()?.parse().ok())
}

/// Whether a request of this person outside of any company may have an idempotency key: only changes of companies are
/// recorded for retries.
fn takes_key(request: &ServiceRequest, person: PersonId) -> bool {
    let rest = path_below_api(request).strip_prefix("/companies");
    person.is_admin() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The state that the checks need.
struct State {
    app: Data<App>,
    panel: Data<Panel>,
    admission: Data<Admission>,
    rates: Data<RateLimits>,
}

impl State {
    fn of(request: &ServiceRequest) -> ApiResult<Self> {
        let missing = || ApiError::internal("the panel is missing a component");
        Ok(Self {
            app: request.app_data::<Data<App>>().cloned().ok_or_else(missing)?,
            panel: request.app_data::<Data<Panel>>().cloned().ok_or_else(missing)?,
            admission: request.app_data::<Data<Admission>>().cloned().ok_or_else(missing)?,
            rates: request.app_data::<Data<RateLimits>>().cloned().ok_or_else(missing)?,
        })
    }
}

/// The session of a request's cookie, if it has not ended. Anyone can forge a cookie that names a company, so look-ups
/// of a cookie that this installation has not signed are limited by address, and use the connections of `STRANGERS`
/// instead of the company's. For a signed cookie, the end of its session is cached.
async fn session_of(request: &HttpRequest, state: &State) -> ApiResult<Option<Arc<SignedInPerson>>> {
    let Some(cookie) = cookie::read_session(request.headers(), site::is_https(request, &state.app)) else {
        return Ok(None);
    };
    let Some(key) = SessionKey::parse(cookie.text) else { return Ok(None) };
    let limits = &state.panel.limits;
    let is_ours = cookie.is_ours(&state.app.engine.store().keys);
    let connection_share = if is_ours {
        if limits.has_ended(&key) {
            return Ok(None);
        }
        key.company()
    } else {
        let address = site::address(request, &state.app.trusted_proxies).map(Address::of);
        if !limits.take_cookie_look_up(address) {
            return Ok(None);
        }
        STRANGERS
    };
    let session = sessions::find(state.app.db(connection_share), &key).await?;
    if is_ours && session.is_none() {
        limits.record_ended(&key);
    }
    Ok(session.map(|signed_in| Arc::new(state.panel.with_requirements(signed_in))))
}

/// Identifies the person who has signed in.
///
/// # Errors
/// `401` when no one has.
async fn identify(request: &HttpRequest, state: &State) -> ApiResult<Arc<SignedInPerson>> {
    session_of(request, state).await?.ok_or_else(ApiError::signed_out)
}

/// The path of a request below the panel's API.
fn path_below_api(request: &ServiceRequest) -> &str {
    request.match_info().as_str().strip_prefix(PANEL_API).unwrap_or_default()
}

/// Prefixes of the paths, below the API's path, whose lists are a person's own.
const OWN_LISTS: [&str; 1] = ["/account/"];

/// Prefixes of the paths whose lists are shorter for a person who does not see every card.
const RESTRICTED_LISTS: [&str; 2] = ["/crm/", "/webhooks/"];

/// The owner of the list that a person reads; `None` if the list is the same for everyone. A cursor is valid only for
/// the same owner.
fn list_owner(request: &ServiceRequest, person: PersonId, sees_every_card: bool) -> Option<ListOwner> {
    let path = path_below_api(request);
    let is_below = |parents: &[&str]| parents.iter().any(|parent| path.starts_with(parent));
    let is_restricted = !sees_every_card && is_below(&RESTRICTED_LISTS);
    (is_below(&OWN_LISTS) || is_restricted)
        .then(|| ListOwner(format!("{} {}", if person.is_admin() { "admin" } else { "user" }, person.id())))
}

fn refuse(request: ServiceRequest, error: &ApiError) -> ServiceResponse<BoxBody> {
    request.into_response(error.error_response())
}

/// Takes a request from the allowance of a person, and from that of all people of their company; `allowance` becomes
/// the smaller one.
///
/// # Errors
/// `429` when either is used up.
fn take_allowance(state: &State, signed_in: &SignedInPerson, allowance: &mut Option<Allowance>) -> ApiResult<()> {
    let person = signed_in.person();
    // A stranger who knows only the password must not use up the allowance of the person and their company.
    if signed_in.state != SessionState::Open {
        return state.panel.limits.try_half_open(person);
    }
    let organization = match person {
        PersonId::User(company, _) => state.admission.directory.company(company),
        PersonId::Admin(_) => None,
    };
    let result = state.panel.limits.take_request(person).and_then(|own_allowance| match organization {
        Some(organization) => {
            let company_allowance =
                state.rates.take_for_people(person.company(), organization.company.rate_per_minute)?;
            Ok(own_allowance.tighter(company_allowance))
        }
        None => Ok(own_allowance),
    });
    match result {
        Ok(remaining) => {
            *allowance = Some(remaining);
            Ok(())
        }
        Err(exceeded) => {
            *allowance = Some(exceeded.allowance);
            Err(ApiError::rate_limited(exceeded.retry_after_s))
        }
    }
}

/// The session of a request to an endpoint that requires none. The request counts against the person's allowance.
async fn find_session(
    request: &ServiceRequest,
    state: &State,
    allowance: &mut Option<Allowance>,
) -> ApiResult<Option<Arc<SignedInPerson>>> {
    let session = session_of(request.request(), state).await?;
    // The limit never refuses signing out. That ends the session, so repeating it cannot evade the limit.
    let is_sign_out = request.method() == Method::DELETE && path_below_api(request) == "/session";
    if let Some(signed_in) = session.as_ref().filter(|_| !is_sign_out) {
        take_allowance(state, signed_in, allowance)?;
    }
    Ok(session)
}

/// Checks that the request comes from the panel's own page.
///
/// # Errors
/// `403` when it does not.
fn check_page(request: &ServiceRequest, state: &State) -> ApiResult<()> {
    site::check_page(request.request(), &state.app.trusted_proxies, state.app.media.public_url())
}

/// Admits every request from the panel's own page, with its session if there is one.
///
/// # Errors
/// Errors of the inner service; refusals are responses.
pub(super) async fn admit_anyone<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    request.extensions_mut().insert(Unlimited);
    let mut allowance = None;
    let session = match State::of(&request) {
        Ok(state) => match check_page(&request, &state) {
            // A browser sends the cookie of an ended session until it gets another one; the request then has no
            // session.
            Ok(()) => find_session(&request, &state, &mut allowance).await,
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    };
    let response = match session {
        Ok(session) => {
            if let Some(signed_in) = session {
                request.extensions_mut().insert(PanelSession(signed_in));
            }
            next.call(request).await?.map_into_boxed_body()
        }
        Err(error) => refuse(request, &error),
    };
    Ok(finish(response, allowance))
}

/// A person who has passed [`check_person`], and the state for further checks.
struct CheckedPerson {
    state: State,
    signed_in: Arc<SignedInPerson>,
}

/// Runs every check that does not depend on the company that the request names. Sets `allowance` as soon as it is
/// known, even if a later check fails.
async fn check_person(request: &ServiceRequest, allowance: &mut Option<Allowance>) -> ApiResult<CheckedPerson> {
    let state = State::of(request)?;
    check_page(request, &state)?;
    let signed_in = identify(request.request(), &state).await?;
    take_allowance(&state, &signed_in, allowance)?;
    if let PersonId::User(company, _) = signed_in.person() {
        let organization = state.admission.directory.company(company).ok_or_else(ApiError::signed_out)?;
        if !organization.company.active {
            return Err(ApiError::company_inactive());
        }
    }
    let may_set_up_factor =
        || signed_in.state == SessionState::Open && FACTOR_SETUP_PATHS.contains(&path_below_api(request));
    if !signed_in.is_open() && !may_set_up_factor() {
        return Err(ApiError::second_factor_required());
    }
    if let PersonId::User(company, user) = signed_in.person() {
        state.app.engine.attendance.record_user(company, user);
    }
    Ok(CheckedPerson { state, signed_in })
}

/// Admits people who have signed in.
///
/// # Errors
/// Errors of the inner service; refusals are responses.
pub(super) async fn admit_signed_in<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let mut allowance = None;
    let response = match check_person(&request, &mut allowance).await {
        Ok(CheckedPerson { state, signed_in }) => {
            let company = signed_in.company_id;
            request.extensions_mut().insert(Tenant(company));
            // No list outside a company contains cards.
            let sees_every_card = true;
            if let Some(owner) = list_owner(&request, signed_in.person(), sees_every_card) {
                request.extensions_mut().insert(owner);
            }
            request.extensions_mut().insert(PanelSession(signed_in.clone()));
            let takes_key = takes_key(&request, signed_in.person());
            request.extensions_mut().insert(KeyOwner::person(signed_in.person()));
            let actor = RequestActor::of_person(company, &signed_in);
            audit::serve_audited(&state.app, &state.panel, actor, request, async move |request| {
                if takes_key {
                    return execute_once(request, next).await;
                }
                Ok(next.call(request).await?.map_into_boxed_body())
            })
            .await?
        }
        Err(error) => refuse(request, &error),
    };
    Ok(finish(response, allowance))
}

/// Admits people with permission in a company, as [`crate::web::admission::auth::admit`] does for tokens.
///
/// # Errors
/// Errors of the inner service; refusals are responses.
pub async fn admit_in_company<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let mut allowance = None;
    let admitted = match check_person(&request, &mut allowance).await {
        Ok(checked) => check_company(&request, checked).await,
        Err(error) => Err(error),
    };
    let response = match admitted {
        Ok((CheckedPerson { state, signed_in }, caller)) => {
            let company = caller.company;
            request.extensions_mut().insert(Tenant(company));
            if let Some(owner) = list_owner(&request, signed_in.person(), caller.sees_every_card()) {
                request.extensions_mut().insert(owner);
            }
            request.extensions_mut().insert(PanelSession(signed_in.clone()));
            request.extensions_mut().insert(caller);
            let actor = RequestActor::of_person(company, &signed_in);
            audit::serve_audited(&state.app, &state.panel, actor, request, async move |request| {
                execute_once(request, next).await
            })
            .await?
        }
        Err(error) => refuse(request, &error),
    };
    Ok(finish(response, allowance))
}

/// Checks that the person may make the request in the company that it names, or in their own.
async fn check_company(request: &ServiceRequest, checked: CheckedPerson) -> ApiResult<(CheckedPerson, Caller)> {
    let named_company = match request.headers().get(COMPANY_HEADER) {
        Some(text) => {
            let company = text.to_str().ok().and_then(|text| text.trim().parse::<CompanyId>().ok());
            Some(company.ok_or_else(ApiError::not_found)?)
        }
        None => None,
    };
    let company = match (checked.signed_in.person(), named_company) {
        (PersonId::User(own, _), None) => own,
        (PersonId::User(own, _), Some(named)) if own == named => own,
        (PersonId::User(..), Some(_)) => return Err(ApiError::not_found()),
        (PersonId::Admin(_), Some(named)) => named,
        (PersonId::Admin(_), None) => {
            return Err(ApiError::bad_request(
                "the header Hotline-Company is required: the id of the company to work in",
            ));
        }
    };
    let organization = checked.state.admission.directory.company(company).ok_or_else(ApiError::not_found)?;
    if !organization.company.active {
        return Err(ApiError::company_inactive());
    }
    let caller = Caller::person(organization, checked.signed_in.clone());
    check_permission(request, &caller)?;
    register_presence(request, company).await?;
    cards::check_path(&caller, &checked.state.app, request.match_info().as_str()).await?;
    Ok((checked, caller))
}

/// Forbids proxies and browsers from caching a response to a request with cookies, unless it sets its own policy.
fn set_no_store(mut response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    let headers = response.headers_mut();
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

fn finish(response: ServiceResponse<BoxBody>, allowance: Option<Allowance>) -> ServiceResponse<BoxBody> {
    let mut response = set_no_store(response);
    match allowance {
        Some(allowance) => allowance.write(response.headers_mut()),
        // No allowance of a person was taken, and the headers of the API's own limit would be wrong here.
        None => drop(response.request().extensions_mut().insert(Unlimited)),
    }
    response
}
