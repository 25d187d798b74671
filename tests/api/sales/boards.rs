//! Boards.

use std::collections::HashMap;

use reqwest::Method;
use serde_json::{Value, json};

use super::{BOARDS, board, card_in, stages};
use crate::check_list::check_list;
use crate::organization::check_absent;
use crate::plain::{check_created_once, check_foreign, check_refused, check_searches, created, deleted};
use crate::steps::{NOBODY, assert_timestamp, id, listed};
use crate::support::TestApp;

/// What is shown of stages: label, position, and whether won cards go there.
async fn shown_stages(app: &TestApp, board: i64) -> Vec<(String, i32, bool)> {
    let stages = stages(app, board).await;
    stages.into_iter().map(|stage| (stage.label, stage.position, stage.done_list)).collect()
}

#[actix_web::test]
async fn a_board_is_created_listed_changed_and_deleted() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let support = json!({"id": company.support, "name": "Support"});
    let sales = json!({"id": company.sales, "name": "Sales"});
    let body = json!({
        "name": " Solar ", "description": " To\nhouseholds ", "monthlyGoal": 50000.5, "yearlyGoal": 600000,
        "crmBoardQueues": [{"queueId": company.sales}, {"queueId": company.support}, {"queueId": company.sales}],
        "crmBoardLists": [{"label": " New "}, {"label": "Won", "doneList": true}, {"label": "Talks"}],
        "id": 1, "createdByUserId": company.ana, "archived": true, "unknown": 7,
    });
    let reply = app.api.post(BOARDS, body).await;
    let made = reply.data(201);
    assert_timestamp(&made["createdAt"]);
    assert_timestamp(&made["updatedAt"]);
    let mut expected = json!({
        "id": made["id"], "name": "Solar", "description": "To\nhouseholds", "monthlyGoal": 50000.5, "yearlyGoal": 600_000,
        "createdByUserId": null, "archived": false, "archivedAt": null, "queues": [support, sales],
        "createdAt": made["createdAt"], "updatedAt": made["updatedAt"],
    });
    assert_eq!(reply.body, json!({"data": expected}), "a listing has no `lists`");
    let solar = id(made);
    assert_eq!(app.api.all(BOARDS).await, [expected.clone()]);
    let given = [("New", 1, false), ("Won", 2, true), ("Talks", 3, false)]
        .map(|(label, position, done)| (label.to_owned(), position, done));
    assert_eq!(shown_stages(&app, solar).await, given);

    let path = format!("{BOARDS}/{solar}");
    for (body, different) in [
        (json!({"name": "Sun"}), json!({"name": "Sun"})),
        (json!({"description": null, "monthlyGoal": null}), json!({"description": null, "monthlyGoal": null})),
        (json!({"yearlyGoal": 0.1}), json!({"yearlyGoal": 0.1})),
        (json!({"crmBoardQueues": [{"queueId": company.sales}]}), json!({"queues": [sales]})),
        (json!({"archived": false}), json!({})),
        (json!({"crmBoardQueues": []}), json!({"queues": []})),
        // Stages have endpoints of their own.
        (json!({"crmBoardLists": [{"label": "Other"}], "createdByUserId": company.ana}), json!({})),
        (json!({}), json!({})),
    ] {
        let reply = app.api.put(&path, body.clone()).await;
        for (field, value) in different.as_object().expect("an object") {
            expected[field] = value.clone();
        }
        expected["updatedAt"] = reply.data(200)["updatedAt"].clone();
        assert_eq!(reply.data(200), &expected, "after {body}");
        assert_eq!(app.api.all(BOARDS).await, [expected.clone()], "after {body}");
    }
    assert_eq!(app.api.put(&path, json!({"crmBoardQueues": null})).await.invalid_fields(), ["crmBoardQueues"]);
    assert_eq!(shown_stages(&app, solar).await, given);
    deleted(&app.api, &path).await;
    app.api.put(&path, json!({})).await.error(404, "ERR_API_NOT_FOUND");
    app.api.delete(&path).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(listed(&app.api, BOARDS).await, Vec::<i64>::new());
    app.stop().await;
}

