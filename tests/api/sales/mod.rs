//! Sales: what is sold, and the boards it is sold on.

mod boards;
mod cards;
mod labels;
mod product_categories;
mod products;
mod show;
mod stages;

use hotline_persistence::tables::boards::Stage;
use hotline_persistence::{BoardId, BoardListId, table};
use serde_json::json;

use crate::plain::created;
use crate::support::{Api, TestApp};

const BOARDS: &str = "/crm/boards";

/// Creates a board, with its three default stages; returns its id.
async fn board(api: &Api, name: &str) -> i64 {
    created(api, BOARDS, json!({"name": name})).await
}

/// The stages of a board in their order.
async fn stages(app: &TestApp, board: i64) -> Vec<Stage> {
    let board = BoardId::new(board);
    let found: Option<i64> = sqlx::query_scalar("select company_id from boards where id = $1")
        .bind(board)
        .fetch_optional(&app.db)
        .await
        .expect("a board");
    let company = found.expect("the board is there").into();
    table::all_of(&app.db, company, board).await.expect("stages")
}

/// Puts a card into a stage, below the others.
async fn card_in(app: &TestApp, board: i64, stage: BoardListId) {
    sqlx::query(
        "insert into cards (company_id, board_id, list_id, position, name, creation_source)
         select $1, $2, $3, coalesce(max(position), 0) + 1, 'Card', 'api' from cards
         where company_id = $1 and list_id = $3",
    )
    .bind(app.company.id)
    .bind(board)
    .bind(stage)
    .execute(&app.db)
    .await
    .expect("a card");
}
