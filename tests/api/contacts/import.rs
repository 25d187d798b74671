//! Imports of many contacts.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::{PATH, create_contact, create_field, create_tag, shown, with};
use crate::steps::{NOBODY, id, listed};
use crate::support::{Api, Reply, TestApp};

const IMPORT: &str = "/contacts/import";

/// Imports rows and returns the answer without `contacts`, after checking that each good row has its contact there.
async fn import(api: &Api, rows: Value, options: &Value) -> Value {
    let given = rows.as_array().map_or(0, Vec::len);
    let body = with(json!({"contacts": rows}), options);
    let reply = api.retry_while_busy(|| api.request(Method::POST, IMPORT).json(&body)).await;
    let mut report = reply.data(200).clone();
    let Some(contacts) = report.as_object_mut().and_then(|report| report.remove("contacts")) else {
        panic!("no contacts: {report}")
    };
    let contacts = contacts.as_array().expect("a list");
    let wrong: BTreeSet<u64> =
        report["errors"].as_array().expect("errors").iter().filter_map(|error| error["index"].as_u64()).collect();
    let good: Vec<u64> = (0..given as u64).filter(|index| !wrong.contains(index)).collect();
    let indexes: Vec<u64> = contacts.iter().filter_map(|contact| contact["index"].as_u64()).collect();
    assert_eq!(indexes, good, "a good row lacks its contact, or a wrong row has one");
    for result in ["created", "updated", "skipped"] {
        let of_result = contacts.iter().filter(|contact| contact["result"] == result).count();
        assert_eq!(report[result], of_result, "{report}");
    }
    let made: Vec<i64> = contacts.iter().filter(|contact| contact["result"] == "created").map(id).collect();
    assert!(made.is_sorted_by(|a, b| a < b), "a contact was created twice: {made:?}");
    report
}

fn counts(created: usize, updated: usize, skipped: usize) -> Value {
    json!({"created": created, "updated": updated, "skipped": skipped, "errors": []})
}

/// Number, e-mail, code and name of every contact.
async fn key_fields(app: &TestApp) -> Vec<Value> {
    let all = app.api.all(PATH).await;
    all.iter().map(|row| json!([row["number"], row["email"], row["code"], row["name"]])).collect()
}

