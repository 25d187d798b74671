//! Sending a campaign: to each contact once, in order, with the results that the provider reports.

use std::time::Duration;

use hotline_actors::clock;
use serde_json::{Value, json};

use super::{
    check_sent_once, counts, create_campaign, fast, list, numbers, office, post_verb, recipients, shown,
    wait_for_status,
};
use crate::outbox::metrics::metrics;
use crate::outbox::statuses::call_hook;
use crate::outbox::{Office, fast as fast_sends, patient};
use crate::steps::{history, id, ticket};
use crate::support::provider::Answer;
use crate::support::provider::hooks::Phone;
use crate::support::{Person, eventually, seed};
use hotline_persistence::tables::channels::ChannelType;

#[actix_web::test]
async fn each_contact_is_written_to_once_and_in_order() {
    let (office, channel, contacts, list) = office("1701", 150).await;
    let (app, api) = (&office.app, &office.app.api);
    // One contact has an open ticket already.
    let open = api.post("/tickets", json!({"channelId": channel, "contactId": contacts[3]})).await;
    let open = id(open.data(201));
    let campaign = create_campaign(api, fast(list, channel, "Hello {{name}}, this is {{company}}")).await;
    post_verb(api, campaign, "start").await;
    let done = wait_for_status(api, campaign, "completed").await;
    assert_eq!(counts(&done), json!({"sent": 150}));
    check_sent_once(&office, "1701", channel, &contacts).await;
    let first = numbers(app, &contacts).await.remove(0);
    let call = office.provider.accepted("1701").into_iter().find(|call| call.to == first).expect("the first");
    assert_eq!(call.text(), "Hello Contact 1, this is Acme");

    let messages = api.all("/messages").await;
    let all = recipients(api, campaign).await;
    let of = |field: &str, rows: &[Value]| rows.iter().map(|row| row[field].clone()).collect::<Vec<_>>();
    assert_eq!(of("messageId", &all), of("id", &messages));
    assert!(all.iter().all(|row| row["status"] == "sent" && row["error"].is_null()), "{:?}", all[0]);
    assert!(messages.iter().all(|row| row["source"] == "campaign" && row["integration"]["name"] == "test"));
    assert_eq!(messages[3]["ticketId"], json!(open));
    let opened = ticket(api, messages[0]["ticketId"].as_i64().expect("ticket")).await;
    assert_eq!((&opened["creationSource"], &opened["status"]), (&json!("campaign"), &json!("open")));
    let report = api.get("/reports/messages?groupBy=channel").await;
    let sent: i64 = report.data(200).as_array().expect("rows").iter().filter_map(|row| row["outbound"].as_i64()).sum();
    assert_eq!(sent, 150, "the report does not count all messages of the campaign");
    // No contact is expected to answer soon: the tickets do not stay in memory.
    eventually("the tickets leave memory", || async { app.service.app.engine.hot().0 == 0 }).await;
    office.close().await;
}

#[actix_web::test]
async fn the_events_of_a_campaign_name_its_creator() {
    let (office, channel, contacts, list) = office("1729", 2).await;
    let (app, api) = (&office.app, &office.app.api);
    Person::give_profile(app, app.company.ana, "Administrator").await;
    let ana = Person::user(app, app.company.ana, "ana@example.com").await;
    let token_campaign = create_campaign(api, fast(list, channel, "hello")).await;
    post_verb(api, token_campaign, "start").await;
    wait_for_status(api, token_campaign, "completed").await;
    let ana_campaign = id(ana.post("/campaigns", fast(list, channel, "hello again")).await.data(201));
    ana.post(&format!("/campaigns/{ana_campaign}/start"), json!({})).await.data(200);
    wait_for_status(api, ana_campaign, "completed").await;
    let listed = async |kind: &str| api.get(&format!("/events?types={kind}&limit=100")).await.data(200).clone();
    let are_listed = || async { listed("message.created").await.as_array().is_some_and(|events| events.len() == 4) };
    eventually("all that is written is listed", are_listed).await;
    let written = listed("message.created").await;
    let (by_token, by_ana) = (&written[0]["by"], json!({"type": "user", "id": app.company.ana, "name": "Ana"}));
    assert_eq!((&by_token["type"], &by_token["name"]), (&json!("integration"), &json!("test")));
    assert_eq!(&written[1]["by"], by_token);
    for event in [&written[2], &written[3]] {
        assert_eq!((&event["by"], &event["data"]["body"]), (&by_ana, &json!("hello again")));
        assert_eq!(event["data"]["user"], json!({"id": app.company.ana, "name": "Ana"}));
        assert_eq!(event["data"]["source"], "campaign");
    }
    let opened = listed("ticket.opened").await;
    assert_eq!(opened.as_array().map(Vec::len), Some(contacts.len()));
    assert_eq!((&opened[0]["by"], &opened[1]["by"]), (by_token, by_token));
    let started = listed("campaign.started").await;
    assert_eq!((&started[0]["by"], &started[1]["by"]), (by_token, &by_ana));
    office.close().await;
}

