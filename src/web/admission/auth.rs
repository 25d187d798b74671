//! Admits requests with a company's token; `src/panel/admission.rs` admits those of people. The checks are made in the
//! order of the contract: the token, the company, its plan, its rate, the token's permission. This is middleware, so a
//! bad token is always reported before a bad body.

use actix_http::ConnectionType;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage, ResponseError};
use hotline_actors::{Directory, clock};
use hotline_persistence::tables::tokens::KEY_PREFIX;
use hotline_persistence::{CompanyId, Ownership, Presence, key};
use ipnet::IpNet;

use super::caller::{Caller, TokenContext, is_valid};
use super::idempotency::execute_once;
use super::modules::module_of;
use super::permissions::METHODS;
use super::rate::{Allowance, RateLimits, Unlimited};
use super::wrong_tokens::{GUESS_DELAY, WrongTokens};
use crate::web::connections::origin::{self, Address};
use crate::web::response::error::{ApiError, ApiResult};
use crate::web::tenant::Tenant;

/// Everything that is needed to admit callers.
pub struct Admission {
    /// All companies and tokens.
    pub directory: Directory,
    /// Which companies this process serves.
    pub ownership: Ownership,
    /// Whether to skip the check of the company's plan.
    pub on_premise: bool,
    /// Proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Counts wrong tokens per address.
    pub wrong_tokens: WrongTokens,
}

/// Admits requests that pass every check, and runs a request with an idempotency key once.
///
/// # Errors
/// Errors of the inner service; refusals are responses.
pub async fn admit<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let mut allowance = None;
    let admitted = match check(&request, &mut allowance) {
        Ok(caller) => register_presence(&request, caller.company).await.map(|()| caller),
        Err(refused) => Err(refused),
    };
    let mut response = match admitted {
        Ok(caller) => {
            request.extensions_mut().insert(Tenant(caller.company));
            request.extensions_mut().insert(caller);
            execute_once(request, next).await?
        }
        Err(refused) => {
            let is_guesser = refused.status == StatusCode::UNAUTHORIZED && count_wrong_token(&request);
            if is_guesser {
                tokio::time::sleep(GUESS_DELAY).await;
            }
            let mut response = request.into_response(refused.error_response());
            if is_guesser {
                // Closing the connection makes each further guess cost a new connection.
                response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
            }
            response
        }
    };
    if let Some(allowance) = allowance {
        if !allowance.is_limited() {
            response.request().extensions_mut().insert(Unlimited);
        }
        allowance.write(response.headers_mut());
    }
    Ok(response)
}

/// The presence of a request in its company, acquired before the request reached the handler. The edge of a cluster
/// acquires it, so that the company does not move to another process meanwhile.
pub struct AcquiredPresence {
    company: CompanyId,
    /// `None` once [`register_presence`] has moved it to the request's extensions.
    presence: Option<Presence>,
}

impl AcquiredPresence {
    /// Holds a presence in this company.
    pub fn new(company: CompanyId, presence: Presence) -> Self {
        Self { company, presence: Some(presence) }
    }

    /// Whether the request already holds a presence in this company.
    pub fn has(request: &impl HttpMessage, company: CompanyId) -> bool {
        request.extensions().get::<Self>().is_some_and(|acquired| acquired.company == company)
    }

    /// Moves the presence to the extensions, where a handler that waits for long finds and releases it.
    fn move_to_extensions(request: &impl HttpMessage) {
        let mut extensions = request.extensions_mut();
        let presence = extensions.get_mut::<Self>().and_then(|acquired| acquired.presence.take());
        if let Some(presence) = presence {
            extensions.insert(presence);
        }
    }
}

/// Registers the request as present in its company, which must be served here. Dropping the company waits until the
/// request ends, even when its caller has disconnected.
pub(crate) async fn register_presence(request: &ServiceRequest, company: CompanyId) -> ApiResult<()> {
    if AcquiredPresence::has(request, company) {
        AcquiredPresence::move_to_extensions(request);
        return Ok(());
    }
    let admission =
        request.app_data::<Data<Admission>>().ok_or_else(|| ApiError::internal("the admission state is missing"))?;
    let presence = admission.ownership.enter(company).await?;
    request.extensions_mut().insert(presence);
    Ok(())
}

