//! A provider that speaks the Graph API on a socket of its own, answers as a test chooses, and records what it gets:
//! the cloud API of phone channels and the send API of social ones.
//!
//! - <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/messages>
//! - <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/media>
//! - <https://developers.facebook.com/docs/messenger-platform/reference/send-api>

mod answers;
pub mod hooks;
mod multipart;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix_web::dev::ServerHandle;
use actix_web::web::{self, Bytes, Data, Path};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

pub use self::answers::Answer;

/// The provider. It stops with the test.
pub struct Provider {
    /// What a channel names as its `--provider-url`.
    pub url: String,
    state: Arc<State>,
    server: ServerHandle,
}

/// One attempt to send a message.
#[derive(Clone, Debug)]
pub struct Call {
    pub at: Instant,
    pub to: String,
    pub body: Value,
    /// The id that the provider gave the message; `None` if it has not taken it.
    pub accepted: Option<String>,
}

impl Call {
    /// The text of a text message.
    pub fn text(&self) -> &str {
        let text = self.body["text"]["body"].as_str().or(self.body["message"]["text"].as_str());
        text.unwrap_or_else(|| panic!("no text: {}", self.body))
    }
}

/// A file, as it was uploaded or as contacts sent it.
#[derive(Clone, Debug)]
pub struct File {
    pub file_name: String,
    pub mime_type: String,
    pub bytes: Bytes,
    /// The form fields that were uploaded with the file.
    pub fields: HashMap<String, String>,
}

#[derive(Default)]
struct State {
    accounts: Mutex<HashMap<String, Account>>,
    files: Mutex<HashMap<String, File>>,
    ids: AtomicU64,
    /// Raised by [`Provider::release`].
    released: watch::Sender<u64>,
    /// Raised with every attempt.
    calls: watch::Sender<u64>,
    /// The answers to the next look-ups of files, one for each, and how many were given.
    look_up_refusals: Mutex<VecDeque<Answer>>,
    refused_look_ups: AtomicUsize,
}

/// A phone number or page.
#[derive(Default)]
struct Account {
    /// The only token that is accepted; `None`: any.
    token: Option<String>,
    next: VecDeque<Answer>,
    always: Option<Answer>,
    calls: Vec<Call>,
    templates: Vec<Value>,
    template_reads: usize,
    in_flight: usize,
    in_flight_max: usize,
}

impl Provider {
    pub async fn start() -> Self {
        let state = Arc::new(State::default());
        let shared = Data::from(state.clone());
        let app = move || {
            App::new()
                .app_data(shared.clone())
                .app_data(web::PayloadConfig::new(64 << 20))
                .route("/{version}/{account}/messages", web::post().to(receive_message))
                .route("/{version}/{account}/media", web::post().to(upload))
                .route("/{version}/{account}/message_attachments", web::post().to(upload))
                .route("/{version}/{account}/message_templates", web::get().to(templates))
                .route("/download/{file}", web::get().to(download))
                .route("/{version}/{file}", web::get().to(file))
        };
        // Idle connections live longer than the clients keep them, as with real providers, which also wait longer for a
        // request than the framework's five seconds.
        let keep_alive = Duration::from_secs(3600);
        let server = HttpServer::new(app).workers(1).keep_alive(keep_alive).client_request_timeout(Duration::ZERO);
        let server = server.disable_signals().shutdown_timeout(0);
        let server = server.bind(("127.0.0.1", 0)).expect("a free port");
        let url = format!("http://{}", server.addrs()[0]);
        let server = server.run();
        let handle = server.handle();
        tokio::spawn(server);
        Self { url, state, server: handle }
    }

    /// The account's answers to the next attempts, one for each; later ones get the answer of [`Provider::always`].
    pub fn next(&self, account: &str, answers: impl IntoIterator<Item = Answer>) {
        self.account(account, |account| account.next.extend(answers));
    }

    /// The account's answer from now on when [`Provider::next`] has none left. At first it accepts.
    pub fn always(&self, account: &str, answer: Answer) {
        self.account(account, |account| account.always = Some(answer));
    }