#[actix_web::test]
async fn rows_are_found_by_number_then_email_then_code() {
    let app = TestApp::shared().await;
    let (_, other) = app.another_company().await;
    create_contact(&other, json!({"number": "5511900000009", "email": "z@b.example", "code": "Z"})).await;
    let a = json!({"name": "A", "number": "5511900000001", "email": "a@b.example", "code": "A"});
    let b = json!({"name": "B", "number": "5511900000002", "email": "b@b.example", "code": "B"});
    create_contact(&app.api, a).await;
    create_contact(&app.api, b).await;
    let rows = json!([
        // By number, whatever the other fields are.
        {"number": "+55 11 90000-0001", "email": "A2@b.example", "code": "B", "name": "A by number"},
        // By e-mail, in upper or lower case; no contact has the number.
        {"number": "5511900000003", "email": "B@B.example", "name": "B by e-mail"},
        // By code: two contacts have it now, and the older one is found.
        {"code": "B", "name": "A by code", "email": null},
        // Values that no contact of this company has make a new contact, even if another company's contact has them.
        {"number": "5511900000009", "email": "z@b.example", "code": "Z"},
        {"name": "Only a name"},
        {"name": "Only a name"},
    ]);
    assert_eq!(import(&app.api, rows, &json!({})).await, counts(3, 3, 0));
    assert_eq!(
        key_fields(&app).await,
        [
            json!(["5511900000001", null, "B", "A by code"]),
            json!(["5511900000003", "B@B.example", "B", "B by e-mail"]),
            json!(["5511900000009", "z@b.example", "Z", "5511900000009"]),
            json!([null, null, null, "Only a name"]),
            json!([null, null, null, "Only a name"]),
        ]
    );
    assert_eq!(other.all(PATH).await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn duplicates_in_one_request_behave_as_if_sent_one_after_the_other() {
    let app = TestApp::shared().await;
    let (vip, new) = (create_tag(&app.api, "VIP").await, create_tag(&app.api, "New").await);
    create_field(&app.api, "Size", "number", &json!({})).await;
    create_field(&app.api, "Note", "text", &json!({})).await;
    create_contact(&app.api, json!({"name": "Old", "number": "5511900000008", "code": "old"})).await;
    let size = |value: Value| json!([{"key": "size", "value": value}]);
    let rows = json!([
        {"number": "5511900000001", "email": "a@b.example", "tagIds": [vip], "customFields": size(json!("1"))},
        {"email": "A@b.example", "name": "Ana", "origin": "fair", "customFields": [{"key": "note", "value": "x"}]},
        {"number": "5511900000001", "code": "C-1", "tagIds": [new], "customFields": size(json!(null))},
        {"code": "C-1", "origin": null, "number": "5511900000002"},
        // The first contact's number is free again, and so is the number of the contact that existed before.
        {"number": "5511900000001", "name": "Ben"},
        {"code": "old", "number": null},
        {"number": "5511900000008", "name": "Heir"},
        {"email": "heir@b.example", "name": "Eva"},
        {"number": "5511900000008", "email": "heir@b.example"},
    ]);
    assert_eq!(import(&app.api, rows, &json!({"onConflict": "update"})).await, counts(4, 5, 0));
    let all = app.api.all(PATH).await;
    assert_eq!(
        key_fields(&app).await,
        [
            json!([null, null, "old", "Old"]),
            json!(["5511900000002", "A@b.example", "C-1", "Ana"]),
            json!(["5511900000001", null, null, "Ben"]),
            json!(["5511900000008", "heir@b.example", null, "Heir"]),
            json!([null, "heir@b.example", null, "Eva"]),
        ]
    );
    let ana = &all[1];
    assert_eq!((&ana["origin"], &ana["tags"][0]["id"], ana["tags"][1].is_null()), (&Value::Null, &json!(new), true));
    assert_eq!(ana["customFields"].as_array().map(Vec::len), Some(1));
    assert_eq!(ana["customFields"][0]["key"], "note");

    // Two contacts swap their numbers in one request.
    let rows = json!([
        {"code": "C-1", "number": null}, {"number": "5511900000001", "code": "ben"},
        {"code": "ben", "number": "5511900000002"}, {"code": "C-1", "number": "5511900000001"},
    ]);
    assert_eq!(import(&app.api, rows, &json!({})).await, counts(0, 4, 0));
    let now = key_fields(&app).await;
    assert_eq!((&now[1][0], &now[2][0]), (&json!("5511900000001"), &json!("5511900000002")));
    app.stop().await;
}

#[actix_web::test]
async fn with_skip_existing_contacts_stay_as_they_are() {
    let app = TestApp::shared().await;
    let ana = create_contact(&app.api, json!({"name": "Ana", "number": "5511900000001"})).await;
    let before = shown(&app.api, ana).await;
    let rows = json!([
        {"number": "5511900000001", "name": "Else", "tagIds": [NOBODY]},
        {"number": "5511900000002", "name": "Ben"},
        {"number": "5511900000002", "name": "Else"},
    ]);
    assert_eq!(import(&app.api, rows, &json!({"onConflict": "skip"})).await, counts(1, 0, 2));
    let all = app.api.all(PATH).await;
    assert_eq!((all.len(), &all[0], &all[1]["name"]), (2, &before, &json!("Ben")));
    app.stop().await;
}

#[actix_web::test]
async fn good_rows_are_stored_although_others_fail() {
    let app = TestApp::shared().await;
    let (_, other) = app.another_company().await;
    let foreign = create_tag(&other, "VIP").await;
    let vip = create_tag(&app.api, "VIP").await;
    create_field(&app.api, "Size", "number", &json!({"required": true})).await;
    let size = json!([{"key": "size", "value": "42"}]);
    let good = |number: &str| json!({"number": number, "customFields": size, "tagIds": [vip]});
    let rows = json!([
        good("5511900000001"),
        {"email": "no", "number": "1", "isGroup": "x", "customFields": [{"key": 7}]},
        7,
        {"email": "a@b.example", "customFields": size},
        {"number": "5511900000002"},
        with(good("5511900000003"), &json!({"tagIds": [vip, foreign, NOBODY]})),
        with(good("5511900000004"), &json!({"customFields": [{"key": "size", "value": "big"}, {"key": "x", "value": ""}]})),
        good("5511900000005"),
        // The failed row of this number left no contact behind, so this makes one.
        with(good("5511900000003"), &json!({"name": "Late"})),
        {},
    ]);
    let report = import(&app.api, rows, &json!({})).await;
    assert_eq!((&report["created"], &report["updated"], &report["skipped"]), (&json!(3), &json!(0), &json!(0)));
    let mut errors: Vec<(i64, &str)> = Vec::new();
    for error in report["errors"].as_array().expect("errors") {
        assert!(error["reason"].is_string() && error.as_object().is_some_and(|error| error.len() == 5), "{error}");
        assert!(error["code"].is_string() && error["params"].is_object(), "{error}");
        errors.push((error["index"].as_i64().expect("index"), error["field"].as_str().expect("field")));
    }
    assert_eq!(
        errors,
        [
            (1, "isGroup"),
            (1, "number"),
            (1, "email"),
            (1, "customFields[0].key"),
            (1, "customFields[0].value"),
            (2, "contacts[2]"),
            (3, "name"),
            (4, "customFields"),
            (5, "tagIds[1]"),
            (5, "tagIds[2]"),
            (6, "customFields[0].value"),
            (6, "customFields[1].key"),
            (9, "name"),
            (9, "customFields"),
        ]
    );
    // A contact with the same mistakes that is created alone is refused with the same errors.
    let of = |index: usize| &report["errors"][index];
    assert_eq!((&of(0)["code"], &of(0)["params"]), (&json!("not_a_boolean"), &json!({})));
    assert_eq!((&of(1)["code"], &of(1)["params"]), (&json!("not_a_phone_number"), &json!({"min": 8, "max": 15})));
    assert_eq!((&of(2)["code"], &of(8)["code"]), (&json!("not_an_email"), &json!("unknown_record")));
    let alone = app.api.post(PATH, json!({"email": "no", "number": "1", "isGroup": "x"})).await;
    for detail in alone.error(422, "ERR_API_VALIDATION").as_array().expect("details") {
        let error = report["errors"].as_array().and_then(|all| all.iter().find(|row| row["field"] == detail["field"]));
        let error = error.unwrap_or_else(|| panic!("{detail} is not an error of the import"));
        for part in ["reason", "code", "params"] {
            assert_eq!(error[part], detail[part], "{detail}");
        }
    }
    let all = app.api.all(PATH).await;
    let numbers: Vec<&str> = all.iter().filter_map(|row| row["number"].as_str()).collect();
    assert_eq!(numbers, ["5511900000001", "5511900000005", "5511900000003"]);
    assert!(all.iter().all(|row| row["customFields"][0]["value"] == "42" && row["tags"][0]["id"] == vip), "{all:?}");
    app.stop().await;
}

#[actix_web::test]
async fn every_wrong_field_of_a_row_is_named() {
    let app = TestApp::shared().await;
    let vip = create_tag(&app.api, "VIP").await;
    create_field(&app.api, "Size", "number", &json!({})).await;
    create_field(&app.api, "Plan", "text", &json!({"required": true})).await;
    create_contact(
        &app.api,
        json!({"name": "Ana", "number": "5511900000001", "customFields": [{"key": "plan", "value": "x"}]}),
    )
    .await;
    let big = json!([{"key": "size", "value": "big"}]);
    let rows = json!([
        // This contact is new, and lacks what a new one needs.
        {"name": "New", "isGroup": "x", "tagIds": [NOBODY], "customFields": big},
        {"name": 7, "origin": 7, "tagIds": [vip, "x", NOBODY]},
        // These exist, or may exist.
        {"number": "5511900000001", "isGroup": "x", "tagIds": ["x", vip, NOBODY], "customFields": big},
        {"email": "no", "customFields": big},
    ]);
    let report = import(&app.api, rows.clone(), &json!({})).await;
    let errors = report["errors"].as_array().expect("errors").iter();
    let errors: Vec<(u64, &str)> = errors
        .map(|error| (error["index"].as_u64().expect("index"), error["field"].as_str().expect("field")))
        .collect();
    assert_eq!(
        errors,
        [
            (0, "isGroup"),
            (0, "tagIds[0]"),
            (0, "customFields[0].value"),
            (0, "customFields"),
            (1, "name"),
            (1, "tagIds[1]"),
            (1, "origin"),
            (1, "tagIds[2]"),
            (1, "customFields"),
            (2, "isGroup"),
            (2, "tagIds[0]"),
            (2, "tagIds[2]"),
            (2, "customFields[0].value"),
            (3, "email"),
            (3, "customFields[0].value"),
        ]
    );
    // A row that would be skipped is checked all the same.
    let report = import(&app.api, json!([rows[2]]), &json!({"onConflict": "skip"})).await;
    assert_eq!(report["errors"][0]["field"], "isGroup");
    assert_eq!(app.api.all(PATH).await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn an_import_itself_must_be_well_formed() {
    let app = TestApp::shared().await;
    let many = vec![json!({"name": "x"}); 1001];
    for (body, fields) in [
        (json!({}), vec!["contacts"]),
        (json!({"contacts": null, "onConflict": "replace"}), vec!["contacts", "onConflict"]),
        (json!({"contacts": {}}), vec!["contacts"]),
        (json!({"contacts": many}), vec!["contacts"]),
        (json!({"contacts": [], "onConflict": 7}), vec!["onConflict"]),
    ] {
        assert_eq!(app.api.post(IMPORT, body).await.invalid_fields(), fields);
    }
    assert_eq!(import(&app.api, json!([]), &json!({"onConflict": null})).await, counts(0, 0, 0));
    app.api.get(IMPORT).await.error(405, "ERR_API_METHOD_NOT_ALLOWED");
    app.stop().await;
}

#[actix_web::test]
async fn an_import_under_a_key_happens_once() {
    let app = TestApp::shared().await;
    let body = json!({"contacts": [{"name": "Ana"}, {"name": "Ben"}, {"email": "x"}]}).to_string();
    let replies =
        join_all((0..10).map(|_| Reply::of(app.api.keyed(Method::POST, IMPORT, "import", body.clone())))).await;
    for reply in &replies {
        assert_eq!(reply.data(200)["created"], 2);
        assert_eq!(reply.bytes, replies[0].bytes);
    }
    assert_eq!(replies.iter().filter(|reply| !reply.is_replay()).count(), 1);
    assert_eq!(app.api.all(PATH).await.len(), 2);
    app.stop().await;
}

#[actix_web::test]
async fn concurrent_imports_creations_and_sends_make_one_contact_for_each_number() {
    let app = TestApp::shared().await;
    const NUMBERS: usize = 60;
    let number = |index: usize| format!("55119{index:08}");
    let imports = (0..6).map(async |client: usize| {
        let mut rows: Vec<Value> =
            (0..NUMBERS).map(|index| json!({"number": number(index), "name": format!("import {client}")})).collect();
        rows.rotate_left(client * 10);
        let report = import(&app.api, json!(rows), &json!({})).await;
        assert_eq!(report["errors"], json!([]));
        assert_eq!(report["created"].as_u64().zip(report["updated"].as_u64()).map(|(new, old)| new + old), Some(60));
    });
    let creations = (0..NUMBERS).rev().map(async |index| {
        let created = json!({"number": number(index), "name": "created"});
        let reply = app.api.retry_while_busy(|| app.api.request(Method::POST, PATH).json(&created)).await;
        assert!([201, 409].contains(&reply.status.as_u16()), "{}", reply.body);
    });
    let sends = (0..NUMBERS).map(async |index| {
        let body = json!({"channelId": app.company.phone, "number": number(index), "type": "text", "body": "x"});
        app.api.retry_while_busy(|| app.api.request(Method::POST, "/messages").json(&body)).await.data(202);
    });
    tokio::join!(join_all(imports), join_all(creations), join_all(sends));
    let all = app.api.all(PATH).await;
    assert_eq!(all.len(), NUMBERS);
    for contact in &all {
        // The ticket shows the name of the last write.
        let ticket = app.api.all(&format!("/tickets?contactId={}", id(contact))).await;
        let hot = app.api.get(&format!("/tickets/{}", ticket[0]["id"])).await;
        assert_eq!(hot.data(200)["contact"]["name"], contact["name"]);
        assert_eq!(ticket[0]["contact"]["name"], contact["name"]);
    }
    app.stop().await;
}

/// Imports a thousand new rows and then the same rows again; returns how long each import took.
async fn import_a_thousand_rows() -> [Duration; 2] {
    let app = TestApp::shared().await;
    let vip = create_tag(&app.api, "VIP").await;
    create_field(&app.api, "Size", "number", &json!({})).await;
    let rows = |name: &str| -> Value {
        let row = |index: usize| {
            json!({
                "name": format!("{name} {index}"), "number": format!("55119{index:08}"), "origin": "import",
                "email": format!("{index}@example.com"), "code": format!("C-{index}"), "tagIds": [vip],
                "customFields": [{"key": "size", "value": format!("{index}")}],
            })
        };
        (0..1000).map(row).collect()
    };
    let mut times = [Duration::ZERO; 2];
    let imports = [("new", counts(1000, 0, 0)), ("again", counts(0, 1000, 0))];
    for (time, (name, expected)) in times.iter_mut().zip(imports) {
        let rows = rows(name);
        let begun = Instant::now();
        assert_eq!(import(&app.api, rows, &json!({})).await, expected);
        *time = begun.elapsed();
        println!("1,000 rows, {name}: {} ms", time.as_millis());
    }
    assert_eq!(listed(&app.api, "/contacts?search=again%20999").await.len(), 1);
    assert_eq!(listed(&app.api, &format!("/contacts?tagId={vip}")).await.len(), 1000);
    app.stop().await;
    times
}

#[actix_web::test]
async fn a_thousand_rows_are_imported_and_imported_again() {
    import_a_thousand_rows().await;
}

#[actix_web::test]
async fn a_thousand_rows_take_a_moment_measured() {
    let times = import_a_thousand_rows().await;
    // The promise is one second, for a release build on an idle machine.
    assert!(times.iter().all(|time| *time < Duration::from_secs(5)), "{times:?}");
}

#[actix_web::test]
async fn each_row_is_answered_with_the_id_of_its_contact() {
    let app = TestApp::shared().await;
    let known = create_contact(&app.api, json!({"name": "Known", "number": "5511900000001", "code": "K"})).await;
    let other = create_contact(&app.api, json!({"name": "Other", "code": "O"})).await;
    let rows = json!([
        {"name": "New", "number": "5511900000002"},
        {"number": "5511900000001", "name": "Known again"},
        {"name": "Bad", "email": "nothing"},
        // The contact of the first row, which has no id until all rows are read.
        {"number": "5511900000002", "name": "New again"},
        {"code": "O"},
    ]);
    for (on_conflict, results) in [
        ("update", ["created", "updated", "updated", "updated"]),
        ("skip", ["skipped", "skipped", "skipped", "skipped"]),
    ] {
        let reply = app.api.post(IMPORT, json!({"contacts": rows, "onConflict": on_conflict})).await;
        let made = listed(&app.api, "/contacts?number=5511900000002").await[0];
        let expected: Vec<Value> = [0, 1, 3, 4]
            .into_iter()
            .zip([made, known, made, other])
            .zip(results)
            .map(|((index, id), result)| json!({"index": index, "id": id, "result": result}))
            .collect();
        assert_eq!(reply.data(200)["contacts"], json!(expected), "{on_conflict}");
        assert_eq!(reply.data(200)["errors"][0]["index"], 2);
    }
    // A contact that one row creates and a later row of the same import skips.
    let twice = json!([{"number": "5511900000003"}, {"number": "5511900000003"}]);
    let reply = app.api.post(IMPORT, json!({"contacts": twice, "onConflict": "skip"})).await;
    let made = listed(&app.api, "/contacts?number=5511900000003").await[0];
    let expected = json!([
        {"index": 0, "id": made, "result": "created"},
        {"index": 1, "id": made, "result": "skipped"},
    ]);
    assert_eq!(reply.data(200)["contacts"], expected);
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_is_found_by_the_email_it_was_created_with_in_any_script() {
    let app = TestApp::shared().await;
    // Rust's lower case of the last letter differs from PostgreSQL's.
    let emails = ["ΝΙΚΟΣ@x.example", "ÉVA@x.example"];
    let rows = || json!(emails.map(|email| json!({"name": "N", "email": email})));
    assert_eq!(import(&app.api, rows(), &json!({})).await, counts(2, 0, 0));
    assert_eq!(import(&app.api, rows(), &json!({})).await, counts(0, 2, 0));
    // Also by a later row of the same import.
    let new = || json!({"name": "N", "email": "ΘΩΜΑΣ@x.example"});
    assert_eq!(import(&app.api, json!([new(), new()]), &json!({})).await, counts(1, 1, 0));
    let all = listed(&app.api, PATH).await;
    assert_eq!(all.len(), 3);
    for (email, contact) in [emails[0], emails[1], "ΘΩΜΑΣ@X.EXAMPLE"].into_iter().zip(all) {
        let query: String = form_urlencoded::byte_serialize(email.as_bytes()).collect();
        assert_eq!(listed(&app.api, &format!("/contacts?email={query}")).await, [contact], "{email}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn contacts_are_found_by_their_exact_code_only() {
    let app = TestApp::shared().await;
    let a = create_contact(&app.api, json!({"name": "A", "code": "C-1"})).await;
    let b = create_contact(&app.api, json!({"name": "C-1", "code": "C-10", "email": "c-1@b.example"})).await;
    let c = create_contact(&app.api, json!({"name": "C", "code": "C-1"})).await;
    for (query, found) in
        [("C-1", vec![a, c]), (" C-1 ", vec![a, c]), ("C-10", vec![b]), ("c-1", vec![]), ("C-2", vec![])]
    {
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        assert_eq!(listed(&app.api, &format!("/contacts?code={query}")).await, found, "{query}");
    }
    let (_, other) = app.another_company().await;
    assert_eq!(listed(&other, "/contacts?code=C-1").await, [0; 0]);
    app.stop().await;
}
