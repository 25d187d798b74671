//! What the text of a message may contain.

use serde_json::json;

use crate::steps::sent;
use crate::support::TestApp;

#[actix_web::test]
async fn a_body_as_long_as_the_limit_is_stored_unchanged() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await.0;
    for body in ["é".repeat(32_768), "😀".repeat(16_384), "x".repeat(65_536)] {
        let message = sent(&app.api, json!({"ticketId": open, "type": "text", "body": body})).await;
        assert!(message["body"] == body.as_str(), "the body changed");
    }
    let odd = "line\r\nline\ttab \u{202e}right 'quote\" \\ {{unknown";
    let message = sent(&app.api, json!({"ticketId": open, "type": "text", "body": format!("  {odd}\n")})).await;
    assert_eq!(message["body"], odd);
    app.stop().await;
}
