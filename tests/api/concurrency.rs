//! Many clients at once on the same conversations.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::OwnApp;

const CLIENTS: usize = 64;
const ROUNDS: usize = 12;
const CONTACTS: usize = 8;

#[actix_web::test]
async fn sixty_four_clients_on_eight_contacts_never_open_two_tickets_or_lose_a_message() {
    let app = OwnApp::start().await;
    let phone = app.company.phone;
    let numbers: Vec<String> = (0..CONTACTS).map(|contact| format!("55119000010{contact:02}")).collect();
    let clients = (0..CLIENTS).map(|client| {
        let api = app.api.clone();
        let numbers = numbers.clone();
        async move {
            let mut sent = Vec::new();
            for round in 0..ROUNDS {
                let number = &numbers[(client + round) % CONTACTS];
                let body = format!("{client}/{round}");
                let send = json!({
                    "channelId": phone, "number": number, "type": "text", "body": body,
                    "reopenTicket": (client + round) % 3 == 0,
                });
                let reply = api.retry_while_busy(|| api.request(Method::POST, "/messages").json(&send)).await;
                let job = reply.data(202)["jobId"].as_str().expect("job").to_owned();
                sent.push((body, job.clone()));
                // Some close the ticket they wrote in, and some of these reopen it: the next sends meet any state.
                if (client * 7 + round * 3) % 5 == 0 {
                    let shown_job =
                        api.retry_while_busy(|| api.request(Method::GET, &format!("/messages/jobs/{job}"))).await;
                    let ticket = shown_job.data(200)["ticketId"].clone();
                    let change = async |verb: &str| {
                        let path = format!("/tickets/{ticket}/{verb}");
                        api.retry_while_busy(|| api.request(Method::POST, &path).json(&json!({}))).await
                    };
                    let closed = change("close").await;
                    assert!([200, 409].contains(&closed.status.as_u16()), "{}", closed.body);
                    if round % 2 == 0 {
                        let reopened = change("reopen").await;
                        assert!([200, 409].contains(&reopened.status.as_u16()), "{}", reopened.body);
                    }
                }
            }
            sent
        }
    });
    let sent: HashMap<String, String> = join_all(clients).await.into_iter().flatten().collect();
    assert_eq!(sent.len(), CLIENTS * ROUNDS);

    let tickets = app.api.all("/tickets").await;
    let mut open: HashSet<i64> = HashSet::new();
    for ticket in &tickets {
        if ticket["status"] == "open" {
            assert!(open.insert(ticket["contact"]["id"].as_i64().expect("id")), "two open tickets: {ticket}");
        }
    }
    assert!(tickets.len() > CONTACTS, "nothing was ever closed: the test proves nothing");

    // Each message is stored once, with the job of its send's answer; those of a ticket are in the order of acceptance.
    let messages = app.api.all("/messages").await;
    let stored: HashMap<String, String> =
        messages.iter().map(|message| (text(message, "body"), text(message, "jobId"))).collect();
    assert_eq!(messages.len(), sent.len(), "messages were lost or doubled");
    assert_eq!(stored, sent);
    let mut by_ticket: BTreeMap<i64, Vec<(i64, String)>> = BTreeMap::new();
    for message in &messages {
        let ticket = message["ticketId"].as_i64().expect("ticket");
        by_ticket.entry(ticket).or_default().push((message["id"].as_i64().expect("id"), text(message, "createdAt")));
    }
    for (ticket, stored) in by_ticket {
        assert!(stored.is_sorted_by_key(|(_, at)| at.clone()), "ticket {ticket} is out of order: {stored:?}");
    }
    // Each ticket's history leads to its present state.
    for ticket in &tickets {
        let events = app.api.all(&format!("/tickets/{}/events", ticket["id"])).await;
        check_history(ticket, &events);
    }
    app.stop().await;
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

/// Asserts that openings and closings alternate, beginning with an opening, and end in the ticket's state.
fn check_history(ticket: &Value, events: &[Value]) {
    let mut is_open = false;
    let mut reopened = 0;
    for event in events {
        match event["type"].as_str().expect("type") {
            "opened" | "reopened" => {
                assert!(!is_open, "opened twice: {events:?}");
                is_open = true;
                reopened += i64::from(event["type"] == "reopened");
            }
            "closed" => {
                assert!(is_open, "closed twice: {events:?}");
                is_open = false;
            }
            other => panic!("unexpected {other}"),
        }
    }
    assert_eq!(is_open, ticket["status"] == "open", "{ticket} after {events:?}");
    assert_eq!(reopened, ticket["reopenCount"], "{ticket}");
}

#[actix_web::test]
async fn a_list_right_after_an_acknowledged_change_always_shows_it() {
    let app = OwnApp::start().await;
    let checked = Arc::new(AtomicUsize::new(0));
    let clients = (0..24).map(|client| {
        let api = app.api.clone();
        let checked = checked.clone();
        let phone = app.company.phone;
        async move {
            let number = format!("55119000020{client:02}");
            for round in 0..15 {
                let body = format!("{client}-{round}");
                let sent = json!({"channelId": phone, "number": number, "type": "text", "body": body});
                // Under load some requests are refused as busy at first: a company's searches run one after the other.
                let reply = api.post_while_busy("/messages", &sent).await;
                let job = reply.data(202)["jobId"].as_str().expect("job").to_owned();
                let job = api.get_while_busy(&format!("/messages/jobs/{job}")).await;
                let ticket = job.data(200)["ticketId"].clone();
                let messages = api.get_while_busy(&format!("/messages?ticketId={ticket}&order=desc&perPage=1")).await;
                assert_eq!(messages.data(200)[0]["body"], body);
                if round % 4 == 3 {
                    api.post_while_busy(&format!("/tickets/{ticket}/close"), &json!({})).await.data(200);
                    let closed_path = format!("/tickets?status=closed&order=desc&search={number}");
                    let closed = api.get_while_busy(&closed_path).await;
                    assert_eq!(closed.data(200)[0]["id"], ticket);
                } else {
                    let open = api.get_while_busy(&format!("/tickets?status=open&search={number}")).await;
                    assert_eq!(open.data(200)[0]["id"], ticket);
                    assert_eq!(open.data(200)[0]["lastMessage"]["body"], body);
                }
                checked.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    join_all(clients).await;
    assert_eq!(checked.load(Ordering::Relaxed), 24 * 15);
    app.stop().await;
}

#[actix_web::test]
async fn a_reader_sees_every_acknowledged_change_and_never_an_older_state() {
    const SENDS: usize = 300;
    const RENAMES: usize = 60;
    const READERS: usize = 8;
    let app = OwnApp::start().await;
    let ticket = app.ticket("5511900000001").await;
    let contact = app.api.get(&format!("/tickets/{ticket}")).await.data(200)["contact"]["id"].clone();
    app.api.put(&format!("/contacts/{contact}"), json!({"name": "0"})).await.data(200);
    let (sent, renamed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let number = |text: &Value| text.as_str().and_then(|text| text.parse::<usize>().ok()).unwrap_or_default();
    let sending = async {
        for count in 1..=SENDS {
            let body = json!({"ticketId": ticket, "type": "text", "body": count.to_string()});
            app.api.post_while_busy("/messages", &body).await.data(202);
            sent.store(count, Ordering::SeqCst);
        }
    };
    let renaming = async {
        for count in 1..=RENAMES {
            let body = json!({"name": count.to_string()});
            app.api.put_while_busy(&format!("/contacts/{contact}"), &body).await.data(200);
            renamed.store(count, Ordering::SeqCst);
        }
    };
    let reading = join_all((0..READERS).map(|_| async {
        let (mut seen, mut reads) = ((0, 0), 0);
        while sent.load(Ordering::SeqCst) < SENDS || renamed.load(Ordering::SeqCst) < RENAMES {
            let answered = (sent.load(Ordering::SeqCst), renamed.load(Ordering::SeqCst));
            let shown = app.api.get_while_busy(&format!("/tickets/{ticket}")).await.data(200).clone();
            let now = (number(&shown["lastMessage"]["body"]), number(&shown["contact"]["name"]));
            assert!(now.0 >= answered.0.max(seen.0), "message {now:?}, answered {answered:?}, seen {seen:?}");
            assert!(now.1 >= answered.1.max(seen.1), "name {now:?}, answered {answered:?}, seen {seen:?}");
            seen = now;
            reads += 1;
        }
        reads
    }));
    let ((), (), reads) = tokio::join!(sending, renaming, reading);
    assert!(reads.iter().all(|reads| *reads > 10), "too few reads to prove anything: {reads:?}");
    app.stop().await;
}
