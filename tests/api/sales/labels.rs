//! What cards are labelled with: statuses, businesses and origins.

use serde_json::json;

use crate::plain::{Noun, check_plain};

#[actix_web::test]
async fn a_card_status_is_created_listed_changed_and_deleted() {
    let longest = "é".repeat(255);
    check_plain(Noun {
        path: "/crm/statuses",
        is_shown: false,
        new: (json!({"name": "  Offered ", "color": "#FF8800"}), json!({"name": "Offered", "color": "#ff8800"})),
        good: vec![
            (json!({"name": "Plain"}), json!({"color": null})),
            (json!({"name": "Null", "color": null}), json!({"color": null})),
            (json!({"name": "Blank", "color": " "}), json!({"color": null})),
        ],
        changes: vec![
            (json!({"name": "Called"}), json!({"name": "Called"})),
            (json!({"color": "#000000"}), json!({"color": "#000000"})),
            (json!({"color": null}), json!({"color": null})),
            (json!({"name": longest}), json!({"name": longest})),
        ],
        bad: vec![
            (json!({}), &["name"]),
            (json!({"name": null, "color": "red"}), &["name", "color"]),
            (json!({"name": " ", "color": 7}), &["name", "color"]),
            (json!({"name": "a\nb", "color": "#12345g"}), &["name", "color"]),
            (json!({"name": "x".repeat(256)}), &["name"]),
        ],
        bad_changes: vec![(json!({"name": null, "color": "#fff"}), &["name", "color"])],
        unique: "name",
        is_fixed: false,
        named: |name| json!({"name": name, "color": "#111111"}),
        listed: ["Ligação", "100% sure", "a_b", "axb"].map(|name| (name, json!({"name": name}))).into(),
        searches: &[("LIGACAO", &["Ligação"]), ("%", &["100% sure"]), ("_", &["a_b"]), (r"\", &[])],
    })
    .await;
}

/// Checks businesses or origins, which have only a name.
async fn check_named(path: &str) {
    check_plain(Noun {
        path,
        is_shown: false,
        new: (json!({"name": "  Solar "}), json!({"name": "Solar"})),
        good: vec![(json!({"name": "Wind", "color": "red"}), json!({"name": "Wind"}))],
        changes: vec![(json!({"name": "Heat"}), json!({"name": "Heat"}))],
        bad: vec![
            (json!({}), &["name"]),
            (json!({"name": null}), &["name"]),
            (json!({"name": " "}), &["name"]),
            (json!({"name": ["x"]}), &["name"]),
            (json!({"name": "x".repeat(256)}), &["name"]),
        ],
        bad_changes: vec![(json!({"name": null}), &["name"]), (json!({"name": ""}), &["name"])],
        unique: "name",
        is_fixed: false,
        named: |name| json!({"name": name}),
        listed: ["Construção", "100%", "a_b", "axb"].map(|name| (name, json!({"name": name}))).into(),
        searches: &[("CONSTRUCAO", &["Construção"]), ("%", &["100%"]), ("_", &["a_b"]), (r"\", &[])],
    })
    .await;
}

#[actix_web::test]
async fn a_business_is_created_listed_changed_and_deleted() {
    check_named("/crm/businesses").await;
}

#[actix_web::test]
async fn a_card_origin_is_created_listed_changed_and_deleted() {
    check_named("/crm/origins").await;
}
