//! Identifies the caller: an integration with its company's token, or a person who has signed in to the panel. A token
//! request passes these checks in the order of the contract: the token, the company, its plan, its rate, the token's
//! permission. This is middleware, so a bad token is always reported before a bad body.

use std::future::{Ready, ready};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_http::ConnectionType;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, ResponseError};
use hotline_actors::directory::Token;
use hotline_actors::tickets::Author;
use hotline_actors::{Directory, Organization, clock};
use hotline_persistence::key::KeyHash;
use hotline_persistence::tables::events::By;
use hotline_persistence::tables::people::PersonId;
use hotline_persistence::tables::people::sessions::{self, Signed};
use hotline_persistence::tables::source::Source;
use hotline_persistence::tables::tokens::KEY_PREFIX;
use hotline_persistence::{CompanyId, Db, Ownership, Presence, QueueId, UserId, key};
use ipnet::IpNet;

use super::idempotency::once;
use super::modules::module_of;
use super::permissions::METHODS;
use super::rate::{Allowance, RateLimits, Unlimited};
use super::wrong_tokens::{GUESS_DELAY, WrongTokens};
use crate::web::connections::origin::{self, Address};
use crate::web::response::error::{ApiError, ApiResult};
use crate::web::tenant::Tenant;

/// Pause before a failed look-up of a session is repeated.
const RECHECK_AFTER: Duration = Duration::from_secs(1);

/// The company a request acts for, and what its token may do.
#[derive(Clone)]
pub struct Caller {
    /// The tenant.
    pub company: CompanyId,
    /// The company's directory.
    pub organization: Arc<Organization>,
    identity: Identity,
}

/// Who acts for the company: a token, or a person.
#[derive(Clone)]
enum Identity {
    Token(Arc<Token>, TokenContext),
    Person(Arc<Signed>),
}

/// What the validity of a token depends on besides its row.
#[derive(Clone, Copy)]
struct TokenContext {
    /// Where it came from.
    origin: Option<IpAddr>,
    /// Whether the company's plan must have the API.
    needs_plan: bool,
}

impl Caller {
    /// A person who has signed in, in their own company, or in the company that an administrator of the installation
    /// works in.
    pub fn person(organization: Arc<Organization>, signed: Arc<Signed>) -> Self {
        Self { company: organization.company.id, organization, identity: Identity::Person(signed) }
    }

    /// Checks that the token, or the person's profile, permits the method in the module.
    ///
    /// # Errors
    /// `403 ERR_API_FORBIDDEN_SCOPE`.
    pub fn may(&self, method: &str, module: &str) -> ApiResult<()> {
        let (permissions, refused): (_, fn(&str, &str) -> ApiError) = match &self.identity {
            Identity::Token(token, _) => (&token.row.permissions, ApiError::forbidden_scope),
            Identity::Person(signed) => (&signed.permissions, ApiError::forbidden_to_person),
        };
        let is_admin = self.signed().is_some_and(|signed| signed.person().is_admin());
        let permitted = is_admin || permissions.get(module).is_some_and(|methods| methods.contains(method));
        // Changes to a visitor's session are made as the contact: only a company's server may do so, never a person.
        if permitted && self.signed().is_some() && module == "webchat" && method != "GET" {
            return Err(ApiError::not_as_contact());
        }
        if permitted { Ok(()) } else { Err(refused(method, module)) }
    }

    /// Checks that a new request of the caller would be admitted, and would show no fewer cards; long-lived streams repeat
    /// this check. While the database is unavailable, sessions count as valid. Returns how long the result is valid if
    /// nothing changes; `None`: indefinitely.
    ///
    /// # Errors
    /// The error that such a request would get.
    pub async fn revalidate(
        &self,
        method: &str,
        module: &str,
        directory: &Directory,
        db: Db<'_>,
    ) -> ApiResult<Option<Duration>> {
        let (identity, valid_for) = match &self.identity {
            Identity::Token(token, context) => {
                let hash = KeyHash::try_from(token.row.hash.as_slice()).map_err(|_| ApiError::unauthorized())?;
                let token = directory.token(&hash).filter(|token| is_valid(token, context.origin));
                let token = token.ok_or_else(ApiError::unauthorized)?;
                let remaining = token.row.expires_at.map(|expiry| (expiry - clock::now()).to_std().unwrap_or_default());
                (Identity::Token(token, *context), remaining)
            }
            Identity::Person(signed) => match sessions::lives(db, signed).await {
                Ok(None) => return Err(ApiError::signed_out()),
                Ok(Some(signed)) => {
                    let remaining = Duration::try_from_secs_f64(signed.lives_s).unwrap_or_default();
                    (Identity::Person(Arc::new(signed)), Some(remaining))
                }
                Err(_) => (self.identity.clone(), Some(RECHECK_AFTER)),
            },
        };
        let organization = directory.company(self.company).ok_or_else(ApiError::unauthorized)?;
        if !organization.company.active {
            return Err(ApiError::company_inactive());
        }
        if matches!(identity, Identity::Token(_, context) if context.needs_plan && !organization.company.api_enabled) {
            return Err(ApiError::not_enabled());
        }
        let now = Self { company: self.company, organization, identity };
        now.may(method, module)?;
        if self.sees_every_card() && !now.sees_every_card() { Err(ApiError::hidden_cards()) } else { Ok(valid_for) }
    }

