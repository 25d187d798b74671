//! The modules of the API, which a token's permissions name.

/// Path prefix of the API.
pub const API: &str = "/api/v1";

/// Path prefix of the panel's API.
pub const PANEL_API: &str = "/panel/api/v1";

/// Every module, in the order of the contract.
pub const MODULES: &[&str] = &[
    "contacts",
    "tickets",
    "messages",
    "channels",
    "webchat",
    "tags",
    "queues",
    "wrapupTypes",
    "users",
    "profiles",
    "schedules",
    "quickMessages",
    "campaigns",
    "crm",
    "products",
    "customFields",
    "webhooks",
    "reports",
    "events",
];

/// The module that a path belongs to.
pub fn module_of(path: &str) -> Option<&'static str> {
    if path.starts_with("/webchat/") {
        // Of the paths of a webchat, only those of its tickets take a company's token.
        return Some("tickets");
    }
    let noun = path.strip_prefix(PANEL_API).or_else(|| path.strip_prefix(API))?.strip_prefix('/')?.split('/').next()?;
    Some(match noun {
        "contacts" => "contacts",
        "tickets" => "tickets",
        "messages" => "messages",
        "channels" => "channels",
        "webchat" => "webchat",
        "tags" => "tags",
        "queues" => "queues",
        "wrapup-types" | "wrapup-categories" => "wrapupTypes",
        "users" => "users",
        "profiles" => "profiles",
        "schedules" => "schedules",
        "quick-messages" => "quickMessages",
        "campaigns" | "contact-lists" => "campaigns",
        "crm" => "crm",
        "products" | "product-categories" => "products",
        "custom-fields" | "global-variables" => "customFields",
        "webhooks" => "webhooks",
        "reports" | "dashboards" => "reports",
        "events" => "events",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{MODULES, module_of};

    #[test]
    fn a_path_belongs_to_a_module_that_permissions_can_name() {
        for noun in
            ["contacts", "wrapup-categories", "contact-lists", "product-categories", "global-variables", "dashboards"]
        {
            let module = module_of(&format!("/api/v1/{noun}/7"));
            assert!(module.is_some_and(|module| MODULES.contains(&module)), "{noun}");
        }
        assert_eq!(module_of("/api/v1/nothing"), None);
        assert_eq!(module_of("/api/v1"), None);
    }
}