#[actix_web::test]
async fn with_keep_closed_a_ticket_opened_by_a_campaign_is_closed_at_once() {
    let (office, _, contacts, list) = office("1702", 3).await;
    let (app, api) = (&office.app, &office.app.api);
    // The channel's queue requires a wrap-up and distributes its tickets.
    let row = office.channel(ChannelType::Whatsapp, "1712", |_| {}).await;
    sqlx::query("update channels set queue_id = $2 where id = $1")
        .bind(row.id)
        .bind(app.company.support)
        .execute(&app.db)
        .await
        .expect("queue");
    let distributes = json!({"distribution": "round_robin"});
    api.put(&format!("/queues/{}", app.company.support), distributes).await.data(200);
    let open = api.post("/tickets", json!({"channelId": row.id, "contactId": contacts[1]})).await;
    let open = id(open.data(201));
    let mut body = fast(list, row.id.0, "hello");
    body["keepClosed"] = json!(true);
    let campaign = create_campaign(api, body).await;
    post_verb(api, campaign, "start").await;
    assert_eq!(counts(&wait_for_status(api, campaign, "completed").await), json!({"sent": 3}));
    let messages = api.all("/messages").await;
    let of = |index: usize| messages[index]["ticketId"].as_i64().expect("ticket");
    assert_eq!(of(1), open);
    assert_eq!(ticket(api, open).await["status"], "open", "the campaign closed a ticket that it did not open");
    for index in [0, 2] {
        let closed = ticket(api, of(index)).await;
        assert_eq!((&closed["status"], &closed["creationSource"]), (&json!("closed"), &json!("campaign")));
        assert_eq!((&closed["assignedTo"], &closed["wrapupType"]), (&Value::Null, &Value::Null));
        assert_eq!(closed["lastMessage"]["id"], messages[index]["id"]);
        let events: Vec<String> = history(api, of(index)).await.into_iter().map(|event| event.0).collect();
        assert_eq!(events, ["opened", "closed"]);
    }
    // A contact who answers opens a new ticket.
    let number = numbers(app, &contacts).await.remove(0);
    let phone = Phone { id: "1712".to_owned(), number: "15550001712".to_owned() };
    let answer = crate::support::provider::hooks::text("wamid.answer", "Who is this?");
    call_hook(&office, &row.public_key, &phone.message(&number, "Contact", answer)).await;
    let has_new_ticket = || async {
        let tickets = api.all(&format!("/tickets?contactId={}", contacts[0])).await;
        tickets.len() == 2 && tickets[0]["status"] == "closed" && tickets[1]["creationSource"] == "contact"
    };
    eventually("the contact has a new ticket", has_new_ticket).await;
    office.close().await;
}

