//! Quick messages.

use serde_json::json;

use crate::plain::{Noun, check_plain};

#[actix_web::test]
async fn a_quick_message_is_created_listed_changed_and_deleted() {
    let both = &["shortcut", "message"][..];
    let longest = json!({"shortcut": "é".repeat(60), "message": "é".repeat(10_000)});
    let listed = [
        ("/preço", "It costs 100% of it"),
        ("/x", "Promoção\nuntil Sunday"),
        ("/a_b", "promocional"),
        ("/axb", "100 times"),
    ];
    check_plain(Noun {
        path: "/quick-messages",
        is_shown: true,
        new: (
            json!({"shortcut": " /oi ", "message": " Hello,\n{{name}}! "}),
            json!({"shortcut": "/oi", "message": "Hello,\n{{name}}!"}),
        ),
        good: vec![],
        changes: vec![
            (json!({"shortcut": "/olá"}), json!({"shortcut": "/olá"})),
            (json!({"message": "Bye"}), json!({"message": "Bye"})),
            (longest.clone(), longest),
        ],
        bad: vec![
            (json!({}), both),
            (json!({"shortcut": "", "message": "  "}), both),
            (json!({"shortcut": null, "message": null}), both),
            (json!({"shortcut": "a b", "message": 7}), both),
            (json!({"shortcut": "a\u{a0}b", "message": "\u{0}"}), both),
            (json!({"shortcut": "a\nb", "message": []}), both),
            (json!({"shortcut": "x".repeat(61), "message": "x".repeat(10_001)}), both),
        ],
        bad_changes: vec![
            (json!({"shortcut": null, "message": null}), both),
            (json!({"shortcut": " ", "message": ""}), both),
            (json!({"message": "Changed", "shortcut": "a\tb"}), &["shortcut"]),
        ],
        unique: "shortcut",
        is_fixed: false,
        named: |shortcut| json!({"shortcut": shortcut, "message": "x"}),
        listed: listed.map(|(shortcut, message)| (shortcut, json!({"shortcut": shortcut, "message": message}))).into(),
        searches: &[
            ("PRECO", &["/preço"]),
            ("promoc", &["/x", "/a_b"]),
            ("PROMOÇÃO", &["/x"]),
            ("promocao\nUNTIL", &["/x"]),
            ("x\nPromo", &["/x"]),
            ("100%", &["/preço"]),
            ("100", &["/preço", "/axb"]),
            ("a_b", &["/a_b"]),
            ("_", &["/a_b"]),
            (r"\", &[]),
        ],
    })
    .await;
}
