//! Permissions: methods by module, of tokens and of profiles.

use std::collections::BTreeSet;

use hotline_persistence::tables::tokens::Permissions;
use serde_json::{Value, json};

use super::modules::MODULES;
use crate::web::request::values::FromField;

/// The methods that a permission can name. The router has no routes for other methods, so they need no permission.
pub const METHODS: &[&str] = &["GET", "POST", "PUT", "DELETE"];

/// Every method of every module.
pub fn everything() -> Permissions {
    let methods: BTreeSet<String> = METHODS.iter().map(|method| (*method).to_owned()).collect();
    MODULES.iter().map(|module| ((*module).to_owned(), methods.clone())).collect()
}

/// The permissions of a token or a profile, as a request sends them. A module without methods is omitted.
pub struct Permitted(pub Permissions);

impl FromField for Permitted {
    fn from_json(value: &Value) -> Result<Self, String> {
        let modules = value.as_object().ok_or("must be an object of lists of methods by module")?;
        let mut permissions = Permissions::new();
        for (module, methods) in modules {
            if !MODULES.contains(&module.as_str()) {
                return Err(format!("contains an unknown module; must be one of {}", MODULES.join(", ")));
            }
            let methods = methods.as_array().ok_or_else(|| format!("must have a list of methods for {module}"))?;
            let methods = methods.iter().map(|value| {
                let method = value.as_str().filter(|method| METHODS.contains(method));
                method.map(str::to_owned).ok_or_else(|| {
                    format!("contains an unknown method of {module}; must be one of {}", METHODS.join(", "))
                })
            });
            let methods = methods.collect::<Result<BTreeSet<String>, String>>()?;
            if !methods.is_empty() {
                permissions.insert(module.clone(), methods);
            }
        }
        Ok(Self(permissions))
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "description": "Allowed methods, by module",
            "propertyNames": {"enum": MODULES},
            "additionalProperties": {"type": "array", "items": {"type": "string", "enum": METHODS}},
            "example": {"tickets": ["GET", "POST"]},
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_with_unknown_modules_or_methods_are_refused() {
        let read = |value: Value| Permitted::from_json(&value).map(|permitted| permitted.0);
        let permissions = read(json!({"tickets": ["POST", "GET", "GET"], "crm": []})).expect("permissions");
        assert_eq!(serde_json::to_value(permissions).expect("json"), json!({"tickets": ["GET", "POST"]}));
        assert_eq!(read(json!({})), Ok(Permissions::new()));
        for bad in [
            json!([]),
            json!("all"),
            json!({"nothing": ["GET"]}),
            json!({"crm": "GET"}),
            json!({"crm": ["PATCH"]}),
            json!({"crm": [1]}),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
        assert_eq!(read(serde_json::to_value(everything()).expect("json")), Ok(everything()));
    }
}
