//! The figures of a board, compared with a plain recomputation.

use chrono::{DateTime, Datelike, Days, TimeDelta, Utc};
use chrono_tz::Tz;
use hotline::web::request::calendar::Zone;
use hotline_persistence::tables::cards::{self, BoardId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::{Board, card, digits, three_stages};
use crate::plain::created;
use crate::steps::{NOBODY, sql};
use crate::support::TestApp;

/// What the figures count of a card that the test has inserted.
struct InsertedCard {
    list: i64,
    won: Option<DateTime<Utc>>,
    lost: Option<DateTime<Utc>>,
    value: Decimal,
}

/// Times near which an event may be counted in the wrong month or year.
fn edges(zone: Tz, now: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let (month, year) = (Zone(zone).month_of(now), Zone(zone).year_of(now));
    // Clocks change on some night of the year, so every seventh day of it is an edge as well.
    let nights = (0..366).step_by(7).filter_map(|day| year.from.checked_add_days(Days::new(day)));
    [month.from, month.to, year.from, year.to, now].into_iter().chain(nights).collect()
}

/// Inserts three hundred random cards, won or lost near the edges.
async fn fill(app: &TestApp, board: &Board, zone: Tz, now: DateTime<Utc>, seed: u64) -> Vec<InsertedCard> {
    let mut random = StdRng::seed_from_u64(seed);
    let edges = edges(zone, now);
    let mut made = Vec::new();
    for _ in 0..300 {
        let near = edges[random.random_range(0..edges.len())];
        let minutes = [0, 1, 59, 60, 61, 24 * 60][random.random_range(0..6)];
        let at = near + TimeDelta::minutes(if random.random_range(0..2) == 0 { minutes } else { -minutes })
            - TimeDelta::milliseconds(random.random_range(0..2));
        let ended = random.random_range(0..4);
        made.push(InsertedCard {
            list: [board.todo, board.doing, board.done][random.random_range(0..3)],
            won: (ended < 2).then_some(at),
            lost: (ended == 2).then_some(at),
            value: Decimal::new(random.random_range(0..1_000_000_000_000), 4),
        });
    }
    let insert = "insert into cards (company_id, board_id, list_id, position, name, creation_source, won_at, lost_at, products_total)
        select $1, $2, list, $7 + nth, 'Card', 'api', won, lost, value
        from unnest($3::bigint[], $4::timestamptz[], $5::timestamptz[], $6::numeric[]) with ordinality as x (list, won, lost, value, nth)";
    sqlx::query(insert)
        .bind(app.company.id)
        .bind(board.id)
        .bind(made.iter().map(|card| card.list).collect::<Vec<_>>())
        .bind(made.iter().map(|card| card.won).collect::<Vec<_>>())
        .bind(made.iter().map(|card| card.lost).collect::<Vec<_>>())
        .bind(made.iter().map(|card| card.value).collect::<Vec<_>>())
        .bind(i64::try_from(seed).expect("few") * 1_000)
        .execute(&app.db)
        .await
        .expect("cards");
    made
}

/// The number of cards, and their total value.
fn sum<'a>(cards: impl Iterator<Item = &'a InsertedCard>) -> (i64, Decimal) {
    cards.fold((0, Decimal::ZERO), |(count, value), card| (count + 1, value + card.value))
}

const ZONES: [Tz; 3] = [Tz::America__Sao_Paulo, Tz::Asia__Kathmandu, Tz::Europe__Lisbon];

