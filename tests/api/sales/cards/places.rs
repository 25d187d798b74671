//! The order of the cards of a stage: by decimal positions, which are spread (spaced out) when two are too close.

use std::collections::HashMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use super::{Board, CARDS, card, cards_in, move_to, three_stages};
use crate::steps::changes_at_once;
use crate::support::TestApp;

/// The version of each row of a board's cards; a write gives the row another version.
async fn versions(app: &TestApp, board: &Board) -> HashMap<i64, String> {
    let rows = "select id, xmin::text || ctid::text from cards where board_id = $1";
    let rows: Vec<(i64, String)> = sqlx::query_as(rows).bind(board.id).fetch_all(&app.db).await.expect("versions");
    rows.into_iter().collect()
}

#[actix_web::test]
async fn a_card_is_moved_to_the_place_it_is_given() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let mut model: Vec<Vec<i64>> = vec![Vec::new(), Vec::new()];
    let lists = [board.todo, board.doing];
    for number in 0..8 {
        model[0].push(card(&app, &board, board.todo, &number.to_string()).await);
    }
    let mut random = StdRng::seed_from_u64(7);
    let all = model[0].clone();
    for _ in 0..60 {
        let moved = all[random.random_range(0..all.len())];
        let to = random.random_range(0..2);
        let rank =
            [None, Some(0), Some(1), Some(random.random_range(0..9)), Some(5_000_000)][random.random_range(0..5)];
        let (before, model_before) = (versions(&app, &board).await, model.clone());
        let shown = move_to(&app, moved, lists[to], rank).await;
        assert_eq!(shown["list"]["id"], lists[to]);
        model.iter_mut().for_each(|stage| stage.retain(|card| *card != moved));
        let place = rank.and_then(|rank| usize::try_from(rank).ok()).unwrap_or(usize::MAX).min(model[to].len());
        model[to].insert(place, moved);
        for (list, stage) in lists.iter().zip(&model) {
            assert_eq!(&cards_in(&app, *list).await, stage, "after {moved} to {rank:?} of {}", lists[to]);
        }
        let after = versions(&app, &board).await;
        let written: Vec<i64> = all.iter().filter(|card| before[card] != after[card]).copied().collect();
        // A move to the card's current place writes no row.
        let expected = if model == model_before { Vec::new() } else { vec![moved] };
        assert_eq!(written, expected, "a move wrote other rows than its card's");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_stage_is_spread_when_there_is_no_room_between_two_cards() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let mut order = Vec::new();
    for number in 0..6 {
        order.push(card(&app, &board, board.todo, &number.to_string()).await);
    }
    let mut digits_max = 0;
    let mut spread = 0;
    let mut before = versions(&app, &board).await;
    // Each round moves the last card below the first, which halves the room there.
    for round in 0..160 {
        if round == 60 {
            // The positions that about two hundred more rounds would lead to.
            assert!((10..=30).contains(&digits_max), "positions have {digits_max} digits");
            let narrow = "update cards set position = 1e-80 * held.nth from (
                    select id, row_number() over (order by position) as nth from cards where list_id = $1) held
                where cards.id = held.id";
            sqlx::query(narrow).bind(board.todo).execute(&app.db).await.expect("narrow");
            before = versions(&app, &board).await;
        }
        let moved = order.pop().expect("a card");
        order.insert(1, moved);
        move_to(&app, moved, board.todo, Some(1)).await;
        let after = versions(&app, &board).await;
        spread += usize::from(before.iter().filter(|(card, version)| after[*card] != **version).count() > 1);
        before = after;
        let digits: i32 = sqlx::query_scalar("select max(scale(position)) from cards where list_id = $1")
            .bind(board.todo)
            .fetch_one(&app.db)
            .await
            .expect("digits");
        digits_max = digits_max.max(digits);
        if round % 20 == 0 || spread > 0 && round % 7 == 0 {
            assert_eq!(cards_in(&app, board.todo).await, order, "in round {round}");
        }
    }
    assert_eq!(cards_in(&app, board.todo).await, order);
    assert!((50..=100).contains(&digits_max), "positions have {digits_max} digits");
    assert!((1..=2).contains(&spread), "the stage was spread {spread} times");
    app.stop().await;
}

#[actix_web::test]
async fn more_cards_than_are_spread_at_once_keep_their_order() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    // Three hundred cards with almost no room between any two, as if all had been moved to one place.
    let crowd = "insert into cards (company_id, board_id, list_id, position, name, creation_source)
        select $1, $2, $3, case k when 0 then 0 else 1e-100 * k end, 'Card ' || k, 'api' from generate_series(0, 300) k";
    sqlx::query(crowd).bind(app.company.id).bind(board.id).bind(board.todo).execute(&app.db).await.expect("cards");
    let mut order = cards_in(&app, board.todo).await;
    assert_eq!(order.len(), 301);
    for rank in [1, 150, 299] {
        let new = card(&app, &board, board.doing, "New").await;
        move_to(&app, new, board.todo, Some(rank)).await;
        order.insert(usize::try_from(rank).expect("few"), new);
        assert_eq!(cards_in(&app, board.todo).await, order, "at {rank}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn concurrent_moves_never_give_two_cards_the_same_position() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let mut all = Vec::new();
    for number in 0..12 {
        all.push(card(&app, &board, board.todo, &number.to_string()).await);
    }
    for rank in [Some(0), Some(3), None] {
        // Only so many at once that none waits for a connection: each card is moved, and no requests deadlock.
        for chunk in all.chunks(changes_at_once()) {
            let moves = chunk.iter().map(async |card| {
                let body = json!({"crmBoardListId": board.doing, "position": rank});
                app.api.post(&format!("{CARDS}/{card}/move"), body).await.data(200).clone()
            });
            futures_util::future::join_all(moves).await;
        }
        let mut there = cards_in(&app, board.doing).await;
        let places: i64 = sqlx::query_scalar("select count(distinct position) from cards where list_id = $1")
            .bind(board.doing)
            .fetch_one(&app.db)
            .await
            .expect("a count");
        assert_eq!(places, 12);
        there.sort_unstable();
        assert_eq!(there, all);
    }
    app.stop().await;
}