/// Counts a request with a wrong token; returns whether its address has sent too many. The response is a `401` either
/// way.
fn count_wrong_token(request: &ServiceRequest) -> bool {
    let Some(admission) = request.app_data::<Data<Admission>>() else { return false };
    let origin = origin::of(request.peer_addr(), request.headers(), &admission.trusted_proxies);
    admission.wrong_tokens.count(origin.map(Address::of))
}

/// Runs every check in order, and sets the allowance once the request is counted against the company's rate.
fn check(request: &ServiceRequest, allowance: &mut Option<Allowance>) -> ApiResult<Caller> {
    let state = request.app_data::<Data<Admission>>().zip(request.app_data::<Data<RateLimits>>());
    let (admission, rates) = state.ok_or_else(|| ApiError::internal("the admission state is missing"))?;
    let origin = origin::of(request.peer_addr(), request.headers(), &admission.trusted_proxies);
    let context = TokenContext { origin, needs_plan: !admission.on_premise };
    let caller = identify(request, &admission.directory, context).ok_or_else(ApiError::unauthorized)?;
    let company = &caller.organization.company;
    if !company.active {
        return Err(ApiError::company_inactive());
    }
    if !company.api_enabled && context.needs_plan {
        return Err(ApiError::not_enabled());
    }
    match rates.take(company.id, company.rate_per_minute) {
        Ok(remaining) => *allowance = Some(remaining),
        Err(refused) => {
            *allowance = Some(refused.allowance);
            return Err(ApiError::rate_limited(refused.retry_after_s));
        }
    }
    check_permission(request, &caller)?;
    Ok(caller)
}

/// The company of the token in these headers; `None` if there is no such token. Whether it is revoked or expired is not
/// checked.
pub fn company_of(headers: &HeaderMap, directory: &Directory) -> Option<CompanyId> {
    let key = bearer_in(headers).filter(|key| key.len() == KEY_LENGTH)?;
    Some(directory.token(&key::hash(key))?.row.company_id)
}

/// The holder of the token. Every invalid token takes the same path (hash, look up, refuse), so timing reveals nothing.
fn identify(request: &ServiceRequest, directory: &Directory, context: TokenContext) -> Option<Caller> {
    // A key of another length cannot be valid. `DUMMY_KEY` replaces it, so that hashing takes equally long.
    let key = bearer(request).filter(|key| key.len() == KEY_LENGTH).unwrap_or(DUMMY_KEY);
    let token = directory.token(&key::hash(key))?;
    if !is_valid(&token, context.origin) {
        return None;
    }
    let organization = directory.company(token.row.company_id)?;
    token.record_use(clock::now());
    Some(Caller::integration(organization, token, context))
}

/// Length of a whole key, in characters.
const KEY_LENGTH: usize = KEY_PREFIX.len() + key::KEY_CHARACTERS;

/// A key that no company has: keys are alphanumeric after the prefix.
const DUMMY_KEY: &str = "sk_live_-------------------------------!";

/// The bearer token of a request.
pub(crate) fn bearer(request: &ServiceRequest) -> Option<&str> {
    bearer_in(request.headers())
}

/// The bearer token in these headers.
pub(crate) fn bearer_in(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// Checks that the caller may use this method on this path. A path outside every module is left to the router, which
/// responds with `404`.
///
/// # Errors
/// `403 ERR_API_FORBIDDEN_SCOPE`.
pub(crate) fn check_permission(request: &ServiceRequest, caller: &Caller) -> ApiResult<()> {
    let method = request.method().as_str();
    // Uses the path as the router normalizes it, so that another spelling cannot bypass the check.
    match module_of(request.match_info().as_str()) {
        // `HEAD` needs the permission of `GET`.
        Some(module) if method == "HEAD" => caller.may("GET", module),
        Some(module) if METHODS.contains(&method) => caller.may(method, module),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dummy_key_is_as_long_as_a_key_and_never_valid() {
        assert_eq!(DUMMY_KEY.len(), KEY_LENGTH);
        assert!(!DUMMY_KEY.bytes().skip(KEY_PREFIX.len()).all(|byte| byte.is_ascii_alphanumeric()));
    }
}
