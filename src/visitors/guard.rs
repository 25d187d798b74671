//! The checks that a request to a webchat must pass before it is read: the webchat exists, its company is active, its
//! settings allow the page, and the visitor's address does not exceed its rate.

use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue,
    ORIGIN, VARY,
};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, HttpResponse, ResponseError};
use hotline_actors::Organization;
use hotline_persistence::tables::channels::{ChannelRow, ChannelSettings, ChannelType};
use hotline_persistence::tables::events::{By, act_as};
use hotline_persistence::{ChannelId, CompanyId};

use super::document::describe_webchat;
use super::limits::{RequestKind, VisitorLimits};
use super::{paths, script};
use crate::app::App;
use crate::openapi::{Operation, OperationPart};
use crate::web::admission::auth::register_presence;
use crate::web::admission::rate::{Allowance, Unlimited};
use crate::web::connections::origin;
use crate::web::connections::origin::Address;
use crate::web::request::body::FromVisitor;
use crate::web::request::origins;
use crate::web::response::schema::Schemas;
use crate::web::tenant::Tenant;
use crate::web::{ApiError, ApiResult};

/// How long browsers may cache a preflight, in seconds: the maximum delay until they notice that an origin is no longer
/// allowed. Every request is checked in addition.
const PREFLIGHT_AGE_S: &str = "600";

/// The webchat that a request addresses, once the request is admitted.
#[derive(Clone)]
pub struct Webchat {
    /// The directory of the webchat's company.
    pub organization: Arc<Organization>,
    /// The channel.
    pub channel: ChannelId,
    /// The channel's public key.
    pub public_key: String,
    /// The channel's settings: the pages that may embed the webchat, and its appearance.
    pub settings: Arc<ChannelSettings>,
    /// The visitor's address; `None` when it is unknown.
    pub(super) address: Option<Address>,
}

impl Webchat {
    /// Whether a new request of the page would be admitted. Checked for an open socket, which outlasts its request.
    pub(super) fn revalidate(company: CompanyId, channel: ChannelId, origin: Option<&HeaderValue>, app: &App) -> bool {
        let organization = app.engine.directory().company(company).filter(|organization| organization.company.active);
        let row = organization.as_ref().and_then(|organization| organization.channels.get(&channel));
        let settings = row.and_then(|row| row.settings().ok());
        settings.is_some_and(|settings| check_origin(origin, OriginRule::Allowed, &settings).is_ok())
    }

    /// The company.
    pub fn company(&self) -> CompanyId {
        self.organization.company.id
    }
}

impl FromRequest for Webchat {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        // Only the guard sets this extension, so a route without the guard cannot be served by accident.
        ready(request.extensions().get::<Self>().cloned().ok_or_else(ApiError::not_found))
    }
}

impl OperationPart for Webchat {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        describe_webchat(operation);
    }
}

/// The requirement on a page's origin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OriginRule {
    /// No requirement: a script is fetched without an origin, and an agent's program is not a browser's page.
    Any,
    /// If present, the origin must be allowed. A browser omits it when a page reads from its own origin.
    IfPresent,
    /// The origin must be present and allowed.
    Allowed,
}

/// Admits requests that pass the checks.
///
/// # Errors
/// Errors of the inner service; refusals are responses.
pub async fn admit<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let mut response_headers = ResponseHeaders::default();
    let early_response = match check(&request, &mut response_headers) {
        Ok(GuardOutcome::Admitted(webchat)) => match register_presence(&request, webchat.company()).await {
            Ok(()) => {
                if !is_agent_path(request.match_info().unprocessed()) {
                    request.extensions_mut().insert(FromVisitor);
                    if let Some(limits) = request.app_data::<Data<VisitorLimits>>() {
                        // A request with a visitor's token gets the meter of its session instead.
                        let meter = limits.meter(webchat.company(), None, webchat.address);
                        request.extensions_mut().insert(meter);
                    }
                }
                request.extensions_mut().insert(Tenant(webchat.company()));
                request.extensions_mut().insert(webchat);
                None
            }
            Err(error) => Some(error.error_response()),
        },
        Ok(GuardOutcome::Preflight) => Some(preflight()),
        Ok(GuardOutcome::UnknownWebchat) => Some(script::unknown_webchat()),
        Err(error) => Some(error.error_response()),
    };
    let mut response = match early_response {
        // A visitor's changes are recorded as their contact's. On agents' paths, the inner layers check a company's
        // token, and record the changes as the token's instead.
        None => act_as(By::ITS_CONTACT, next.call(request)).await?.map_into_left_body(),
        Some(response) => request.into_response(response).map_into_right_body(),
    };
    // Requests of this kind have no limit: their responses get no rate headers, not even the default ones.
    if response_headers.allowance.is_some_and(|allowance| !allowance.is_limited()) {
        response.request().extensions_mut().insert(Unlimited);
    }
    response_headers.write(response.headers_mut());
    Ok(response)
}

