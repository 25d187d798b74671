//! Links that are sent by mail, to a relay that the test runs.

use std::time::{Duration, Instant};

use hotline::mail::MailOptions;
use hotline::media;
use hotline::panel::PanelOptions;
use hotline_actors::clock;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::steps::id;
use crate::support::relay::{Manner, Relay};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, PASSWORD, Person, TestApp, eventually};

/// Timeout of a letter: no test reaches it, however slow it is.
const SEND_TIME_MAX: Duration = Duration::from_secs(3600);

/// Timeout of a letter where the relay hangs.
const SHORT_TIME_MAX: Duration = Duration::from_millis(700);

/// Options with the service's default timeout.
fn mail_options(relay: &Relay) -> MailOptions {
    let url = format!("smtp://{}", relay.address);
    let from = "Acme <desk@acme.example>".parse().expect("a sender");
    MailOptions::new(url.parse().expect("a relay"), from)
}

async fn start_with_mail(relay: &Relay, send_time_max: Duration) -> OwnApp {
    let mail = MailOptions { send_time_max, ..mail_options(relay) };
    let options = TestOptions {
        panel: PanelOptions { mail: Some(mail), ..PanelOptions::default() },
        media: media::Options { public_url: Some("https://desk.example".to_owned()), ..TestOptions::default().media },
        ..TestOptions::default()
    };
    OwnApp::start_with(options).await
}

/// The tokens of the links in a letter.
fn tokens(letter: &str) -> Vec<&str> {
    let lines = letter.lines();
    lines.filter_map(|line| line.strip_prefix("https://desk.example/panel/welcome#")).collect()
}

#[actix_web::test]
async fn invitations_are_mailed_and_their_links_are_returned_if_the_relay_refuses() {
    let relay = Relay::start().await;
    let app = start_with_mail(&relay, SEND_TIME_MAX).await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(app.company.id);
    let made =
        app.api.post("/users", json!({"name": "Carla https://evil.example", "email": "carla@example.com"})).await;
    let carla = id(made.data(201));
    let invitation = format!("/users/{carla}/invitation");
    let sent = admin.post(&invitation, json!({})).await;
    let link = sent.data(200);
    assert_eq!(
        link,
        &json!({"url": null, "token": null, "sentTo": "carla@example.com", "expiresAt": link["expiresAt"]})
    );
    let letters = relay.emails();
    assert_eq!(letters.len(), 1);
    let letter = &letters[0];
    for line in [
        "From: Acme <desk@acme.example>",
        "To: carla@example.com",
        "Subject: Your invitation to Acme",
        "Auto-Submitted: auto-generated",
        "You have been invited to join Acme. Sign in with carla@example.com.",
        "Choose your password for Acme within 7 days:",
    ] {
        assert!(letter.lines().any(|sent| sent == line), "{line}: {letter}");
    }
    assert!(letter.contains("@acme.example>\n") && letter.contains("Message-ID: <"), "{letter}");
    assert!(!letter.lines().any(|line| line.starts_with("https://evil")), "{letter}");
    let token = json!({"token": tokens(letter)[0], "password": PASSWORD});
    assert_eq!(Person::nobody(&app).post("/links/use", token).await.status, 204);
    Person::nobody(&app).sign_in("carla@example.com", json!({})).await.data(200);

    // E-mails are in the language that the person has chosen, or else in that of the request.
    let request = admin.request(reqwest::Method::POST, &format!("/users/{carla}/password-reset"));
    let asked = crate::support::Reply::of(request.header("accept-language", "pt-BR").json(&json!({}))).await;
    assert_eq!(asked.data(200)["sentTo"], "carla@example.com");
    assert!(relay.emails()[1].contains("voc=C3=AA n=C3=A3o esperava"), "{}", relay.emails()[1]);

    // When the relay refuses, the response has the link, to be passed on.
    relay.set_manner(Manner::Refuses);
    assert_link_is_returned(&app, &admin, carla).await;
    let figures = admin.get("/installation/figures").await;
    let figures = figures.data(200)["figures"].as_array().expect("figures").clone();
    let mails = figures.iter().find(|figure| figure["name"] == "hotline_mails_total").expect("letters");
    let of = |end: &str| {
        let samples = mails["samples"].as_array().expect("samples");
        samples.iter().find(|sample| sample["labels"]["end"] == end).map(|sample| sample["value"].clone())
    };
    assert_eq!((of("sent"), of("failed")), (Some(json!(2.0)), Some(json!(1.0))));
    app.stop().await;
}

