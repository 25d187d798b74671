//! A contact who has several numbers or ids after a merge is answered at the one they last wrote from.

use chrono::Utc;
use hotline_persistence::tables::channels::ChannelType::{Messenger, Whatsapp};
use serde_json::json;

use super::{deliver_text, merge, shown};
use crate::hooks::{ProviderChannel, Setup, all_taken, messages, tickets};
use crate::steps::{listed, restarted, sent};
use crate::support::provider::Provider;
use crate::support::provider::hooks::events;
use crate::support::{OwnApp, TestApp, check_plain_events, eventually};

const ANA: &str = "5511900000001";
const OTHER: &str = "5511900000002";

/// Answers a ticket, and returns where the answer went.
async fn recipient_of_answer(app: &TestApp, provider: &Provider, channel: &ProviderChannel, body: &str) -> String {
    let [ticket] = &tickets(&app.api, channel.id).await[..] else { panic!("not exactly one ticket") };
    let count = provider.accepted(&channel.account).len();
    sent(&app.api, json!({"ticketId": ticket["id"], "type": "text", "body": body})).await;
    provider.accepts(&channel.account, count + 1).await[count].to.clone()
}

#[actix_web::test]
async fn a_merged_contact_is_answered_at_the_number_that_wrote_last() {
    let app = OwnApp::start().await;
    let provider = Provider::start().await;
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Whatsapp, setup).await;
    deliver_text(&app.api, &channel, ANA, "from one phone").await;
    deliver_text(&app.api, &channel, OTHER, "from another").await;
    let found = async |number: &str| listed(&app.api, &format!("/contacts?number={number}")).await[0];
    let (into, from) = (found(ANA).await, found(OTHER).await);
    merge(&app.api, into, from).await.data(200);
    assert_eq!(recipient_of_answer(&app, &provider, &channel, "one").await, ANA);
    for (number, body) in [(OTHER, "two"), (ANA, "three"), (OTHER, "four")] {
        deliver_text(&app.api, &channel, number, body).await;
        assert_eq!(recipient_of_answer(&app, &provider, &channel, body).await, number, "{body}");
        assert_eq!(shown(&app.api, into).await["number"], number, "{body}");
    }
    let app = restarted(app).await;
    assert_eq!(recipient_of_answer(&app, &provider, &channel, "five").await, OTHER);
    assert_eq!(listed(&app.api, "/contacts").await, [into]);
    let numbers = shown(&app.api, into).await["identities"].clone();
    let numbers: Vec<_> =
        numbers.as_array().expect("identities").iter().map(|identity| identity["value"].clone()).collect();
    assert_eq!(numbers, [json!(OTHER), json!(ANA)]);
    check_plain_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_merged_contact_is_answered_at_the_id_that_wrote_last() {
    let app = OwnApp::start().await;
    let provider = Provider::start().await;
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Messenger, setup).await;
    let say = async |app: &TestApp, id: &str, body: &str| {
        let call = channel.page("page").call_body(id, Utc::now().timestamp_millis(), vec![events::text(body, body)]);
        assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1), "{body}");
    };
    say(&app, "1001", "from one account").await;
    say(&app, "1002", "from another").await;
    let found = tickets(&app.api, channel.id).await;
    let contact_of = |body: &str| {
        let ticket = found.iter().find(|ticket| ticket["lastMessage"]["body"] == body);
        ticket.and_then(|ticket| ticket["contact"]["id"].as_i64()).expect("a contact")
    };
    merge(&app.api, contact_of("from one account"), contact_of("from another")).await.data(200);
    for (id, body) in [("1001", "one"), ("1002", "two"), ("1001", "three")] {
        say(&app, id, body).await;
        assert_eq!(recipient_of_answer(&app, &provider, &channel, body).await, id, "{body}");
    }
    let last_used = async || -> String {
        let last =
            "select address from contact_addresses where company_id = $1 order by used_at desc nulls last limit 1";
        sqlx::query_scalar(last).bind(app.company.id).fetch_one(&app.db).await.expect("an address")
    };
    eventually("it is saved", || async { last_used().await == "1001" }).await;
    assert_eq!(messages(&app.api, channel.id).await.len(), 8);
    let app = restarted(app).await;
    assert_eq!(recipient_of_answer(&app, &provider, &channel, "four").await, "1001");
    app.stop().await;
}
