//! The checks before a request is read: it comes from the panel's own page, a person has signed in, their rate is not
//! exceeded, their session is open, and in a company their profile permits the request.

use std::sync::Arc;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{CACHE_CONTROL, HeaderMap, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage, HttpRequest, ResponseError};
use hotline_persistence::CompanyId;
use hotline_persistence::tables::people::sessions::{self, SessionKey, SessionState, Signed};
use hotline_persistence::tables::people::{INSTALLATION, PersonId, STRANGERS};

use super::audit::{self, Who};
use super::signed::Session;
use super::{Panel, cookie, site};
use crate::api::cards;
use crate::app::App;
use crate::web::auth::{Admission, permit, register_presence};
use crate::web::body_scheduler::Tenant;
use crate::web::cursor::ListOwner;
use crate::web::idempotency::once;
use crate::web::modules::PANEL_API;
use crate::web::origin::Address;
use crate::web::rate::{Allowance, RateLimits, Unlimited};
use crate::web::{ApiError, ApiResult, Caller};

/// The header in which an administrator of the installation names the company they work in.
const COMPANY: &str = "hotline-company";

/// The paths that a session may use before it is open, below the API's path.
const BEFORE_FACTOR: [&str; 2] = ["/account/second-factor", "/account/second-factor/confirm"];

/// The company of a request to this path below the panel's API, according to its headers; `None` for a request outside
/// any company.
pub fn company_of(headers: &HeaderMap, path: &str) -> Option<CompanyId> {
    let is_below = |top: &str| path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if super::OPEN.iter().any(|open| is_below(open)) {
        return None;
    }
    // The cookie's name depends on the scheme; a browser only has the one that fits.
    let key = [true, false]
        .into_iter()
        .find_map(|is_https| cookie::read(headers, is_https).and_then(|shown| SessionKey::read(shown.text)))?;
    if key.company() != INSTALLATION {
        return Some(key.company());
    }
    let named = headers.get(COMPANY).and_then(|text| text.to_str().ok()?.trim().parse().ok());
    named.or_else(|| path.strip_prefix("/companies/")?.split('/').next()?.parse().ok())
}

/// The state that the checks need.
struct Parts {
    app: Data<App>,
    panel: Data<Panel>,
    admission: Data<Admission>,
    rates: Data<RateLimits>,
}

impl Parts {
    fn of(request: &ServiceRequest) -> ApiResult<Self> {
        let lacks = || ApiError::internal("the panel is missing a component");
        Ok(Self {
            app: request.app_data::<Data<App>>().cloned().ok_or_else(lacks)?,
            panel: request.app_data::<Data<Panel>>().cloned().ok_or_else(lacks)?,
            admission: request.app_data::<Data<Admission>>().cloned().ok_or_else(lacks)?,
            rates: request.app_data::<Data<RateLimits>>().cloned().ok_or_else(lacks)?,
        })
    }
}

/// The session that a request shows, if it lives. Whoever writes a cookie that names a company must cost that company
/// nothing: what this installation has not made is counted by address before it is looked up, and looked up in a share that
/// is nobody's; what has ended is looked up once in a while.
async fn session_of(request: &HttpRequest, parts: &Parts) -> ApiResult<Option<Arc<Signed>>> {
    let Some(shown) = cookie::read(request.headers(), site::is_https(request, &parts.app)) else { return Ok(None) };
    let Some(key) = SessionKey::read(shown.text) else { return Ok(None) };
    let limits = &parts.panel.limits;
    let is_ours = shown.is_ours(&parts.app.engine.store().keys);
    let share = if is_ours {
        if limits.has_ended(&key) {
            return Ok(None);
        }
        key.company()
    } else {
        let address = site::address(request, &parts.app.trusted_proxies).map(Address::of);
        if !limits.may_look_up_cookie(address) {
            return Ok(None);
        }
        STRANGERS
    };
    let found = sessions::find(parts.app.db(share), &key).await?;
    if is_ours && found.is_none() {
        limits.note_ended(&key);
    }
    Ok(found.map(|signed| Arc::new(parts.panel.asked(signed))))
}