#[actix_web::test]
async fn the_figures_of_a_board_are_those_of_its_cards() {
    let app = TestApp::shared().await;
    let (api, board) = (&app.api, three_stages(&app).await);
    let other = three_stages(&app).await;
    fill(&app, &other, Tz::UTC, Utc::now(), 99).await;
    let path = format!("/crm/boards/{}/indicators", board.id);
    sql(&app, "update boards set monthly_goal = 1000.5, yearly_goal = 1e10 where id = $1", board.id).await;
    let mut made = Vec::new();
    for (round, zone) in ZONES.into_iter().enumerate() {
        let set = "update companies set time_zone = $2 where id = $1";
        sqlx::query(set).bind(app.company.id).bind(zone.name()).execute(&app.db).await.expect("a zone");
        app.refreshed().await;
        made.extend(fill(&app, &board, zone, Utc::now(), round as u64 + 1).await);
        let span = (Utc::now() - TimeDelta::days(40), Utc::now() + TimeDelta::days(1));
        for (query, span) in
            [(String::new(), None), (format!("?from={}&to={}", rfc3339(span.0), rfc3339(span.1)), Some(span))]
        {
            // A month may end while this runs.
            let (reply, now) = loop {
                let before = Utc::now().with_timezone(&zone);
                let reply = api.get(&format!("{path}{query}")).await;
                if before.month() == Utc::now().with_timezone(&zone).month() {
                    break (reply, before);
                }
            };
            let within = |at: Option<DateTime<Utc>>| {
                at.is_some_and(|at| {
                    span.is_none_or(|(from, to)| {
                        (from.timestamp_millis()..=to.timestamp_millis()).contains(&at.timestamp_millis())
                    })
                })
            };
            let (open, won, lost) = (
                sum(made.iter().filter(|card| card.won.is_none() && card.lost.is_none())),
                sum(made.iter().filter(|card| within(card.won))),
                sum(made.iter().filter(|card| within(card.lost))),
            );
            let local = |card: &&InsertedCard| card.won.map(|at| at.with_timezone(&zone));
            let year = made.iter().filter(|card| local(card).is_some_and(|at| at.year() == now.year()));
            let month = made
                .iter()
                .filter(|card| local(card).is_some_and(|at| (at.year(), at.month()) == (now.year(), now.month())));
            let (month, year) = (sum(month).1, sum(year).1);
            let ratio = |part: Decimal, whole: Decimal| {
                (part / whole)
                    .round_dp_with_strategy(4, rust_decimal::RoundingStrategy::MidpointAwayFromZero)
                    .normalize()
                    .to_string()
            };
            let text = String::from_utf8(reply.bytes.clone()).expect("text");
            reply.data(200);
            let goal = |goal: &str, won: Decimal, whole: Decimal| {
                format!(r#"{{"goal":{goal},"won":{},"progress":{}}}"#, won.normalize(), ratio(won, whole))
            };
            let counted =
                |(cards, value): (i64, Decimal)| format!(r#"{{"cards":{cards},"value":{}}}"#, value.normalize());
            let list = |id: i64, label: &str| {
                let is_open = |card: &&InsertedCard| card.won.is_none() && card.lost.is_none();
                let (cards, value) = sum(made.iter().filter(|card| card.list == id).filter(is_open));
                format!(r#"{{"id":{id},"label":"{label}","cards":{cards},"value":{}}}"#, value.normalize())
            };
            let expected = format!(
                r#"{{"data":{{"boardId":{},"open":{},"won":{},"lost":{},"conversionRate":{},"averageValue":{},"monthly":{},"yearly":{},"lists":[{},{},{}]}}}}"#,
                board.id,
                counted(open),
                counted(won),
                counted(lost),
                ratio(won.0.into(), (won.0 + lost.0).into()),
                ratio(won.1, won.0.into()),
                goal("1000.5", month, Decimal::new(10_005, 1)),
                goal("10000000000", year, Decimal::from(10_000_000_000_i64)),
                list(board.todo, "To do"),
                list(board.doing, "In progress"),
                list(board.done, "Done"),
            );
            assert_eq!(text, expected, "{zone} with {query:?}");
        }
    }
    app.stop().await;
}

fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

#[actix_web::test]
async fn wins_count_in_the_right_month_and_year_at_any_time() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let mut random = StdRng::seed_from_u64(3);
    let clear = async || {
        let cards = sqlx::query("delete from cards where company_id = $1").bind(app.company.id);
        cards.execute(&app.db).await.expect("the cards are deleted");
    };
    for zone in ZONES {
        clear().await;
        // Brazil and Portugal have put their clocks forward and back in these years, Nepal never.
        for year in [2018, 2019, 2026] {
            let first: DateTime<Utc> = format!("{year}-01-01T00:00:00Z").parse().expect("a time");
            clear().await;
            let made = fill(&app, &board, zone, first + TimeDelta::days(200), year.try_into().expect("few")).await;
            for _ in 0..20 {
                let now = first + TimeDelta::minutes(random.random_range(0..366 * 24 * 60));
                let (month, in_year) = (Zone(zone).month_of(now), Zone(zone).year_of(now));
                let (db, company) = (&app.db, app.company.id);
                let counted = cards::indicators(db, company, BoardId::new(board.id), (None, None), month, in_year)
                    .await
                    .expect("figures");
                let local_now = now.with_timezone(&zone);
                let won = |same: &dyn Fn(DateTime<Tz>) -> bool| {
                    sum(made.iter().filter(|card| card.won.is_some_and(|at| same(at.with_timezone(&zone))))).1
                };
                let of_month = won(&|at| (at.year(), at.month()) == (local_now.year(), local_now.month()));
                assert_eq!(counted.month.decimal(), of_month, "the month of {local_now}");
                assert_eq!(counted.year.decimal(), won(&|at| at.year() == local_now.year()), "the year of {local_now}");
            }
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn the_figures_of_a_board_without_cards_and_goals_are_zero_or_null() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let path = format!("/crm/boards/{}/indicators", board.id);
    let none = json!({"cards": 0, "value": 0});
    let list = |id: i64, label: &str| json!({"id": id, "label": label, "cards": 0, "value": 0});
    let nothing = json!({
        "boardId": board.id, "open": none, "won": none, "lost": none, "conversionRate": null, "averageValue": null,
        "monthly": {"goal": null, "won": 0, "progress": null}, "yearly": {"goal": null, "won": 0, "progress": null},
        "lists": [list(board.todo, "To do"), list(board.doing, "In progress"), list(board.done, "Done")],
    });
    assert_eq!(app.api.get(&path).await.body, json!({"data": nothing}));
    // A goal of zero has no progress.
    sql(&app, "update boards set monthly_goal = 0, yearly_goal = 0 where id = $1", board.id).await;
    assert_eq!(app.api.get(&path).await.data(200)["monthly"], json!({"goal": 0, "won": 0, "progress": null}));
    let one = card(&app, &board, board.todo, "One").await;
    created(&app.api, &format!("/crm/cards/{one}/products"), json!({"name": "x", "unitPrice": 0.3, "quantity": 3}))
        .await;
    app.api.post(&format!("/crm/cards/{one}/win"), json!({})).await.data(200);
    let shown = app.api.get(&path).await;
    assert_eq!((digits(&shown.bytes, "conversionRate"), digits(&shown.bytes, "averageValue")), ("1", "0.9"));
    assert_eq!(shown.data(200)["monthly"]["won"], 0.9);
    for filter in ["from", "to"] {
        assert_eq!(app.api.get(&format!("{path}?{filter}=soon")).await.invalid_fields(), [filter]);
    }
    let missing: Value = app.api.get(&format!("/crm/boards/{NOBODY}/indicators")).await.body;
    assert_eq!(missing["error"]["code"], "ERR_API_NOT_FOUND");
    app.stop().await;
}
