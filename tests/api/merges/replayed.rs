//! A reader who applies all events from the first one on has what the API shows, also after merges.

use serde_json::json;

use super::{create_contact, merge, merge_tickets};
use crate::steps::{id, sent};
use crate::support::TestApp;
use crate::support::mirror::{Mirror, events};

#[actix_web::test]
async fn all_events_from_the_first_one_rebuild_the_records() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let create_numbered_contact = async |number: usize| {
        let body = json!({"name": format!("Contact {number}"), "number": format!("551190000000{number}")});
        create_contact(api, body).await
    };
    let mut contacts = Vec::new();
    for number in 0..4 {
        let contact = create_numbered_contact(number).await;
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
    let [open, closed] = ["open", "closed"]
        .map(|status| tickets.iter().filter(|ticket| ticket["status"] == status).map(id).collect::<Vec<_>>());
    assert_eq!((open.len(), closed.len()), (1, 1), "{tickets:?}");
    merge_tickets(api, open[0], closed[0]).await.data(200);
    assert_eq!(Mirror::from_events(&events(api).await), Mirror::from_api(api).await);
    app.stop().await;
}