/// Identifies the person who has signed in.
///
/// # Errors
/// `401` when nobody has.
async fn identify(request: &HttpRequest, parts: &Parts) -> ApiResult<Arc<Signed>> {
    session_of(request, parts).await?.ok_or_else(ApiError::signed_out)
}

/// Whether signing in is complete.
pub(super) fn is_open(signed: &Signed) -> bool {
    signed.state == SessionState::Open && (signed.has_factor || !signed.needs_factor)
}

/// The path of a request below the panel's API.
fn below_api(request: &ServiceRequest) -> &str {
    request.match_info().as_str().strip_prefix(PANEL_API).unwrap_or_default()
}

/// The paths whose lists are a person's own, below the API's path.
const OWN_LISTS: [&str; 1] = ["/account/"];

/// The paths whose lists show less to a person who does not see every card.
const SEEN_LISTS: [&str; 2] = ["/crm/", "/webhooks/"];

/// Whose list a person reads; none if it is the same for everybody who may read it. A cursor of one is of no other.
fn list_owner(request: &ServiceRequest, person: PersonId, sees_everything: bool) -> Option<ListOwner> {
    let path = below_api(request);
    let is_below = |tops: &[&str]| tops.iter().any(|top| path.starts_with(top));
    let is_own = is_below(&OWN_LISTS) || !sees_everything && is_below(&SEEN_LISTS);
    is_own.then(|| ListOwner(format!("{} {}", if person.is_admin() { "admin" } else { "user" }, person.id())))
}

fn refuse(request: ServiceRequest, refused: &ApiError) -> ServiceResponse<BoxBody> {
    request.into_response(refused.error_response())
}

/// Takes a request from the allowance of a person, and from that of all people of their company; `allowance` becomes the one
/// that is used up first.
///
/// # Errors
/// `429` when none is left of either.
fn take(parts: &Parts, person: PersonId, allowance: &mut Option<Allowance>) -> ApiResult<()> {
    let company = match person {
        PersonId::User(company, _) => parts.admission.directory.company(company),
        PersonId::Admin(_) => None,
    };
    let taken = parts.panel.limits.take(person).and_then(|own| match company {
        Some(known) => {
            let left = parts.rates.take_for_people(person.company(), known.company.rate_per_minute)?;
            Ok(own.tighter(left))
        }
        None => Ok(own),
    });
    match taken {
        Ok(left) => {
            *allowance = Some(left);
            Ok(())
        }
        Err(refused) => {
            *allowance = Some(refused.allowance);
            Err(ApiError::rate_limited(refused.retry_after_s))
        }
    }
}

/// The session that a request to an open door shows, if it lives; each request of one is counted, as everywhere else.
async fn met(
    request: &ServiceRequest,
    parts: &Parts,
    allowance: &mut Option<Allowance>,
) -> ApiResult<Option<Arc<Signed>>> {
    let found = session_of(request.request(), parts).await?;
    // Nothing keeps a session from being ended, which it can be once.
    let ends = request.method() == Method::DELETE && below_api(request) == "/session";
    if let Some(signed) = found.as_ref().filter(|_| !ends) {
        take(parts, signed.person(), allowance)?;
    }
    Ok(found)
}

/// Admits every request from the panel's own page, with its session if there is one.
///
/// # Errors
/// Errors of the inner service; refusals are responses.
pub(super) async fn anybody<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    request.extensions_mut().insert(Unlimited);
    let mut allowance = None;
    let found = match Parts::of(&request) {
        Ok(parts) if !site::is_own(request.request(), &parts.app.trusted_proxies) => Err(ApiError::foreign_page()),
        // A browser shows a session that has ended until there is another one: here it is none.
        Ok(parts) => met(&request, &parts, &mut allowance).await,
        Err(defect) => Err(defect),
    };
    let response = match found {
        Ok(found) => {
            if let Some(signed) = found {
                request.extensions_mut().insert(Session(signed));
            }
            next.call(request).await?.map_into_boxed_body()
        }
        Err(refused) => refuse(request, &refused),
    };
    Ok(with(response, allowance))
}

/// A person who has passed the checks.
struct Entered {
    parts: Parts,
    signed: Arc<Signed>,
}

