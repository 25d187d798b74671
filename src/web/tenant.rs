//! The company that a request counts for.

use hotline_persistence::CompanyId;

/// The company whose quota a request uses; the guard that admits the request sets it.
#[derive(Clone, Copy, Debug)]
pub struct Tenant(pub CompanyId);