/// Asserts that the response to an invitation that the relay does not accept has its link, to be passed on by hand.
async fn assert_link_is_returned(app: &TestApp, admin: &Person, user: i64) {
    let link = admin.post(&format!("/users/{user}/invitation"), json!({})).await;
    let (url, token) = (link.data(200)["url"].as_str(), link.data(200)["token"].as_str().expect("a token"));
    assert_eq!(url, Some(format!("https://desk.example/panel/welcome#{token}").as_str()));
    assert_eq!(link.data(200)["sentTo"], Value::Null);
    let read = Person::nobody(app).post("/links/read", json!({"token": token})).await;
    assert_eq!(read.data(200)["kind"], "invitation");
}

#[actix_web::test]
async fn an_address_that_looks_like_a_placeholder_is_shown_as_it_is() {
    let relay = Relay::start().await;
    let app = start_with_mail(&relay, SEND_TIME_MAX).await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(app.company.id);
    let made = app.api.post("/users", json!({"name": "Carla", "email": "{name}@example.com"})).await;
    let carla = id(made.data(201));
    admin.post(&format!("/users/{carla}/invitation"), json!({})).await.data(200);
    let token = json!({"token": tokens(&relay.emails()[0])[0], "password": PASSWORD});
    assert_eq!(Person::nobody(&app).post("/links/use", token).await.status, 204);
    let sent = admin.post(&format!("/users/{carla}/password-reset"), json!({})).await;
    assert_eq!(sent.data(200)["sentTo"], "{name}@example.com");
    let letter = &relay.emails()[1];
    let line = "A password reset was requested for {name}@example.com.";
    assert!(letter.lines().any(|sent| sent == line), "{letter}");
    app.stop().await;
}

#[actix_web::test]
async fn a_relay_that_hangs_delays_the_answer_by_the_timeout_and_the_link_is_returned() {
    let relay = Relay::start().await;
    let app = start_with_mail(&relay, SHORT_TIME_MAX).await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let made = app.api.post("/users", json!({"name": "Carla", "email": "carla@example.com"})).await;
    relay.set_manner(Manner::Hangs);
    let (admin, carla) = (admin.in_company(app.company.id), id(made.data(201)));
    let default_time_max = mail_options(&relay).send_time_max;
    let mut took = Duration::MAX;
    // Under load, an answer may come much later; it is enough that one of these comes before the default timeout.
    for _ in 0..10 {
        let began = Instant::now();
        assert_link_is_returned(&app, &admin, carla).await;
        took = began.elapsed();
        assert!(took >= SHORT_TIME_MAX, "{took:?}");
        if took < default_time_max {
            break;
        }
    }
    assert!(took < default_time_max, "{took:?}");
    app.stop().await;
}

