//! Cards: possible sales that move through the stages of a board.

mod indicators;
mod leaving;
mod life;
mod lists;
mod long_contacts;
mod money;
mod places;
mod random;
mod verbs;

use serde_json::{Value, json};

use crate::plain::created;
use crate::steps::ids;
use crate::support::TestApp;

const CARDS: &str = "/crm/cards";

/// A board with its stages: to do, in progress, done.
struct Board {
    id: i64,
    todo: i64,
    doing: i64,
    done: i64,
}

async fn three_stages(app: &TestApp) -> Board {
    let id = fetch_number(app, "insert into boards (company_id, name) values ($1, 'Solar') returning id").await;
    let stages = "insert into board_lists (company_id, board_id, label, position, done_list)
        values ($1, $2, 'To do', 1, false), ($1, $2, 'In progress', 2, false), ($1, $2, 'Done', 3, true) returning id";
    let stages: Vec<i64> =
        sqlx::query_scalar(stages).bind(app.company.id).bind(id).fetch_all(&app.db).await.expect("stages");
    let [todo, doing, done] = stages[..] else { panic!("three were made") };
    Board { id, todo, doing, done }
}

/// Returns the number that a statement returns; the id of the company is its parameter.
async fn fetch_number(app: &TestApp, statement: &'static str) -> i64 {
    sqlx::query_scalar(statement).bind(app.company.id).fetch_one(&app.db).await.expect(statement)
}

/// Inserts a product of the catalogue. Returns its id.
async fn product(app: &TestApp, name: &str, sku: Option<&str>, price: &str) -> i64 {
    let make = "insert into products (company_id, name, sku, price) values ($1, $2, $3, $4::numeric) returning id";
    let make = sqlx::query_scalar(make).bind(app.company.id).bind(name).bind(sku).bind(price);
    make.fetch_one(&app.db).await.expect("a product")
}

/// Creates a card at the bottom of a stage. Returns its id.
async fn card(app: &TestApp, board: &Board, list: i64, name: &str) -> i64 {
    created(&app.api, CARDS, json!({"boardId": board.id, "crmBoardListId": list, "name": name})).await
}

async fn read(app: &TestApp, card: i64) -> Value {
    app.api.get(&format!("{CARDS}/{card}")).await.data(200).clone()
}

/// The ids of the cards of a stage, in their order.
async fn cards_in(app: &TestApp, list: i64) -> Vec<i64> {
    ids(&app.api.all(&format!("{CARDS}?crmBoardListId={list}")).await)
}

async fn move_to(app: &TestApp, card: i64, list: i64, position: Option<i64>) -> Value {
    let body = json!({"crmBoardListId": list, "position": position});
    app.api.post(&format!("{CARDS}/{card}/move"), body).await.data(200).clone()
}

/// Returns the record with these fields replaced.
fn with(record: &Value, fields: &Value) -> Value {
    let mut record = record.clone();
    for (field, value) in fields.as_object().expect("an object") {
        record[field] = value.clone();
    }
    record
}

/// The digits of the first number with this name in an answer.
fn digits<'a>(bytes: &'a [u8], field: &str) -> &'a str {
    let text = std::str::from_utf8(bytes).expect("text");
    let named = format!("\"{field}\":");
    let from = text.find(&named).unwrap_or_else(|| panic!("no {field}: {text}")) + named.len();
    let rest = &text[from..];
    &rest[..rest.find([',', '}', ']']).expect("an end")]
}
