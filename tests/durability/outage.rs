//! The database is unavailable for a while.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::{join, join_all};
use hotline::service::Service;
use hotline_actors::{EngineOptions, clock};
use hotline_postgres::{Cluster, ClusterOptions};
use serde_json::{Value, json};

use crate::load::{Conversation, LoadProgress};
use crate::support::service::TestOptions;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Reply, check_events, eventually};

/// Responses to each conversation while PostgreSQL is stopped: more with KILLS_LONG, which `make kills` sets.
fn answered_meanwhile() -> usize {
    if std::env::var_os("KILLS_LONG").is_some() { 1_000 } else { 60 }
}

const CONVERSATIONS: usize = 8;

#[actix_web::test]
async fn hot_conversations_continue_while_postgres_is_stopped_and_nothing_is_lost() {
    let folder = prepared_folder();
    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
    let db = crate::support::database::pool(cluster.connect_options());
    let company = Company::create(&db, "Acme").await;
    let settings = TestOptions::default().settings(&folder, cluster.connect_options());
    let service = Service::start(settings).await.expect("the service starts");
    let api = Api::new(service.address, &company.key);
    let mut conversations = Vec::new();
    for number in 0..CONVERSATIONS {
        conversations.push(Conversation::begin(&api, &company, &format!("visitor-{number}")).await);
    }

    let progress = Arc::new(LoadProgress::default());
    let talk = conversations.iter_mut().map(|conversation| conversation.run(&api, &company, progress.clone()));
    let outage = async {
        cluster.stop().await.expect("PostgreSQL stops");
        let before = progress.answered.load(Ordering::Acquire);
        let mut lists_refused = 0;
        while progress.answered.load(Ordering::Acquire) < before + answered_meanwhile() * CONVERSATIONS {
            for list in ["/tickets", "/messages", "/contacts", "/channels"] {
                let reply = api.get(list).await;
                reply.error(503, "ERR_API_UNAVAILABLE");
                assert!(reply.headers.contains_key("retry-after"), "{list}: no Retry-After");
                lists_refused += 1;
            }
            // Hot tickets need no database, so a load balancer must keep the service.
            let ready = readiness(&api).await;
            assert_eq!(ready.status, 200, "{}", ready.body);
            assert_eq!(ready.body["parts"]["journal"], "ready", "{}", ready.body);
            eventually("the outage is seen", || async {
                readiness(&api).await.body["parts"]["database"] == "not ready"
            })
            .await;
            let ready = readiness(&api).await;
            assert_eq!(ready.status, 200, "{}", ready.body);
            assert_eq!(ready.body["status"], "degraded", "{}", ready.body);
            let reasons = ready.body["reasons"].as_array().expect("reasons");
            let reason = reasons.iter().find(|reason| reason["reason"] == "database");
            assert!(reason.is_some_and(|reason| reason["since"].is_string()), "{}", ready.body);
            assert!(reason.is_some_and(|reason| reason["message"] == "database does not respond"), "{}", ready.body);
        }
        assert!(lists_refused > 0);
        let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL is back");
        eventually("lists are served again", || async { api.get("/tickets").await.status == 200 }).await;
        eventually("the service is ready again", || async { readiness(&api).await.body["status"] == "ready" }).await;
        progress.must_end.store(true, Ordering::Release);
        cluster
    };
    let (cluster, _) = join(outage, join_all(talk)).await;

    for conversation in &conversations {
        assert!(conversation.unknown.is_empty(), "not answered: {:?}", conversation.unknown);
        conversation.check(&api).await;
    }
    let sent: usize = conversations.iter().map(|conversation| conversation.acknowledged.len()).sum();
    let closed: usize = conversations.iter().map(|conversation| conversation.changes.closed).sum();
    println!("{sent} messages and {closed} closings were answered around the outage");
    assert!(closed > CONVERSATIONS, "the conversations stood still");
    let log = service.app.engine.store().log.clone();
    service.stop().await.expect("a clean stop");
    assert_eq!(log.flushed(), log.appended());
    check_events(&db, company.id).await;
    for conversation in &conversations {
        let stored: Vec<(String, i64)> =
            sqlx::query_as("select body, id from messages where company_id = $1 and contact_id = $2")
                .bind(company.id)
                .bind(conversation.contact())
                .fetch_all(&db)
                .await
                .expect("messages");
        conversation.check_messages(&stored);
    }
    db.close().await;
    cluster.stop().await.expect("PostgreSQL stops");
}

