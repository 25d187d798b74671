//! A single board, with its stages and the first cards of each.

use actix_web::web::Data;
use hotline_persistence::tables::boards::{self, Board, Stage};
use hotline_persistence::tables::cards::{self, FirstCardsLimits};
use hotline_persistence::{BoardId, Database, table};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::cards::Card;
use crate::app::App;
use crate::web::request::params::PerPageMax;
use crate::web::response::reply::PER_PAGE;
use crate::web::{ApiError, ApiResult, Caller, Json, PathId};

/// Maximum number of cards in the response: as many as ten pages of a list.
const CARDS_MAX: i64 = 1000;

/// Maximum number of contacts of all cards in the response: as many as one page of 100 cards with 100 contacts each.
const CONTACTS_MAX: usize = 10_000;

/// A board with its stages and cards.
#[derive(Debug, Serialize, ToSchema)]
pub struct BoardWithStages {
    #[serde(flatten)]
    board: Board,
    /// The stages, from left to right.
    #[serde(rename = "lists")]
    stages: Vec<StageWithCards>,
}

/// A stage of a board with its first cards.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageWithCards {
    #[serde(flatten)]
    stage: Stage,
    /// Number of cards in the stage, including those not returned here.
    #[serde(rename = "countCards")]
    #[schema(example = 1)]
    card_count: i64,
    /// The first cards, from the top. Boards with more than ten stages return fewer per stage, at most 1,000 cards in
    /// total. `GET /crm/boards/{boardId}/cards?crmBoardListId=` returns all of them.
    cards: Vec<Card>,
}

/// `GET /crm/boards/{boardId}`: runs five statements, and one more for each further hundred contacts.
pub async fn show(
    caller: Caller,
    app: Data<App>,
    per_page_max: Data<PerPageMax>,
    id: PathId<BoardId>,
) -> ApiResult<Json<BoardWithStages>> {
    let (company, id) = (caller.company, id.0);
    let db = app.db(company);
    let board: Board = table::find(db, company, id).await?.ok_or_else(ApiError::not_found)?;
    let only_assignee = caller.cards_limited_to();
    let stages: Vec<Stage> = table::all_of(db, company, id).await?;
    let counts = boards::count_cards(db.heavy(), company, id, only_assignee).await?;
    let limits = FirstCardsLimits {
        per_stage: PER_PAGE.min(per_page_max.0),
        per_board: CARDS_MAX,
        contacts: CONTACTS_MAX,
        assigned_to: only_assignee,
    };
    // Heavy: a page per stage is more than any other endpoint reads in one statement.
    let mut first_cards = cards::first_of_stages(db.heavy(), company, id, stages.len(), limits).await?;
    let stages = stages.into_iter().map(|stage| {
        let cards = first_cards.remove(&stage.id).unwrap_or_default();
        let card_count = counts.get(&stage.id).copied().unwrap_or_default();
        StageWithCards { stage, card_count, cards: cards.into_iter().map(Card::from).collect() }
    });
    let stages = stages.collect();
    Ok(Json::of(BoardWithStages { board, stages }))
}
