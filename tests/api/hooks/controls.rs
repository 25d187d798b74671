//! Control characters in what a provider sends are left out, and nothing else of the contact's text is lost.

use serde_json::json;

use super::{MARIA, ProviderChannel, all_taken, contact, messages};
use crate::support::TestApp;
use crate::support::provider::hooks::{image, text};

#[actix_web::test]
async fn texts_of_a_provider_lose_control_characters_and_nothing_else() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let call = channel.phone_account().message(
        MARIA,
        "Mar\u{1}ia\u{b} Silva",
        text("wamid.1", "Ol\u{1f}\u{0}á,\n\tbom dia\u{c}"),
    );
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    let caption = channel.phone_account().message(MARIA, "Maria", image("wamid.2", "a-file", Some("\u{1}look")));
    assert_eq!(channel.deliver(&app.api, &caption).await, all_taken(1));
    // A text of control characters alone is a message too; if it has a body, the characters are not in it.
    let only_controls = channel.phone_account().message(MARIA, "Maria", text("wamid.3", "\u{1}\u{2}"));
    assert_eq!(channel.deliver(&app.api, &only_controls).await, all_taken(1));
    let all = messages(&app.api, channel.id).await;
    let bodies: Vec<_> = all.iter().map(|message| message["body"].clone()).collect();
    assert_eq!(bodies[..2], [json!("Olá,\n\tbom dia"), json!("look")], "{bodies:?}");
    assert_eq!(all.len(), 3);
    assert!(bodies[2].as_str().is_none_or(|body| !body.contains(['\u{1}', '\u{2}'])), "{bodies:?}");
    assert_eq!(contact(&app.api, &all[0]["contactId"]).await["name"], "Maria Silva");
    app.stop().await;
}
