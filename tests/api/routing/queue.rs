//! The queue of a new ticket, and the agent after a transfer.

use hotline_persistence::tables::channels::ChannelType;
use serde_json::{Value, json};

use super::{
    Team, channel, holder, number, opening, provider_channel, start, visitor, write_as_contact, write_as_visitor,
    write_to,
};
use crate::hooks::MARIA;
use crate::steps::{id, ticket};
use crate::support::provider::Answer;
use crate::support::{Provider, eventually};

#[actix_web::test]
async fn a_new_ticket_waits_in_its_channels_queue_however_it_is_opened() {
    let app = start().await;
    let (api, provider) = (&app.api, Provider::start().await);
    let team = Team::of(api, "manual", ["Carla"]).await;
    let phone = provider_channel(&app, &provider, team.queue).await;
    let webchat = channel(&app, &app.company, "Shop", ChannelType::Webchat, team.queue).await;
    let contact = app.contact(&number(1)).await;
    let open = json!({"channelId": phone.id, "contactId": contact});
    let tickets = [
        write_as_visitor(api, &visitor(api, webchat, json!({"name": "Vera"})).await, "Hi").await,
        write_as_contact(&app, &phone, MARIA, "wamid.1", "Olá").await,
        write_to(api, phone.id.0, &number(2)).await,
        id(api.post("/tickets", open).await.data(201)),
    ];
    for opened in tickets {
        let shown = ticket(api, opened).await;
        assert_eq!(shown["queue"]["id"], team.queue, "{shown}");
        assert_eq!(shown["assignedTo"], Value::Null, "a ticket of a `manual` queue was assigned: {shown}");
        let to = opening(api, opened).await;
        assert_eq!((&to["queue"]["id"], &to["assignedTo"]), (&json!(team.queue), &Value::Null));
    }
    // A queue that the request names takes precedence over the channel's.
    let contact = app.contact(&number(3)).await;
    let open = json!({"channelId": phone.id, "contactId": contact, "queueId": app.company.sales});
    let opened = id(api.post("/tickets", open).await.data(201));
    assert_eq!(ticket(api, opened).await["queue"]["id"], json!(app.company.sales));
    assert_eq!(api.all("/tickets?unassigned=true").await.len(), 5);
    app.stop().await;
}

#[actix_web::test]
async fn a_transfer_after_a_send_keeps_only_an_agent_who_belongs_to_the_queue() {
    let app = start().await;
    let (api, provider) = (&app.api, Provider::start().await);
    let team = Team::of(api, "round_robin", ["Carla", "Dora"]).await;
    let other = Team::of(api, "least_busy", ["Eva"]).await;
    // Carla works in both.
    other.add(api, team.agents[0]).await;
    let phone = provider_channel(&app, &provider, team.queue).await;
    provider.always(&phone.account, Answer::status(503));
    let mut tickets = Vec::new();
    for index in [1, 2] {
        let body = json!({"channelId": phone.id, "number": number(index), "type": "text", "body": "One moment",
            "queueId": other.queue});
        let reply = api.post("/messages", body).await;
        let job = reply.data(202)["jobId"].as_str().expect("a job").to_owned();
        let job = api.get(&format!("/messages/jobs/{job}")).await;
        tickets.push(job.data(200)["ticketId"].as_i64().expect("a ticket"));
    }
    provider.called_times(&phone.account, 4).await;
    for (opened, agent) in tickets.iter().zip(&team.agents) {
        let shown = ticket(api, *opened).await;
        assert_eq!((&shown["queue"]["id"], &shown["assignedTo"]["id"]), (&json!(team.queue), &json!(agent)));
    }
    provider.always(&phone.account, Answer::Accept);
    for opened in &tickets {
        eventually("the ticket is transferred", || async { ticket(api, *opened).await["queue"]["id"] == other.queue })
            .await;
    }
    assert_eq!(holder(api, tickets[0]).await, Some(team.agents[0]));
    // Only new tickets are distributed: a transferred one waits for an agent to take it.
    assert_eq!(holder(api, tickets[1]).await, None);
    app.stop().await;
}
