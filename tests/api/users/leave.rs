//! A user is deleted or leaves queues, and nothing stays assigned to them.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{Either, join, join_all, select};
use hotline_actors::EngineOptions;
use hotline_persistence::tables::users::{self, FORMER_USERS_MAX};
use reqwest::Method;
use serde_json::{Value, json};

use crate::organization::opened;
use crate::plain::{created, deleted};
use crate::steps::{close, id, restarted, ticket};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Reply, TestApp, eventually, until_blocked};

async fn event_types(app: &TestApp, ticket: i64) -> Vec<String> {
    let events = app.api.all(&format!("/tickets/{ticket}/events")).await;
    events.iter().map(|event| event["type"].as_str().expect("a type").to_owned()).collect()
}

/// The number of open tickets of a user in the tables, once the tables have all that was acknowledged.
async fn open_ticket_count(app: &TestApp, user: i64) -> i64 {
    app.api.all("/tickets").await;
    sqlx::query_scalar("select count(*) from tickets where user_id = $1 and status = 'open'")
        .bind(user)
        .fetch_one(&app.db)
        .await
        .expect("a count")
}

#[actix_web::test]
async fn open_tickets_lose_a_user_who_leaves_and_history_keeps_the_name() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let ana = json!({"userId": company.ana, "queueId": company.support});
    let ana_ticket = opened(&app, "5511900000001", ana.clone()).await;
    let ben_ticket = opened(&app, "5511900000002", json!({"userId": company.ben})).await;
    let closed = opened(&app, "5511900000003", json!({"userId": company.ana})).await;
    close(&app.api, closed).await;
    let before = ticket(&app.api, ben_ticket).await;
    deleted(&app.api, &format!("/users/{}", company.ana)).await;

    let shown = ticket(&app.api, ana_ticket).await;
    assert_eq!((&shown["assignedTo"], &shown["queue"]["name"]), (&Value::Null, &json!("Support")));
    let events = app.api.all(&format!("/tickets/{ana_ticket}/events")).await;
    let queue = json!({"id": company.support, "name": "Support"});
    let former_user = json!({"id": company.ana, "name": "Ana"});
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["to"]["assignedTo"], former_user);
    let event = &events[1];
    assert_eq!((&event["type"], &event["source"]), (&json!("transferred"), &json!("api")));
    assert_eq!(event["from"], json!({"queue": queue, "assignedTo": former_user}));
    assert_eq!(event["to"], json!({"queue": queue, "assignedTo": null}));
    assert_eq!(ticket(&app.api, ben_ticket).await, before);
    let unassigned = app.api.all("/tickets?status=open&unassigned=true").await;
    assert_eq!(unassigned, std::slice::from_ref(&ticket(&app.api, ana_ticket).await));

    // A closed ticket stays assigned to the deleted user; when it is reopened it is unassigned.
    assert_eq!(event_types(&app, closed).await, ["opened", "closed"]);
    assert_eq!(ticket(&app.api, closed).await["assignedTo"], former_user);
    let listed = app.api.all("/tickets?status=closed").await;
    assert_eq!(listed.iter().find(|ticket| id(ticket) == closed).expect("it is listed")["assignedTo"], former_user);
    app.api.post(&format!("/tickets/{closed}/reopen"), json!({})).await.data(200);
    assert_eq!(event_types(&app, closed).await, ["opened", "closed", "reopened", "transferred"]);
    assert_eq!(open_ticket_count(&app, company.ana.0).await, 0);

    app.api.get(&format!("/tickets?userId={}", company.ana)).await.error(404, "ERR_API_NOT_FOUND");
    let again = json!({"name": "Ana", "email": "ana@example.com"});
    assert!(
        created(&app.api, "/users", again).await > company.ben.0,
        "a user created again has an id that was used before"
    );
    app.stop().await;
}

