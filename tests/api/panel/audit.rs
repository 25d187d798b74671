//! The audit log: no action without an entry, however its path is spelled, by a person or an integration.

use std::time::Duration;

use hotline::web::response::schema::Schemas;
use hotline_actors::clock;
use hotline_persistence::tables::people::PersonId;
use hotline_persistence::tables::people::links::{self, LinkKind};
use hotline_persistence::totp;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::steps::{assert_timestamp, id};
use crate::support::{OwnApp, PASSWORD, Person, Reply, TestApp, eventually, service::TestOptions};

/// First segments of paths, here called nouns, below which changes are audited.
const NOUNS: [&str; 9] =
    ["account", "channels", "companies", "company", "installation", "profiles", "tokens", "users", "webhooks"];

/// Every audited operation: its method, its path below the panel's API, and its id.
fn audited_operations() -> Vec<(String, String, String)> {
    let operations = hotline::routes::panel_operations(&mut Schemas::new());
    let audited = operations.into_iter().filter(|operation| {
        let noun = operation.path.split('/').nth(1).unwrap_or_default();
        operation.method != "GET" && (NOUNS.contains(&noun) || is_audited_exception(operation.method, &operation.path))
    });
    let addressed = audited.map(|operation| {
        let parts = operation.path.split('/').map(|part| if part.starts_with('{') { "987654321" } else { part });
        (operation.method.to_owned(), parts.collect::<Vec<&str>>().join("/"), operation.id.to_string())
    });
    addressed.collect()
}

/// Whether the operation is audited although other changes of its noun are not.
fn is_audited_exception(method: &str, path: &str) -> bool {
    [
        ("PUT", "/queues/{queueId}/users/{userId}"),
        ("DELETE", "/queues/{queueId}/users/{userId}"),
        ("DELETE", "/contacts/{contactId}"),
    ]
    .contains(&(method, path))
}

/// Percent-encodes the chosen characters, with hexadecimal digits in upper or lower case.
fn percent_encode(text: &str, is_encoded: impl Fn(usize, char) -> bool, is_upper: bool) -> String {
    let letters = text.chars().enumerate().map(|(index, character)| match (is_encoded(index, character), is_upper) {
        (true, true) => format!("%{:02X}", character as u32),
        (true, false) => format!("%{:02x}", character as u32),
        (false, _) => character.to_string(),
    });
    letters.collect()
}

/// Spellings that the router reads as the same path, and spellings that may be another path.
fn spellings(path: &str) -> (Vec<String>, Vec<String>) {
    const TOP: &str = "/panel/api/v1";
    let whole = format!("{TOP}{path}");
    let is_letter = |character: char| character.is_ascii_alphanumeric() || character == '-';
    let same = vec![
        whole.clone(),
        format!("{whole}?x=%2e%2e/"),
        percent_encode(&whole, |index, _| index == TOP.len() + 1, true),
        percent_encode(&whole, |index, _| index == 1, true),
        percent_encode(&whole, |index, _| index + 1 == whole.len(), true),
        percent_encode(&whole, |_, character| is_letter(character), true),
        percent_encode(&whole, |_, character| is_letter(character), false),
        percent_encode(&whole, |index, character| index % 2 == 0 && is_letter(character), false),
    ];
    let others = vec![
        format!("{whole}/"),
        format!("{whole}//"),
        format!("{whole}%2F"),
        format!("{whole};x=1"),
        format!("{whole}/."),
        format!("{whole}/x/.."),
        format!("{TOP}/{path}"),
        format!("/{whole}"),
        format!("{TOP}/.{path}"),
        format!("{TOP}/x/..{path}"),
        format!("{TOP}/%2e{path}"),
        format!("{TOP}{}", path.to_uppercase()),
        format!("{TOP}{}", path.replacen('/', "%2f", 1)),
        percent_encode(&whole, |index, _| index == TOP.len() + 1, true).replace('%', "%25"),
    ];
    (same, others)
}

