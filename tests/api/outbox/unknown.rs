//! Sends whose outcome is unknown: the provider may have the message or not.

use std::time::Duration;

use hotline::providers::ProviderOptions;
use hotline_actors::EngineOptions;
use hotline_actors::channels::SendingOptions;
use hotline_persistence::tables::channels::{ChannelRow, ChannelType};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Office, fast, number, patient};
use crate::support::form::Form;
use crate::support::provider::hooks::{Phone, signature};
use crate::support::provider::{Answer, Call};
use crate::support::seed::APP_SECRET;
use crate::support::service::TestOptions;
use crate::support::{eventually, patience};

/// Longer than any test: only a status ends the wait.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// The head of an Ogg file with Opus in it.
const OPUS: &[u8] = b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead\x01\x01\x38\x01";

/// After `outcome_wait` without a status, a message of unknown outcome is sent again.
fn sending(outcome_wait: Duration) -> SendingOptions {
    SendingOptions { outcome_wait, ..fast() }
}

/// A service with this [`sending`], whose calls wait for an answer however long a busy machine takes: only [`lost`]
/// loses an answer.
async fn office(outcome_wait: Duration) -> Office {
    Office::open_with(sending(outcome_wait), patient()).await
}

/// A service with this [`sending`], whose calls time out, yet not before a busy machine has answered them.
async fn office_with_timeouts(outcome_wait: Duration) -> Office {
    let call_time_max = patience(Duration::from_secs(5));
    Office::open_with(sending(outcome_wait), ProviderOptions { call_time_max, ..ProviderOptions::default() }).await
}

/// The answer of the proxy in front of a provider when it got none: the provider may have the message.
fn lost() -> Answer {
    Answer::status(504)
}

/// The answer of a provider that is failing: it says that it has not taken the message.
fn outage() -> Answer {
    Answer::refuse(503, 131_016, "Service unavailable")
}

impl Office {
    /// Reports a status of a message as the provider does, with the callback data that was sent with it.
    pub async fn status(&self, channel: &ChannelRow, account: &str, id: &str, status: &str, callback: &Value) {
        let phone = Phone { id: account.to_owned(), number: "15550783881".to_owned() };
        let mut body = phone.status(id, &number(1), status, chrono::Utc::now().timestamp());
        body["entry"][0]["changes"][0]["value"]["statuses"][0]["biz_opaque_callback_data"] = callback.clone();
        let body = body.to_string();
        let request = self
            .app
            .api
            .anonymous(Method::POST, &format!("/hooks/{}", channel.public_key))
            .header("x-hub-signature-256", signature(APP_SECRET, body.as_bytes()))
            .header("content-type", "application/json")
            .body(body);
        assert_eq!(request.send().await.expect("the hook answers").status(), 200);
    }
}

impl Office {
    /// The attempts and the outcome of a job.
    async fn attempts_and_outcome(&self, job: &str) -> Value {
        let job = self.app.api.get(&format!("/messages/jobs/{job}")).await.data(200).clone();
        json!([job["attempts"], job["outcome"]])
    }

    /// Waits until the outcome of a job is unknown; its message is queued as before.
    async fn wait_for_doubt(&self, job: &str) {
        let is_unknown = || async { self.attempts_and_outcome(job).await == json!([1, "unknown"]) };
        eventually("the message is in doubt", is_unknown).await;
        self.wait_for_status(job, "queued").await;
    }

    /// Sends a voice message with a text, of which the answer to the text is lost; returns its job once it is in doubt.
    async fn voice_with_lost_text(&self, channel: &ChannelRow, account: &str) -> String {
        self.provider.next(account, [Answer::Accept, lost()]);
        let form = Form::default().text("type", "media").text("channelId", channel.id).text("number", number(1));
        let form = form.text("body", "the text").file("v.ogg", "audio/ogg", OPUS);
        let job = self.app.api.send_form(form).await.data(202)["jobId"].as_str().expect("a job").to_owned();
        self.provider.called_times(account, 2).await;
        self.wait_for_doubt(&job).await;
        job
    }

