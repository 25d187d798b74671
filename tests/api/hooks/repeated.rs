//! A provider repeats calls: nothing is taken twice, even if the calls are concurrent or a restart lies between them.

use futures_util::future::join_all;
use serde_json::Value;

use super::{MARIA, ProviderChannel, Tally, all_taken, contact, messages, tickets};
use crate::steps::{close, id, restarted};
use crate::support::provider::hooks::{image, text};
use crate::support::{OwnApp, TestApp};

const REPEATED: Tally = Tally { taken: 0, repeated: 1, ignored: 0, unreadable: 0 };

#[actix_web::test]
async fn a_repetition_adds_nothing_even_after_the_ticket_is_closed_and_after_a_restart() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    let call = phone.message(MARIA, "Maria", text("wamid.1", "hi").referred("ad 1", "https://fb.me/1", "Buy", "click"));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    assert_eq!(channel.deliver(&app.api, &call).await, REPEATED);
    let [opened] = &tickets(&app.api, channel.id).await[..] else { panic!("not exactly one ticket") };
    assert_eq!(opened["unreadCount"], 1);
    close(&app.api, id(opened)).await;
    assert_eq!(channel.deliver(&app.api, &call).await, REPEATED);
    assert_eq!(tickets(&app.api, channel.id).await.len(), 1, "a repetition has opened a ticket");

    let app = restarted(app).await;
    assert_eq!(channel.deliver(&app.api, &call).await, REPEATED);
    assert_eq!(tickets(&app.api, channel.id).await.len(), 1);
    let all = messages(&app.api, channel.id).await;
    assert_eq!(all.len(), 1);
    assert_eq!(contact(&app.api, &all[0]["contactId"]).await["ctwaClid"], "click");
    // What is new in a call that is partly a repetition is taken.
    let more = phone.messages(MARIA, "Maria", vec![text("wamid.1", "hi"), text("wamid.2", "hello?")]);
    assert_eq!(channel.deliver(&app.api, &more).await, Tally { taken: 1, ..REPEATED });
    assert_eq!(tickets(&app.api, channel.id).await.len(), 2, "no second ticket was opened");
    app.stop().await;
}

#[actix_web::test]
async fn of_fifty_identical_calls_at_once_one_is_taken() {
    const IDENTICAL_CALLS: usize = 50;
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    for (round, message) in
        [text("wamid.1", "nobody knows me"), text("wamid.2", "I have a ticket"), image("wamid.3", "no file", None)]
            .into_iter()
            .enumerate()
    {
        let call = phone.message(MARIA, "Maria", message);
        let tallies = join_all((0..IDENTICAL_CALLS).map(|_| channel.deliver(&app.api, &call))).await;
        assert_eq!(tallies.iter().filter(|tally| **tally == all_taken(1)).count(), 1, "{tallies:?}");
        assert_eq!(tallies.iter().filter(|tally| **tally == REPEATED).count(), IDENTICAL_CALLS - 1, "{tallies:?}");
        assert_eq!(messages(&app.api, channel.id).await.len(), round + 1);
        let [opened] = &tickets(&app.api, channel.id).await[..] else { panic!("not exactly one ticket") };
        assert_eq!(opened["unreadCount"], round + 1);
    }
    app.stop().await;
}

#[actix_web::test]
async fn strangers_who_write_at_once_become_one_contact_with_one_ticket_each() {
    const STRANGERS: usize = 8;
    const MESSAGES: usize = 6;
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    let calls: Vec<Value> = (0..STRANGERS * MESSAGES)
        .map(|number| {
            let from = format!("55119000000{:02}", number % STRANGERS);
            phone.message(&from, "Somebody", text(&format!("wamid.{number}"), &format!("message {number}")))
        })
        .collect();
    let tallies = join_all(calls.iter().map(|call| channel.deliver(&app.api, call))).await;
    assert!(tallies.iter().all(|tally| *tally == all_taken(1)), "{tallies:?}");
    let opened = tickets(&app.api, channel.id).await;
    assert_eq!(opened.len(), STRANGERS);
    assert!(opened.iter().all(|ticket| ticket["unreadCount"] == MESSAGES), "{opened:?}");
    assert_eq!(app.api.all("/contacts").await.len(), STRANGERS);
    assert_eq!(messages(&app.api, channel.id).await.len(), STRANGERS * MESSAGES);
    app.stop().await;
}

#[actix_web::test]
async fn many_messages_in_one_call_are_taken_in_order() {
    const MESSAGES: usize = 40;
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let texts = (0..MESSAGES).map(|number| text(&format!("wamid.{number}"), &number.to_string())).collect();
    let call = channel.phone_account().messages(MARIA, "Maria", texts);
    let tallies = join_all([channel.deliver(&app.api, &call), channel.deliver(&app.api, &call)]).await;
    let sum = |part: fn(&Tally) -> u64| tallies.iter().map(part).sum::<u64>();
    assert_eq!((sum(|tally| tally.taken), sum(|tally| tally.repeated)), (MESSAGES as u64, MESSAGES as u64));
    let all = messages(&app.api, channel.id).await;
    let bodies: Vec<&str> = all.iter().map(|message| message["body"].as_str().expect("body")).collect();
    assert_eq!(bodies, (0..MESSAGES).map(|number| number.to_string()).collect::<Vec<_>>());
    app.stop().await;
}
