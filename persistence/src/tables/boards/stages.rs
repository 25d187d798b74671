//! Stages of boards, which the API calls lists. Plain.
//!
//! One stage of a board at most is where won cards go: `board_lists_one_done` says so to whoever writes at the same time.

use std::collections::HashMap;

use serde::Serialize;
use sqlx::{FromRow, PgConnection, PgExecutor};
use utoipa::ToSchema;

use crate::error::{Holder, Taken, with_timeout};
use crate::table::{self, COUNTED_MAX, Columns, Ordered, Stamps, Table};
use crate::{BoardId, BoardListId, CompanyId, Database, Error, Result, UserId};

/// A stage of a board, with its place from left to right.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Stage {
    pub id: BoardListId,
    /// What it is called.
    #[schema(example = "In progress")]
    pub label: String,
    #[schema(example = 2)]
    pub position: i32,
    /// Whether won cards go here; one stage of a board at most.
    #[schema(example = false)]
    pub done_list: bool,
    /// The board it is of.
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

/// Stages of a board: it is read whole, with cards of each, and nobody sees more of them side by side.
pub const STAGES_MAX: usize = 50;

/// A stage that a board is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewStage {
    /// What it is called.
    pub label: String,
    /// Its place; behind those before it when it has none of its own.
    pub position: Option<i32>,
    /// Whether won cards go there.
    pub is_done: bool,
}

/// Creates the stages of a new board.
///
/// # Errors
/// When the database cannot answer.
pub(super) async fn insert_all(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    board: BoardId,
    stages: &[NewStage],
) -> Result<()> {
    let mut last = 0;
    let places = stages.iter().map(|stage| {
        let place = stage.position.unwrap_or(last + 1);
        last = last.max(place);
        place
    });
    let places: Vec<i32> = places.collect();
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
        .bind(places)
        .bind(stages.iter().map(|stage| stage.is_done).collect::<Vec<_>>())
        .execute(db),
    )
    .await?;
    Ok(())
}

/// Adds a stage to a board, at the end unless it has a position. None when the board has [`STAGES_MAX`] already.
///
/// # Errors
/// [`Error::NotFound`] when there is no such board; [`Error::Taken`] when another stage of it is where won cards go.
pub async fn insert(
    db: &mut PgConnection,
    company: CompanyId,
    board: BoardId,
    mut columns: Columns,
) -> Result<Option<Stage>> {
    table::take_turn::<Stage>(db, company, board).await?;
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
    table::insert(db, company, &columns).await.map(Some).map_err(map_done(company, board))
}

/// Changes a stage of a board.
///
/// # Errors
/// [`Error::NotFound`] when the board has no such stage; [`Error::Taken`] when another one is where won cards go.
pub async fn update(
    db: &mut PgConnection,
    company: CompanyId,
    board: BoardId,
    id: BoardListId,
    columns: &Columns,
) -> Result<Stage> {
    check(&mut *db, company, board, id).await?;
    table::update(db, company, id, columns).await.map_err(map_done(company, board))
}

/// How many won cards a stage has, at most [`COUNTED_MAX`]. Into one that this transaction has changed no more are won.
///
/// # Errors
/// When the database cannot answer.
pub async fn won_cards(db: &mut PgConnection, company: CompanyId, stage: BoardListId) -> Result<i64> {
    let count =
        "select count(*) from (select from cards where company_id = $1 and list_id = $2 and won limit $3) counted";
    with_timeout(sqlx::query_scalar(count).bind(company).bind(stage).bind(COUNTED_MAX).fetch_one(db)).await
}

/// How many cards each stage of a board has, counted in an index alone; stages without any are missing. Of a user only
/// those that are assigned to them.
///
/// # Errors
/// When the database cannot answer.
pub async fn counts(
    db: impl Database<'_>,
    company: CompanyId,
    board: BoardId,
    of: Option<UserId>,
) -> Result<HashMap<BoardListId, i64>> {
    let count = match of {
        None => "select list_id, count(*) from cards where company_id = $1 and board_id = $2 group by list_id",
        Some(_) => {
            "select list_id, count(*) from cards where company_id = $1 and board_id = $2 and assigned_user_id = $3
             group by list_id"
        }
    };
    let count = sqlx::query_as(count).bind(company).bind(board);
    let count = if of.is_some() { count.bind(of) } else { count };
    let counted: Vec<(BoardListId, i64)> = with_timeout(count.fetch_all(db)).await?;
    Ok(counted.into_iter().collect())
}

/// Removes a stage of a board.
///
/// # Errors
/// [`Error::NotFound`] when the board has no such stage; [`Error::InUse`] when it has cards.
pub async fn remove(db: impl Database<'_>, company: CompanyId, board: BoardId, id: BoardListId) -> Result<()> {
    check(db, company, board, id).await?;
    table::remove::<Stage>(db, company, id).await
}

/// Sees that a board has a stage. It never goes to another one.
async fn check(db: impl PgExecutor<'_>, company: CompanyId, board: BoardId, id: BoardListId) -> Result<()> {
    let stage: Option<Stage> = table::find(db, company, id).await?;
    stage.filter(|stage| stage.board_id == board).map(|_| ()).ok_or(Error::NotFound(Stage::NOUN))
}

/// What it means that a board has a stage for won cards already.
fn map_done(company: CompanyId, board: BoardId) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::Database(refused) => {
            let statement = "select id from board_lists where company_id = $1 and board_id = $2::bigint and done_list";
            let holder = Holder { statement: statement.to_owned(), company, value: board.to_string() };
            let taken = Taken { field: "doneList", holder: Some(holder) };
            Error::of_constraint(refused, [("board_lists_one_done", Error::Taken(taken))])
        }
        error => error,
    }
}
