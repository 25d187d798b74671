//! Every event reaches its webhook, those of each ticket in order, however often the service is killed while they wait.
//!
//! `make test` runs a short form; `make webhooks` (or `WEBHOOKS_LONG=1`) has 10,000 events waiting.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::process::{Process, with_database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Conduct, Receiver, eventually, patience};

struct RunSize {
    tickets: usize,
    /// Notes of each ticket. Each note is an event.
    notes: usize,
    /// Kills during the delivery, after a first kill while all events wait.
    kills: usize,
    patience: Duration,
}

fn run_size() -> RunSize {
    if std::env::var_os("WEBHOOKS_LONG").is_some() {
        return RunSize { tickets: 100, notes: 100, kills: 8, patience: Duration::from_secs(300) };
    }
    RunSize { tickets: 20, notes: 25, kills: 3, patience: Duration::from_secs(60) }
}

fn serve(folder: &std::path::Path) -> Process {
    let options = ["--webhook-allow-network", "127.0.0.0/8", "--rate-per-minute=0"];
    Process::try_serve(folder, &options).unwrap_or_else(|log| panic!("hotline does not start: {log}"))
}

async fn open_ticket(api: &Api, company: &Company, number: usize) -> i64 {
    let contact = json!({"name": "Maria", "number": format!("55119{number:08}")});
    let contact = api.post("/contacts", contact).await.data(201)["id"].clone();
    let ticket = json!({"contactId": contact, "channelId": company.phone});
    api.post("/tickets", ticket).await.data(201)["id"].as_i64().expect("id")
}

#[actix_web::test]
async fn events_that_wait_when_the_service_is_killed_arrive_in_order_for_each_ticket() {
    let size = run_size();
    let total = size.tickets * size.notes;
    let folder = prepared_folder();
    let mut process = serve(folder.path());
    let company = with_database(folder.path(), async |db| Company::create(db, "Acme").await).await;
    let mut api = Api::new(process.address, &company.key);
    let is_company_known =
        || async { api.get("/channels").await.body["data"].as_array().is_some_and(|rows| rows.len() == 2) };
    eventually("the company is seen", is_company_known).await;
    let receiver = Receiver::start().await;
    // While the events are created, the endpoint takes none.
    receiver.behave(Conduct::Hang);
    let new_webhook = json!({"url": receiver.url(), "types": ["note.added"]});
    let webhook = api.post("/webhooks", new_webhook).await.data(201)["id"].as_i64().expect("id");
    let (client, acme) = (&api, &company);
    stream::iter(0..size.tickets)
        .for_each_concurrent(16, |number| async move {
            let ticket = open_ticket(client, acme, number).await;
            for text in 0..size.notes {
                let note = json!({"body": text.to_string()});
                client.post(&format!("/tickets/{ticket}/notes"), note).await.data(201);
            }
        })
        .await;
    receiver.has(1).await;
    // All events wait: those that were sent were not answered.
    process.kill();
    // If the events took long to create, attempts timed out twice, and the next one is minutes away: it is made due.
    with_database(folder.path(), async |db| {
        let due = "update webhook_deliveries set next_attempt_at = now() where next_attempt_at > now()";
        sqlx::query(due).execute(db).await.expect("deliveries");
    })
    .await;
    let hung_count = receiver.count();
    receiver.behave(Conduct::status(200));
    process = serve(folder.path());
    for kill in 1..=size.kills {
        let wanted = hung_count + total * kill / (size.kills + 2);
        eventually(&format!("{wanted} requests have arrived"), || async { receiver.count() >= wanted }).await;
        process.kill();
        process = serve(folder.path());
    }
    api = Api::new(process.address, &company.key);
    let arrived = || receiver.received()[hung_count..].to_vec();
    let distinct =
        || arrived().iter().map(crate::support::Received::id).collect::<std::collections::HashSet<_>>().len();
    let begun = std::time::Instant::now();
    while distinct() < total {
        assert!(begun.elapsed() < patience(size.patience), "{} of {total} have arrived", distinct());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut notes_by_ticket: HashMap<i64, Vec<usize>> = HashMap::new();
    for request in arrived() {
        let event = request.event();
        let note_number: usize = event["data"]["body"].as_str().and_then(|body| body.parse().ok()).expect("a number");
        let notes = notes_by_ticket.entry(request.ticket().expect("a ticket")).or_default();
        if !notes.contains(&note_number) {
            notes.push(note_number);
        }
    }
    assert_eq!(notes_by_ticket.len(), size.tickets);
    for (ticket, order) in &notes_by_ticket {
        assert_eq!(*order, (0..size.notes).collect::<Vec<_>>(), "ticket {ticket} is out of order");
    }
    let repeated = arrived().len() - total;
    println!("{total} events, {} kills: all arrived, {repeated} of them more than once", size.kills + 1);
    assert!(repeated < total, "most were sent twice: {repeated} of {total}");
    // The service has recorded the deliveries.
    eventually("nothing is pending", || async {
        let page = api.get(&format!("/webhooks/{webhook}/deliveries?status=pending")).await;
        page.status == 200 && page.body["data"].as_array().is_some_and(Vec::is_empty)
    })
    .await;
    process.terminate();
    assert!(process.wait().success());
}
