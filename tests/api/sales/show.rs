//! One board as the API returns it, with its stages and their cards.

use serde_json::{Value, json};

use super::{BOARDS, board, stages};
use crate::plain::{created, deleted};
use crate::steps::{id, ids};
use crate::support::{Api, OwnApp, TestApp};

async fn card(api: &Api, board: i64, stage: i64, name: &str) -> i64 {
    created(api, "/crm/cards", json!({"boardId": board, "crmBoardListId": stage, "name": name})).await
}

async fn shown(api: &Api, board: i64) -> Value {
    api.get(&format!("{BOARDS}/{board}")).await.data(200).clone()
}

/// Labels of the stages, how many cards each has, and the ids of those shown.
fn stage_contents(board: &Value) -> Vec<(String, i64, Vec<i64>)> {
    let stage = |stage: &Value| {
        let label = stage["label"].as_str().expect("a label").to_owned();
        (label, stage["countCards"].as_i64().expect("a count"), ids(stage["cards"].as_array().expect("cards")))
    };
    board["lists"].as_array().expect("stages").iter().map(stage).collect()
}

#[actix_web::test]
async fn a_board_shows_its_stages_and_the_cards_of_each() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let solar = board(api, "Solar").await;
    let other_board = board(api, "Beside").await;
    let [to_do, doing, done] = stages(&app, solar).await.iter().map(|stage| stage.id.0).collect::<Vec<_>>()[..] else {
        panic!("three stages")
    };
    let other = stages(&app, other_board).await[0].id.0;
    card(api, other_board, other, "Elsewhere").await;
    let first = card(api, solar, to_do, "First").await;
    let second = card(api, solar, to_do, "Second").await;
    let third = card(api, solar, doing, "Third").await;
    let contact = app.contact("5511900000001").await;
    let body = json!({
        "contactIds": [contact], "products": [{"name": "Panel", "unitPrice": 0.1, "quantity": 3}], "description": "Roof",
    });
    api.put(&format!("/crm/cards/{second}"), body).await.data(200);

    let listed = api.all(BOARDS).await[0].clone();
    let cards = async |stage: i64| api.all(&format!("{BOARDS}/{solar}/cards?crmBoardListId={stage}")).await;
    let mut expected = listed.clone();
    let mut lists = Vec::new();
    for (stage, count) in [(to_do, 2), (doing, 1), (done, 0)] {
        let own = stages(&app, solar).await.into_iter().find(|own| own.id.0 == stage).expect("the stage");
        let mut list = serde_json::to_value(own).expect("JSON");
        list["countCards"] = json!(count);
        list["cards"] = json!(cards(stage).await);
        lists.push(list);
    }
    assert_eq!(lists[0]["cards"][1]["contacts"][0]["id"], json!(contact));
    assert_eq!(lists[0]["cards"][1]["productsTotal"], 0.3);
    expected["lists"] = json!(lists);
    assert_eq!(api.get(&format!("{BOARDS}/{solar}")).await.body, json!({"data": expected}));
    assert!(listed.get("lists").is_none(), "a board in a list has `lists`");

    // The board shows cards and stages where they have been moved.
    api.post(&format!("/crm/cards/{second}/move"), json!({"crmBoardListId": to_do, "position": 0})).await.data(200);
    api.post(&format!("/crm/cards/{third}/win"), json!({})).await.data(200);
    let order = json!({"orderedIds": [done, to_do, doing]});
    api.put(&format!("{BOARDS}/{solar}/lists/order"), order).await.data(200);
    let of = |label: &str, cards: &[i64]| (label.to_owned(), i64::try_from(cards.len()).expect("few"), cards.to_vec());
    assert_eq!(
        stage_contents(&shown(api, solar).await),
        [of("Done", &[third]), of("To do", &[second, first]), of("In progress", &[])]
    );
    deleted(api, &format!("/crm/cards/{first}")).await;
    deleted(api, &format!("{BOARDS}/{solar}/lists/{doing}")).await;
    api.put(&format!("{BOARDS}/{solar}"), json!({"archived": true})).await.data(200);
    let archived = shown(api, solar).await;
    assert_eq!(archived["archived"], true, "an archived board is not shown as archived");
    assert_eq!(stage_contents(&archived), [of("Done", &[third]), of("To do", &[second])]);
    app.stop().await;
}

