//! `round_robin`: agents take turns.

use futures_util::future::join_all;
use hotline_persistence::tables::channels::ChannelType;
use serde_json::json;

use super::{Team, channel, create_agent, holder, number, opening, start, visitor, write_as_visitor, write_to};
use crate::plain::deleted;
use crate::steps::id;

const TASKS: usize = 50;
const TICKETS: usize = 400;

#[actix_web::test]
async fn hundreds_of_tickets_that_open_at_once_are_shared_fairly_by_two_agents() {
    let app = start().await;
    let api = &app.api;
    let team = Team::of(api, "round_robin", ["Carla", "Dora"]).await;
    let one = channel(&app, &app.company, "One", ChannelType::Whatsapp, team.queue).await;
    let two = channel(&app, &app.company, "Two", ChannelType::Whatsapp, team.queue).await;
    let webchat = channel(&app, &app.company, "Shop", ChannelType::Webchat, team.queue).await;
    let mut contacts = Vec::with_capacity(TICKETS / 2);
    for index in 0..TICKETS / 2 {
        contacts.push(app.contact(&number(TICKETS + index)).await);
    }
    let contacts = &contacts;
    join_all((0..TASKS).map(async |task| {
        for index in (task..TICKETS).step_by(TASKS) {
            // The tasks run at the same time, so tickets of all kinds are opened together.
            let contact = contacts.get(index / 4 + (index % 2) * (TICKETS / 4));
            match index % 4 {
                0 => drop(write_to(api, one, &number(index)).await),
                1 => {
                    let session = visitor(api, webchat, json!({"externalId": format!("v-{index}")})).await;
                    write_as_visitor(api, &session, "Hi").await;
                }
                2 => {
                    let open = json!({"channelId": two, "contactId": contact});
                    api.post_while_busy("/tickets", &open).await.data(201);
                }
                _ => {
                    // The channel has no queue; the request names one.
                    let open = json!({"channelId": app.company.phone, "contactId": contact, "queueId": team.queue});
                    api.post_while_busy("/tickets", &open).await.data(201);
                }
            }
        }
    }))
    .await;
    let loads = team.loads(api).await;
    assert_eq!(loads.iter().sum::<usize>(), TICKETS, "every ticket has an agent: {loads:?}");
    assert!(loads.iter().all(|load| load.abs_diff(TICKETS / 2) <= 1), "{loads:?}");
    app.stop().await;
}

#[actix_web::test]
async fn an_agent_who_is_inactive_or_outside_the_queue_has_no_turn() {
    let app = start().await;
    let api = &app.api;
    let team = Team::of(api, "round_robin", ["Carla", "Dora", "Eva"]).await;
    let phone = channel(&app, &app.company, "One", ChannelType::Whatsapp, team.queue).await;
    let [carla, dora, eva] = team.agents[..] else { panic!("three agents") };
    let mut numbers = (0..).map(number);
    let mut next = async |count: usize| {
        let mut got = Vec::new();
        for number in numbers.by_ref().take(count) {
            got.push(holder(api, write_to(api, phone, &number).await).await.expect("an agent"));
        }
        got
    };
    assert_eq!(next(4).await, [carla, dora, eva, carla]);
    // Each change applies to the first ticket that is opened after its answer.
    api.put(&format!("/users/{dora}"), json!({"active": false})).await.data(200);
    assert_eq!(next(3).await, [eva, carla, eva]);
    api.put(&format!("/users/{dora}"), json!({"active": true})).await.data(200);
    assert_eq!(next(3).await, [carla, dora, eva]);
    let fay = create_agent(api, "Fay").await;
    team.add(api, fay).await;
    assert_eq!(next(2).await, [fay, carla]);
    team.remove(api, eva).await;
    assert_eq!(next(2).await, [dora, fay]);
    deleted(api, &format!("/users/{dora}")).await;
    assert_eq!(next(2).await, [carla, fay]);
    // No agent is left in the queue: the ticket waits.
    for agent in [carla, fay] {
        team.remove(api, agent).await;
    }
    let waiting = write_to(api, phone, &number(1000)).await;
    assert_eq!(holder(api, waiting).await, None);
    // A ticket of a queue with manual distribution waits as well.
    team.add(api, fay).await;
    api.put(&format!("/queues/{}", team.queue), json!({"distribution": "manual"})).await.data(200);
    let waiting = write_to(api, phone, &number(1001)).await;
    assert_eq!(holder(api, waiting).await, None);
    app.stop().await;
}