    /// Lets go of the answers that are held, and waits until the job is delivered.
    async fn release_until_delivered(&self, job: &str) {
        let is_delivered = || async {
            // An answer that is not yet held is released the next time.
            self.provider.release();
            self.job(job).await["status"] == "delivered"
        };
        eventually("it is delivered", is_delivered).await;
    }

    /// Restarts the service, which then has this [`sending`].
    async fn restarted(self, outcome_wait: Duration) -> Self {
        let Self { app, provider } = self;
        let defaults = TestOptions::default();
        let engine = EngineOptions { sending: sending(outcome_wait), ..defaults.engine.clone() };
        let options = TestOptions { engine, ..defaults };
        Self { app: app.restarted(&options, async |_| {}).await, provider }
    }

    /// Stores a status that names a message, as if the process had ended before the outbox used it.
    async fn store_named(&self, channel: &ChannelRow, provider_id: &str, names: Option<i64>) {
        sqlx::query(
            "insert into early_statuses (company_id, channel_id, provider_message_id, status, at, names)
             values ($1, $2, $3, 'delivered', now(), $4)",
        )
        .bind(channel.company_id)
        .bind(channel.id)
        .bind(provider_id)
        .bind(names)
        .execute(&self.app.db)
        .await
        .expect("a status");
    }
}

#[actix_web::test]
async fn a_message_whose_answer_is_lost_is_sent_once_if_a_status_names_it() {
    let office = office_with_timeouts(FOREVER).await;
    let channel = office.channel(ChannelType::Whatsapp, "2001", |_| {}).await;
    office.provider.next("2001", [Answer::Lost]);
    let job = office.text(channel.id, &number(1), "lost").await;
    let next = office.text(channel.id, &number(1), "next").await;
    office.provider.called_times("2001", 1).await;
    office.wait_for_doubt(&job).await;
    let call = office.provider.calls("2001")[0].clone();
    // An unknown id, a text and null name no message of this channel.
    for callback in [json!("0"), json!("x"), json!(null)] {
        office.status(&channel, "2001", "wamid.nobody", "sent", &callback).await;
    }
    office.status(&channel, "2001", "wamid.lost", "delivered", &call.body["biz_opaque_callback_data"]).await;
    office.wait_for_status(&job, "delivered").await;
    office.wait_for_status(&next, "sent").await;
    let calls = office.provider.calls("2001");
    let texts: Vec<&str> = calls.iter().map(|call| call.text()).collect();
    assert_eq!(texts, ["lost", "next"], "not each text once, and in order");
    for job in [&job, &next] {
        assert_eq!(office.attempts_and_outcome(job).await, json!([1, null]));
    }
    office.status(&channel, "2001", "wamid.lost", "read", &json!(null)).await;
    office.wait_for_status(&job, "read").await;
    office.close().await;
}

#[actix_web::test]
async fn a_message_that_no_status_names_in_time_is_sent_again() {
    let office = office_with_timeouts(Duration::from_millis(1)).await;
    let channel = office.phone("2002").await;
    office.provider.next("2002", [Answer::Hang]);
    let job = office.text(channel, &number(1), "again").await;
    office.wait_for_status(&job, "sent").await;
    assert_eq!(office.attempts_and_outcome(&job).await, json!([2, null]), "it was not sent again");
    assert_eq!(office.provider.calls("2002").len(), 2);
    assert_eq!(office.provider.accepted_count("2002"), 1);
    office.close().await;
}

