//! Sixteen people who make random changes to one board at the same time.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use super::{CARDS, card, cards_in, three_stages};
use crate::steps::id;
use crate::support::TestApp;

/// People who work at the same time.
const CLIENTS: u64 = 16;

/// The minimum number of changes, however slow the machine is.
const CHANGES_MIN: u64 = 100;

/// How many seconds they work; `BOARD_SECONDS` overrides it.
fn seconds() -> u64 {
    std::env::var("BOARD_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(2)
}

#[actix_web::test]
async fn a_board_that_many_change_at_once_neither_loses_nor_duplicates_a_card() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let lists = [board.todo, board.doing, board.done];
    let mut first = BTreeSet::new();
    for number in 0..40 {
        first.insert(card(&app, &board, lists[number % 3], &number.to_string()).await);
    }
    let cards = Mutex::new(first);
    let card_ids = || cards.lock().iter().copied().collect::<Vec<i64>>();
    let (until, done) = (Instant::now() + Duration::from_secs(seconds()), Cell::new(0_u64));
    let clients = (0..CLIENTS).map(async |client| {
        let mut random = StdRng::seed_from_u64(client);
        while Instant::now() < until || done.get() <= CHANGES_MIN {
            let Some(one) = card_ids().choose(&mut random).copied() else { panic!("somebody always adds cards") };
            let path = format!("{CARDS}/{one}");
            let list = lists[random.random_range(0..3)];
            let reply = match random.random_range(0..20) {
                0 => {
                    let body = json!({"boardId": board.id, "crmBoardListId": list, "name": "New"});
                    let made = app.api.post_while_busy(CARDS, &body).await;
                    cards.lock().insert(id(made.data(201)));
                    made
                }
                1 => {
                    let reply = app.api.delete_while_busy(&path).await;
                    cards.lock().remove(&one);
                    reply
                }
                2..=3 => app.api.post_while_busy(&format!("{path}/win"), &json!({})).await,
                4..=5 => app.api.post_while_busy(&format!("{path}/lose"), &json!({"statusReason": "x"})).await,
                6..=8 => app.api.post_while_busy(&format!("{path}/reopen"), &json!({})).await,
                9 => app.api.put_while_busy(&path, &json!({"crmBoardListId": list})).await,
                10 => {
                    let line = json!({"name": "x", "unitPrice": 0.1});
                    app.api.post_while_busy(&format!("{path}/products"), &line).await
                }
                kind => {
                    // Few target positions, so that the room between cards is used up.
                    let position = if kind < 16 { Some(1) } else { None };
                    let body = json!({"crmBoardListId": list, "position": position});
                    app.api.post_while_busy(&format!("{path}/move"), &body).await
                }
            };
            assert!(matches!(reply.status.as_u16(), 200 | 201 | 204 | 404 | 409), "{path}: {}", reply.body);
            done.set(done.get() + 1);
        }
    });
    join_all(clients).await;
    println!("{} changes by {CLIENTS} clients in {} s", done.get(), seconds());

    let db = &app.db;
    let mut all = Vec::new();
    for list in lists {
        let stage = cards_in(&app, list).await;
        let places: i64 = sqlx::query_scalar("select count(distinct position) from cards where list_id = $1")
            .bind(list)
            .fetch_one(db)
            .await
            .expect("a count");
        assert_eq!(usize::try_from(places).ok(), Some(stage.len()), "two cards of a stage have the same position");
        all.extend(stage);
    }
    let count = all.len();
    let all: BTreeSet<i64> = all.into_iter().collect();
    assert_eq!((all.len(), &all), (count, &*cards.lock()), "a card is lost or duplicated");
    let wrong = "select count(*) from cards where board_id = $1 and (won and list_id <> $2 or won and lost
        or products_total <> (select coalesce(sum(total_price), 0) from card_products p where p.card_id = cards.id))";
    let wrong: i64 = sqlx::query_scalar(wrong).bind(board.id).bind(board.done).fetch_one(db).await.expect("a count");
    assert_eq!(wrong, 0, "cards are won outside the stage for won cards, both won and lost, or have a wrong total");
    let shown = app.api.get(&format!("/crm/boards/{}/indicators", board.id)).await;
    let shown = shown.data(200);
    let cards = app.api.all(CARDS).await;
    let count = |holds: &dyn Fn(&serde_json::Value) -> bool| cards.iter().filter(|card| holds(card)).count();
    assert_eq!(shown["won"]["cards"], count(&|card| card["won"] == true));
    assert_eq!(shown["lost"]["cards"], count(&|card| card["lost"] == true));
    assert_eq!(shown["open"]["cards"], count(&|card| card["won"] == false && card["lost"] == false));
    for (index, list) in lists.iter().enumerate() {
        let open = count(&|card| card["list"]["id"] == *list && card["won"] == false && card["lost"] == false);
        assert_eq!(shown["lists"][index]["cards"], open);
    }
    app.stop().await;
}