    /// Only this token is accepted from now on.
    pub fn only_token(&self, account: &str, token: &str) {
        self.account(account, |account| account.token = Some(token.to_owned()));
    }

    /// Refuses a look-up of a file that would succeed: the next one that is not refused yet.
    pub fn refuse_look_up(&self, refusal: Answer) {
        self.state.look_up_refusals.lock().push_back(refusal);
    }

    /// How many look-ups [`Provider::refuse_look_up`] has refused.
    pub fn refused_look_ups(&self) -> usize {
        self.state.refused_look_ups.load(Ordering::Relaxed)
    }

    /// Answers all attempts that hang or are held.
    pub fn release(&self) {
        self.state.released.send_modify(|released| *released += 1);
    }

    /// The templates the account may send, as the provider describes them.
    pub fn has_templates(&self, account: &str, templates: Vec<Value>) {
        self.account(account, |account| account.templates = templates);
    }

    /// How often an account's templates were read.
    pub fn template_reads(&self, account: &str) -> usize {
        self.account(account, |account| account.template_reads)
    }

    /// Adds a file that a contact has sent. Returns the id by which a webhook names it.
    pub fn offer(&self, mime_type: &str, bytes: impl Into<Bytes>) -> String {
        let file = File {
            file_name: String::new(),
            mime_type: mime_type.to_owned(),
            bytes: bytes.into(),
            fields: HashMap::new(),
        };
        self.state.keep(file)
    }

    /// The address of a file, by which social channels name it.
    pub fn file_url(&self, id: &str) -> String {
        format!("{}/download/{id}", self.url)
    }

    /// A file by its id, uploaded or offered.
    pub fn file(&self, id: &str) -> File {
        self.state.files.lock().get(id).unwrap_or_else(|| panic!("no file {id}")).clone()
    }

    /// Every attempt of an account, in the order in which they arrived.
    pub fn calls(&self, account: &str) -> Vec<Call> {
        self.account(account, |account| account.calls.clone())
    }

    /// The messages an account has taken, in order.
    pub fn accepted(&self, account: &str) -> Vec<Call> {
        self.account(account, |account| account.calls.iter().filter(|call| call.accepted.is_some()).cloned().collect())
    }

    /// The messages an account has taken, from this number on, up to the first call that is not answered yet.
    pub fn accepted_from(&self, account: &str, number: usize) -> Vec<Call> {
        let taken = |account: &mut Account| {
            account.calls.iter().skip(number).take_while(|call| call.accepted.is_some()).cloned().collect()
        };
        self.account(account, taken)
    }

    /// How many messages an account has taken.
    pub fn accepted_count(&self, account: &str) -> usize {
        self.account(account, |account| account.calls.iter().filter(|call| call.accepted.is_some()).count())
    }

    /// The largest number of attempts of an account that were under way at once.
    pub fn in_flight_max(&self, account: &str) -> usize {
        self.account(account, |account| account.in_flight_max)
    }

    /// Waits until there were this many attempts at an account.
    pub async fn called_times(&self, account: &str, count: usize) {
        let mut calls = self.state.calls.subscribe();
        let enough_calls = calls.wait_for(|_| self.account(account, |account| account.calls.len() >= count));
        let is_in_time = tokio::time::timeout(super::patience(super::PATIENCE), enough_calls).await.is_ok();
        assert!(is_in_time, "only {} of {count} attempts in time", self.calls(account).len());
    }

    /// Waits until an account has taken this many messages, and returns them.
    pub async fn accepts(&self, account: &str, count: usize) -> Vec<Call> {
        let mut calls = self.state.calls.subscribe();
        let deadline = Instant::now() + super::patience(super::PATIENCE);
        loop {
            let is_late = Instant::now() >= deadline;
            let accepted = self.accepted_count(account);
            if accepted >= count {
                return self.accepted(account);
            }
            assert!(!is_late, "only {accepted} of {count} messages in time; {:#?}", self.calls(account).last());
            // A held attempt that is answered now is not a new one, so the count is checked every 20 ms as well.
            let _ = tokio::time::timeout(Duration::from_millis(20), calls.changed()).await;
        }
    }