#[actix_web::test]
async fn a_forgotten_password_is_reset_by_mail_and_the_answer_reveals_no_account() {
    let relay = Relay::start().await;
    let app = start_with_mail(&relay, SEND_TIME_MAX).await;
    let anonymous = Person::nobody(&app);
    assert_eq!(anonymous.get("/session/options").await.data(200), &json!({"resetsByMail": true}));
    let (other, other_api) = app.another_company().await;
    for (api, company) in [(&app.api, &app.company), (&other_api, &other)] {
        api.put(&format!("/users/{}", company.ana), json!({"password": PASSWORD})).await.data(200);
    }
    app.api.put(&format!("/users/{}", app.company.ben), json!({"active": false})).await.data(200);
    other_api.put(&format!("/users/{}", other.ben), json!({"active": false})).await.data(200);
    let ask = async |email: &str| {
        let reply = anonymous.post("/links/forgotten", json!({"email": email})).await;
        (reply.status.as_u16(), reply.body.to_string())
    };
    // An unknown address, a deactivated user, and twice a user with two memberships.
    let answers = [
        ask("nobody@example.com").await,
        ask("ben@example.com").await,
        ask("ANA@example.com").await,
        ask("ana@example.com").await,
    ];
    assert!(answers.iter().all(|answer| answer == &answers[0] && answer.0 == 204), "{answers:?}");
    eventually("the letters have come", || async { relay.emails().len() == 2 }).await;
    assert_eq!(anonymous.post("/links/forgotten", json!({"email": "x"})).await.invalid_fields(), ["email"]);

    // Each membership gets a letter that has only its own link and words.
    let letters = relay.emails();
    let [of_acme, of_other] = ["Acme", "Other"].map(|name| {
        let own = |letter: &&String| letter.contains(&format!("Choose a new password for {name} within one hour:"));
        letters.iter().find(own).unwrap_or_else(|| panic!("{name}: {letters:?}"))
    });
    assert!(!of_acme.contains("for Other ") && !of_other.contains("for Acme "), "{letters:?}");
    assert_eq!((tokens(of_acme).len(), tokens(of_other).len()), (1, 1), "{letters:?}");
    let used = anonymous.post("/links/use", json!({"token": tokens(of_other)[0], "password": "another battery"})).await;
    assert_eq!(used.status, 204);
    let signed = Person::nobody(&app).sign_in("ana@example.com", json!({"password": "another battery"})).await;
    assert_eq!(signed.data(200)["company"]["name"], "Other");

    // An administrator of the installation gets a letter too; a user who has not used an invitation gets another one.
    Person::admin(&app, "root@example.com").await;
    ask("root@example.com").await;
    eventually("the letter has come", || async { relay.emails().len() == 3 }).await;
    assert!(relay.emails()[2].contains("Choose a new password for Hotline "), "{}", relay.emails()[2]);
    app.api.post("/users", json!({"name": "Carla", "email": "carla@example.com"})).await.data(201);
    let (admin, _) = Person::admin(&app, "boss@example.com").await;
    let users = app.api.all("/users").await;
    let carla = id(users.iter().find(|user| user["name"] == "Carla").expect("Carla"));
    let invited = admin.in_company(app.company.id).post(&format!("/users/{carla}/invitation"), json!({})).await;
    assert_eq!(invited.data(200)["sentTo"], "carla@example.com");
    let age_links = "update person_links set created_at = now() - interval '6 minutes'";
    sqlx::query(age_links).execute(&app.db).await.expect("a change");
    ask("carla@example.com").await;
    eventually("the letter has come", || async { relay.emails().len() == 5 }).await;
    let again = relay.emails()[4].clone();
    assert!(again.contains("within 7 days"), "{again}");
    let read = anonymous.post("/links/read", json!({"token": tokens(&again)[0]})).await;
    assert_eq!(read.data(200)["kind"], "invitation");
    let before = relay.emails()[3].clone();
    anonymous.post("/links/read", json!({"token": tokens(&before)[0]})).await.error(403, "ERR_API_LINK_EXPIRED");

    // A letter that is under way when the service stops is still sent, and there were no others.
    sqlx::query(age_links).execute(&app.db).await.expect("a change");
    ask("root@example.com").await;
    app.stop().await;
    assert_eq!(relay.emails().len(), 6);
}

#[actix_web::test]
async fn without_a_relay_no_reset_by_mail_is_offered() {
    let app = OwnApp::start().await;
    let anonymous = Person::nobody(&app);
    assert_eq!(anonymous.get("/session/options").await.data(200), &json!({"resetsByMail": false}));
    anonymous.post("/links/forgotten", json!({"email": "ana@example.com"})).await.error(404, "ERR_API_NOT_FOUND");
    app.stop().await;
}

