//! Categories of products.

use serde_json::json;

use crate::plain::{Noun, check_plain};

#[actix_web::test]
async fn a_product_category_is_created_listed_changed_and_deleted() {
    check_plain(Noun {
        path: "/product-categories",
        is_shown: true,
        new: (
            json!({"name": "  Services ", "description": " By the\nhour "}),
            json!({"name": "Services", "description": "By the\nhour"}),
        ),
        good: vec![
            (json!({"name": "Plain"}), json!({"description": null})),
            (json!({"name": "Null", "description": null}), json!({"description": null})),
            (json!({"name": "Blank", "description": " "}), json!({"description": null})),
        ],
        changes: vec![
            (json!({"name": "Goods"}), json!({"name": "Goods"})),
            (json!({"description": "In a box"}), json!({"description": "In a box"})),
            (json!({"description": null}), json!({"description": null})),
        ],
        bad: vec![
            (json!({}), &["name"]),
            (json!({"name": null, "description": 7}), &["name", "description"]),
            (json!({"name": " ", "description": "a\u{0}"}), &["name", "description"]),
            (json!({"name": "a\nb", "description": "x".repeat(10_001)}), &["name", "description"]),
        ],
        bad_changes: vec![
            (json!({"name": null}), &["name"]),
            (json!({"name": "", "description": []}), &["name", "description"]),
        ],
        unique: "name",
        is_fixed: false,
        named: |name| json!({"name": name}),
        listed: ["Peças", "100%", "a_b", "axb"].map(|name| (name, json!({"name": name, "description": "Zoo"}))).into(),
        searches: &[("PECAS", &["Peças"]), ("%", &["100%"]), ("_", &["a_b"]), (r"\", &[]), ("zoo", &[])],
    })
    .await;
}
