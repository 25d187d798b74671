//! Who calls: the token, and what must hold before anything of the request is looked at. It is middleware, so that
//! no bad body is ever answered before a bad token.

use std::future::{Ready, ready};
use std::net::IpAddr;
use std::sync::Arc;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::AUTHORIZATION;
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, ResponseError};
use chrono::Utc;
use hotline_actors::Organization;
use hotline_persistence::tables::tokens::TokenRow;
use hotline_persistence::{CompanyId, key};
use ipnet::IpNet;

use super::{Answer, ApiError};
use crate::app::App;

/// The company a request speaks for, and what its token may do.
#[derive(Clone)]
pub struct Caller {
    /// The tenant.
    pub company: CompanyId,
    /// Its directory.
    pub organization: Arc<Organization>,
    token: Arc<TokenRow>,
}

impl Caller {
    /// Whether the token permits the method in the module.
    ///
    /// # Errors
    /// `403 ERR_API_FORBIDDEN_SCOPE`.
    pub fn may(&self, method: &str, module: &str) -> Answer<()> {
        let permitted = self.token.permissions.get(module).is_some_and(|methods| methods.contains(method));
        if permitted { Ok(()) } else { Err(ApiError::forbidden_scope(method, module)) }
    }
}

impl FromRequest for Caller {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        // Without the middleware there is no caller: a route outside it cannot be served by accident.
        ready(request.extensions().get::<Self>().cloned().ok_or_else(ApiError::unauthorized))
    }
}

/// Lets through who has a good token of an active company with the API in its plan.
///
/// # Errors
/// Whatever stands behind says; refusals are answers.
pub async fn authenticate<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    match identify(&request) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            Ok(next.call(request).await?.map_into_left_body())
        }
        Err(refused) => Ok(request.into_response(refused.error_response()).map_into_right_body()),
    }
}

fn identify(request: &ServiceRequest) -> Answer<Caller> {
    let app = request.app_data::<Data<App>>().ok_or_else(|| ApiError::internal("the app is missing"))?;
    let token = bearer(request)
        .and_then(|key| app.engine.directory().token(&key::hash(key)))
        .filter(|token| is_good(token, request.peer_addr().map(|peer| peer.ip())))
        .ok_or_else(ApiError::unauthorized)?;
    let organization = app.engine.directory().company(token.company_id).ok_or_else(ApiError::unauthorized)?;
    if !organization.company.active {
        return Err(ApiError::company_inactive());
    }
    if !organization.company.api_enabled && !app.on_premise {
        return Err(ApiError::not_enabled());
    }
    Ok(Caller { company: token.company_id, organization, token })
}

fn bearer(request: &ServiceRequest) -> Option<&str> {
    let (scheme, key) = request.headers().get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

fn is_good(token: &TokenRow, peer: Option<IpAddr>) -> bool {
    token.revoked_at.is_none()
        && token.expires_at.is_none_or(|expiry| Utc::now() < expiry)
        && (token.allowed_ips.is_empty() || peer.is_some_and(|peer| is_allowed(&token.allowed_ips, peer)))
}

fn is_allowed(allowed: &[String], peer: IpAddr) -> bool {
    // A socket that listens on both families shows an IPv4 peer as a mapped IPv6 address.
    let peer = peer.to_canonical();
    allowed
        .iter()
        .any(|entry| entry.parse::<IpNet>().map_or_else(|_| entry.parse() == Ok(peer), |range| range.contains(&peer)))
}

/// Lets through what the token permits. A path outside every module is left to the router, which has nothing there.
///
/// # Errors
/// Whatever stands behind says; refusals are answers.
pub async fn permit<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    // The path as the router reads it: another spelling must not pass by here.
    let refused = crate::routes::module_of(request.match_info().as_str()).and_then(|module| {
        let caller = request.extensions().get::<Caller>().cloned();
        let permitted = caller
            .map_or_else(|| Err(ApiError::unauthorized()), |caller| caller.may(request.method().as_str(), module));
        permitted.err()
    });
    match refused {
        None => Ok(next.call(request).await?.map_into_left_body()),
        Some(refused) => Ok(request.into_response(refused.error_response()).map_into_right_body()),
    }
}
