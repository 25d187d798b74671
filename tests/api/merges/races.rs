//! A message that arrives or is sent during a merge is stored once, in the conversation that stays.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::{join, join_all};
use hotline_persistence::pool::request_shares;
use hotline_persistence::tables::channels::ChannelType::Whatsapp;
use serde_json::{Value, json};

use super::{create_contact, deliver_text, merge, merge_tickets};
use crate::campaigns::{create_campaign, fast, list, post_verb, wait_for_status};
use crate::hooks::{ProviderChannel, Setup, messages, tickets};
use crate::outbox::Office;
use crate::steps::{close, id, listed, sent};
use crate::support::provider::Answer;
use crate::support::{Api, Reply, TestApp, check_events, eventually, until_blocked};

/// How many merges a test makes, each at another moment among other requests.
const ROUNDS: usize = 16;

/// The longest delay, in microseconds, of a merge after the other requests.
const DELAY_US_MAX: u64 = 8_000;

/// A request beside a merge: an inbound text, a send, a transfer or a close. Returns whether a text was accepted.
async fn run_step(
    api: &Api,
    channel: &ProviderChannel,
    step: usize,
    body: &str,
    numbers: [&str; 2],
    contacts_and_tickets: [(i64, i64); 2],
) -> bool {
    let (contact, ticket) = contacts_and_tickets[step % 2];
    let text = |to: Value| {
        let mut text = json!({"channelId": channel.id, "type": "text", "body": body, "reopenTicket": false});
        text.as_object_mut().expect("fields").extend(to.as_object().cloned().expect("a target"));
        text
    };
    let reply = match step / 2 {
        0 => {
            deliver_text(api, channel, numbers[step % 2], body).await;
            return true;
        }
        1 => api.post("/messages", text(json!({"contactId": contact}))).await,
        2 => api.post("/messages", text(json!({"number": numbers[step % 2]}))).await,
        3 => api.post("/messages", text(json!({"ticketId": ticket}))).await,
        4 => {
            let reply = api.post(&format!("/tickets/{ticket}/transfer"), json!({"userId": null})).await;
            assert!([200, 404, 409].contains(&reply.status.as_u16()), "{}", reply.body);
            return false;
        }
        _ => {
            let reply = api.post(&format!("/tickets/{ticket}/close"), json!({})).await;
            assert!([200, 404, 409].contains(&reply.status.as_u16()), "{}", reply.body);
            return false;
        }
    };
    // A send that begins after the merge is refused with the id that stays; to a closed ticket it is refused as always.
    match reply.status.as_u16() {
        202 => true,
        404 => {
            assert!(reply.body["error"]["details"]["mergedInto"].is_i64(), "{}", reply.body);
            false
        }
        409 => {
            assert_eq!(step / 2, 3, "{}", reply.body);
            false
        }
        status => panic!("{status}: {}", reply.body),
    }
}

