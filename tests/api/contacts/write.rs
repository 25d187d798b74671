//! Creating and changing contacts.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::{PATH, bare, change_contact, create_contact, create_tag, identities, shown, with};
use crate::plain::{check_created_once, check_foreign, check_refused, check_unique};
use crate::steps::{NOBODY, assert_timestamp, id, listed};
use crate::support::{Reply, TestApp};

/// A body with every writable field, and these fields as the contact then shows them.
fn complete_contact() -> (Value, Value) {
    let same = json!({
        "name": "Maria Lima", "email": "Maria@Example.com", "code": "C-1", "origin": "fair", "isGroup": true,
        "profilePicUrl": "https://cdn.example.com/m.jpg", "socialUsername": "maria.lima", "lid": "1827",
        "sourceUrl": "https://example.com/sale", "sourceId": "1202", "headline": "Summer\nsale", "mediaType": "image",
        "mediaUrl": "https://cdn.example.com/s.jpg", "utmSource": "newsletter", "utmMedium": "email",
        "utmCampaign": "summer", "utmId": "s-26", "fbclid": "f", "gclid": "g", "ctwaClid": "c",
        "marketingOptOut": true,
    });
    let given = with(same.clone(), &json!({"number": " +55 (11) 98765-4321 ", "cpfCnpj": "529.982.247-25"}));
    let kept = with(same, &json!({"number": "5511987654321", "numberCountry": "BR", "cpfCnpj": "52998224725"}));
    (given, kept)
}

