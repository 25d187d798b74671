//! A field's definition: its name, type, options and key.

use std::collections::HashSet;

use futures_util::future::{join_all, join3};
use hotline_persistence::table;
use hotline_persistence::tables::custom_fields::{Application, CustomField, CustomFieldId};
use reqwest::Method;
use serde_json::{Value, json};

use super::{PATH, TYPES, check_change, create_choice_field, create_field, insert_value, path_of};
use crate::plain::{check_created_once, check_foreign, check_refused, deleted};
use crate::steps::{assert_timestamp, id, listed};
use crate::support::{TestApp, until_blocked};

#[actix_web::test]
async fn a_field_is_created_read_changed_and_deleted() {
    let app = TestApp::shared().await;
    let reply = app.api.post(PATH, json!({"name": " Cor Não-Óbvia ", "application": "contact", "type": "text"})).await;
    let created = reply.data(201);
    assert_timestamp(&created["createdAt"]);
    assert_timestamp(&created["updatedAt"]);
    let expected = json!({
        "id": created["id"], "key": "cor_nao_obvia", "name": "Cor Não-Óbvia", "application": "contact", "type": "text",
        "options": [], "required": false, "position": 1,
        "createdAt": created["createdAt"], "updatedAt": created["updatedAt"],
    });
    assert_eq!(reply.body, json!({"data": expected}));
    let first = id(created);
    assert_eq!(app.api.get(&path_of(first)).await.data(200), created);

    // `key` and `id` cannot be set: they are ignored.
    let complete = json!({
        "name": "Color", "application": "contact", "type": "select", "options": [" Red ", "Blue"], "required": true,
        "position": 7, "key": "mine", "id": 1,
    });
    let reply = app.api.post(PATH, complete).await;
    let created = reply.data(201);
    assert_eq!(
        created,
        &json!({
            "id": created["id"], "key": "color", "name": "Color", "application": "contact", "type": "select",
            "options": ["Red", "Blue"], "required": true, "position": 7,
            "createdAt": created["createdAt"], "updatedAt": created["updatedAt"],
        })
    );
    let last = app.api.post(PATH, json!({"name": "Last", "application": "contact", "type": "date"})).await;
    assert_eq!(last.data(201)["position"], 8, "a field is not placed last by default");
    let card = app.api.post(PATH, json!({"name": "Color", "application": "card", "type": "date"})).await;
    assert_eq!((&card.data(201)["key"], &card.data(201)["position"]), (&json!("color"), &json!(1)));

    let api = &app.api;
    check_change(api, first, json!({"name": "Size"}), json!({"name": "Size"})).await;
    check_change(api, first, json!({"required": true}), json!({"required": true})).await;
    check_change(api, first, json!({"position": 0}), json!({"position": 0})).await;
    check_change(api, first, json!({}), json!({})).await;
    // Key and application are fixed: a body may repeat them, but not change them.
    check_change(api, first, json!({"key": "cor_nao_obvia", "application": "contact"}), json!({})).await;
    let other = api.put(&path_of(first), json!({"key": "other", "application": "card"})).await;
    assert_eq!(other.invalid_fields(), ["application", "key"]);
    // A field can be sent back as it was read.
    let unchanged = app.api.get(&path_of(first)).await;
    check_change(api, first, unchanged.data(200).clone(), json!({})).await;

    deleted(api, &path_of(first)).await;
    api.get(&path_of(first)).await.error(404, "ERR_API_NOT_FOUND");
    api.put(&path_of(first), json!({"name": "x"})).await.error(404, "ERR_API_NOT_FOUND");
    api.delete(&path_of(first)).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(listed(api, PATH).await.len(), 3);
    app.stop().await;
}

