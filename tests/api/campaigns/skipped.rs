//! Recipients that are skipped, each with its reason, also those of a canceled campaign.

use std::time::Duration;

use hotline_actors::channels::SendingOptions;
use hotline_actors::clock;
use hotline_persistence::tables::channels::{ChannelRow, ChannelType};
use serde_json::{Value, json};

use super::{
    check_sent_once, contacts, counts, create_campaign, fast, list, numbers, office, post_verb, recipients, shown,
    wait_for_status,
};
use crate::outbox::{Office, fast as unpaced, patient};
use crate::support::provider::Answer;
use crate::support::{OwnApp, TestApp, eventually};

/// Recipients of a second campaign, which is sent during each pause of the first so that enough time passes.
const OTHER_RECIPIENTS: usize = 40;

/// Advances the clock, which must be stopped, until a condition holds. With each step, a campaign of the highest rate
/// may send one message.
async fn advance_until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let condition = || {
        clock::advance(Duration::from_millis(10));
        condition()
    };
    eventually(what, condition).await;
}

#[actix_web::test]
async fn an_unreachable_contact_is_skipped_with_the_reason_and_delays_no_other() {
    let office = Office::open().await;
    let (app, api) = (&office.app, &office.app.api);
    let channel = office.phone("1801").await.0;
    let mut all = contacts(app, 3).await;
    let opted_out = json!({"name": "Maria", "number": "5511999990000", "marketingOptOut": true});
    let opted_out = api.post("/contacts", opted_out).await.data(201)["id"].as_i64().expect("id");
    let no_number = api.post("/contacts", json!({"name": "Nobody"})).await.data(201)["id"].as_i64().expect("id");
    all.extend([opted_out, no_number]);
    // This contact wrote too long ago for anything but a template.
    sqlx::query(
        "with t as (insert into tickets (company_id, id, channel_id, contact_id, status, creation_source, unread_count,
                 reopen_count, opened_at, closed_at, created_at, updated_at)
             values ($1, -1, $2, $3, 'closed', 'contact', 0, 0, now() - interval '3 days', now(), now(), now()))
         insert into messages (company_id, id, ticket_id, contact_id, channel_id, direction, type, body, status, source,
             created_at)
         values ($1, -1, -1, $3, $2, 'inbound', 'text', 'hello', 'received', 'contact', now() - interval '3 days')",
    )
    .bind(app.company.id)
    .bind(channel)
    .bind(all[1])
    .execute(&app.db)
    .await
    .expect("a message of three days ago");
    let everybody = list(api, &all).await;
    let campaign = create_campaign(api, fast(everybody, channel, "hello")).await;
    let blank = create_campaign(api, fast(everybody, channel, "{{nothing}} ")).await;
    let on_webchat = create_campaign(api, fast(everybody, app.company.webchat.0, "hello")).await;
    for campaign in [campaign, blank, on_webchat] {
        post_verb(api, campaign, "start").await;
    }
    assert_eq!(counts(&wait_for_status(api, campaign, "completed").await), json!({"sent": 2, "skipped": 3}));
    let rows = recipients(api, campaign).await;
    let outcome = |row: &Value| (row["status"].clone(), row["error"]["code"].clone(), row["error"]["message"].clone());
    assert_eq!(outcome(&rows[0]), (json!("sent"), Value::Null, Value::Null));
    assert_eq!(
        outcome(&rows[1]),
        (json!("skipped"), json!("ERR_API_WINDOW_CLOSED"), json!("the conversation window is closed"))
    );
    let reason = "the contact cannot receive on this channel: they have no phone number";
    assert_eq!(outcome(&rows[4]), (json!("skipped"), json!("ERR_API_CONTACT_UNREACHABLE"), json!(reason)));
    assert_eq!((&rows[4]["messageId"], rows[4]["contact"]["id"].as_i64()), (&Value::Null, Some(no_number)));
    let reason = "the contact has opted out of campaigns";
    assert_eq!(outcome(&rows[3]), (json!("skipped"), json!("ERR_MARKETING_OPT_OUT"), json!(reason)));
    let mut calls: Vec<String> = office.provider.accepted("1801").into_iter().map(|call| call.to).collect();
    calls.sort_unstable();
    assert_eq!(calls, numbers(app, &[all[0], all[2]]).await);

    assert_eq!(counts(&wait_for_status(api, on_webchat, "completed").await), json!({"skipped": 5}));
    let reason = "the contact cannot receive on this channel: they have never opened a session in this webchat";
    assert_eq!(recipients(api, on_webchat).await[0]["error"]["message"], reason);
    // A text that cannot be sent is the campaign's fault: the recipients fail.
    assert_eq!(counts(&wait_for_status(api, blank, "completed").await), json!({"failed": 2, "skipped": 3}));
    let reason = "body must not be blank once its variables are filled in";
    assert_eq!(recipients(api, blank).await[0]["error"], json!({"code": "ERR_API_VALIDATION", "message": reason}));
    // A contact who opts in again is written to again.
    api.put(&format!("/contacts/{opted_out}"), json!({"marketingOptOut": false})).await.data(200);
    let again = create_campaign(api, fast(everybody, channel, "hello again")).await;
    post_verb(api, again, "start").await;
    assert_eq!(counts(&wait_for_status(api, again, "completed").await), json!({"sent": 3, "skipped": 2}));
    office.close().await;
}

