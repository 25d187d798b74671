//! Who calls, and what they may do: an integration with its company's token, or a person who has signed in to the
//! panel.

use std::future::{Ready, ready};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use hotline_actors::directory::Token;
use hotline_actors::tickets::Author;
use hotline_actors::{Directory, Organization, clock};
use hotline_persistence::key::KeyHash;
use hotline_persistence::tables::events::By;
use hotline_persistence::tables::people::PersonId;
use hotline_persistence::tables::people::sessions::{self, SignedInPerson};
use hotline_persistence::tables::source::Source;
use hotline_persistence::{CompanyId, Db, QueueId, UserId};

use crate::web::response::error::{ApiError, ApiResult};

/// Pause before a failed look-up of a session is repeated.
const RECHECK_AFTER: Duration = Duration::from_secs(1);

/// The company that a request acts for, and who acts.
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
    Person(Arc<SignedInPerson>),
}

/// What the validity of a token depends on besides its row.
#[derive(Clone, Copy)]
pub(super) struct TokenContext {
    /// The address that the token was used from; `None`: unknown.
    pub(super) origin: Option<IpAddr>,
    /// Whether the company's plan must include the API.
    pub(super) needs_plan: bool,
}

impl Caller {
    /// A person who has signed in, in their own company, or in the company that an administrator of the installation
    /// works in.
    pub fn person(organization: Arc<Organization>, signed_in: Arc<SignedInPerson>) -> Self {
        Self { company: organization.company.id, organization, identity: Identity::Person(signed_in) }
    }

    /// The holder of a token.
    pub(super) fn integration(organization: Arc<Organization>, token: Arc<Token>, context: TokenContext) -> Self {
        Self { company: token.row.company_id, organization, identity: Identity::Token(token, context) }
    }

    /// Checks that the token, or the person's profile, permits the method in the module.
    ///
    /// # Errors
    /// `403 ERR_API_FORBIDDEN_SCOPE`.
    pub fn may(&self, method: &str, module: &str) -> ApiResult<()> {
        let (permissions, refusal): (_, fn(&str, &str) -> ApiError) = match &self.identity {
            Identity::Token(token, _) => (&token.row.permissions, ApiError::forbidden_scope),
            Identity::Person(signed_in) => (&signed_in.permissions, ApiError::forbidden_to_person),
        };
        let is_admin = self.signed_in().is_some_and(|signed_in| signed_in.person().is_admin());
        let permitted = is_admin || permissions.get(module).is_some_and(|methods| methods.contains(method));
        // Changes to a visitor's session are made as the contact: only a company's server may do so, never a person.
        if permitted && self.signed_in().is_some() && module == "webchat" && method != "GET" {
            return Err(ApiError::not_as_contact());
        }
        if permitted { Ok(()) } else { Err(refusal(method, module)) }
    }

    /// Checks that a new request of the caller would be admitted, and would show no fewer cards; long-lived streams
    /// repeat this check. While the database is unavailable, sessions count as valid. Returns how long the result is
    /// valid if nothing changes; `None`: indefinitely.
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
            Identity::Person(signed_in) => match sessions::find_live(db, signed_in).await {
                Ok(None) => return Err(ApiError::signed_out()),
                Ok(Some(signed_in)) => {
                    let remaining = Duration::try_from_secs_f64(signed_in.remaining_s).unwrap_or_default();
                    (Identity::Person(Arc::new(signed_in)), Some(remaining))
                }
                Err(_) => (self.identity.clone(), Some(RECHECK_AFTER)),
            },
        };
        let organization = directory.company(self.company).ok_or_else(ApiError::unauthorized)?;
        if !organization.company.active {
            return Err(ApiError::company_inactive());
        }
        if matches!(&identity, Identity::Person(signed_in) if !signed_in.is_open()) {
            return Err(ApiError::second_factor_required());
        }
        if matches!(identity, Identity::Token(_, context) if context.needs_plan && !organization.company.api_enabled) {
            return Err(ApiError::not_enabled());
        }
        let current_caller = Self { company: self.company, organization, identity };
        current_caller.may(method, module)?;
        let sees_fewer_cards = self.sees_every_card() && !current_caller.sees_every_card();
        if sees_fewer_cards { Err(ApiError::hidden_cards()) } else { Ok(valid_for) }
    }

    /// Whether a change of the directory may affect the caller: one of this company, or, for an administrator of the
    /// installation, any. `version` is the last seen version of the company.
    pub fn may_be_affected(&self, version: &mut u64, directory: &Directory) -> bool {
        let current = directory.company(self.company).map_or(0, |company| company.version);
        let is_changed = std::mem::replace(version, current) != current;
        is_changed || self.signed_in().is_some_and(|signed_in| signed_in.person().is_admin())
    }

    /// The person who has signed in; `None` when a token calls.
    pub fn signed_in(&self) -> Option<&SignedInPerson> {
        match &self.identity {
            Identity::Token(..) => None,
            Identity::Person(signed_in) => Some(signed_in),
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
        match self.signed_in().map(|signed_in| (signed_in.person(), &signed_in.name)) {
            Some((PersonId::User(_, id), name)) => Some((id, name.clone())),
            _ => None,
        }
    }

    /// The user whose cards are the only ones that the caller sees; `None` when the caller sees those of all users.
    pub fn cards_limited_to(&self) -> Option<UserId> {
        self.limited_user(|signed_in| !signed_in.sees_all_cards)
    }

    /// The user whose queues determine which boards the caller sees; `None` when the caller sees all boards.
    pub fn boards_limited_to(&self) -> Option<UserId> {
        self.limited_user(|signed_in| !signed_in.administers)
    }

    /// Whether the caller sees every card.
    pub fn sees_every_card(&self) -> bool {
        self.cards_limited_to().is_none() && self.boards_limited_to().is_none()
    }

    /// The user who calls, if `is_limited` holds; `None` for a token or an administrator of the installation.
    fn limited_user(&self, is_limited: impl FnOnce(&SignedInPerson) -> bool) -> Option<UserId> {
        match self.signed_in().filter(|signed_in| is_limited(signed_in))?.person() {
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

    /// The author of a change whose body may name an agent to act for. A person may name only themselves.
    ///
    /// # Errors
    /// `404 ERR_API_NOT_FOUND` when the company has no such user; `403 ERR_API_FORBIDDEN_SCOPE` when a person names
    /// another.
    pub fn author_for(&self, user: Option<UserId>) -> ApiResult<Author> {
        let Some(id) = user else { return Ok(self.author()) };
        let user = self.organization.users.get(&id).ok_or_else(ApiError::not_found)?;
        match &self.identity {
            Identity::Token(..) => Ok(Author { user: Some((id, user.name.clone())), ..self.author() }),
            Identity::Person(_) if self.user().is_some_and(|(own, _)| own == id) => Ok(self.author()),
            Identity::Person(_) => Err(ApiError::user_must_be_own()),
        }
    }

    /// The author that the events of the caller's plain changes name.
    pub fn event_author(&self) -> By {
        match &self.identity {
            Identity::Token(token, _) => By::integration(token.row.id),
            Identity::Person(signed_in) => {
                let id = match signed_in.person() {
                    PersonId::User(_, id) => Some(id),
                    PersonId::Admin(_) => None,
                };
                By::user(id, Some(signed_in.name.clone()))
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

/// Whether the token is valid when it is used from this address.
pub(super) fn is_valid(token: &Token, origin: Option<IpAddr>) -> bool {
    token.row.revoked_at.is_none()
        && token.row.expires_at.is_none_or(|expiry| clock::now() < expiry)
        && token.is_allowed_from(origin)
}
