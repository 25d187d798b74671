//! Finds the operation of a request by its method and its path as the router has decoded it. A path has many encodings;
//! with the router's own decoding, no encoding of a path can escape the audit log.

use std::collections::HashMap;

use actix_web::dev::{ResourceDef, ServiceRequest};
use actix_web::http::Method;

use crate::openapi::PathEntry;
use crate::web::admission::modules::{API, PANEL_API};

/// The action of a change that is not a known operation: the router refuses the request, and it is recorded anyway.
pub(super) const UNKNOWN: &str = "unknown";

/// Nouns whose changes are all audited, by the first segment of their path below the API's.
const AUDITED_NOUNS: [&str; 9] =
    ["account", "channels", "companies", "company", "installation", "profiles", "tokens", "users", "webhooks"];

/// Audited operations of nouns whose other changes are everyday work: an agent added to a queue sees its tickets and
/// boards, and a contact is deleted with its conversations.
const AUDITED_OPERATIONS: [(&str, &str); 3] = [
    ("PUT", "/queues/{queueId}/users/{userId}"),
    ("DELETE", "/queues/{queueId}/users/{userId}"),
    ("DELETE", "/contacts/{contactId}"),
];

/// Nouns with operations that are audited and that tokens may use. `reports` is here for its exports, which are `GET`
/// requests ([`AuditRule::IfExport`]).
pub(super) const AUDITED_NOUNS_OF_TOKENS: [&str; 7] =
    ["channels", "contacts", "profiles", "queues", "reports", "users", "webhooks"];

/// Maximum number of ids in the path of an operation.
const TARGET_IDS_MAX: usize = 2;

/// How an operation is recorded.
pub(super) enum AuditRule<'a> {
    /// The operation is recorded before it is executed, under this name.
    Before(&'a str),
    /// The operation is recorded if its response is an export.
    IfExport(&'a str),
    /// The operation is not recorded.
    Never,
}

/// A path with its methods.
struct PathOperations {
    path: ResourceDef,
    /// The method, the id of the operation, and whether it is audited.
    methods: Vec<(&'static str, String, bool)>,
}

/// All operations.
pub(super) struct Operations {
    /// By the first segment of their path. Paths with the same first segment stay in the order of the routes, in which
    /// the router compares them too: the first match is used.
    by_noun: HashMap<String, Vec<PathOperations>>,
}

impl Operations {
    /// The operations of these paths, which are below the API's.
    pub(super) fn new<'a>(paths: impl IntoIterator<Item = &'a PathEntry>) -> Self {
        let mut by_noun: HashMap<String, Vec<PathOperations>> = HashMap::new();
        for entry in paths {
            let noun = noun(&entry.path);
            let methods = entry.methods.iter().map(|operation| {
                let is_audited = operation.method != "GET"
                    && (AUDITED_NOUNS.contains(&noun)
                        || AUDITED_OPERATIONS.contains(&(operation.method, entry.path.as_str())));
                (operation.method, operation.id.clone().into_owned(), is_audited)
            });
            let path_operations =
                PathOperations { path: ResourceDef::new(entry.path.as_str()), methods: methods.collect() };
            by_noun.entry(noun.to_owned()).or_default().push(path_operations);
        }
        Self { by_noun }
    }

    /// How a request is recorded.
    pub(super) fn audit_rule(&self, request: &ServiceRequest) -> AuditRule<'_> {
        self.rule_of(request.method(), request.match_info().as_str())
    }

    fn rule_of(&self, method: &Method, decoded_path: &str) -> AuditRule<'_> {
        let is_read = method == Method::GET;
        match self.find(method.as_str(), decoded_path) {
            Some((id, _)) if is_read => AuditRule::IfExport(id),
            Some((id, true)) => AuditRule::Before(id),
            Some((_, false)) => AuditRule::Never,
            // The response to `HEAD` has no body, so it exports nothing.
            None if is_read || method == Method::HEAD => AuditRule::Never,
            None => AuditRule::Before(UNKNOWN),
        }
    }

    /// The id of an operation, and whether it is audited.
    fn find(&self, method: &str, decoded_path: &str) -> Option<(&str, bool)> {
        let path = decoded_path.strip_prefix(PANEL_API).or_else(|| decoded_path.strip_prefix(API))?;
        let path_operations =
            self.by_noun.get(noun(path))?.iter().find(|path_operations| path_operations.path.is_match(path))?;
        let operation = path_operations.methods.iter().find(|(operation_method, ..)| *operation_method == method)?;
        Some((&operation.1, operation.2))
    }
}

/// The first segment of a path below the API's.
fn noun(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

/// The id of the record in a path, or both ids, such as of a queue and its agent. Ids are parsed as the handlers parse
/// them: no spelling hides the record, and no long path fills the audit log.
pub(super) fn target(decoded_path: &str) -> Option<String> {
    let ids = decoded_path.split('/').filter_map(|part| part.parse::<i64>().ok());
    let ids: Vec<String> = ids.take(TARGET_IDS_MAX).map(|id| id.to_string()).collect();
    (!ids.is_empty()).then(|| ids.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_the_record_in_the_path() {
        assert_eq!(target("/panel/api/v1/tokens/7/rotate").as_deref(), Some("7"));
        assert_eq!(target("/panel/api/v1/queues/7/users/12").as_deref(), Some("7/12"));
        assert_eq!(target("/panel/api/v1/tokens"), None);
        assert_eq!(target(&format!("/panel/api/v1/tokens/{}7", "0".repeat(60_000))).as_deref(), Some("7"));
        assert_eq!(target("/panel/api/v1/tokens/+7").as_deref(), Some("7"));
    }

    #[test]
    fn a_target_is_short() {
        assert_eq!(target(&format!("/panel/api/v1/tokens/{}", "7".repeat(60_000))), None);
        assert_eq!(target(&format!("/panel/api/v1/tokens{}", "/7".repeat(30_000))).as_deref(), Some("7/7"));
    }
}
