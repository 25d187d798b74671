//! Tags.

use serde_json::json;

use crate::plain::{Noun, check_plain, created, deleted};
use crate::steps::NOBODY;
use crate::support::{Api, TestApp};

const PATH: &str = "/tags";

async fn create_tag(api: &Api, name: &str) -> i64 {
    created(api, PATH, json!({"name": name})).await
}

#[actix_web::test]
async fn a_tag_is_created_listed_changed_and_deleted() {
    let longest = "é".repeat(255);
    check_plain(Noun {
        path: PATH,
        is_shown: true,
        new: (json!({"name": "  VIP ", "color": "#FF8800"}), json!({"name": "VIP", "color": "#ff8800"})),
        good: vec![
            (json!({"name": "Plain"}), json!({"color": "#64748b"})),
            (json!({"name": "Null", "color": null}), json!({"color": "#64748b"})),
            (json!({"name": "Blank", "color": " "}), json!({"color": "#64748b"})),
        ],
        changes: vec![
            (json!({"name": "Best"}), json!({"name": "Best"})),
            (json!({"color": "#000000"}), json!({"color": "#000000"})),
            (json!({"name": longest}), json!({"name": longest})),
        ],
        bad: vec![
            (json!({}), &["name"]),
            (json!({"name": null, "color": "red"}), &["name", "color"]),
            (json!({"name": " ", "color": 7}), &["name", "color"]),
            (json!({"name": 7, "color": "#12345g"}), &["name", "color"]),
            (json!({"name": "x".repeat(256)}), &["name"]),
            (json!({"name": "a\nb"}), &["name"]),
            (json!({"name": "a\u{0}b"}), &["name"]),
        ],
        bad_changes: vec![
            (json!({"name": null, "color": null}), &["name", "color"]),
            (json!({"name": "", "color": "#fff"}), &["name", "color"]),
        ],
        unique: "name",
        is_fixed: false,
        named: |name| json!({"name": name, "color": "#111111"}),
        listed: ["Atenção", "100% sure", "100x sure", "a_b", "axb", r"back\slash"]
            .map(|name| (name, json!({"name": name})))
            .into(),
        searches: &[
            ("ATENCAO", &["Atenção"]),
            ("tenÇÃ", &["Atenção"]),
            ("100%", &["100% sure"]),
            ("%", &["100% sure"]),
            ("SURE", &["100% sure", "100x sure"]),
            ("_", &["a_b"]),
            ("a_b", &["a_b"]),
            (r"k\s", &[r"back\slash"]),
            ("nothing", &[]),
        ],
    })
    .await;
}

#[actix_web::test]
async fn a_deleted_tag_is_removed_from_every_contact_and_other_tags_stay() {
    let app = TestApp::shared().await;
    let (vip, new) = (create_tag(&app.api, "VIP").await, create_tag(&app.api, "New").await);
    let contacts = [app.contact("5511900000001").await, app.contact("5511900000002").await];
    for contact in contacts {
        sqlx::query("insert into contact_tags (company_id, contact_id, tag_id) select $1, $2, unnest($3::bigint[])")
            .bind(app.company.id)
            .bind(contact)
            .bind([vip, new])
            .execute(&app.db)
            .await
            .expect("tagged");
    }
    let tags = async |contact| {
        let reply = app.api.get(&format!("/contacts/{contact}")).await;
        reply.data(200)["tags"].clone()
    };
    app.api.put(&format!("{PATH}/{vip}"), json!({"name": "Best", "color": "#ffffff"})).await.data(200);
    let new_tag = json!({"id": new, "name": "New", "color": "#64748b"});
    for contact in contacts {
        let both = json!([{"id": vip, "name": "Best", "color": "#ffffff"}, new_tag]);
        assert_eq!(tags(contact).await, both, "a contact shows a tag as it was before its change");
    }
    deleted(&app.api, &format!("{PATH}/{vip}")).await;
    for contact in contacts {
        assert_eq!(tags(contact).await, json!([new_tag]));
    }
    for absent in [vip, NOBODY] {
        app.api.get(&format!("/contacts?tagId={absent}")).await.error(404, "ERR_API_NOT_FOUND");
    }
    app.stop().await;
}
