//! Queues, and who works in them.

use hotline_persistence::tables::channels::ChannelType;
use reqwest::Method;
use serde_json::{Value, json};

use crate::check_list::check_list;
use crate::organization::{check_absent, opened};
use crate::plain::{Noun, check_plain, created, deleted};
use crate::steps::{NOBODY, close, listed, ticket};
use crate::support::{Api, Reply, TestApp, seed};

const PATH: &str = "/queues";

async fn create_queue(api: &Api, name: &str) -> i64 {
    created(api, PATH, json!({"name": name})).await
}

#[actix_web::test]
async fn a_queue_is_created_listed_changed_and_deleted() {
    let every = &["name", "color", "greeting", "distribution", "wrapupRequired", "active"][..];
    let wrong = json!({
        "name": " ", "color": "red", "greeting": 7, "distribution": "random", "wrapupRequired": "yes", "active": 1,
    });
    let null = json!({
        "name": null, "color": null, "greeting": null, "distribution": null, "wrapupRequired": null, "active": null,
    });
    let whole = json!({
        "name": "All", "color": "#000000", "greeting": "Hi", "distribution": "manual", "wrapupRequired": true,
        "active": false,
    });
    let greeting = json!({"greeting": "Hello,\nwe are with you."});
    check_plain(Noun {
        path: PATH,
        is_shown: true,
        new: (
            json!({"name": " Billing "}),
            json!({
                "name": "Billing", "color": "#64748b", "greeting": null, "distribution": "manual",
                "wrapupRequired": false, "active": true,
            }),
        ),
        good: vec![
            (whole.clone(), whole),
            // For a new queue, null selects the default.
            (
                json!({"name": "a", "color": null, "active": null, "greeting": null}),
                json!({"color": "#64748b", "active": true, "greeting": null}),
            ),
        ],
        changes: vec![
            (json!({"name": " Invoices"}), json!({"name": "Invoices"})),
            (json!({"color": "#FF00aa"}), json!({"color": "#ff00aa"})),
            (greeting.clone(), greeting),
            (json!({"distribution": "round_robin"}), json!({"distribution": "round_robin"})),
            (json!({"distribution": "least_busy"}), json!({"distribution": "least_busy"})),
            (json!({"wrapupRequired": true}), json!({"wrapupRequired": true})),
            (json!({"active": false}), json!({"active": false})),
            (json!({"greeting": null}), json!({"greeting": null})),
        ],
        bad: vec![
            (json!({}), &["name"]),
            (wrong.clone(), every),
            (json!({"name": "x".repeat(256), "greeting": "x".repeat(10_001)}), &["name", "greeting"]),
            (json!({"name": "a\nb", "greeting": "\u{0}"}), &["name", "greeting"]),
        ],
        bad_changes: vec![(wrong, every), (null, &["name", "color", "distribution", "wrapupRequired", "active"])],
        unique: "name",
        is_fixed: false,
        named: |name| json!({"name": name}),
        listed: ["Cobrança", "100% paid", "a_b", "axb"].map(|name| (name, json!({"name": name}))).into(),
        searches: &[
            ("COBRANCA", &["Cobrança"]),
            ("brança", &["Cobrança"]),
            ("PAI", &["100% paid"]),
            ("%", &["100% paid"]),
            ("_", &["a_b"]),
            ("a_b", &["a_b"]),
            (r"\", &[]),
        ],
    })
    .await;
}

#[actix_web::test]
async fn another_companys_queue_is_not_found() {
    let app = TestApp::shared().await;
    let (theirs, _) = app.another_company().await;
    let (queue, ana) = (app.company.support, app.company.ana);
    let mut calls = Vec::new();
    for absent in [theirs.support.to_string(), NOBODY.to_string(), "x".to_owned(), "0".to_owned()] {
        let path = format!("{PATH}/{absent}");
        calls.extend([
            (Method::GET, path.clone(), None),
            (Method::PUT, path.clone(), Some(json!({"name": "Stolen"}))),
            (Method::DELETE, path.clone(), None),
            (Method::GET, format!("{path}/users"), None),
            (Method::GET, format!("{path}/wrapup-types"), None),
            (Method::PUT, format!("{path}/users/{ana}"), None),
            (Method::DELETE, format!("{path}/users/{ana}"), None),
        ]);
    }
    for absent in [theirs.ben.to_string(), NOBODY.to_string(), "x".to_owned()] {
        calls.push((Method::PUT, format!("{PATH}/{queue}/users/{absent}"), None));
        calls.push((Method::DELETE, format!("{PATH}/{queue}/users/{absent}"), None));
    }
    check_absent(&app, calls).await;
    let other = app.api.with_key(&theirs.key);
    assert_eq!(listed(&other, PATH).await, [theirs.support.0, theirs.sales.0]);
    assert_eq!(other.get(&format!("{PATH}/{}", theirs.support)).await.data(200)["name"], "Support");
    assert_eq!(listed(&other, &format!("{PATH}/{}/users", theirs.support)).await, [theirs.ana.0, theirs.ben.0]);
    app.stop().await;
}

#[actix_web::test]
async fn queues_are_found_by_name_and_by_whether_they_are_active() {
    let app = TestApp::shared().await;
    let (first, second) = (create_queue(&app.api, "a_b").await, create_queue(&app.api, "axb").await);
    let both = [app.company.support.0, app.company.sales.0];
    assert_eq!(listed(&app.api, "/queues?search=S").await, both);
    app.api.put(&format!("{PATH}/{second}"), json!({"active": false})).await.data(200);
    assert_eq!(listed(&app.api, "/queues?active=false").await, [second]);
    assert_eq!(listed(&app.api, "/queues?active=true").await, [both[0], both[1], first]);
    assert_eq!(listed(&app.api, "/queues?active=true&search=a_b").await, [first]);
    assert_eq!(app.api.get("/queues?active=1").await.invalid_fields(), ["active"]);
    app.stop().await;
}

#[actix_web::test]
async fn adding_or_removing_an_agent_again_changes_nothing() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let new = create_queue(&app.api, "New").await;
    let users = format!("{PATH}/{new}/users");
    let eva = created(&app.api, "/users", json!({"name": "Éva 100%", "email": "eva@example.com"})).await;
    assert_eq!(listed(&app.api, &users).await, [0; 0]);
    for user in [company.ana.0, company.ben.0, eva, eva, eva] {
        let added = Reply::of(app.api.request(Method::PUT, &format!("{users}/{user}"))).await;
        assert_eq!((added.status.as_u16(), added.bytes.len()), (204, 0));
    }
    check_list(&app, &users, &[company.ana.0, company.ben.0, eva], &["created", "updated"]).await;
    assert_eq!(app.api.all(&users).await[2], *app.api.get(&format!("/users/{eva}")).await.data(200));
    assert_eq!(
        app.api.get(&format!("/users/{}", company.ana)).await.data(200)["queues"],
        json!([{"id": company.support, "name": "Support"}, {"id": new, "name": "New"}])
    );
    app.api.put(&format!("/users/{eva}"), json!({"active": false})).await.data(200);
    for (filter, expected) in [
        ("search=eva", vec![eva]),
        ("search=%25", vec![eva]),
        ("search=EXAMPLE.com", vec![company.ana.0, company.ben.0, eva]),
        ("active=true", vec![company.ana.0, company.ben.0]),
        ("active=false", vec![eva]),
    ] {
        assert_eq!(listed(&app.api, &format!("{users}?{filter}")).await, expected, "{filter}");
    }
    for _ in 0..2 {
        deleted(&app.api, &format!("{users}/{}", company.ben)).await;
    }
    assert_eq!(listed(&app.api, &users).await, [company.ana.0, eva]);
    assert_eq!(listed(&app.api, &format!("{PATH}/{}/users", company.sales)).await, [company.ben.0]);

    // A repeated request with one idempotency key is a replay.
    let path = format!("{users}/{}", company.ben);
    for replay in [false, true] {
        let added = Reply::of(app.api.keyed(Method::PUT, &path, "add", "")).await;
        assert_eq!((added.status.as_u16(), added.is_replay()), (204, replay));
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_queue_lists_the_wrap_up_types_linked_to_it() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let category = created(&app.api, "/wrapup-categories", json!({"name": "More"})).await;
    let mut linked = vec![company.solved.0];
    for (name, queues) in [
        ("Both", vec![company.support, company.sales]),
        ("Only", vec![company.support]),
        ("Elsewhere", vec![company.sales]),
        ("Nowhere", vec![]),
    ] {
        let body = json!({"name": name, "categoryId": category, "queueIds": queues, "active": name != "Only"});
        let made = created(&app.api, "/wrapup-types", body).await;
        if queues.contains(&company.support) {
            linked.push(made);
        }
    }
    let path = format!("{PATH}/{}/wrapup-types", company.support);
    check_list(&app, &path, &linked, &["created", "updated"]).await;
    let rows = app.api.all(&path).await;
    assert_eq!(rows[1], *app.api.get(&format!("/wrapup-types/{}", linked[1])).await.data(200));
    assert_eq!(listed(&app.api, &format!("{path}?active=false")).await, linked[2..]);
    assert_eq!(listed(&app.api, &format!("{path}?search=bOTH")).await, linked[1..2]);
    app.stop().await;
}

#[actix_web::test]
async fn a_queue_is_deleted_only_when_no_ticket_is_open_in_it_and_no_channel_points_to_it() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let new = create_queue(&app.api, "New").await;
    let path = format!("{PATH}/{new}");
    let category = created(&app.api, "/wrapup-categories", json!({"name": "More"})).await;
    let body = json!({"name": "Linked", "categoryId": category, "queueIds": [new]});
    let linked = created(&app.api, "/wrapup-types", body).await;
    app.api.put(&format!("{path}/users/{}", company.ana), json!({})).await;
    let ticket_id = opened(&app, "5511900000001", json!({"queueId": new, "userId": company.ana})).await;
    // The queue's acknowledged ticket counts, whether or not the tables have it by now.
    for _ in 0..3 {
        let refused = app.api.delete(&path).await;
        let by = json!([{"type": "ticket", "count": 1}]);
        let details = json!({"state": "the queue has open tickets", "reason": "open_tickets", "by": by});
        assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &details);
    }
    // After the refusal, the queue works as before.
    app.api.post(&format!("/tickets/{ticket_id}/transfer"), json!({"queueId": new})).await.data(200);
    close(&app.api, ticket_id).await;

    let db = &app.db;
    let queue_id = Some(hotline_persistence::QueueId::new(new));
    let channel = seed::channel(db, company.id, "Points there", ChannelType::Webchat, queue_id).await;
    let refused = app.api.delete(&path).await;
    let by = json!([{"type": "channel", "count": 1}]);
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["by"], by);
    sqlx::query("delete from channels where id = $1").bind(channel).execute(db).await.expect("delete");
    deleted(&app.api, &path).await;

    // A closed ticket keeps its history, and shows no queue; opened again it is in none.
    let shown = ticket(&app.api, ticket_id).await;
    assert_eq!((&shown["queue"], &shown["assignedTo"]["name"]), (&Value::Null, &json!("Ana")));
    let events = app.api.all(&format!("/tickets/{ticket_id}/events")).await;
    assert_eq!(events[0]["to"]["queue"], json!({"id": new, "name": "New"}));
    app.api.get(&format!("/tickets?queueId={new}")).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(app.api.get(&format!("/wrapup-types/{linked}")).await.data(200)["queues"], json!([]));
    assert_eq!(
        app.api.get(&format!("/users/{}", company.ana)).await.data(200)["queues"],
        json!([{"id": company.support, "name": "Support"}])
    );
    app.api.post(&format!("/tickets/{ticket_id}/reopen"), json!({})).await.data(200);
    app.api.post(&format!("/tickets/{ticket_id}/transfer"), json!({"userId": company.ben})).await.data(200);
    close(&app.api, ticket_id).await;
    app.stop().await;
}

