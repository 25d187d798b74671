//! Stages of boards.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::{BOARDS, board, card_in, stages};
use crate::organization::check_absent;
use crate::plain::{created, deleted};
use crate::steps::{NOBODY, assert_timestamp, id, ids};
use crate::support::{Api, Reply, TestApp};

fn stages_path(board: i64) -> String {
    format!("{BOARDS}/{board}/lists")
}

async fn stage_ids(app: &TestApp, board: i64) -> Vec<i64> {
    stages(app, board).await.iter().map(|stage| stage.id.0).collect()
}

/// Creates a board with these stages, none of which is for won cards.
async fn board_with_stages(api: &Api, labels: &[&str]) -> i64 {
    let lists: Vec<Value> = labels.iter().map(|label| json!({"label": label})).collect();
    created(api, BOARDS, json!({"name": "Open", "crmBoardLists": lists})).await
}

#[actix_web::test]
async fn a_stage_is_added_changed_and_deleted() {
    let app = TestApp::shared().await;
    let board = board(&app.api, "Solar").await;
    let path = stages_path(board);
    let reply = app.api.post(&path, json!({"label": " Offered ", "id": 1, "crmBoardId": 2})).await;
    let made = reply.data(201);
    assert_timestamp(&made["createdAt"]);
    assert_timestamp(&made["updatedAt"]);
    let mut expected = json!({
        "id": made["id"], "label": "Offered", "position": 4, "doneList": false, "crmBoardId": board,
        "createdAt": made["createdAt"], "updatedAt": made["updatedAt"],
    });
    assert_eq!(reply.body, json!({"data": expected}));
    let first = app.api.post(&path, json!({"label": "First", "position": 0, "doneList": false})).await;
    assert_eq!(first.data(201)["position"], 0);
    let offered = id(made);
    let one = format!("{path}/{offered}");
    for (body, field, shown) in [
        (json!({"label": "Offer"}), "label", json!("Offer")),
        (json!({"position": 9}), "position", json!(9)),
        (json!({"doneList": false}), "doneList", json!(false)),
        (json!({"crmBoardId": 7}), "crmBoardId", json!(board)),
        (json!({}), "position", json!(9)),
    ] {
        let reply = app.api.put(&one, body.clone()).await;
        expected[field] = shown;
        expected["updatedAt"] = reply.data(200)["updatedAt"].clone();
        assert_eq!(reply.data(200), &expected, "after {body}");
    }
    let order = stage_ids(&app, board).await;
    assert_eq!((order[0], order[4]), (id(first.data(201)), offered));
    deleted(&app.api, &one).await;
    app.api.put(&one, json!({})).await.error(404, "ERR_API_NOT_FOUND");
    app.api.delete(&one).await.error(404, "ERR_API_NOT_FOUND");
    app.api.get(&one).await.error(405, "ERR_API_METHOD_NOT_ALLOWED");
    app.api.get(&path).await.error(405, "ERR_API_METHOD_NOT_ALLOWED");
    // The last stage can be deleted as well.
    for left in stage_ids(&app, board).await {
        deleted(&app.api, &format!("{path}/{left}")).await;
    }
    assert_eq!(stage_ids(&app, board).await, Vec::<i64>::new());
    assert_eq!(app.api.post(&path, json!({"label": "Again"})).await.data(201)["position"], 1);
    app.stop().await;
}

#[actix_web::test]
async fn an_invalid_stage_is_refused_with_every_wrong_field() {
    let app = TestApp::shared().await;
    let board = board(&app.api, "Solar").await;
    let before = stage_ids(&app, board).await;
    let every = &["label", "doneList", "position"][..];
    let one = format!("{}/{}", stages_path(board), before[0]);
    let mut calls = Vec::new();
    for (body, fields) in [
        (json!({}), &["label"][..]),
        (json!({"label": " ", "doneList": 1, "position": -1}), every),
        (json!({"label": "a\nb", "doneList": "true", "position": 1.5}), every),
        (json!({"label": "x".repeat(256), "position": 1_000_001}), &["label", "position"]),
    ] {
        calls.push((Method::POST, stages_path(board), body, fields));
    }
    for (body, fields) in [
        (json!({"label": null, "doneList": null, "position": null}), every),
        (json!({"label": "", "position": "1"}), &["label", "position"]),
    ] {
        calls.push((Method::PUT, one.clone(), body, fields));
    }
    for (method, path, body, fields) in calls {
        let reply = Reply::of(app.api.request(method.clone(), &path).json(&body)).await;
        assert_eq!(reply.invalid_fields(), fields, "{method} {body}");
    }
    assert_eq!(stage_ids(&app, board).await, before);
    app.stop().await;
}

