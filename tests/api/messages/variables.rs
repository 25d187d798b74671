//! Variables in messages: the stored body has their values at the time of the send.

use hotline_persistence::tables::companies::{self, CompanyChanges};
use serde_json::{Value, json};

use super::visited;
use crate::steps::{id, listed, sent, sql, ticket};
use crate::support::TestApp;
use crate::support::form::Form;

async fn send_text(app: &TestApp, ticket: i64, body: &str) -> Value {
    sent(&app.api, json!({"ticketId": ticket, "type": "text", "body": body})).await["body"].clone()
}

/// Creates a contact with a value for every variable; returns their open ticket on the phone channel.
async fn open_for_maria(app: &TestApp) -> i64 {
    for (name, kind, options) in [
        ("Shoe size", "number", json!([])),
        ("Colours", "multiselect", json!(["Blue", "Red"])),
        ("hours", "text", json!([])),
    ] {
        let field = json!({"name": name, "application": "contact", "type": kind, "options": options});
        app.api.post("/custom-fields", field).await.data(201);
    }
    for (key, value) in [("hours", "9 to 18"), ("site", "https://acme.example"), ("nested", "{{name}} {{")] {
        app.api.post("/global-variables", json!({"key": key, "value": value})).await.data(201);
    }
    let keys: Vec<Value> = app.api.all("/custom-fields").await.iter().map(|field| field["key"].clone()).collect();
    let values = ["42", r#"["Blue","Red"]"#];
    let custom: Vec<Value> = keys.iter().zip(values).map(|(key, value)| json!({"key": key, "value": value})).collect();
    let contact =
        json!({"name": "Maria Lima", "number": "5511987654321", "email": "maria@example.com", "customFields": custom});
    let contact = id(app.api.post("/contacts", contact).await.data(201));
    let opened = json!({"channelId": app.company.phone, "contactId": contact});
    id(app.api.post("/tickets", opened).await.data(201))
}

#[actix_web::test]
async fn every_variable_has_its_value_and_an_unknown_one_has_none() {
    let app = TestApp::shared().await;
    let open = open_for_maria(&app).await;
    let keys: Vec<Value> = app.api.all("/custom-fields").await.iter().map(|field| field["key"].clone()).collect();
    let target = json!({"queueId": app.company.sales, "userId": app.company.ben});
    app.api.post(&format!("/tickets/{open}/transfer"), target).await.data(200);
    let shoe_size = format!("{{{{{}}}}}", keys[0].as_str().expect("a key"));
    let colours = format!("{{{{{}}}}}", keys[1].as_str().expect("a key"));
    for (text, expected) in [
        ("{{name}}", "Maria Lima".to_owned()),
        ("{{ firstName }}", "Maria".to_owned()),
        ("{{number}}", "5511987654321".to_owned()),
        ("{{email}}", "maria@example.com".to_owned()),
        ("{{ticketId}}", open.to_string()),
        ("{{queue}}", "Sales".to_owned()),
        ("{{agent}}", "Ben".to_owned()),
        ("{{channel}}", "Phone".to_owned()),
        ("{{company}}", "Acme".to_owned()),
        (&shoe_size, "42".to_owned()),
        (&colours, "Blue, Red".to_owned()),
        ("{{site}}", "https://acme.example".to_owned()),
        // The contact has no value of the field with this key.
        ("{{hours}}", "9 to 18".to_owned()),
        ("{{unknown}}", String::new()),
        ("{{Name}}", String::new()),
        // A value is text: variables in it are not replaced.
        ("{{nested}}name}}", "{{name}} {{name}}".to_owned()),
    ] {
        assert_eq!(send_text(&app, open, &format!("[{text}]")).await, json!(format!("[{expected}]")), "{text}");
    }
    let refused = app.api.post("/messages", json!({"ticketId": open, "type": "text", "body": "{{unknown}}"})).await;
    assert_eq!(refused.invalid_fields(), ["body"], "an empty text was sent");
    app.stop().await;
}

#[actix_web::test]
async fn a_variable_without_a_value_is_replaced_by_nothing() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await.0;
    assert_eq!(send_text(&app, open, "[{{email}}{{queue}}{{agent}}]").await, "[]");
    app.stop().await;
}

