//! The fields of a campaign, and the values that they refuse.

use reqwest::Method;
use serde_json::{Value, json};

use super::{LATER, contacts, create_campaign, list, shown, text};
use crate::check_list::{check_list, check_span};
use crate::messages::templates::{Phone, plain as template};
use crate::plain::{check_created_once, check_foreign};
use crate::steps::{NOBODY, assert_timestamp, id, listed};
use crate::support::{Provider, TestApp};

#[actix_web::test]
async fn a_campaign_is_created_changed_and_deleted() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let (first, second) = (list(api, &contacts(&app, 2).await).await, list(api, &[]).await);
    let body = json!({
        "name": " Spring sale ", "contactListId": first, "channelId": app.company.phone, "scheduledAt": LATER,
        "message": " Hello {{name}} ", "ratePerMinute": 600, "keepClosed": true, "id": 1, "status": "completed",
        "completedAt": LATER, "counts": {"sent": 7}, "companyId": 2, "unknown": true,
    });
    let reply = api.post("/campaigns", body).await;
    let campaign = reply.data(201);
    assert_timestamp(&campaign["createdAt"]);
    let none = json!({"pending": 0, "sent": 0, "delivered": 0, "read": 0, "failed": 0, "skipped": 0, "unknown": 0});
    let expected = json!({
        "id": campaign["id"], "name": "Spring sale", "status": "scheduled", "scheduledAt": LATER, "completedAt": null,
        "contactListId": first, "channelId": app.company.phone, "message": "Hello {{name}}", "template": null,
        "ratePerMinute": 600, "keepClosed": true, "counts": none, "pausedReason": null,
        "createdAt": campaign["createdAt"], "updatedAt": campaign["createdAt"],
    });
    assert_eq!(reply.body, json!({"data": expected}));
    let made_id = id(campaign);
    assert_eq!(&shown(api, made_id).await, campaign);
    assert_eq!(api.all("/campaigns").await, std::slice::from_ref(campaign));
    // No recipient is chosen before the campaign starts.
    assert_eq!(api.all(&format!("/campaigns/{made_id}/recipients")).await, [Value::Null; 0]);

    let path = format!("/campaigns/{made_id}");
    let mut now = campaign.clone();
    for (change, different) in [
        (json!({}), json!({})),
        (json!({"name": "Summer sale"}), json!({"name": "Summer sale"})),
        (json!({"contactListId": second}), json!({"contactListId": second})),
        (json!({"channelId": app.company.webchat}), json!({"channelId": app.company.webchat})),
        (json!({"scheduledAt": "2099-02-01T00:00:00+01:00"}), json!({"scheduledAt": "2099-01-31T23:00:00.000Z"})),
        (json!({"message": "Bye", "template": null}), json!({"message": "Bye"})),
        (json!({"ratePerMinute": 1, "keepClosed": false}), json!({"ratePerMinute": 1, "keepClosed": false})),
        (json!({"ratePerMinute": 6000}), json!({"ratePerMinute": 6000})),
        (json!({"status": "canceled", "counts": {"sent": 1}}), json!({})),
    ] {
        let reply = api.put(&path, change.clone()).await;
        let after = reply.data(200);
        for (field, value) in different.as_object().expect("fields") {
            now[field] = value.clone();
        }
        now["updatedAt"] = after["updatedAt"].clone();
        assert_eq!(after, &now, "{change}");
        assert_eq!(shown(api, made_id).await, now, "{change}");
    }
    let deleted = api.delete(&path).await;
    assert_eq!((deleted.status.as_u16(), deleted.bytes.len()), (204, 0));
    api.get(&path).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(listed(api, "/campaigns").await, [0; 0]);

    // A field that is left out has its default; a retried request creates one campaign.
    let short = create_campaign(api, text(first, app.company.phone.0, "Hello")).await;
    let short = shown(api, short).await;
    assert_eq!((&short["ratePerMinute"], &short["keepClosed"]), (&json!(60), &json!(false)));
    let body = text(first, app.company.phone.0, "Hello");
    check_created_once(&app, "/campaigns", &body, &text(first, app.company.phone.0, "Bye")).await;
    check_foreign(&app, "/campaigns", id(&short), &json!({"name": "theirs"})).await;
    let (_, other) = app.another_company().await;
    for verb in ["start", "pause", "resume", "cancel"] {
        for campaign in [id(&short), NOBODY] {
            other.post(&format!("/campaigns/{campaign}/{verb}"), json!({})).await.error(404, "ERR_API_NOT_FOUND");
        }
    }
    other.get(&format!("/campaigns/{}/recipients", id(&short))).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(shown(api, id(&short)).await, short);
    app.stop().await;
}

