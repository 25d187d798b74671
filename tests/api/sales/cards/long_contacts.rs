//! Cards that share contacts with very long texts: a page or a board of them is limited in bytes, and the events of a
//! change of many are written a few at a time.

use serde_json::{Map, Value, json};

use super::{Board, CARDS, read, three_stages};
use crate::contacts::MARKETING_FIELDS;
use crate::events::removed::wait_for_cascades;
use crate::events::{after, newest};
use crate::plain::created;
use crate::steps::{id, ids};
use crate::support::{OwnApp, TestApp};

/// Contacts of each card: together some 1.4 MB.
const CONTACTS: usize = 3;

/// Bytes of the contacts of a page or a board.
const CONTACT_BYTES_MAX: usize = 32 << 20;

/// Cards whose contacts have more bytes than that.
const MANY: i64 = 30;

/// Contacts with the longest texts.
async fn create_long_contacts(app: &TestApp) -> Vec<i64> {
    let text = "😀".repeat(10_000);
    let mut contacts = Vec::new();
    for number in 0..CONTACTS {
        let mut body: Map<String, Value> =
            MARKETING_FIELDS.iter().map(|field| ((*field).to_owned(), json!(text))).collect();
        body.insert("name".to_owned(), json!(format!("Long {number}")));
        contacts.push(created(&app.api, "/contacts", Value::Object(body)).await);
    }
    contacts
}

/// Creates cards at the top of a stage, each with all contacts of the company. Returns their ids, from the top.
async fn create_cards(app: &TestApp, board: &Board, count: i64, status: Option<i64>) -> Vec<i64> {
    let insert = "with made as (
            insert into cards (company_id, board_id, list_id, position, name, creation_source, status_id)
            select $1, $2, $3, n, 'Card ' || n, 'api', $5 from generate_series(1, $4::bigint) n returning id),
        linked as (
            insert into card_contacts (company_id, card_id, contact_id)
            select $1, made.id, c.id from made, contacts c where c.company_id = $1 returning card_id)
        select distinct card_id from linked order by card_id";
    let insert = sqlx::query_scalar(insert).bind(app.company.id).bind(board.id).bind(board.todo).bind(count);
    insert.bind(status).fetch_all(&app.db).await.expect("cards")
}

#[actix_web::test]
async fn a_page_or_a_board_of_cards_with_very_long_contacts_is_limited_in_bytes() {
    let app = OwnApp::start().await;
    let (api, board) = (&app.api, three_stages(&app).await);
    let contacts = create_long_contacts(&app).await;
    let cards = create_cards(&app, &board, MANY, None).await;

    // A page by number is complete or refused: the next one skips a fixed number of cards.
    for path in [CARDS.to_owned(), format!("/crm/boards/{}/cards", board.id)] {
        let refused = api.get(&path).await;
        assert_eq!(refused.invalid_fields(), ["perPage"]);
        assert_eq!(refused.body["error"]["details"][0]["code"], "too_large", "{}", refused.body);
    }
    let page = api.get(&format!("{CARDS}?perPage=10&page=3")).await;
    assert_eq!(ids(page.data(200).as_array().expect("a page")), cards[20..]);
    for card in page.data(200).as_array().expect("a page") {
        assert_eq!(ids(card["contacts"].as_array().expect("contacts")), contacts);
    }

    // A page by cursor ends early, and the next ones have the other cards.
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("{CARDS}?cursor={cursor}")).await;
        listed.extend(ids(page.data(200).as_array().expect("a page")));
        let Some(next) = page.body["meta"]["nextCursor"].as_str() else { break };
        next.clone_into(&mut cursor);
    }
    assert_eq!(listed, cards);

    // A board shows the cards at the top, and counts all of them.
    let shown = api.get(&format!("/crm/boards/{}", board.id)).await;
    let stage = &shown.data(200)["lists"][0];
    let topmost = ids(stage["cards"].as_array().expect("cards"));
    assert!(cards.starts_with(&topmost) && topmost.len() > 1, "{topmost:?}");
    assert_eq!(stage["countCards"], json!(MANY));
    assert!(shown.bytes.len() < CONTACT_BYTES_MAX + (1 << 20), "{} bytes", shown.bytes.len());
    app.stop().await;
}

#[actix_web::test]
async fn each_card_with_very_long_contacts_has_one_event_of_a_deletion_and_of_a_merge() {
    let app = OwnApp::start().await;
    let (api, board) = (&app.api, three_stages(&app).await);
    let contacts = create_long_contacts(&app).await;
    let status = created(api, "/crm/statuses", json!({"name": "Waiting"})).await;
    let cards = create_cards(&app, &board, 4, Some(status)).await;
    let changes_since = async |last: i64| {
        let events = after(api, last).await;
        events.into_iter().filter(|event| event["type"] == "card.updated").collect::<Vec<Value>>()
    };
    let changed = |events: &[Value]| events.iter().map(|event| id(&event["data"])).collect::<Vec<i64>>();

    let last = newest(api).await;
    assert_eq!(api.delete(&format!("/crm/statuses/{status}")).await.status, 204);
    wait_for_cascades(&app).await;
    let events = changes_since(last).await;
    assert_eq!(changed(&events), cards);
    for event in &events {
        assert_eq!(event["previous"]["status"]["name"], "Waiting");
        assert_eq!(event["previous"].as_object().map(Map::len), Some(1), "only the status has changed");
        assert_eq!(event["data"], read(&app, id(&event["data"])).await);
    }

    let last = newest(api).await;
    let before = read(&app, cards[0]).await;
    let [into, from, other] = contacts[..] else { panic!("three were made") };
    api.post(&format!("/contacts/{into}/merge"), json!({"fromContactId": from})).await.data(200);
    let events = changes_since(last).await;
    assert_eq!(changed(&events), cards);
    for event in &events {
        assert_eq!(event["previous"], json!({"contacts": before["contacts"]}));
        assert_eq!(ids(event["data"]["contacts"].as_array().expect("contacts")), [into, other]);
        assert_eq!(event["data"], read(&app, id(&event["data"])).await);
    }
    app.stop().await;
}
