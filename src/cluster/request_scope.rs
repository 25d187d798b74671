//! Determines the company of a request from its head.
//!
//! A wrong result only costs one more hop: the process that serves the request checks the company anyway.

use actix_http::RequestHead;
use actix_web::dev::Url;
use hotline_actors::Directory;
use hotline_persistence::CompanyId;

use crate::web::admission::auth;
use crate::web::admission::modules::{API, PANEL_API};
use crate::{hooks, panel, visitors};

/// Which processes may serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestScope {
    /// The owner of this company.
    Company(CompanyId),
    /// Every process, while it has the lease: the request belongs to no known company (a wrong token, a sign-in, an
    /// administrator of the installation).
    NoCompany,
    /// Every process, without using its memory: pages, the OpenAPI document, files, health checks.
    Public,
}

/// The scope of a request, from its head.
pub(super) fn request_scope(head: &RequestHead, directory: &Directory) -> RequestScope {
    let raw = head.uri.path();
    // The path as the router decodes it: the same path may be percent-encoded differently.
    let decoded = raw.contains('%').then(|| Url::new(head.uri.clone()));
    let path = decoded.as_ref().map_or(raw, Url::path);
    let company = if strip_base(path, API).is_some() {
        auth::company_of(&head.headers, directory)
    } else if let Some(path) = strip_base(path, PANEL_API) {
        panel::company_of(&head.headers, path)
    } else if let Some(key) = public_key(path, visitors::PATH).or_else(|| public_key(path, hooks::PATH)) {
        directory.channel(key).map(|(company, _)| company)
    } else {
        return RequestScope::Public;
    };
    company.map_or(RequestScope::NoCompany, RequestScope::Company)
}

/// The rest of the path below `base`; `None` if it is elsewhere.
fn strip_base<'a>(path: &'a str, base: &str) -> Option<&'a str> {
    path.strip_prefix(base).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The public key in a path of this pattern; the path ends with it, or continues after a slash.
fn public_key<'a>(path: &'a str, pattern: &str) -> Option<&'a str> {
    let (prefix, _) = pattern.split_once('{')?;
    path.strip_prefix(prefix)?.split('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_another_by_whole_parts() {
        assert_eq!(strip_base("/api/v1/tickets", API), Some("/tickets"));
        assert_eq!(strip_base("/api/v1", API), Some(""));
        assert_eq!((strip_base("/api/v10/tickets", API), strip_base("/panel/api", PANEL_API)), (None, None));
    }

    #[test]
    fn a_public_key_is_one_part_of_a_path() {
        assert_eq!(public_key("/webchat/abc/session", visitors::PATH), Some("abc"));
        assert_eq!(public_key("/hooks/abc", hooks::PATH), Some("abc"));
        assert_eq!(public_key("/media/1/abc", hooks::PATH), None);
    }
}