#[actix_web::test]
async fn a_reopened_ticket_is_not_assigned_to_an_agent_who_has_left_its_queue() {
    let app = TestApp::shared().await;
    let (api, sales, ben) = (&app.api, app.company.sales, app.company.ben);
    let assigned = json!({"queueId": sales, "userId": ben});
    let reopened = opened(&app, "5511900000001", assigned.clone()).await;
    let written_to = opened(&app, "5511900000002", assigned).await;
    for closed in [reopened, written_to] {
        close(api, closed).await;
    }
    deleted(api, &format!("/queues/{sales}/users/{ben}")).await;
    api.post(&format!("/tickets/{reopened}/reopen"), json!({})).await.data(200);
    let text = json!({"ticketId": written_to, "type": "text", "body": "hello", "reopenTicket": true});
    api.post("/messages", text).await.data(202);
    for open in [reopened, written_to] {
        let shown = ticket(api, open).await;
        assert_eq!((&shown["status"], &shown["queue"]["id"]), (&json!("open"), &json!(sales)));
        assert_eq!(shown["assignedTo"], Value::Null);
    }
    assert_eq!(open_ticket_count(&app, ben.0).await, 0);
    app.stop().await;
}

#[actix_web::test]
async fn a_user_leaves_while_their_ticket_is_merged_into_one_that_was_not_theirs() {
    let app = TestApp::shared().await;
    let (api, ana) = (&app.api, app.company.ana);
    let older = opened(&app, "5511900000001", json!({})).await;
    let newer = opened(&app, "5511900000002", json!({"userId": ana})).await;
    let other = opened(&app, "5511900000003", json!({"userId": ana})).await;
    let (into, from) = (id(&ticket(api, older).await["contact"]), id(&ticket(api, newer).await["contact"]));
    assert_eq!(open_ticket_count(&app, ana.0).await, 2, "the tables have the tickets");
    let mut lock = app.db.begin().await.expect("a transaction");
    let contact = sqlx::query("select from contacts where company_id = $1 and id = $2 for no key update");
    contact.bind(app.company.id).bind(into).execute(&mut *lock).await.expect("a lock");
    let merge =
        async { api.post_while_busy(&format!("/contacts/{into}/merge"), &json!({"fromContactId": from})).await };
    let path = format!("/users/{ana}");
    let leave = async {
        // The merge waits for the lock. Until it ends, the newer ticket cannot be unassigned.
        until_blocked(1, &mut lock, &app.db).await;
        let release = async {
            // The deletion lists both tickets before it unassigns either.
            eventually("the other ticket is unassigned", || async { ticket(api, other).await["assignedTo"].is_null() })
                .await;
            lock.rollback().await.expect("a rollback");
        };
        join(api.delete_while_busy(&path), release).await.0
    };
    let (merged, left) = join(merge, leave).await;
    merged.data(200);
    assert_eq!(left.status, 204, "{}", left.body);
    assert_eq!(ticket(api, older).await["assignedTo"], Value::Null);
    assert_eq!(open_ticket_count(&app, ana.0).await, 0);
    assert_eq!(event_types(&app, older).await.last().map(String::as_str), Some("transferred"));
    api.get(&format!("/tickets/{newer}")).await.error(404, "ERR_API_NOT_FOUND");
    app.stop().await;
}

#[actix_web::test]
async fn beyond_a_limit_the_names_of_the_users_who_left_first_are_deleted() {
    let app = TestApp::shared().await;
    let ticket_id = opened(&app, "5511900000001", json!({"userId": app.company.ana})).await;
    close(&app.api, ticket_id).await;
    let earlier = "insert into former_users (company_id, id, name, left_at)
        select $1, $2 + n, 'Former', now() - interval '1 day' + n * interval '1 ms' from generate_series(1, $3) n";
    let insert = sqlx::query(earlier).bind(app.company.id).bind(app.company.ana.0).bind(FORMER_USERS_MAX);
    insert.execute(&app.db).await.expect("as many names as are kept");
    deleted(&app.api, &format!("/users/{}", app.company.ana)).await;
    let names = "select count(*), min(id) from former_users where company_id = $1 and name = 'Former'";
    let names: (i64, i64) = sqlx::query_as(names).bind(app.company.id).fetch_one(&app.db).await.expect("the names");
    assert_eq!(names, (FORMER_USERS_MAX - 1, app.company.ana.0 + 2), "the first one is deleted");
    assert_eq!(ticket(&app.api, ticket_id).await["assignedTo"]["name"], "Ana");
    app.stop().await;
}

