//! Permissions in the notation of the command line, for tokens and profiles.

use hotline_persistence::tables::tokens::Permissions;

use super::Failure;
use crate::web::admission::modules::MODULES;
use crate::web::admission::permissions::{METHODS, everything};

/// All permissions, or those of the `MODULE:METHODS` arguments.
pub(super) fn parse_permissions(all: bool, arguments: &[String]) -> Result<Permissions, Failure> {
    if all {
        return Ok(everything());
    }
    let mut permissions = Permissions::new();
    for permission in arguments {
        let (module, methods) =
            permission.split_once(':').ok_or_else(|| format!("--permission `{permission}` must be MODULE:METHODS"))?;
        if !MODULES.contains(&module) {
            return Err(format!("--permission: unknown module `{module}`; modules are {}", MODULES.join(", ")).into());
        }
        for method in methods.split(',') {
            if !METHODS.contains(&method) {
                return Err(
                    format!("--permission: unknown method `{method}`; methods are {}", METHODS.join(", ")).into()
                );
            }
            permissions.entry(module.to_owned()).or_default().insert(method.to_owned());
        }
    }
    Ok(permissions)
}
