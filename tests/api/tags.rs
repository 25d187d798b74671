//! Tags.

use std::collections::HashMap;

use reqwest::Method;
use serde_json::{Value, json};

use crate::check_list::check_list;
use crate::plain::{check_created_once, check_foreign, check_refused, check_searches, check_unique, created, deleted};
use crate::steps::{NOBODY, assert_timestamp, id, listed};
use crate::support::{Api, TestApp};

const PATH: &str = "/tags";

async fn tag(api: &Api, name: &str) -> i64 {
    created(api, PATH, json!({"name": name})).await
}

#[actix_web::test]
async fn a_tag_is_created_read_changed_and_deleted() {
    let app = TestApp::start().await;
    let reply = app.api.post(PATH, json!({"name": "  VIP ", "color": "#FF8800", "id": 1, "other": true})).await;
    let made = reply.data(201);
    assert_timestamp(&made["createdAt"]);
    assert_timestamp(&made["updatedAt"]);
    assert_eq!(
        made,
        &json!({
            "id": made["id"], "name": "VIP", "color": "#ff8800",
            "createdAt": made["createdAt"], "updatedAt": made["updatedAt"],
        })
    );
    assert_eq!(reply.body, json!({"data": made}));
    let path = format!("{PATH}/{}", id(made));
    assert_eq!(app.api.get(&path).await.data(200), made);
    for default in [json!({"name": "Plain"}), json!({"name": "Null", "color": null})] {
        assert_eq!(app.api.post(PATH, default).await.data(201)["color"], "#64748b");
    }

    let step = |field: &'static str, value: &'static str, mut before: Value| {
        let (api, path) = (app.api.clone(), path.clone());
        async move {
            let reply = api.put(&path, json!({field: value})).await;
            let after = reply.data(200);
            before[field] = json!(value);
            before["updatedAt"] = after["updatedAt"].clone();
            assert_eq!(after, &before, "more than {field} has changed");
            assert!(after["updatedAt"].as_str() >= after["createdAt"].as_str());
            assert_eq!(api.get(&path).await.data(200), after);
            before
        }
    };
    let renamed = step("name", "Best", made.clone()).await;
    let coloured = step("color", "#000000", renamed).await;
    let same = app.api.put(&path, json!({"unknown": 1})).await;
    assert_eq!((&same.data(200)["name"], &same.data(200)["color"]), (&coloured["name"], &coloured["color"]));

    deleted(&app.api, &path).await;
    app.api.get(&path).await.error(404, "ERR_API_NOT_FOUND");
    app.api.put(&path, json!({"name": "x"})).await.error(404, "ERR_API_NOT_FOUND");
    app.api.delete(&path).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(listed(&app.api, PATH).await.len(), 2);
    app.stop().await;
}

#[actix_web::test]
async fn what_a_tag_cannot_be_is_refused_field_by_field() {
    let app = TestApp::start().await;
    let vip = tag(&app.api, "VIP").await;
    check_refused(
        &app,
        Method::POST,
        PATH,
        vec![
            (json!({}), &["name"]),
            (json!({"name": null, "color": "red"}), &["name", "color"]),
            (json!({"name": " ", "color": 7}), &["name", "color"]),
            (json!({"name": 7, "color": "#12345g"}), &["name", "color"]),
            (json!({"name": "x".repeat(256)}), &["name"]),
            (json!({"name": "a\nb"}), &["name"]),
            (json!({"name": "a\u{0}b"}), &["name"]),
            (json!([]), &["body"]),
        ],
    )
    .await;
    let path = format!("{PATH}/{vip}");
    let bodies = vec![
        (json!({"name": null, "color": null}), &["name", "color"][..]),
        (json!({"name": "", "color": "#fff"}), &["name", "color"]),
    ];
    check_refused(&app, Method::PUT, &path, bodies).await;
    let longest = "é".repeat(255);
    assert_eq!(app.api.put(&path, json!({"name": longest})).await.data(200)["name"], longest);
    app.stop().await;
}

