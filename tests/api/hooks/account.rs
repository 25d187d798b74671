//! News of an account: its templates are true at once, and a channel that can no longer send says so.

use hotline_persistence::tables::channels::ChannelType::Whatsapp;
use serde_json::{Value, json};

use super::{Hooked, Setup, Tally, taken};
use crate::events::{after, newest};
use crate::support::{OwnApp, Provider, Reply};

async fn connected(app: &OwnApp, provider: &Provider) -> Hooked {
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    Hooked::create(app, &app.company, Whatsapp, setup).await
}

fn template(name: &str, status: &str) -> Value {
    let components = json!([{"type": "BODY", "text": "Hi"}]);
    json!({"id": "1", "name": name, "language": "en", "category": "MARKETING", "status": status, "components": components})
}

/// The names of the channel's approved templates.
async fn approved(app: &OwnApp, channel: &Hooked) -> Vec<Value> {
    let reply = app.api.get(&format!("/channels/{}/templates", channel.id)).await;
    let templates = reply.data(200).as_array().expect("a list").clone();
    templates
        .into_iter()
        .filter(|template| template["status"] == "APPROVED")
        .map(|shown| shown["name"].clone())
        .collect()
}

async fn send(app: &OwnApp, channel: &Hooked, name: &str) -> Reply {
    let template = json!({"name": name, "parameters": {}});
    let body = json!({"channelId": channel.id, "number": "5511900000001", "type": "template", "template": template});
    app.api.post("/messages", body).await
}

#[actix_web::test]
async fn a_template_that_the_provider_has_paused_is_refused_at_once() {
    let app = OwnApp::start().await;
    let provider = Provider::start().await;
    let channel = connected(&app, &provider).await;
    let phone = channel.speaks();
    provider.has_templates(&channel.account, vec![template("promo", "APPROVED"), template("fresh", "PENDING")]);
    assert_eq!(approved(&app, &channel).await, ["promo"]);
    send(&app, &channel, "promo").await.data(202);
    provider.has_templates(&channel.account, vec![template("promo", "PAUSED"), template("fresh", "APPROVED")]);
    assert_eq!(approved(&app, &channel).await, ["promo"], "nothing was reported yet");

    let news = json!({"event": "PAUSED", "message_template_id": 1, "message_template_name": "promo",
        "message_template_language": "en", "reason": "LOW_QUALITY"});
    let paused = phone.tells_of("message_template_status_update", news);
    assert_eq!(channel.told(&app.api, &paused).await, taken(1));
    send(&app, &channel, "promo").await.error(422, "ERR_API_VALIDATION");
    assert_eq!(approved(&app, &channel).await, ["fresh"]);
    send(&app, &channel, "fresh").await.data(202);
    let fields = ["message_template_quality_update", "template_category_update", "message_template_components_update"];
    for field in fields {
        let reads = provider.template_reads(&channel.account);
        assert_eq!(channel.told(&app.api, &phone.tells_of(field, json!({}))).await, taken(1));
        approved(&app, &channel).await;
        assert_eq!(provider.template_reads(&channel.account), reads + 1, "{field}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_channel_whose_account_was_disabled_says_so_once() {
    let app = OwnApp::start().await;
    let provider = Provider::start().await;
    let channel = connected(&app, &provider).await;
    let phone = channel.speaks();
    let begin = newest(&app.api).await;
    let shown = || async { app.api.get(&format!("/channels/{}", channel.id)).await.data(200).clone() };
    let warning = json!({"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "SCHEDULE_FOR_DISABLE"}});
    for other in [json!({"event": "VERIFIED_ACCOUNT"}), warning, json!({})] {
        let told = channel.told(&app.api, &phone.tells_of("account_update", other)).await;
        assert_eq!(told, Tally { ignored: 1, ..Tally::default() });
    }
    assert_eq!(shown().await["status"], "connected");
    let disabled = json!({"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "DISABLE"}});
    let disabled = phone.tells_of("account_update", disabled);
    for _ in 0..2 {
        assert_eq!(channel.told(&app.api, &disabled).await, taken(1));
        let shown = shown().await;
        assert_eq!(shown["status"], "error");
        assert_eq!(shown["lastError"], "the provider has disabled the account");
    }
    let events = after(&app.api, begin).await;
    assert_eq!(events.iter().filter(|event| event["type"] == "channel.error").count(), 1);
    app.stop().await;
}
