//! The lists that only people, and no tokens, can change or read.

use std::time::Duration;

use hotline_actors::clock;
use reqwest::Method;
use serde_json::{Value, json};

use super::List;
use crate::messages::templates::{Phone, plain};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Person, Provider};

/// The operations that the test of this file checks.
pub const LISTS: [&str; 8] = [
    "listAuditLog",
    "listChannelTemplates",
    "listChannels",
    "listCompanies",
    "listInstallationAuditLog",
    "listOwnSessions",
    "listProfiles",
    "listTokens",
];

#[actix_web::test]
async fn lists_of_people_are_read_by_cursor_while_they_change() {
    let app = OwnApp::start_with(TestOptions::default()).await;
    let (root, _) = Person::admin(&app, "root@example.com").await;
    let admin = &root.in_company(app.company.id);
    let provider = Provider::start().await;
    let phone = Phone::connect(&app, &provider).await;
    let templates = (0..9).map(|number| plain(&format!("t{}", number / 2), ["en_US", "pt_BR"][number % 2], "Hello"));
    provider.has_templates(&phone.account, templates.collect());
    for _ in 0..7 {
        let mut session = Person::nobody(&app);
        let reply = session.sign_in("root@example.com", json!({})).await;
        assert_eq!(reply.data(200)["state"], "open");
    }
    let root = &root;
    let in_company = |method: Method, path: &str| admin.request(method, path);
    let in_installation = |method: Method, path: &str| root.request(method, path);
    let permissions = json!({"contacts": ["GET"]});
    let profile = {
        let permissions = permissions.clone();
        move |number: usize| {
            let body = json!({"name": format!("Some {number}"), "permissions": permissions});
            (Method::POST, "/profiles".to_owned(), body)
        }
    };
    let token = move |number: usize| {
        let body = json!({"name": format!("Some {number}"), "permissions": permissions});
        (Method::POST, "/tokens".to_owned(), body)
    };
    let company = |number: usize| (Method::POST, "/companies".to_owned(), json!({"name": format!("Some {number}")}));
    let lists = vec![
        List::new("listProfiles", "/profiles", in_company)
            .adds(profile)
            .removes(|id| (Method::DELETE, format!("/profiles/{id}"), Value::Null)),
        List::new("listTokens", "/tokens", in_company)
            .adds(token.clone())
            // A revoked token no longer matches.
            .removes(|id| (Method::POST, format!("/tokens/{id}/revoke"), json!({})))
            .read_with(&["status=active"]),
        List::new("listChannels", "/channels", in_company).adds(|number| {
            (Method::POST, "/channels".to_owned(), json!({"name": format!("Some {number}"), "type": "webchat"}))
        }),
        List::new("listChannelTemplates", phone.templates_path(), in_company)
            .known_by(|row| format!("{} {}", row["name"], row["language"])),
        List::new("listAuditLog", "/audit-log", in_company)
            .adds(move |number| token(number + 100))
            .read_with(&["search=root", "action=createToken"]),
        List::new("listCompanies", "/companies", in_installation)
            .adds(company)
            .read_with(&["search=some", "active=true"]),
        List::new("listInstallationAuditLog", "/installation/audit-log", in_installation)
            .adds(move |number| company(number + 100)),
        List::new("listOwnSessions", "/account/sessions", in_installation),
    ];
    let mut checked = Vec::new();
    for list in lists {
        checked.push(list.check().await);
        // The requests for several lists would exceed the rate limit of one minute.
        clock::advance(Duration::from_secs(60));
    }
    checked.sort_unstable();
    assert_eq!(checked, LISTS);
    app.stop().await;
}
