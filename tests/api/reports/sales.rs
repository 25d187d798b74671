//! Sales reports and the sales dashboard, compared with a plain recount of the cards.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Datelike, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::recount::Period;
use super::{quarter_hour_of, rows};
use crate::steps::id;
use crate::support::{TestApp, eventually};

/// Cards on the boards.
const CARDS: usize = 60;

fn decimal(value: &Value) -> Decimal {
    value.to_string().parse().unwrap_or_else(|_| panic!("{value} is not an amount"))
}

fn time(value: &Value) -> Option<DateTime<Utc>> {
    value.as_str().and_then(|text| text.parse().ok())
}

/// Cards won and their value, cards lost and theirs.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sums {
    won: HashSet<i64>,
    won_value: Decimal,
    lost: HashSet<i64>,
    lost_value: Decimal,
}

/// The figures of each row of the report, recounted from the cards of one board or all.
fn recount(cards: &[Value], period: Period, board: Option<i64>, group_by: &str) -> BTreeMap<String, Sums> {
    let mut sums: BTreeMap<String, Sums> = BTreeMap::new();
    for card in cards.iter().filter(|card| board.is_none_or(|board| card["boardId"] == board)) {
        for (field, is_won) in [("wonDate", true), ("lostDate", false)] {
            let Some(at) = time(&card[field]).filter(|at| (period.from..period.to).contains(at)) else { continue };
            let key = |value: &Value| value["id"].to_string();
            let lines: Vec<(String, Decimal)> = match group_by {
                "day" => {
                    let day = period.zone.from_utc_datetime(&at.naive_utc()).date_naive();
                    vec![(format!("\"{day}\""), decimal(&card["productsTotal"]))]
                }
                "user" => vec![(key(&card["assignedTo"]), decimal(&card["productsTotal"]))],
                "origin" => vec![(key(&card["origin"]), decimal(&card["productsTotal"]))],
                _ => {
                    let products = card["products"].as_array().expect("products");
                    products.iter().map(|line| (line["productId"].to_string(), decimal(&line["totalPrice"]))).collect()
                }
            };
            for (key, value) in lines {
                let sums = sums.entry(key).or_default();
                if is_won {
                    sums.won.insert(id(card));
                    sums.won_value += value;
                } else {
                    sums.lost.insert(id(card));
                    sums.lost_value += value;
                }
            }
        }
    }
    sums
}

async fn check(app: &TestApp, cards: &[Value], period: Period, board: Option<i64>) {
    let of_board = board.map(|board| format!("&boardId={board}")).unwrap_or_default();
    for group in ["day", "user", "origin", "product"] {
        let shown = rows(app, &format!("/reports/sales?{}{of_board}&groupBy={group}", period.query())).await;
        let mut expected = recount(cards, period, board, group);
        for row in &shown {
            let sums = expected.remove(&row["key"].to_string()).unwrap_or_default();
            let reported = (
                row["wonCards"].as_u64(),
                decimal(&row["wonValue"]),
                row["lostCards"].as_u64(),
                decimal(&row["lostValue"]),
            );
            let recounted =
                (Some(sums.won.len() as u64), sums.won_value, Some(sums.lost.len() as u64), sums.lost_value);
            assert_eq!(reported, recounted, "by {group}: {row}, {period:?}, board {board:?}");
        }
        assert!(expected.is_empty(), "by {group}: {expected:?} is missing, {period:?}");
    }
}

