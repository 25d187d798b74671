//! Who calls: an integration with its company's token, or a person who has signed in to the panel. For a token, what must hold before anything of the request is looked at, in the order of the contract: the
//! token, the company, its plan, its rate, the token's permission. It is middleware, so that no bad body is ever
//! answered before a bad token.

use std::future::{Ready, ready};
use std::net::IpAddr;
use std::sync::Arc;

use actix_http::ConnectionType;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, ResponseError};
use chrono::Utc;
use hotline_actors::directory::Token;
use hotline_actors::tickets::Author;
use hotline_actors::{Directory, Organization};
use hotline_persistence::key::KeyHash;
use hotline_persistence::tables::people::PersonId;
use hotline_persistence::tables::people::sessions::{self, Signed};
use hotline_persistence::tables::source::Source;
use hotline_persistence::tables::tokens::KEY_PREFIX;
use hotline_persistence::{CompanyId, Db, Ownership, Presence, QueueId, UserId, key};
use ipnet::IpNet;

use super::aside::Tenant;
use super::idempotency::once;
use super::modules::module_of;
use super::origin::{self, Address};
use super::permissions::METHODS;
use super::rate::{Allowance, RateLimits, Unlimited};
use super::wrong_tokens::WrongTokens;
use super::{ApiError, ApiResult};

/// The company a request speaks for, and what its token may do.
#[derive(Clone)]
pub struct Caller {
    /// The tenant.
    pub company: CompanyId,
    /// Its directory.
    pub organization: Arc<Organization>,
    by: By,
}

/// On whose behalf.
#[derive(Clone)]
enum By {
    Token(Arc<Token>),
    Person(Arc<Signed>),
}

impl Caller {
    /// A person who has signed in, in a company: their own, or whichever an administrator of the installation works in.
    pub fn person(organization: Arc<Organization>, signed: Arc<Signed>) -> Self {
        Self { company: organization.company.id, organization, by: By::Person(signed) }
    }

    /// Whether the token, or the person's profile, permits the method in the module.
    ///
    /// # Errors
    /// `403 ERR_API_FORBIDDEN_SCOPE`.
    pub fn may(&self, method: &str, module: &str) -> ApiResult<()> {
        let (permissions, refused): (_, fn(&str, &str) -> ApiError) = match &self.by {
            By::Token(token) => (&token.row.permissions, ApiError::forbidden_scope),
            By::Person(signed) if signed.person().is_admin() => return Ok(()),
            By::Person(signed) => (&signed.permissions, ApiError::forbidden_to_person),
        };
        let permitted = permissions.get(module).is_some_and(|methods| methods.contains(method));
        if permitted { Ok(()) } else { Err(refused(method, module)) }
    }

    /// Whether the token or the session still permits the method in the module: what lasts longer than a request asks
    /// again. While the database is away, nobody knows of a session that it has ended.
    pub async fn stands(&self, method: &str, module: &str, directory: &Directory, db: Db<'_>) -> bool {
        let Some(organization) = directory.company(self.company).filter(|known| known.company.active) else {
            return false;
        };
        let by = match &self.by {
            By::Token(token) => {
                let Ok(hash) = KeyHash::try_from(token.row.hash.as_slice()) else { return false };
                let Some(token) = directory.token(&hash) else { return false };
                if token.row.revoked_at.is_some() || token.row.expires_at.is_some_and(|expiry| expiry <= Utc::now()) {
                    return false;
                }
                By::Token(token)
            }
            By::Person(signed) => match sessions::lives(db, signed).await {
                Ok(None) => return false,
                Ok(Some(signed)) => By::Person(Arc::new(signed)),
                Err(_) => self.by.clone(),
            },
        };
        Self { company: self.company, organization, by }.may(method, module).is_ok()
    }

    /// Who has signed in; none when a token calls.
    pub fn signed(&self) -> Option<&Signed> {
        match &self.by {
            By::Token(_) => None,
            By::Person(signed) => Some(signed),
        }
    }

    /// The user who calls themselves; none when a token calls, or an administrator of the installation.
    fn user(&self) -> Option<(UserId, String)> {
        match self.signed().map(|signed| (signed.person(), &signed.name)) {
            Some((PersonId::User(_, id), name)) => Some((id, name.clone())),
            _ => None,
        }
    }