#[actix_web::test]
async fn there_are_eleven_types_and_two_of_them_have_options() {
    let app = TestApp::shared().await;
    for (index, kind) in TYPES.into_iter().enumerate() {
        let mut body = json!({"name": kind, "application": "card", "type": kind});
        if kind.ends_with("select") {
            assert_eq!(app.api.post(PATH, body.clone()).await.invalid_fields(), ["options"]);
            body["options"] = json!([]);
            assert_eq!(app.api.post(PATH, body.clone()).await.invalid_fields(), ["options"]);
            body["options"] = json!(["x"]);
        } else {
            body["options"] = json!(["x"]);
            assert_eq!(app.api.post(PATH, body.clone()).await.invalid_fields(), ["options"]);
            body["options"] = if index % 2 == 0 { json!([]) } else { Value::Null };
        }
        let created = app.api.post(PATH, body).await;
        assert_eq!(created.data(201)["type"], kind);
        assert_eq!(listed(&app.api, &format!("{PATH}?type={kind}")).await, [id(created.data(201))]);
    }
    app.stop().await;
}

#[actix_web::test]
async fn each_invalid_field_of_a_definition_is_reported() {
    let app = TestApp::shared().await;
    let many: Vec<String> = (0..201).map(|number| number.to_string()).collect();
    let with = |field: &str, value: Value| {
        let mut body = json!({"name": "x", "application": "contact", "type": "select", "options": ["a"]});
        body[field] = value;
        body
    };
    let mut bodies = vec![
        (json!({}), &["name", "application", "type"][..]),
        (json!({"name": null, "application": null, "type": null}), &["name", "application", "type"]),
        (
            json!({"name": " ", "application": "ticket", "type": "json", "options": 7, "required": "yes", "position": -1}),
            &["name", "application", "type", "options", "required", "position"],
        ),
        (with("name", json!("x".repeat(256))), &["name"]),
        (with("name", json!("a\u{0}")), &["name"]),
    ];
    for options in [json!([""]), json!([1]), json!([null]), json!(["a", " a "]), json!(["a\nb"]), json!(many)] {
        bodies.push((with("options", options), &["options"]));
    }
    bodies.push((with("options", json!(["x".repeat(256)])), &["options"]));
    for position in [json!(1.5), json!("1"), json!(1_000_001), json!(9_223_372_036_854_775_808_u64)] {
        bodies.push((with("position", position), &["position"]));
    }
    check_refused(&app, Method::POST, PATH, bodies).await;

    let size = create_field(&app.api, "Size", "contact").await;
    let color = create_choice_field(&app.api, "select", &["Red"]).await;
    let bodies = vec![
        (
            json!({"name": null, "type": null, "options": null, "required": null, "position": null}),
            &["name", "type", "options", "required", "position"][..],
        ),
        (json!({"options": ["a"]}), &["options"]),
        (json!({"type": "select"}), &["options"]),
        (json!({"type": "multiselect", "options": []}), &["options"]),
    ];
    check_refused(&app, Method::PUT, &path_of(size), bodies).await;
    let bodies = vec![
        (json!({"options": []}), &["options"][..]),
        (json!({"type": "text", "options": ["Red"]}), &["options"]),
        (json!({"options": ["Red", "Red"]}), &["options"]),
    ];
    check_refused(&app, Method::PUT, &path_of(color), bodies).await;
    let all = json!(many[..200]);
    check_change(&app.api, color, json!({"options": all}), json!({"options": all})).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_type_changes_with_its_options_while_there_are_no_values() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let size = create_field(api, "Size", "contact").await;
    let select = json!({"type": "select", "options": ["S", "M"]});
    check_change(api, size, select.clone(), select).await;
    check_change(api, size, json!({"type": "multiselect"}), json!({"type": "multiselect"})).await;
    check_change(api, size, json!({"options": ["L"]}), json!({"options": ["L"]})).await;
    check_change(api, size, json!({"type": "number"}), json!({"type": "number", "options": []})).await;
    check_change(api, size, json!({"type": "text", "options": []}), json!({"type": "text"})).await;
    app.stop().await;
}