enum GuardOutcome {
    Admitted(Webchat),
    /// A CORS preflight.
    Preflight,
    /// The page embeds a webchat that does not exist.
    UnknownWebchat,
}

/// Headers of every response, whether the request succeeds or not.
#[derive(Default)]
struct ResponseHeaders {
    /// The page's origin, once it was found to be allowed.
    origin: Option<HeaderValue>,
    /// Whether the response depends on the origin.
    varies: bool,
    allowance: Option<Allowance>,
}

impl ResponseHeaders {
    fn write(self, headers: &mut HeaderMap) {
        if self.varies {
            headers.append(VARY, HeaderValue::from_static("Origin"));
        }
        if let Some(origin) = self.origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Retry-After, X-Request-Id"));
        }
        if let Some(allowance) = self.allowance {
            allowance.write(headers);
        }
    }
}

fn check(request: &ServiceRequest, response_headers: &mut ResponseHeaders) -> ApiResult<GuardOutcome> {
    let app = request.app_data::<Data<App>>().zip(request.app_data::<Data<VisitorLimits>>());
    let (app, visitor_limits) = app.ok_or_else(|| ApiError::internal("the app is missing"))?;
    let key = request.match_info().get("publicKey").unwrap_or_default();
    let path = request.match_info().unprocessed();
    let company_and_channel = app.engine.directory().company_and_channel(key);
    let webchat = company_and_channel.as_ref().and_then(|(organization, id)| {
        let row: &ChannelRow = organization.channels.get(id)?;
        (row.kind == ChannelType::Webchat).then_some((organization, *id, row))
    });
    let Some((organization, channel, row)) = webchat else {
        // A `404` would be invisible to the page's author, because browsers do not run such a script.
        let is_script = path == paths::SCRIPT && [Method::GET, Method::HEAD].contains(request.method());
        return if is_script { Ok(GuardOutcome::UnknownWebchat) } else { Err(ApiError::not_found()) };
    };
    if !organization.company.active {
        return Err(ApiError::company_inactive());
    }
    let settings = Arc::new(row.settings()?);
    let rule = rule_of(request.method(), path);
    if rule != OriginRule::Any {
        response_headers.varies = true;
        response_headers.origin = check_origin(request.headers().get(ORIGIN), rule, &settings)?;
    }
    if *request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return Ok(GuardOutcome::Preflight);
    }
    let address = origin::of(request.peer_addr(), request.headers(), &app.trusted_proxies).map(Address::of);
    if let Some(kind) = kind_of(request.method(), path) {
        match visitor_limits.take(kind, address) {
            Ok(allowance) => response_headers.allowance = Some(allowance),
            Err(error) => {
                response_headers.allowance = Some(error.allowance);
                return Err(ApiError::rate_limited(error.retry_after_s));
            }
        }
    }
    let (organization, public_key) = (organization.clone(), row.public_key.clone());
    Ok(GuardOutcome::Admitted(Webchat { organization, channel, public_key, settings, address }))
}

fn rule_of(method: &Method, path: &str) -> OriginRule {
    if path == paths::SCRIPT || is_agent_path(path) {
        OriginRule::Any
    } else if *method == Method::GET && path != paths::SOCKET {
        OriginRule::IfPresent
    } else {
        OriginRule::Allowed
    }
}

/// The limit that a request counts against; agents have their company's own rate.
fn kind_of(method: &Method, path: &str) -> Option<RequestKind> {
    match path {
        _ if is_agent_path(path) => None,
        // Signing in may open a session.
        "/sessions" | "/identify" if *method == Method::POST => Some(RequestKind::Session),
        "/messages" if *method == Method::POST => Some(RequestKind::Message),
        _ => Some(RequestKind::Other),
    }
}

fn is_agent_path(path: &str) -> bool {
    path.strip_prefix(paths::AGENT_PATHS).is_some_and(|rest| rest.starts_with('/'))
}

fn check_origin(
    origin: Option<&HeaderValue>,
    rule: OriginRule,
    settings: &ChannelSettings,
) -> ApiResult<Option<HeaderValue>> {
    match origin {
        None if rule == OriginRule::IfPresent => Ok(None),
        Some(origin) if settings.allowed_origins.iter().any(|allowed| origins::allows(allowed, origin.as_bytes())) => {
            Ok(Some(origin.clone()))
        }
        _ => Err(ApiError::forbidden_origin()),
    }
}

fn preflight() -> HttpResponse {
    HttpResponse::build(StatusCode::NO_CONTENT)
        .insert_header((ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, OPTIONS"))
        .insert_header((ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, Content-Type, X-Request-Id"))
        .insert_header((ACCESS_CONTROL_MAX_AGE, PREFLIGHT_AGE_S))
        .finish()
}