    /// The user whose own cards, and the boards of whose queues, are all that the caller sees of sales; none when they see
    /// all.
    pub fn sees_own_of(&self) -> Option<UserId> {
        let signed = self.signed().filter(|signed| !signed.sees_all_cards)?;
        match signed.person() {
            PersonId::User(_, id) => Some(id),
            PersonId::Admin(_) => None,
        }
    }

    /// As whom the caller does what it does.
    pub fn author(&self) -> Author {
        match &self.by {
            By::Token(token) => Author { integration: Some(token.row.id), ..Author::API },
            By::Person(_) => Author { user: self.user(), integration: None, source: Source::User },
        }
    }

    /// The same on behalf of an agent, if one is named. A person acts for nobody but themselves.
    ///
    /// # Errors
    /// `404 ERR_API_NOT_FOUND` when they are none of the company's; `403 ERR_API_FORBIDDEN_SCOPE` when a person names
    /// somebody else.
    pub fn author_for(&self, user: Option<UserId>) -> ApiResult<Author> {
        let Some(id) = user else { return Ok(self.author()) };
        let user = self.organization.users.get(&id).ok_or_else(ApiError::not_found)?;
        match &self.by {
            By::Token(_) => Ok(Author { user: Some((id, user.name.clone())), ..self.author() }),
            By::Person(_) if self.user().is_some_and(|(own, _)| own == id) => Ok(self.author()),
            By::Person(_) => Err(ApiError::not_in_anothers_name()),
        }
    }