    /// Waits until an account has taken its message with this number, counted from 0. Returns when that arrived.
    pub async fn arrival_of(&self, account: &str, number: usize) -> Instant {
        let mut calls = self.state.calls.subscribe();
        let arrival = || {
            self.account(account, |account| {
                account.calls.iter().filter(|call| call.accepted.is_some()).nth(number).map(|call| call.at)
            })
        };
        let deadline = Instant::now() + super::patience(super::PATIENCE);
        loop {
            let is_late = Instant::now() >= deadline;
            if let Some(at) = arrival() {
                return at;
            }
            assert!(!is_late, "message {number} of {account} was not taken in time");
            let _ = tokio::time::timeout(Duration::from_millis(20), calls.changed()).await;
        }
    }

    fn account<T>(&self, id: &str, work: impl FnOnce(&mut Account) -> T) -> T {
        work(self.state.accounts.lock().entry(id.to_owned()).or_default())
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.release();
        // This sends the command to stop; no one needs to wait for the end.
        drop(self.server.stop(false));
    }
}

impl State {
    fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn keep(&self, file: File) -> String {
        let id = (1_000_000_000_000_000 + self.next_id()).to_string();
        self.files.lock().insert(id.clone(), file);
        id
    }

    /// Whether the request has a token that the account accepts.
    fn admits(&self, account: &str, request: &HttpRequest) -> bool {
        let token = request.headers().get("authorization").and_then(|header| header.to_str().ok());
        let token = token.and_then(|header| header.strip_prefix("Bearer ")).filter(|token| !token.is_empty());
        let accounts = self.accounts.lock();
        let only = accounts.get(account).and_then(|account| account.token.clone());
        token.is_some_and(|token| only.is_none_or(|only| only == token))
    }
}

/// `POST /{version}/{account}/messages`.
async fn receive_message(
    state: Data<State>,
    path: Path<(String, String)>,
    request: HttpRequest,
    body: Bytes,
) -> HttpResponse {
    let (_, id) = path.into_inner();
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return Answer::refuse(400, 100, "the body is not JSON").to_response();
    };
    let to = body["to"].as_str().or(body["recipient"]["id"].as_str()).unwrap_or_default().to_owned();
    let is_admitted = state.admits(&id, &request);
    let (number, mut answer) = {
        let mut accounts = state.accounts.lock();
        let account = accounts.entry(id.clone()).or_default();
        account.calls.push(Call { at: Instant::now(), to, body, accepted: None });
        account.in_flight += 1;
        account.in_flight_max = account.in_flight_max.max(account.in_flight);
        let answer = match account.next.pop_front() {
            _ if !is_admitted => Answer::token_refused(),
            Some(answer) => answer,
            None => account.always.clone().unwrap_or(Answer::Accept),
        };
        (account.calls.len() - 1, answer)
    };
    let _in_flight = InFlight { state: &state, account: &id };
    state.calls.send_modify(|calls| *calls += 1);
    loop {
        answer = match answer {
            Answer::Late(time, then) => {
                tokio::time::sleep(time).await;
                *then
            }
            Answer::Held(then) => {
                state.hang().await;
                *then
            }
            _ => break,
        };
    }
    if answer == Answer::Hang {
        state.hang().await;
        return Answer::refuse(503, 2, "let go").to_response();
    }
    if !matches!(answer, Answer::Accept | Answer::AcceptAs(_) | Answer::Lost) {
        return answer.to_response();
    }
    let message_id = match &answer {
        Answer::AcceptAs(message_id) => message_id.clone(),
        _ => format!("wamid.{:012}", state.next_id()),
    };
    let to = {
        let mut accounts = state.accounts.lock();
        let call = &mut accounts.get_mut(&id).expect("it was called").calls[number];
        call.accepted = Some(message_id.clone());
        call.to.clone()
    };
    if answer == Answer::Lost {
        // The message is taken, but the answer does not say so.
        state.hang().await;
        return Answer::refuse(503, 2, "let go").to_response();
    }
    HttpResponse::Ok().json(json!({
        "messaging_product": "whatsapp",
        "contacts": [{"input": to, "wa_id": to}],
        "messages": [{"id": message_id}],
        "recipient_id": to,
        "message_id": message_id,
    }))
}

