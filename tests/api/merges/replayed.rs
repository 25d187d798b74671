//! Who reads the events from the first one has what the API shows, also after merges.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{contact, merge, merge_tickets};
use crate::steps::{id, sent};
use crate::support::{Api, TestApp};

/// The records as an integration keeps them, by the kind and id of each.
#[derive(Default)]
struct Kept {
    contacts: BTreeMap<i64, Value>,
    /// The contact, status and agent of each.
    tickets: BTreeMap<i64, (i64, String, Value)>,
    /// The ticket of each.
    messages: BTreeMap<i64, i64>,
}

impl Kept {
    fn apply(&mut self, event: &Value) {
        let (kind, data) = (event["type"].as_str().expect("a type"), &event["data"]);
        let merged_from = data["mergedFrom"].as_i64();
        match kind.split('.').next() {
            Some("contact") => {
                if let Some(from) = merged_from {
                    self.contacts.remove(&from);
                    let tickets = self.tickets.values_mut().filter(|(contact, ..)| *contact == from);
                    tickets.for_each(|(contact, ..)| *contact = id(data));
                }
                let mut contact = data.clone();
                contact.as_object_mut().expect("a contact").remove("mergedFrom");
                self.contacts.insert(id(data), contact);
            }
            Some("ticket") => {
                if let Some(from) = merged_from {
                    self.tickets.remove(&from);
                    let messages = self.messages.values_mut().filter(|ticket| **ticket == from);
                    messages.for_each(|ticket| *ticket = id(data));
                }
                let status = data["status"].as_str().expect("a status").to_owned();
                self.tickets.insert(id(data), (id(&data["contact"]), status, data["assignedTo"].clone()));
            }
            Some("message") => {
                self.messages.insert(id(data), data["ticketId"].as_i64().expect("a ticket"));
            }
            // Of the company.
            _ => {}
        }
    }
}

/// Follows from another event.
fn without_last_channel(mut contact: Value) -> Value {
    contact.as_object_mut().expect("a contact").remove("lastChannel");
    contact
}

async fn shown(api: &Api) -> Kept {
    let mut shown = Kept::default();
    for row in api.all("/contacts").await {
        shown.contacts.insert(id(&row), row);
    }
    for row in api.all("/tickets").await {
        let status = row["status"].as_str().expect("a status").to_owned();
        shown.tickets.insert(id(&row), (id(&row["contact"]), status, row["assignedTo"].clone()));
    }
    for row in api.all("/messages").await {
        shown.messages.insert(id(&row), row["ticketId"].as_i64().expect("a ticket"));
    }
    shown
}

#[actix_web::test]
async fn the_events_from_the_first_one_make_the_records() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let make = async |number: usize| {
        let body = json!({"name": format!("Contact {number}"), "number": format!("551190000000{number}")});
        contact(api, body).await
    };
    let mut contacts = Vec::new();
    for number in 0..4 {
        let contact = make(number).await;
        let text = json!({"channelId": app.company.phone, "contactId": contact, "type": "text", "body": "hello"});
        let ticket = sent(api, text.clone()).await["ticketId"].as_i64().expect("ticket");
        let agent = json!({"queueId": app.company.support, "userId": app.company.ana});
        api.post(&format!("/tickets/{ticket}/transfer"), agent).await.data(200);
        if number == 1 {
            let solved = json!({"wrapupTypeId": app.company.solved});
            api.post(&format!("/tickets/{ticket}/close"), solved).await.data(200);
            sent(api, text).await;
        }
        contacts.push(contact);
    }
    merge(api, contacts[0], contacts[1]).await.data(200);
    merge(api, contacts[2], contacts[3]).await.data(200);
    merge(api, contacts[2], contacts[0]).await.data(200);
    let tickets = api.all(&format!("/tickets?contactId={}", contacts[2])).await;
    let [open, closed] = ["open", "closed"].map(|status| {
        let with = tickets.iter().filter(|ticket| ticket["status"] == status);
        with.map(id).collect::<Vec<_>>()
    });
    assert_eq!((open.len(), closed.len()), (1, 1), "{tickets:?}");
    merge_tickets(api, open[0], closed[0]).await.data(200);
    let mut kept = Kept::default();
    let mut after = 0;
    loop {
        let page = api.get(&format!("/events?after={after}&limit=1000")).await;
        page.data(200).as_array().expect("events").iter().for_each(|event| kept.apply(event));
        after = page.body["meta"]["lastId"].as_i64().expect("an id");
        if page.body["meta"]["hasMore"] == false {
            break;
        }
    }
    let shown = shown(api).await;
    let contacts_of = |kept: Kept| -> BTreeMap<i64, Value> {
        kept.contacts.into_iter().map(|(id, contact)| (id, without_last_channel(contact))).collect()
    };
    assert_eq!((&kept.tickets, &kept.messages), (&shown.tickets, &shown.messages));
    assert_eq!(contacts_of(kept), contacts_of(shown));
    app.stop().await;
}