#[actix_web::test]
async fn a_message_during_a_merge_of_contacts_arrives_once() {
    let office = Office::open().await;
    let app = &office.app;
    let setup = Setup { provider_url: Some(&office.provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(app, &app.company, Whatsapp, setup).await;
    let api = &app.api;
    let mut expected = 0;
    for round in 0..ROUNDS {
        let numbers = [format!("551191000{round:04}"), format!("551192000{round:04}")];
        for number in &numbers {
            deliver_text(api, &channel, number, "hello").await;
        }
        let contact_and_ticket = async |number: &str| {
            let contact = listed(api, &format!("/contacts?number={number}")).await[0];
            (contact, listed(api, &format!("/tickets?contactId={contact}")).await[0])
        };
        let contacts_and_tickets = [contact_and_ticket(&numbers[0]).await, contact_and_ticket(&numbers[1]).await];
        let [(into, _), (from, _)] = contacts_and_tickets;
        let pair = [numbers[0].as_str(), numbers[1].as_str()];
        let delay = Duration::from_micros(rand::random_range(0..DELAY_US_MAX));
        let merging = async {
            // No condition is waited for: at whatever moment the merge begins, everything must arrive once.
            tokio::time::sleep(delay).await;
            merge(api, into, from).await.data(200);
            false
        };
        let steps = (0..10 + 2 * (round % 2)).map(|step| {
            let (channel, body) = (&channel, format!("{round}.{step}"));
            async move { run_step(api, channel, step, &body, pair, contacts_and_tickets).await }
        });
        let (_, accepted) = futures_util::future::join(merging, join_all(steps)).await;
        let accepted: Vec<String> = accepted
            .iter()
            .enumerate()
            .filter(|(_, accepted)| **accepted)
            .map(|(step, _)| format!("{round}.{step}"))
            .collect();
        expected += 2 + accepted.len();
        let all = messages(api, channel.id).await;
        for body in &accepted {
            let found: Vec<_> = all.iter().filter(|message| message["body"] == body.as_str()).collect();
            assert_eq!(found.len(), 1, "{body} is not stored exactly once");
            assert_eq!(found[0]["contactId"], into, "{body}");
        }
        let tickets = tickets(api, channel.id).await;
        let own: Vec<_> = tickets.iter().filter(|ticket| ticket["contact"]["id"] == into).collect();
        assert!(tickets.iter().all(|ticket| ticket["contact"]["id"] != from), "the merged contact still has a ticket");
        assert!(own.iter().filter(|ticket| ticket["status"] == "open").count() <= 1, "{own:?}");
        let ticket_ids: Vec<_> = own.iter().map(|ticket| &ticket["id"]).collect();
        let of_contact = all.iter().filter(|message| message["contactId"] == into);
        for message in of_contact {
            assert!(ticket_ids.contains(&&message["ticketId"]), "{message} is in no ticket of its contact");
        }
    }
    assert_eq!(messages(api, channel.id).await.len(), expected);
    // Every outcome is recorded, also of messages that were on their way during the merge.
    eventually("all are sent", || async {
        let all = messages(api, channel.id).await;
        all.iter().filter(|message| message["direction"] == "outbound").all(|message| message["status"] == "sent")
    })
    .await;
    check_events(&app.db, app.company.id).await;
    office.close().await;
}

#[actix_web::test]
async fn a_message_during_a_merge_of_tickets_arrives_once() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let phone = app.company.phone;
    for round in 0..ROUNDS {
        let contact = app.contact(&format!("551190000{round:04}")).await.0;
        let text = |body: String| json!({"channelId": phone, "contactId": contact, "type": "text", "body": body});
        let opened = async || sent(api, text("hello".to_owned())).await["ticketId"].as_i64().expect("ticket");
        let first = opened().await;
        close(api, first).await;
        let second = opened().await;
        let merging = async {
            tokio::time::sleep(Duration::from_micros(rand::random_range(0..DELAY_US_MAX))).await;
            merge_tickets(api, second, first).await.data(200);
        };
        let sends = (0..6).map(|step| {
            let body = format!("{round}.{step}");
            let body = match step % 3 {
                0 => text(body),
                1 => json!({"ticketId": second, "type": "text", "body": body}),
                // While another ticket is open, reopening this one is refused.
                _ => json!({"ticketId": first, "type": "text", "body": body, "reopenTicket": true}),
            };
            async move { api.post("/messages", body).await }
        });
        let (_, replies) = futures_util::future::join(merging, join_all(sends)).await;
        let accepted = replies.iter().filter(|reply| reply.status == 202).count();
        assert!(accepted >= 4, "a send to the contact or to the ticket that stays was refused");
        for reply in replies.iter().filter(|reply| reply.status != 202) {
            assert!([404, 409].contains(&reply.status.as_u16()), "{}", reply.body);
        }
        let all = api.all(&format!("/messages?contactId={contact}")).await;
        assert_eq!(all.len(), 2 + accepted);
        assert!(all.iter().all(|message| message["ticketId"] == second), "{all:?}");
        assert_eq!(listed(api, &format!("/tickets?contactId={contact}")).await, [second]);
    }
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn of_two_merges_of_the_same_contacts_one_happens() {
    let app = TestApp::shared().await;
    let api = &app.api;
    for round in 0..ROUNDS {
        let contact_and_ticket = async |name: &str| {
            let ticket = app.ticket(&format!("55119{name}000{round:04}")).await.0;
            (id(&api.get(&format!("/tickets/{ticket}")).await.data(200)["contact"]), ticket)
        };
        let [one, other, third] =
            [contact_and_ticket("1").await, contact_and_ticket("2").await, contact_and_ticket("3").await];
        let merges = [(one.0, other.0), (other.0, one.0), (other.0, third.0)];
        let replies = join_all(merges.map(|(into, from)| merge(api, into, from))).await;
        let mut merged = 0;
        for reply in &replies {
            match reply.status.as_u16() {
                200 => merged += 1,
                _ => drop(reply.error(404, "ERR_API_NOT_FOUND")),
            }
        }
        // The two in opposite directions exclude each other.
        assert!(merged >= 1 && !(replies[0].status == 200 && replies[1].status == 200), "{merged}");
        let mut contacts_left = 0;
        for (contact, _) in [one, other, third] {
            let reply = api.get(&format!("/contacts/{contact}")).await;
            if reply.status == 200 {
                let tickets = listed(api, &format!("/tickets?contactId={contact}&status=open")).await;
                assert_eq!(tickets.len(), 1, "a contact has not exactly one open ticket on the channel");
                contacts_left += 1;
            }
        }
        assert_eq!(contacts_left, 3 - merged);
    }
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

/// Starts a campaign, and makes a change after the statement that adds the recipients has read the list, but has not
/// added any.
async fn change_during_start(app: &TestApp, campaign: i64, change: impl Future<Output = Reply>) -> Reply {
    sqlx::raw_sql(
        "create function wait_for_test() returns trigger language plpgsql as $$ begin
             perform pg_advisory_xact_lock_shared(7001);
             return null;
         end $$;
         create trigger start_waits before insert on campaign_recipients
             for each statement execute function wait_for_test()",
    )
    .execute(&app.db)
    .await
    .expect("a trigger");
    let mut lock = app.db.begin().await.expect("a transaction");
    sqlx::query("select pg_advisory_xact_lock(7001)").execute(&mut *lock).await.expect("a lock");
    // On a machine of few cores, a company has only one such transaction at a time: the change begins after the start.
    let at_once = i64::try_from(request_shares().company_heavy).expect("few");
    let changing = async {
        until_blocked(1, &mut lock, &app.db).await;
        let release = async {
            until_blocked(at_once.min(2), &mut lock, &app.db).await;
            lock.rollback().await.expect("the lock is released");
        };
        join(change, release).await.0
    };
    join(post_verb(&app.api, campaign, "start"), changing).await.1
}

#[actix_web::test]
async fn after_a_merge_while_a_campaign_starts_the_contact_that_stays_is_written_to() {
    let office = Office::open().await;
    let (app, api) = (&office.app, &office.app.api);
    let channel = office.phone("1812").await.0;
    let into = create_contact(api, json!({"name": "Ana", "number": "5511900000001"})).await;
    let from = create_contact(api, json!({"name": "Other", "number": "5511900000002"})).await;
    let campaign = create_campaign(api, fast(list(api, &[from]).await, channel, "hello")).await;
    change_during_start(app, campaign, merge(api, into, from)).await.data(200);
    wait_for_status(api, campaign, "completed").await;
    let recipients = api.all(&format!("/campaigns/{campaign}/recipients")).await;
    let outcomes: Vec<_> = recipients.iter().map(|row| (&row["contact"]["id"], &row["status"])).collect();
    assert_eq!(outcomes, [(&json!(into), &json!("sent"))], "{recipients:?}");
    let to: Vec<String> = office.provider.accepted("1812").into_iter().map(|call| call.to).collect();
    assert_eq!(to, ["5511900000001"]);
    office.close().await;
}

#[actix_web::test]
async fn a_contact_that_is_deleted_while_a_campaign_starts_is_not_its_recipient() {
    let office = Office::open().await;
    let (app, api) = (&office.app, &office.app.api);
    let channel = office.phone("1813").await.0;
    let contact = create_contact(api, json!({"name": "Ana", "number": "5511900000001"})).await;
    let campaign = create_campaign(api, fast(list(api, &[contact]).await, channel, "hello")).await;
    let path = format!("/contacts/{contact}");
    let reply = change_during_start(app, campaign, api.delete_while_busy(&path)).await;
    assert_eq!(reply.status, 204, "{}", reply.body);
    wait_for_status(api, campaign, "completed").await;
    assert!(api.all(&format!("/campaigns/{campaign}/recipients")).await.is_empty(), "a deleted contact is a recipient");
    office.close().await;
}

/// A person with two contacts, each with an open ticket on two channels.
struct TwoContacts {
    numbers: [String; 2],
    contacts: [i64; 2],
    /// By contact and channel.
    tickets: [[i64; 2]; 2],
}

impl TwoContacts {
    async fn create(api: &Api, channels: &[ProviderChannel; 2], round: usize) -> Self {
        let numbers = [format!("551193000{round:04}"), format!("551194000{round:04}")];
        let (mut contacts, mut tickets) = ([0; 2], [[0; 2]; 2]);
        for (index, number) in numbers.iter().enumerate() {
            for channel in channels {
                deliver_text(api, channel, number, "hello").await;
            }
            contacts[index] = listed(api, &format!("/contacts?number={number}")).await[0];
            let found = listed(api, &format!("/tickets?contactId={}", contacts[index])).await;
            tickets[index].copy_from_slice(&found);
        }
        Self { numbers, contacts, tickets }
    }

    /// Runs a step; returns the text if one was accepted.
    async fn run_step(&self, api: &Api, channels: &[ProviderChannel; 2], step: usize) -> Option<String> {
        let body = format!("step {step}");
        let expected: &[u16] = match step {
            0 | 1 => {
                let reply = merge(api, self.contacts[step], self.contacts[1 - step]).await;
                assert!([200, 404].contains(&reply.status.as_u16()), "{}", reply.body);
                return None;
            }
            2 | 3 => {
                deliver_text(api, &channels[step - 2], &self.numbers[step - 2], &body).await;
                return Some(body);
            }
            6 => &[200, 404],
            7 => &[200, 404, 409],
            _ => &[202, 404, 409],
        };
        let reply = match step {
            4 => {
                let text = json!({"ticketId": self.tickets[1][0], "type": "text", "body": body});
                api.post("/messages", text).await
            }
            5 => {
                let to =
                    json!({"channelId": channels[1].id, "contactId": self.contacts[0], "type": "text", "body": body});
                api.post("/messages", to).await
            }
            6 => api.post(&format!("/tickets/{}/transfer", self.tickets[0][0]), json!({"userId": null})).await,
            _ => api.post(&format!("/tickets/{}/close", self.tickets[1][1]), json!({})).await,
        };
        assert!(expected.contains(&reply.status.as_u16()), "step {step}: {}", reply.body);
        (reply.status == 202).then_some(body)
    }
}

/// Every set of up to five of the steps is run, the steps of a set all at once.
#[actix_web::test]
async fn every_race_of_up_to_five_steps_on_four_tickets_loses_nothing() {
    const STEPS: usize = 8;
    let app = TestApp::shared().await;
    let channels = [ProviderChannel::phone(&app).await, ProviderChannel::phone(&app).await];
    let api = &app.api;
    let sets = (1_usize..1 << STEPS).filter(|set| set.count_ones() <= 5);
    for (round, set) in sets.enumerate() {
        let two_contacts = TwoContacts::create(api, &channels, round).await;
        let steps: Vec<usize> = (0..STEPS).filter(|step| set & (1 << step) != 0).collect();
        let accepted = join_all(steps.iter().map(|step| two_contacts.run_step(api, &channels, *step))).await;
        let accepted: Vec<String> = accepted.into_iter().flatten().collect();
        let mut messages = Vec::new();
        let mut contacts_left = 0;
        for contact in two_contacts.contacts {
            if api.get(&format!("/contacts/{contact}")).await.status == 404 {
                continue;
            }
            contacts_left += 1;
            let tickets = api.all(&format!("/tickets?contactId={contact}")).await;
            for channel in &channels {
                let is_open = |ticket: &&Value| ticket["status"] == "open" && ticket["channel"]["id"] == channel.id.0;
                assert!(tickets.iter().filter(is_open).count() <= 1, "{steps:?}: {tickets:?}");
            }
            let own = api.all(&format!("/messages?contactId={contact}")).await;
            for message in &own {
                let is_own = |ticket: &Value| ticket["id"] == message["ticketId"];
                assert!(tickets.iter().any(is_own), "{steps:?}: {message} is in no ticket of its contact");
            }
            messages.extend(own);
        }
        let has_merge = steps.iter().any(|step| *step < 2);
        assert_eq!(contacts_left, if has_merge { 1 } else { 2 }, "{steps:?}");
        assert_eq!(messages.len(), 4 + accepted.len(), "{steps:?}: {messages:?}");
        for body in accepted {
            let found = messages.iter().filter(|message| message["body"] == body.as_str()).count();
            assert_eq!(found, 1, "{steps:?}: {body}");
        }
    }
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn each_of_concurrent_merges_succeeds_or_names_the_contact_that_stays() {
    let app = TestApp::shared().await;
    let api = &app.api;
    for _ in 0..ROUNDS {
        let contact = async || id(api.post("/contacts", json!({"name": "Somebody"})).await.data(201));
        let (into, from) = (contact().await, contact().await);
        let replies =
            join_all([(into, from), (into, from), (from, into)].map(|(one, other)| merge(api, one, other))).await;
        let done: Vec<i64> =
            replies.iter().filter(|reply| reply.status == 200).map(|reply| id(reply.data(200))).collect();
        let [stays] = done[..] else { panic!("{done:?} stay") };
        for refused in replies.iter().filter(|reply| reply.status != 200) {
            assert_eq!(refused.error(404, "ERR_API_NOT_FOUND"), &json!({"mergedInto": stays}));
        }
    }
    app.stop().await;
}

/// How many messages a neighbour writes while a merge waits.
const NEIGHBOUR_MESSAGES: usize = 4;

/// How many merges the test tries. A merge gives up after five seconds, and counts only if the neighbour has written by
/// then.
const MERGES_MAX: usize = 6;

#[actix_web::test]
async fn a_message_status_during_a_merge_delays_no_other_company() {
    let office = Office::open().await;
    let (app, api) = (&office.app, &office.app.api);
    let setup = Setup { provider_url: Some(&office.provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(app, &app.company, Whatsapp, setup).await;
    let (company, neighbour) = app.another_company().await;
    let tag = id(api.post("/tags", json!({"name": "VIP"})).await.data(201));
    let contact = async |body: Value| id(api.post("/contacts", body).await.data(201));
    // When the transaction of the waiting merge began: a merge that has given up and is sent again has a later one.
    let waiting_since = async || -> Option<DateTime<Utc>> {
        let waits = "select max(xact_start) from pg_stat_activity where datname = current_database()
            and wait_event_type = 'Lock' and query like '%contact_tags%'";
        sqlx::query_scalar(waits).fetch_one(&app.db).await.expect("an answer")
    };
    for attempt in 1.. {
        let into = contact(json!({"name": "Ana"})).await;
        let number = format!("5511900000{attempt:03}");
        let from = contact(json!({"name": "Ana", "number": number, "tagIds": [tag]})).await;
        office.provider.next(&channel.account, [Answer::Held(Box::new(Answer::Accept))]);
        let message = json!({"channelId": channel.id, "contactId": from, "type": "text", "body": "on its way"});
        let message = id(&sent(api, message).await);
        office.provider.called_times(&channel.account, attempt).await;
        // The merge has locked the messages when it waits for the tag.
        let mut tag_lock = app.db.begin().await.expect("a transaction");
        let lock_tag = "select from tags where company_id = $1 and id = $2 for update";
        sqlx::query(lock_tag).bind(app.company.id).bind(tag).execute(&mut *tag_lock).await.expect("a lock");
        let merging = merge(api, into, from);
        let meanwhile = async {
            eventually("the merge waits", || async { waiting_since().await.is_some() }).await;
            let begun = waiting_since().await;
            office.provider.release();
            office.provider.accepts(&channel.account, attempt).await;
            let sending = &app.service.app.engine.sending;
            eventually("the service has the answer", || async { sending.stats().calling == 0 }).await;
            // What a neighbour writes reaches the tables.
            for count in 1..=NEIGHBOUR_MESSAGES {
                let number = format!("5511900001{attempt:03}");
                let body = json!({"channelId": company.phone, "number": number, "type": "text", "body": "hello"});
                let theirs = sent(&neighbour, body).await;
                let listed = neighbour.get(&format!("/messages?ticketId={}", theirs["ticketId"])).await;
                assert_eq!(listed.data(200).as_array().map(Vec::len), Some(count));
            }
            let still_waits = begun.is_some() && waiting_since().await == begun;
            tag_lock.rollback().await.expect("the lock is released");
            still_waits
        };
        let (merged, still_waits) = futures_util::future::join(merging, meanwhile).await;
        merged.data(200);
        let is_sent = async || api.get(&format!("/messages/{message}")).await.data(200)["status"] == "sent";
        eventually("its status is recorded", is_sent).await;
        // Otherwise the neighbour's messages may have waited for the end of the merge.
        if still_waits {
            break;
        }
        assert!(attempt < MERGES_MAX, "what a neighbour writes reaches the tables only after the merge");
    }
    office.close().await;
}

#[actix_web::test]
async fn the_messages_of_a_ticket_are_sent_in_order_across_a_merge() {
    let office = Office::open().await;
    let (app, api) = (&office.app, &office.app.api);
    let setup = Setup { provider_url: Some(&office.provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(app, &app.company, Whatsapp, setup).await;
    let contact = async |number: &str| id(api.post("/contacts", json!({"number": number})).await.data(201));
    let (into, from) = (contact("5511900000001").await, contact("5511900000002").await);
    office.provider.next(&channel.account, [Answer::Held(Box::new(Answer::Accept))]);
    let text = |to: Value, body: &str| {
        let mut text = json!({"channelId": channel.id, "type": "text", "body": body});
        text.as_object_mut().expect("fields").extend(to.as_object().cloned().expect("a recipient"));
        text
    };
    let first = sent(api, text(json!({"contactId": from}), "one")).await;
    office.provider.called_times(&channel.account, 1).await;
    merge(api, into, from).await.data(200);
    let second = sent(api, text(json!({"ticketId": first["ticketId"]}), "two")).await;
    assert_eq!(second["contactId"], into);
    // Another recipient's message leaves meanwhile.
    let other = contact("5511900000003").await;
    sent(api, text(json!({"contactId": other}), "beside")).await;
    office.provider.accepts(&channel.account, 1).await;
    office.provider.release();
    let accepted = office.provider.accepts(&channel.account, 3).await;
    assert_eq!(accepted.iter().map(|call| call.text()).collect::<Vec<_>>(), ["one", "beside", "two"]);
    office.close().await;
}
