//! Users are listed and found.

use std::collections::HashMap;

use serde_json::json;

use crate::check_list::check_list;
use crate::organization::ids_by;
use crate::plain::{check_searches, created};
use crate::steps::listed;
use crate::support::TestApp;

#[actix_web::test]
async fn users_are_listed_and_found() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let profiles = listed(&app.api, "/profiles").await;
    let mut ids = HashMap::from([("Ana", company.ana.0), ("Ben", company.ben.0)]);
    for (name, email) in [("João 100%", "joao@corp.example"), ("a_b", "second_mail@corp.example"), ("axb", "x@y")] {
        let body = json!({
            "name": name, "email": email, "active": name != "axb", "profileId": profiles[1],
            "queueIds": if name == "axb" { json!([]) } else { json!([company.sales, company.support]) },
        });
        ids.insert(name, created(&app.api, "/users", body).await);
    }
    let names = ["Ana", "Ben", "João 100%", "a_b", "axb"];
    check_list(&app, "/users", &ids_by(&ids, &names), &["created", "updated"]).await;
    let searches: &[(&str, &[&str])] = &[
        ("JOAO", &["João 100%"]),
        ("joão", &["João 100%"]),
        ("CORP.example", &["João 100%", "a_b"]),
        ("%", &["João 100%"]),
        ("_", &["a_b"]),
        ("a_b", &["a_b"]),
        // Name and e-mail are searched as one text, with a line break between them.
        ("axbx@y", &[]),
        ("axb\nx@y", &["axb"]),
        (r"\", &[]),
        ("", &names),
    ];
    check_searches(&app, "/users", &ids, searches).await;
    let filters: [(String, &[&str]); 7] = [
        ("active=false".to_owned(), &["axb"]),
        ("active=true".to_owned(), &["Ana", "Ben", "João 100%", "a_b"]),
        (format!("queueId={}", company.sales), &["Ben", "João 100%", "a_b"]),
        (format!("queueId={}", company.support), &["Ana", "Ben", "João 100%", "a_b"]),
        (format!("profileId={}", profiles[1]), &["João 100%", "a_b", "axb"]),
        (format!("profileId={}", profiles[0]), &[]),
        (format!("profileId={}&queueId={}&search=joao", profiles[1], company.sales), &["João 100%"]),
    ];
    for (filter, names) in filters {
        assert_eq!(listed(&app.api, &format!("/users?{filter}")).await, ids_by(&ids, names), "{filter}");
    }
    let wrong = app.api.get("/users?active=x&queueId=x&profileId=1.5").await;
    assert_eq!(wrong.invalid_fields(), ["active", "queueId", "profileId"]);
    app.stop().await;
}
