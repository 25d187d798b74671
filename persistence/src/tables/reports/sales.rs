//! Sales of a period and open cards: read from the cards, whose amounts are exact.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, FromRow};

use crate::error::with_timeout;
use crate::tables::text_enum;
use crate::{Amount, BoardId, CompanyId, Database, Period, Result};

text_enum! {
    /// What sales are grouped by.
    SalesGrouping { Day = "day", User = "user", Origin = "origin", Product = "product" }
}

/// The outcome of cards that were won or lost in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub struct SalesFigures {
    pub won_cards: i64,
    pub won_value: Amount,
    pub lost_cards: i64,
    pub lost_value: Amount,
}

#[derive(FromRow)]
struct Row<K> {
    key: K,
    #[sqlx(flatten)]
    figures: SalesFigures,
}

/// The cards of the boards `$4`, or all, that were won or lost from `$2` on and before `$3`. Uses only columns of the
/// indexes `cards_won_then` and `cards_lost_then`, so that PostgreSQL reads only the indexes.
const CLOSED_CARDS: &str = "(
    select id, assigned_user_id, origin_id, won_at as at, true as is_won, products_total_e4 as value from cards
    where company_id = $1 and won_at >= $2 and won_at < $3 and ($4::bigint[] is null or board_id = any($4))
    union all
    select id, assigned_user_id, origin_id, lost_at, false, products_total_e4 from cards
    where company_id = $1 and lost_at >= $2 and lost_at < $3 and ($4::bigint[] is null or board_id = any($4))) c";

/// The user of a closed card, or its former user, who has since been deleted. The indexes do not contain former users:
/// to find one, a card is read, but only if it has no user and the company has deleted users.
const USER: &str = "coalesce(c.assigned_user_id,
    case when exists (select from report_labels where company_id = $1 and dimension = 'user') then
        (select f.former_user_id from cards f where f.company_id = $1 and f.id = c.id) end)";

/// The names of users, including removed ones.
const USERS: &str = "(
    select company_id, id, name from users where company_id = $1
    union all
    select company_id, key, label from report_labels where company_id = $1 and dimension = 'user')";

/// Amounts of cards are stored in ten-thousandths.
const VALUE: &str = "c.value * 0.0001";

fn sum_columns(value: &str) -> String {
    format!(
        "count(distinct c.id) filter (where is_won) as won_cards,
         coalesce(sum({value}) filter (where is_won), 0) as won_value,
         count(distinct c.id) filter (where not is_won) as lost_cards,
         coalesce(sum({value}) filter (where not is_won), 0) as lost_value"
    )
}

/// The key of a record, or null if it was deleted: cards refer to it until its cascade is done.
fn existing_key(key: &str, noun: &str) -> String {
    format!(
        "case when {key} <> all (array(select id from cascades where company_id = $1 and noun = '{noun}')) then {key} end"
    )
}

/// The sales of each day, identified as in [`super::by_day`], of some boards or of all.
pub async fn by_day(
    db: impl Database<'_>,
    company: CompanyId,
    boards: Option<&[BoardId]>,
    period: Period,
    days: &[DateTime<Utc>],
) -> Result<HashMap<usize, SalesFigures>> {
    let statement =
        format!("select width_bucket(at, $5) as key, {} from {CLOSED_CARDS} group by 1", sum_columns(VALUE));
    let rows: Vec<Row<i32>> = with_timeout(
        sqlx::query_as(AssertSqlSafe(statement))
            .bind(company)
            .bind(period.from)
            .bind(period.to)
            .bind(boards)
            .bind(days)
            .fetch_all(db.heavy()),
    )
    .await?;
    let with_index = |row: Row<i32>| Some((usize::try_from(row.key).ok()?.checked_sub(1)?, row.figures));
    Ok(rows.into_iter().filter_map(with_index).collect())
}

/// The sales of one user, origin or product.
#[derive(Clone, Debug, FromRow)]
pub struct SalesGroup {
    /// `None`: cards without a user, origin or product.
    pub key: Option<i64>,
    /// Its name.
    pub name: Option<String>,
    /// The outcome of its cards.
    #[sqlx(flatten)]
    pub figures: SalesFigures,
}

/// The sales of each user, origin or product, in the order of their ids, of some boards or of all; for
/// [`SalesGrouping::Day`] call [`by_day`]. Sales of products are the totals of their lines, and a card with two lines
/// of one product counts once. Removed users keep their sales and name.
pub async fn by_key(
    db: impl Database<'_>,
    company: CompanyId,
    grouping: SalesGrouping,
    boards: Option<&[BoardId]>,
    period: Period,
) -> Result<Vec<SalesGroup>> {
    let (key, value, lines, names) = match grouping {
        SalesGrouping::Product => {
            let lines = " join card_products p on p.company_id = $1 and p.card_id = c.id";
            (existing_key("p.product_id", "product"), "p.total_price", lines, "products")
        }
        SalesGrouping::Origin => (existing_key("c.origin_id", "card_origin"), VALUE, "", "card_origins"),
        SalesGrouping::User | SalesGrouping::Day => (USER.to_owned(), VALUE, "", USERS),
    };
    let statement = format!(
        "select s.*, n.name from (select {key} as key, {} from {CLOSED_CARDS}{lines} group by 1) s
         left join {names} n on n.company_id = $1 and n.id = s.key order by s.key nulls last",
        sum_columns(value)
    );
    with_timeout(
        sqlx::query_as(AssertSqlSafe(statement))
            .bind(company)
            .bind(period.from)
            .bind(period.to)
            .bind(boards)
            .fetch_all(db.heavy()),
    )
    .await
}

/// A board's open cards, and its sales since the beginning of the month.
#[derive(Clone, Debug, FromRow)]
pub struct BoardFigures {
    pub id: BoardId,
    pub name: String,
    pub monthly_goal: Option<Amount>,
    pub open_cards: i64,
    pub open_value: Amount,
    pub won_value: Amount,
}

/// The boards that are not archived, by id, with their sales since `month`.
pub async fn boards(db: impl Database<'_>, company: CompanyId, month: DateTime<Utc>) -> Result<Vec<BoardFigures>> {
    with_timeout(
        sqlx::query_as(
            "select b.id, b.name, b.monthly_goal, o.cards as open_cards, o.value as open_value, w.value as won_value
             from boards b
             cross join lateral (select count(*) as cards, coalesce(sum(products_total_e4), 0) * 0.0001 as value from cards
                 where company_id = $1 and board_id = b.id and not won and not lost) o
             cross join lateral (select coalesce(sum(products_total_e4), 0) * 0.0001 as value from cards
                 where company_id = $1 and board_id = b.id and won_at >= $2) w
             where b.company_id = $1 and not b.archived order by b.id",
        )
        .bind(company)
        .bind(month)
        .fetch_all(db.heavy()),
    )
    .await
}
