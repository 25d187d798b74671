//! The lists of tickets by last activity and by waiting time: from memory and from the tables.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::events::after;
use crate::steps::{self, ids, listed, sent, ticket};
use crate::support::open_lists::{FROM_TABLES, SORTS};
use crate::support::{Api, TestApp, check_open_lists};

/// How many changes the property test makes, and to how many tickets.
const CHANGES: usize = 120;
const TICKETS: usize = 8;

/// Opens a session of a visitor, and writes its first message. Returns the ticket and the session.
async fn open_session(app: &TestApp, visitor: &str) -> (i64, String) {
    let (session, _) = app.session(visitor).await;
    let ticket = write_message(&app.api, &session.0).await;
    (ticket, session.0)
}

async fn write_message(api: &Api, session: &str) -> i64 {
    let path = format!("/webchat/sessions/{session}/messages");
    api.post(&path, json!({"body": "Hello"})).await.data(201)["ticketId"].as_i64().expect("a ticket")
}

/// Reads a list page by page, by cursors and by page numbers, and asserts that both have the same tickets. Returns the
/// tickets.
async fn read_pages(api: &Api, path: &str, size: usize) -> Vec<Value> {
    let (mut by_cursor, mut cursor) = (Vec::new(), String::new());
    loop {
        let reply = api.get(&format!("{path}&perPage={size}&cursor={cursor}")).await;
        let rows = reply.data(200).as_array().expect("rows");
        assert!(rows.len() <= size, "{path}");
        by_cursor.extend(rows.iter().cloned());
        let Some(next) = reply.body["meta"]["nextCursor"].as_str() else { break };
        next.clone_into(&mut cursor);
    }
    let mut by_number = Vec::new();
    for page in 1.. {
        let reply = api.get(&format!("{path}&perPage={size}&page={page}")).await;
        by_number.extend(reply.data(200).as_array().expect("rows").iter().cloned());
        if reply.body["meta"]["hasMore"] == false {
            break;
        }
    }
    assert_eq!(ids(&by_number), ids(&by_cursor), "{path}");
    by_cursor
}

/// Asserts that memory and the tables list the same, also in pages of one and of three.
async fn check_pages(api: &Api, filter: &str) {
    check_open_lists(api, filter).await;
    for sort in SORTS {
        let path = format!("/tickets?status=open&{sort}{filter}");
        let listed = api.get(&path).await.data(200).clone();
        for size in [1, 3] {
            assert_eq!(Value::from(read_pages(api, &path, size).await), listed, "{path}, {size} a page");
            assert_eq!(
                Value::from(read_pages(api, &format!("{path}&{FROM_TABLES}"), size).await),
                listed,
                "{path}, {size} a page"
            );
        }
    }
}

#[actix_web::test]
async fn tickets_are_listed_by_their_last_activity_and_by_who_waits_longest() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let (ana, _) = open_session(&app, "ana").await;
    let (ben, session_of_ben) = open_session(&app, "ben").await;
    let (eva, _) = open_session(&app, "eva").await;
    let open = app.ticket("5511900000001").await.0;
    let list = async |query: &str| listed(api, &format!("/tickets?{query}")).await;
    assert_eq!(list("status=open&sort=activity").await, [open, eva, ben, ana]);
    assert_eq!(list("status=open&sort=activity&order=asc").await, [ana, ben, eva, open]);
    assert_eq!(list("status=open&sort=waiting").await, [ana, ben, eva, open]);
    assert_eq!(
        list("status=open&sort=waiting&order=desc").await,
        [eva, ben, ana, open],
        "the ticket in which nobody waits is not last"
    );

    sent(api, json!({"ticketId": ana, "type": "text", "body": "Yes?"})).await;
    assert_eq!(write_message(api, &session_of_ben).await, ben);
    app.api.post(&format!("/tickets/{eva}/notes"), json!({"body": "A note"})).await.data(201);
    app.api.post(&format!("/tickets/{eva}/transfer"), json!({"userId": app.company.ana})).await.data(200);
    assert_eq!(list("status=open&sort=activity").await, [ben, ana, open, eva], "notes or transfers are activity");
    assert_eq!(
        list("status=open&sort=waiting").await,
        [ben, eva, ana, open],
        "the wait does not begin with the first unanswered message"
    );
    let shown = ticket(api, ben).await;
    assert_eq!(shown["lastActivityAt"], shown["lastMessage"]["createdAt"]);
    let first = api.all(&format!("/tickets/{ben}/messages")).await[0]["createdAt"].clone();
    assert_eq!(shown["waitingSince"], first);
    let answered = ticket(api, ana).await;
    assert_eq!(answered["waitingSince"], Value::Null);
    assert_eq!(list(&format!("status=open&sort=activity&userId={}", app.company.ana)).await, [eva]);
    assert_eq!(list("status=open&sort=activity&unassigned=true").await, [ben, ana, open]);
    let webchat = app.company.webchat;
    assert_eq!(list(&format!("status=open&sort=waiting&channelId={webchat}")).await, [ben, eva, ana]);

    let before = ticket(api, eva).await;
    let closed = api.post(&format!("/tickets/{eva}/close"), json!({"wrapupTypeId": app.company.solved})).await;
    let closed = closed.data(200);
    assert_eq!((&closed["lastActivityAt"], &closed["waitingSince"]), (&closed["closedAt"], &Value::Null));
    let events = after(api, 0).await;
    let event = events.iter().rfind(|event| event["type"] == "ticket.closed").expect("its event");
    for field in ["lastActivityAt", "waitingSince"] {
        assert_eq!(event["previous"][field], before[field], "{field}");
        assert_eq!(event["data"][field], closed[field], "{field}");
    }
    assert_eq!(list("status=open&sort=activity").await, [ben, ana, open]);
    assert_eq!(list("status=open&sort=activity&search=ben").await, [ben]);
    assert_eq!(list("status=open&sort=waiting&search=visitor").await, Vec::<i64>::new());
    assert_eq!(api.get("/tickets?sort=age&status=open").await.invalid_fields(), ["sort"]);
    for wrong in ["sort=activity", "sort=waiting&status=closed"] {
        assert_eq!(api.get(&format!("/tickets?{wrong}")).await.invalid_fields(), ["status"], "{wrong}");
    }
    assert_eq!(list("sort=id&status=closed").await, [eva]);
    let reply = api.get("/tickets?status=open&sort=activity&perPage=1&cursor=").await;
    let cursor = reply.body["meta"]["nextCursor"].as_str().expect("a cursor").to_owned();
    assert_eq!(
        api.get(&format!("/tickets?status=open&sort=waiting&cursor={cursor}")).await.invalid_fields(),
        ["cursor"]
    );
    assert_eq!(api.get(&format!("/tickets?status=open&cursor={cursor}")).await.invalid_fields(), ["cursor"]);
    app.stop().await;
}

