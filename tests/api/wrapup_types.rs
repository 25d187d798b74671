//! Wrap-up types and their categories.

use std::collections::HashMap;

use reqwest::Method;
use serde_json::{Value, json};

use crate::check_list::check_list;
use crate::organization::{check_absent, ids_by, opened};
use crate::plain::{
    Noun, check_created_once, check_plain, check_refused, check_searches, check_unique, created, deleted,
};
use crate::steps::{NOBODY, assert_timestamp, close, id, listed, ticket};
use crate::support::{Api, TestApp};

const PATH: &str = "/wrapup-types";
const CATEGORIES: &str = "/wrapup-categories";

async fn create_category(api: &Api, name: &str) -> i64 {
    created(api, CATEGORIES, json!({"name": name})).await
}

#[actix_web::test]
async fn a_wrap_up_type_is_created_read_changed_and_deleted() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let support = json!({"id": company.support, "name": "Support"});
    let sales = json!({"id": company.sales, "name": "Sales"});
    let (first, second) = (create_category(&app.api, "First").await, create_category(&app.api, "Second").await);
    // A queue that is named twice is linked once.
    let body = json!({
        "name": " Refunded ", "categoryId": first, "queueIds": [company.sales, company.support, company.sales], "id": 1,
    });
    let reply = app.api.post(PATH, body).await;
    let wrapup_type = reply.data(201);
    assert_timestamp(&wrapup_type["createdAt"]);
    assert_timestamp(&wrapup_type["updatedAt"]);
    let mut expected = json!({
        "id": wrapup_type["id"], "name": "Refunded", "active": true, "categoryId": first, "queues": [support, sales],
        "createdAt": wrapup_type["createdAt"], "updatedAt": wrapup_type["updatedAt"],
    });
    assert_eq!(reply.body, json!({"data": expected}));
    let path = format!("{PATH}/{}", id(wrapup_type));
    assert_eq!(app.api.get(&path).await.data(200), wrapup_type);
    for (body, field, value) in [
        (json!({"name": "Paid back"}), "name", json!("Paid back")),
        (json!({"categoryId": second}), "categoryId", json!(second)),
        (json!({"active": false}), "active", json!(false)),
        (json!({"queueIds": [company.sales]}), "queues", json!([sales])),
        (json!({"queueIds": [company.support, company.sales]}), "queues", json!([support, sales])),
        (json!({"queueIds": []}), "queues", json!([])),
        (json!({}), "active", json!(false)),
    ] {
        let reply = app.api.put(&path, body.clone()).await;
        expected[field] = value;
        expected["updatedAt"] = reply.data(200)["updatedAt"].clone();
        assert_eq!(reply.data(200), &expected, "after {body}");
        assert_eq!(app.api.get(&path).await.data(200), &expected);
    }
    deleted(&app.api, &path).await;
    for reply in [app.api.get(&path).await, app.api.put(&path, json!({})).await, app.api.delete(&path).await] {
        reply.error(404, "ERR_API_NOT_FOUND");
    }
    let without_queues =
        app.api.post(PATH, json!({"name": "Bare", "categoryId": first, "active": false})).await.data(201).clone();
    assert_eq!((&without_queues["active"], &without_queues["queues"]), (&json!(false), &json!([])));
    app.stop().await;
}

#[actix_web::test]
async fn invalid_fields_of_a_wrap_up_type_are_refused_by_name() {
    let app = TestApp::shared().await;
    let (other_company, _) = app.another_company().await;
    let category = create_category(&app.api, "More").await;
    let foreign = id(&app.api.with_key(&other_company.key).all(CATEGORIES).await[0]);
    let all_fields = &["name", "categoryId", "active", "queueIds"][..];
    let too_many: Vec<i64> = (0..1001).collect();
    let bodies = vec![
        (json!({}), &["name", "categoryId"][..]),
        (json!({"name": "", "categoryId": "1", "active": 0, "queueIds": 7}), all_fields),
        (json!({"name": "a", "categoryId": category, "queueIds": too_many}), &["queueIds"]),
        (json!({"name": "a", "categoryId": category, "queueIds": [1, "2", null]}), &["queueIds[1]", "queueIds[2]"]),
    ];
    check_refused(&app, Method::POST, PATH, bodies).await;
    let path = format!("{PATH}/{}", app.company.solved);
    let null = json!({"name": null, "categoryId": null, "active": null, "queueIds": null});
    check_refused(&app, Method::PUT, &path, vec![(null, all_fields)]).await;

    let before = app.api.all(PATH).await;
    let mut calls = Vec::new();
    for (category, queues) in [
        (foreign, json!([])),
        (NOBODY, json!([])),
        (category, json!([other_company.support])),
        (category, json!([app.company.support, NOBODY])),
    ] {
        let body = json!({"name": "New", "categoryId": category, "queueIds": queues});
        calls.push((Method::POST, PATH.to_owned(), Some(body.clone())));
        calls.push((Method::PUT, path.clone(), Some(body)));
    }
    check_absent(&app, calls).await;
    assert_eq!(app.api.all(PATH).await, before, "a refused change left something behind");
    app.stop().await;
}