#[actix_web::test]
async fn open_conversations_follow_a_change_of_their_queue_at_once() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let new = create_queue(&app.api, "New").await;
    let path = format!("{PATH}/{new}");
    let agent = format!("{path}/users/{}", company.ana);
    let change = async |change: Value| app.api.put(&path, change).await.data(200).clone();
    let open = opened(&app, "5511900000001", json!({"queueId": new})).await;
    let (transfer, close) = (format!("/tickets/{open}/transfer"), format!("/tickets/{open}/close"));
    let to_ana = json!({"userId": company.ana});
    // Often enough to catch a directory that is up to date only a little later.
    for _ in 0..20 {
        change(json!({"wrapupRequired": true})).await;
        assert_eq!(app.api.post(&close, json!({})).await.invalid_fields(), ["wrapupTypeId"]);
        change(json!({"wrapupRequired": false})).await;
        app.api.post(&close, json!({})).await.data(200);
        app.api.post(&format!("/tickets/{open}/reopen"), json!({})).await.data(200);

        assert_eq!(app.api.post(&transfer, to_ana.clone()).await.invalid_fields(), ["userId"]);
        assert_eq!(Reply::of(app.api.request(Method::PUT, &agent)).await.status, 204);
        app.api.post(&transfer, to_ana.clone()).await.data(200);
        deleted(&app.api, &agent).await;
        assert_eq!(app.api.post(&transfer, to_ana.clone()).await.invalid_fields(), ["userId"]);

        let other = create_queue(&app.api, "Other").await;
        app.api.post(&transfer, json!({"queueId": other})).await.data(200);
        change(json!({"active": false})).await;
        assert_eq!(app.api.post(&transfer, json!({"queueId": new})).await.invalid_fields(), ["queueId"]);
        change(json!({"active": true, "name": "Newer"})).await;
        let moved = app.api.post(&transfer, json!({"queueId": new})).await;
        assert_eq!(moved.data(200)["queue"], json!({"id": new, "name": "Newer"}));

        deleted(&app.api, &format!("{PATH}/{other}")).await;
        app.api.post(&transfer, json!({"queueId": other})).await.error(404, "ERR_API_NOT_FOUND");
    }
    app.stop().await;
}
