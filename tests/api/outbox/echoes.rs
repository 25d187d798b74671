//! Providers of social channels report what was sent through them. What Hotline has sent is not shown twice, whether
//! the answer or the echo comes first.

use std::time::Duration;

use hotline::providers::ProviderOptions;
use hotline_persistence::tables::channels::ChannelType::{self, Instagram, Messenger};
use serde_json::{Value, json};

use super::{Office, fast};
use crate::hooks::{ProviderChannel, Setup, messages};
use crate::support::form::Form;
use crate::support::provider::Answer;
use crate::support::provider::hooks::{Page, events};

const PSID: &str = "6548123456784821";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

/// A conversation on a social channel.
struct Conversation {
    channel: ProviderChannel,
    page: Page,
    contact: Value,
}

impl Conversation {
    async fn begin(office: &Office, kind: ChannelType) -> Self {
        let setup = Setup { provider_url: Some(&office.provider.url), ..Setup::default() };
        let channel = ProviderChannel::create(&office.app, &office.app.company, kind, setup).await;
        let page = channel.page(if kind == Messenger { "page" } else { "instagram" });
        let hello = page.call_body(PSID, chrono::Utc::now().timestamp_millis(), vec![events::text("m_hello", "hi")]);
        channel.deliver(&office.app.api, &hello).await;
        let contact = messages(&office.app.api, channel.id).await[0]["contactId"].clone();
        Self { channel, page, contact }
    }

    async fn send(&self, office: &Office, body: &str) -> String {
        let to = json!({"channelId": self.channel.id, "contactId": self.contact, "type": "text", "body": body});
        office.send(to).await
    }

    /// Reports a message of the account as its provider does; returns whether it was new.
    async fn echo(&self, office: &Office, message: Value) -> bool {
        let call = self.page.echoes(PSID, chrono::Utc::now().timestamp_millis(), vec![message]);
        self.channel.deliver(&office.app.api, &call).await.taken == 1
    }

    /// The texts of the company's messages, in order.
    async fn own_texts(&self, office: &Office) -> Vec<Value> {
        let all = messages(&office.app.api, self.channel.id).await;
        let own = all.into_iter().filter(|message| message["direction"] == "outbound");
        own.map(|message| message["body"].clone()).collect()
    }
}

/// The echo of a call that the provider accepted: Messenger returns what was sent with it.
fn echo_of(call: &Value, mid: &str) -> Value {
    let mut echo = json!({"mid": mid, "app_id": 4711});
    for field in ["text", "metadata"] {
        if let Some(value) = call["message"].get(field) {
            echo[field] = value.clone();
        }
    }
    if call["message"].get("attachment").is_some() {
        echo["attachments"] = json!([{"type": "image", "payload": {"url": "https://cdn.example/x.png"}}]);
    }
    echo
}

#[actix_web::test]
async fn an_echo_before_or_after_the_answer_is_recognized_as_our_message() {
    let office = Office::open().await;
    for kind in [Messenger, Instagram] {
        let conversation = Conversation::begin(&office, kind).await;
        let account = conversation.channel.account.clone();
        office.provider.next(&account, [Answer::AcceptAs("m_1".to_owned()).held()]);
        let job = conversation.send(&office, "hello\n you").await;
        office.provider.called_times(&account, 1).await;
        let mut echo = echo_of(&office.provider.calls(&account)[0].body, "m_1");
        // The echo has the text as the provider shows it.
        echo["text"] = "hello you".into();
        let twins = futures_util::future::join_all((0..3).map(|_| conversation.echo(&office, echo.clone()))).await;
        assert_eq!(twins, [false; 3], "{kind:?}");
        let foreign = json!({"mid": "m_other", "text": "typed meanwhile"});
        assert!(conversation.echo(&office, foreign).await, "{kind:?}");
        office.provider.release();
        office.wait_for_status(&job, "sent").await;
        assert!(!conversation.echo(&office, json!({"mid": "m_1", "text": "hello you"})).await);
        let delivered = events::delivered(&["m_1"], chrono::Utc::now().timestamp_millis());
        let call = conversation.page.call_body(PSID, chrono::Utc::now().timestamp_millis(), vec![delivered]);
        conversation.channel.deliver(&office.app.api, &call).await;
        office.wait_for_status(&job, "delivered").await;
        // The same text once more, typed in the app.
        assert!(conversation.echo(&office, json!({"mid": "m_typed", "text": "hello you"})).await);
        let texts = conversation.own_texts(&office).await;
        assert_eq!(texts, [json!("hello\n you"), json!("typed meanwhile"), json!("hello you")], "{kind:?}");
    }
    office.close().await;
}

