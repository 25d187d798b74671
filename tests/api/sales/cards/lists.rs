//! Lists of cards: their filters and orders.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hotline_actors::EngineOptions;
use serde_json::json;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

use super::{CARDS, card, read, three_stages};
use crate::check_list::check_list;
use crate::plain::created;
use crate::steps::{NOBODY, listed};
use crate::support::service::TestOptions;
use crate::support::{Company, OwnApp, TestApp, TestDatabase, empty_folder};

#[actix_web::test]
async fn cards_are_found_by_each_filter() {
    let app = TestApp::shared().await;
    let (api, board) = (&app.api, three_stages(&app).await);
    let other = three_stages(&app).await.id;
    let status = created(api, "/crm/statuses", json!({"name": "Waiting"})).await;
    let business = created(api, "/crm/businesses", json!({"name": "Roofs"})).await;
    let origin = created(api, "/crm/origins", json!({"name": "Fair"})).await;
    let maria = created(api, "/contacts", json!({"name": "Maria"})).await;
    let ticket = app.ticket("5511977776666").await;
    let ana = app.company.ana;
    let a = created(
        api,
        CARDS,
        json!({
            "boardId": board.id, "name": "Telhado São João", "assignedToUserId": ana, "contactIds": [maria],
            "due": "2030-01-01T00:00:00Z",
        }),
    )
    .await;
    let b = created(
        api,
        CARDS,
        json!({
            "boardId": board.id, "crmBoardListId": board.doing, "name": "Roof", "description": "for joao",
            "statusId": status, "businessId": business, "due": "2031-01-01T00:00:00Z",
        }),
    )
    .await;
    let c = created(
        api,
        CARDS,
        json!({
            "boardId": other, "name": "Wall 100%", "originId": origin, "ticketId": ticket, "contactIds": [maria],
        }),
    )
    .await;
    api.post(&format!("{CARDS}/{a}/win"), json!({})).await.data(200);
    api.post(&format!("{CARDS}/{b}/lose"), json!({"statusReason": "Price"})).await.data(200);
    for (query, found) in [
        (String::new(), vec![a, b, c]),
        (format!("boardId={}", board.id), vec![a, b]),
        (format!("boardId={other}"), vec![c]),
        (format!("crmBoardListId={}", board.doing), vec![b]),
        (format!("boardId={other}&crmBoardListId={}", board.doing), vec![]),
        (format!("assignedToUserId={ana}"), vec![a]),
        (format!("assignedToUserId={}", app.company.ben), vec![]),
        (format!("contactId={maria}"), vec![a, c]),
        (format!("contactId={maria}&boardId={other}"), vec![c]),
        ("won=true".to_owned(), vec![a]),
        ("won=false".to_owned(), vec![b, c]),
        ("lost=true".to_owned(), vec![b]),
        ("won=false&lost=false".to_owned(), vec![c]),
        (format!("statusId={status}"), vec![b]),
        (format!("businessId={business}"), vec![b]),
        (format!("originId={origin}"), vec![c]),
        (format!("ticketId={ticket}"), vec![c]),
        ("dueFrom=2030-06-01T00:00:00Z".to_owned(), vec![b]),
        ("dueTo=2030-06-01T00:00:00Z".to_owned(), vec![a]),
        ("dueFrom=2030-01-01T00:00:00Z&dueTo=2031-01-01T00:00:00Z".to_owned(), vec![a, b]),
        ("search=JOAO".to_owned(), vec![a, b]),
        ("search=joao+roof".to_owned(), vec![b]),
        ("search=100%25".to_owned(), vec![c]),
        ("search=".to_owned(), vec![a, b, c]),
    ] {
        assert_eq!(listed(api, &format!("{CARDS}?{query}")).await, found, "{query}");
        let of_board: Vec<i64> = found.into_iter().filter(|id| [a, b].contains(id)).collect();
        if !query.contains("boardId") {
            assert_eq!(listed(api, &format!("/crm/boards/{}/cards?{query}", board.id)).await, of_board, "{query}");
        }
    }
    for filter in
        ["boardId", "crmBoardListId", "assignedToUserId", "contactId", "statusId", "businessId", "originId", "ticketId"]
    {
        for id in [NOBODY.to_string(), "99999999999999999999".to_owned()] {
            api.get(&format!("{CARDS}?{filter}={id}")).await.error(404, "ERR_API_NOT_FOUND");
        }
        assert_eq!(api.get(&format!("{CARDS}?{filter}=x")).await.invalid_fields(), [filter]);
    }
    for filter in ["won", "lost"] {
        assert_eq!(api.get(&format!("{CARDS}?{filter}=yes")).await.invalid_fields(), [filter]);
    }
    api.get(&format!("/crm/boards/{NOBODY}/cards")).await.error(404, "ERR_API_NOT_FOUND");
    app.stop().await;
}