#[actix_web::test]
async fn statuses_from_the_provider_update_the_recipients() {
    let (office, _, contacts, list) = office("1703", 6).await;
    let (app, api) = (&office.app, &office.app.api);
    let row = office.channel(ChannelType::Whatsapp, "1713", |_| {}).await;
    office.provider.next("1713", [Answer::Accept, Answer::refuse(400, 131_026, "Message undeliverable")]);
    let mut body = fast(list, row.id.0, "hello");
    body["ratePerMinute"] = json!(300);
    let campaign = create_campaign(api, body).await;
    // The clock stands still until a call has arrived, so that the second call is the second contact's.
    clock::stop();
    post_verb(api, campaign, "start").await;
    for calls in 1..6 {
        office.provider.called_times("1713", calls).await;
        clock::advance(Duration::from_millis(200));
    }
    let done = wait_for_status(api, campaign, "completed").await;
    assert_eq!(counts(&done), json!({"sent": 5, "failed": 1}));
    let accepted: Vec<(String, String)> =
        office.provider.accepted("1713").into_iter().map(|call| (call.to, call.accepted.expect("taken"))).collect();
    let phone = Phone { id: "1713".to_owned(), number: "15550001713".to_owned() };
    let now = chrono::Utc::now().timestamp();
    for (index, status) in [(1, "delivered"), (2, "delivered"), (2, "read"), (3, "read")] {
        let (to, message_id) = &accepted[index];
        call_hook(&office, &row.public_key, &phone.status(message_id, to, status, now)).await;
    }
    let (to, message_id) = &accepted[4];
    call_hook(&office, &row.public_key, &phone.failed(message_id, to, 131_047, "Re-engagement message", now)).await;
    let expected = json!({"sent": 1, "delivered": 1, "read": 2, "failed": 2});
    eventually("all is counted", || async { counts(&shown(api, campaign).await) == expected }).await;
    let all = recipients(api, campaign).await;
    let statuses: Vec<&str> = all.iter().map(|row| row["status"].as_str().expect("status")).collect();
    assert_eq!(statuses, ["sent", "failed", "delivered", "read", "read", "failed"]);
    assert_eq!(all[1]["error"], json!({"code": "131026", "message": "Message undeliverable"}));
    assert_eq!(all[5]["error"], json!({"code": "131047", "message": "Re-engagement message"}));
    for (status, wanted) in [("sent", vec![0]), ("delivered", vec![2]), ("read", vec![3, 4]), ("failed", vec![1, 5])] {
        let rows = api.all(&format!("/campaigns/{campaign}/recipients?status={status}")).await;
        let ids: Vec<i64> = rows.iter().map(|row| id(&row["contact"])).collect();
        assert_eq!(ids, wanted.into_iter().map(|index: usize| contacts[index]).collect::<Vec<_>>(), "{status}");
    }
    assert_eq!(shown(api, campaign).await["completedAt"], done["completedAt"]);
    assert_eq!(app.api.all("/messages?status=read").await.len(), 2);
    office.close().await;
}

#[actix_web::test]
async fn a_delivery_to_a_visitor_updates_the_recipient() {
    let (office, _, _, _) = office("1704", 0).await;
    let (app, api) = (&office.app, &office.app.api);
    let (session, contact) = app.session("visitor").await;
    let list = super::list(api, &[contact.0]).await;
    let campaign = create_campaign(api, fast(list, app.company.webchat.0, "hello")).await;
    post_verb(api, campaign, "start").await;
    assert_eq!(counts(&wait_for_status(api, campaign, "completed").await), json!({"sent": 1}));
    // A message is delivered once the visitor's list shows it.
    api.get(&format!("/webchat/sessions/{}/messages", session.0)).await.data(200);
    eventually("it is delivered", || async { counts(&shown(api, campaign).await) == json!({"delivered": 1}) }).await;
    assert_eq!(recipients(api, campaign).await[0]["status"], "delivered");
    office.close().await;
}

#[actix_web::test]
async fn an_unavailable_provider_is_waited_for_with_at_most_64_messages_queued() {
    let (office, channel, contacts, list) = office("1705", 200).await;
    let api = &office.app.api;
    office.provider.always("1705", Answer::refuse(503, 2, "not now"));
    let campaign = create_campaign(api, fast(list, channel, "hello")).await;
    post_verb(api, campaign, "start").await;
    office.provider.called_times("1705", 100).await;
    // A campaign gives one channel 64 messages at once, and no more.
    let waiting = || async { api.all("/messages?status=queued").await.len() == 64 };
    eventually("64 wait", waiting).await;
    assert_eq!(counts(&shown(api, campaign).await), json!({"pending": 200}));
    office.provider.always("1705", Answer::Accept);
    assert_eq!(counts(&wait_for_status(api, campaign, "completed").await), json!({"sent": 200}));
    check_sent_once(&office, "1705", channel, &contacts).await;
    office.close().await;
}

#[actix_web::test]
async fn a_campaign_whose_company_is_dropped_from_memory_midway_writes_to_each_contact_once() {
    let (office, channel, contacts, list) = office("1706", 120).await;
    let (app, api) = (&office.app, &office.app.api);
    let mut body = fast(list, channel, "hello");
    body["ratePerMinute"] = json!(1800);
    let campaign = create_campaign(api, body).await;
    post_verb(api, campaign, "start").await;
    for accepted in [20, 60, 90] {
        office.provider.accepts("1706", accepted).await;
        eventually("it is dropped", || async { app.service.forget(app.company.id).await.is_ok() }).await;
    }
    assert_eq!(counts(&wait_for_status(api, campaign, "completed").await), json!({"sent": 120}));
    check_sent_once(&office, "1706", channel, &contacts).await;
    office.close().await;
}