/// Runs every check that does not concern a company. The response carries the person's allowance as soon as the person
/// is known.
async fn enter(request: &ServiceRequest, allowance: &mut Option<Allowance>) -> ApiResult<Entered> {
    let parts = Parts::of(request)?;
    if !site::is_own(request.request(), &parts.app.trusted_proxies) {
        return Err(ApiError::foreign_page());
    }
    let signed = identify(request.request(), &parts).await?;
    take(&parts, signed.person(), allowance)?;
    if let PersonId::User(company, _) = signed.person() {
        let known = parts.admission.directory.company(company).ok_or_else(ApiError::signed_out)?;
        if !known.company.active {
            return Err(ApiError::company_inactive());
        }
    }
    let may_set_up = || signed.state == SessionState::Open && BEFORE_FACTOR.contains(&below_api(request));
    if !is_open(&signed) && !may_set_up() {
        return Err(ApiError::second_factor());
    }
    if let PersonId::User(company, user) = signed.person() {
        parts.app.engine.attendance.note_user(company, user);
    }
    Ok(Entered { parts, signed })
}

/// Admits people who have signed in.
///
/// # Errors
/// Errors of the inner service; refusals are responses.
pub(super) async fn signed_in<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let mut allowance = None;
    let response = match enter(&request, &mut allowance).await {
        Ok(Entered { parts, signed }) => {
            let company = signed.company_id;
            request.extensions_mut().insert(Tenant(company));
            if let Some(owner) = list_owner(&request, signed.person(), true) {
                request.extensions_mut().insert(owner);
            }
            request.extensions_mut().insert(Session(signed.clone()));
            audit::kept(&parts.app, &parts.panel, Who::signed(company, &signed), request, async |request| {
                Ok(next.call(request).await?.map_into_boxed_body())
            })
            .await?
        }
        Err(refused) => refuse(request, &refused),
    };
    Ok(with(response, allowance))
}

/// Admits people with permission in a company, as [`crate::web::auth::admit`] does for tokens.
///
/// # Errors
/// Errors of the inner service; refusals are responses.
pub async fn in_company<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let mut allowance = None;
    let entered = match enter(&request, &mut allowance).await {
        Ok(entered) => admit(&request, entered).await,
        Err(refused) => Err(refused),
    };
    let response = match entered {
        Ok((Entered { parts, signed }, caller)) => {
            let company = caller.company;
            request.extensions_mut().insert(Tenant(company));
            if let Some(owner) = list_owner(&request, signed.person(), caller.sees_every_card()) {
                request.extensions_mut().insert(owner);
            }
            request.extensions_mut().insert(Session(signed.clone()));
            request.extensions_mut().insert(caller);
            let who = Who::signed(company, &signed);
            audit::kept(&parts.app, &parts.panel, who, request, async |request| once(request, next).await).await?
        }
        Err(refused) => refuse(request, &refused),
    };
    Ok(with(response, allowance))
}

async fn admit(request: &ServiceRequest, entered: Entered) -> ApiResult<(Entered, Caller)> {
    let named = match request.headers().get(COMPANY) {
        Some(text) => {
            let company = text.to_str().ok().and_then(|text| text.trim().parse::<CompanyId>().ok());
            Some(company.ok_or_else(ApiError::not_found)?)
        }
        None => None,
    };
    let company = match (entered.signed.person(), named) {
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
    let organization = entered.parts.admission.directory.company(company).ok_or_else(ApiError::not_found)?;
    if !organization.company.active {
        return Err(ApiError::company_inactive());
    }
    let caller = Caller::person(organization, entered.signed.clone());
    permit(request, &caller)?;
    register_presence(request, company).await?;
    cards::check_path(&caller, &entered.parts.app, request.match_info().as_str()).await?;
    Ok((entered, caller))
}

/// Nothing that is answered to a cookie is kept on its way, or on the disk of whoever has signed out since; unless it says
/// itself how long it is good.
fn unkept(mut response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    let headers = response.headers_mut();
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

fn with(response: ServiceResponse<BoxBody>, allowance: Option<Allowance>) -> ServiceResponse<BoxBody> {
    let mut response = unkept(response);
    match allowance {
        Some(allowance) => allowance.write(response.headers_mut()),
        // Without a person, the limit that counts is not the API's, so no rate headers are written.
        None => drop(response.request().extensions_mut().insert(Unlimited)),
    }
    response
}
