//! The checks before a request is read: it comes from the panel's own page, a person has signed in, their rate is not
//! exceeded, their session is open, and in a company their profile permits the request.

use std::sync::Arc;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{CACHE_CONTROL, HeaderMap, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage, HttpRequest, ResponseError};
use hotline_persistence::CompanyId;
use hotline_persistence::tables::people::sessions::{self, SessionKey, SessionState, Signed};
use hotline_persistence::tables::people::{INSTALLATION, PersonId};

use super::signed::Session;
use super::{Panel, audit, cookie, site};
use crate::api::cards;
use crate::app::App;
use crate::web::aside::Tenant;
use crate::web::auth::{Admission, permit, stay};
use crate::web::idempotency::once;
use crate::web::origin::Address;
use crate::web::rate::{Allowance, Unlimited};
use crate::web::wrong_tokens::MINUTE;
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
    let key =
        [true, false].into_iter().find_map(|is_https| cookie::read(headers, is_https).and_then(SessionKey::read))?;
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
}

impl Parts {
    fn of(request: &ServiceRequest) -> ApiResult<Self> {
        let lacks = || ApiError::internal("the panel lacks a part");
        Ok(Self {
            app: request.app_data::<Data<App>>().cloned().ok_or_else(lacks)?,
            panel: request.app_data::<Data<Panel>>().cloned().ok_or_else(lacks)?,
            admission: request.app_data::<Data<Admission>>().cloned().ok_or_else(lacks)?,
        })
    }
}

/// The key of the session a request shows, if it shows any.
fn key_of(request: &HttpRequest, parts: &Parts) -> Option<SessionKey> {
    cookie::read(request.headers(), site::is_https(request, &parts.app)).and_then(SessionKey::read)
}

/// The session of a key, if it lives.
async fn session_of(key: &SessionKey, parts: &Parts) -> ApiResult<Option<Arc<Signed>>> {
    let found = sessions::find(parts.app.db(key.company()), key).await?;
    Ok(found.map(|signed| Arc::new(parts.panel.asked(signed))))
}

/// Identifies the person who has signed in.
///
/// # Errors
/// `401` when nobody has.
async fn identify(request: &HttpRequest, parts: &Parts) -> ApiResult<Arc<Signed>> {
    let Some(key) = key_of(request, parts) else { return Err(ApiError::signed_out()) };
    session_of(&key, parts).await?.ok_or_else(|| {
        // An invalid cookie was guessed, or its session has ended; an address that sends many is rate-limited.
        let address = site::address(request, &parts.app.trusted_proxies).map(Address::of);
        let is_guesser = parts.admission.wrong_tokens.count(address);
        if is_guesser { ApiError::rate_limited(MINUTE.as_secs()) } else { ApiError::signed_out() }
    })
}

/// Whether signing in is complete.
pub(super) fn is_open(signed: &Signed) -> bool {
    signed.state == SessionState::Open && (signed.has_factor || !signed.needs_factor)
}

fn refuse(request: ServiceRequest, refused: &ApiError) -> ServiceResponse<BoxBody> {
    request.into_response(refused.error_response())
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
    let found = match Parts::of(&request) {
        Ok(parts) if !site::is_own(request.request(), &parts.app.trusted_proxies) => Err(ApiError::foreign_page()),
        // A browser shows a session that has ended until there is another one: here it is none, and not counted, or
        // whoever comes back could be kept from signing in.
        Ok(parts) => match key_of(request.request(), &parts) {
            Some(key) => session_of(&key, &parts).await,
            None => Ok(None),
        },
        Err(defect) => Err(defect),
    };
    match found {
        Ok(found) => {
            if let Some(signed) = found {
                request.extensions_mut().insert(Session(signed));
            }
            Ok(unkept(next.call(request).await?.map_into_boxed_body()))
        }
        Err(refused) => Ok(unkept(refuse(request, &refused))),
    }
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
    match parts.panel.limits.take(signed.person()) {
        Ok(left) => *allowance = Some(left),
        Err(refused) => {
            *allowance = Some(refused.allowance);
            return Err(ApiError::rate_limited(refused.retry_after_s));
        }
    }
    if let PersonId::User(company, _) = signed.person() {
        let known = parts.admission.directory.company(company).ok_or_else(ApiError::signed_out)?;
        if !known.company.active {
            return Err(ApiError::company_inactive());
        }
    }
    if !is_open(&signed) {
        let path = request.match_info().as_str().strip_prefix(crate::web::modules::PANEL_API).unwrap_or_default();
        if signed.state != SessionState::Open || !BEFORE_FACTOR.contains(&path) {
            return Err(ApiError::second_factor());
        }
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
            request.extensions_mut().insert(Session(signed.clone()));
            audit::kept(&parts.app, &parts.panel, company, &signed, request, async |request| {
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
            request.extensions_mut().insert(Session(signed.clone()));
            request.extensions_mut().insert(caller);
            // Operations of the panel alone may return a secret that must not be stored, so their responses are not
            // recorded for retries.
            let is_own = parts.panel.known(&request).is_some_and(|known| known.is_own);
            audit::kept(&parts.app, &parts.panel, company, &signed, request, async |request| {
                if is_own { Ok(next.call(request).await?.map_into_boxed_body()) } else { once(request, next).await }
            })
            .await?
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
            return Err(ApiError::bad_request("say in which company: Hotline-Company: {companyId}"));
        }
    };
    let organization = entered.parts.admission.directory.company(company).ok_or_else(ApiError::not_found)?;
    if !organization.company.active {
        return Err(ApiError::company_inactive());
    }
    let caller = Caller::person(organization, entered.signed.clone());
    permit(request, &caller)?;
    stay(request, company).await?;
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