#[actix_web::test]
async fn a_list_of_cards_is_paged_ordered_and_narrowed() {
    let app = TestApp::shared().await;
    let board = three_stages(&app).await;
    let mut all = Vec::new();
    for name in ["a", "b", "c", "d"] {
        all.push(card(&app, &board, board.todo, name).await);
    }
    check_list(&app, CARDS, &all, &["created", "updated"]).await;
    check_list(&app, &format!("/crm/boards/{}/cards", board.id), &all, &["created", "updated"]).await;
    // A stage is in the order of its positions, from either end.
    super::move_to(&app, all[3], board.todo, Some(0)).await;
    let order = [all[3], all[0], all[1], all[2]];
    let stage = format!("{CARDS}?crmBoardListId={}", board.todo);
    assert_eq!(listed(&app.api, &stage).await, order);
    assert_eq!(listed(&app.api, &format!("{stage}&perPage=3")).await, order);
    let backwards: Vec<i64> = order.iter().rev().copied().collect();
    assert_eq!(listed(&app.api, &format!("{stage}&order=desc&perPage=2")).await, backwards);
    assert_eq!(listed(&app.api, CARDS).await, all);
    assert_eq!(app.api.all(&stage).await[0], read(&app, all[3]).await);
    app.stop().await;
}

/// The number of statements that PostgreSQL has reported.
#[derive(Clone, Default)]
struct StatementCounter(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> Layer<S> for StatementCounter {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::postgres::notice" {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// One statement for the records that the request names, one for the cards with all they have, one for their contacts.
const STATEMENTS: usize = 3;

#[actix_web::test]
async fn a_page_of_cards_takes_three_statements_however_many_cards_it_has() {
    let statements = StatementCounter::default();
    let subscriber = tracing_subscriber::registry().with(statements.clone());
    tracing::subscriber::set_global_default(subscriber).expect("each test has a process of its own");
    let mut database = TestDatabase::migrated().await;
    let company = Company::create(&database.db, "Acme").await;
    database.options = database.options.options([
        ("session_preload_libraries", "auto_explain"),
        ("auto_explain.log_min_duration", "0"),
        ("auto_explain.log_level", "notice"),
    ]);
    // Outside a cluster and without sweeps: a member of a cluster also sends statements at intervals, and so do sweeps.
    let defaults = TestOptions::default();
    let engine = EngineOptions { sweep_every: Duration::from_secs(3600), ..defaults.engine.clone() };
    let standalone = TestOptions { member: false, engine, ..defaults };
    let app = OwnApp::serve(&standalone, database, empty_folder(), company).await;
    let board = three_stages(&app).await;
    for number in 0..30 {
        let contact = created(&app.api, "/contacts", json!({"name": format!("{number}")})).await;
        let body = json!({
            "boardId": board.id, "name": format!("{number}"), "contactIds": [contact],
            "products": [{"name": "x", "unitPrice": 1}, {"name": "y", "unitPrice": 2}],
        });
        created(&app.api, CARDS, body).await;
    }
    let mut counted = Vec::new();
    for rows in [1, 2, 30] {
        for path in [format!("{CARDS}?"), format!("/crm/boards/{}/cards?", board.id)] {
            let mut least = usize::MAX;
            // Work that the service does at intervals may add statements to some of these requests.
            for _ in 0..20 {
                let before = statements.0.load(Ordering::Relaxed);
                let page = app.api.get(&format!("{path}perPage={rows}&crmBoardListId={}", board.todo)).await;
                assert_eq!(page.data(200).as_array().map(Vec::len), Some(rows));
                least = least.min(statements.0.load(Ordering::Relaxed) - before);
                if least <= STATEMENTS {
                    break;
                }
            }
            counted.push(least);
        }
    }
    assert_eq!(counted, [STATEMENTS; 6]);
    app.stop().await;
}
