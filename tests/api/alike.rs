//! Names that look alike or are invisible, for every resource with unique names and for names from providers; malformed
//! e-mail addresses.

use hotline_persistence::visible_text;
use serde_json::{Value, json};

use crate::hooks::{ProviderChannel, all_taken};
use crate::steps::id;
use crate::support::provider::hooks::text;
use crate::support::{OwnApp, Person, TestApp};

/// Texts that are invisible.
const INVISIBLE: [&str; 6] = ["\u{200b}", "\u{200b}\u{200d}", "\u{3164}", "\u{2800}", "\u{feff}", "\u{ad}"];

/// The name `Ação` in other encodings, which is stored as `Ação`: with combining characters, and with invisible ones.
const ENCODINGS: [&str; 4] =
    ["Ac\u{327}a\u{303}o", "A\u{e7}\u{e3}o\u{200b}", "\u{feff}A\u{e7}\u{e3}o", "A\u{e7}\u{ad}\u{e3}o"];

/// Other names that look like `Ação`: with direction marks, joiners between letters that do not join, and variation
/// selectors of characters that have no variants.
const LOOKALIKES: [&str; 12] = [
    "A\u{200f}ção",
    "A\u{200e}ção",
    "Aç\u{61c}ão",
    "A\u{202e}çã\u{202c}o",
    "A\u{202d}çã\u{202c}o",
    "A\u{2066}çã\u{2069}o",
    "A\u{200d}ção",
    "Aç\u{200c}ão",
    "Açã\u{fe0f}o",
    "Açã\u{e0067}o",
    "Aç\u{206a}ão",
    "A\u{115f}ção",
];

/// White space that looks like the space of `Big deal`.
const BLANKS: [&str; 6] = ["\u{a0}", "  ", "\t", "\u{2003}", "\u{3164}", " \u{200f} "];

/// Characters that end a line.
const LINE_BREAKS: [&str; 5] = ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"];