#[actix_web::test]
async fn an_agent_whom_the_request_names_gets_the_ticket_and_uses_up_no_turn() {
    let app = start().await;
    let api = &app.api;
    let team = Team::of(api, "round_robin", ["Carla", "Dora"]).await;
    let phone = channel(&app, &app.company, "One", ChannelType::Whatsapp, team.queue).await;
    let [carla, dora] = team.agents[..] else { panic!("two agents") };
    let mut opened = Vec::new();
    for (index, user) in [None, Some(carla), Some(carla), None, None].into_iter().enumerate() {
        let mut open = json!({"channelId": phone, "contactId": app.contact(&number(index)).await});
        if let Some(user) = user {
            open["userId"] = json!(user);
        }
        opened.push(id(api.post("/tickets", open).await.data(201)));
    }
    let expected = [(carla, "Carla"), (carla, "Carla"), (carla, "Carla"), (dora, "Dora"), (carla, "Carla")];
    for (ticket, (agent, name)) in opened.iter().zip(expected) {
        assert_eq!(holder(api, *ticket).await, Some(agent));
        // The opening names the agent; none was assigned afterwards.
        assert_eq!(opening(api, *ticket).await["assignedTo"], json!({"id": agent, "name": name}));
        assert_eq!(api.all(&format!("/tickets/{ticket}/events")).await.len(), 1);
    }
    assert_eq!(team.loads(api).await, [4, 1]);
    // An opening that is refused uses up no turn.
    let contact = app.contact(&number(0)).await;
    api.post("/tickets", json!({"channelId": phone, "contactId": contact})).await.error(409, "ERR_API_CONFLICT");
    assert_eq!(holder(api, write_to(api, phone, &number(9)).await).await, Some(dora));
    app.stop().await;
}

#[actix_web::test]
async fn a_panic_while_a_ticket_is_opened_leaves_the_turn_where_it_was() {
    let app = start().await;
    let api = &app.api;
    let team = Team::of(api, "round_robin", ["Carla", "Dora"]).await;
    let phone = channel(&app, &app.company, "One", ChannelType::Whatsapp, team.queue).await;
    assert_eq!(holder(api, write_to(api, phone, &number(1)).await).await, Some(team.agents[0]));
    fail::cfg("ticket_opened", "1*panic(a defect)").expect("failpoint");
    let open = json!({"channelId": phone, "contactId": app.contact(&number(2)).await});
    api.post("/tickets", open.clone()).await.error(500, "ERR_API_INTERNAL");
    let opened = id(api.post("/tickets", open).await.data(201));
    assert_eq!(holder(api, opened).await, Some(team.agents[1]));
    app.stop().await;
}

#[actix_web::test]
async fn tickets_of_two_companies_that_open_at_once_stay_with_their_own_agents() {
    let app = start().await;
    let (other, other_api) = app.another_company().await;
    let mut teams = Vec::new();
    for (company, api) in [(&app.company, &app.api), (&other, &other_api)] {
        for (kind, names) in [("round_robin", ["Carla", "Dora"]), ("least_busy", ["Eva", "Fay"])] {
            let team = Team::of(api, kind, names).await;
            let phone = channel(&app, company, kind, ChannelType::Whatsapp, team.queue).await;
            teams.push((api, team, phone));
        }
    }
    let teams = &teams;
    join_all((0..30).map(async |index| {
        for (api, _, phone) in teams {
            write_to(api, *phone, &number(index)).await;
        }
    }))
    .await;
    for (api, team, _) in teams {
        // The agents have all tickets of their company, so none of them is assigned in the other company.
        assert_eq!(team.loads(api).await, [15, 15]);
        assert_eq!(api.all("/tickets?status=open").await.len(), 60);
    }
    app.stop().await;
}