    /// The queue a filter or a body names is the company's.
    ///
    /// # Errors
    /// `404 ERR_API_NOT_FOUND`.
    pub fn check_queue(&self, id: Option<QueueId>) -> ApiResult<()> {
        let is_known = id.is_none_or(|id| self.organization.queues.contains_key(&id));
        if is_known { Ok(()) } else { Err(ApiError::not_found()) }
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

/// What identifies callers.
pub struct Admission {
    /// Every company and token.
    pub directory: Directory,
    /// Which companies are served here.
    pub ownership: Ownership,
    /// Whether the company's plan does not matter.
    pub on_premise: bool,
    /// Who is believed when it says for whom a connection was made.
    pub trusted_proxies: Vec<IpNet>,
    /// Who has shown wrong tokens.
    pub wrong_tokens: WrongTokens,
}

/// Lets through who may, and once what carries a key.
///
/// # Errors
/// Whatever stands behind says; refusals are answers.
pub async fn admit<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let mut allowance = None;
    let admitted = match check(&request, &mut allowance) {
        Ok(caller) => stay(&request, caller.company).await.map(|()| caller),
        Err(refused) => Err(refused),
    };
    let mut response = match admitted {
        Ok(caller) => {
            request.extensions_mut().insert(Tenant(caller.company));
            request.extensions_mut().insert(caller);
            once(request, next).await?
        }
        Err(refused) => {
            let is_guesser = refused.status == StatusCode::TOO_MANY_REQUESTS && allowance.is_none();
            let mut response = request.into_response(refused.error_response());
            if is_guesser {
                // Each further guess costs a connection.
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

/// A company whose door was passed before its request came to a handler: by the edge of a cluster, which must know that the
/// company does not move any more.
pub struct Entered {
    company: CompanyId,
    /// None: it lies where every request's does ([`stay`]).
    presence: Option<Presence>,
}

impl Entered {
    /// Of a company.
    pub fn new(company: CompanyId, presence: Presence) -> Self {
        Self { company, presence: Some(presence) }
    }

    /// Whether the request has passed this company's door.
    pub fn has(request: &impl HttpMessage, company: CompanyId) -> bool {
        request.extensions().get::<Self>().is_some_and(|entered| entered.company == company)
    }

    /// Puts the presence where a handler finds it that lasts and is not to hold up a move.
    fn hand_over(request: &impl HttpMessage) {
        let mut extensions = request.extensions_mut();
        let presence = extensions.get_mut::<Self>().and_then(|entered| entered.presence.take());
        if let Some(presence) = presence {
            extensions.insert(presence);
        }
    }
}

/// Lets a request in while its company is served here; whoever drops the company waits for it, however long it goes on
/// without its caller.
pub(crate) async fn stay(request: &ServiceRequest, company: CompanyId) -> ApiResult<()> {
    if Entered::has(request, company) {
        Entered::hand_over(request);
        return Ok(());
    }
    let admission = request.app_data::<Data<Admission>>().ok_or_else(|| ApiError::internal("nobody is told apart"))?;
    let presence = admission.ownership.enter(company).await?;
    request.extensions_mut().insert(presence);
    Ok(())
}

/// Every check, in order. The answer shows the company's allowance as soon as the company is known.
fn check(request: &ServiceRequest, allowance: &mut Option<Allowance>) -> ApiResult<Caller> {
    let admission = request.app_data::<Data<Admission>>().zip(request.app_data::<Data<RateLimits>>());
    let (admission, rates) = admission.ok_or_else(|| ApiError::internal("nobody is told apart"))?;
    let origin = origin::of(request.peer_addr(), request.headers(), &admission.trusted_proxies);
    let caller = identify(request, &admission.directory, origin);
    let caller = caller.ok_or_else(|| admission.wrong_tokens.refuse(origin.map(Address::of)))?;
    let company = &caller.organization.company;
    if !company.active {
        return Err(ApiError::company_inactive());
    }
    if !company.api_enabled && !admission.on_premise {
        return Err(ApiError::not_enabled());
    }
    match rates.take(company.id, company.rate_per_minute) {
        Ok(left) => *allowance = Some(left),
        Err(refused) => {
            *allowance = Some(refused.allowance);
            return Err(ApiError::rate_limited(refused.retry_after_s));
        }
    }
    permit(request, &caller)?;
    Ok(caller)
}

/// Whose token the headers of a request show, whether it is good or not.
pub fn company_of(headers: &HeaderMap, directory: &Directory) -> Option<CompanyId> {
    let key = bearer_in(headers).filter(|key| key.len() == KEY_LENGTH)?;
    Some(directory.token(&key::hash(key))?.row.company_id)
}

/// Who holds the token. The way is the same for every token that is no good: hashed, looked up, refused.
fn identify(request: &ServiceRequest, directory: &Directory, origin: Option<IpAddr>) -> Option<Caller> {
    // A key of another length cannot be one: a stand-in of the right length takes its place, and as long.
    let key = bearer(request).filter(|key| key.len() == KEY_LENGTH).unwrap_or(NOBODY);
    let token = directory.token(&key::hash(key))?;
    if !is_good(&token, origin) {
        return None;
    }
    let organization = directory.company(token.row.company_id)?;
    token.note_use(Utc::now());
    Some(Caller { company: token.row.company_id, organization, by: By::Token(token) })
}

/// Characters of a whole key.
const KEY_LENGTH: usize = KEY_PREFIX.len() + key::KEY_CHARACTERS;

/// Nobody's key: it has a character no key has.
const NOBODY: &str = "sk_live_-------------------------------!";

/// The token a request shows.
pub(crate) fn bearer(request: &ServiceRequest) -> Option<&str> {
    bearer_in(request.headers())
}

/// The same of a request's headers.
pub(crate) fn bearer_in(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

fn is_good(token: &Token, origin: Option<IpAddr>) -> bool {
    token.row.revoked_at.is_none()
        && token.row.expires_at.is_none_or(|expiry| Utc::now() < expiry)
        && token.is_allowed_from(origin)
}

/// Whether the caller may do what the path and the method say. A path outside every module is left to the router, which has
/// nothing there.
///
/// # Errors
/// `403 ERR_API_FORBIDDEN_SCOPE`.
pub(crate) fn permit(request: &ServiceRequest, caller: &Caller) -> ApiResult<()> {
    let method = request.method().as_str();
    // The path as the router reads it: another spelling must not pass by here.
    match module_of(request.match_info().as_str()) {
        // What may be read may be looked for.
        Some(module) if method == "HEAD" => caller.may("GET", module),
        Some(module) if METHODS.contains(&method) => caller.may(method, module),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stand_in_is_as_long_as_a_key_and_is_none() {
        assert_eq!(NOBODY.len(), KEY_LENGTH);
        assert!(!NOBODY.bytes().skip(KEY_PREFIX.len()).all(|byte| byte.is_ascii_alphanumeric()));
    }
}
