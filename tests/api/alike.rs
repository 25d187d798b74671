//! Names that look alike or like nothing, and addresses that only look like some: at every noun whose names are unique, and
//! wherever others bring a name.

use serde_json::{Value, json};

use crate::hooks::{Hooked, taken};
use crate::steps::id;
use crate::support::TestApp;
use crate::support::provider::hooks::text;

/// What shows nothing.
const NOTHING: [&str; 6] = ["\u{200b}", "\u{200b}\u{200d}", "\u{3164}", "\u{2800}", "\u{feff}", "\u{ad}"];

/// The same name as it may be written: with combining letters, and with letters that nobody sees.
const TWINS: [&str; 4] =
    ["Ac\u{327}a\u{303}o", "A\u{e7}\u{e3}o\u{200b}", "\u{feff}A\u{e7}\u{e3}o", "A\u{e7}\u{ad}\u{e3}o"];

/// The nouns whose names are unique in the company: the path, the field, and what else is required.
fn unique_names(category: i64) -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("/tags", "name", json!({})),
        ("/queues", "name", json!({})),
        ("/wrapup-categories", "name", json!({})),
        ("/wrapup-types", "name", json!({"categoryId": category})),
        ("/quick-messages", "shortcut", json!({"message": "hello"})),
        ("/crm/statuses", "name", json!({})),
        ("/crm/businesses", "name", json!({})),
        ("/crm/origins", "name", json!({})),
        ("/product-categories", "name", json!({})),
        ("/products", "sku", json!({"name": "A product", "price": 1})),
    ]
}

#[actix_web::test]
async fn a_name_that_looks_the_same_is_taken_and_one_that_shows_nothing_is_blank() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let category = id(api.post("/wrapup-categories", json!({"name": "Others"})).await.data(201));
    for (path, field, body) in unique_names(category) {
        let named = |name: &str| {
            let mut body = body.clone();
            body[field] = json!(name);
            body
        };
        let made = api.post(path, named("Ação")).await.data(201).clone();
        assert_eq!(made[field], "A\u{e7}\u{e3}o", "{path}");
        for twin in TWINS {
            assert_eq!(api.post(path, named(twin)).await.status, 409, "{path} {twin:?}");
            // The record itself may have it: it is the same.
            let kept = api.put(&format!("{path}/{}", made["id"]), json!({field: twin})).await.data(200).clone();
            assert_eq!(kept[field], made[field], "{path} {twin:?}");
        }
        // Case is as it was.
        assert_eq!(api.post(path, named("AÇÃO")).await.status, 201, "{path}");
        for nothing in NOTHING.iter().filter(|_| field != "sku") {
            assert_eq!(api.post(path, named(nothing)).await.status, 422, "{path} {nothing:?}");
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_is_called_something_one_can_see() {
    let app = TestApp::shared().await;
    let api = &app.api;
    for nothing in NOTHING {
        assert_eq!(api.post("/contacts", json!({"name": nothing})).await.status, 422, "{nothing:?}");
    }
    let channel = Hooked::phone(&app).await;
    for (index, nothing) in NOTHING.into_iter().chain(["\u{e0020}\u{e0041}", "   "]).enumerate() {
        let number = format!("55119100000{index:02}");
        let said = text(&format!("wamid.nothing.{index}"), "hello");
        let call = channel.speaks().message(&number, nothing, said);
        assert_eq!(channel.told(api, &call).await, taken(1));
        let found = api.get(&format!("/contacts?number={number}")).await.data(200).clone();
        assert_eq!(found[0]["name"], json!(number), "{nothing:?}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn an_e_mail_is_a_mailbox() {
    let app = TestApp::shared().await;
    let api = &app.api;
    for good in ["mail@köln.example", "用户@例子.广告", "o'brien@x.photography", "\"a b\"@x.example", "a@[192.0.2.7]"]
    {
        let made = api.post("/contacts", json!({"name": "Maria", "email": good})).await.data(201).clone();
        assert_eq!(made["email"], good);
    }
    for bad in ["a@.de", "a@x..de", "<a@x.de>", "a@x.de.", "a@x.de,b@x.de", ".a@x.de", "a@-x.de", "a@x.de\u{2028}b"] {
        for (path, body) in
            [("/contacts", json!({"name": "M", "email": bad})), ("/users", json!({"name": "M", "email": bad}))]
        {
            let refused = api.post(path, body).await;
            assert_eq!(refused.status, 422, "{path} {bad:?}");
            assert_eq!(refused.body["error"]["details"][0]["field"], "email", "{path} {bad:?}");
        }
    }
    app.stop().await;
}