#[actix_web::test]
async fn names_are_unique_and_records_of_other_companies_are_not_found() {
    let app = TestApp::shared().await;
    let (other_company, other_api) = app.another_company().await;
    let more = create_category(&app.api, "More").await;
    let conflict = json!({"field": "name", "id": app.company.solved});
    let refused = app.api.post(PATH, json!({"name": "Solved", "categoryId": more})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &conflict);
    let path = format!("{PATH}/{}", app.company.sold);
    assert_eq!(app.api.put(&path, json!({"name": "Solved"})).await.error(409, "ERR_API_CONFLICT"), &conflict);
    app.api.put(&path, json!({"name": "Sold"})).await.data(200);
    check_unique(&app, PATH, &json!({"name": "Race", "categoryId": more}), "name").await;
    let once = json!({"name": "Once", "categoryId": more});
    check_created_once(&app, PATH, &once, &json!({"name": "Twice", "categoryId": more})).await;

    let foreign_category = id(&other_api.all(CATEGORIES).await[0]);
    let mut calls = Vec::new();
    for absent in [other_company.solved.to_string(), NOBODY.to_string(), "x".to_owned()] {
        calls.push((Method::GET, format!("{PATH}/{absent}"), None));
        calls.push((Method::PUT, format!("{PATH}/{absent}"), Some(json!({"name": "Stolen"}))));
        calls.push((Method::DELETE, format!("{PATH}/{absent}"), None));
    }
    for absent in [foreign_category.to_string(), NOBODY.to_string(), "x".to_owned()] {
        calls.push((Method::PUT, format!("{CATEGORIES}/{absent}"), Some(json!({"name": "Stolen"}))));
        calls.push((Method::DELETE, format!("{CATEGORIES}/{absent}"), None));
    }
    for filter in ["categoryId", "queueId"] {
        let foreign = if filter == "queueId" { other_company.support.0 } else { foreign_category };
        calls.push((Method::GET, format!("{PATH}?{filter}={foreign}"), None));
        calls.push((Method::GET, format!("{PATH}?{filter}={NOBODY}"), None));
    }
    check_absent(&app, calls).await;
    assert_eq!(listed(&other_api, PATH).await, [other_company.solved.0, other_company.sold.0]);
    app.stop().await;
}

