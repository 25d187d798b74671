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

/// The statuses of errors that each of these extractors may cause.
const ERROR_STATUSES: [u16; 5] = [401, 403, 429, 500, 503];

fn describe(operation: &mut Operation) {
    operation.access = Access::Person;
    operation.is_limited = true;
    operation.errors.extend(ERROR_STATUSES);
}

macro_rules! extracted {
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

/// Any person who has signed in.
#[derive(Clone)]
pub struct PanelSession(pub Arc<SignedInPerson>);

extracted!(PanelSession, |request| {
    // Only the panel's checks set this extension, so a route without them cannot be served by accident.
    request.extensions().get::<Self>().cloned().ok_or_else(ApiError::signed_out)
});

/// Any person in a company.
pub struct CompanyMember {
    /// The company.
    pub company: CompanyId,
    /// The person.
    signed: Arc<SignedInPerson>,
}

extracted!(CompanyMember, |request| {
    let extensions = request.extensions();
    let caller = extensions.get::<Caller>().ok_or_else(ApiError::signed_out)?;
    let PanelSession(signed) = extensions.get::<PanelSession>().cloned().ok_or_else(ApiError::signed_out)?;
    Ok(Self { company: caller.company, signed })
});

/// An administrator of a company, by their profile or as an administrator of the installation.
pub struct Administrator {
    /// The company.
    pub company: CompanyId,
    /// The person.
    pub signed: Arc<SignedInPerson>,
}

impl Administrator {
    /// Whether the person is an administrator of the installation.
    pub fn is_installation_admin(&self) -> bool {
        self.signed.person().is_admin()
    }
}

extracted!(Administrator, |request| {
    let CompanyMember { company, signed } = CompanyMember::from_request(request, &mut Payload::None).into_inner()?;
    if signed.administers { Ok(Self { company, signed }) } else { Err(ApiError::administrators_only()) }
});

/// An administrator of the installation.
pub struct InstallationAdmin;

extracted!(InstallationAdmin, |request| {
    let PanelSession(signed) = request.extensions().get::<PanelSession>().cloned().ok_or_else(ApiError::signed_out)?;
    match signed.person() {
        PersonId::Admin(_) => Ok(Self),
        PersonId::User(..) => Err(ApiError::administrators_only()),
    }
});