#[actix_web::test]
async fn sales_equal_a_recount_of_the_cards_by_day_user_origin_and_product() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let app = TestApp::shared().await;
    let create = async |path: &str, body: Value| id(app.api.post(path, body).await.data(201));
    let mut boards = Vec::new();
    for name in ["New customers", "Renewals"] {
        boards.push(create("/crm/boards", json!({"name": name, "monthlyGoal": 1000.5})).await);
    }
    let mut origins = vec![Value::Null];
    for name in ["Fair", "Website"] {
        origins.push(json!(create("/crm/origins", json!({"name": name})).await));
    }
    let mut products = Vec::new();
    for (name, price) in [("Seat", "19.99"), ("Set-up", "0.1"), ("Hour", "80.3333")] {
        let price: Value = serde_json::from_str(price).expect("a number");
        products.push(create("/products", json!({"name": name, "price": price})).await);
    }
    let users = [json!(app.company.ana), json!(app.company.ben), Value::Null];
    for number in 0..CARDS {
        let mut lines = Vec::new();
        for _ in 0..random.random_range(0..4) {
            let quantity: Value =
                serde_json::from_str(&format!("{}.{}", random.random_range(0..9), random.random_range(1..9)))
                    .expect("a number");
            lines.push(if random.random_bool(0.8) {
                json!({"productId": products.choose(&mut random), "quantity": quantity})
            } else {
                json!({"name": "Something else", "unitPrice": 5.25, "quantity": quantity})
            });
        }
        let card = json!({
            "boardId": boards.choose(&mut random), "name": format!("Card {number}"), "products": lines,
            "assignedToUserId": users.choose(&mut random), "originId": origins.choose(&mut random),
        });
        let card = create("/crm/cards", card).await;
        let end = match random.random_range(0..3) {
            0 => continue,
            1 => app.api.post(&format!("/crm/cards/{card}/win"), json!({})).await,
            _ => app.api.post(&format!("/crm/cards/{card}/lose"), json!({"statusReason": "too dear"})).await,
        };
        end.data(200);
        let back = TimeDelta::milliseconds(random.random_range(0..TimeDelta::days(40).num_milliseconds()));
        let moved = sqlx::query("update cards set won_at = won_at - $2, lost_at = lost_at - $2 where id = $1");
        moved.bind(card).bind(back).execute(&app.db).await.expect("moved back");
    }
    let cards = app.api.all("/crm/cards").await;
    let to = quarter_hour_of(Utc::now()) + TimeDelta::minutes(15);
    for zone in [Tz::America__Sao_Paulo, Tz::Asia__Kathmandu, Tz::Europe__Lisbon] {
        check(&app, &cards, Period { from: to - TimeDelta::days(41), to, zone }, None).await;
        for board in &boards {
            let from = quarter_hour_of(to - TimeDelta::minutes(random.random_range(60..60 * 24 * 40)));
            check(&app, &cards, Period { from, to: from + TimeDelta::days(7), zone }, Some(*board)).await;
        }
    }

    let origin = origins[1].clone();
    app.api.delete(&format!("/products/{}", products[0])).await;
    let shown = rows(&app, "/reports/sales?groupBy=product").await;
    assert!(shown.iter().all(|row| row["key"] != products[0]), "a deleted product has a row: {shown:?}");
    let shown = rows(&app, "/reports/sales?groupBy=origin").await;
    assert!(shown.iter().filter(|row| row["key"] == origin).all(|row| row["label"] == "Fair"), "{shown:?}");

    check_dashboard(&app, &boards, &cards).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_removed_user_keeps_their_sales_and_name() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let create = async |path: &str, body: Value| id(api.post(path, body).await.data(201));
    let board = create("/crm/boards", json!({"name": "Sales"})).await;
    let ben = app.company.ben.0;
    let of_ben = async || {
        let shown = rows(&app, "/reports/sales?groupBy=user").await;
        let row = shown.into_iter().find(|row| row["key"] == ben);
        row.map(|row| (row["label"].clone(), row["wonCards"].clone(), row["lostCards"].clone()))
    };
    let mut cards = Vec::new();
    for _ in 0..4 {
        let card = json!({"boardId": board, "name": "Deal", "assignedToUserId": ben});
        cards.push(create("/crm/cards", card).await);
    }
    for card in &cards[..2] {
        api.post(&format!("/crm/cards/{card}/win"), json!({})).await.data(200);
    }
    api.post(&format!("/crm/cards/{}/lose", cards[2]), json!({"statusReason": "too dear"})).await.data(200);
    let name = api.get(&format!("/users/{ben}")).await.data(200)["name"].clone();
    let before = Some((name.clone(), json!(2), json!(1)));
    assert_eq!(of_ben().await, before);
    assert_eq!(api.delete(&format!("/users/{ben}")).await.status, 204);
    // The same holds at once, and once no card refers to the user any more.
    assert_eq!(of_ben().await, before);
    eventually("no card refers to the user", || async {
        let referring = "select count(*) from cards where company_id = $1 and assigned_user_id = $2";
        let referring = sqlx::query_scalar(referring).bind(app.company.id).bind(ben);
        let count: i64 = referring.fetch_one(&app.db).await.expect("a count");
        count == 0
    })
    .await;
    assert_eq!(of_ben().await, before);

    // A card that is assigned to no one when won is not theirs, nor is one that is assigned to another user later.
    api.post(&format!("/crm/cards/{}/win", cards[3]), json!({})).await.data(200);
    let path = format!("/crm/cards/{}", cards[0]);
    for user in [json!(app.company.ana), Value::Null] {
        api.put(&path, json!({"assignedToUserId": user})).await.data(200);
        assert_eq!(of_ben().await, Some((name.clone(), json!(1), json!(1))));
    }
    for verb in ["reopen", "win"] {
        api.post(&format!("/crm/cards/{}/{verb}", cards[1]), json!({})).await.data(200);
        assert_eq!(of_ben().await, Some((name.clone(), json!(0), json!(1))), "{verb}");
    }
    app.stop().await;
}

