//! Nothing is sent for a company that is not active. Once it is active again, everything is sent once.

use std::time::Duration;

use chrono::{SecondsFormat, TimeDelta};
use hotline_actors::clock;
use serde_json::json;

use super::{check_sent_once, counts, create_campaign, fast, list, office, post_verb, shown, wait_for_status};
use crate::outbox::Office;
use crate::steps::{id, sql};
use crate::support::eventually;
use crate::support::provider::Answer;

/// Activates or deactivates the company, and waits until the service knows.
async fn set_active(office: &Office, is_active: bool) {
    let (statement, status) = if is_active {
        ("update companies set active = true where id = $1", 200_u16)
    } else {
        ("update companies set active = false where id = $1", 403)
    };
    sql(&office.app, statement, office.app.company.id.0).await;
    eventually(statement, || async { office.app.api.get("/tags").await.status == status }).await;
}

/// Waits for four messages of another company's campaign. The actor of that campaign sends one at each of its ticks, a
/// second apart, so the actors of the first company have had ticks of their own meanwhile.
async fn wait_for_ticks(office: &Office) {
    const TICKS: u64 = 4;
    let (company, neighbour) = office.app.another_company().await;
    let mut visitors = Vec::new();
    for number in 0..TICKS {
        let visitor = json!({"name": "Visitor", "externalId": format!("visitor-{number}")});
        let session =
            neighbour.post("/webchat/sessions", json!({"channelId": company.webchat, "visitor": visitor})).await;
        visitors.push(id(&session.data(201)["contact"]));
    }
    let mut body = fast(list(&neighbour, &visitors).await, company.webchat.0, "hello");
    body["ratePerMinute"] = json!(60);
    let campaign = create_campaign(&neighbour, body).await;
    post_verb(&neighbour, campaign, "start").await;
    for sent in 1..=TICKS {
        let has_sent = || async { shown(&neighbour, campaign).await["counts"]["sent"].as_u64() == Some(sent) };
        eventually("the other company's next message is sent", has_sent).await;
        clock::advance(Duration::from_secs(1));
    }
}

#[actix_web::test]
async fn nothing_is_sent_for_an_inactive_company_and_all_of_it_once_when_it_is_active_again() {
    const INTERVAL: Duration = Duration::from_millis(100);
    let (office, channel, contacts, everybody) = office("1904", 20).await;
    let (app, api) = (&office.app, &office.app.api);
    let other_channel = office.phone("1905").await;
    let mut body = fast(everybody, channel, "hello");
    body["ratePerMinute"] = json!(600);
    let campaign = create_campaign(api, body).await;
    clock::stop();
    let at = (clock::now() + TimeDelta::minutes(1)).to_rfc3339_opts(SecondsFormat::Millis, true);
    let contact = app.contact("5511988880002").await;
    let body = json!({"contactId": contact, "channelId": other_channel, "body": "later", "sendAt": at});
    let schedule = id(api.post("/schedules", body).await.data(201));
    office.provider.always("1905", Answer::refuse(503, 2, "not now"));
    let body = json!({"channelId": other_channel, "number": "5511988880001", "type": "text", "body": "waits"});
    api.post("/messages", body).await.data(202);
    office.provider.called_times("1905", 1).await;
    post_verb(api, campaign, "start").await;
    office.provider.accepts("1904", 1).await;
    clock::advance(INTERVAL);
    office.provider.accepts("1904", 2).await;

    set_active(&office, false).await;
    let is_calm = || async { app.service.app.engine.sending.stats().calling == 0 };
    eventually("no call is under way", is_calm).await;
    let calls = office.provider.calls("1905").len();
    office.provider.always("1905", Answer::Accept);
    // The next recipient's turn, and the time of the scheduled message, come and pass.
    clock::advance(Duration::from_secs(120));
    wait_for_ticks(&office).await;
    let stored: (i64, String) = sqlx::query_as(
        "select (select count(*) from messages where company_id = $1), status from schedules
         where company_id = $1 and id = $2",
    )
    .bind(app.company.id)
    .bind(schedule)
    .fetch_one(&app.db)
    .await
    .expect("the scheduled message");
    assert_eq!(stored, (3, "pending".to_owned()), "a message was written for the inactive company");
    assert_eq!((office.provider.calls("1904").len(), office.provider.calls("1905").len()), (2, calls));

    set_active(&office, true).await;
    for sent in 3..=contacts.len() {
        clock::advance(INTERVAL);
        office.provider.accepts("1904", sent).await;
    }
    assert_eq!(counts(&wait_for_status(api, campaign, "completed").await), json!({"sent": 20}));
    check_sent_once(&office, "1904", channel, &contacts).await;
    let is_sent = || async { api.get(&format!("/schedules/{schedule}")).await.data(200)["status"] == "sent" };
    eventually("the scheduled message is sent", is_sent).await;
    let mut to: Vec<String> = office.provider.accepts("1905", 2).await.into_iter().map(|call| call.to).collect();
    to.sort_unstable();
    assert_eq!(to, ["5511988880001", "5511988880002"]);
    office.close().await;
}