#[actix_web::test]
async fn a_contact_is_created_read_and_changed_field_by_field() {
    let app = TestApp::shared().await;
    let (mut given, kept) = complete_contact();
    let (vip, new) = (create_tag(&app.api, "VIP").await, create_tag(&app.api, "New").await);
    given["tagIds"] = json!([new, vip, new]);
    let ignored = json!({"id": 1, "numberCountry": "US", "lastChannel": {"id": 1}, "createdAt": "x", "companyId": 9});
    let reply = app.api.post(PATH, with(given, &ignored)).await;
    let made = reply.data(201);
    assert_timestamp(&made["createdAt"]);
    let tags = json!([
        {"id": vip, "name": "VIP", "color": "#64748b"}, {"id": new, "name": "New", "color": "#64748b"},
    ]);
    let expected = with(with(bare(made, ""), &kept), &json!({"tags": tags}));
    assert_eq!(made, &expected);
    assert_eq!(reply.body, json!({"data": made}));
    assert_eq!(&shown(&app.api, id(made)).await, made);

    // A change to one field, or clearing it, affects no other.
    let mut now = made.clone();
    let mut check_change = async |body: Value, expected: Value| {
        let after = change_contact(&app.api, id(made), body.clone()).await;
        let derived = json!({"updatedAt": after["updatedAt"], "identities": identities(&after["number"])});
        let expected = with(now.clone(), &with(expected, &derived));
        assert_eq!(after, expected, "{body}");
        assert!(after["updatedAt"].as_str() >= now["updatedAt"].as_str());
        assert_eq!(shown(&app.api, id(made)).await, after);
        now = after;
    };
    for field in kept.as_object().expect("an object").keys() {
        match field.as_str() {
            "name" => check_change(json!({"name": " Ana "}), json!({"name": "Ana"})).await,
            "isGroup" => check_change(json!({"isGroup": false}), json!({"isGroup": false})).await,
            "marketingOptOut" => {
                check_change(json!({"marketingOptOut": false}), json!({"marketingOptOut": false})).await
            }
            "numberCountry" => {}
            "number" => {
                let (other, country) = ("1-212-555-0123-", json!({"number": "12125550123", "numberCountry": "US"}));
                check_change(json!({"number": other}), country).await;
                check_change(json!({"number": null}), json!({"number": null, "numberCountry": null})).await;
            }
            "cpfCnpj" => {
                check_change(json!({"cpfCnpj": "11.222.333/0001-81"}), json!({"cpfCnpj": "11222333000181"})).await;
                check_change(json!({"cpfCnpj": null}), json!({"cpfCnpj": null})).await;
            }
            "email" => {
                check_change(json!({"email": "a@b.example"}), json!({"email": "a@b.example"})).await;
                check_change(json!({"email": null}), json!({"email": null})).await;
            }
            "profilePicUrl" => {
                check_change(json!({field: " https://b.example/p.png "}), json!({field: "https://b.example/p.png"}))
                    .await;
                check_change(json!({field: null}), json!({field: null})).await;
            }
            text => {
                check_change(json!({text: " other "}), json!({text: "other"})).await;
                check_change(json!({text: null}), json!({text: null})).await;
            }
        }
    }
    check_change(json!({"tagIds": [vip]}), json!({"tags": [tags[0]]})).await;
    check_change(json!({"tagIds": []}), json!({"tags": []})).await;
    check_change(json!({"unknown": 1, "numberCountry": "PT", "lastChannel": null}), json!({})).await;
    assert_eq!(now, with(bare(&now, "Ana"), &json!({})), "a cleared field still has its value");
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_needs_a_name_or_a_number() {
    let app = TestApp::shared().await;
    let named = app
        .api
        .post(PATH, json!({"name": "Ana", "number": null, "isGroup": null, "marketingOptOut": null, "tagIds": null, "customFields": null}))
        .await;
    assert_eq!(named.data(201), &bare(named.data(201), "Ana"));
    for body in [json!({"number": "+351 912 345 678"}), json!({"number": "351 912 345 679", "name": null})] {
        let numbered = app.api.post(PATH, body).await;
        let numbered = numbered.data(201);
        assert_eq!(numbered["name"], numbered["number"]);
        assert_eq!(numbered["numberCountry"], "PT");
        // The name stays, so the contact may lose its number.
        let cleared = change_contact(&app.api, id(numbered), json!({"number": null})).await;
        assert_eq!((&cleared["name"], &cleared["number"]), (&numbered["name"], &Value::Null));
    }
    check_refused(
        &app,
        Method::POST,
        PATH,
        vec![
            (json!({}), &["name"]),
            (json!({"name": null, "number": null}), &["name"]),
            (json!({"email": "a@b.example"}), &["name"]),
            (json!({"name": " "}), &["name"]),
            (json!({"number": "123"}), &["number"]),
            (json!([]), &["body"]),
        ],
    )
    .await;
    app.stop().await;
}

#[actix_web::test]
async fn invalid_values_are_refused_field_by_field() {
    let app = TestApp::shared().await;
    let ana = create_contact(&app.api, json!({"name": "Ana"})).await;
    let (given, _) = complete_contact();
    let texts: Vec<&str> = given.as_object().expect("an object").keys().map(String::as_str).collect();
    let wrong =
        json!({"tagIds": [1, "x"], "customFields": [{"value": "a"}, 7, {"key": "k"}, {"key": "k", "value": 7}]});
    let wrong_nested =
        ["customFields[0].key", "customFields[1]", "customFields[2].value", "customFields[3].value", "tagIds[1]"];
    for (method, path) in [(Method::POST, PATH.to_owned()), (Method::PUT, format!("{PATH}/{ana}"))] {
        for bad in [json!(7), json!(["x"]), json!({"a": 1}), json!("a\u{0}b"), json!(""), json!("x".repeat(10_001))] {
            let body: Value = texts.iter().map(|field| ((*field).to_owned(), bad.clone())).collect();
            let reply = Reply::of(app.api.request(method.clone(), &path).json(&body)).await;
            let mut named = reply.invalid_fields();
            named.sort();
            if bad == "" {
                // A blank value is no value: only the fields that must have one are named.
                assert_eq!(named, ["isGroup", "marketingOptOut", "name"], "{method}");
                continue;
            }
            assert_eq!(named, texts, "{method} with {bad:.20}");
        }
        let reply =
            Reply::of(app.api.request(method.clone(), &path).json(&with(wrong.clone(), &json!({"name": "x"})))).await;
        let mut named = reply.invalid_fields();
        named.sort();
        assert_eq!(named, wrong_nested);
        let many: Vec<i64> = (0..101).collect();
        let values: Vec<Value> = (0..201).map(|key| json!({"key": format!("{key}"), "value": "x"})).collect();
        let body = json!({"name": "x", "tagIds": many, "customFields": values});
        let reply = Reply::of(app.api.request(method.clone(), &path).json(&body)).await;
        let mut named = reply.invalid_fields();
        named.sort();
        assert_eq!(named, ["customFields", "tagIds"]);
        for (field, bad) in [
            ("number", json!("1234567")),
            ("number", json!("1234567890123456")),
            ("number", json!("12345678a")),
            ("cpfCnpj", json!("52998224724")),
            ("cpfCnpj", json!("11222333000180")),
            ("cpfCnpj", json!("00000000000")),
            ("email", json!("a b@c")),
            ("code", json!("a\nb")),
            ("name", json!("x".repeat(256))),
            ("isGroup", json!("true")),
            ("marketingOptOut", json!("true")),
        ] {
            let body = with(json!({"name": "x"}), &json!({field: bad}));
            let reply = Reply::of(app.api.request(method.clone(), &path).json(&body)).await;
            assert_eq!(reply.invalid_fields(), [field], "{method} with {field} {bad:.20}");
        }
    }
    let nulls = json!({"name": null, "isGroup": null, "marketingOptOut": null, "tagIds": null, "customFields": null});
    assert_eq!(
        app.api.put(&format!("{PATH}/{ana}"), nulls).await.invalid_fields(),
        ["name", "isGroup", "marketingOptOut", "tagIds", "customFields"]
    );
    assert_eq!(app.api.all(PATH).await.len(), 1);
    assert_eq!(shown(&app.api, ana).await["name"], "Ana");
    app.stop().await;
}

#[actix_web::test]
async fn a_wrong_custom_value_is_named_along_with_every_other_wrong_field() {
    let app = TestApp::shared().await;
    let ana = create_contact(&app.api, json!({"name": "Ana"})).await;
    for (name, required) in [("Size", false), ("Age", true)] {
        let field = json!({"name": name, "application": "contact", "type": "number", "required": required});
        app.api.post("/custom-fields", field).await.data(201);
    }
    let values = json!([{"key": "size"}, {"key": "size", "value": "large"}, {"key": "shoe", "value": "1"}]);
    let body = json!({"name": "Bia", "email": "x", "customFields": values});
    let named = ["email", "customFields[0].value", "customFields[1].value", "customFields[2].key"];
    assert_eq!(app.api.put(&format!("{PATH}/{ana}"), body.clone()).await.invalid_fields(), named);
    let named = [&named[..], &["customFields"]].concat();
    assert_eq!(app.api.post(PATH, body).await.invalid_fields(), named);
    // A field whose value is wrong is not also named as missing.
    let wrong = json!({"email": "x", "name": "Bia", "customFields": [{"key": "age", "value": 7}]});
    assert_eq!(app.api.post(PATH, wrong).await.invalid_fields(), ["email", "customFields[0].value"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_number_belongs_to_one_contact_of_a_company() {
    let app = TestApp::shared().await;
    let (_, other) = app.another_company().await;
    let number = json!({"number": "5511900000001"});
    let ana = create_contact(&app.api, number.clone()).await;
    create_contact(&other, number.clone()).await;
    let ben = create_contact(&app.api, json!({"number": "5511900000002", "email": "a@b.example"})).await;
    let taken = json!({"field": "number", "id": ana});
    let same = json!({"name": "Else", "number": "+55 11 90000-0001"});
    assert_eq!(app.api.post(PATH, same.clone()).await.error(409, "ERR_API_CONFLICT"), &taken);
    let refused = app.api.put(&format!("{PATH}/{ben}"), same.clone()).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &taken);
    assert_eq!(shown(&app.api, ben).await["name"], "5511900000002", "the refused change was stored in part");
    // E-mails and codes are not unique; a number that was given up is free.
    create_contact(&app.api, json!({"name": "Else", "email": "a@b.example"})).await;
    change_contact(&app.api, ana, json!({"number": "5511900000001", "name": "Ana"})).await;
    change_contact(&app.api, ana, json!({"number": null})).await;
    change_contact(&app.api, ben, same).await;
    check_unique(&app, PATH, &json!({"number": "5511900000009"}), "number").await;
    app.stop().await;
}

#[actix_web::test]
async fn fifty_contacts_cannot_all_change_to_one_number() {
    let app = TestApp::shared().await;
    let mut ids = Vec::new();
    for index in 0..50 {
        ids.push(create_contact(&app.api, json!({"name": format!("{index}")})).await);
    }
    let number = json!({"number": "5511900000001"});
    let change = async |id| app.api.put_while_busy(&format!("{PATH}/{id}"), &number).await;
    let replies = join_all(ids.into_iter().map(change)).await;
    let statuses: Vec<u16> = replies.iter().map(|reply| reply.status.as_u16()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 49, "{statuses:?}");
    assert_eq!(listed(&app.api, "/contacts?number=5511900000001").await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn contacts_are_created_once_and_belong_to_one_company() {
    let app = TestApp::shared().await;
    let ana = create_contact(&app.api, json!({"name": "Ana"})).await;
    check_created_once(&app, PATH, &json!({"name": "Once"}), &json!({"name": "Twice"})).await;
    check_foreign(&app, PATH, ana, &json!({"name": "Stolen"})).await;
    // A change with an idempotency key happens once as well.
    let path = format!("{PATH}/{ana}");
    let change = async || Reply::of(app.api.keyed(Method::PUT, &path, "change", r#"{"name": "Anna"}"#)).await;
    let first = change().await;
    change_contact(&app.api, ana, json!({"name": "Later"})).await;
    let again = change().await;
    assert_eq!((again.is_replay(), &again.body), (true, &first.body));
    assert_eq!(shown(&app.api, ana).await["name"], "Later");
    app.stop().await;
}

#[actix_web::test]
async fn the_tags_of_a_contact_must_belong_to_its_company() {
    let app = TestApp::shared().await;
    let (_, other) = app.another_company().await;
    let (vip, foreign) = (create_tag(&app.api, "VIP").await, create_tag(&other, "VIP").await);
    let ana = create_contact(&app.api, json!({"name": "Ana", "tagIds": [vip]})).await;
    let before = shown(&app.api, ana).await;
    for absent in [foreign, NOBODY, 0, -1, i64::MAX] {
        let body = json!({"name": "x", "tagIds": [vip, absent]});
        app.api.post(PATH, body.clone()).await.error(404, "ERR_API_NOT_FOUND");
        app.api.put(&format!("{PATH}/{ana}"), body).await.error(404, "ERR_API_NOT_FOUND");
    }
    assert_eq!(app.api.all(PATH).await, [before], "the refused change was stored in part");
    app.stop().await;
}