async fn check_dashboard(app: &TestApp, boards: &[i64], cards: &[Value]) {
    app.api.put(&format!("/crm/boards/{}", boards[1]), json!({"monthlyGoal": null})).await.data(200);
    let archived = id(app.api.post("/crm/boards", json!({"name": "Old"})).await.data(201));
    app.api.put(&format!("/crm/boards/{archived}"), json!({"archived": true})).await.data(200);
    let zone = "select time_zone from companies where id = $1";
    let zone: String = sqlx::query_scalar(zone).bind(app.company.id).fetch_one(&app.db).await.expect("the company");
    let zone = zone.parse::<Tz>().expect("a zone");
    // If the day, and perhaps the month, ends meanwhile, the check is repeated.
    eventually("the dashboard is of one month", || async {
        let today = Utc::now().with_timezone(&zone).date_naive();
        let shown = app.api.get("/dashboards/sales").await.data(200).clone();
        if Utc::now().with_timezone(&zone).date_naive() != today {
            return false;
        }
        let mut total = (0, Decimal::ZERO, Decimal::ZERO);
        let mut expected = Vec::new();
        for (board, name, goal) in [(boards[0], "New customers", json!(1000.5)), (boards[1], "Renewals", Value::Null)] {
            let of_board = || cards.iter().filter(|card| card["boardId"] == board);
            let open: Vec<&Value> = of_board().filter(|card| card["won"] == false && card["lost"] == false).collect();
            let open_value: Decimal = open.iter().map(|card| decimal(&card["productsTotal"])).sum();
            let is_of_month = |card: &&Value| {
                let day = time(&card["wonDate"]).map(|at| at.with_timezone(&zone).date_naive());
                day.is_some_and(|day| (day.year(), day.month()) == (today.year(), today.month()))
            };
            let won: Decimal = of_board().filter(is_of_month).map(|card| decimal(&card["productsTotal"])).sum();
            expected.push((json!(board), json!(name), open.len(), open_value, won, goal));
            total = (total.0 + open.len(), total.1 + open_value, total.2 + won);
        }
        let rows = shown["boards"].as_array().expect("boards");
        let row = |row: &Value| {
            let open = usize::try_from(row["openCards"].as_u64().expect("a count")).expect("small");
            (
                row["id"].clone(),
                row["name"].clone(),
                open,
                decimal(&row["openValue"]),
                decimal(&row["wonThisMonth"]),
                row["monthlyGoal"].clone(),
            )
        };
        assert_eq!(rows.iter().map(row).collect::<Vec<_>>(), expected);
        let (open, value, won) = total;
        let shown = &shown["total"];
        assert_eq!(
            (shown["openCards"].as_u64(), decimal(&shown["openValue"]), decimal(&shown["wonThisMonth"])),
            (Some(open as u64), value, won)
        );
        true
    })
    .await;
}