impl State {
    async fn hang(&self) {
        let _ = self.released.subscribe().changed().await;
    }
}

/// An attempt under way. It also ends when its caller disconnects.
struct InFlight<'a> {
    state: &'a State,
    account: &'a str,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let Some(account) = self.state.accounts.lock().get_mut(self.account) {
            account.in_flight -= 1;
        }
    }
}

/// `POST /{version}/{account}/media`, and `…/message_attachments`.
async fn upload(state: Data<State>, path: Path<(String, String)>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let (_, account) = path.into_inner();
    if !state.admits(&account, &request) {
        return Answer::token_refused().to_response();
    }
    let kind = request.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let Some(file) = multipart::file(kind, &body) else {
        return Answer::refuse(400, 100, "no file").to_response();
    };
    if file.fields.get("messaging_product").is_none_or(|product| product != "whatsapp")
        && !file.fields.contains_key("message")
    {
        return Answer::refuse(400, 100, "(#100) The parameter messaging_product is required.").to_response();
    }
    let id = state.keep(file);
    HttpResponse::Ok().json(json!({"id": id, "attachment_id": id}))
}

/// `GET /{version}/{owner}/message_templates`, two at a time, so that a reader has to request further pages.
async fn templates(state: Data<State>, path: Path<(String, String)>, request: HttpRequest) -> HttpResponse {
    const PER_PAGE: usize = 2;
    let (_, owner) = path.into_inner();
    if !state.admits(&owner, &request) {
        return Answer::token_refused().to_response();
    }
    let query: HashMap<String, String> =
        web::Query::from_query(request.query_string()).map(web::Query::into_inner).unwrap_or_default();
    let after = query.get("after").and_then(|after| after.strip_prefix("after+").map(str::to_owned));
    let from: usize = after.and_then(|after| after.parse().ok()).unwrap_or(0);
    let mut accounts = state.accounts.lock();
    let account = accounts.entry(owner).or_default();
    if from == 0 {
        account.template_reads += 1;
    }
    let page: Vec<&Value> = account.templates.iter().skip(from).take(PER_PAGE).collect();
    let end = from + page.len();
    let mut paging = json!({"cursors": {"before": format!("after+{from}"), "after": format!("after+{end}")}});
    if end < account.templates.len() {
        paging["next"] = "https://provider.example/next".into();
    }
    HttpResponse::Ok().json(json!({"data": page, "paging": paging}))
}

/// `GET /{version}/{file}`: the address of a file; also an account, by its id.
async fn file(state: Data<State>, path: Path<(String, String)>, request: HttpRequest) -> HttpResponse {
    let (_, id) = path.into_inner();
    if state.accounts.lock().contains_key(&id) {
        let is_admitted = state.admits(&id, &request);
        return if is_admitted {
            HttpResponse::Ok().json(json!({"id": id}))
        } else {
            Answer::token_refused().to_response()
        };
    }
    let Some(file) = state.files.lock().get(&id).cloned() else {
        return Answer::refuse(400, 100, "Unsupported get request. Object with this ID does not exist").to_response();
    };
    if !state.admits("", &request) {
        return Answer::token_refused().to_response();
    }
    let refusal = state.look_up_refusals.lock().pop_front();
    if let Some(refusal) = refusal {
        state.refused_look_ups.fetch_add(1, Ordering::Relaxed);
        return refusal.to_response();
    }
    let host = request.connection_info().host().to_owned();
    HttpResponse::Ok().json(json!({
        "messaging_product": "whatsapp",
        "id": id,
        "url": format!("http://{host}/download/{id}"),
        "mime_type": file.mime_type,
        "file_size": file.bytes.len(),
    }))
}

/// `GET /download/{file}`.
async fn download(state: Data<State>, path: Path<String>) -> HttpResponse {
    match state.files.lock().get(path.as_str()).cloned() {
        Some(file) => HttpResponse::Ok().content_type(file.mime_type).body(file.bytes),
        None => HttpResponse::NotFound().finish(),
    }
}
