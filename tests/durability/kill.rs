//! `kill -9` in the middle of load, again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{join_all, join3};
use hotline_persistence::tables::reports;
use reqwest::Method;
use serde_json::{Value, json};

use crate::load::{Conversation, LoadProgress};
use crate::process::{Process, with_database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Reply, check_events, check_open_lists, check_plain_events, eventually};

/// Conversations that continue while the process is killed.
const CONVERSATIONS: usize = 12;

/// How often the process is killed: twenty times with KILLS_LONG, which `make kills` sets.
fn kills() -> usize {
    if std::env::var_os("KILLS_LONG").is_some() { 20 } else { 5 }
}

/// How many answers a process gives before it is killed: from the first ones of some conversations to several of each.
const ANSWERED_BEFORE: std::ops::Range<usize> = 6..60;

/// The longest wait after that, so that the kill may come at any moment between two answers.
const BETWEEN_ANSWERS: Duration = Duration::from_millis(30);

/// Creates, changes and deletes contacts, cards and scheduled messages until the service ends; `changed` counts the
/// changes.
async fn change_records(api: &Api, company: &Company, board: &Value, round: usize, changed: &AtomicUsize) {
    async fn create(api: &Api, path: &str, body: Value) -> Option<i64> {
        api.try_post_while_busy(path, &body).await?.body["data"]["id"].as_i64()
    }
    for number in 0.. {
        let name = format!("{round}/{number}");
        let contact = json!({"name": name, "number": format!("55119{:08}", round * 100_000 + number)});
        let Some(contact) = create(api, "/contacts", contact).await else { return };
        let Some(card) = create(api, "/crm/cards", json!({"boardId": board, "name": name})).await else { return };
        let later =
            json!({"contactId": contact, "channelId": company.phone, "body": name, "sendAt": "2099-01-31T12:00:00Z"});
        let Some(schedule) = create(api, "/schedules", later).await else { return };
        let (method, path) = match number % 5 {
            0 => (Method::PUT, format!("/contacts/{contact}")),
            1 => (Method::DELETE, format!("/contacts/{contact}")),
            2 => (Method::PUT, format!("/crm/cards/{card}")),
            3 => (Method::DELETE, format!("/crm/cards/{card}")),
            _ => (Method::DELETE, format!("/schedules/{schedule}")),
        };
        let change = api.request(method, &path).json(&json!({"name": format!("{name} again")}));
        if Reply::try_of(change).await.is_none() {
            return;
        }
        changed.fetch_add(1, Ordering::Release);
    }
}

#[actix_web::test]
async fn what_was_answered_survives_kills_at_random_moments() {
    let folder = prepared_folder();
    let mut process = Process::serve(folder.path());
    let company = with_database(folder.path(), async |db| Company::create(db, "Acme").await).await;
    let mut api = Api::new(process.address, &company.key);
    let is_seen = || async { api.get("/channels").await.body["data"].as_array().is_some_and(|rows| rows.len() == 2) };
    eventually("the company is seen", is_seen).await;
    let beginnings = (0..CONVERSATIONS).map(|number| {
        let (api, company) = (api.clone(), company.clone());
        async move { Conversation::begin(&api, &company, &format!("visitor-{number}")).await }
    });
    let mut conversations = join_all(beginnings).await;
    // After each kill, all conversations are read from the database at once, so some requests get 503.
    for conversation in &mut conversations {
        conversation.repeats_busy = true;
    }
    let board = api.post("/crm/boards", json!({"name": "Sales"})).await.data(201)["id"].clone();

    for round in 0..kills() {
        let progress = Arc::new(LoadProgress::default());
        let talk = conversations.iter_mut().map(|conversation| conversation.run(&api, &company, progress.clone()));
        // The moment of the kill is random on purpose.
        let answered = rand::random_range(ANSWERED_BEFORE);
        let wait = BETWEEN_ANSWERS.mul_f64(rand::random());
        let changed = AtomicUsize::new(0);
        let killing = async {
            let is_enough =
                || progress.answered.load(Ordering::Acquire) >= answered && changed.load(Ordering::Acquire) > 0;
            eventually("enough requests are answered", || async { is_enough() }).await;
            tokio::time::sleep(wait).await;
            process.kill();
        };
        let records = change_records(&api, &company, &board, round, &changed);
        join3(killing, join_all(talk), records).await;
        process = Process::serve(folder.path());
        api = Api::new(process.address, &company.key);
        for conversation in &conversations {
            conversation.check(&api).await;
        }
        // The first lists are read from the tables, while the tickets are loaded into memory.
        for _ in 0..2 {
            check_open_lists(&api, "").await;
        }
        let unanswered: usize = conversations.iter().map(|conversation| conversation.unknown.len()).sum();
        println!(
            "kill {round} after {answered} answers and {wait:?}: {} entries replayed, {unanswered} requests unanswered",
            process.replayed()
        );
    }

    assert!(process.log().contains("recovered"), "{}", process.log());
    process.terminate();
    assert!(process.wait().success(), "the last stop was not clean: {}", process.log());
    // The same checks on the tables, without a service.
    with_database(folder.path(), async |db| {
        for conversation in &conversations {
            let stored: Vec<(String, i64)> =
                sqlx::query_as("select body, id from messages where company_id = $1 and contact_id = $2")
                    .bind(company.id)
                    .bind(conversation.contact())
                    .fetch_all(db)
                    .await
                    .expect("messages");
            conversation.check_messages(&stored);
        }
        let rejected: i64 =
            sqlx::query_scalar("select count(*) from rejected_changes").fetch_one(db).await.expect("count");
        assert_eq!(rejected, 0);
        let mut connection = db.acquire().await.expect("connection");
        let difference = reports::rebuild(&mut connection, company.id).await.expect("a rebuild");
        assert!(difference.is_none(), "a change was not counted once: {difference:?}");
        check_events(db, company.id).await;
        check_plain_events(db, company.id).await;
        let changed = "select count(*) filter (where status = 'pending'), (select count(*) from cards) from schedules";
        let (pending, cards): (i64, i64) = sqlx::query_as(changed).fetch_one(db).await.expect("counts");
        assert!(pending > 0 && cards > 0, "hardly anything was changed: {pending}, {cards}");
    })
    .await;
}