/// Sends a request whose target is exactly as given, without normalization.
async fn send_raw(app: &TestApp, person: &Person, method: &str, target: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(app.address).await.expect("a connection");
    let cookie = person.cookie.as_deref().expect("a cookie");
    let company = person.company.map(|company| format!("hotline-company: {company}\r\n")).unwrap_or_default();
    let request = format!(
        "{method} {target} HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\n{company}sec-fetch-site: same-origin\r\n\
         content-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}",
        app.address
    );
    stream.write_all(request.as_bytes()).await.expect("the request is sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.expect("an answer");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// Every entry of this actor, oldest first: action, target and status.
async fn entries(app: &TestApp, kind: &str, actor: i64) -> Vec<(String, Option<String>, Option<i16>)> {
    sqlx::query_as(
        "select action, target_id, status from audit_log where actor_kind = $1 and actor_id = $2 order by id",
    )
    .bind(kind)
    .bind(actor)
    .fetch_all(&app.db)
    .await
    .expect("entries")
}

/// How many entries this admin has, and the action and status of the newest.
async fn count_and_newest(app: &TestApp, admin: i64) -> (i64, String, Option<i16>) {
    sqlx::query_as(
        "select count(*) over (), action, status from audit_log where actor_kind = 'admin' and actor_id = $1
         order by id desc limit 1",
    )
    .bind(admin)
    .fetch_one(&app.db)
    .await
    .expect("an entry")
}

#[actix_web::test]
async fn every_audited_operation_is_in_the_log_however_its_path_is_spelled() {
    let app = OwnApp::start().await;
    let (admin, admin_id) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(app.company.id);
    let (_, not_found) = send_raw(&app, &admin, "POST", "/panel/api/v1/nothing").await;
    let no_route = &not_found["error"]["message"];
    let operations = audited_operations();
    assert!(operations.len() > 30, "{}", operations.len());
    let (mut count, ..) = count_and_newest(&app, admin_id.0).await;
    let mut tried = 0;
    for (method, path, id) in &operations {
        // A person's requests per minute are limited.
        clock::advance(Duration::from_secs(60));
        let (same, others) = spellings(path);
        for (is_same, target) in
            same.iter().map(|target| (true, target)).chain(others.iter().map(|target| (false, target)))
        {
            let (status, body) = send_raw(&app, &admin, method, target).await;
            let (after, action, logged_status) = count_and_newest(&app, admin_id.0).await;
            let summary = format!("{method} {target}: {status} {body}, {action} {logged_status:?}");
            if !is_same && !target.starts_with("/panel/api/v1/") {
                // Not below the panel's API at all; the rest of `/panel` is pages, which can only be read.
                assert!((status == 404 || status == 405) && after == count, "{summary}");
                continue;
            }
            assert_eq!((after, logged_status), (count + 1, i16::try_from(status).ok()), "{summary}");
            count = after;
            if action == "unknown" {
                // No such path, or none with this method: `/tokens/.` has the form of `/tokens/{tokenId}`.
                let is_refused = status == 405 || (status == 404 && body["error"]["message"] == *no_route);
                assert!(!is_same && is_refused, "{summary}");
            } else {
                assert_eq!(&action, id, "{summary}");
            }
            tried += 1;
        }
    }
    assert!(tried >= 20 * operations.len(), "{tried}");
    // Reads are not in the log, nor is everyday work.
    for (method, path) in [("GET", "/tokens"), ("HEAD", "/tokens"), ("GET", "/nothing"), ("POST", "/tags")] {
        send_raw(&app, &admin, method, &format!("/panel/api/v1{path}")).await;
    }
    assert_eq!(count_and_newest(&app, admin_id.0).await.0, count);
    app.stop().await;
}

#[actix_web::test]
async fn an_integrations_changes_of_the_setup_are_in_the_log() {
    let app = OwnApp::start().await;
    let made = app.api.post("/users", json!({"name": "Carl", "email": "carl@example.com"})).await;
    let carl = id(made.data(201));
    app.api.put(&format!("/users/{carl}"), json!({"name": "Carlo"})).await.data(200);
    app.api.put(&format!("/users/{carl}"), json!({"email": "x"})).await.error(422, "ERR_API_VALIDATION");
    let queue = app.company.sales;
    assert_eq!(Reply::of(app.api.request(Method::PUT, &format!("/queues/{queue}/users/{carl}"))).await.status, 204);
    assert_eq!(app.api.delete(&format!("/queues/{queue}/users/{carl}")).await.status, 204);
    let contact = id(app.api.post("/contacts", json!({"name": "Maria"})).await.data(201));
    assert_eq!(app.api.delete(&format!("/contacts/{contact}")).await.status, 204);
    assert_eq!(app.api.delete(&format!("/users/{carl}")).await.status, 204);
    app.api.get("/users").await.data(200);
    app.api.post("/tags", json!({"name": "VIP"})).await.data(201);
    let report = "/reports/tickets?groupBy=queue&from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z";
    app.api.get(report).await.data(200);
    let export = app.api.request(Method::GET, report).header("accept", "text/csv").send().await.expect("an answer");
    assert_eq!(export.status(), 200);
    let token: i64 = sqlx::query_scalar("select id from tokens where company_id = $1")
        .bind(app.company.id)
        .fetch_one(&app.db)
        .await
        .expect("a token");
    let rows = entries(&app, "integration", token).await;
    let rows: Vec<_> = rows.iter().map(|(action, target, status)| (action.as_str(), target.clone(), *status)).collect();
    let of = |id: i64| Some(id.to_string());
    assert_eq!(
        rows,
        [
            ("createUser", of(carl), Some(201)),
            ("updateUser", of(carl), Some(200)),
            ("updateUser", of(carl), Some(422)),
            (rows[3].0, Some(format!("{queue}/{carl}")), Some(204)),
            (rows[4].0, Some(format!("{queue}/{carl}")), Some(204)),
            ("deleteContact", of(contact), Some(204)),
            ("removeUser", of(carl), Some(204)),
            ("reportTickets", None, Some(200)),
        ]
    );
    assert!(rows[3].0.contains("Queue") && rows[4].0.contains("Queue"), "{rows:?}");
    // The administrators of the company read who it was.
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let log = admin.in_company(app.company.id).get("/audit-log").await;
    let entry = &log.data(200)[0];
    assert_eq!((&entry["actor"]["kind"], &entry["actor"]["id"]), (&json!("integration"), &json!(token)), "{entry}");
    assert_eq!(entry["address"], "127.0.0.1");
    app.stop().await;
}

#[actix_web::test]
async fn sign_ins_and_sign_outs_are_in_the_log_and_so_are_failures() {
    let app = OwnApp::start().await;
    let mut ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let anonymous = Person::nobody(&app);
    let wrong = json!({"email": "ANA@example.com", "password": "a wrong one 4711"});
    anonymous.post("/session", wrong).await.error(401, "ERR_API_SIGN_IN");
    anonymous
        .post("/session", json!({"email": "no@example.com", "password": PASSWORD}))
        .await
        .error(401, "ERR_API_SIGN_IN");
    // A second factor: set up, given wrongly, then correctly.
    let begun = ana.post("/account/second-factor", json!({"password": PASSWORD})).await;
    let secret = totp::from_base32(begun.data(200)["secret"].as_str().expect("a secret")).expect("a secret");
    // No code becomes too old while the clock stands still.
    clock::stop();
    let code = totp::code(&secret, clock::now()).expect("a code");
    let confirmed = ana.post("/account/second-factor/confirm", json!({"code": code})).await;
    let recovery = confirmed.data(200)["recoveryCodes"][0].clone();
    let mut half_open = Person::nobody(&app);
    assert_eq!(half_open.sign_in("ana@example.com", json!({})).await.data(200)["state"], "secondFactor");
    half_open.post("/session/second-factor", json!({"code": "000000"})).await.error(401, "ERR_API_SIGN_IN");
    let given = half_open.post("/session/second-factor", json!({"recoveryCode": recovery})).await;
    half_open.keep_cookie(&given);
    assert_eq!(given.data(200)["state"], "open");
    assert_eq!(half_open.delete("/session").await.status, 204);
    // A second time there is no one to sign out.
    assert_eq!(half_open.delete("/session").await.status, 204);
    let person = PersonId::User(app.company.id, app.company.ana);
    let (token, _) = links::make(&app.db, person, LinkKind::Reset).await.expect("a link");
    let used = anonymous.post("/links/use", json!({"token": token, "password": "another battery"})).await;
    assert_eq!(used.status, 204);
    anonymous
        .post("/links/use", json!({"token": token, "password": "another battery"}))
        .await
        .error(403, "ERR_API_LINK_EXPIRED");
    ana.keep_cookie(&used);
    let rows = entries(&app, "user", app.company.ana.0).await;
    let rows: Vec<(&str, Option<i16>)> = rows.iter().map(|(action, _, status)| (action.as_str(), *status)).collect();
    assert_eq!(
        rows,
        [
            ("signIn", Some(200)),
            ("signIn", Some(401)),
            ("beginSecondFactor", Some(200)),
            ("confirmSecondFactor", Some(200)),
            ("signIn", Some(200)),
            ("giveSecondFactor", Some(401)),
            ("giveSecondFactor", Some(200)),
            ("signOut", Some(204)),
            ("useLink", Some(204)),
        ]
    );
    let (addresses, names): (Vec<Option<String>>, Vec<String>) = sqlx::query_as::<_, (Option<String>, String)>(
        "select address, actor_name from audit_log where actor_kind = 'user'",
    )
    .fetch_all(&app.db)
    .await
    .expect("entries")
    .into_iter()
    .unzip();
    assert!(addresses.iter().all(|address| address.as_deref() == Some("127.0.0.1")), "{addresses:?}");
    assert!(names.iter().all(|name| name == "Ana"), "{names:?}");
    app.stop().await;
}

#[actix_web::test]
async fn a_sign_in_or_out_that_fails_is_recorded_with_the_status_of_its_error() {
    let app = OwnApp::start().await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let begun = ana.post("/account/second-factor", json!({"password": PASSWORD})).await;
    let secret = totp::from_base32(begun.data(200)["secret"].as_str().expect("a secret")).expect("a secret");
    // No code becomes too old while the clock stands still.
    clock::stop();
    let code = totp::code(&secret, clock::now()).expect("a code");
    let confirmed = ana.post("/account/second-factor/confirm", json!({"code": code})).await;
    let recovery = confirmed.data(200)["recoveryCodes"][0].clone();
    let mut half_open = Person::nobody(&app);
    assert_eq!(half_open.sign_in("ana@example.com", json!({})).await.data(200)["state"], "secondFactor");
    let person = PersonId::User(app.company.id, app.company.ana);
    let (token, _) = links::make(&app.db, person, LinkKind::Reset).await.expect("a link");
    let before = entries(&app, "user", app.company.ana.0).await.len();
    // From here on, no session begins, changes or ends.
    sqlx::raw_sql(
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
         create trigger refuse before insert or update or delete on person_sessions
             for each row execute function refuse()",
    )
    .execute(&app.db)
    .await
    .expect("a trigger");
    let failed = [
        Person::nobody(&app).sign_in("ana@example.com", json!({})).await,
        half_open.post("/session/second-factor", json!({"code": "000000"})).await,
        half_open.post("/session/second-factor", json!({"recoveryCode": recovery})).await,
        Person::nobody(&app).post("/links/use", json!({"token": token, "password": "another battery"})).await,
        ana.delete("/session").await,
    ];
    for reply in failed {
        reply.error(500, "ERR_API_INTERNAL");
    }
    let rows = entries(&app, "user", app.company.ana.0).await;
    let rows: Vec<_> = rows.iter().skip(before).map(|(action, _, status)| (action.as_str(), *status)).collect();
    let actions = ["signIn", "giveSecondFactor", "giveSecondFactor", "useLink", "signOut"];
    assert_eq!(rows, actions.map(|action| (action, Some(500))));
    app.stop().await;
}

#[actix_web::test]
async fn a_company_does_not_learn_where_another_companys_user_signs_in() {
    let app = OwnApp::start().await;
    let (other, other_api) = app.another_company().await;
    let decoy = json!({"name": "Ana", "email": "ana@example.com", "password": "what only they know"});
    other_api.put(&format!("/users/{}", other.ana), decoy).await.data(200);
    Person::user(&app, app.company.ana, "ana@example.com").await;
    let wrong = json!({"email": "ana@example.com", "password": "a wrong one 4711"});
    Person::nobody(&app).post("/session", wrong).await.error(401, "ERR_API_SIGN_IN");
    // With one password in both companies, the person has to choose, and neither learns the address.
    other_api.put(&format!("/users/{}", other.ana), json!({"password": PASSWORD})).await.data(200);
    let chosen = Person::nobody(&app).sign_in("ana@example.com", json!({})).await;
    assert_eq!(chosen.data(200)["state"], "choose");
    let entries: Vec<(i64, Option<String>, Option<i16>)> = sqlx::query_as(
        "select company_id, address, status from audit_log where action = 'signIn' order by company_id, id",
    )
    .fetch_all(&app.db)
    .await
    .expect("entries");
    let address = || Some("127.0.0.1".to_owned());
    let (own, other) = (app.company.id.0, other.id.0);
    assert_eq!(
        entries,
        [
            (own, address(), Some(200)),
            (own, None, Some(401)),
            (own, None, Some(200)),
            (other, None, Some(401)),
            (other, None, Some(200)),
        ]
    );
    app.stop().await;
}

#[actix_web::test]
async fn an_action_whose_caller_disconnects_is_recorded_with_its_outcome() {
    let app = OwnApp::start().await;
    Person::give_profile(&app, app.company.ana, "Administrator").await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let body = json!({"name": "Carl", "email": "carl@example.com", "password": PASSWORD}).to_string();
    let request = format!(
        "POST /panel/api/v1/users HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\nsec-fetch-site: same-origin\r\n\
         idempotency-key: one\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        app.address,
        ana.cookie.as_deref().expect("a cookie"),
        body.len()
    );
    let mut stream = TcpStream::connect(app.address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("the request is sent");
    let creation_query = "select target_id is not null, status from audit_log where action = 'createUser'";
    let entry = async || {
        let entry = sqlx::query_as::<_, (bool, Option<i16>)>(creation_query);
        entry.fetch_optional(&app.db).await.expect("an entry")
    };
    eventually("the action is recorded", || async { entry().await.is_some() }).await;
    // The connection is reset, so that the service notices at once.
    stream.set_zero_linger().expect("an option");
    drop(stream);
    eventually("its outcome is recorded", || async { entry().await == Some((true, Some(201))) }).await;
    app.stop().await;
}

#[actix_web::test]
async fn an_action_that_panics_is_recorded_as_an_internal_error() {
    let app = OwnApp::start().await;
    Person::give_profile(&app, app.company.ana, "Administrator").await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let create = |name: &str| {
        let body = json!({"name": name, "permissions": {"tags": ["GET"]}});
        ana.request(Method::POST, "/tokens").json(&body)
    };
    fail::cfg("once_written", "1*panic(a defect)").expect("failpoint");
    Reply::of(create("x").header("idempotency-key", "one")).await.error(500, "ERR_API_INTERNAL");
    // Without a key, the panic ends the connection, and there is no response.
    fail::cfg("once_written", "1*panic(a defect)").expect("failpoint");
    let _ = Reply::try_of(create("y")).await;
    Reply::of(create("z")).await.data(201);
    let rows = entries(&app, "user", app.company.ana.0).await;
    let statuses: Vec<_> = rows.iter().filter(|row| row.0 == "createToken").map(|(.., status)| *status).collect();
    assert_eq!(statuses, [Some(500), Some(500), Some(201)]);
    app.stop().await;
}

#[actix_web::test]
async fn what_administrators_do_is_in_the_log() {
    let app = OwnApp::start().await;
    Person::give_profile(&app, app.company.ana, "Administrator").await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    let made = ana.post("/tokens", json!({"name": "Shop", "permissions": {"tags": ["GET"]}})).await;
    let token = id(&made.data(201)["token"]);
    ana.post("/tokens", json!({})).await.error(422, "ERR_API_VALIDATION");
    ana.post(&format!("/tokens/{token}/revoke"), json!({})).await.data(200);
    ana.put(&format!("/users/{}", app.company.ben), json!({"name": "Benny"})).await.data(200);
    // Everyday work and reads are not in the log.
    ana.post("/tags", json!({"name": "VIP"})).await.data(201);
    ana.get("/tokens").await.data(200);
    let log = ana.get("/audit-log").await;
    let entries = log.data(200).as_array().expect("entries");
    let rows: Vec<Value> =
        entries.iter().map(|entry| json!([entry["action"], entry["target"], entry["status"]])).collect();
    let ben = app.company.ben.to_string();
    assert_eq!(
        json!(rows),
        json!([
            ["signIn", null, 200],
            ["createToken", {"id": token.to_string(), "name": "Shop"}, 201],
            ["createToken", null, 422],
            ["revokeToken", {"id": token.to_string(), "name": "Shop"}, 200],
            ["updateUser", {"id": ben, "name": "Benny"}, 200],
        ])
    );
    for entry in entries {
        assert_timestamp(&entry["at"]);
        assert_eq!(entry["actor"], json!({"kind": "user", "id": app.company.ana, "name": "Ana"}));
        assert_eq!(entry["address"], "127.0.0.1");
    }
    assert_eq!(ana.get("/audit-log?action=updateUser").await.data(200).as_array().map(Vec::len), Some(1));
    assert_eq!(ana.get("/audit-log?order=desc&perPage=1").await.data(200)[0]["action"], "updateUser");
    let at = entries[4]["at"].as_str().expect("a time");
    assert!(ana.get(&format!("/audit-log?from={at}")).await.data(200).as_array().is_some_and(|rows| !rows.is_empty()));
    for (search, count) in [("benny", 1), ("BENNY%20ana", 1), ("shop", 2), ("127.0.0.1", 5), ("nobody", 0)] {
        let found = ana.get(&format!("/audit-log?search={search}")).await;
        assert_eq!(found.data(200).as_array().map(Vec::len), Some(count), "{search}");
    }
    assert_eq!(ana.get("/audit-log?to=2020-01-01T00:00:00Z").await.data(200), &json!([]));
    // The export of a table is an act too.
    let export =
        ana.request(Method::GET, "/reports/tickets?groupBy=queue&from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z");
    let export = export.header("accept", "text/csv").send().await.expect("an answer");
    assert_eq!(export.status(), 200);
    assert_eq!(ana.get("/audit-log?action=reportTickets").await.data(200)[0]["status"], 200);

    // Another company's administrators see their own; the installation's acts are in its own log.
    let (other, _) = app.another_company().await;
    let (admin, admin_id) = Person::admin(&app, "root@example.com").await;
    let theirs = admin.in_company(other.id).get("/audit-log").await;
    let theirs = theirs.data(200).as_array().expect("entries");
    // The log has only what this test has done with their token.
    assert!(theirs.iter().all(|entry| entry["actor"]["kind"] == "integration"), "{theirs:?}");
    admin.put(&format!("/companies/{}", other.id), json!({"name": "New"})).await.data(200);
    let log = admin.get("/installation/audit-log").await;
    let entry = log.data(200).as_array().expect("entries").last().expect("an entry").clone();
    assert_eq!(
        (&entry["action"], &entry["target"]),
        (&json!("updateCompany"), &json!({"id": other.id.to_string(), "name": "New"}))
    );
    assert_eq!(entry["actor"]["id"], json!(admin_id));
    // Nothing is done that cannot be recorded.
    sqlx::query("alter table audit_log rename to hidden").execute(&app.db).await.expect("a change");
    let before = ana.get("/tokens").await;
    let refused = ana.post("/tokens", json!({"name": "y", "permissions": {"tags": ["GET"]}})).await;
    assert!(refused.status.is_server_error(), "{}", refused.body);
    assert_eq!(ana.get("/tokens").await.data(200), before.data(200));
    sqlx::query("alter table hidden rename to audit_log").execute(&app.db).await.expect("a change");
    app.stop().await;
}

#[actix_web::test]
async fn entries_older_than_the_retention_leave_the_log() {
    let app = OwnApp::start_with(TestOptions::default()).await;
    let db = &app.db;
    // Partitions are made in advance: while one is attached, PostgreSQL refuses the rows that belong there.
    let partitions = "select count(*) from pg_inherits where inhparent = 'audit_log'::regclass";
    let partitions: i64 = sqlx::query_scalar(partitions).fetch_one(db).await.expect("a count");
    assert!(partitions >= 4, "not this month's partition, the next two and the default: {partitions}");
    let now = chrono::Utc::now();
    for days in [0, 399, 431] {
        sqlx::query(
            "insert into audit_log (company_id, created_at, actor_kind, actor_id, actor_name, action)
             values ($1, $2, 'user', 1, 'x', 'y')",
        )
        .bind(app.company.id)
        .bind(now - chrono::TimeDelta::days(days))
        .execute(db)
        .await
        .expect("an entry");
    }
    // The service rotates the partitions as well, so this is retried until it succeeds.
    eventually("the partitions are rotated", || async {
        hotline_persistence::tables::audit_log::rotate_partitions(db, now).await.is_ok()
    })
    .await;
    let count_entries =
        async || sqlx::query_scalar::<_, i64>("select count(*) from audit_log").fetch_one(db).await.expect("a count");
    eventually("the oldest entry is gone", || async { count_entries().await == 2 }).await;
    app.stop().await;
}