#[actix_web::test]
async fn strangers_use_up_only_a_part_of_a_companys_letter_limit() {
    let relay = Relay::start().await;
    let app = start_with_mail(&relay, SEND_TIME_MAX).await;
    clock::stop();
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin_in_company = admin.in_company(app.company.id);
    let (other, other_api) = app.another_company().await;
    other_api.put(&format!("/users/{}", other.ben), json!({"email": "ben@other.example"})).await.data(200);
    let mut staff = Vec::new();
    for number in 0..60 {
        let user = json!({"name": "Carla", "email": format!("carla{number}@example.com")});
        staff.push(id(app.api.post("/users", user).await.data(201)));
    }
    // From three addresses, because the requests of each are limited per minute.
    for number in 0..60 {
        let address = ["127.0.0.1", "127.0.0.2", "127.0.0.3"][number % 3];
        let stranger = Person { api: app.api.calling_from(address), ..Person::nobody(&app) };
        let email = json!({"email": format!("carla{number}@example.com")});
        assert_eq!(stranger.post("/links/forgotten", email).await.status, 204);
    }
    let anonymous = Person { api: app.api.calling_from("127.0.0.4"), ..Person::nobody(&app) };
    assert_eq!(anonymous.post("/links/forgotten", json!({"email": "ben@other.example"})).await.status, 204);
    let count_letters_to = |recipient: &str| {
        let letters = relay.emails();
        letters.iter().filter(|letter| letter.lines().any(|line| line.starts_with(&format!("To: {recipient}")))).count()
    };
    eventually("another company's letter has come", || async { count_letters_to("ben@other.example") == 1 }).await;
    eventually("the letters that strangers may request have come", || async { count_letters_to("carla") == 20 }).await;
    // The administrator has what is left of this process's fifty.
    for (index, user) in staff.iter().take(31).enumerate() {
        let link = admin_in_company.post(&format!("/users/{user}/invitation"), json!({})).await;
        assert_eq!(link.data(200)["sentTo"].is_string(), index < 30, "{index}: {}", link.body);
    }
    assert_eq!(count_letters_to("carla"), 50);
    // After the hour, both may send again.
    clock::advance(Duration::from_secs(3601));
    let link = admin_in_company.post(&format!("/users/{}/invitation", staff[0]), json!({})).await;
    assert_eq!(link.data(200)["sentTo"], "carla0@example.com");
    let age_links = "update person_links set created_at = now() - interval '6 minutes'";
    sqlx::query(age_links).execute(&app.db).await.expect("a change");
    let before = count_letters_to("carla1@example.com");
    assert_eq!(anonymous.post("/links/forgotten", json!({"email": "carla1@example.com"})).await.status, 204);
    eventually("the requested letter has come", || async { count_letters_to("carla1@example.com") > before }).await;
    app.stop().await;
    assert_eq!(count_letters_to("carla"), 52);
}