#[actix_web::test]
async fn cold_tickets_lose_a_user_who_leaves_as_well() {
    let engine = EngineOptions {
        idle_after: Duration::ZERO,
        sweep_every: Duration::from_millis(20),
        ..TestOptions::default().engine
    };
    let app = OwnApp::start_with(TestOptions { engine, ..TestOptions::default() }).await;
    let ana = json!({"userId": app.company.ana});
    let mut tickets = Vec::new();
    for number in 0..150 {
        tickets.push(opened(&app, &format!("55119000{number:05}"), ana.clone()).await);
    }
    eventually("every ticket is cold", || async { app.service.app.engine.hot().0 == 0 }).await;
    deleted(&app.api, &format!("/users/{}", app.company.ana)).await;
    assert_eq!(open_ticket_count(&app, app.company.ana.0).await, 0);
    for ticket_id in &tickets {
        assert_eq!(event_types(&app, *ticket_id).await, ["opened", "transferred"], "{ticket_id}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn nothing_is_assigned_to_a_user_while_they_leave() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let mut tickets = Vec::new();
    for number in 0..12 {
        tickets.push(opened(&app, &format!("55119000{number:05}"), json!({})).await);
    }
    for round in 0..8 {
        let email = format!("carla{round}@example.com");
        let carla = created(&app.api, "/users", json!({"name": "Carla", "email": email})).await;
        let is_deleted = AtomicBool::new(false);
        let assigning = tickets.iter().map(async |open| {
            let path = format!("/tickets/{open}");
            let mut assigned = 0;
            // One more attempt follows after the user is deleted, so that each ticket is tried at every moment.
            let mut last = false;
            while !last {
                last = is_deleted.load(Ordering::Acquire);
                let reply = app.api.post_while_busy(&format!("{path}/transfer"), &json!({"userId": carla})).await;
                match reply.status.as_u16() {
                    200 => assigned += 1,
                    404 | 422 => {}
                    _ => panic!("{}", reply.body),
                }
                // A ticket that is closed and reopened is assigned to its former user again.
                app.api.post_while_busy(&format!("{path}/close"), &json!({})).await.data(200);
                app.api.post_while_busy(&format!("{path}/reopen"), &json!({})).await.data(200);
            }
            assigned
        });
        let leaving = async {
            eventually("tickets are being assigned", || async { open_ticket_count(&app, carla).await > 0 }).await;
            let reply = app.api.delete_while_busy(&format!("/users/{carla}")).await;
            is_deleted.store(true, Ordering::Release);
            assert_eq!(reply.status, 204, "{}", reply.body);
        };
        let ((), assigned) = join(leaving, join_all(assigning)).await;
        assert!(assigned.iter().sum::<usize>() > 0, "nothing was assigned: the test proves nothing");
        assert_eq!(open_ticket_count(&app, carla).await, 0, "round {round}");
        for open in &tickets {
            assert_eq!(ticket(&app.api, *open).await["assignedTo"], Value::Null);
        }
    }
    assert_eq!(open_ticket_count(&app, company.ben.0).await, 0);
    app.stop().await;
}

#[actix_web::test]
async fn a_user_whose_deletion_was_interrupted_can_be_deleted_again() {
    let app = OwnApp::start().await;
    let company = app.company.clone();
    let open = opened(&app, "5511900000001", json!({"userId": company.ana})).await;
    let path = format!("/users/{}", company.ana);
    fail::cfg("user_released", "1*return").expect("failpoint");
    app.api.delete(&path).await.error(503, "ERR_API_UNAVAILABLE");
    // The user still exists, and can be assigned tickets immediately.
    assert_eq!(app.api.get(&path).await.data(200)["active"], true);
    assert_eq!(ticket(&app.api, open).await["assignedTo"], Value::Null);
    let transfer = format!("/tickets/{open}/transfer");
    app.api.post(&transfer, json!({"userId": company.ana})).await.data(200);

    fail::cfg("user_released", "1*return").expect("failpoint");
    app.api.delete(&path).await.error(503, "ERR_API_UNAVAILABLE");
    let app = restarted(app).await;
    app.api.post(&transfer, json!({"userId": company.ana})).await.data(200);
    // Of two deletions at once one finds no user.
    let both = join(app.api.delete_while_busy(&path), app.api.delete_while_busy(&path)).await;
    let mut statuses = [both.0.status.as_u16(), both.1.status.as_u16()];
    statuses.sort_unstable();
    assert!(statuses == [204, 404], "{statuses:?}");
    assert_eq!(open_ticket_count(&app, company.ana.0).await, 0);
    app.stop().await;
}

/// How many times a change that the service may give up is attempted.
const ATTEMPTS_MAX: usize = 10;

#[actix_web::test]
async fn no_transaction_is_idle_while_tickets_of_a_user_who_leaves_queues_are_unassigned() {
    let app = OwnApp::start().await;
    let (support, ben) = (app.company.support, app.company.ben);
    let open = opened(&app, "5511900000001", json!({"queueId": support, "userId": ben})).await;
    assert_eq!(open_ticket_count(&app, ben.0).await, 1, "the tables have the ticket");
    let is_true = async |condition: &'static str| -> bool {
        sqlx::query_scalar(condition).fetch_one(&app.db).await.expect("an answer")
    };
    let path = format!("/users/{ben}");
    // One attempt. The next one waits until the lock is released: between two attempts, no transaction is idle anyway.
    let change = async || {
        let mut lock = app.db.begin().await.expect("a transaction");
        sqlx::query("lock table tickets in access exclusive mode").execute(&mut *lock).await.expect("a lock");
        let checks = pin!(async {
            let reads = "select exists (select from pg_stat_activity where datname = current_database()
                and wait_event_type = 'Lock' and query like '%from tickets%user_id = $2%')";
            eventually("the user's tickets are being read", || async { is_true(reads).await }).await;
            let none_is_idle = "select not exists (select from pg_stat_activity where datname = current_database()
                and state like 'idle in transaction%' and query like '%users%')";
            eventually("no transaction of the change is idle", || async { is_true(none_is_idle).await }).await;
        });
        let put = pin!(app.api.put(&path, json!({"queueIds": []})));
        match select(put, checks).await {
            Either::Left((refused, _)) => {
                lock.rollback().await.expect("a rollback");
                refused.error(503, "ERR_API_UNAVAILABLE");
                refused
            }
            Either::Right(((), reply)) => {
                lock.rollback().await.expect("a rollback");
                reply.await
            }
        }
    };
    // The service gives up a statement that waits for five seconds, which may pass on a slow machine.
    let mut changed = change().await;
    for _ in 1..ATTEMPTS_MAX {
        if changed.status != 503 {
            break;
        }
        changed = change().await;
    }
    assert_eq!(changed.data(200)["queues"], json!([]), "the user has left their queues");
    assert_eq!(ticket(&app.api, open).await["assignedTo"], Value::Null);
    app.stop().await;
}

