//! The parts of providers' calls, as `/metrics` counts them.

use hotline_persistence::tables::early_revisions::EARLY_REVISIONS_MAX;
use hotline_persistence::tables::early_statuses::STORED_MAX;
use serde_json::json;

use super::{MARIA, ProviderChannel, Tally, all_taken};
use crate::support::OwnApp;
use crate::support::metrics::ScrapedMetrics;
use crate::support::provider::hooks::{revoke, text};
use crate::support::service::TestOptions;

const OUTCOMES: [&str; 5] = ["taken", "repeated", "ignored", "unreadable", "refused"];

async fn notice_counts(app: &OwnApp) -> [f64; 5] {
    let seen = ScrapedMetrics::of(app.service.metrics_listener.as_ref().expect("metrics are served").address).await;
    assert!(seen.with("hook_notices").iter().all(|(sample, _)| sample.matches('=').count() == 1), "not one label");
    OUTCOMES.map(|end| seen.value(&format!("hotline_hook_notices_total{{end=\"{end}\"}}")))
}

#[actix_web::test]
async fn parts_of_calls_are_counted_by_their_outcome() {
    let app = OwnApp::start_with(TestOptions { metrics: true, ..TestOptions::default() }).await;
    let channel = ProviderChannel::phone(&app).await;
    assert_eq!(notice_counts(&app).await, [0.0; 5]);
    let call = channel.phone_account().message(MARIA, "Maria", text("wamid.1", "hi"));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    assert_eq!(channel.deliver(&app.api, &call).await, Tally { repeated: 1, ..Tally::default() });
    assert_eq!(
        channel.deliver(&app.api, &json!({"object": "weather"})).await,
        Tally { ignored: 1, ..Tally::default() }
    );
    assert_eq!(channel.deliver(&app.api, &json!([])).await, Tally { unreadable: 1, ..Tally::default() });
    assert_eq!(notice_counts(&app).await, [1.0, 1.0, 1.0, 1.0, 0.0]);
    channel.call(&app.api, call.to_string(), None).await.error(401, "ERR_API_UNAUTHORIZED");
    let unknown_channel = ProviderChannel { public_key: "nobody".to_owned(), ..channel.clone() };
    unknown_channel.call_signed(&app.api, &call).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(notice_counts(&app).await, [1.0, 1.0, 1.0, 1.0, 2.0]);
    app.stop().await;
}

async fn dropped_count(app: &OwnApp) -> f64 {
    let seen = ScrapedMetrics::of(app.service.metrics_listener.as_ref().expect("metrics are served").address).await;
    seen.value("hotline_hook_statuses_dropped_total")
}

#[actix_web::test]
async fn dropped_statuses_of_unknown_messages_are_counted() {
    let app = OwnApp::start_with(TestOptions { metrics: true, ..TestOptions::default() }).await;
    let channel = ProviderChannel::phone(&app).await;
    sqlx::query(
        "insert into early_statuses (company_id, channel_id, provider_message_id, status, at)
         select $1, $2, 'wamid.other.' || n, 'sent', now() from generate_series(1, $3) n",
    )
    .bind(app.company.id)
    .bind(channel.id)
    .bind(STORED_MAX - 1)
    .execute(&app.db)
    .await
    .expect("one fewer than are kept at most");
    // There is room for one more status: the first is stored, the second is dropped.
    for (name, expected) in [("wamid.kept", 0.0), ("wamid.dropped", 1.0), ("wamid.dropped", 2.0)] {
        let call = channel.phone_account().status(name, MARIA, "sent", 1_700_000_001);
        assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
        assert_eq!(dropped_count(&app).await, expected, "{name}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn dropped_changes_of_unknown_messages_are_counted() {
    let app = OwnApp::start_with(TestOptions { metrics: true, ..TestOptions::default() }).await;
    let channel = ProviderChannel::phone(&app).await;
    sqlx::query(
        "insert into early_revisions (company_id, channel_id, provider_message_id, kind, key, revision, at)
         select $1, $2, 'wamid.other.' || n, 'deleted', '', '{}', now() from generate_series(1, $3) n",
    )
    .bind(app.company.id)
    .bind(channel.id)
    .bind(EARLY_REVISIONS_MAX - 1)
    .execute(&app.db)
    .await
    .expect("one fewer than are kept at most");
    for (name, expected) in [("wamid.kept", 0.0), ("wamid.dropped", 1.0), ("wamid.dropped", 2.0)] {
        let call = channel.phone_account().message(MARIA, "Maria", revoke("wamid.r", name));
        channel.deliver(&app.api, &call).await;
        assert_eq!(dropped_count(&app).await, expected, "{name}");
    }
    let stored = "select provider_message_id from early_revisions where provider_message_id not like 'wamid.other.%'";
    let stored: Vec<String> = sqlx::query_scalar(stored).fetch_all(&app.db).await.expect("the stored ones");
    assert_eq!(stored, ["wamid.kept"]);
    app.stop().await;
}