/// A change that happens to a ticket, or to its contact or queue.
#[derive(Clone, Debug)]
enum Change {
    Written,
    Answered,
    Read,
    Noted,
    Closed,
    Reopened,
    Transferred { queue: Option<usize>, user: Option<usize> },
    ContactRenamed,
    QueueRenamed,
}

fn changes() -> impl Strategy<Value = (usize, Change)> {
    let change = prop_oneof![
        4 => Just(Change::Written),
        3 => Just(Change::Answered),
        1 => Just(Change::Read),
        1 => Just(Change::Noted),
        2 => Just(Change::Closed),
        1 => Just(Change::Reopened),
        3 => (proptest::option::of(0..2_usize), proptest::option::of(0..2_usize))
            .prop_map(|(queue, user)| Change::Transferred { queue, user }),
        1 => Just(Change::ContactRenamed),
        1 => Just(Change::QueueRenamed),
    ];
    (0..TICKETS, change)
}

/// The list of a company is loaded once; after that each change updates it.
#[actix_web::test]
async fn memory_and_the_tables_list_the_same_after_every_change() {
    let app = TestApp::shared().await;
    let (api, company) = (&app.api, &app.company);
    let mut runner = TestRunner::deterministic();
    let mut visitors = Vec::new();
    for number in 0..TICKETS {
        visitors.push(open_session(&app, &format!("visitor {number}")).await);
    }
    check_pages(api, "").await;
    for step in 0..CHANGES {
        let (index, change) = changes().new_tree(&mut runner).expect("a change").current();
        let (ticket, session) = &mut visitors[index];
        let path = format!("/tickets/{ticket}");
        // Some changes are refused, for example in a closed ticket.
        match change {
            Change::Written => *ticket = write_message(api, session).await,
            Change::Answered => {
                drop(api.post("/messages", json!({"ticketId": ticket, "type": "text", "body": "Yes"})).await)
            }
            Change::Read => drop(api.post(&format!("{path}/read"), json!({})).await),
            Change::Noted => drop(api.post(&format!("{path}/notes"), json!({"body": "A note"})).await),
            Change::Closed => drop(api.post(&format!("{path}/close"), json!({"wrapupTypeId": company.solved})).await),
            Change::Reopened => drop(api.post(&format!("{path}/reopen"), json!({})).await),
            Change::Transferred { queue, user } => {
                let queue = queue.map(|queue| [company.support, company.sales][queue]);
                let user = user.map(|user| [company.ana, company.ben][user]);
                drop(api.post(&format!("{path}/transfer"), json!({"queueId": queue, "userId": user})).await);
            }
            Change::ContactRenamed => {
                let contact = steps::ticket(api, *ticket).await["contact"]["id"].clone();
                api.put(&format!("/contacts/{contact}"), json!({"name": format!("Visitor {step}")})).await.data(200);
            }
            Change::QueueRenamed => {
                let path = format!("/queues/{}", company.support);
                api.put(&path, json!({"name": format!("Support {step}")})).await.data(200);
            }
        }
        for filter in ["".to_owned(), format!("&queueId={}", company.support), format!("&userId={}", company.ben)] {
            check_open_lists(api, &filter).await;
        }
        if step % 20 == 0 {
            check_pages(api, "").await;
            check_pages(api, "&unassigned=true").await;
        }
    }
    app.stop().await;
}