#[actix_web::test]
async fn a_change_of_queues_that_was_interrupted_can_be_repeated() {
    let app = OwnApp::start().await;
    let (support, ben) = (app.company.support, app.company.ben);
    let open = opened(&app, "5511900000001", json!({"queueId": support, "userId": ben})).await;
    let path = format!("/users/{ben}");
    let before = app.api.get(&path).await.data(200).clone();
    fail::cfg("leaver_released", "1*return").expect("failpoint");
    let change = json!({"name": "Benny", "queueIds": []});
    app.api.put(&path, change.clone()).await.error(503, "ERR_API_UNAVAILABLE");
    assert_eq!(app.api.get(&path).await.data(200), &before, "nothing of the user has changed");
    assert_eq!(ticket(&app.api, open).await["assignedTo"], Value::Null);
    // The user is still in the queues, and can be assigned tickets there immediately.
    app.api.post(&format!("/tickets/{open}/transfer"), json!({"userId": ben})).await.data(200);

    let changed = app.api.put(&path, change).await;
    assert_eq!((&changed.data(200)["name"], &changed.data(200)["queues"]), (&json!("Benny"), &json!([])));
    assert_eq!(event_types(&app, open).await, ["opened", "transferred", "transferred", "transferred"]);
    assert_eq!(open_ticket_count(&app, ben.0).await, 0);
    app.stop().await;
}

