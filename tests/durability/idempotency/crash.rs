//! The service dies at every point between a change and its answer, starts again, and gets the request again.

use std::ops::Add;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use hotline_persistence::password::Password;
use hotline_persistence::tables::people::{self, PersonId};
use nix::sys::signal::Signal;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::process::{Process, data_folder};
use crate::support::database::url;
use crate::support::{Api, Company, Reply, TestDatabase};

/// A point at which the service dies, and whether the change stands afterwards.
type Point = (&'static str, bool);

/// The points of a plain change: its transaction.
const PLAIN: &[Point] = &[
    ("once_begun", false),
    ("once_written", false),
    ("once_committed", true),
    ("once_recorded", true),
    ("once_answered", true),
];

/// The points of a live change, without that of its actor: [`DECIDED`] or [`OPENED`]. What was written and not synced
/// survives a crash of the process, though not of the machine.
const LIVE: &[Point] = &[
    ("once_begun", false),
    ("journal_before_write", false),
    ("journal_before_sync", true),
    ("journal_after_sync", true),
    ("once_recorded", true),
    ("once_answered", true),
];
const DECIDED: Point = ("ticket_decided", false);
const OPENED: Point = ("ticket_opened", false);

/// How many records and changes there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, sqlx::FromRow)]
struct Effects {
    contacts: i64,
    tags: i64,
    tag_updates: i64,
    channels: i64,
    channel_updates: i64,
    links: i64,
    tickets: i64,
    opened: i64,
    closed: i64,
    messages: i64,
    sessions: i64,
}

const COUNT: &str = "select (select count(*) from contacts) as contacts, (select count(*) from tags) as tags,
    (select count(*) from tag_updates) as tag_updates, (select count(*) from channels) as channels,
    (select count(*) from channel_updates) as channel_updates, (select count(*) from made_links) as links,
    (select count(*) from tickets) as tickets,
    (select count(*) from ticket_events where type = 'opened') as opened,
    (select count(*) from ticket_events where type = 'closed') as closed,
    (select count(*) from messages) as messages, (select count(*) from webchat_sessions) as sessions";

/// Notes every update of a tag, and of a channel's identity secrets, and every link to choose a password.
const NOTE_UPDATES: &str = "create table tag_updates (id bigint);
    create function note_tag_update() returns trigger language plpgsql as
        'begin insert into tag_updates values (new.id); return new; end';
    create trigger tag_updated after update on tags for each row execute function note_tag_update();
    create table channel_updates (id bigint);
    create function note_channel_update() returns trigger language plpgsql as
        'begin insert into channel_updates values (new.id); return new; end';
    create trigger channel_updated after update on channels for each row
        when (old.settings -> 'identitySecrets' is distinct from new.settings -> 'identitySecrets')
        execute function note_channel_update();
    create table made_links (id bigint);
    create function note_link() returns trigger language plpgsql as
        'begin insert into made_links values (new.person_id); return new; end';
    create trigger link_made after insert or update on person_links for each row execute function note_link();";

impl Add for Effects {
    type Output = Self;
    fn add(self, more: Self) -> Self {
        Self {
            contacts: self.contacts + more.contacts,
            tags: self.tags + more.tags,
            tag_updates: self.tag_updates + more.tag_updates,
            channels: self.channels + more.channels,
            channel_updates: self.channel_updates + more.channel_updates,
            links: self.links + more.links,
            tickets: self.tickets + more.tickets,
            opened: self.opened + more.opened,
            closed: self.closed + more.closed,
            messages: self.messages + more.messages,
            sessions: self.sessions + more.sessions,
        }
    }
}

/// The service, restarted repeatedly on one folder and one database.
pub(super) struct RestartedService {
    folder: tempfile::TempDir,
    database: TestDatabase,
    /// The options of the service.
    options: Vec<String>,
    pub(super) company: Company,
    /// `None` while the service is down.
    process: Option<Process>,
    pub(super) api: Api,
    /// Cases so far: everything in a case is named by its number.
    case_number: usize,
}

/// A request, and its effects, which must happen once.
pub(super) struct Call {
    method: Method,
    path: String,
    body: String,
    effects: Effects,
    /// The cookie of a person at the panel; `None` if an integration calls.
    cookie: Option<String>,
}

impl Call {
    /// A request of a person at the panel.
    pub(super) fn at_panel(path: impl Into<String>, cookie: &str) -> Self {
        Self { cookie: Some(cookie.to_owned()), ..Self::post(path, json!({}), Effects::default()) }
    }

    fn post(path: impl Into<String>, body: Value, effects: Effects) -> Self {
        Self { method: Method::POST, path: path.into(), body: body.to_string(), effects, cookie: None }
    }

    async fn try_send(&self, api: &Api, key: &str) -> Option<Reply> {
        if let Some(cookie) = &self.cookie {
            let request = at_panel(api, self.method.clone(), &self.path).header("cookie", cookie);
            let request = request.header("content-type", "application/json").header("idempotency-key", key);
            return Reply::try_of(request.body(self.body.clone())).await;
        }
        Reply::try_of(api.keyed(self.method.clone(), &self.path, key, self.body.as_str())).await
    }

    pub(super) async fn send(&self, api: &Api, key: &str) -> Reply {
        self.try_send(api, key).await.expect("the service answers")
    }
}

impl RestartedService {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Serves with more options.
    pub(super) async fn start_with(more: &[&str]) -> Self {
        let database = TestDatabase::migrated().await;
        let company = Company::create(&database.db, "Acme").await;
        sqlx::raw_sql(NOTE_UPDATES).execute(&database.db).await.expect("trigger");
        let folder = data_folder();
        let url = url(&database.options);
        // Small segments: every start makes two, by writing zeros.
        let options = ["--database-url", &url, "--journal-segment-size", "256KiB"];
        let options: Vec<String> = options.iter().chain(more).map(|option| (*option).to_owned()).collect();
        let process = serve(folder.path(), &options);
        let api = Api::new(process.address, &company.key);
        Self { folder, database, options, company, process: Some(process), api, case_number: 0 }
    }

    async fn count(&self) -> Effects {
        // A list waits for the tables.
        self.api.get("/tickets?perPage=1").await.data(200);
        sqlx::query_as(COUNT).fetch_one(&self.database.db).await.expect("counts")
    }

    /// A phone number that no contact has had.
    fn phone(&self) -> String {
        format!("55119{:08}", self.case_number)
    }

    async fn contact(&self) -> i64 {
        let new =
            hotline_persistence::tables::contacts::ContactByNumber { number: &self.phone(), name: None, country: None };
        let source = hotline_persistence::tables::source::Source::Api;
        hotline_persistence::tables::contacts::find_or_create_by_number(&self.database.db, self.company.id, new, source)
            .await
            .expect("contact")
            .id
            .0
    }

    async fn ticket(&self) -> i64 {
        let body = json!({"channelId": self.company.phone, "contactId": self.contact().await});
        self.api.post("/tickets", body).await.data(201)["id"].as_i64().expect("id")
    }

    /// The cookie of an administrator of the company.
    pub(super) async fn administrator(&self) -> String {
        let (company, user) = (self.company.id, self.company.ana);
        let administers = "update users u set profile_id = p.id from profiles p
            where u.company_id = $1 and u.id = $2 and p.company_id = $1 and p.administers";
        let given = sqlx::query(administers).bind(company).bind(user).execute(&self.database.db).await;
        assert_eq!(given.expect("a profile").rows_affected(), 1);
        let password = "correct horse battery";
        let hash = Password::parse(password.to_owned()).expect("a password").hash().expect("a hash");
        let mut db = self.database.db.acquire().await.expect("a connection");
        people::set_password(&mut db, PersonId::User(company, user), &hash).await.expect("a password");
        let sign_in = at_panel(&self.api, Method::POST, "/session");
        let signed_in = Reply::of(sign_in.json(&json!({"email": "ana@example.com", "password": password}))).await;
        assert_eq!(signed_in.data(200)["state"], "open");
        let cookie = signed_in.headers["set-cookie"].to_str().expect("a cookie");
        cookie.split(';').next().expect("its value").to_owned()
    }

    /// Lets the service die at the point while it serves the call, and starts it again.
    pub(super) async fn die_and_restart(&mut self, point: &str, call: &Call, key: &str) {
        let case = format!("{} {} at {point}", call.method, call.path);
        self.kill();
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        let mut failing = Process::serve_with_failpoint(self.folder.path(), &options, point);
        let reply = call.try_send(&Api::new(failing.address, &self.company.key), key).await;
        let answered = reply.map(|reply| reply.status);
        assert_eq!(answered, None, "{case}: it did not die (only a binary built with --all-features has fail points)");
        assert_eq!(failing.wait().signal(), Some(Signal::SIGABRT as i32), "{case}: {}", failing.log());
        let process = serve(self.folder.path(), &self.options);
        self.api = Api::new(process.address, &self.company.key);
        self.process = Some(process);
    }

    /// Lets the service die at the point while it serves the call, starts it again, and repeats the call.
    async fn check(&mut self, (point, stands): Point, call: Call) {
        let case = format!("{} {} at {point}", call.method, call.path);
        let key = format!("key-{}", self.case_number);
        let before = self.count().await;
        self.die_and_restart(point, &call, &key).await;
        let first = call.send(&self.api, &key).await;
        assert!(first.status.is_success(), "{case}: {} {}", first.status, first.body);
        assert_eq!(first.is_replay(), stands, "{case}: {}", first.body);
        assert_eq!(self.count().await, before + call.effects, "{case}: from {before:?}");
        let second = call.send(&self.api, &key).await;
        assert!(second.is_replay(), "{case}: {}", second.body);
        // A secret is shown once: in the first answer, which may be the one that was lost in the crash.
        let shown = |reply: &Reply| {
            let mut body = reply.body.clone();
            for secret in ["/data/token", "/data/identitySecret", "/data/url"] {
                if let Some(secret) = body.pointer_mut(secret) {
                    *secret = Value::Null;
                }
            }
            body
        };
        assert_eq!((second.status, shown(&second)), (first.status, shown(&first)), "{case}");
        assert_eq!(self.count().await, before + call.effects, "{case}: from {before:?}");
    }

    fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    pub(super) async fn end(mut self) {
        self.kill();
        let rejected: i64 = sqlx::query_scalar("select count(*) from rejected_changes")
            .fetch_one(&self.database.db)
            .await
            .expect("count");
        assert_eq!(rejected, 0, "PostgreSQL refused rows");
        self.database.drop().await;
    }
}

fn serve(folder: &Path, options: &[String]) -> Process {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let served = Process::try_serve(folder, &options);
    served.unwrap_or_else(|log| panic!("hotline does not start: {log}"))
}

/// A request of the panel's own page.
pub(super) fn at_panel(api: &Api, method: Method, path: &str) -> RequestBuilder {
    api.anonymous(method, &format!("/panel/api/v1{path}")).header("sec-fetch-site", "same-origin")
}

fn with(points: &[Point], more: Point) -> Vec<Point> {
    points.iter().copied().chain([more]).collect()
}

#[actix_web::test]
async fn a_tag_is_made_once_wherever_the_service_dies() {
    let mut service = RestartedService::start().await;
    for &point in PLAIN {
        service.case_number += 1;
        let name = format!("tag {}", service.case_number);
        let effects = Effects { tags: 1, ..Effects::default() };
        service.check(point, Call::post("/tags", json!({"name": name}), effects)).await;
    }
    service.end().await;
}

#[actix_web::test]
async fn a_tag_is_changed_once_wherever_the_service_dies() {
    let mut service = RestartedService::start().await;
    for &point in PLAIN {
        service.case_number += 1;
        let made = service.api.post("/tags", json!({"name": format!("before {}", service.case_number)})).await;
        let path = format!("/tags/{}", made.data(201)["id"]);
        let body = json!({"name": format!("after {}", service.case_number)});
        let effects = Effects { tag_updates: 1, ..Effects::default() };
        service.check(point, Call { method: Method::PUT, ..Call::post(path, body, effects) }).await;
    }
    service.end().await;
}

#[actix_web::test]
async fn a_channel_and_its_secret_are_made_once_wherever_the_service_dies() {
    let mut service = RestartedService::start().await;
    let cookie = Some(service.administrator().await);
    for &point in PLAIN {
        service.case_number += 1;
        let channel = json!({"type": "webchat", "name": format!("site {}", service.case_number)});
        let effects = Effects { channels: 1, ..Effects::default() };
        service.check(point, Call { cookie: cookie.clone(), ..Call::post("/channels", channel, effects) }).await;
        service.case_number += 1;
        let path = format!("/channels/{}/identity-secret", service.company.webchat);
        let effects = Effects { channel_updates: 1, ..Effects::default() };
        service.check(point, Call { cookie: cookie.clone(), ..Call::post(path, json!({}), effects) }).await;
    }
    service.end().await;
}

#[actix_web::test]
async fn a_link_to_choose_a_password_is_made_once_wherever_the_service_dies() {
    let mut service = RestartedService::start().await;
    let cookie = service.administrator().await;
    for &point in PLAIN {
        for kind in ["invitation", "password-reset"] {
            service.case_number += 1;
            let effects = Effects { links: 1, ..Effects::default() };
            let path = format!("/users/{}/{kind}", service.company.ben);
            service.check(point, Call { effects, ..Call::at_panel(path, &cookie) }).await;
        }
    }
    service.end().await;
}

#[actix_web::test]
async fn a_message_that_opens_a_ticket_is_sent_once_wherever_the_service_dies() {
    let mut service = RestartedService::start().await;
    for point in with(LIVE, OPENED) {
        service.case_number += 1;
        let body = json!({
            "channelId": service.company.phone, "number": service.phone(), "type": "text", "body": "hello",
        });
        let effects = Effects { contacts: 1, tickets: 1, opened: 1, messages: 1, ..Effects::default() };
        service.check(point, Call::post("/messages", body, effects)).await;
    }
    service.end().await;
}

#[actix_web::test]
async fn a_message_in_a_ticket_is_sent_once_wherever_the_service_dies() {
    let mut service = RestartedService::start().await;
    for point in with(LIVE, DECIDED) {
        service.case_number += 1;
        let body = json!({"ticketId": service.ticket().await, "type": "text", "body": "hello"});
        let effects = Effects { messages: 1, ..Effects::default() };
        service.check(point, Call::post("/messages", body, effects)).await;
    }
    service.end().await;
}

#[actix_web::test]
async fn a_ticket_is_opened_once_wherever_the_service_dies() {
    let mut service = RestartedService::start().await;
    for point in with(LIVE, OPENED) {
        service.case_number += 1;
        let body = json!({"channelId": service.company.phone, "contactId": service.contact().await});
        let effects = Effects { tickets: 1, opened: 1, ..Effects::default() };
        service.check(point, Call::post("/tickets", body, effects)).await;
    }
    service.end().await;
}

#[actix_web::test]
async fn a_ticket_is_closed_once_wherever_the_service_dies() {
    let mut service = RestartedService::start().await;
    for point in with(LIVE, DECIDED) {
        service.case_number += 1;
        let path = format!("/tickets/{}/close", service.ticket().await);
        let effects = Effects { closed: 1, ..Effects::default() };
        service.check(point, Call::post(path, json!({"wrapupNote": "done"}), effects)).await;
    }
    service.end().await;
}

#[actix_web::test]
async fn a_session_begins_once_wherever_the_service_dies() {
    let mut service = RestartedService::start().await;
    // The visitor's contact is created in a step before the change: after its commit, the change is still to be made.
    for point in with(&with(LIVE, ("once_part_written", false)), ("once_part_committed", false)) {
        service.case_number += 1;
        // Nothing identifies this visitor: only the idempotency key says that it is the same one.
        let body = json!({"channelId": service.company.webchat, "visitor": {"name": "Vera"}});
        let effects = Effects { contacts: 1, sessions: 1, ..Effects::default() };
        service.check(point, Call::post("/webchat/sessions", body, effects)).await;
    }
    service.end().await;
}
