//! What a board has come to, in the company's months and years.

use actix_web::web::Data;
use chrono::{DateTime, Datelike, LocalResult, NaiveDate, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use hotline_actors::clock;
use hotline_persistence::Amount;
use hotline_persistence::tables::cards::{self, BoardId, BoardListId, Stretch};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::web::params::{Params, Span};
use crate::web::{ApiError, ApiResult, Caller, Filter, Json, PathId, QueryParams};

/// Cards, and what their products come to.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[allow(missing_docs)]
pub struct CardSum {
    #[schema(example = 3)]
    pub cards: i64,
    /// The sum of their `productsTotal`.
    pub value: Amount,
}

/// A goal, and how far it is reached.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[allow(missing_docs)]
pub struct GoalProgress {
    /// What the board is to sell in that time.
    pub goal: Option<Amount>,
    /// The value of the cards that were won in it.
    pub won: Amount,
    /// `won` as a part of `goal`, to four decimals; none without a goal.
    pub progress: Option<Amount>,
}

/// What a stage holds.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[allow(missing_docs)]
pub struct StageSum {
    pub id: BoardListId,
    #[schema(example = "To do")]
    pub label: String,
    /// All cards in it, also won and lost ones.
    #[schema(example = 3)]
    pub cards: i64,
    /// The sum of their `productsTotal`.
    pub value: Amount,
}

/// What a board has come to.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct BoardIndicators {
    pub board_id: BoardId,
    /// Cards that are open now.
    pub open: CardSum,
    /// Cards that were won from `from` to `to`.
    pub won: CardSum,
    /// Cards that were lost from `from` to `to`.
    pub lost: CardSum,
    /// Won cards as a part of won and lost ones, to four decimals; none when there are none.
    pub conversion_rate: Option<Amount>,
    /// What a won card comes to on average, to four decimals; none when there are none.
    pub average_value: Option<Amount>,
    /// The current month, as the company's clocks have it.
    pub monthly: GoalProgress,
    /// The current year, as the company's clocks have it.
    pub yearly: GoalProgress,
    pub lists: Vec<StageSum>,
}

/// Filters: `from` and `to` narrow what was won and lost.
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
    let (company, db) = (caller.company, app.db(caller.company));
    let zone = caller.organization.company.time_zone.parse().unwrap_or(Tz::UTC);
    let (month, year) = (month_of(clock::now(), zone), year_of(clock::now(), zone));
    let board = cards::goals(db, company, id.0).await?.ok_or_else(ApiError::not_found)?;
    let counted = cards::indicators(db, company, id.0, query.0.0, month, year).await?;
    let ended = counted.won.cards + counted.lost.cards;
    let lists = board.lists.0.into_iter().map(|list| {
        let held = counted.lists.iter().find(|(id, _)| *id == list.id).map(|(_, sum)| *sum).unwrap_or_default();
        StageSum { id: list.id, label: list.name, cards: held.cards, value: held.value }
    });
    Ok(Json::of(BoardIndicators {
        board_id: id.0,
        open: counted.open.into(),
        won: counted.won.into(),
        lost: counted.lost.into(),
        conversion_rate: Amount::of(counted.won.cards).part_of(Amount::of(ended)),
        average_value: counted.won.value.part_of(Amount::of(counted.won.cards)),
        monthly: GoalProgress::of(board.monthly_goal, counted.month),
        yearly: GoalProgress::of(board.yearly_goal, counted.year),
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
        Self { goal, won, progress: goal.and_then(|goal| won.part_of(goal)) }
    }
}

/// The month that a time is in, as a zone's clocks have it.
pub fn month_of(now: DateTime<Utc>, zone: Tz) -> Stretch {
    let today = now.with_timezone(&zone).date_naive();
    let first = today.with_day(1).unwrap_or(today);
    let next = first.checked_add_months(chrono::Months::new(1)).unwrap_or(first);
    Stretch { from: start_of(first, zone), until: start_of(next, zone) }
}

/// The year that a time is in, as a zone's clocks have it.
pub fn year_of(now: DateTime<Utc>, zone: Tz) -> Stretch {
    let year = now.with_timezone(&zone).year();
    let first = |year| NaiveDate::from_ymd_opt(year, 1, 1).unwrap_or_default();
    Stretch { from: start_of(first(year), zone), until: start_of(first(year + 1), zone) }
}

/// When a day begins. Where clocks are put forward at midnight it begins after the gap; where a day is left out, with
/// the next; where midnight comes twice, with the first.
fn start_of(day: NaiveDate, zone: Tz) -> DateTime<Utc> {
    let midnight = day.and_time(NaiveTime::MIN);
    // Clocks change by whole minutes since about 1970; those of a day that is left out, by a day.
    let minutes = (0..=2 * 24 * 60).map(|minute| midnight + TimeDelta::minutes(minute));
    let begins = minutes.into_iter().find_map(|local| match zone.from_local_datetime(&local) {
        LocalResult::Single(time) => Some(time),
        LocalResult::Ambiguous(first, _) => Some(first),
        LocalResult::None => None,
    });
    begins.map_or_else(|| midnight.and_utc(), |time| time.to_utc())
}

#[cfg(test)]
mod tests {
    use chrono_tz::TZ_VARIANTS;

    use super::*;

    #[test]
    fn a_month_begins_with_its_first_day_wherever_clocks_stand() {
        for (now, zone, month, year) in [
            ("2026-11-22T12:00:00Z", Tz::UTC, "2026-11-01T00:00:00Z", "2026-01-01T00:00:00Z"),
            ("2026-12-01T02:59:59Z", Tz::America__Sao_Paulo, "2026-11-01T03:00:00Z", "2026-01-01T03:00:00Z"),
            ("2026-12-31T18:15:00Z", Tz::Asia__Kathmandu, "2026-12-31T18:15:00Z", "2026-12-31T18:15:00Z"),
            ("2026-07-01T00:00:00Z", Tz::Europe__Lisbon, "2026-06-30T23:00:00Z", "2026-01-01T00:00:00Z"),
            // In summer the clocks of Sao Paulo stood two hours behind.
            ("2018-12-15T00:00:00Z", Tz::America__Sao_Paulo, "2018-12-01T02:00:00Z", "2018-01-01T02:00:00Z"),
            // Clocks went forward at midnight: the month began at one.
            ("2011-04-02T00:00:00Z", Tz::Asia__Amman, "2011-03-31T22:00:00Z", "2010-12-31T22:00:00Z"),
        ] {
            let now = now.parse().expect("a time");
            let begins = |stretch: Stretch| stretch.from.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
            assert_eq!(
                (begins(month_of(now, zone)), begins(year_of(now, zone))),
                (month.to_owned(), year.to_owned()),
                "{zone} {now}"
            );
        }
    }

    #[test]
    fn months_follow_each_other_and_begin_with_a_quarter_of_an_hour_in_every_zone() {
        for zone in TZ_VARIANTS {
            let mut now: DateTime<Utc> = "1980-01-15T12:00:00Z".parse().expect("a time");
            let mut before = month_of(now, zone);
            while now.year() < 2040 {
                let month = month_of(now, zone);
                assert!(month.from <= now && now < month.until, "{zone} {now}");
                assert!(month == before || month.from == before.until, "{zone} {now}");
                let year = year_of(now, zone);
                assert!(year.from <= month.from && month.until <= year.until, "{zone} {now}");
                assert_eq!(month.from.timestamp() % (15 * 60), 0, "{zone} {now}");
                before = month;
                now += TimeDelta::days(9);
            }
        }
    }
}
