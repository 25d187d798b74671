//! A token that is refused holds the channel's outbox until the command line renews the token.

use serde_json::json;

use super::{Office, number};
use crate::process::run;
use crate::support::eventually;

#[actix_web::test]
async fn a_refused_token_holds_the_outbox_until_it_is_renewed_and_then_it_drains_in_order() {
    const MESSAGES: usize = 30;
    let mut office = Office::open("2201").await;
    let path = format!("/channels/{}", office.channel.id);
    office.provider.only_token("2201", "renewed");
    for message in 0..MESSAGES / 2 {
        office.send(&number(message % 3), &message.to_string(), json!({})).await;
    }
    eventually("the channel is in error", || async { office.api.get(&path).await.data(200)["status"] == "error" })
        .await;
    let shown = office.api.get(&path).await.data(200).clone();
    assert_eq!(shown["lastError"], "Error validating access token: Session has expired");

    // The outbox is held: a restart sends nothing either, and new messages wait behind the earlier ones.
    office.kill();
    office.start();
    let calls_before = office.provider.calls("2201").len();
    let mut last = String::new();
    for message in MESSAGES / 2..MESSAGES {
        last = office.send(&number(message % 3), &message.to_string(), json!({})).await;
    }
    assert_eq!(office.job(&last).await["status"], "queued");
    assert_eq!(office.provider.calls("2201").len(), calls_before, "something was sent with a token that is refused");

    let id = office.channel.id.to_string();
    let renewed = run(office.path(), &["channel", "update", &id, "--access-token", "renewed"]);
    assert!(renewed.status.success(), "{}", String::from_utf8_lossy(&renewed.stderr));
    let accepted = office.provider.accepts("2201", MESSAGES).await;
    for recipient in 0..3 {
        let texts: Vec<&str> =
            accepted.iter().filter(|call| call.to == number(recipient)).map(|call| call.text()).collect();
        let expected: Vec<String> =
            (0..MESSAGES).filter(|message| message % 3 == recipient).map(|message| message.to_string()).collect();
        assert_eq!(texts, expected);
    }
    assert_eq!(accepted.len(), MESSAGES);
    office.wait_for_status(&last, "sent").await;
    let shown = office.api.get(&path).await.data(200).clone();
    assert_eq!((&shown["status"], &shown["lastError"]), (&json!("connected"), &json!(null)));
    office.close();
}
