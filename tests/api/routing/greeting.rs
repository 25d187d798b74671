//! The greeting of a contact who opens a ticket.

use hotline_persistence::tables::channels::ChannelType;
use serde_json::json;

use super::{
    Team, channel, dialogue, number, provider_channel, start, visitor, write_as_contact, write_as_visitor, write_to,
};
use crate::hooks::MARIA;
use crate::steps::{close, id, sql, ticket};
use crate::support::{Api, Provider};

async fn set_greeting(api: &Api, queue: i64, greeting: &str) {
    api.put(&format!("/queues/{queue}"), json!({"greeting": greeting})).await.data(200);
}

/// A message as [`dialogue`] shows it.
fn message(direction: &str, source: &str, body: &str) -> (String, String, String) {
    (direction.to_owned(), source.to_owned(), body.to_owned())
}

#[actix_web::test]
async fn a_visitor_is_greeted_once_per_ticket_after_their_first_message() {
    let app = start().await;
    let api = &app.api;
    let team = Team::of(api, "round_robin", ["Carla", "Dora"]).await;
    set_greeting(api, team.queue, "Hello {{firstName}} <{{email}}>, {{agent}} of {{queue}} is with you.").await;
    let webchat = channel(&app, &app.company, "Shop", ChannelType::Webchat, team.queue).await;
    let session = visitor(api, webchat, json!({"name": "Vera Lima", "email": "vera@example.com"})).await;
    let greeting = |agent: &str| {
        let text = format!("Hello Vera <vera@example.com>, {agent} of Team Carla Dora is with you.");
        message("outbound", "automation", &text)
    };

    let first = write_as_visitor(api, &session, "Hi").await;
    let expected = vec![message("inbound", "contact", "Hi"), greeting("Carla")];
    assert_eq!(dialogue(api, first).await, expected);
    // What the visitor sees, in order.
    let seen = api.all(&format!("/webchat/sessions/{session}/messages")).await;
    assert_eq!(seen.len(), 2);
    assert_eq!((&seen[0]["body"], &seen[1]["body"]), (&json!("Hi"), &json!(expected[1].2)));
    assert_eq!(ticket(api, first).await["lastMessage"]["body"], json!(expected[1].2));

    // There is no second greeting while the ticket is open, and another one for the next ticket.
    assert_eq!(write_as_visitor(api, &session, "Are you there?").await, first);
    assert_eq!(
        dialogue(api, first).await,
        [&expected[..], &[message("inbound", "contact", "Are you there?")]].concat()
    );
    close(api, first).await;
    let second = write_as_visitor(api, &session, "Me again").await;
    assert_ne!(second, first);
    assert_eq!(dialogue(api, second).await, [message("inbound", "contact", "Me again"), greeting("Dora")]);
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_is_greeted_over_the_provider_once_per_ticket() {
    let app = start().await;
    let (api, provider) = (&app.api, Provider::start().await);
    let team = Team::of(api, "manual", ["Carla"]).await;
    set_greeting(api, team.queue, "Hello {{name}}.").await;
    let phone = provider_channel(&app, &provider, team.queue).await;
    let greeting = message("outbound", "automation", "Hello Maria Silva.");

    let first = write_as_contact(&app, &phone, MARIA, "wamid.1", "Olá").await;
    assert_eq!(dialogue(api, first).await, [message("inbound", "contact", "Olá"), greeting.clone()]);
    let sent = provider.accepts(&phone.account, 1).await;
    assert_eq!((sent[0].text(), sent[0].to.as_str()), ("Hello Maria Silva.", MARIA));
    // The provider repeats the call, and the contact writes more: there is no second greeting.
    let again =
        phone.phone_account().message(MARIA, "Maria Silva", crate::support::provider::hooks::text("wamid.1", "Olá"));
    assert_eq!(phone.deliver(api, &again).await, crate::hooks::Tally { repeated: 1, ..Default::default() });
    assert_eq!(write_as_contact(&app, &phone, MARIA, "wamid.2", "Alô?").await, first);
    assert_eq!(dialogue(api, first).await.len(), 3);
    // A message that the company sends after the greeting arrives after it.
    api.post("/messages", json!({"ticketId": first, "type": "text", "body": "Here I am"})).await.data(202);
    let sent = provider.accepts(&phone.account, 2).await;
    assert_eq!(sent.iter().map(|call| call.text()).collect::<Vec<_>>(), ["Hello Maria Silva.", "Here I am"]);

    close(api, first).await;
    let second = write_as_contact(&app, &phone, MARIA, "wamid.3", "Oi").await;
    assert_eq!(dialogue(api, second).await, [message("inbound", "contact", "Oi"), greeting]);
    assert_eq!(provider.accepts(&phone.account, 3).await.len(), 3);
    app.stop().await;
}

#[actix_web::test]
async fn nobody_is_greeted_in_a_ticket_the_company_opens_or_without_a_greeting() {
    let app = start().await;
    let (api, provider) = (&app.api, Provider::start().await);
    let team = Team::of(api, "round_robin", ["Carla"]).await;
    set_greeting(api, team.queue, "Hello.").await;
    let phone = provider_channel(&app, &provider, team.queue).await;
    let written = write_to(api, phone.id.0, MARIA).await;
    assert_eq!(write_as_contact(&app, &phone, MARIA, "wamid.1", "Olá").await, written);
    assert_eq!(
        dialogue(api, written).await,
        [message("outbound", "api", "Hello"), message("inbound", "contact", "Olá")]
    );
    let contact = app.contact(&number(1)).await;
    let open = json!({"channelId": phone.id, "contactId": contact});
    let opened = id(api.post("/tickets", open).await.data(201));
    assert!(dialogue(api, opened).await.is_empty());
    // A ticket that is opened again gets no greeting.
    close(api, written).await;
    let body =
        json!({"channelId": phone.id, "number": MARIA, "type": "text", "body": "One more", "reopenTicket": true});
    api.post("/messages", body).await.data(202);
    assert_eq!(dialogue(api, written).await.len(), 3);

    // A greeting that is removed, and one that is only white space.
    for (index, greeting) in [json!(null), json!(" \n ")].into_iter().enumerate() {
        let reply = api.put(&format!("/queues/{}", team.queue), json!({"greeting": greeting})).await;
        if reply.status == 422 {
            // The API refuses such a text, but the table may have it from elsewhere.
            sql(&app, "update queues set greeting = ' ' where id = $1", team.queue).await;
        }
        let from = number(10 + index);
        let ticket = write_as_contact(&app, &phone, &from, &format!("wamid.1{index}"), &format!("Hi {index}")).await;
        assert_eq!(dialogue(api, ticket).await, [message("inbound", "contact", &format!("Hi {index}"))]);
    }
    app.stop().await;
}
