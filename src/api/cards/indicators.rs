//! The sales figures of a board, by the company's months and years.

use actix_web::web::Data;
use hotline_actors::clock;
use hotline_persistence::Amount;
use hotline_persistence::tables::cards::{self, BoardId, BoardListId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::boards;
use crate::app::App;
use crate::web::request::calendar::Zone;
use crate::web::request::params::QueryParams;
use crate::web::request::params::{Params, Span};
use crate::web::{ApiError, ApiResult, Caller, Filter, Json, PathId};

/// Number of cards, and the total of their products.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct CardSum {
    #[schema(example = 3)]
    pub cards: i64,
    /// The sum of their `productsTotal`.
    pub value: Amount,
}

/// A sales goal and its progress.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct GoalProgress {
    /// The goal.
    pub goal: Option<Amount>,
    /// The value of the cards won.
    pub won: Amount,
    /// `won` divided by `goal`, to four decimals; `null` without a goal.
    pub progress: Option<Amount>,
}

/// The open cards of a stage.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StageSum {
    pub id: BoardListId,
    #[schema(example = "To do")]
    pub label: String,
    /// Open cards in the stage.
    #[schema(example = 3)]
    pub cards: i64,
    /// The sum of their `productsTotal`.
    pub value: Amount,
}

/// The sales indicators of a board.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoardIndicators {
    pub board_id: BoardId,
    /// Open cards.
    pub open: CardSum,
    /// Cards won from `from` to `to`.
    pub won: CardSum,
    /// Cards lost from `from` to `to`.
    pub lost: CardSum,
    /// Won cards divided by won and lost cards, to four decimals; `null` if there are none.
    pub conversion_rate: Option<Amount>,
    /// The average value of a won card, to four decimals; `null` if there are none.
    pub average_value: Option<Amount>,
    /// The current month, in the company's time zone.
    pub monthly: GoalProgress,
    /// The current year, in the company's time zone.
    pub yearly: GoalProgress,
    pub lists: Vec<StageSum>,
}

/// Filters: `from` and `to` limit which won and lost cards are counted.
pub struct Filters(Span);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self((query.filter("from"), query.filter("to")))
    }
}

/// `GET /crm/boards/{boardId}/indicators`.
pub async fn show(
    caller: Caller,
    app: Data<App>,
    id: PathId<BoardId>,
    query: QueryParams<Filters>,
) -> ApiResult<Json<BoardIndicators>> {
    let (company, db, now) = (caller.company, app.db(caller.company), clock::now());
    boards::visible_boards(&caller, &app, Some(id.0)).await?;
    let time_zone = Zone::of_company(&caller.organization.company.time_zone);
    let (month, year) = (time_zone.month_of(now), time_zone.year_of(now));
    let board = cards::goals(db, company, id.0).await?.ok_or_else(ApiError::not_found)?;
    let indicators = cards::indicators(db, company, id.0, query.0.0, month, year).await?;
    let closed_cards = indicators.won.cards + indicators.lost.cards;
    let lists = board.lists.0.into_iter().map(|list| {
        let sum = indicators.lists.iter().find(|(id, _)| *id == list.id).map(|(_, sum)| *sum).unwrap_or_default();
        StageSum { id: list.id, label: list.name, cards: sum.cards, value: sum.value }
    });
    Ok(Json::of(BoardIndicators {
        board_id: id.0,
        open: indicators.open.into(),
        won: indicators.won.into(),
        lost: indicators.lost.into(),
        conversion_rate: Amount::of(indicators.won.cards).fraction_of(Amount::of(closed_cards)),
        average_value: indicators.won.value.fraction_of(Amount::of(indicators.won.cards)),
        monthly: GoalProgress::of(board.monthly_goal, indicators.month),
        yearly: GoalProgress::of(board.yearly_goal, indicators.year),
        lists: lists.collect(),
    }))
}

impl From<cards::Sum> for CardSum {
    fn from(sum: cards::Sum) -> Self {
        Self { cards: sum.cards, value: sum.value }
    }
}

impl GoalProgress {
    fn of(goal: Option<Amount>, won: Amount) -> Self {
        Self { goal, won, progress: goal.and_then(|goal| won.fraction_of(goal)) }
    }
}