#[actix_web::test]
async fn a_file_that_a_status_names_is_followed_by_its_text() {
    let office = office(FOREVER).await;
    // The answer is lost, or a refusal, after the status has arrived.
    for (account, answer) in [("2003", lost()), ("2010", outage())] {
        let channel = office.channel(ChannelType::Whatsapp, account, |_| {}).await;
        office.provider.next(account, [answer.held()]);
        let form = Form::default().text("type", "media").text("channelId", channel.id).text("number", number(1));
        let form = form.text("body", "the text").file("v.ogg", "audio/ogg", OPUS);
        let job = office.app.api.send_form(form).await.data(202)["jobId"].as_str().expect("a job").to_owned();
        office.provider.called_times(account, 1).await;
        let file = office.provider.calls(account)[0].body.clone();
        office.status(&channel, account, "wamid.file", "delivered", &file["biz_opaque_callback_data"]).await;
        office.release_until_delivered(&job).await;
        let calls = office.provider.calls(account);
        assert_eq!((calls.len(), calls[1].text()), (2, "the text"), "{account}");
        assert_eq!(office.attempts_and_outcome(&job).await, json!([1, null]), "{account}");
    }
    office.close().await;
}

/// A provider that is failing may have the message all the same.
#[actix_web::test]
async fn a_message_that_a_status_has_named_is_not_sent_again_after_an_outage() {
    let office = office(FOREVER).await;
    let channel = office.channel(ChannelType::Whatsapp, "2011", |_| {}).await;
    office.provider.next("2011", [outage().held()]);
    let job = office.text(channel.id, &number(1), "named").await;
    office.provider.called_times("2011", 1).await;
    let callback = office.provider.calls("2011")[0].body["biz_opaque_callback_data"].clone();
    office.status(&channel, "2011", "wamid.named", "delivered", &callback).await;
    office.release_until_delivered(&job).await;
    assert_eq!(office.attempts_and_outcome(&job).await, json!([1, null]));
    assert_eq!(office.provider.calls("2011").len(), 1, "it was sent again");
    office.close().await;
}

/// The status arrives after the wait for it, and the message is retried only once memory no longer has the status.
#[actix_web::test]
async fn a_message_that_a_status_names_after_the_wait_is_not_sent_once_more() {
    let office = office(Duration::from_millis(1)).await;
    let channel = office.channel(ChannelType::Whatsapp, "2012", |_| {}).await;
    let path = format!("/channels/{}", channel.id);
    office.provider.next("2012", [lost(), Answer::token_refused()]);
    let job = office.text(channel.id, &number(1), "lost").await;
    eventually("the token is refused", || async { office.app.api.get(&path).await.data(200)["status"] == "error" })
        .await;
    let message = office.job(&job).await["messageId"].as_i64();
    assert!(message.is_some());
    office.store_named(&channel, "wamid.lost", message).await;
    let renew = "update channels set status = 'connected', updated_at = clock_timestamp() where id = $1";
    sqlx::query(renew).bind(channel.id).execute(&office.app.db).await.expect("a renewed token");
    office.wait_for_status(&job, "delivered").await;
    assert_eq!(office.attempts_and_outcome(&job).await, json!([1, null]));
    assert_eq!(office.provider.calls("2012").len(), 2, "it was sent a third time");
    office.close().await;
}

#[actix_web::test]
async fn a_text_whose_answer_was_lost_follows_its_file_even_after_a_restart() {
    let office = office(FOREVER).await;
    let channel = office.channel(ChannelType::Whatsapp, "2006", |_| {}).await;
    let job = office.voice_with_lost_text(&channel, "2006").await;
    let file = office.provider.calls("2006")[0].clone();
    let id = file.accepted.expect("an id");
    office.status(&channel, "2006", &id, "delivered", &file.body["biz_opaque_callback_data"]).await;
    // The wait for a status that names the text is over.
    let office = office.restarted(Duration::ZERO).await;
    office.wait_for_status(&job, "delivered").await;
    let calls = office.provider.calls("2006");
    assert_eq!((calls.len(), calls[2].text()), (3, "the text"), "not the file once, and its text twice");
    office.close().await;
}

