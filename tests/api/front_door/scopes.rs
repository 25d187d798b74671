//! Every endpoint requires the permission for its module and method, and no other permission of a token allows it.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use hotline::cli::everything;
use hotline::web::admission::modules::MODULES;
use hotline::web::admission::permissions::METHODS;
use hotline_persistence::tables::tokens::{NewToken, Permissions};

use super::table::{create_token, name, only, operations, request, wait_until_known};
use crate::support::{OwnApp, Reply};

#[test]
fn every_endpoint_belongs_to_a_module() {
    for operation in operations() {
        let module = operation.module().unwrap_or_else(|| panic!("{} belongs to no module", name(&operation)));
        assert!(MODULES.contains(&module), "{}: {module}", name(&operation));
        assert!(METHODS.contains(&operation.method), "{}", name(&operation));
    }
}

/// The module and method of every permission that an endpoint requires.
fn required_permissions() -> BTreeSet<(&'static str, &'static str)> {
    operations().iter().map(|operation| (operation.module().expect("module"), operation.method)).collect()
}

fn everything_but(module: &str, method: &str) -> Permissions {
    let mut permissions = everything();
    assert!(permissions.get_mut(module).expect("module").remove(method), "{method} of {module} was not there");
    permissions
}

#[actix_web::test]
async fn an_endpoint_needs_its_permission_and_no_other() {
    let app = OwnApp::start().await;
    let pairs = required_permissions();
    let mut keys = Vec::new();
    for (module, method) in &pairs {
        let (_, without) = create_token(
            &app,
            NewToken { name: "w", permissions: everything_but(module, method), ..Default::default() },
        )
        .await;
        let (_, with) =
            create_token(&app, NewToken { name: "o", permissions: only(module, &[method]), ..Default::default() })
                .await;
        keys.push(((*module, *method), without, with));
    }
    let (_, nothing) = create_token(&app, NewToken { name: "n", ..Default::default() }).await;
    wait_until_known(&app, &nothing).await;
    let nothing = app.api.with_key(&nothing);
    for ((module, method), without, with) in keys {
        let (without, with) = (app.api.with_key(&without), app.api.with_key(&with));
        let checks = operations().into_iter().map(async |operation| {
            let name = name(&operation);
            if (operation.module(), operation.method) == (Some(module), method) {
                let refused = Reply::of(request(&without, &operation)).await;
                refused.error(403, "ERR_API_FORBIDDEN_SCOPE");
                let message = refused.body["error"]["message"].as_str().expect("message");
                let words: Vec<&str> = message.split(' ').collect();
                assert!(words.contains(&method) && words.contains(&module), "{name}: {message}");
                let none = Reply::of(request(&nothing, &operation)).await;
                assert_eq!((none.status, none.bytes), (refused.status, refused.bytes), "{name}");
                let allowed = Reply::of(request(&with, &operation)).await;
                assert_ne!(allowed.status, 403, "{name}: {}", allowed.body);
                assert_ne!(allowed.status, 401, "{name}: {}", allowed.body);
            } else if operation.module() == Some(module) || operation.method == method {
                // Another method of the same module, or the same method of another module, does not allow it.
                Reply::of(request(&with, &operation)).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
            }
        });
        join_all(checks).await;
    }
    app.stop().await;
}