#[actix_web::test]
async fn a_campaign_on_a_deleted_channel_fails_for_every_recipient_and_completes() {
    let (office, _, _, list) = office("1707", 3).await;
    let (app, api) = (&office.app, &office.app.api);
    let deleted = seed::channel(&app.db, app.company.id, "Fax", ChannelType::Whatsapp, None).await;
    app.refreshed().await;
    let campaign = create_campaign(api, fast(list, deleted.0, "hello")).await;
    crate::steps::sql(app, "delete from channels where id = $1", deleted.0).await;
    app.refreshed().await;
    post_verb(api, campaign, "start").await;
    assert_eq!(counts(&wait_for_status(api, campaign, "completed").await), json!({"failed": 3}));
    for row in recipients(api, campaign).await {
        assert_eq!(row["error"], json!({"code": "ERR_API_NOT_FOUND", "message": "the channel was deleted"}));
        assert_eq!(row["messageId"], Value::Null);
    }
    office.close().await;
}

#[actix_web::test]
async fn metrics_show_the_progress_of_campaigns() {
    let office = Office::open_with_metrics(fast_sends(), patient()).await;
    let (app, api) = (&office.app, &office.app.api);
    let channel = office.phone("1708").await.0;
    let mut all = super::contacts(app, 80).await;
    all.push(api.post("/contacts", json!({"name": "Nobody"})).await.data(201)["id"].as_i64().expect("id"));
    let everybody = list(api, &all).await;
    let ended = |end: &str| format!("hotline_campaign_recipients_ended_total{{end=\"{end}\"}}");
    let before = metrics(&office).await;
    assert_eq!((before.value("hotline_campaigns_running"), before.value(&ended("handed_over"))), (0.0, 0.0));
    office.provider.always("1708", Answer::refuse(503, 2, "not now"));
    let campaign = create_campaign(api, fast(everybody, channel, "hello")).await;
    post_verb(api, campaign, "start").await;
    let are_under_way =
        || async { metrics(&office).await.value("hotline_campaign_recipients{state=\"under_way\"}") == 64.0 };
    eventually("64 are under way", are_under_way).await;
    let busy = metrics(&office).await;
    assert_eq!(busy.value("hotline_campaigns_running"), 1.0);
    assert_eq!(busy.value("hotline_actors_hot{kind=\"campaigns\"}"), 1.0);
    assert!(busy.value("hotline_campaign_recipients{state=\"held\"}") <= 17.0);
    office.provider.always("1708", Answer::Accept);
    assert_eq!(counts(&wait_for_status(api, campaign, "completed").await), json!({"sent": 80, "skipped": 1}));
    let is_over = || async { metrics(&office).await.value("hotline_actors_hot{kind=\"campaigns\"}") == 0.0 };
    eventually("its actor leaves memory", is_over).await;
    let over = metrics(&office).await;
    let ends = ["handed_over", "skipped", "failed"].map(|end| over.value(&ended(end)));
    assert_eq!((ends, over.value("hotline_campaigns_running")), ([80.0, 1.0, 0.0], 0.0));
    office.close().await;
}

#[actix_web::test]
async fn a_campaign_completes_although_each_of_its_tasks_has_panicked_once() {
    let (office, channel, contacts, list) = office("1730", 3).await;
    let api = &office.app.api;
    for task in ["campaign_read", "campaign_page_read", "campaign_updated"] {
        fail::cfg(task, "1*panic(a defect)").expect("failpoint");
    }
    let campaign = create_campaign(api, fast(list, channel, "hello")).await;
    let path = format!("/campaigns/{campaign}/start");
    // The start is refused while the failed read is pending, and accepted once the read has been repeated.
    eventually("it starts", || async { api.post(&path, json!({})).await.status == 200 }).await;
    assert_eq!(
        counts(&wait_for_status(api, campaign, "completed").await),
        json!({"sent": 3}),
        "not every contact was sent to"
    );
    check_sent_once(&office, "1730", channel, &contacts).await;
    office.close().await;
}