#[actix_web::test]
async fn the_list_has_every_filter() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let (first, second) = (list(api, &[]).await, list(api, &[]).await);
    let mut all = Vec::new();
    for (list, name) in [(first, "Spring sale"), (second, "Promoção"), (first, "Summer sale"), (second, "x")] {
        let mut body = text(list, app.company.phone.0, "Hello");
        body["name"] = json!(name);
        all.push(create_campaign(api, body).await);
    }
    api.put(&format!("/campaigns/{}", all[3]), json!({"channelId": app.company.webchat})).await.data(200);
    api.post(&format!("/campaigns/{}/cancel", all[2]), json!({})).await.data(200);
    check_list(&app, "/campaigns", &all, &["created", "updated"]).await;
    for (query, wanted) in [
        ("status=scheduled".to_owned(), vec![0, 1, 3]),
        ("status=canceled".to_owned(), vec![2]),
        ("status=processing".to_owned(), vec![]),
        ("search=SALE".to_owned(), vec![0, 2]),
        ("search=promocao".to_owned(), vec![1]),
        (format!("contactListId={second}"), vec![1, 3]),
        (format!("channelId={}", app.company.webchat), vec![3]),
        (format!("channelId={}&contactListId={first}&status=scheduled", app.company.phone), vec![0]),
    ] {
        let wanted: Vec<i64> = wanted.into_iter().map(|index: usize| all[index]).collect();
        assert_eq!(listed(api, &format!("/campaigns?{query}")).await, wanted, "{query}");
    }
    for missing in ["contactListId", "channelId"] {
        api.get(&format!("/campaigns?{missing}={NOBODY}")).await.error(404, "ERR_API_NOT_FOUND");
    }
    assert_eq!(api.get("/campaigns?status=sent&contactListId=x").await.invalid_fields(), ["status", "contactListId"]);
    app.stop().await;
}

#[actix_web::test]
async fn every_wrong_field_is_named_and_an_absent_record_is_a_404() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let list = list(api, &[]).await;
    let good = text(list, app.company.phone.0, "hello");
    let kept = create_campaign(api, good.clone()).await;
    let path = format!("/campaigns/{kept}");
    let before = shown(api, kept).await;
    let with = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body
    };
    let needed = ["contactListId", "channelId", "scheduledAt", "message", "name"];
    assert_eq!(api.post("/campaigns", json!({})).await.invalid_fields(), needed);
    for (field, values) in [
        ("scheduledAt", vec![json!("2020-01-01T00:00:00Z"), json!(7), json!("soon"), Value::Null]),
        ("name", vec![json!(""), json!("x".repeat(256)), Value::Null]),
        ("contactListId", vec![json!("1"), Value::Null]),
        ("channelId", vec![json!(1.5), Value::Null]),
        ("message", vec![json!(" "), json!("x".repeat(65_537)), json!(7)]),
        ("ratePerMinute", vec![json!(0), json!(6001), json!("60"), json!(1.5)]),
        ("keepClosed", vec![json!("yes")]),
    ] {
        for value in values {
            let refused = api.post("/campaigns", with(field, value.clone())).await;
            assert_eq!(refused.invalid_fields(), [field], "{value}");
            let refused = api.put(&path, json!({field: value})).await;
            assert_eq!(refused.invalid_fields(), [field], "{value}");
        }
    }
    let both = json!({"name": "hello"});
    assert_eq!(api.post("/campaigns", with("template", both.clone())).await.invalid_fields(), ["template"]);
    let refused = api.put(&path, json!({"message": "hello", "template": both})).await;
    assert_eq!(refused.invalid_fields(), ["template"]);
    for field in ["contactListId", "channelId"] {
        api.post("/campaigns", with(field, json!(NOBODY))).await.error(404, "ERR_API_NOT_FOUND");
        api.put(&path, json!({field: NOBODY})).await.error(404, "ERR_API_NOT_FOUND");
    }
    for absent in [NOBODY.to_string(), "x".to_owned(), i64::MAX.to_string()] {
        let path = format!("/campaigns/{absent}");
        for (method, path) in [
            (Method::GET, path.clone()),
            (Method::DELETE, path.clone()),
            (Method::GET, format!("{path}/recipients")),
            (Method::POST, format!("{path}/start")),
            (Method::POST, format!("{path}/pause")),
            (Method::POST, format!("{path}/resume")),
            (Method::POST, format!("{path}/cancel")),
        ] {
            let reply = crate::support::Reply::of(api.request(method.clone(), &path)).await;
            assert_eq!(reply.error(404, "ERR_API_NOT_FOUND"), &Value::Null, "{method} {path}");
        }
        api.put(&path, json!({"name": "x"})).await.error(404, "ERR_API_NOT_FOUND");
    }
    assert_eq!(shown(api, kept).await, before);
    assert_eq!(listed(api, "/campaigns").await, [kept]);
    app.stop().await;
}