#[actix_web::test]
async fn a_hot_ticket_is_shown_while_postgres_is_stopped_and_a_new_conversation_begins() {
    let folder = prepared_folder();
    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
    let db = crate::support::database::pool(cluster.connect_options());
    let company = Company::create(&db, "Acme").await;
    let service =
        Service::start(TestOptions::default().settings(&folder, cluster.connect_options())).await.expect("start");
    let api = Api::new(service.address, &company.key);
    let send = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "hello"});
    let job = api.post("/messages", send.clone()).await.data(202)["jobId"].as_str().expect("job").to_owned();
    let ticket = api.get(&format!("/messages/jobs/{job}")).await.data(200)["ticketId"].clone();

    cluster.stop().await.expect("PostgreSQL stops");
    // Closed while the database is unavailable; the next send opens another ticket without it.
    api.post(&format!("/tickets/{ticket}/close"), json!({})).await.data(200);
    api.post("/messages", send).await.data(202);
    assert_eq!(api.get(&format!("/tickets/{ticket}")).await.data(200)["status"], "closed");
    // A number that is not in memory needs the database; nothing is changed.
    let stranger = json!({"channelId": company.phone, "number": "5511900000009", "type": "text", "body": "hello"});
    api.post("/messages", stranger).await.error(503, "ERR_API_UNAVAILABLE");

    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL is back");
    eventually("lists are served again", || async { api.get("/tickets").await.status == 200 }).await;
    let tickets = api.all("/tickets").await;
    let states: Vec<&str> = tickets.iter().map(|ticket| ticket["status"].as_str().expect("status")).collect();
    assert_eq!(states, ["closed", "open"]);
    service.stop().await.expect("a clean stop");
    db.close().await;
    cluster.stop().await.expect("PostgreSQL stops");
}

#[actix_web::test]
async fn open_tickets_that_are_hot_are_listed_while_postgres_is_stopped() {
    let folder = prepared_folder();
    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
    let db = crate::support::database::pool(cluster.connect_options());
    let company = Company::create(&db, "Acme").await;
    let service =
        Service::start(TestOptions::default().settings(&folder, cluster.connect_options())).await.expect("start");
    let api = Api::new(service.address, &company.key);
    let mut visitors = Vec::new();
    for name in ["ana", "ben", "eva"] {
        visitors.push(Conversation::begin(&api, &company, name).await);
    }
    let open_tickets = async |query: &str| api.get(&format!("/tickets?status=open{query}")).await;
    let ids = |reply: &Reply| -> Vec<i64> {
        let rows = reply.data(200).as_array().expect("rows");
        rows.iter().map(|row| row["id"].as_i64().expect("an id")).collect()
    };
    // The first request starts to load the open tickets into memory.
    let [first, second, third] = ids(&open_tickets("").await)[..] else { panic!("three tickets") };
    let is_loaded = || async { service.app.engine.stats().listed_tickets == 3 };
    eventually("the open tickets are in memory", is_loaded).await;

    cluster.stop().await.expect("PostgreSQL stops");
    let answer = json!({"ticketId": first, "type": "text", "body": "An answer"});
    api.post("/messages", answer).await.data(202);
    api.post(&format!("/tickets/{second}/close"), json!({"wrapupTypeId": company.solved})).await.data(200);
    assert_eq!(ids(&open_tickets("&sort=activity").await), [first, third]);
    assert_eq!(ids(&open_tickets("&sort=activity&order=asc&perPage=1").await), [third]);
    assert_eq!(ids(&open_tickets("&sort=waiting").await), [third, first]);
    assert_eq!(ids(&open_tickets("").await), [first, third]);
    assert_eq!(ids(&open_tickets(&format!("&userId={}", company.ana)).await), [0; 0]);
    open_tickets("&createdFrom=2000-01-01T00:00:00Z").await.error(503, "ERR_API_UNAVAILABLE");

    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL is back");
    eventually("lists are served again", || async { api.get("/tickets").await.status == 200 }).await;
    assert_eq!(ids(&open_tickets("&sort=waiting&createdFrom=2000-01-01T00:00:00Z").await), [third, first]);
    service.stop().await.expect("a clean stop");
    db.close().await;
    cluster.stop().await.expect("PostgreSQL stops");
}

