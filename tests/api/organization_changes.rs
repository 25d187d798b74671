//! Changes to the organization while conversations continue: acknowledged changes apply to the next decision, and
//! nothing refers to a deleted record.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{join, join_all};
use hotline_persistence::QueueId;
use serde_json::{Value, json};

use crate::organization::opened;
use crate::plain::created;
use crate::support::{OwnApp, TestApp};

/// Tickets that change during a deletion: enough to meet each of its steps, few enough that it succeeds in the end.
const TICKETS: usize = 3;

async fn open_tickets(app: &TestApp, fields: &Value) -> Vec<i64> {
    let mut tickets = Vec::new();
    for number in 0..TICKETS {
        tickets.push(opened(app, &format!("55119000{number:05}"), fields.clone()).await);
    }
    tickets
}

/// Repeats a deletion until it succeeds.
async fn delete_eventually(app: &TestApp, path: &str) {
    loop {
        let reply = app.api.delete(path).await;
        match reply.status.as_u16() {
            204 => return,
            409 => {}
            _ => panic!("{}: {}", reply.status, reply.body),
        }
    }
}

/// The query's count. The list that is read first waits until every acknowledged change is in the tables.
async fn count(app: &TestApp, query: &'static str, id: i64) -> i64 {
    app.api.all("/tickets").await;
    sqlx::query_scalar(query).bind(id).fetch_one(&app.db).await.expect("a count")
}

#[actix_web::test]
async fn no_ticket_keeps_a_deleted_wrapup_type() {
    let app = TestApp::shared().await;
    let tickets = open_tickets(&app, &json!({"queueId": app.company.sales})).await;
    let category = created(&app.api, "/wrapup-categories", json!({"name": "More"})).await;
    for round in 0..8 {
        let body = json!({"name": format!("{round}"), "categoryId": category, "queueIds": [app.company.sales]});
        let kind = created(&app.api, "/wrapup-types", body).await;
        let is_deleted = AtomicBool::new(false);
        let closing = tickets.iter().map(async |ticket| {
            while !is_deleted.load(Ordering::Acquire) {
                let path = format!("/tickets/{ticket}");
                let closed = app.api.post(&format!("{path}/close"), json!({"wrapupTypeId": kind})).await;
                match closed.status.as_u16() {
                    200 => drop(app.api.post(&format!("{path}/reopen"), json!({})).await.data(200)),
                    // The type is inactive, then deleted.
                    404 | 422 => {}
                    _ => panic!("{}: {}", closed.status, closed.body),
                }
            }
        });
        let deleting = async {
            delete_eventually(&app, &format!("/wrapup-types/{kind}")).await;
            is_deleted.store(true, Ordering::Release);
        };
        join(deleting, join_all(closing)).await;
        assert_eq!(count(&app, "select count(*) from tickets where wrapup_type_id = $1", kind).await, 0);
    }
    app.stop().await;
}

#[actix_web::test]
async fn no_open_ticket_is_left_in_a_deleted_queue() {
    let app = TestApp::shared().await;
    let tickets = open_tickets(&app, &json!({})).await;
    for round in 0..8 {
        let queue = created(&app.api, "/queues", json!({"name": format!("{round}")})).await;
        let is_deleted = AtomicBool::new(false);
        let moving = tickets.iter().map(async |ticket| {
            while !is_deleted.load(Ordering::Acquire) {
                let path = format!("/tickets/{ticket}/transfer");
                let moved = app.api.post(&path, json!({"queueId": queue})).await;
                match moved.status.as_u16() {
                    200 => drop(app.api.post(&path, json!({"queueId": app.company.sales})).await.data(200)),
                    404 | 422 => {}
                    _ => panic!("{}: {}", moved.status, moved.body),
                }
            }
        });
        let deleting = async {
            delete_eventually(&app, &format!("/queues/{queue}")).await;
            is_deleted.store(true, Ordering::Release);
        };
        join(deleting, join_all(moving)).await;
        let count_open = "select count(*) from tickets where queue_id = $1 and status = 'open'";
        assert_eq!(count(&app, count_open, queue).await, 0);
    }
    app.stop().await;
}

#[actix_web::test]
async fn an_acknowledged_change_is_never_undone_by_an_older_load() {
    let app = OwnApp::start().await;
    let directory = app.service.app.engine.directory();
    let mut queues = Vec::new();
    for number in 0..12 {
        queues.push(created(&app.api, "/queues", json!({"name": format!("{number}")})).await);
    }
    let changing = queues.iter().map(async |queue| {
        for round in 0..20 {
            let name = format!("{queue} in round {round}");
            app.api.put(&format!("/queues/{queue}"), json!({"name": name})).await.data(200);
            // Until this queue's next change only this name may be seen, whatever else is loaded.
            for _ in 0..20 {
                let seen = directory.company(app.company.id).expect("the company");
                assert_eq!(seen.queues[&QueueId::new(*queue)].row.name, name);
                tokio::task::yield_now().await;
            }
        }
    });
    join_all(changing).await;
    app.stop().await;
}