#[actix_web::test]
async fn a_long_stage_shows_its_first_page_and_counts_all_its_cards() {
    let app = TestApp::shared().await;
    let solar = board(&app.api, "Solar").await;
    let long = stages(&app, solar).await[1].id;
    // The last ones made are at the top.
    sqlx::query(
        "insert into cards (company_id, board_id, list_id, position, name, creation_source)
         select $1, $2, $3, -n, 'Card ' || n, 'api' from generate_series(1, 130) n",
    )
    .bind(app.company.id)
    .bind(solar)
    .bind(long)
    .execute(&app.db)
    .await
    .expect("cards");
    let contents = stage_contents(&shown(&app.api, solar).await);
    let (_, count, cards) = &contents[1];
    assert_eq!((*count, cards.len()), (130, 100));
    let page = app.api.get(&format!("{BOARDS}/{solar}/cards?crmBoardListId={long}")).await;
    assert_eq!(cards, &ids(page.data(200).as_array().expect("a page")));
    assert!(cards.is_sorted_by(|above, below| above > below), "the cards are not in the order of the stage");
    app.stop().await;
}

#[actix_web::test]
async fn the_largest_board_shows_a_thousand_cards_and_ten_thousand_of_their_contacts() {
    let app = OwnApp::start().await;
    let db = &app.db;
    let lists: Vec<Value> = (0..50).map(|number| json!({"label": format!("Stage {number}")})).collect();
    let large = created(&app.api, BOARDS, json!({"name": "Large", "crmBoardLists": lists})).await;
    let run = async |statement: &'static str| {
        sqlx::query(statement).bind(app.company.id).bind(large).execute(db).await.expect(statement)
    };
    run("insert into cards (company_id, board_id, list_id, position, name, creation_source)
         select $1, $2, s.id, n, 'Card ' || n, 'api' from board_lists s, generate_series(1, 30) n where s.board_id = $2")
    .await;
    let without_contacts = stage_contents(&shown(&app.api, large).await);
    assert_eq!(without_contacts.len(), 50);
    assert!(without_contacts.iter().all(|(_, count, cards)| (*count, cards.len()) == (30, 20)), "{without_contacts:?}");
    let first = stages(&app, large).await[0].id;
    let page = app.api.get(&format!("{BOARDS}/{large}/cards?crmBoardListId={first}&perPage=20")).await;
    assert_eq!(without_contacts[0].2, ids(page.data(200).as_array().expect("a page")));

    // The first three cards of each stage get a hundred contacts each, which is more than a stage shows; in `Stage 1`
    // only the first card gets any.
    run("insert into contacts (company_id, name) select $1, 'Contact ' || n || ' of ' || $2 from generate_series(1, 100) n").await;
    run("insert into card_contacts (company_id, card_id, contact_id)
         select $1, k.id, c.id from cards k join board_lists s on s.company_id = $1 and s.id = k.list_id, contacts c
         where k.company_id = $1 and c.company_id = $1 and k.board_id = $2
             and k.position <= case s.label when 'Stage 1' then 1 else 3 end")
    .await;
    let board = shown(&app.api, large).await;
    let with_contacts = stage_contents(&board);
    for (label, count, cards) in &with_contacts {
        assert_eq!((*count, cards.len()), (30, if label == "Stage 1" { 20 } else { 2 }), "{label}");
    }
    assert!(
        with_contacts
            .iter()
            .zip(&without_contacts)
            .all(|(with_contacts, without_contacts)| without_contacts.2.starts_with(&with_contacts.2)),
        "the shown cards are not the topmost"
    );
    let contacts = |stage: &Value| stage["cards"].as_array().expect("cards").iter().map(contacts_of).sum::<usize>();
    let carried: usize = board["lists"].as_array().expect("stages").iter().map(contacts).sum();
    assert_eq!(carried, 49 * 200 + 100);
    app.stop().await;
}

fn contacts_of(card: &Value) -> usize {
    card["contacts"].as_array().expect("contacts").len()
}

#[actix_web::test]
async fn a_board_without_stages_is_shown_and_another_companys_is_not() {
    let app = TestApp::shared().await;
    let bare = board(&app.api, "Bare").await;
    for stage in stages(&app, bare).await {
        deleted(&app.api, &format!("{BOARDS}/{bare}/lists/{}", stage.id)).await;
    }
    let reply = shown(&app.api, bare).await;
    assert_eq!((id(&reply), &reply["lists"]), (bare, &json!([])));
    let (_, other) = app.another_company().await;
    other.get(&format!("{BOARDS}/{bare}")).await.error(404, "ERR_API_NOT_FOUND");
    app.stop().await;
}
