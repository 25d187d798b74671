//! The company whose limits apply to a request.

use hotline_persistence::CompanyId;

/// The company whose limits apply to a request; the guard that admits the request sets it.
#[derive(Clone, Copy, Debug)]
pub struct Tenant(pub CompanyId);