#[actix_web::test]
async fn a_text_that_a_status_names_is_not_sent_again_after_its_file() {
    let office = office(FOREVER).await;
    for (account, reported) in [("2007", "sent"), ("2008", "failed")] {
        let channel = office.channel(ChannelType::Whatsapp, account, |_| {}).await;
        let job = office.voice_with_lost_text(&channel, account).await;
        let [file, text]: [Call; 2] = office.provider.calls(account).try_into().expect("a file and its text");
        let report = async |id: &str, status: &str, call: &Call| {
            office.status(&channel, account, id, status, &call.body["biz_opaque_callback_data"]).await;
        };
        report("wamid.text", reported, &text).await;
        let message = office.wait_for_status(&job, "sent").await;
        assert_eq!(message["error"].is_null(), reported == "sent", "{message}");
        assert_eq!(office.attempts_and_outcome(&job).await, json!([1, null]));
        // The message has the id and the status of its file.
        report("wamid.text", "read", &text).await;
        office.wait_for_status(&job, "sent").await;
        report(file.accepted.as_deref().expect("an id"), "delivered", &file).await;
        office.wait_for_status(&job, "delivered").await;
        assert_eq!(office.provider.calls(account).len(), 2, "the text was sent again");
    }
    office.close().await;
}

#[actix_web::test]
async fn the_doubt_about_a_text_outlasts_a_restart() {
    for was_named in [true, false] {
        let office = office(FOREVER).await;
        let channel = office.channel(ChannelType::Whatsapp, "2009", |_| {}).await;
        let job = office.voice_with_lost_text(&channel, "2009").await;
        let callback = office.provider.calls("2009")[1].body["biz_opaque_callback_data"].clone();
        if was_named {
            // Texts are stored under their callback data.
            office.store_named(&channel, callback.as_str().expect("a text"), None).await;
        }
        let office = office.restarted(FOREVER).await;
        if !was_named {
            office.wait_for_doubt(&job).await;
            office.status(&channel, "2009", "wamid.text", "delivered", &callback).await;
        }
        office.wait_for_status(&job, "sent").await;
        assert_eq!(office.attempts_and_outcome(&job).await, json!([1, null]));
        assert_eq!(office.provider.calls("2009").len(), 2, "the text was sent again");
        office.close().await;
    }
}

#[actix_web::test]
async fn a_message_that_no_status_can_name_is_sent_again_at_once() {
    let office = office(FOREVER).await;
    let channel = office.channel(ChannelType::Messenger, "2004", |_| {}).await;
    let contact = office.receive_from_contact(&channel, "2004").await;
    office.provider.next("2004", [lost()]);
    let text = json!({"channelId": channel.id, "contactId": contact, "type": "text", "body": "again"});
    let job = office.send(text).await;
    office.wait_for_status(&job, "sent").await;
    assert_eq!(office.provider.calls("2004").len(), 2);
    assert_eq!(office.attempts_and_outcome(&job).await, json!([2, null]));
    office.close().await;
}

#[actix_web::test]
async fn a_doubt_outlasts_a_restart() {
    for was_named in [true, false] {
        let office = office(FOREVER).await;
        let channel = office.channel(ChannelType::Whatsapp, "2005", |_| {}).await;
        office.provider.next("2005", [lost()]);
        let job = office.text(channel.id, &number(1), "lost").await;
        office.provider.called_times("2005", 1).await;
        office.wait_for_doubt(&job).await;
        let callback = office.provider.calls("2005")[0].body["biz_opaque_callback_data"].clone();
        let message = office.app.api.get(&format!("/messages/jobs/{job}")).await.data(200)["messageId"].clone();
        assert_eq!(callback, json!(message.to_string()));
        if was_named {
            office.store_named(&channel, "wamid.lost", message.as_i64()).await;
        }
        let office = office.restarted(FOREVER).await;
        if !was_named {
            office.wait_for_doubt(&job).await;
            office.status(&channel, "2005", "wamid.lost", "delivered", &callback).await;
        }
        office.wait_for_status(&job, "delivered").await;
        assert_eq!(office.attempts_and_outcome(&job).await, json!([1, null]));
        assert_eq!(office.provider.calls("2005").len(), 1, "it was sent again");
        office.close().await;
    }
}