#[actix_web::test]
async fn no_message_is_written_between_the_answer_to_a_pause_and_the_resume() {
    let (office, channel, all, everybody) = office("1802", 300).await;
    let api = &office.app.api;
    let other_channel = office.phone("1805").await.0;
    let other_list = list(api, &all[..OTHER_RECIPIENTS]).await;
    let campaign = create_campaign(api, fast(everybody, channel, "hello")).await;
    let messages = format!("/messages?channelId={channel}");
    // With a stopped clock, the campaign is not over before it is paused: each time, at least 20 messages have been
    // sent, and at most 64 are on their way.
    clock::stop();
    post_verb(api, campaign, "start").await;
    advance_until("some are sent", || async { office.provider.accepted_count("1802") >= 20 }).await;
    for round in 1..=3 {
        let paused = post_verb(api, campaign, "pause").await;
        assert_eq!(paused["status"], "paused");
        let written = api.all(&messages).await.len();
        // The messages that were written before the pause arrive.
        office.provider.accepts("1802", written).await;
        // Meanwhile another campaign of the same rate is sent, so that enough time passes.
        let other = create_campaign(api, fast(other_list, other_channel, "hello")).await;
        post_verb(api, other, "start").await;
        advance_until("it is completed", || async { shown(api, other).await["status"] == "completed" }).await;
        office.provider.accepts("1805", round * OTHER_RECIPIENTS).await;
        assert_eq!((api.all(&messages).await.len(), office.provider.accepted_count("1802")), (written, written));
        assert_eq!(counts(&shown(api, campaign).await), json!({"pending": 300 - written, "sent": written}));
        post_verb(api, campaign, "resume").await;
        advance_until("more are sent", || async { office.provider.accepted_count("1802") >= written + 20 }).await;
    }
    advance_until("all are sent", || async { shown(api, campaign).await["status"] == "completed" }).await;
    assert_eq!(counts(&shown(api, campaign).await), json!({"sent": 300}));
    check_sent_once(&office, "1802", channel, &all).await;
    office.close().await;
}

