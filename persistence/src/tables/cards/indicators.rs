//! The indicators of a board, computed on request by index-only scans. Amounts are summed in ten-thousandths, because
//! PostgreSQL sums `bigint` several times as fast as `numeric`.

use sqlx::FromRow;
use sqlx::types::Json;

use super::{BoardId, BoardListId};
use crate::error::with_timeout;
use crate::table::{Named, Span};
use crate::{Amount, CompanyId, Database, Period, Result};

/// Number and value of cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub cards: i64,
    pub value: Amount,
}

/// The indicators of a board.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Indicators {
    /// Open cards.
    pub open: Sum,
    /// Cards won in the requested span.
    pub won: Sum,
    /// Cards lost in the requested span.
    pub lost: Sum,
    /// Value of the cards won since the month began.
    pub month: Amount,
    /// Value of the cards won since the year began.
    pub year: Amount,
    /// Open cards per stage; stages without any are missing.
    pub lists: Vec<(BoardListId, Sum)>,
}

/// The goals and stages of a board, which are returned with its indicators.
#[derive(Clone, Debug, FromRow)]
pub struct BoardGoals {
    pub monthly_goal: Option<Amount>,
    pub yearly_goal: Option<Amount>,
    /// Its stages in order.
    pub lists: Json<Vec<Named<BoardListId>>>,
}

/// The goals and stages of a board; `None` if the company does not have it.
pub async fn goals(db: impl Database<'_>, company: CompanyId, board: BoardId) -> Result<Option<BoardGoals>> {
    let query = sqlx::query_as(
        "select monthly_goal, yearly_goal,
             coalesce((select jsonb_agg(jsonb_build_object('id', l.id, 'name', l.label) order by l.position, l.id)
                 from board_lists l where l.company_id = b.company_id and l.board_id = b.id), '[]') as lists
         from boards b where b.company_id = $1 and b.id = $2",
    );
    with_timeout(query.bind(company).bind(board).fetch_optional(db)).await
}

#[derive(FromRow)]
struct SumRow {
    kind: String,
    list_id: Option<BoardListId>,
    cards: i64,
    value: Amount,
}

/// Computes the indicators of a board: `span` filters won and lost cards, `month` and `year` are the company's current
/// ones.
pub async fn indicators(
    db: impl Database<'_>,
    company: CompanyId,
    board: BoardId,
    span: Span,
    month: Period,
    year: Period,
) -> Result<Indicators> {
    let query = sqlx::query_as(
        // Without a span, the won and lost sums are added up from those of the stages, and the subqueries `… in span`
        // read no card.
        "with sums (kind, list_id, cards, value) as (
             select case when won then 'won' when lost then 'lost' else 'open' end, list_id, count(*),
                 sum(products_total_e4)
             from cards where company_id = $1 and board_id = $2 group by list_id, won, lost
             union all
             select 'won in span', null, count(*), sum(products_total_e4) from cards
             where company_id = $1 and board_id = $2 and won_at is not null
                 and ($3::timestamptz is not null or $4::timestamptz is not null)
                 and won_at >= coalesce($3, '-infinity') and won_at <= coalesce($4, 'infinity')
             union all
             select 'lost in span', null, count(*), sum(products_total_e4) from cards
             where company_id = $1 and board_id = $2 and lost_at is not null and ($3 is not null or $4 is not null)
                 and lost_at >= coalesce($3, '-infinity') and lost_at <= coalesce($4, 'infinity')
             union all
             select 'month', null, count(*), sum(products_total_e4) from cards
             where company_id = $1 and board_id = $2 and won_at >= $5 and won_at < $6
             union all
             select 'year', null, count(*), sum(products_total_e4) from cards
             where company_id = $1 and board_id = $2 and won_at >= $7 and won_at < $8)
         select kind, list_id, cards, coalesce(value, 0) * 0.0001 as value from sums",
    );
    let query = query.bind(company).bind(board).bind(span.0).bind(span.1);
    let query = query.bind(month.from).bind(month.to).bind(year.from).bind(year.to);
    let rows: Vec<SumRow> = with_timeout(query.fetch_all(db.heavy())).await?;
    Ok(Indicators::of(rows, span.0.is_some() || span.1.is_some()))
}

impl Indicators {
    fn of(rows: Vec<SumRow>, has_span: bool) -> Self {
        let mut indicators = Self::default();
        for SumRow { kind, list_id, cards, value } in rows {
            let sum = Sum { cards, value };
            match kind.as_str() {
                "open" => indicators.open = indicators.open.plus(sum),
                "won" if !has_span => indicators.won = indicators.won.plus(sum),
                "lost" if !has_span => indicators.lost = indicators.lost.plus(sum),
                "won in span" if has_span => indicators.won = sum,
                "lost in span" if has_span => indicators.lost = sum,
                "month" => indicators.month = value,
                "year" => indicators.year = value,
                _ => {}
            }
            // Open cards are one row per stage.
            if let ("open", Some(list)) = (kind.as_str(), list_id) {
                indicators.lists.push((list, sum));
            }
        }
        indicators
    }
}

impl Sum {
    fn plus(self, other: Self) -> Self {
        Self { cards: self.cards + other.cards, value: self.value.saturating_add(other.value) }
    }
}
