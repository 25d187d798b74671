//! `least_busy`: who has the fewest open tickets.

use futures_util::future::join_all;
use hotline_persistence::tables::channels::ChannelType;
use serde_json::{Value, json};

use super::{Team, channel, holder, number, start, write_to};
use crate::organization::opened;
use crate::plain::deleted;
use crate::steps::{close, ids, restarted};
use crate::support::{Api, TestApp};

async fn transfer(api: &Api, ticket: i64, user: Value) {
    api.post(&format!("/tickets/{ticket}/transfer"), json!({"userId": user})).await.data(200);
}

/// One of the open tickets of an agent.
async fn open_ticket_of(api: &Api, agent: i64) -> i64 {
    ids(&api.all(&format!("/tickets?status=open&userId={agent}")).await)[0]
}

/// The agents who get the next tickets.
async fn next_agents(app: &TestApp, phone: i64, numbers: &mut impl Iterator<Item = String>, count: usize) -> Vec<i64> {
    let mut got = Vec::new();
    for number in numbers.by_ref().take(count) {
        got.push(holder(&app.api, write_to(&app.api, phone, &number).await).await.expect("an agent"));
    }
    got
}

#[actix_web::test]
async fn loads_are_counted_from_the_tables_and_follow_every_change() {
    let app = start().await;
    let team = Team::of(&app.api, "least_busy", ["Carla", "Dora", "Eva"]).await;
    let phone = channel(&app, &app.company, "One", ChannelType::Whatsapp, team.queue).await;
    let [carla, dora, eva] = team.agents[..] else { panic!("three agents") };
    let numbers = &mut (0..).map(number);
    for agent in [carla, carla, carla, dora] {
        let number = numbers.next().expect("a number");
        opened(&app, &number, json!({"queueId": team.queue, "userId": agent})).await;
    }
    // After a restart, no load is in memory.
    let app = restarted(app).await;
    assert_eq!(next_agents(&app, phone, numbers, 3).await, [eva, dora, eva]);
    assert_eq!(team.loads(&app.api).await, [3, 2, 2]);

    transfer(&app.api, open_ticket_of(&app.api, carla).await, json!(eva)).await;
    assert_eq!(next_agents(&app, phone, numbers, 2).await, [carla, dora], "2, 2, 3: equals take turns");
    transfer(&app.api, open_ticket_of(&app.api, eva).await, Value::Null).await;
    assert_eq!(next_agents(&app, phone, numbers, 1).await, [eva], "the agent from whom a ticket was taken");
    let closed = open_ticket_of(&app.api, dora).await;
    close(&app.api, closed).await;
    assert_eq!(next_agents(&app, phone, numbers, 1).await, [dora], "the agent who closed a ticket");
    app.api.post(&format!("/tickets/{closed}/reopen"), json!({})).await.data(200);
    assert_eq!(next_agents(&app, phone, numbers, 3).await, [eva, carla, dora], "3, 4, 3: the reopened one counts");
    assert_eq!(team.loads(&app.api).await, [4, 5, 4]);

    close(&app.api, open_ticket_of(&app.api, carla).await).await;
    deleted(&app.api, &format!("/users/{eva}")).await;
    let waiting = ids(&app.api.all("/tickets?status=open&unassigned=true").await);
    assert_eq!(waiting.len(), 5, "Eva's four tickets and the one taken from her do not all wait");
    assert_eq!(next_agents(&app, phone, numbers, 2).await, [carla, carla], "3, 5");
    for ticket in &waiting[..2] {
        transfer(&app.api, *ticket, json!(carla)).await;
    }
    assert_eq!(next_agents(&app, phone, numbers, 2).await, [dora, dora], "7, 5");
    transfer(&app.api, waiting[2], json!(carla)).await;
    let app = restarted(app).await;
    // After a restart turns begin with the first; loads are as they were.
    assert_eq!(next_agents(&app, phone, numbers, 2).await, [dora, carla], "8, 7, then 8, 8");
    app.stop().await;
}

#[actix_web::test]
async fn equally_loaded_agents_take_turns() {
    let app = start().await;
    let team = Team::of(&app.api, "least_busy", ["Carla", "Dora", "Eva"]).await;
    let phone = channel(&app, &app.company, "One", ChannelType::Whatsapp, team.queue).await;
    let numbers = &mut (0..).map(number);
    let [carla, dora, eva] = team.agents[..] else { panic!("three agents") };
    for _ in 0..2 {
        assert_eq!(next_agents(&app, phone, numbers, 3).await, [carla, dora, eva]);
    }
    // An agent who has just had a ticket does not get the next, though all loads are equal again: a ticket that is
    // closed by the message that opens it adds no load.
    let webchat = channel(&app, &app.company, "Shop", ChannelType::Webchat, team.queue).await;
    for expected in [carla, dora, eva] {
        let session = app.api.post("/webchat/sessions", json!({"channelId": webchat, "visitor": {}})).await;
        let contact = &session.data(201)["contact"]["id"];
        let body =
            json!({"channelId": webchat, "contactId": contact, "type": "text", "body": "Bye", "closeTicket": true});
        app.api.post("/messages", body).await.data(202);
        let tickets = app.api.all(&format!("/tickets?contactId={contact}")).await;
        assert_eq!((&tickets[0]["status"], &tickets[0]["assignedTo"]["id"]), (&json!("closed"), &json!(expected)));
    }
    assert_eq!(team.loads(&app.api).await, [2, 2, 2]);
    app.stop().await;
}

#[actix_web::test]
async fn three_hundred_tickets_opened_at_once_leave_loads_within_one_of_each_other() {
    let app = start().await;
    let api = &app.api;
    let team = Team::of(api, "least_busy", ["Carla", "Dora", "Eva"]).await;
    let one = channel(&app, &app.company, "One", ChannelType::Whatsapp, team.queue).await;
    let two = channel(&app, &app.company, "Two", ChannelType::Whatsapp, team.queue).await;
    // Carla has twenty tickets at first.
    let mut carlas_tickets = Vec::new();
    for index in 0..20 {
        let more = json!({"queueId": team.queue, "userId": team.agents[0]});
        carlas_tickets.push(opened(&app, &number(1000 + index), more).await);
    }
    join_all((0..300).map(async |index| {
        let channel = if index % 2 == 0 { one } else { two };
        write_to(api, channel, &number(index)).await;
    }))
    .await;
    let mut loads = team.loads(api).await;
    loads.sort_unstable();
    assert_eq!(loads, [106, 107, 107]);

    // Carla's first tickets close, so she gets more of the next hundred.
    join_all(carlas_tickets.iter().map(async |ticket| {
        api.post_while_busy(&format!("/tickets/{ticket}/close"), &json!({})).await.data(200);
    }))
    .await;
    join_all((300..400).map(async |index| write_to(api, one, &number(index)).await)).await;
    let mut loads = team.loads(api).await;
    loads.sort_unstable();
    assert_eq!(loads, [133, 133, 134]);
    app.stop().await;
}
