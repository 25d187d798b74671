//! The company of a request: the one that it names, and the one whose limits apply to it.

use hotline_persistence::CompanyId;

/// The header in which an administrator of the installation names the company they work in.
pub const COMPANY_HEADER: &str = "hotline-company";

/// The company whose limits apply to a request; the guard that admits the request sets it.
#[derive(Clone, Copy, Debug)]
pub struct Tenant(pub CompanyId);