#[actix_web::test]
async fn the_first_page_of_a_list_stays_in_memory_and_is_answered_while_postgres_is_stopped() {
    let folder = prepared_folder();
    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
    let db = crate::support::database::pool(cluster.connect_options());
    let company = Company::create(&db, "Acme").await;
    let start = async || {
        Service::start(TestOptions::default().settings(&folder, cluster.connect_options())).await.expect("start")
    };
    let service = start().await;
    let api = Api::new(service.address, &company.key);
    for name in ["ana", "ben", "eva", "joe"] {
        Conversation::begin(&api, &company, name).await;
    }
    service.stop().await.expect("a clean stop");

    let service = start().await;
    let api = Api::new(service.address, &company.key);
    let list = async |page: usize| api.get(&format!("/tickets?status=open&perPage=2&page={page}")).await;
    let hot_tickets = || service.app.engine.hot().0;
    let read_from_tables = list(1).await.data(200).clone();
    let is_loaded = || async { service.app.engine.stats().listed_tickets == 4 };
    eventually("the open tickets are in memory", is_loaded).await;
    assert_eq!(hot_tickets(), 0, "a ticket is hot that nobody has used since the start");
    list(2).await.data(200);
    assert_eq!(*list(1).await.data(200), read_from_tables);
    let needs_no_table = || async {
        let mut lock = db.begin().await.expect("a transaction");
        sqlx::query("lock table tickets in access exclusive mode").execute(&mut *lock).await.expect("the lock");
        let listed = tokio::time::timeout(Duration::from_millis(500), list(1)).await;
        lock.rollback().await.expect("the lock is released");
        listed.is_ok_and(|reply| reply.status == 200)
    };
    eventually("the first page is listed from memory", needs_no_table).await;
    assert_eq!(hot_tickets(), 2, "not only the tickets of the first page are hot");

    cluster.stop().await.expect("PostgreSQL stops");
    assert_eq!(*list(1).await.data(200), read_from_tables);
    list(2).await.error(503, "ERR_API_UNAVAILABLE");
    let [first, second] = [0, 1].map(|at| read_from_tables[at]["id"].clone());
    let answer = json!({"ticketId": first, "type": "text", "body": "An answer"});
    api.post("/messages", answer).await.data(202);
    clock::advance(EngineOptions::default().idle_after);
    assert!(!service.app.engine.retire_idle().await, "idle tickets were unloaded without a database");
    assert_eq!(list(1).await.data(200)[0]["id"], first, "an idle ticket was unloaded without a database");
    api.post(&format!("/tickets/{second}/close"), json!({"wrapupTypeId": company.solved})).await.data(200);

    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL is back");
    eventually("later pages are served again", || async { list(2).await.status == 200 }).await;
    clock::advance(EngineOptions::default().idle_after);
    eventually("idle tickets are unloaded", || async { hot_tickets() == 0 }).await;
    let messages = api.all(&format!("/messages?ticketId={first}")).await;
    assert!(messages.iter().any(|message| message["body"] == "An answer"), "{messages:?}");
    let closed: Vec<Value> = api.all("/tickets?status=closed").await.iter().map(|row| row["id"].clone()).collect();
    assert_eq!(closed, [second]);
    service.stop().await.expect("a clean stop");
    db.close().await;
    cluster.stop().await.expect("PostgreSQL stops");
}

async fn readiness(api: &Api) -> Reply {
    Reply::of(api.anonymous(reqwest::Method::GET, "/health/ready")).await
}
