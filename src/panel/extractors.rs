//! Extractors for the signed-in person.

use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use hotline_persistence::CompanyId;
use hotline_persistence::tables::people::PersonId;
use hotline_persistence::tables::people::sessions::SignedInPerson;

use crate::openapi::{Access, Operation, OperationPart};
use crate::web::response::schema::Schemas;
use crate::web::{ApiError, ApiResult, Caller};

/// The error statuses of every operation with one of these extractors.
const ERROR_STATUSES: [u16; 5] = [401, 403, 429, 500, 503];

fn describe(operation: &mut Operation) {
    operation.access = Access::Person;
    operation.is_rate_limited = true;
    operation.errors.extend(ERROR_STATUSES);
}

macro_rules! impl_extractor {
    ($name:ty, $read:expr) => {
        impl FromRequest for $name {
            type Error = ApiError;
            type Future = Ready<Result<Self, ApiError>>;

            fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
                let read: fn(&HttpRequest) -> ApiResult<Self> = $read;
                ready(read(request))
            }
        }

        impl OperationPart for $name {
            fn describe(operation: &mut Operation, _: &mut Schemas) {
                describe(operation);
            }
        }
    };
}

/// The session of a person, which may still lack its second factor where the checks permit that.
#[derive(Clone)]
pub struct PanelSession(pub Arc<SignedInPerson>);

impl_extractor!(PanelSession, |request| {
    // Only the panel's checks set this extension, so a route without them cannot be served by accident.
    request.extensions().get::<Self>().cloned().ok_or_else(ApiError::signed_out)
});

/// A person who works in a company: its user, or an administrator of the installation.
pub struct CompanyMember {
    /// The company.
    pub company: CompanyId,
    /// The person.
    signed_in: Arc<SignedInPerson>,
}

impl_extractor!(CompanyMember, |request| {
    let extensions = request.extensions();
    let caller = extensions.get::<Caller>().ok_or_else(ApiError::signed_out)?;
    let PanelSession(signed_in) = extensions.get::<PanelSession>().cloned().ok_or_else(ApiError::signed_out)?;
    Ok(Self { company: caller.company, signed_in })
});

/// An administrator of a company, by their profile or as an administrator of the installation.
pub struct Administrator {
    /// The company.
    pub company: CompanyId,
    /// The person.
    pub signed_in: Arc<SignedInPerson>,
}

impl Administrator {
    /// Whether the person is an administrator of the installation.
    pub fn is_installation_admin(&self) -> bool {
        self.signed_in.person().is_admin()
    }
}

impl_extractor!(Administrator, |request| {
    let CompanyMember { company, signed_in } = CompanyMember::from_request(request, &mut Payload::None).into_inner()?;
    if signed_in.administers { Ok(Self { company, signed_in }) } else { Err(ApiError::administrators_only()) }
});

/// An administrator of the installation.
pub struct InstallationAdmin;

impl_extractor!(InstallationAdmin, |request| {
    let PanelSession(signed_in) =
        request.extensions().get::<PanelSession>().cloned().ok_or_else(ApiError::signed_out)?;
    match signed_in.person() {
        PersonId::Admin(_) => Ok(Self),
        PersonId::User(..) => Err(ApiError::administrators_only()),
    }
});