#[actix_web::test]
async fn a_user_keeps_no_ticket_of_a_queue_that_they_join_during_a_change_of_their_queues() {
    let app = TestApp::shared().await;
    let (company, support, sales, ben) = (app.company.id, app.company.support, app.company.sales, app.company.ben);
    let path = format!("/users/{ben}");
    // As the change begins, its user leaves no queue, or one.
    for (number, queues) in [("5511900000001", json!([support])), ("5511900000002", json!([]))] {
        app.api.put(&path, json!({"queueIds": [support, sales]})).await.data(200);
        let open = opened(&app, number, json!({"queueId": sales, "userId": ben})).await;
        users::QUEUES.remove(&app.db, company, ben, sales).await.expect("the user has left the queue");
        // The user joins the queue again after the change has read their queues, and before its transaction.
        let mut joining = app.db.begin().await.expect("a transaction");
        users::lock(&mut joining, company, ben).await.expect("a lock");
        users::QUEUES.add(&mut *joining, company, ben, sales).await.expect("a link");
        let join_queue = async {
            until_blocked(1, &mut joining, &app.db).await;
            joining.commit().await.expect("a commit");
        };
        let (changed, ()) = join(app.api.put(&path, json!({"queueIds": queues})), join_queue).await;
        let queues_left = changed.data(200)["queues"].as_array().map(Vec::len);
        assert_eq!(queues_left, queues.as_array().map(Vec::len), "{}", changed.body);
        let shown = ticket(&app.api, open).await;
        assert_eq!((&shown["assignedTo"], &shown["queue"]["id"]), (&Value::Null, &json!(sales)), "{queues}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_link_that_two_requests_add_at_once_is_added_by_both() {
    let app = TestApp::shared().await;
    let (company, support, sales, ana) = (app.company.id, app.company.support, app.company.sales, app.company.ana);
    let mut blocker = app.db.begin().await.expect("a transaction");
    let lock = sqlx::query("select from queues where company_id = $1 and id = $2 for update");
    lock.bind(company).bind(sales).execute(&mut *blocker).await.expect("a lock");
    let add = Reply::of(app.api.request(Method::PUT, &format!("/queues/{sales}/users/{ana}")));
    let change = async {
        until_blocked(1, &mut blocker, &app.db).await;
        let release = async {
            until_blocked(2, &mut blocker, &app.db).await;
            blocker.rollback().await.expect("a rollback");
        };
        join(app.api.put(&format!("/users/{ana}"), json!({"queueIds": [support, sales]})), release).await.0
    };
    let (added, changed) = join(add, change).await;
    assert_eq!(added.status, 204, "{}", added.body);
    assert_eq!(changed.data(200)["queues"].as_array().map(Vec::len), Some(2));
    app.stop().await;
}

#[actix_web::test]
async fn a_user_leaves_a_queue_that_is_being_deleted() {
    let app = TestApp::shared().await;
    let (sales, ben) = (app.company.sales, app.company.ben);
    let board = json!({"name": "Sales", "crmBoardQueues": [{"queueId": sales}]});
    let board = created(&app.api, "/crm/boards", board).await;
    // The deletion changes the queue's boards and users, and then it locks the queue.
    let mut blocker = app.db.begin().await.expect("a transaction");
    let lock = sqlx::query("select from queues where company_id = $1 and id = $2 for key share");
    lock.bind(app.company.id).bind(sales).execute(&mut *blocker).await.expect("a lock");
    let (queue_path, member_path) = (format!("/queues/{sales}"), format!("/queues/{sales}/users/{ben}"));
    let leave = async {
        until_blocked(1, &mut blocker, &app.db).await;
        let release = async {
            until_blocked(2, &mut blocker, &app.db).await;
            blocker.rollback().await.expect("a rollback");
        };
        join(app.api.delete(&member_path), release).await.0
    };
    let (removed, left) = join(app.api.delete(&queue_path), leave).await;
    assert_eq!(removed.status, 204, "{}", removed.body);
    assert_eq!(left.status, 204, "{}", left.body);
    let board = app.api.get(&format!("/crm/boards/{board}")).await;
    assert_eq!(board.data(200)["queues"], json!([]), "the board has lost the queue");
    app.stop().await;
}