#[actix_web::test]
async fn after_a_cancel_nothing_arrives_but_what_was_in_flight() {
    const IN_FLIGHT_MAX: usize = 4;
    let sending = SendingOptions { in_flight_max: IN_FLIGHT_MAX, ..unpaced() };
    let office = Office::open_with(sending, patient()).await;
    let (app, api) = (&office.app, &office.app.api);
    let channel = office.phone("1803").await.0;
    let all = contacts(app, 200).await;
    let campaign = create_campaign(api, fast(list(api, &all).await, channel, "hello")).await;
    office.provider.next("1803", std::iter::repeat_n(Answer::Accept, 10));
    office.provider.always("1803", Answer::Accept.held());
    post_verb(api, campaign, "start").await;
    office.provider.accepts("1803", 10).await;
    let waiting = || async { api.all("/messages?status=queued").await.len() >= 30 };
    eventually("some wait for the provider", waiting).await;
    let canceled = post_verb(api, campaign, "cancel").await;
    let called = office.provider.calls("1803").len();
    assert_eq!(canceled["status"], "canceled");
    office.provider.always("1803", Answer::Accept);
    office.provider.release();
    // Recipients without a message are skipped at once, those with a queued message when its turn comes.
    let is_settled = || async { shown(api, campaign).await["counts"]["pending"] == 0 };
    eventually("all are settled", is_settled).await;
    // No message is queued any more, so one that is sent now is the last call.
    assert_eq!(api.all("/messages?status=queued").await.len(), 0);
    let body = json!({"channelId": channel, "number": "5511988880000", "type": "text", "body": "the last"});
    let before = office.provider.accepted_count("1803");
    api.post("/messages", body).await.data(202);
    office.provider.accepts("1803", before + 1).await;
    let calls = office.provider.calls("1803").len() - 1;
    assert!(calls <= called + IN_FLIGHT_MAX, "{calls} calls, {called} when it was canceled");
    let over = shown(api, campaign).await;
    assert_eq!(counts(&over), json!({"sent": calls, "skipped": 200 - calls}));
    assert_eq!((&over["status"], &over["completedAt"]), (&json!("canceled"), &Value::Null));
    let error =
        json!({"code": "ERR_CAMPAIGN_CANCELED", "message": "the campaign was canceled before this message was sent"});
    let rows = recipients(api, campaign).await;
    let skipped: Vec<&Value> = rows.iter().filter(|row| row["status"] == "skipped").collect();
    assert!(skipped.iter().all(|row| row["error"] == error), "{:?}", skipped[0]);
    let withdrawn = skipped.iter().filter(|row| row["messageId"].is_i64()).count();
    assert!(withdrawn > 0, "no message was queued when the campaign was canceled");
    assert_eq!(api.all("/messages?status=failed").await.len(), withdrawn);
    assert_eq!(api.delete(&format!("/campaigns/{campaign}")).await.status, 204);
    office.close().await;
}

/// A campaign of three messages, for each of which the provider was called once; the answer to the first call is lost
/// between the provider and the proxy in front of it.
async fn campaign_with_one_doubt(account: &str, sending: SendingOptions) -> (Office, ChannelRow, i64) {
    let office = Office::open_with(sending, patient()).await;
    let (app, api) = (&office.app, &office.app.api);
    let channel = office.channel(ChannelType::Whatsapp, account, |_| {}).await;
    let all = contacts(app, 3).await;
    let campaign = create_campaign(api, fast(list(api, &all).await, channel.id.0, "hello")).await;
    office.provider.next(account, [Answer::status(504)]);
    post_verb(api, campaign, "start").await;
    office.provider.called_times(account, 3).await;
    (office, channel, campaign)
}

#[actix_web::test]
async fn a_message_in_doubt_is_never_sent_again() {
    let sending = SendingOptions { outcome_wait: Duration::from_millis(1), ..unpaced() };
    let (office, channel, campaign) = campaign_with_one_doubt("1809", sending).await;
    let api = &office.app.api;
    let over = wait_for_status(api, campaign, "completed").await;
    assert_eq!(counts(&over), json!({"unknown": 1, "sent": 2}));
    let unknown = api.all(&format!("/campaigns/{campaign}/recipients?status=unknown")).await;
    assert_eq!((unknown.len(), &unknown[0]["error"]), (1, &Value::Null));
    let message = unknown[0]["messageId"].as_i64().expect("a message");
    let job = api.get(&format!("/messages/jobs/job_{message}")).await.data(200).clone();
    assert_eq!((&job["status"], &job["outcome"], &job["attempts"]), (&json!("queued"), &json!("unknown"), &json!(1)));
    let kept = api.delete(&format!("/campaigns/{campaign}")).await;
    assert_eq!(kept.status, 409, "{}", kept.body);
    // The contact's next message does not wait for it.
    let contact = unknown[0]["contact"]["id"].clone();
    let next = json!({"channelId": channel.id, "contactId": contact, "type": "text", "body": "next"});
    api.post("/messages", next).await.data(202);
    office.provider.accepts("1809", 3).await;
    // A restart does not send it either.
    let Office { app, provider } = office;
    let office = Office { app: crate::steps::restarted(app).await, provider };
    let api = &office.app.api;
    office.status(&channel, "1809", "wamid.lost", "delivered", &json!(message.to_string())).await;
    let is_settled = || async { counts(&shown(api, campaign).await) == json!({"delivered": 1, "sent": 2}) };
    eventually("a status settles it", is_settled).await;
    let job = api.get(&format!("/messages/jobs/job_{message}")).await.data(200).clone();
    assert_eq!((&job["status"], &job["outcome"], &job["attempts"]), (&json!("delivered"), &Value::Null, &json!(1)));
    assert_eq!(office.provider.calls("1809").len(), 4, "somebody was written to twice");
    assert_eq!(api.delete(&format!("/campaigns/{campaign}")).await.status, 204);
    office.close().await;
}