#[actix_web::test]
async fn a_template_is_checked_when_it_is_set_and_replaces_a_text() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let provider = Provider::start().await;
    let phone = Phone::connect(&app, &provider).await;
    provider.has_templates(
        &phone.account,
        vec![template("hello", "en_US", "Hello {{1}}!"), template("bye", "en_US", "Bye!")],
    );
    let contact = contacts(&app, 1).await;
    let mut body = text(list(api, &contact).await, phone.id, "");
    body.as_object_mut().expect("fields").remove("message");
    let greeting = json!({"name": "hello", "language": "en_US", "parameters": {"body": ["{{firstName}}"]}});
    let with = |template: Value| {
        let mut body = body.clone();
        body["template"] = template;
        body
    };
    for (wrong, field) in [
        (json!({"name": "nothing"}), "template.name"),
        (json!({"name": "hello"}), "template.parameters.body"),
        (json!({"language": "en_US"}), "template.name"),
        (json!([]), "template"),
    ] {
        let refused = api.post("/campaigns", with(wrong.clone())).await;
        assert_eq!(refused.invalid_fields(), [field], "{wrong}");
    }
    let reply = api.post("/campaigns", with(greeting.clone())).await;
    assert_eq!((&reply.data(201)["message"], &reply.data(201)["template"]), (&Value::Null, &greeting));
    let path = format!("/campaigns/{}", reply.data(201)["id"]);
    // A text replaces the template, and a template the text. A channel without the template is refused.
    let text = api.put(&path, json!({"message": "Hello"})).await;
    assert_eq!((&text.data(200)["message"], &text.data(200)["template"]), (&json!("Hello"), &Value::Null));
    let back = api.put(&path, json!({"template": greeting})).await;
    assert_eq!((&back.data(200)["message"], &back.data(200)["template"]), (&Value::Null, &greeting));
    let elsewhere = api.put(&path, json!({"channelId": app.company.webchat})).await;
    assert_eq!(elsewhere.invalid_fields(), ["template.name"]);
    api.put(&path, json!({"channelId": phone.id, "ratePerMinute": 6000})).await.data(200);

    api.post(&format!("{path}/start"), json!({})).await.data(200);
    let call = provider.accepts(&phone.account, 1).await.remove(0);
    assert_eq!(call.body["template"]["components"][0]["parameters"], json!([{"type": "text", "text": "Contact"}]));
    let message = app.api.all("/messages").await.remove(0);
    assert_eq!((&message["body"], &message["source"]), (&json!("Hello Contact!"), &json!("campaign")));
    drop(provider);
    app.stop().await;
}

#[actix_web::test]
async fn recipients_are_listed_in_the_order_of_their_contacts_and_deleted_with_them() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let contacts = contacts(&app, 5).await;
    let campaign = create_campaign(api, text(list(api, &contacts).await, app.company.phone.0, "hello")).await;
    let started = super::post_verb(api, campaign, "start").await;
    assert_eq!((&started["status"], super::counts(&started)), (&json!("processing"), json!({"pending": 5})));
    super::post_verb(api, campaign, "cancel").await;
    let path = format!("/campaigns/{campaign}/recipients");
    let ids = |rows: &[Value]| rows.iter().map(|row| id(&row["contact"])).collect::<Vec<_>>();
    assert_eq!(ids(&api.all(&path).await), contacts);
    let page = api.get(&format!("{path}?page=2&perPage=2&order=desc")).await;
    assert_eq!(ids(page.data(200).as_array().expect("rows")), [contacts[2], contacts[1]]);
    assert_eq!(page.body["meta"], json!({"page": 2, "perPage": 2, "hasMore": true}));
    assert_eq!(api.get(&format!("{path}?status=queued")).await.invalid_fields(), ["status"]);
    assert_eq!(api.all(&format!("{path}?updatedFrom={LATER}")).await, [Value::Null; 0]);
    assert_eq!(api.all(&format!("{path}?updatedTo={LATER}")).await.len(), 5);
    assert_eq!(api.all(&format!("{path}?status=delivered")).await, [Value::Null; 0]);
    check_span(&app, "/campaigns", "updated").await;

    let total = |campaign: &Value| {
        campaign["counts"].as_object().expect("counts").values().filter_map(Value::as_i64).sum::<i64>()
    };
    assert_eq!(total(&shown(api, campaign).await), 5);
    sqlx::query("update tickets set status = 'closed', closed_at = now() where company_id = $1")
        .bind(app.company.id)
        .execute(&app.db)
        .await
        .expect("closed");
    assert_eq!(api.delete(&format!("/contacts/{}", contacts[4])).await.status, 204);
    assert_eq!(ids(&api.all(&path).await), contacts[..4]);
    assert_eq!(total(&shown(api, campaign).await), 4);
    app.stop().await;
}
