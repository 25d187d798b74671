//! An e-mail is sent once at whatever point the service dies, and the link in it stays valid.

use reqwest::Method;
use serde_json::{Value, json};

use super::crash::{Call, RestartedService, at_panel};
use crate::support::Reply;
use crate::support::relay::Relay;

/// What a link begins with.
const LINK_START: &str = "https://desk.example/panel/welcome#";

#[actix_web::test]
async fn an_email_with_a_link_is_sent_once_wherever_the_service_dies_and_the_link_stays_valid() {
    let relay = Relay::start().await;
    let smtp = format!("smtp://{}", relay.address);
    let mail = ["--smtp-url", &smtp, "--mail-from", "Acme <desk@acme.example>", "--public-url", "https://desk.example"];
    let mut service = RestartedService::start_with(&mail).await;
    let cookie = service.administrator().await;
    let mut sent = 0;
    // Before the e-mail, before its outcome is recorded, and after that.
    for (point, emails, sent_to) in [
        ("once_committed", 0, Value::Null),
        ("link_sent", 1, Value::Null),
        ("once_recorded", 1, json!("ben@example.com")),
    ] {
        for kind in ["invitation", "password-reset"] {
            let case = format!("{kind} at {point}");
            let call = Call::at_panel(format!("/users/{}/{kind}", service.company.ben), &cookie);
            service.die_and_restart(point, &call, &case.replace(' ', "-")).await;
            sent += emails;
            assert_eq!(relay.emails().len(), sent, "{case}");
            for _ in 0..2 {
                let retry = call.send(&service.api, &case.replace(' ', "-")).await;
                assert!(retry.is_replay(), "{case}: {}", retry.body);
                let link = retry.data(200);
                let expected = json!({"url": null, "token": null, "sentTo": sent_to, "expiresAt": link["expiresAt"]});
                assert_eq!(link, &expected, "{case}");
            }
            assert_eq!(relay.emails().len(), sent, "{case}");
            if emails > 0 {
                let email = relay.emails().pop().expect("an e-mail");
                let token = email.lines().find_map(|line| line.strip_prefix(LINK_START)).expect("a link");
                let read = at_panel(&service.api, Method::POST, "/links/read").json(&json!({"token": token}));
                assert_eq!(Reply::of(read).await.data(200)["email"], "ben@example.com", "{case}");
            }
        }
    }
    service.end().await;
}