#[actix_web::test]
async fn a_message_in_doubt_that_no_status_names_fails_in_the_end() {
    let wait = Duration::from_millis(1);
    let sending = SendingOptions { outcome_wait: wait, give_up_after: wait, ..unpaced() };
    let (office, _, campaign) = campaign_with_one_doubt("1810", sending).await;
    let api = &office.app.api;
    let is_settled = || async { counts(&shown(api, campaign).await) == json!({"failed": 1, "sent": 2}) };
    eventually("the one in doubt fails", is_settled).await;
    let rows = recipients(api, campaign).await;
    let failed: Vec<&Value> = rows.iter().filter(|row| row["status"] == "failed").collect();
    assert_eq!(failed[0]["error"]["code"], "ERR_OUTCOME_UNKNOWN");
    assert_eq!(office.provider.calls("1810").len(), 3, "somebody was written to twice");
    office.close().await;
}

#[actix_web::test]
async fn a_withdrawn_message_is_not_sent_after_a_restart() {
    let (office, channel, _, list) = office("1804", 100).await;
    office.provider.always("1804", Answer::refuse(503, 2, "not now"));
    let api = office.app.api.clone();
    let campaign = create_campaign(&api, fast(list, channel, "hello")).await;
    post_verb(&api, campaign, "start").await;
    office.provider.called_times("1804", 50).await;
    // A pause, so that nothing in memory knows which messages wait.
    post_verb(&api, campaign, "pause").await;
    let Office { app, provider } = office;
    sqlx::query("update campaigns set status = 'canceled' where id = $1")
        .bind(campaign)
        .execute(&app.db)
        .await
        .expect("canceled");
    let app = crate::steps::restarted(app).await;
    provider.always("1804", Answer::Accept);
    let is_settled = || async { shown(&app.api, campaign).await["counts"]["pending"] == 0 };
    eventually("all are settled", is_settled).await;
    assert_eq!(provider.accepted_count("1804"), 0);
    assert_eq!(counts(&shown(&app.api, campaign).await), json!({"skipped": 100}));
    drop(provider);
    app.stop().await;
}

#[actix_web::test]
async fn messages_that_need_no_call_are_settled_while_the_channel_is_not_connected() {
    let app = OwnApp::start().await;
    let (api, channel) = (app.api.clone(), app.company.phone.0);
    let everybody = list(&api, &contacts(&app, 1).await).await;
    let mut campaigns = Vec::new();
    for message in ["canceled", "in doubt"] {
        let campaign = create_campaign(&api, fast(everybody, channel, message)).await;
        post_verb(&api, campaign, "start").await;
        let has_message = || async { recipients(&api, campaign).await[0]["messageId"].is_i64() };
        eventually("the message waits", has_message).await;
        campaigns.push(campaign);
    }
    post_verb(&api, campaigns[0], "cancel").await;
    let is_skipped = || async { counts(&shown(&api, campaigns[0]).await) == json!({"skipped": 1}) };
    eventually("it is withdrawn", is_skipped).await;
    assert_eq!(api.delete(&format!("/campaigns/{}", campaigns[0])).await.status, 204);
    // As if the process had been killed during the call.
    sqlx::query(
        "update messages set attempts = jsonb_build_object('count', 1, 'begunAt', now())
         where company_id = $1 and body = 'in doubt'",
    )
    .bind(app.company.id)
    .execute(&app.db)
    .await
    .expect("an attempt");
    let app = crate::steps::restarted(app).await;
    let over = wait_for_status(&app.api, campaigns[1], "completed").await;
    assert_eq!(counts(&over), json!({"unknown": 1}));
    app.stop().await;
}

/// Opts out three contacts, each in another way, and waits for the answers.
async fn opt_out(office: &Office, [by_change, by_import, by_word]: [i64; 3]) {
    let (app, api) = (&office.app, &office.app.api);
    api.put(&format!("/contacts/{by_change}"), json!({"marketingOptOut": true})).await.data(200);
    let row = json!({"number": numbers(app, &[by_import]).await[0], "marketingOptOut": true});
    let imported = api.post("/contacts/import", json!({"contacts": [row]})).await;
    assert_eq!(imported.data(200)["updated"], 1);
    send_stop_word(app, by_word).await;
}

