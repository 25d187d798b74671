//! The verbs of cards: move, win, lose and reopen.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::{CARDS, card, cards_in, move_to, read, three_stages, with};
use crate::plain::created;
use crate::steps::{NOBODY, assert_timestamp, sql};
use crate::support::{Reply, TestApp};

#[actix_web::test]
async fn a_card_is_won_lost_and_reopened() {
    let app = TestApp::shared().await;
    let (api, board) = (&app.api, three_stages(&app).await);
    let (one, other) = (card(&app, &board, board.todo, "One").await, card(&app, &board, board.done, "Other").await);
    let path = format!("{CARDS}/{one}");
    let verb = async |verb: &str, body: Value| api.post(&format!("{path}/{verb}"), body).await;
    let assert_conflict = |reply: &Reply, reason: &str| {
        let details = reply.error(409, "ERR_API_CONFLICT");
        assert_eq!(
            (&details["reason"], &details["field"], &details["id"]),
            (&json!(reason), &json!("cardId"), &json!(one)),
            "{details}"
        );
    };
    let open = read(&app, one).await;
    assert_conflict(&verb("reopen", json!({})).await, "open");

    let won = verb("win", json!({"statusReason": " Best price "})).await;
    let won = won.data(200);
    assert_timestamp(&won["wonDate"]);
    let different = json!({
        "won": true, "wonDate": won["wonDate"], "statusReason": "Best price", "list": {"id": board.done, "name": "Done"},
        "updatedAt": won["updatedAt"],
    });
    assert_eq!(won, &with(&open, &different));
    assert_eq!(&read(&app, one).await, won);
    assert_eq!(cards_in(&app, board.done).await, [other, one], "a won card is not at the bottom of the stage");
    assert_conflict(&verb("win", json!({})).await, "won");
    assert_conflict(&verb("lose", json!({"statusReason": "x"})).await, "won");
    // A won card stays in the stage for won cards, in any place there.
    assert_conflict(&verb("move", json!({"crmBoardListId": board.todo})).await, "won");
    assert_conflict(&api.put(&path, json!({"crmBoardListId": board.todo})).await, "won");
    move_to(&app, one, board.done, Some(0)).await;
    assert_eq!(cards_in(&app, board.done).await, [one, other]);

    let reopened = Reply::of(api.request(Method::POST, &format!("{path}/reopen"))).await;
    let reopened = reopened.data(200);
    let different = json!({"list": {"id": board.done, "name": "Done"}, "updatedAt": reopened["updatedAt"]});
    assert_eq!(reopened, &with(&open, &different), "a reopened card left its stage, or changed otherwise");
    assert_conflict(&verb("reopen", json!({})).await, "open");

    for missing in [json!({}), json!({"statusReason": null}), json!({"statusReason": " "})] {
        assert_eq!(verb("lose", missing).await.invalid_fields(), ["statusReason"]);
    }
    move_to(&app, one, board.doing, None).await;
    let lost = verb("lose", json!({"statusReason": "Too expensive"})).await;
    let lost = lost.data(200);
    assert_timestamp(&lost["lostDate"]);
    let different = json!({
        "lost": true, "lostDate": lost["lostDate"], "statusReason": "Too expensive",
        "list": {"id": board.doing, "name": "In progress"}, "updatedAt": lost["updatedAt"],
    });
    assert_eq!(lost, &with(&open, &different));
    assert_conflict(&verb("lose", json!({"statusReason": "x"})).await, "lost");
    assert_conflict(&verb("win", json!({})).await, "lost");
    // A lost card may be moved to any stage.
    move_to(&app, one, board.done, None).await;
    verb("reopen", json!({})).await.data(200);
    // Without a body there is no reason.
    let won = Reply::of(api.request(Method::POST, &format!("{path}/win"))).await;
    assert_eq!((&won.data(200)["won"], &won.data(200)["statusReason"]), (&json!(true), &Value::Null));
    assert_eq!(cards_in(&app, board.done).await, [other, one], "a card that was won in the stage for won cards moved");
    for verb in ["win", "lose", "reopen", "move"] {
        let body = json!({"statusReason": "x", "crmBoardListId": board.todo});
        api.post(&format!("{CARDS}/{NOBODY}/{verb}"), body).await.error(404, "ERR_API_NOT_FOUND");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_card_is_won_only_on_a_board_with_a_stage_for_won_cards() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let one = card(&app, &board, board.todo, "One").await;
    sql(&app, "delete from board_lists where id = $1", board.done).await;
    let before = read(&app, one).await;
    let refused = app.api.post(&format!("{CARDS}/{one}/win"), json!({})).await;
    assert_eq!(refused.invalid_fields(), ["boardId"]);
    assert_eq!(read(&app, one).await, before);
    app.api.post(&format!("{CARDS}/{one}/lose"), json!({"statusReason": "x"})).await.data(200);
    app.stop().await;
}

#[actix_web::test]
async fn the_stage_for_won_cards_keeps_that_role_while_it_has_won_cards() {
    let app = TestApp::shared().await;
    let (api, board) = (&app.api, three_stages(&app).await);
    let one = card(&app, &board, board.todo, "One").await;
    api.post(&format!("{CARDS}/{one}/win"), json!({})).await.data(200);
    let stage = format!("/crm/boards/{}/lists/{}", board.id, board.done);
    let refused = api.put(&stage, json!({"doneList": false, "label": "Over"})).await;
    let details = refused.error(409, "ERR_API_CONFLICT");
    assert_eq!((&details["reason"], &details["by"]), (&json!("in_use"), &json!([{"type": "card", "count": 1}])));
    let other = created(api, "/crm/boards", json!({"name": "Another"})).await;
    let elsewhere = format!("/crm/boards/{other}/lists/{}", board.done);
    api.put(&elsewhere, json!({"doneList": false})).await.error(404, "ERR_API_NOT_FOUND");
    api.put(&stage, json!({"doneList": true, "label": "Won"})).await.data(200);
    api.post(&format!("{CARDS}/{one}/reopen"), json!({})).await.data(200);
    assert_eq!(api.put(&stage, json!({"doneList": false})).await.data(200)["doneList"], false);
    app.stop().await;
}

#[actix_web::test]
async fn of_fifty_requests_at_once_one_succeeds() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    for (verb, requires_open_card) in [("win", true), ("lose", true), ("reopen", false)] {
        let one = card(&app, &board, board.todo, verb).await;
        let path = format!("{CARDS}/{one}");
        if !requires_open_card {
            app.api.post(&format!("{path}/lose"), json!({"statusReason": "x"})).await.data(200);
        }
        // They change the card one after the other, so some may be answered as busy at first.
        let (changed, reason) = (format!("{path}/{verb}"), json!({"statusReason": "x"}));
        let requests = (0..50).map(|_| app.api.post_while_busy(&changed, &reason));
        let replies = join_all(requests).await;
        let done = replies.iter().filter(|reply| reply.status == 200).count();
        let refused = replies.iter().filter(|reply| reply.status == 409).count();
        assert_eq!((done, refused), (1, 49), "{verb}");
        // Requests with one idempotency key are carried out once. First, the card gets the state that the verb needs.
        if requires_open_card {
            app.api.post(&format!("{path}/reopen"), json!({})).await.data(200);
        } else {
            app.api.post(&format!("{path}/win"), json!({})).await.data(200);
        }
        let keyed = |_| {
            Reply::of(app.api.keyed(
                Method::POST,
                &format!("{path}/{verb}"),
                &format!("{verb}-once"),
                r#"{"statusReason":"x"}"#,
            ))
        };
        let replies = join_all((0..50).map(keyed)).await;
        assert!(replies.iter().all(|reply| reply.status == 200 && reply.bytes == replies[0].bytes), "{verb}");
        assert_eq!(replies.iter().filter(|reply| !reply.is_replay()).count(), 1, "{verb}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn an_invalid_target_of_a_move_is_refused() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let other_stage = three_stages(&app).await.todo;
    let one = card(&app, &board, board.todo, "One").await;
    let path = format!("{CARDS}/{one}/move");
    for (body, fields) in [
        (json!({}), vec!["crmBoardListId"]),
        (json!({"crmBoardListId": other_stage}), vec!["crmBoardListId"]),
        (json!({"crmBoardListId": "x", "position": -1}), vec!["crmBoardListId", "position"]),
        (json!({"crmBoardListId": board.doing, "position": 1.5}), vec!["position"]),
        (json!({"crmBoardListId": board.doing, "position": "0"}), vec!["position"]),
    ] {
        assert_eq!(app.api.post(&path, body.clone()).await.invalid_fields(), fields, "{body}");
    }
    app.api.post(&path, json!({"crmBoardListId": NOBODY})).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(cards_in(&app, board.todo).await, [one]);
    app.stop().await;
}