#[actix_web::test]
async fn a_board_begins_with_the_stages_it_is_given_or_with_three() {
    let app = TestApp::shared().await;
    let three = [("To do", 1, false), ("In progress", 2, false), ("Done", 3, true)];
    for no_lists in
        [json!({"name": "a"}), json!({"name": "b", "crmBoardLists": null}), json!({"name": "c", "crmBoardLists": []})]
    {
        let made = created(&app.api, BOARDS, no_lists.clone()).await;
        assert_eq!(
            shown_stages(&app, made).await,
            three.map(|(label, position, done)| (label.to_owned(), position, done)),
            "{no_lists}"
        );
    }
    let lists = json!([{"label": "c", "position": 7}, {"label": "a", "position": 0}, {"label": "d", "doneList": null}, {"label": "b", "position": 0}]);
    let made = created(&app.api, BOARDS, json!({"name": "d", "crmBoardLists": lists})).await;
    let placed = [("a", 0), ("b", 0), ("c", 7), ("d", 8)].map(|(label, position)| (label.to_owned(), position, false));
    assert_eq!(shown_stages(&app, made).await, placed, "stages of one position are not in the order of the request");
    app.stop().await;
}

#[actix_web::test]
async fn an_invalid_board_is_refused_with_every_wrong_field_and_changes_nothing() {
    let app = TestApp::shared().await;
    let (theirs, _) = app.another_company().await;
    let every = &["name", "description", "monthlyGoal", "yearlyGoal"][..];
    let lists = |lists: Value| json!({"name": "a", "crmBoardLists": lists});
    let many: Vec<Value> = (0..51).map(|number| json!({"label": number.to_string()})).collect();
    let mut bodies = vec![
        (json!({}), &["name"][..]),
        (json!({"name": " ", "description": 7, "monthlyGoal": "1", "yearlyGoal": -1}), every),
        (json!({"name": "a\nb", "monthlyGoal": 1.00001, "yearlyGoal": 1e14}), &["name", "monthlyGoal", "yearlyGoal"]),
        (json!({"name": "x".repeat(256)}), &["name"]),
        (lists(json!("To do")), &["crmBoardLists"]),
        (lists(json!(["To do"])), &["crmBoardLists[0]"]),
        (
            lists(json!([{"label": "a"}, {"position": -1, "doneList": 1}])),
            &["crmBoardLists[1].label", "crmBoardLists[1].doneList", "crmBoardLists[1].position"],
        ),
        (
            lists(json!([{"label": "a", "doneList": true}, {"label": "b"}, {"label": "c", "doneList": true}])),
            &["crmBoardLists[2].doneList"],
        ),
        (lists(json!([{"label": " "}])), &["crmBoardLists[0].label"]),
        (
            json!({"name": "a", "crmBoardQueues": [{"queueId": "1"}, {}]}),
            &["crmBoardQueues[0].queueId", "crmBoardQueues[1].queueId"],
        ),
    ];
    bodies.push((lists(json!(many)), &["crmBoardLists"]));
    let queues: Vec<Value> = (0..1001).map(|number| json!({"queueId": number})).collect();
    bodies.push((json!({"name": "a", "crmBoardQueues": queues}), &["crmBoardQueues"]));
    check_refused(&app, Method::POST, BOARDS, bodies).await;
    let most = created(&app.api, BOARDS, lists(json!(many[..50]))).await;
    assert_eq!(stages(&app, most).await.len(), 50);

    let path = format!("{BOARDS}/{most}");
    let bodies = vec![
        (json!({"name": null, "archived": null}), &["name", "archived"][..]),
        (json!({"name": "", "monthlyGoal": [], "archived": "yes"}), &["name", "monthlyGoal", "archived"]),
        (json!({"crmBoardQueues": [7]}), &["crmBoardQueues[0]"]),
    ];
    check_refused(&app, Method::PUT, &path, bodies).await;

    let before = app.api.all(BOARDS).await;
    let mut calls = Vec::new();
    for queue in [theirs.support.0, NOBODY] {
        let queues = json!([{"queueId": app.company.support}, {"queueId": queue}]);
        let body = json!({"name": "New", "crmBoardQueues": queues});
        calls.push((Method::POST, BOARDS.to_owned(), Some(body.clone())));
        calls.push((Method::PUT, path.clone(), Some(body)));
    }
    check_absent(&app, calls).await;
    assert_eq!(app.api.all(BOARDS).await, before, "a part of a refused change took effect");
    app.stop().await;
}