/// A contact writes a stop word, on the webchat.
pub(super) async fn send_stop_word(app: &TestApp, contact: i64) {
    let session = json!({"channelId": app.company.webchat, "contactId": contact});
    let session = app.api.post("/webchat/sessions", session).await.data(201)["id"].clone();
    let path = format!("/webchat/sessions/{}/messages", session.as_str().expect("id"));
    app.api.post(&path, json!({"body": "stop"})).await.data(201);
}

#[actix_web::test]
async fn contacts_who_opt_out_while_a_campaign_waits_for_its_provider_are_skipped() {
    let (office, channel, all, everybody) = office("1808", 100).await;
    let api = &office.app.api;
    office.provider.always("1808", Answer::refuse(503, 2, "not now"));
    let campaign = create_campaign(api, fast(everybody, channel, "hello")).await;
    post_verb(api, campaign, "start").await;
    let waiting = || async { api.all("/messages?status=queued").await.len() == 64 };
    eventually("64 messages are queued", waiting).await;
    opt_out(&office, [all[30], all[31], all[32]]).await;
    // These are already in memory, but have no message yet.
    opt_out(&office, [all[80], all[81], all[82]]).await;
    // A call that began before an opt-out may arrive after it: the provider accepts only once these are skipped.
    eventually("they are withdrawn", || async {
        let rows = recipients(api, campaign).await;
        [30, 31, 32].iter().all(|number: &usize| rows[*number]["status"] == "skipped")
    })
    .await;
    office.provider.always("1808", Answer::Accept);
    assert_eq!(counts(&wait_for_status(api, campaign, "completed").await), json!({"sent": 94, "skipped": 6}));
    let rows = recipients(api, campaign).await;
    for number in [30, 31, 32, 80, 81, 82] {
        let row = &rows[number];
        assert_eq!((&row["status"], &row["error"]["code"]), (&json!("skipped"), &json!("ERR_MARKETING_OPT_OUT")));
        assert_eq!(row["messageId"].is_null(), number >= 80, "{row}");
    }
    assert_eq!(office.provider.accepted_count("1808"), 94);
    office.close().await;
}

#[actix_web::test]
async fn a_webchat_recipient_who_opts_out_before_their_turn_is_skipped_and_one_who_opts_in_is_sent_to() {
    let app = OwnApp::start().await;
    let api = &app.api;
    let mut all = Vec::new();
    for visitor in ["first", "by change", "by word", "in again"] {
        all.push(app.session(visitor).await.1.0);
    }
    api.put(&format!("/contacts/{}", all[3]), json!({"marketingOptOut": true})).await.data(200);
    let mut body = fast(list(api, &all).await, app.company.webchat.0, "hello");
    body["ratePerMinute"] = json!(60);
    let campaign = create_campaign(api, body).await;
    clock::stop();
    post_verb(api, campaign, "start").await;
    // The clock is stopped, and the second recipient is due a second later.
    let one_is_sent = || async { counts(&shown(api, campaign).await)["sent"] == 1 };
    eventually("the first is written to", one_is_sent).await;
    api.put(&format!("/contacts/{}", all[1]), json!({"marketingOptOut": true})).await.data(200);
    send_stop_word(&app, all[2]).await;
    api.put(&format!("/contacts/{}", all[3]), json!({"marketingOptOut": false})).await.data(200);
    let is_completed = || async {
        clock::advance(Duration::from_secs(1));
        shown(api, campaign).await["status"] == "completed"
    };
    eventually("the campaign is completed", is_completed).await;
    assert_eq!(counts(&shown(api, campaign).await), json!({"sent": 2, "skipped": 2}));
    let rows = recipients(api, campaign).await;
    let of = |index: usize| rows.iter().find(|row| row["contact"]["id"] == all[index]).expect("a recipient");
    for index in [1, 2] {
        assert_eq!(
            (&of(index)["error"]["code"], &of(index)["messageId"]),
            (&json!("ERR_MARKETING_OPT_OUT"), &Value::Null)
        );
    }
    assert_eq!([&of(0)["status"], &of(3)["status"]], ["sent", "sent"]);
    app.stop().await;
}
