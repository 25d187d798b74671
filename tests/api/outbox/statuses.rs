//! Statuses that a provider reports of a message it has accepted, in any order.

use hotline_persistence::tables::channels::ChannelType;
use serde_json::{Value, json};

use super::{Office, number};
use crate::support::provider::hooks::{Phone, signature};
use crate::support::seed::APP_SECRET;

/// Makes this call as the provider, and asserts that it is accepted.
pub async fn call_hook(office: &Office, public_key: &str, body: &Value) {
    let bytes = body.to_string();
    let request = office
        .app
        .api
        .anonymous(reqwest::Method::POST, &format!("/hooks/{public_key}"))
        .header("x-hub-signature-256", signature(APP_SECRET, bytes.as_bytes()))
        .header("content-type", "application/json")
        .body(bytes);
    let status = request.send().await.expect("the hook answers").status();
    assert_eq!(status, 200, "{body}");
}

#[actix_web::test]
async fn statuses_only_move_forward_in_whatever_order_the_provider_reports_them() {
    let office = Office::open().await;
    let channel = office.channel(ChannelType::Whatsapp, "1501", |_| {}).await;
    let phone = Phone { id: "1501".to_owned(), number: "15550001501".to_owned() };
    // The provider's clock is behind: its times are before the message's creation, and count as the time of creation.
    let before = chrono::Utc::now().timestamp() - 100;
    for (index, order) in [["sent", "delivered", "read"], ["read", "delivered", "sent"], ["delivered", "read", "sent"]]
        .into_iter()
        .enumerate()
    {
        let to = number(index);
        let job = office.text(channel.id, &to, "hello").await;
        office.wait_for_status(&job, "sent").await;
        let id = office.provider.accepted("1501")[index].accepted.clone().expect("taken");
        for status in order {
            let offset_s =
                ["sent", "delivered", "read"].iter().position(|one| *one == status).expect("a status") as i64;
            call_hook(&office, &channel.public_key, &phone.status(&id, &to, status, before + offset_s)).await;
        }
        let message = office.wait_for_status(&job, "read").await;
        let at = |field: &str| {
            let text = message[field].as_str().unwrap_or_else(|| panic!("{field}: {message}"));
            chrono::DateTime::parse_from_rfc3339(text).expect("a time").timestamp()
        };
        for field in ["sentAt", "deliveredAt", "readAt"] {
            assert_eq!(at(field), at("createdAt"), "{order:?}: {message}");
        }
        // Nothing moves the status back, not even a failure.
        call_hook(&office, &channel.public_key, &phone.failed(&id, &to, 131_026, "Message undeliverable", before + 20))
            .await;
        assert_eq!(office.message(&job).await["status"], "read");
    }
    office.close().await;
}

#[actix_web::test]
async fn a_failure_that_the_provider_reports_later_is_final() {
    let office = Office::open().await;
    let channel = office.channel(ChannelType::Whatsapp, "1502", |_| {}).await;
    let phone = Phone { id: "1502".to_owned(), number: "15550001502".to_owned() };
    let job = office.text(channel.id, &number(1), "hello").await;
    office.wait_for_status(&job, "sent").await;
    let id = office.provider.accepted("1502")[0].accepted.clone().expect("taken");
    let now = chrono::Utc::now().timestamp();
    call_hook(&office, &channel.public_key, &phone.failed(&id, &number(1), 131_026, "Message undeliverable", now))
        .await;
    let message = office.wait_for_status(&job, "failed").await;
    assert_eq!(message["error"], json!({"code": "131026", "message": "Message undeliverable"}));
    for status in ["sent", "delivered", "read"] {
        call_hook(&office, &channel.public_key, &phone.status(&id, &number(1), status, now + 5)).await;
        assert_eq!(office.message(&job).await["status"], "failed");
    }
    let failed = office.app.api.get("/messages?status=failed").await;
    assert_eq!(failed.data(200).as_array().map(Vec::len), Some(1), "the list does not show it");
    office.close().await;
}