    /// Whether a change of the directory may affect the caller: one of this company, or, for an administrator of the
    /// installation, any. `version` is the last seen version of the company.
    pub fn may_be_affected(&self, version: &mut u64, directory: &Directory) -> bool {
        let current = directory.company(self.company).map_or(0, |company| company.version);
        let is_changed = std::mem::replace(version, current) != current;
        is_changed || self.signed().is_some_and(|signed| signed.person().is_admin())
    }

    /// The person who has signed in; `None` when a token calls.
    pub fn signed(&self) -> Option<&Signed> {
        match &self.identity {
            Identity::Token(..) => None,
            Identity::Person(signed) => Some(signed),
        }
    }

    /// The token that calls; `None` when a person calls.
    pub fn token(&self) -> Option<&Token> {
        match &self.identity {
            Identity::Token(token, _) => Some(token),
            Identity::Person(_) => None,
        }
    }

    /// The user of the person who calls; `None` when a token or an administrator of the installation calls.
    pub fn user(&self) -> Option<(UserId, String)> {
        match self.signed().map(|signed| (signed.person(), &signed.name)) {
            Some((PersonId::User(_, id), name)) => Some((id, name.clone())),
            _ => None,
        }
    }

    /// The user whose cards are the only ones that the caller sees; `None` when the caller sees all cards.
    pub fn cards_limited_to(&self) -> Option<UserId> {
        self.user_if(|signed| !signed.sees_all_cards)
    }

    /// The user whose queues determine which boards the caller sees; `None` when the caller sees all boards.
    pub fn boards_limited_to(&self) -> Option<UserId> {
        self.user_if(|signed| !signed.administers)
    }

    /// Whether the caller sees every card.
    pub fn sees_every_card(&self) -> bool {
        self.cards_limited_to().is_none() && self.boards_limited_to().is_none()
    }

    fn user_if(&self, is: impl FnOnce(&Signed) -> bool) -> Option<UserId> {
        match self.signed().filter(|signed| is(signed))?.person() {
            PersonId::User(_, id) => Some(id),
            PersonId::Admin(_) => None,
        }
    }

    /// The author that is recorded for the caller's changes.
    pub fn author(&self) -> Author {
        match &self.identity {
            Identity::Token(token, _) => Author { integration: Some(token.row.id), ..Author::API },
            Identity::Person(_) => Author { user: self.user(), integration: None, source: Source::User },
        }
    }

    /// The author when the body may name an agent to act for. A person may name only themselves.
    ///
    /// # Errors
    /// `404 ERR_API_NOT_FOUND` when the company has no such user; `403 ERR_API_FORBIDDEN_SCOPE` when a person names
    /// somebody else.
    pub fn author_for(&self, user: Option<UserId>) -> ApiResult<Author> {
        let Some(id) = user else { return Ok(self.author()) };
        let user = self.organization.users.get(&id).ok_or_else(ApiError::not_found)?;
        match &self.identity {
            Identity::Token(..) => Ok(Author { user: Some((id, user.name.clone())), ..self.author() }),
            Identity::Person(_) if self.user().is_some_and(|(own, _)| own == id) => Ok(self.author()),
            Identity::Person(_) => Err(ApiError::user_must_be_own()),
        }
    }