#[actix_web::test]
async fn values_prevent_changes_of_the_type_and_of_the_options_they_use() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let (one, two) = (app.contact("5511900000001").await, app.contact("5511900000002").await);
    let conflict = async |field: i64, body: Value, state: &str| {
        let before = api.get(&path_of(field)).await;
        let reply = api.put(&path_of(field), body).await;
        let details = reply.error(409, "ERR_API_CONFLICT");
        assert_eq!((&details["state"], &details["by"][0]["type"]), (&json!(state), &json!("contact")));
        assert_eq!(api.get(&path_of(field)).await.data(200), before.data(200));
    };
    let type_stays = "the custom field has values, so its type cannot change";
    let options_stay = "the custom field has values that are not among these options";

    let size = create_field(api, "Size", "contact").await;
    insert_value(&app, one, size, "42").await;
    conflict(size, json!({"type": "number", "name": "New"}), type_stays).await;
    conflict(size, json!({"type": "select", "options": ["42"]}), type_stays).await;
    check_change(api, size, json!({"type": "text", "name": "New"}), json!({"name": "New"})).await;

    let color = create_choice_field(api, "select", &["Red", "Blue", "Green"]).await;
    insert_value(&app, one, color, "Red").await;
    insert_value(&app, two, color, "Blue").await;
    conflict(color, json!({"options": ["Red", "Green"], "required": true}), options_stay).await;
    conflict(color, json!({"type": "multiselect"}), type_stays).await;
    check_change(api, color, json!({"options": ["Blue", "New", "Red"]}), json!({"options": ["Blue", "New", "Red"]}))
        .await;

    let many = create_choice_field(api, "multiselect", &["Red", "Blue", "Gr\"een"]).await;
    insert_value(&app, one, many, r#"["Red", "Gr\"een"]"#).await;
    insert_value(&app, two, many, "[]").await;
    conflict(many, json!({"options": ["Red", "Blue"]}), options_stay).await;
    check_change(api, many, json!({"options": ["Red", "Gr\"een"]}), json!({"options": ["Red", "Gr\"een"]})).await;

    // Without the values everything may change.
    let values = sqlx::query("delete from contact_custom_field_values where company_id = $1").bind(app.company.id);
    values.execute(&app.db).await.expect("deleted");
    check_change(api, many, json!({"type": "date"}), json!({"type": "date", "options": []})).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_type_never_changes_while_a_value_is_being_written() {
    let app = TestApp::shared().await;
    let contact = app.contact("5511900000001").await;
    let size = create_field(&app.api, "Size", "contact").await;
    // The first writer locks the field without writing a value, so the type may change once it has committed.
    for has_value in [false, true] {
        let mut writer = app.db.begin().await.expect("a transaction");
        let locked = table::lock_all_of::<CustomField>(&mut writer, app.company.id, Application::Contact).await;
        assert_eq!(locked.expect("fields")[0].id, CustomFieldId::new(size));
        let api = app.api.clone();
        let kind = if has_value { "date" } else { "number" };
        // The service gives up a statement that waits for five seconds; the change is then made again.
        let change = tokio::spawn(async move { api.put_while_busy(&path_of(size), &json!({"type": kind})).await });
        until_blocked(1, &mut writer, &app.db).await;
        if has_value {
            sqlx::query("insert into contact_custom_field_values values ($1, $2, $3, '42')")
                .bind(app.company.id)
                .bind(contact)
                .bind(size)
                .execute(&mut *writer)
                .await
                .expect("value");
        }
        writer.commit().await.expect("committed");
        let reply = change.await.expect("an answer");
        assert_eq!(reply.status.as_u16(), if has_value { 409 } else { 200 }, "{}", reply.body);
    }
    assert_eq!(app.api.get(&path_of(size)).await.data(200)["type"], "number");
    app.stop().await;
}

#[actix_web::test]
async fn a_key_is_derived_from_the_name_and_never_changes() {
    let app = TestApp::shared().await;
    let key = async |name: &str, application: &str| {
        let body = json!({"name": name, "application": application, "type": "text"});
        let reply = app.api.post(PATH, body).await;
        reply.data(201)["key"].as_str().expect("a key").to_owned()
    };
    assert_eq!(key("Shoe size", "contact").await, "shoe_size");
    assert_eq!(key("SHOE  SIZE!", "contact").await, "shoe_size_2");
    assert_eq!(key("Shoe size", "card").await, "shoe_size");
    assert_eq!(key("Situação", "contact").await, "situacao");
    assert_eq!(key("尺寸", "contact").await, "chi_cun");
    assert_eq!(key("!?", "contact").await, "field");
    assert_eq!(key(&"é".repeat(255), "contact").await, "e".repeat(60));
    assert_eq!(key(&"é".repeat(200), "contact").await, format!("{}_2", "e".repeat(58)));

    let first = listed(&app.api, &format!("{PATH}?application=contact")).await[0];
    check_change(&app.api, first, json!({"name": "Other"}), json!({"name": "Other"})).await;
    assert_eq!(key("Shoe size", "contact").await, "shoe_size_3", "a renamed field keeps its key");
    deleted(&app.api, &path_of(first)).await;
    assert_eq!(key("Shoe size", "contact").await, "shoe_size");
    let (_, other) = app.another_company().await;
    let foreign = other.post(PATH, json!({"name": "Shoe size", "application": "contact", "type": "text"})).await;
    assert_eq!(foreign.data(201)["key"], "shoe_size");
    app.stop().await;
}

#[actix_web::test]
async fn fields_created_at_once_with_one_name_have_different_keys_and_positions() {
    let app = TestApp::shared().await;
    let body = json!({"name": "Size", "application": "contact", "type": "text"});
    let replies = join_all((0..20).map(|_| app.api.post_while_busy(PATH, &body))).await;
    let keys: HashSet<&str> = replies.iter().filter_map(|reply| reply.data(201)["key"].as_str()).collect();
    let expected: Vec<String> = (2..=20).map(|number| format!("size_{number}")).collect();
    assert_eq!(keys, expected.iter().map(String::as_str).chain(["size"]).collect());
    let mut positions: Vec<i64> = replies.iter().filter_map(|reply| reply.body["data"]["position"].as_i64()).collect();
    positions.sort_unstable();
    assert_eq!(positions, (1..=20).collect::<Vec<_>>());
    app.stop().await;
}

#[actix_web::test]
async fn the_fields_of_an_application_are_limited() {
    let app = TestApp::shared().await;
    let company = app.company.id;
    let fill = "insert into custom_fields (company_id, key, name, application, type, position)
        select $1, 'f' || n, 'f' || n, 'contact', 'text', n from generate_series(1, 199) n";
    sqlx::query(fill).bind(company).execute(&app.db).await.expect("fields");
    let body = |application: &str| json!({"name": "Size", "application": application, "type": "text"});
    // Neither of two creations is committed before the other one has begun.
    let mut blocker = app.db.begin().await.expect("a transaction");
    table::lock_order::<CustomField>(&mut blocker, company, Application::Contact).await.expect("a lock");
    let meanwhile = async {
        until_blocked(2, &mut blocker, &app.db).await;
        blocker.rollback().await.expect("a rollback");
    };
    let add = || app.api.post(PATH, body("contact"));
    let (one, other, ()) = join3(add(), add(), meanwhile).await;
    let (created, refused) = if one.status == 201 { (one, other) } else { (other, one) };
    let details = json!({
        "state": "the company has reached its maximum number of custom fields of this application", "reason": "limit",
        "by": [{"type": "custom field", "count": 200}],
    });
    assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &details);
    assert_eq!(add().await.error(409, "ERR_API_CONFLICT"), &details);
    // Cards, and other companies, have their own limits.
    app.api.post(PATH, body("card")).await.data(201);
    let (_, other_api) = app.another_company().await;
    other_api.post(PATH, body("contact")).await.data(201);
    deleted(&app.api, &path_of(id(created.data(201)))).await;
    add().await.data(201);
    app.stop().await;
}

#[actix_web::test]
async fn fields_are_created_once_and_belong_to_one_company() {
    let app = TestApp::shared().await;
    let size = create_field(&app.api, "Size", "contact").await;
    let once = json!({"name": "Once", "application": "contact", "type": "text"});
    check_created_once(&app, PATH, &once, &json!({"name": "Once", "application": "card", "type": "text"})).await;
    check_foreign(&app, PATH, size, &json!({"name": "Stolen"})).await;
    app.stop().await;
}