#[actix_web::test]
async fn a_stage_is_not_found_under_another_board() {
    let app = TestApp::shared().await;
    let (_, other) = app.another_company().await;
    let (ours, other_board) = (board(&app.api, "Ours").await, board(&app.api, "Beside").await);
    let (our_stage, other_stage) = (stage_ids(&app, ours).await[0], stage_ids(&app, other_board).await[0]);
    let theirs = board(&other, "Theirs").await;
    let change = Some(json!({"label": "Stolen"}));
    let mut calls = Vec::new();
    for (board, stage) in
        [(ours, other_stage), (other_board, our_stage), (theirs, our_stage), (NOBODY, our_stage), (ours, NOBODY)]
    {
        let path = format!("{}/{stage}", stages_path(board));
        calls.extend([(Method::PUT, path.clone(), change.clone()), (Method::DELETE, path, None)]);
    }
    for board in [theirs, NOBODY] {
        calls.push((Method::POST, stages_path(board), change.clone()));
        calls.push((Method::PUT, format!("{}/order", stages_path(board)), Some(json!({"orderedIds": [our_stage]}))));
    }
    check_absent(&app, calls).await;
    for board in [ours, other_board] {
        let labels: Vec<String> = stages(&app, board).await.into_iter().map(|stage| stage.label).collect();
        assert_eq!(labels, ["To do", "In progress", "Done"]);
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_board_has_one_stage_for_won_cards_at_most() {
    let app = TestApp::shared().await;
    let board = board(&app.api, "Solar").await;
    let [to_do, _, done] = stage_ids(&app, board).await[..] else { panic!("three stages") };
    let path = stages_path(board);
    let taken = json!({"field": "doneList", "id": done});
    let refused = app.api.post(&path, json!({"label": "Won", "doneList": true})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &taken);
    let one = format!("{path}/{to_do}");
    let refused = app.api.put(&one, json!({"label": "Won", "doneList": true})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &taken);
    assert_eq!(stages(&app, board).await[0].label, "To do", "the refused change was made in part");
    // A stage may be set to what it already is.
    app.api.put(&format!("{path}/{done}"), json!({"doneList": true})).await.data(200);
    app.api.put(&format!("{path}/{done}"), json!({"doneList": false})).await.data(200);
    app.api.put(&one, json!({"doneList": true})).await.data(200);
    let refused = app.api.put(&format!("{path}/{done}"), json!({"doneList": true})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &json!({"field": "doneList", "id": to_do}));
    deleted(&app.api, &one).await;
    let won = app.api.post(&path, json!({"label": "Won", "doneList": true})).await;
    assert_eq!(won.data(201)["doneList"], true);
    app.stop().await;
}

#[actix_web::test]
async fn of_fifty_requests_at_once_one_sets_the_stage_for_won_cards() {
    let app = TestApp::shared().await;
    let board = board_with_stages(&app.api, &["New"]).await;
    let path = stages_path(board);
    let won = json!({"label": "Won", "doneList": true});
    // They change the board one after the other, so some may be answered as busy at first.
    let replies = join_all((0..50).map(|_| app.api.post_while_busy(&path, &won))).await;
    check_one_done(&app, board, &replies, 201).await;

    let labels: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    let board = board_with_stages(&app.api, &labels.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let path = stages_path(board);
    let stages = stage_ids(&app, board).await;
    let done = json!({"doneList": true});
    let change = async |stage: &i64| app.api.put_while_busy(&format!("{path}/{stage}"), &done).await;
    let replies = join_all(stages.iter().map(change)).await;
    check_one_done(&app, board, &replies, 200).await;
    app.stop().await;
}

/// Asserts that one of the requests made a stage the one for won cards, and that all other replies name it.
async fn check_one_done(app: &TestApp, board: i64, replies: &[Reply], status: u16) {
    let made: Vec<i64> =
        replies.iter().filter(|reply| reply.status == status).map(|reply| id(reply.data(status))).collect();
    let done: Vec<i64> =
        stages(app, board).await.iter().filter(|stage| stage.done_list).map(|stage| stage.id.0).collect();
    assert_eq!((made.len(), &made), (1, &done));
    for reply in replies.iter().filter(|reply| reply.status != status) {
        assert_eq!(reply.error(409, "ERR_API_CONFLICT"), &json!({"field": "doneList", "id": done[0]}));
    }
}

#[actix_web::test]
async fn a_board_has_fifty_stages_however_many_are_added_at_once() {
    let app = TestApp::shared().await;
    let board = board(&app.api, "Solar").await;
    let path = stages_path(board);
    let add = async |number: usize| app.api.post_while_busy(&path, &json!({"label": number.to_string()})).await;
    let replies = join_all((0..60).map(add)).await;
    let full = json!({
        "state": "the board has reached its maximum number of stages", "reason": "too_many",
        "by": [{"type": "crmBoardList", "count": 50}],
    });
    let mut made = 0;
    for reply in &replies {
        if reply.status == 201 {
            made += 1;
        } else {
            assert_eq!(reply.error(409, "ERR_API_CONFLICT"), &full);
        }
    }
    assert_eq!(made, 47);
    let places: Vec<i32> = stages(&app, board).await.iter().map(|stage| stage.position).collect();
    assert_eq!(places, (1..=50).collect::<Vec<_>>(), "positions are not 1 to 50");
    // A deleted stage makes room for another.
    let last = stage_ids(&app, board).await[49];
    deleted(&app.api, &format!("{path}/{last}")).await;
    assert_eq!(add(99).await.data(201)["position"], 50);
    app.stop().await;
}

#[actix_web::test]
async fn a_stage_with_cards_is_not_deleted() {
    let app = TestApp::shared().await;
    let board = board(&app.api, "Solar").await;
    let [_, full, _] = &stages(&app, board).await[..] else { panic!("three stages") };
    for _ in 0..3 {
        card_in(&app, board, full.id).await;
    }
    let path = format!("{}/{}", stages_path(board), full.id);
    let refused = app.api.delete(&path).await;
    let details = json!({"state": "the stage has cards", "reason": "in_use", "by": [{"type": "card", "count": 3}]});
    assert_eq!(refused.error(409, "ERR_API_CONFLICT"), &details);
    app.api.put(&path, json!({"label": "Full"})).await.data(200);
    let cards = sqlx::query("delete from cards where company_id = $1").bind(app.company.id);
    cards.execute(&app.db).await.expect("deleted");
    deleted(&app.api, &path).await;
    app.stop().await;
}

#[actix_web::test]
async fn an_order_names_every_stage_of_the_board_once() {
    let app = TestApp::shared().await;
    let board = board_with_stages(&app.api, &["a", "b", "c"]).await;
    let other_board = board_with_stages(&app.api, &["d"]).await;
    let [a, b, c] = stage_ids(&app, board).await[..] else { panic!("three stages") };
    let d = stage_ids(&app, other_board).await[0];
    let path = format!("{}/order", stages_path(board));
    let before: Vec<_> = stages(&app, board).await.iter().map(|stage| (stage.id, stage.position)).collect();
    for bad in [
        json!([]),
        json!([a, b]),
        json!([a, b, b]),
        json!([a, b, c, c]),
        json!([a, b, d]),
        json!([a, b, c, d]),
        json!([a, b, NOBODY]),
        json!([a, b, "x"]),
        json!(a),
        Value::Null,
    ] {
        let refused = app.api.put(&path, json!({"orderedIds": bad})).await;
        assert_eq!(refused.invalid_fields(), ["orderedIds"], "{bad}");
    }
    assert_eq!(app.api.put(&path, json!({})).await.invalid_fields(), ["orderedIds"]);
    let after: Vec<_> = stages(&app, board).await.iter().map(|stage| (stage.id, stage.position)).collect();
    assert_eq!(after, before);
    app.api.get(&path).await.error(405, "ERR_API_METHOD_NOT_ALLOWED");

    let reply = app.api.put(&path, json!({"orderedIds": [c, a, b]})).await;
    let ordered = reply.data(200).as_array().expect("a list");
    assert_eq!(reply.body["meta"], json!({"page": 1, "perPage": 100, "hasMore": false}));
    assert_eq!(ids(ordered), [c, a, b]);
    let positions: Vec<&Value> = ordered.iter().map(|stage| &stage["position"]).collect();
    assert_eq!(positions, [1, 2, 3]);
    assert_eq!(ordered[0]["crmBoardId"], board);
    assert_eq!(stage_ids(&app, board).await, [c, a, b]);
    app.stop().await;
}

#[actix_web::test]
async fn orders_set_at_once_leave_the_stages_in_one_of_them() {
    let app = TestApp::shared().await;
    let board = board_with_stages(&app.api, &["a", "b", "c", "d"]).await;
    let path = format!("{}/order", stages_path(board));
    let first = stage_ids(&app, board).await;
    let orders: Vec<Vec<i64>> = (0..4)
        .map(|turn| {
            let mut order = first.clone();
            order.rotate_left(turn);
            order
        })
        .collect();
    let mut replies = Vec::new();
    // Four at once, so that none waits for a connection: each is set, and no requests deadlock.
    for _ in 0..5 {
        let order_all =
            orders.iter().map(async |order| (order, app.api.put(&path, json!({"orderedIds": order})).await));
        replies.extend(join_all(order_all).await);
    }
    for (order, reply) in &replies {
        assert_eq!(&ids(reply.data(200).as_array().expect("a list")), *order, "the answer has another request's order");
    }
    let left = stage_ids(&app, board).await;
    assert!(orders.contains(&left), "no request set the order {left:?}");
    let stages = stages_path(board);
    let (made, ordered) =
        tokio::join!(app.api.post(&stages, json!({"label": "New"})), app.api.put(&path, json!({"orderedIds": first})));
    assert_eq!(made.data(201)["position"], 5, "the new stage is not the last one");
    assert!([200, 422].contains(&ordered.status.as_u16()), "{}", ordered.body);
    app.stop().await;
}
