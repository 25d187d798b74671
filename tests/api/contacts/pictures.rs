//! The URL of a contact's picture is an `http` or `https` URL of a host.

use serde_json::{Value, json};

use crate::steps::id;
use crate::support::TestApp;

#[actix_web::test]
async fn a_picture_url_must_be_http_or_https_with_a_host() {
    let app = TestApp::shared().await;
    let contact = id(app.api.post("/contacts", json!({"name": "Maria"})).await.data(201));
    let path = format!("/contacts/{contact}");
    for bad in [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        " javascript:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "data:image/png;base64,AA==",
        "vbscript:x",
        "blob:https://x/1",
        "file:///etc/passwd",
        "ftp://example.com/x.jpg",
        "//example.com/x.jpg",
        "/x.jpg",
        "x.jpg",
        "https:",
        "https://",
        "http:example.com",
        "https:/example.com",
        "https://./x",
        "https://a..b/x",
        "https://exa mple.com/x",
        "https://example.com/a b",
        "ht\ttps://example.com",
    ] {
        let made = app.api.post("/contacts", json!({"name": "x", "profilePicUrl": bad})).await;
        assert_eq!(made.invalid_fields(), ["profilePicUrl"], "{bad:?}");
        assert_eq!(
            app.api.put(&path, json!({"profilePicUrl": bad})).await.invalid_fields(),
            ["profilePicUrl"],
            "{bad:?}"
        );
        let imported = json!({"contacts": [{"name": "x", "number": "5511900000001", "profilePicUrl": bad}]});
        let imported = app.api.post("/contacts/import", imported).await;
        assert_eq!(imported.data(200)["errors"][0]["field"], "profilePicUrl", "{bad:?}");
    }
    for good in ["https://cdn.example/maria.jpg", "http://cdn.example/1?x=y#z", "HTTPS://cdn.example/é.jpg"] {
        let changed = app.api.put(&path, json!({"profilePicUrl": good})).await;
        assert_eq!(changed.data(200)["profilePicUrl"], good);
    }
    for none in [Value::Null, json!(" ")] {
        assert_eq!(app.api.put(&path, json!({"profilePicUrl": none})).await.data(200)["profilePicUrl"], Value::Null);
    }
    app.stop().await;
}