#[actix_web::test]
async fn a_companys_letters_are_limited_per_hour_and_contain_no_link_from_a_name() {
    let relay = Relay::start().await;
    let app = start_with_mail(&relay, SEND_TIME_MAX).await;
    clock::stop();
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin_in_company = admin.in_company(app.company.id);
    let (other, other_api) = app.another_company().await;
    let evil = json!({"name": "Urgent: your account is closed, open https://evil.example/x now", "email": "victim@example.com"});
    let victim = id(app.api.post("/users", evil).await.data(201));
    let invite = async || admin_in_company.post(&format!("/users/{victim}/invitation"), json!({})).await;
    assert_eq!(invite().await.data(200)["sentTo"], "victim@example.com");
    let letter = relay.emails()[0].replace("=\n", "");
    assert!(!letter.contains("evil.example") && letter.contains("Urgent your account is closed"), "{letter}");
    assert_eq!(letter.matches("https://").count(), 1, "{letter}");
    for _ in 1..50 {
        assert_eq!(invite().await.data(200)["sentTo"], "victim@example.com");
    }
    // Further links are passed on by hand, and requested ones are not sent; another company has its own limit.
    let passed_on = invite().await;
    let token = passed_on.data(200)["token"].as_str().expect("a token").to_owned();
    assert_eq!((relay.emails().len(), &passed_on.body["data"]["sentTo"]), (50, &Value::Null));
    app.api.put(&format!("/users/{}", app.company.ana), json!({"password": PASSWORD})).await.data(200);
    other_api.put(&format!("/users/{}", other.ana), json!({"password": PASSWORD})).await.data(200);
    sqlx::query("update person_links set created_at = now() - interval '6 minutes'")
        .execute(&app.db)
        .await
        .expect("a change");
    let anonymous = Person::nobody(&app);
    for email in ["victim@example.com", "ana@example.com"] {
        assert_eq!(anonymous.post("/links/forgotten", json!({"email": email})).await.status, 204);
    }
    eventually("the other company's letter has come", || async { relay.emails().len() == 51 }).await;
    assert!(relay.emails()[50].contains("Choose a new password for Other within one hour"), "{}", relay.emails()[50]);
    // The link that was passed on stays valid.
    assert_eq!(anonymous.post("/links/read", json!({"token": token})).await.data(200)["kind"], "invitation");
    // After the hour, which is counted in whole seconds, letters are sent again.
    clock::advance(Duration::from_secs(3601));
    assert_eq!(invite().await.data(200)["sentTo"], "victim@example.com");
    // A requested link that was sent is in the audit log, with its person.
    let in_other = admin_in_company.in_company(other.id);
    let recorded = async || {
        let log = in_other.get("/audit-log?action=requestReset").await;
        log.data(200).as_array().is_some_and(|entries| !entries.is_empty())
    };
    eventually("the request is recorded", recorded).await;
    let log = in_other.get("/audit-log?action=requestReset").await;
    assert_eq!((&log.data(200)[0]["actor"]["id"], &log.data(200)[0]["status"]), (&json!(other.ana), &json!(204)));
    app.stop().await;
}

#[actix_web::test]
async fn a_company_whose_link_cannot_be_created_does_not_delay_another_companys_letters() {
    let relay = Relay::start().await;
    let app = start_with_mail(&relay, SEND_TIME_MAX).await;
    let (other, _) = app.another_company().await;
    Person::admin(&app, "root@example.com").await;
    let anonymous = Person::nobody(&app);
    let ask = async |email: &str| {
        assert_eq!(anonymous.post("/links/forgotten", json!({"email": email})).await.status, 204);
    };
    let has_letter = |name: &str| {
        let line = format!("Choose a new password for {name} within one hour:");
        relay.emails().iter().any(|letter| letter.contains(&line))
    };
    // The first membership's link is refused.
    let refuse =
        format!("alter table person_links add constraint refused check (company_id <> {}) not valid", app.company.id);
    sqlx::query(AssertSqlSafe(refuse)).execute(&app.db).await.expect("a constraint");
    ask("ben@example.com").await;
    eventually("the second membership's letter has come", || async { has_letter("Other") }).await;
    sqlx::query("alter table person_links drop constraint refused").execute(&app.db).await.expect("a change");
    assert!(!has_letter("Acme"));

    // The second membership's link is locked.
    let mut link_lock = app.db.begin().await.expect("a transaction");
    let lock_link = "insert into person_links (company_id, person_id, kind, hash, expires_at)
        values ($1, $2, 'reset', 'held', now())";
    sqlx::query(lock_link).bind(other.id).bind(other.ana).execute(&mut *link_lock).await.expect("a lock");
    ask("ana@example.com").await;
    eventually("the first membership's letter has come", || async { has_letter("Acme") }).await;
    // Requests for other addresses do not wait.
    ask("root@example.com").await;
    eventually("another address's letter has come", || async { has_letter("Hotline") }).await;
    link_lock.rollback().await.expect("a rollback");
    app.stop().await;
}
