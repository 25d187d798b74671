//! Channels as they are shown and found.

use hotline_persistence::tables::channels::ChannelType;
use serde_json::{Value, json};

use crate::check_list::check_list;
use crate::steps::{NOBODY, assert_timestamp, channel, listed, sql};
use crate::support::{OwnApp, TestApp};

#[actix_web::test]
async fn a_channel_shows_its_fields_and_none_of_its_secrets() {
    let app = OwnApp::start().await;
    let company = &app.company;
    let phone = company.phone.0;
    sqlx::query(
        "update channels set number = '551130000000', status = 'error', last_error = 'refused',
             settings = '{\"accessToken\": \"secret\"}' where id = $1",
    )
    .bind(phone)
    .execute(&app.db)
    .await
    .expect("settings");
    let shown = app.api.get(&format!("/channels/{phone}")).await;
    let shown = shown.data(200);
    assert_timestamp(&shown["createdAt"]);
    assert_timestamp(&shown["updatedAt"]);
    assert_eq!(
        shown,
        &json!({
            "id": phone, "name": "Phone", "type": "whatsapp", "status": "error", "number": "551130000000",
            "queue": null, "lastError": "refused", "quality": null, "messagingLimit": null, "createdAt": shown["createdAt"], "updatedAt": shown["updatedAt"],
        })
    );
    let webchat = app.api.get(&format!("/channels/{}", company.webchat)).await;
    let webchat = webchat.data(200);
    assert_eq!(webchat["queue"], json!({"id": company.support, "name": "Support"}));
    assert_eq!((&webchat["status"], &webchat["number"]), (&json!("connected"), &Value::Null));
    assert_eq!(app.api.all("/channels").await, [shown.clone(), webchat.clone()]);
    app.stop().await;
}

#[actix_web::test]
async fn every_filter_finds_its_channels_and_no_others() {
    let app = TestApp::shared().await;
    app.another_company().await;
    let (phone, webchat) = (app.company.phone.0, app.company.webchat.0);
    let messenger = channel(&app, "Messenger", ChannelType::Messenger).await;
    let instagram = channel(&app, "Instagram", ChannelType::Instagram).await;
    sql(&app, "update channels set status = 'error', updated_at = now() where id = $1", messenger).await;
    sql(&app, "update channels set status = 'connected', updated_at = now() where id = $1", phone).await;
    for (query, expected) in [
        ("", vec![phone, webchat, messenger, instagram]),
        ("type=whatsapp", vec![phone]),
        ("type=webchat", vec![webchat]),
        ("type=messenger", vec![messenger]),
        ("type=instagram", vec![instagram]),
        ("status=connected", vec![phone, webchat]),
        ("status=error", vec![messenger]),
        ("status=disconnected", vec![instagram]),
        ("status=connected&type=instagram", vec![]),
        ("search=INSTA", vec![instagram]),
        ("search=phone", vec![phone]),
        ("search=instagram&status=error", vec![]),
    ] {
        assert_eq!(listed(&app.api, &format!("/channels?{query}")).await, expected, "{query}");
    }
    check_list(&app, "/channels", &[phone, webchat, messenger, instagram], &["created", "updated"]).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_channel_of_another_company_looks_like_one_that_does_not_exist() {
    let app = TestApp::shared().await;
    let (other, _) = app.another_company().await;
    let not_found = app.api.get(&format!("/channels/{NOBODY}")).await;
    not_found.error(404, "ERR_API_NOT_FOUND");
    let foreign = app.api.get(&format!("/channels/{}", other.phone)).await;
    assert_eq!((foreign.status, foreign.body), (not_found.status, not_found.body));
    assert_eq!(listed(&app.api, "/channels").await, [app.company.phone.0, app.company.webchat.0]);
    app.stop().await;
}
