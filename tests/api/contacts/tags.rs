//! Tags on contacts.

use futures_util::future::join_all;
use serde_json::json;

use super::{create_contact, create_tag, shown};
use crate::plain::deleted;
use crate::steps::{NOBODY, changes_at_once, listed};
use crate::support::TestApp;

#[actix_web::test]
async fn applying_or_removing_a_tag_again_changes_nothing() {
    let app = TestApp::shared().await;
    let (vip, new) = (create_tag(&app.api, "VIP").await, create_tag(&app.api, "New").await);
    let ana = create_contact(&app.api, json!({"name": "Ana", "tagIds": [new]})).await;
    let path = |tag: i64| format!("/contacts/{ana}/tags/{tag}");
    let tags = async || {
        let shown = shown(&app.api, ana).await;
        let tags = shown["tags"].as_array().expect("tags").iter().map(|tag| tag["id"].as_i64()).collect::<Vec<_>>();
        (tags, shown["updatedAt"].clone())
    };
    let (_, before) = tags().await;
    let put = async |tag: i64| {
        let reply = app.api.put(&path(tag), json!({})).await;
        assert_eq!((reply.status.as_u16(), reply.bytes.len()), (204, 0), "{}", reply.body);
    };
    put(vip).await;
    let (both, applied) = tags().await;
    assert_eq!(both, [Some(vip), Some(new)]);
    assert!(applied.as_str() >= before.as_str());
    put(vip).await;
    assert_eq!(tags().await, (both, applied), "the second application changed something");
    assert_eq!(listed(&app.api, &format!("/contacts?tagId={vip}")).await, [ana]);

    deleted(&app.api, &path(vip)).await;
    let (left, removed) = tags().await;
    assert_eq!(left, [Some(new)]);
    deleted(&app.api, &path(vip)).await;
    assert_eq!(tags().await, (left, removed), "the second removal changed something");
    assert_eq!(listed(&app.api, &format!("/contacts?tagId={vip}")).await, [0; 0]);

    // Many requests at once leave one link, and none deadlock: in a deadlock, one would be refused with 503.
    for _ in 0..10 {
        join_all(
            (0..changes_at_once())
                .map(async |index| if index % 4 == 0 { deleted(&app.api, &path(vip)).await } else { put(vip).await }),
        )
        .await;
    }
    put(vip).await;
    assert_eq!(tags().await.0, [Some(vip), Some(new)]);
    app.stop().await;
}

#[actix_web::test]
async fn contact_and_tag_must_belong_to_the_company() {
    let app = TestApp::shared().await;
    let (_, other) = app.another_company().await;
    let (vip, theirs) = (create_tag(&app.api, "VIP").await, create_tag(&other, "VIP").await);
    let ana = create_contact(&app.api, json!({"name": "Ana"})).await;
    let eva = create_contact(&other, json!({"name": "Eva", "tagIds": [theirs]})).await;
    let not_found = app.api.get(&format!("/contacts/{NOBODY}")).await.body;
    let foreign = [(ana, theirs), (eva, vip), (eva, theirs), (ana, NOBODY), (NOBODY, vip), (0, 0), (-1, i64::MAX)];
    let mut paths: Vec<String> =
        foreign.iter().map(|(contact, tag)| format!("/contacts/{contact}/tags/{tag}")).collect();
    paths.extend(["/contacts/x/tags/1".to_owned(), format!("/contacts/{ana}/tags/x")]);
    for path in paths {
        for reply in [app.api.put(&path, json!({})).await, app.api.delete(&path).await] {
            reply.error(404, "ERR_API_NOT_FOUND");
            assert_eq!(reply.body, not_found, "{path}");
        }
    }
    assert_eq!(shown(&app.api, ana).await["tags"], json!([]));
    assert_eq!(shown(&other, eva).await["tags"][0]["id"], theirs);
    app.stop().await;
}