    /// The author of the caller's plain changes.
    pub fn by(&self) -> By {
        match &self.identity {
            Identity::Token(token, _) => By::integration(token.row.id),
            Identity::Person(signed) => {
                let id = match signed.person() {
                    PersonId::User(_, id) => Some(id),
                    PersonId::Admin(_) => None,
                };
                By::user(id, Some(signed.name.clone()))
            }
        }
    }

    /// Checks that the queue of a filter or a body belongs to the company.
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
        // Without the middleware there is no caller, so a route outside it cannot be served by accident.
        ready(request.extensions().get::<Self>().cloned().ok_or_else(ApiError::unauthorized))
    }
}

/// Everything that is needed to identify callers.
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
            once(request, next).await?
        }
        Err(refused) => {
            let is_guesser = refused.status == StatusCode::UNAUTHORIZED && counts_as_guess(&request);
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

/// A company whose presence was acquired before its request reached the handler: by the edge of a cluster, which must
/// know that the company can no longer move.
pub struct AcquiredPresence {
    company: CompanyId,
    /// None once [`register_presence`] has moved it to the request's extensions.
    presence: Option<Presence>,
}

impl AcquiredPresence {
    /// Holds the presence of this company.
    pub fn new(company: CompanyId, presence: Presence) -> Self {
        Self { company, presence: Some(presence) }
    }

    /// Whether the request already holds the presence of this company.
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

/// Registers the request while its company is served here. Dropping the company waits until the request ends, even when
/// its caller has disconnected.
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

/// Counts a request with a wrong token; returns whether its address guesses. The answer is the same `401` in any case.
fn counts_as_guess(request: &ServiceRequest) -> bool {
    let Some(admission) = request.app_data::<Data<Admission>>() else { return false };
    let origin = origin::of(request.peer_addr(), request.headers(), &admission.trusted_proxies);
    admission.wrong_tokens.count(origin.map(Address::of))
}

/// Runs every check in order. The response carries the company's allowance as soon as the company is known.
fn check(request: &ServiceRequest, allowance: &mut Option<Allowance>) -> ApiResult<Caller> {
    let admission = request.app_data::<Data<Admission>>().zip(request.app_data::<Data<RateLimits>>());
    let (admission, rates) = admission.ok_or_else(|| ApiError::internal("the admission state is missing"))?;
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
    permit(request, &caller)?;
    Ok(caller)
}

/// The company of the token in the request's headers, whether the token is valid or not.
pub fn company_of(headers: &HeaderMap, directory: &Directory) -> Option<CompanyId> {
    let key = bearer_in(headers).filter(|key| key.len() == KEY_LENGTH)?;
    Some(directory.token(&key::hash(key))?.row.company_id)
}

/// The holder of the token. Every invalid token takes the same path (hash, look up, refuse), so timing reveals nothing.
fn identify(request: &ServiceRequest, directory: &Directory, context: TokenContext) -> Option<Caller> {
    // A key of another length cannot be valid. A stand-in of the right length replaces it, so that hashing takes
    // equally long.
    let key = bearer(request).filter(|key| key.len() == KEY_LENGTH).unwrap_or(DUMMY_KEY);
    let token = directory.token(&key::hash(key))?;
    if !is_valid(&token, context.origin) {
        return None;
    }
    let organization = directory.company(token.row.company_id)?;
    token.note_use(clock::now());
    Some(Caller { company: token.row.company_id, organization, identity: Identity::Token(token, context) })
}

/// Length of a whole key, in characters.
const KEY_LENGTH: usize = KEY_PREFIX.len() + key::KEY_CHARACTERS;

/// A key that never exists, because of its last character.
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

fn is_valid(token: &Token, origin: Option<IpAddr>) -> bool {
    token.row.revoked_at.is_none()
        && token.row.expires_at.is_none_or(|expiry| clock::now() < expiry)
        && token.is_allowed_from(origin)
}

/// Checks that the caller may use this method on this path. A path outside every module is left to the router, which
/// answers 404.
///
/// # Errors
/// `403 ERR_API_FORBIDDEN_SCOPE`.
pub(crate) fn permit(request: &ServiceRequest, caller: &Caller) -> ApiResult<()> {
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
    fn the_stand_in_is_as_long_as_a_key_and_is_none() {
        assert_eq!(DUMMY_KEY.len(), KEY_LENGTH);
        assert!(!DUMMY_KEY.bytes().skip(KEY_PREFIX.len()).all(|byte| byte.is_ascii_alphanumeric()));
    }
}
