//! What providers tell, as `/metrics` shows it.

use serde_json::json;

use super::{Hooked, MARIA, Tally, taken};
use crate::support::OwnApp;
use crate::support::figures::Figures;
use crate::support::provider::hooks::text;
use crate::support::service::TestOptions;

const ENDS: [&str; 5] = ["taken", "repeated", "ignored", "unreadable", "refused"];

async fn notices(app: &OwnApp) -> [f64; 5] {
    let seen = Figures::of(app.service.metrics.as_ref().expect("figures are served").address).await;
    assert!(seen.with("hook_notices").iter().all(|(sample, _)| sample.matches('=').count() == 1), "one label");
    ENDS.map(|end| seen.value(&format!("hotline_hook_notices_total{{end=\"{end}\"}}")))
}

#[actix_web::test]
async fn what_was_told_is_counted_by_what_became_of_it() {
    let app = OwnApp::start_with(TestOptions { metrics: true, ..TestOptions::default() }).await;
    let channel = Hooked::phone(&app).await;
    assert_eq!(notices(&app).await, [0.0; 5]);
    let call = channel.speaks().message(MARIA, "Maria", text("wamid.1", "hi"));
    assert_eq!(channel.told(&app.api, &call).await, taken(1));
    assert_eq!(channel.told(&app.api, &call).await, Tally { repeated: 1, ..Tally::default() });
    assert_eq!(channel.told(&app.api, &json!({"object": "weather"})).await, Tally { ignored: 1, ..Tally::default() });
    assert_eq!(channel.told(&app.api, &json!([])).await, Tally { unreadable: 1, ..Tally::default() });
    assert_eq!(notices(&app).await, [1.0, 1.0, 1.0, 1.0, 0.0]);
    channel.call(&app.api, call.to_string(), None).await.error(401, "ERR_API_UNAUTHORIZED");
    let nowhere = Hooked { public_key: "nobody".to_owned(), ..channel.clone() };
    nowhere.tell(&app.api, &call).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(notices(&app).await, [1.0, 1.0, 1.0, 1.0, 2.0]);
    app.stop().await;
}
