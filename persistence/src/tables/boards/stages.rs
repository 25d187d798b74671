//! Stages of boards, which the API calls lists. Plain: changed by transactions, not by actors.
//!
//! At most one stage of a board receives won cards: the index `board_lists_one_done` enforces that for concurrent
//! writers.

use std::collections::HashMap;

use serde::Serialize;
use sqlx::{FromRow, PgConnection, PgExecutor};
use utoipa::ToSchema;

use crate::error::{HolderQuery, TakenValue, with_timeout};
use crate::table::{self, COUNTED_MAX, Columns, Ordered, Stamps, Table};
use crate::{BoardId, BoardListId, CompanyId, Database, Error, Result, UserId};

/// A stage of a board.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    pub id: BoardListId,
    /// The name.
    #[schema(example = "In progress")]
    pub label: String,
    #[schema(example = 2)]
    pub position: i32,
    /// Whether the stage is for won cards; at most one stage of a board.
    #[schema(example = false)]
    pub done_list: bool,
    /// The board.
    #[serde(rename = "crmBoardId")]
    pub board_id: BoardId,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for Stage {
    const NAME: &'static str = "board_lists";
    const NOUN: &'static str = "stage";
    const ORDER: &'static [&'static str] = &["position", "id"];
    type Id = BoardListId;
}

impl Ordered for Stage {
    const PARENT: &'static str = "board_id";
    type Parent = BoardId;
}

/// Maximum stages of a board, limited because a board is read as a whole, with cards of each stage.
pub const STAGES_MAX: usize = 50;

/// A stage of a new board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewStage {
    /// Its label.
    pub label: String,
    /// Its position; by default after the preceding ones.
    pub position: Option<i32>,
    /// Whether it receives won cards.
    pub is_done: bool,
}

/// Creates the stages of a new board.
pub(super) async fn insert_all(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    board: BoardId,
    stages: &[NewStage],
) -> Result<()> {
    let mut highest = 0;
    let positions = stages.iter().map(|stage| {
        let position = stage.position.unwrap_or(highest + 1);
        highest = highest.max(position);
        position
    });
    let positions: Vec<i32> = positions.collect();
    with_timeout(
        sqlx::query(
            "insert into board_lists (company_id, board_id, label, position, done_list)
             select $1, $2, label, position, done_list
             from unnest($3::text[], $4::integer[], $5::boolean[]) with ordinality
                 as stage (label, position, done_list, number) order by number",
        )
        .bind(company)
        .bind(board)
        .bind(stages.iter().map(|stage| stage.label.as_str()).collect::<Vec<_>>())
        .bind(positions)
        .bind(stages.iter().map(|stage| stage.is_done).collect::<Vec<_>>())
        .execute(db),
    )
    .await?;
    Ok(())
}

/// Adds a stage to a board, at the end unless a position is given. `None` when the board already has [`STAGES_MAX`].
///
/// # Errors
/// [`Error::NotFound`] when the board does not exist; [`Error::Taken`] when another stage receives won cards.
pub async fn insert(
    db: &mut PgConnection,
    company: CompanyId,
    board: BoardId,
    mut columns: Columns,
) -> Result<Option<Stage>> {
    table::lock_order::<Stage>(db, company, board).await?;
    let count: i64 = with_timeout(
        sqlx::query_scalar("select count(*) from board_lists where company_id = $1 and board_id = $2")
            .bind(company)
            .bind(board)
            .fetch_one(&mut *db),
    )
    .await?;
    if usize::try_from(count).is_ok_and(|count| count >= STAGES_MAX) {
        return Ok(None);
    }
    if !columns.has("position") {
        columns.set("position", table::next_position::<Stage>(db, company, board).await?);
    }
    columns.set("boardId", board);
    table::insert(db, company, &columns).await.map(Some).map_err(map_second_won_stage(company, board))
}

/// Updates a stage of a board.
///
/// # Errors
/// [`Error::NotFound`] when the board does not have the stage; [`Error::Taken`] when another stage receives won cards.
pub async fn update(
    db: &mut PgConnection,
    company: CompanyId,
    board: BoardId,
    id: BoardListId,
    columns: &Columns,
) -> Result<Stage> {
    check_board_of(&mut *db, company, board, id).await?;
    table::update(db, company, id, columns).await.map_err(map_second_won_stage(company, board))
}

/// Number of won cards in a stage, at most [`COUNTED_MAX`]; with a user, only cards assigned to them. If this
/// transaction has changed the stage, its row lock keeps concurrent transactions from adding won cards.
pub async fn count_won_cards(
    db: &mut PgConnection,
    company: CompanyId,
    stage: BoardListId,
    assigned_to: Option<UserId>,
) -> Result<i64> {
    let count = "select count(*) from (select from cards where company_id = $1 and list_id = $2 and won
        and ($4::bigint is null or assigned_user_id = $4) limit $3) counted";
    let count = sqlx::query_scalar(count).bind(company).bind(stage).bind(COUNTED_MAX).bind(assigned_to);
    with_timeout(count.fetch_one(db)).await
}

/// Number of cards per stage of a board, by an index-only scan; empty stages are left out. With a user, only cards
/// assigned to them.
pub async fn count_cards(
    db: impl Database<'_>,
    company: CompanyId,
    board: BoardId,
    assigned_to: Option<UserId>,
) -> Result<HashMap<BoardListId, i64>> {
    let count = match assigned_to {
        None => "select list_id, count(*) from cards where company_id = $1 and board_id = $2 group by list_id",
        Some(_) => {
            "select list_id, count(*) from cards where company_id = $1 and board_id = $2 and assigned_user_id = $3
             group by list_id"
        }
    };
    let count = sqlx::query_as(count).bind(company).bind(board);
    let count = if assigned_to.is_some() { count.bind(assigned_to) } else { count };
    let counts: Vec<(BoardListId, i64)> = with_timeout(count.fetch_all(db)).await?;
    Ok(counts.into_iter().collect())
}

/// Deletes a stage of a board.
///
/// # Errors
/// [`Error::NotFound`] when the board does not have the stage; [`Error::InUse`] when it has cards.
pub async fn remove(db: impl Database<'_>, company: CompanyId, board: BoardId, id: BoardListId) -> Result<()> {
    check_board_of(db, company, board, id).await?;
    table::remove::<Stage>(db, company, id).await
}

/// Checks that a stage belongs to a board. A stage never moves to another board.
async fn check_board_of(db: impl PgExecutor<'_>, company: CompanyId, board: BoardId, id: BoardListId) -> Result<()> {
    let stage: Option<Stage> = table::find(db, company, id).await?;
    stage.filter(|stage| stage.board_id == board).map(|_| ()).ok_or(Error::NotFound(Stage::NOUN))
}

/// Maps the constraint violation that a board already has a stage for won cards.
fn map_second_won_stage(company: CompanyId, board: BoardId) -> impl Fn(Error) -> Error {
    move |error| {
        let statement = "select id from board_lists where company_id = $1 and board_id = $2::bigint and done_list";
        let holder = HolderQuery { statement: statement.to_owned(), company, value: board.to_string() };
        let taken = TakenValue { field: "doneList", holder: Some(holder) };
        error.map_constraint([("board_lists_one_done", Error::Taken(taken))])
    }
}
