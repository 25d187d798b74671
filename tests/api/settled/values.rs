//! Values, filters and orders that the contract defines.

use serde_json::{Value, json};

use crate::contacts::MARKETING_FIELDS;
use crate::steps::{id, ids, listed};
use crate::support::TestApp;

#[actix_web::test]
async fn a_blank_optional_text_is_null_and_clears_the_field() {
    let app = TestApp::shared().await;
    let full = json!({"name": "Maria", "email": "m@example.com", "code": "C", "utmSource": "s", "sourceUrl": "u"});
    let contact = id(app.api.post("/contacts", full).await.data(201));
    let path = format!("/contacts/{contact}");
    let blank = json!({"email": "", "code": " ", "utmSource": "\t", "sourceUrl": "\n", "cpfCnpj": "", "number": " "});
    let cleared = app.api.put(&path, blank.clone()).await;
    for field in ["email", "code", "utmSource", "sourceUrl", "cpfCnpj", "number", "numberCountry"] {
        assert_eq!(cleared.data(200)[field], Value::Null, "{field}");
    }
    // A required text must not be blank.
    assert_eq!(app.api.put(&path, json!({"name": " "})).await.invalid_fields(), ["name"]);
    assert_eq!(app.api.post("/contacts", json!({"name": "", "number": ""})).await.invalid_fields(), ["name"]);
    let queue = app.api.post("/queues", json!({"name": "Q", "color": "", "greeting": " "})).await;
    assert_eq!((&queue.data(201)["greeting"], &queue.data(201)["color"]), (&Value::Null, &json!("#64748b")));
    let open = app.ticket("5511900000001").await;
    let send = json!({"ticketId": open, "type": "text", "body": " "});
    assert_eq!(app.api.post("/messages", send).await.invalid_fields(), ["body"]);
    app.stop().await;
}

#[actix_web::test]
async fn marketing_fields_are_free_text_and_long_ones_of_visitors_are_cut() {
    let app = TestApp::shared().await;
    let (fits, too_long) = ("é".repeat(10_000), "é".repeat(10_001));
    for name in MARKETING_FIELDS {
        let made = app.api.post("/contacts", json!({"name": "M", name: fits.clone()})).await;
        assert_eq!(made.data(201)[name], fits, "{name}");
        assert_eq!(
            app.api.post("/contacts", json!({"name": "M", name: too_long.clone()})).await.invalid_fields(),
            [name]
        );
    }
    let opening = json!({
        "channelId": app.company.webchat, "visitor": {"externalId": "long"},
        "page": {"url": too_long, "title": too_long, "referrer": too_long},
        "utm": {"source": too_long, "medium": too_long, "campaign": too_long, "id": too_long},
    });
    let opened = app.api.post("/webchat/sessions", opening).await;
    let contact = &opened.data(201)["contact"];
    for name in ["sourceUrl", "utmSource", "utmMedium", "utmCampaign", "utmId"] {
        assert_eq!(contact[name], fits, "{name} was not cut to the maximum");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_search_finds_records_with_every_word_and_numbers_in_any_notation() {
    let app = TestApp::shared().await;
    let make = async |body: Value| id(app.api.post("/contacts", body).await.data(201));
    let maria = make(json!({"name": "Maria da Silva", "number": "5511987654321", "email": "m@example.com"})).await;
    let mario = make(json!({"name": "Mário Lima", "code": "A-17"})).await;
    let dated = make(json!({"name": "Fair 2024-01"})).await;
    for (search, found) in [
        ("silva maria", vec![maria]),
        ("maria lima", vec![]),
        ("lima mario", vec![mario]),
        ("+55 (11) 98765-4321", vec![maria]),
        ("maria 98765-4321", vec![maria]),
        ("silva m@example.com", vec![maria]),
        ("11.98765.4321", vec![maria]),
        ("a-17", vec![mario]),
        ("2024-01", vec![dated]),
        ("maria\n", vec![maria]),
        ("  ", vec![maria, mario, dated]),
        ("98765-9999", vec![]),
    ] {
        let query: String = form_urlencoded::byte_serialize(search.as_bytes()).collect();
        assert_eq!(listed(&app.api, &format!("/contacts?search={query}")).await, found, "{search:?}");
    }
    let open = app.api.post("/tickets", json!({"channelId": app.company.phone, "contactId": maria})).await;
    let query: String = form_urlencoded::byte_serialize("(11) 98765-4321 silva".as_bytes()).collect();
    assert_eq!(listed(&app.api, &format!("/tickets?search={query}")).await, [id(open.data(201))]);
    // Each word is found in one of the texts.
    app.api.post("/quick-messages", json!({"shortcut": "/hours", "message": "We open at nine"})).await.data(201);
    assert_eq!(listed(&app.api, "/quick-messages?search=nine%20hours").await.len(), 1);
    assert_eq!(listed(&app.api, "/quick-messages?search=ten%20hours").await.len(), 0);
    app.stop().await;
}

#[actix_web::test]
async fn custom_fields_are_listed_by_position_and_never_get_the_key_of_a_built_in_variable() {
    let app = TestApp::shared().await;
    let field = |name: &str, application: &str| json!({"name": name, "application": application, "type": "text"});
    let make = async |name: &str, application: &str| {
        id(app.api.post("/custom-fields", field(name, application)).await.data(201))
    };
    let (a, b, c) = (make("A", "contact").await, make("B", "contact").await, make("C", "card").await);
    let d = make("D", "contact").await;
    app.api.put("/custom-fields/order", json!({"application": "contact", "orderedIds": [d, a, b]})).await.data(200);
    assert_eq!(listed(&app.api, "/custom-fields").await, [c, d, a, b]);
    let reversed = app.api.get("/custom-fields?application=contact&order=desc").await;
    assert_eq!(ids(reversed.data(200).as_array().expect("a list")), [b, a, d]);
    for (name, application, key) in [
        ("Name", "contact", "contact_name"),
        ("  email ", "contact", "contact_email"),
        ("Número", "contact", "numero"),
        ("firstName", "contact", "contact_firstname"),
        ("TICKETID", "contact", "contact_ticketid"),
        ("Greeting!", "contact", "contact_greeting"),
        // No message contains values of cards, and a longer name is a different one.
        ("Company", "card", "company"),
        ("Company size", "contact", "company_size"),
    ] {
        let reply = app.api.post("/custom-fields", field(name, application)).await;
        assert_eq!(reply.data(201)["key"], key, "{name}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn an_interactive_object_that_could_not_be_read_back_is_refused() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await;
    for bad in [json!({"a": f64::MAX}), json!({"a": [{"b": f64::MIN}]}), json!({"a\0": 1}), json!({"a": ["\0"]})] {
        let body = json!({"ticketId": open, "type": "interactive", "interactive": bad});
        assert_eq!(app.api.post("/messages", body).await.invalid_fields(), ["interactive"], "{bad}");
    }
    app.api.get("/messages").await.data(200);
    app.stop().await;
}