#[actix_web::test]
async fn an_archived_board_is_listed_only_by_its_filter() {
    let app = TestApp::shared().await;
    let (one, two) = (board(&app.api, "One").await, board(&app.api, "Two").await);
    let path = format!("{BOARDS}/{one}");
    let archive = async |archived: bool| app.api.put(&path, json!({"archived": archived})).await.data(200).clone();
    let archived = archive(true).await;
    assert_eq!(archived["archived"], true);
    assert_timestamp(&archived["archivedAt"]);
    assert_eq!(archive(true).await["archivedAt"], archived["archivedAt"], "archiving it again changed its time");
    for (filter, expected) in [
        ("", vec![two]),
        ("?archived=false", vec![two]),
        ("?archived=true", vec![one]),
        ("?archived=true&search=two", vec![]),
    ] {
        assert_eq!(listed(&app.api, &format!("{BOARDS}{filter}")).await, expected, "{filter}");
    }
    assert_eq!(app.api.get(&format!("{BOARDS}?archived=maybe")).await.invalid_fields(), ["archived"]);
    // An archived board can be changed like any other.
    app.api.put(&path, json!({"name": "Uno"})).await.data(200);
    let back = archive(false).await;
    assert_eq!((&back["archived"], &back["archivedAt"], &back["name"]), (&json!(false), &Value::Null, &json!("Uno")));
    assert_eq!(listed(&app.api, BOARDS).await, [one, two]);
    app.stop().await;
}

#[actix_web::test]
async fn boards_are_listed_and_found() {
    let app = TestApp::shared().await;
    let mut boards = HashMap::new();
    for name in ["Indústria", "100%", "a_b", "axb"] {
        boards.insert(name, board(&app.api, name).await);
    }
    let mut all: Vec<i64> = boards.values().copied().collect();
    all.sort_unstable();
    check_list(&app, BOARDS, &all, &["created", "updated"]).await;
    let searches: &[(&str, &[&str])] = &[("INDUSTRIA", &["Indústria"]), ("%", &["100%"]), ("_", &["a_b"]), (r"\", &[])];
    check_searches(&app, BOARDS, &boards, searches).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_board_is_created_once_per_key_and_not_found_by_another_company() {
    let app = TestApp::shared().await;
    check_created_once(&app, BOARDS, &json!({"name": "Once"}), &json!({"name": "Twice"})).await;
    let one = board(&app.api, "Ours").await;
    check_foreign(&app, BOARDS, one, &json!({"name": "Stolen"})).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_board_with_cards_is_not_deleted_and_one_without_is_deleted_with_its_stages() {
    let app = TestApp::shared().await;
    let (full, empty) = (board(&app.api, "Full").await, board(&app.api, "Empty").await);
    let stage = stages(&app, full).await[1].id;
    for _ in 0..2 {
        card_in(&app, full, stage).await;
    }
    let path = format!("{BOARDS}/{full}");
    let refused = app.api.delete(&path).await;
    let details = json!({"state": "the board has cards", "reason": "in_use", "by": [{"type": "card", "count": 2}]});
    assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &details);
    assert_eq!(stages(&app, full).await.len(), 3, "the refused deletion removed stages");
    deleted(&app.api, &format!("{BOARDS}/{empty}")).await;
    let left = sqlx::query_scalar("select count(*) from board_lists where company_id = $1").bind(app.company.id);
    let left: i64 = left.fetch_one(&app.db).await.expect("a count");
    assert_eq!(left, 3);
    let cards = sqlx::query("delete from cards where company_id = $1").bind(app.company.id);
    cards.execute(&app.db).await.expect("deleted");
    deleted(&app.api, &path).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_board_no_longer_shows_a_deleted_creator_or_a_deleted_queue() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let queue = created(&app.api, "/queues", json!({"name": "Fairs"})).await;
    let queues = json!([{"queueId": queue}, {"queueId": company.sales}]);
    let made = created(&app.api, BOARDS, json!({"name": "Solar", "crmBoardQueues": queues})).await;
    sqlx::query("update boards set created_by_user_id = $1 where company_id = $2 and id = $3")
        .bind(company.ben)
        .bind(company.id)
        .bind(made)
        .execute(&app.db)
        .await
        .expect("the creator is set");
    let shown = async || app.api.all(BOARDS).await[0].clone();
    assert_eq!(shown().await["createdByUserId"], json!(company.ben));
    deleted(&app.api, &format!("/users/{}", company.ben)).await;
    assert_eq!(shown().await["createdByUserId"], Value::Null);
    app.api.put(&format!("/queues/{queue}"), json!({"name": "Trade fairs"})).await.data(200);
    assert_eq!(shown().await["queues"][1], json!({"id": queue, "name": "Trade fairs"}));
    deleted(&app.api, &format!("/queues/{queue}")).await;
    assert_eq!(shown().await["queues"], json!([{"id": company.sales, "name": "Sales"}]));
    app.stop().await;
}