#[actix_web::test]
async fn no_echo_of_a_message_whose_answer_was_lost_is_shown() {
    let provider = ProviderOptions { call_time_max: Duration::from_millis(500), ..ProviderOptions::default() };
    let office = Office::open_with(fast(), provider).await;
    for kind in [Messenger, Instagram] {
        let conversation = Conversation::begin(&office, kind).await;
        let account = conversation.channel.account.clone();
        office.provider.next(&account, [Answer::Lost]);
        let job = conversation.send(&office, "hello").await;
        office.wait_for_status(&job, "sent").await;
        let accepted = office.provider.accepted(&account);
        assert!(accepted.len() >= 2, "the message was not sent again");
        for call in &accepted {
            let mid = call.accepted.as_deref().expect("it was taken");
            assert!(!conversation.echo(&office, echo_of(&call.body, mid)).await, "{kind:?}");
        }
        assert_eq!(conversation.own_texts(&office).await, [json!("hello")]);
    }
    office.close().await;
}

#[actix_web::test]
async fn a_refused_message_that_is_typed_in_the_app_is_shown() {
    let office = Office::open().await;
    let conversation = Conversation::begin(&office, Instagram).await;
    office.provider.next(&conversation.channel.account, [Answer::refuse(400, 10, "outside of the allowed window")]);
    let job = conversation.send(&office, "hello").await;
    office.wait_for_status(&job, "failed").await;
    assert!(conversation.echo(&office, json!({"mid": "m_typed", "text": "hello"})).await);
    office.close().await;
}

#[actix_web::test]
async fn a_file_and_the_text_after_it_have_echoes_of_their_own() {
    let office = Office::open().await;
    for kind in [Messenger, Instagram] {
        let conversation = Conversation::begin(&office, kind).await;
        let account = conversation.channel.account.clone();
        // The text is refused once, so a second attempt sends only the text: while its answer is held, the file's id is
        // known and the text's is not.
        let answers =
            [Answer::AcceptAs("m_file".to_owned()), Answer::status(503), Answer::AcceptAs("m_text".to_owned()).held()];
        office.provider.next(&account, answers);
        let form = Form::default().text("type", "media").text("channelId", conversation.channel.id);
        let form = form.text("contactId", &conversation.contact).text("body", "the text");
        let reply = office.app.api.send_form(form.file("a.png", "image/png", PNG)).await;
        let job = reply.data(202)["jobId"].as_str().expect("a job").to_owned();
        office.provider.called_times(&account, 3).await;
        let calls = office.provider.calls(&account);
        let echoes = [echo_of(&calls[0].body, "m_file"), echo_of(&calls[2].body, "m_text")];
        for echo in &echoes {
            assert!(!conversation.echo(&office, echo.clone()).await, "{kind:?}: {echo}");
        }
        office.provider.release();
        office.wait_for_status(&job, "sent").await;
        for echo in &echoes {
            assert!(!conversation.echo(&office, echo.clone()).await, "{kind:?}: {echo}");
        }
        assert_eq!(conversation.own_texts(&office).await, [json!("the text")]);
    }
    office.close().await;
}