#[actix_web::test]
async fn date_time_and_greeting_are_in_the_companys_time_zone() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await.0;
    for zone in ["Pacific/Kiritimati", "Pacific/Midway"] {
        let changes = CompanyChanges { time_zone: Some(zone.to_owned()), ..CompanyChanges::default() };
        companies::update(&app.db, app.company.id, changes).await.expect("the zone");
        app.refreshed().await;
        let message =
            sent(&app.api, json!({"ticketId": open, "type": "text", "body": "{{date}}|{{time}}|{{greeting}}"})).await;
        // Computed in SQL, which has its own time zones.
        let expected: String = sqlx::query_scalar(
            "select to_char(at, 'YYYY-MM-DD|HH24:MI|') || case when extract(hour from at) between 5 and 11 then 'Good morning'
                 when extract(hour from at) between 12 and 17 then 'Good afternoon' else 'Good evening' end
             from (select $1::timestamptz at time zone $2 as at) x",
        )
        .bind(message["createdAt"].as_str().expect("a time").parse::<chrono::DateTime<chrono::Utc>>().expect("a time"))
        .bind(zone)
        .fetch_one(&app.db)
        .await
        .expect("the clock");
        assert_eq!(message["body"], expected.as_str(), "{zone}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn ticket_variables_have_values_even_if_the_send_opens_the_ticket() {
    let app = TestApp::shared().await;
    let phone = app.company.phone;
    let text = "{{ticketId}} {{name}} {{email}}";
    let to_number =
        json!({"channelId": phone, "number": "5511900000001", "contactName": "Maria", "type": "text", "body": text});
    let opened = sent(&app.api, to_number).await;
    assert_eq!(opened["body"], json!(format!("{} Maria ", opened["ticketId"])));
    let contact =
        app.api.post("/contacts", json!({"name": "Zoe", "number": "5511900000002", "email": "z@example.com"})).await;
    let to_contact = json!({"channelId": phone, "contactId": id(contact.data(201)), "type": "text", "body": text});
    let opened = sent(&app.api, to_contact).await;
    assert_eq!(opened["body"], json!(format!("{} Zoe z@example.com", opened["ticketId"])));
    app.stop().await;
}

#[actix_web::test]
async fn the_rendered_body_is_stored_and_its_length_is_limited() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await.0;
    app.api.post("/global-variables", json!({"key": "long", "value": "x".repeat(10_000)})).await.data(201);
    let whole = format!("{}{}", "{{long}}".repeat(6), "y".repeat(5_536));
    assert_eq!(send_text(&app, open, &whole).await.as_str().map(str::len), Some(65_536));
    let refused =
        app.api.post("/messages", json!({"ticketId": open, "type": "text", "body": format!("{whole}y")})).await;
    assert_eq!(refused.invalid_fields(), ["body"]);
    // A later change of a value changes no sent message.
    let stored = send_text(&app, open, "Dear {{name}}").await;
    sql(&app, "update contacts set name = 'Changed' where company_id = $1", app.company.id.0).await;
    assert_eq!(ticket(&app.api, open).await["lastMessage"]["body"], stored);
    assert_eq!(listed(&app.api, "/messages").await.len(), 2);
    app.stop().await;
}

#[actix_web::test]
async fn a_send_that_is_refused_for_its_variables_creates_no_contact() {
    let app = TestApp::shared().await;
    let body = json!({"channelId": app.company.phone, "number": "5511900000001", "type": "text", "body": "{{email}}"});
    assert_eq!(app.api.post("/messages", body).await.invalid_fields(), ["body"]);
    assert_eq!(listed(&app.api, "/contacts").await, [0; 0]);
    app.stop().await;
}

#[actix_web::test]
async fn a_caption_may_have_variables() {
    let app = TestApp::shared().await;
    let (_, _, open) = visited(&app, "Maria Lima").await;
    let form = Form::default()
        .text("ticketId", open)
        .text("type", "media")
        .text("body", "For {{firstName}}")
        .file("a.txt", "text/plain", b"hello")
        .file("b.txt", "text/plain", b"world");
    app.api.send_form(form).await.data(202);
    let bodies: Vec<Value> =
        app.api.all("/messages?type=media").await.iter().map(|message| message["body"].clone()).collect();
    assert_eq!(bodies, [json!("For Maria"), Value::Null]);
    app.stop().await;
}