/// The resources whose names are unique in the company: the path, the field, and the other required fields.
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
async fn a_name_that_looks_the_same_conflicts_and_an_invisible_one_counts_as_blank() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let category = id(api.post("/wrapup-categories", json!({"name": "Others"})).await.data(201));
    for (path, field, body) in unique_names(category) {
        let body_with = |name: &str| {
            let mut body = body.clone();
            body[field] = json!(name);
            body
        };
        let created = api.post(path, body_with("Ação")).await.data(201).clone();
        assert_eq!(created[field], "A\u{e7}\u{e3}o", "{path}");
        for encoding in ENCODINGS {
            assert_eq!(api.post(path, body_with(encoding)).await.status, 409, "{path} {encoding:?}");
            // The record itself can be renamed to it, and is stored under the same name.
            let updated =
                api.put(&format!("{path}/{}", created["id"]), json!({field: encoding})).await.data(200).clone();
            assert_eq!(updated[field], created[field], "{path} {encoding:?}");
        }
        for lookalike in LOOKALIKES {
            let refused = api.post(path, body_with(lookalike)).await;
            let details = refused.error(409, "ERR_API_CONFLICT");
            assert_eq!((&details["field"], &details["id"]), (&json!(field), &created["id"]), "{path} {lookalike:?}");
            // The record itself can be renamed to it.
            let updated =
                api.put(&format!("{path}/{}", created["id"]), json!({field: lookalike})).await.data(200).clone();
            assert_eq!(updated[field], lookalike, "{path}");
            assert_eq!(api.post(path, body_with("Ação")).await.status, 409, "{path} {lookalike:?}");
        }
        // Names are case-sensitive.
        assert_eq!(api.post(path, body_with("AÇÃO")).await.status, 201, "{path}");
        let other = id(api.post(path, body_with("other")).await.data(201));
        let renamed = api.put(&format!("{path}/{other}"), json!({field: "A\u{202a}çã\u{202c}o"})).await;
        assert_eq!(renamed.error(409, "ERR_API_CONFLICT")["id"], created["id"], "{path}");
        // A shortcut cannot contain spaces.
        if field != "shortcut" {
            api.post(path, body_with("Big deal")).await.data(201);
            for blank in BLANKS {
                assert_eq!(api.post(path, body_with(&format!("Big{blank}deal"))).await.status, 409, "{path} {blank:?}");
            }
            assert_eq!(api.post(path, body_with("Bigdeal")).await.status, 201, "{path}");
            for line_break in LINE_BREAKS {
                let refused = api.post(path, body_with(&format!("Two{line_break}lines"))).await;
                assert_eq!(refused.invalid_fields(), [field], "{path} {line_break:?}");
            }
        }
        // A product without a SKU is valid.
        if field != "sku" {
            for invisible in INVISIBLE {
                assert_eq!(api.post(path, body_with(invisible)).await.status, 422, "{path} {invisible:?}");
            }
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn characters_that_change_their_neighbours_make_a_different_name() {
    let app = TestApp::shared().await;
    for names in [
        // Two people, and a couple.
        ["👨👩", "👨\u{200d}👩"],
        // The flags of England and Scotland.
        [
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
        ],
        // A Persian name with joined and with unjoined letters.
        ["علیرضا", "علی\u{200c}رضا"],
    ] {
        for name in names {
            let created = app.api.post("/tags", json!({"name": name})).await.data(201).clone();
            assert_eq!(created["name"], name);
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn names_of_profiles_and_options_of_a_field_are_compared_by_appearance() {
    let app = OwnApp::start().await;
    let (root, _) = Person::admin(&app, "root@example.com").await;
    let root = root.in_company(app.company.id);
    let profile = |name: &str| json!({"name": name, "permissions": {"contacts": ["GET"]}});
    let created = id(root.post("/profiles", profile("Night shift")).await.data(201));
    for twin in ["Night\u{a0}shift", "Night  shift", "Ni\u{200f}ght shift"] {
        root.post("/profiles", profile(twin)).await.error(409, "ERR_API_CONFLICT");
    }
    root.put(&format!("/profiles/{created}"), json!({"name": "Night  shift"})).await.data(200);

    let field =
        |options: [&str; 2]| json!({"name": "Size", "application": "contact", "type": "select", "options": options});
    for twin in ["extra  large", "extra\u{a0}large", "ex\u{200e}tra large"] {
        let refused = app.api.post("/custom-fields", field(["extra large", twin])).await;
        assert_eq!(refused.invalid_fields(), ["options"], "{twin:?}");
    }
    let key = app.api.post("/custom-fields", field(["small", "extra large"])).await.data(201)["key"].clone();
    let key = key.as_str().expect("a key");
    for spelling in ["extra large", "extra  large", "extra\u{a0}large", "ex\u{200e}tra large"] {
        let body = json!({"name": "Maria", "customFields": [{"key": key, "value": spelling}]});
        let created = app.api.post("/contacts", body).await.data(201).clone();
        assert_eq!(created["customFields"][0]["value"], "extra large", "{spelling:?}");
    }
    app.stop().await;
}

/// The tables compare names by the SQL function `hotline_looks`, the service by [`visible_text::appearance`].
#[actix_web::test]
async fn tables_and_service_compare_names_by_the_same_appearance() {
    let app = TestApp::shared().await;
    let characters = ['\u{1}'..='\u{21ff}', '\u{2700}'..='\u{2c00}', '\u{3000}'..='\u{31ff}', '\u{fb00}'..='\u{ffff}']
        .into_iter()
        .chain(['\u{1bc90}'..='\u{1bcaf}', '\u{1d170}'..='\u{1d17f}', '\u{1eff0}'..='\u{1f010}'])
        .chain(['\u{1fa00}'..='\u{1fb10}', '\u{e0000}'..='\u{e01ff}', '\u{e0ff0}'..='\u{e1010}'])
        .flatten();
    let contexts =
        [("a", "b"), ("👨\u{200d}", "👩"), ("ع\u{200c}", "ع"), ("क", "\u{200d}ष"), ("🏴\u{e0067}", "\u{e0062}")];
    let names: Vec<String> = characters
        .flat_map(|character| contexts.map(|(before, after)| format!("{before}{character}{after}")))
        .collect();
    assert!(names.len() > 60_000, "{}", names.len());
    // A few thousand at a time, because a statement has a time limit.
    for names in names.chunks(5_000) {
        let looks: Vec<String> = names.iter().map(|name| visible_text::appearance(name)).collect();
        let different: Vec<(String, String, String)> = sqlx::query_as(
            "select name, looks, hotline_looks(name) from unnest($1::text[], $2::text[]) as x (name, looks)
             where hotline_looks(name) is distinct from looks",
        )
        .bind(names)
        .bind(&looks)
        .fetch_all(&app.db)
        .await
        .expect("an answer");
        assert!(different.is_empty(), "{:?}", different.iter().take(10).collect::<Vec<_>>());
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_without_a_visible_name_is_named_by_its_number() {
    let app = TestApp::shared().await;
    let api = &app.api;
    for invisible in INVISIBLE {
        assert_eq!(api.post("/contacts", json!({"name": invisible})).await.status, 422, "{invisible:?}");
    }
    let channel = ProviderChannel::phone(&app).await;
    for (index, invisible) in INVISIBLE.into_iter().chain(["\u{e0020}\u{e0041}", "   "]).enumerate() {
        let number = format!("55119100000{index:02}");
        let message = text(&format!("wamid.nothing.{index}"), "hello");
        let call = channel.phone_account().message(&number, invisible, message);
        assert_eq!(channel.deliver(api, &call).await, all_taken(1));
        let found = api.get(&format!("/contacts?number={number}")).await.data(200).clone();
        assert_eq!(found[0]["name"], json!(number), "{invisible:?}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn an_email_address_must_be_one_mailbox() {
    let app = TestApp::shared().await;
    let api = &app.api;
    for good in ["mail@köln.example", "用户@例子.广告", "o'brien@x.photography", "\"a b\"@x.example", "a@[192.0.2.7]"]
    {
        let created = api.post("/contacts", json!({"name": "Maria", "email": good})).await.data(201).clone();
        assert_eq!(created["email"], good);
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