#[actix_web::test]
async fn a_category_is_created_listed_changed_and_deleted() {
    check_plain(Noun {
        path: CATEGORIES,
        is_shown: false,
        new: (json!({"name": " More "}), json!({"name": "More"})),
        good: vec![],
        changes: vec![(json!({"name": "Much more"}), json!({"name": "Much more"}))],
        bad: vec![(json!({"name": " "}), &["name"]), (json!({"name": null}), &["name"]), (json!({}), &["name"])],
        bad_changes: vec![(json!({"name": " "}), &["name"]), (json!({"name": null}), &["name"])],
        unique: "name",
        is_fixed: false,
        named: |name| json!({"name": name}),
        listed: ["Reclamação", "100%", "a_b", "axb"].map(|name| (name, json!({"name": name}))).into(),
        searches: &[("RECLAMACAO", &["Reclamação"]), ("%", &["100%"]), ("_", &["a_b"]), (r"\", &[])],
    })
    .await;
}

#[actix_web::test]
async fn only_an_empty_category_can_be_deleted() {
    let app = TestApp::shared().await;
    let category = create_category(&app.api, "More").await;
    let path = format!("{CATEGORIES}/{category}");
    let wrapup_type = created(&app.api, PATH, json!({"name": "New", "categoryId": category})).await;
    let refused = app.api.delete(&path).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["by"][0]["type"], "wrapupType");
    deleted(&app.api, &format!("{PATH}/{wrapup_type}")).await;
    deleted(&app.api, &path).await;
    app.stop().await;
}

#[actix_web::test]
async fn types_are_listed_searched_and_filtered() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let initial_category = id(&app.api.all(CATEGORIES).await[0]);
    let mut categories = HashMap::new();
    for name in ["a_b", "axb"] {
        categories.insert(name, create_category(&app.api, name).await);
    }
    let mut types = HashMap::from([("Solved", company.solved.0), ("Sold", company.sold.0)]);
    for (name, queues) in
        [("Devolução", json!([company.support, company.sales])), ("50%", json!([])), ("c_d", json!([company.sales]))]
    {
        let body = json!({
            "name": name, "categoryId": categories["a_b"], "queueIds": queues, "active": name != "50%",
        });
        types.insert(name, created(&app.api, PATH, body).await);
    }
    let names = ["Solved", "Sold", "Devolução", "50%", "c_d"];
    check_list(&app, PATH, &ids_by(&types, &names), &["created", "updated"]).await;
    let searches: &[(&str, &[&str])] =
        &[("DEVOLUCAO", &["Devolução"]), ("sol", &["Solved", "Sold"]), ("%", &["50%"]), ("c_d", &["c_d"])];
    check_searches(&app, PATH, &types, searches).await;
    let filters: [(String, &[&str]); 7] = [
        ("active=false".to_owned(), &["50%"]),
        ("active=true".to_owned(), &["Solved", "Sold", "Devolução", "c_d"]),
        (format!("categoryId={initial_category}"), &["Solved", "Sold"]),
        (format!("categoryId={}", categories["axb"]), &[]),
        (format!("queueId={}", company.support), &["Solved", "Devolução"]),
        (format!("queueId={}", company.sales), &["Sold", "Devolução", "c_d"]),
        (format!("queueId={}&categoryId={}&search=d", company.sales, categories["a_b"]), &["Devolução", "c_d"]),
    ];
    for (filter, names) in filters {
        assert_eq!(listed(&app.api, &format!("{PATH}?{filter}")).await, ids_by(&types, names), "{filter}");
    }
    let invalid = app.api.get(&format!("{PATH}?active=x&categoryId=x&queueId=1.5")).await;
    assert_eq!(invalid.invalid_fields(), ["active", "categoryId", "queueId"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_type_can_be_deleted_only_when_no_ticket_has_it() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let path = format!("{PATH}/{}", company.solved);
    let open = opened(&app, "5511900000001", json!({"queueId": company.support})).await;
    let wrapup = json!({"wrapupTypeId": company.solved});
    // The close counts from its response on, even if it is not in the tables yet.
    app.api.post(&format!("/tickets/{open}/close"), wrapup.clone()).await.data(200);
    let refused = app.api.delete(&path).await;
    let by = json!([{"type": "ticket", "count": 1}]);
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["by"], by);
    // After the refused deletion the type can still be used.
    app.api.put(&format!("/tickets/{open}/wrapup"), wrapup).await.data(200);
    // A reopened ticket no longer has the type, but its history does.
    app.api.post(&format!("/tickets/{open}/reopen"), json!({})).await.data(200);
    deleted(&app.api, &path).await;
    let events = app.api.all(&format!("/tickets/{open}/events")).await;
    assert_eq!(events[1]["to"]["wrapupType"], json!({"id": company.solved, "name": "Solved"}));
    let reply = app.api.post(&format!("/tickets/{open}/close"), json!({"wrapupTypeId": company.solved})).await;
    reply.error(404, "ERR_API_NOT_FOUND");
    app.stop().await;
}

#[actix_web::test]
async fn a_change_of_a_type_applies_to_the_next_close() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let more = create_category(&app.api, "More").await;
    let open = opened(&app, "5511900000001", json!({"queueId": company.sales})).await;
    let transfer =
        async |queue: i64| app.api.post(&format!("/tickets/{open}/transfer"), json!({"queueId": queue})).await;
    // A stale read would fail only in some rounds.
    for round in 0..20 {
        let new = app.api.post(PATH, json!({"name": format!("New {round}"), "categoryId": more})).await;
        let new = id(new.data(201));
        let path = format!("{PATH}/{new}");
        let close_with_type =
            async || app.api.post(&format!("/tickets/{open}/close"), json!({"wrapupTypeId": new})).await;
        let change = async |body: Value| app.api.put(&path, body).await.data(200).clone();
        assert_eq!(close_with_type().await.invalid_fields(), ["wrapupTypeId"], "linked to no queue");
        change(json!({"queueIds": [company.sales], "active": false})).await;
        assert_eq!(close_with_type().await.invalid_fields(), ["wrapupTypeId"], "not active");
        change(json!({"active": true, "name": format!("Newer {round}")})).await;
        assert_eq!(
            close_with_type().await.data(200)["wrapupType"],
            json!({"id": new, "name": format!("Newer {round}")}),
            "linked and active"
        );
        app.api.post(&format!("/tickets/{open}/reopen"), json!({})).await.data(200);
        change(json!({"queueIds": [company.support]})).await;
        assert_eq!(close_with_type().await.invalid_fields(), ["wrapupTypeId"], "linked to another queue");
        transfer(company.support.0).await.data(200);
        close_with_type().await.data(200);
        app.api.post(&format!("/tickets/{open}/reopen"), json!({})).await.data(200);
        transfer(company.sales.0).await.data(200);
        deleted(&app.api, &path).await;
        close_with_type().await.error(404, "ERR_API_NOT_FOUND");
    }
    close(&app.api, open).await;
    assert_eq!(ticket(&app.api, open).await["wrapupType"], Value::Null);
    app.stop().await;
}