#[actix_web::test]
async fn a_tags_name_is_unique_within_its_company() {
    let app = TestApp::start().await;
    let (_, other) = app.another_company().await;
    let vip = tag(&app.api, "VIP").await;
    let new = tag(&app.api, "New").await;
    tag(&app.api, "vip").await;
    tag(&other, "VIP").await;
    let taken = json!({"field": "name", "id": vip});
    assert_eq!(app.api.post(PATH, json!({"name": " VIP"})).await.error(409, "ERR_API_CONFLICT"), &taken);
    let path = format!("{PATH}/{new}");
    let refused = app.api.put(&path, json!({"name": "VIP", "color": "#111111"})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &taken);
    let kept = app.api.get(&path).await;
    assert_eq!((&kept.data(200)["name"], &kept.data(200)["color"]), (&json!("New"), &json!("#64748b")));
    app.api.put(&path, json!({"name": "New"})).await.data(200);
    deleted(&app.api, &format!("{PATH}/{vip}")).await;
    app.api.put(&path, json!({"name": "VIP"})).await.data(200);
    check_unique(&app, PATH, &json!({"name": "Race"}), "name").await;
    app.stop().await;
}

#[actix_web::test]
async fn tags_are_created_once_and_are_nobody_elses() {
    let app = TestApp::start().await;
    let vip = tag(&app.api, "VIP").await;
    check_created_once(&app, PATH, &json!({"name": "Once"}), &json!({"name": "Twice"})).await;
    check_foreign(&app, PATH, vip, &json!({"name": "Stolen"})).await;
    app.stop().await;
}

#[actix_web::test]
async fn tags_are_listed_and_found() {
    let app = TestApp::start().await;
    let mut ids = HashMap::new();
    for name in ["Atenção", "100% sure", "100x sure", "a_b", "axb", r"back\slash"] {
        ids.insert(name, tag(&app.api, name).await);
    }
    let mut all: Vec<i64> = ids.values().copied().collect();
    all.sort_unstable();
    check_list(&app, PATH, &all, &["created", "updated"]).await;
    check_searches(
        &app,
        PATH,
        &ids,
        &[
            ("ATENCAO", &["Atenção"]),
            ("tenÇÃ", &["Atenção"]),
            ("100%", &["100% sure"]),
            ("%", &["100% sure"]),
            ("SURE", &["100% sure", "100x sure"]),
            ("_", &["a_b"]),
            ("a_b", &["a_b"]),
            (r"k\s", &[r"back\slash"]),
            ("nothing", &[]),
            ("", &["Atenção", "100% sure", "100x sure", "a_b", "axb", r"back\slash"]),
        ],
    )
    .await;
    app.stop().await;
}

#[actix_web::test]
async fn a_deleted_tag_is_off_every_contact_and_others_stay() {
    let app = TestApp::start().await;
    let (vip, new) = (tag(&app.api, "VIP").await, tag(&app.api, "New").await);
    let contacts = [app.contact("5511900000001").await, app.contact("5511900000002").await];
    for contact in contacts {
        sqlx::query("insert into contact_tags (company_id, contact_id, tag_id) select $1, $2, unnest($3::bigint[])")
            .bind(app.company.id)
            .bind(contact)
            .bind([vip, new])
            .execute(&app.database.db)
            .await
            .expect("tagged");
    }
    let tags = async |contact| {
        let reply = app.api.get(&format!("/contacts/{contact}")).await;
        reply.data(200)["tags"].clone()
    };
    app.api.put(&format!("{PATH}/{vip}"), json!({"name": "Best", "color": "#ffffff"})).await.data(200);
    let plain = json!({"id": new, "name": "New", "color": "#64748b"});
    for contact in contacts {
        let both = json!([{"id": vip, "name": "Best", "color": "#ffffff"}, plain]);
        assert_eq!(tags(contact).await, both, "a contact shows its tags as they are now");
    }
    deleted(&app.api, &format!("{PATH}/{vip}")).await;
    for contact in contacts {
        assert_eq!(tags(contact).await, json!([plain]));
    }
    for gone in [vip, NOBODY] {
        app.api.get(&format!("/contacts?tagId={gone}")).await.error(404, "ERR_API_NOT_FOUND");
    }
    app.stop().await;
}
