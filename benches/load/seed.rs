//! The data before a measurement: a company, its contacts, their open tickets and sessions. All of it is created with
//! the command line and over HTTP, except the contacts for opening and closing tickets.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use hotline_persistence::PgPool;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::outcome::Outcome;
use crate::service::Service;

/// Concurrent requests.
const AT_ONCE: usize = 64;

/// How long the running service may take to see a record that the command line created.
const SEEN_TIME_MAX: Duration = Duration::from_secs(10);

/// A client with the company's token.
#[derive(Clone)]
pub struct Api {
    http: reqwest::Client,
    base: String,
    key: String,
}

impl Api {
    pub fn new(service: &Service, key: &str) -> Outcome<Self> {
        let base = format!("http://{}{}", service.address, hotline::web::admission::modules::API);
        Ok(Self { http: hotline::tls::client().build()?, base, key: key.to_owned() })
    }

    /// Sends a request, and returns its response with any status.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Outcome<reqwest::Response> {
        let request = self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.key);
        Ok(match body {
            Some(body) => request.json(body),
            None => request,
        }
        .send()
        .await?)
    }

    /// Sends a `POST`, which must succeed, and returns `data` of its response.
    pub async fn post(&self, path: &str, body: Value) -> Outcome<Value> {
        let response = self.send(Method::POST, path, Some(&body)).await?;
        let status = response.status();
        let mut answer: Value = response.json().await?;
        if !status.is_success() {
            return Err(format!("POST {path}: {status}: {answer}").into());
        }
        Ok(answer["data"].take())
    }

    /// Sends a `POST` for each item, some concurrently; the results are in the order of the items.
    pub async fn post_each<I, T>(&self, items: I, request_of: impl Fn(&T) -> (String, Value)) -> Outcome<Vec<Value>>
    where
        I: IntoIterator<Item = T>,
    {
        stream::iter(items)
            .map(|item| {
                let (path, body) = request_of(&item);
                async move { self.post(&path, body).await }
            })
            .buffered(AT_ONCE)
            .try_collect()
            .await
    }
}

/// A company with everything conversations need.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Company {
    pub id: i64,
    pub key: String,
    /// A webchat whose tickets go to a queue that requires a wrap-up.
    pub channel: i64,
    pub wrapup_type: i64,
    /// An agent of the queue.
    pub user: i64,
    queue: i64,
    /// Each with an open ticket and a session.
    pub contacts: Vec<i64>,
    pub tickets: Vec<i64>,
    pub sessions: Vec<String>,
}

impl Company {
    /// Creates a company without contacts.
    pub async fn create(service: &Service) -> Outcome<(Self, Api)> {
        let id = number(&service.run_command(&["company", "create", "Load"])?, "id")?;
        let company = id.to_string();
        let token = service.run_command(&["token", "create", "--company", &company, "--name", "load", "--all"])?;
        let key = text(&token, "key")?;
        let api = Api::new(service, &key)?;
        wait_until_seen(&api, "/queues").await?;

        let queue = number(&api.post("/queues", json!({"name": "Support", "wrapupRequired": true})).await?, "id")?;
        let agent = json!({"name": "Ana Souza", "email": "ana@example.com", "queueIds": [queue]});
        let user = number(&api.post("/users", agent).await?, "id")?;
        let outcome = number(&api.post("/wrapup-categories", json!({"name": "Outcome"})).await?, "id")?;
        let solved = json!({"name": "Solved", "categoryId": outcome, "queueIds": [queue]});
        let wrapup_type = number(&api.post("/wrapup-types", solved).await?, "id")?;
        let mut made = Self {
            id,
            key,
            channel: 0,
            wrapup_type,
            user,
            queue,
            contacts: Vec::new(),
            tickets: Vec::new(),
            sessions: Vec::new(),
        };
        made.channel = made.new_channel(service, &api, "Website").await?;
        Ok((made, api))
    }

    /// Creates another webchat of the same queue.
    pub async fn new_channel(&self, service: &Service, api: &Api, name: &str) -> Outcome<i64> {
        let (company, queue) = (self.id.to_string(), self.queue.to_string());
        let create =
            ["channel", "create", "--company", &company, "--type", "webchat", "--name", name, "--queue", &queue];
        let channel = number(&service.run_command(&create)?, "id")?;
        wait_until_seen(api, &format!("/channels/{channel}")).await?;
        Ok(channel)
    }

    /// Adds this many contacts, each with an open ticket and a session on the channel.
    pub async fn add_conversations(&mut self, api: &Api, channel: i64, count: usize) -> Outcome<()> {
        let from = self.contacts.len();
        let new = |number: &usize| {
            let phone = format!("55119{number:08}");
            ("/contacts".to_owned(), json!({"name": format!("Maria Lima {number}"), "number": phone}))
        };
        let contacts = ids(&api.post_each(from..from + count, new).await?)?;
        let session =
            |contact: &i64| ("/webchat/sessions".to_owned(), json!({"channelId": channel, "contactId": contact}));
        for made in api.post_each(contacts.iter().copied(), session).await? {
            self.sessions.push(text(&made, "id")?);
        }
        let ticket = |contact: &i64| ("/tickets".to_owned(), json!({"channelId": channel, "contactId": contact}));
        self.tickets.extend(ids(&api.post_each(contacts.iter().copied(), ticket).await?)?);
        // Each ticket gets a message, which can be sent because the session makes the contact reachable.
        let first = |ticket: &i64| {
            let body = "Good morning! How can we help you today?";
            ("/messages".to_owned(), json!({"ticketId": ticket, "type": "text", "body": body}))
        };
        api.post_each(self.tickets[from..].iter().copied(), first).await?;
        self.contacts.extend(contacts);
        Ok(())
    }

    /// Inserts contacts without a ticket into the table, because requests would take long and are not measured here.
    pub async fn insert_pool(&self, db: &PgPool, count: usize) -> Outcome<Vec<i64>> {
        Ok(sqlx::query_scalar(
            "insert into contacts (company_id, name, number)
             select $1, 'Ana Prado ' || n, '55219' || lpad(n::text, 8, '0') from generate_series(1, $2) n
             returning id",
        )
        .bind(self.id)
        .bind(i64::try_from(count)?)
        .fetch_all(db)
        .await?)
    }
}

/// Waits until the service sees a record that the command line created.
async fn wait_until_seen(api: &Api, path: &str) -> Outcome<()> {
    let seen = async {
        while !api.send(Method::GET, path, None).await?.status().is_success() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    tokio::time::timeout(SEEN_TIME_MAX, seen).await.map_err(|_| format!("GET {path} is refused"))?
}

fn ids(made: &[Value]) -> Outcome<Vec<i64>> {
    made.iter().map(|made| number(made, "id")).collect()
}

fn number(value: &Value, field: &str) -> Outcome<i64> {
    value[field].as_i64().ok_or_else(|| format!("no number {field} in {value}").into())
}

fn text(value: &Value, field: &str) -> Outcome<String> {
    Ok(value[field].as_str().ok_or_else(|| format!("no text {field} in {value}"))?.to_owned())
}
