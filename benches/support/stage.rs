//! A running service with companies whose contacts have tickets, called over HTTP.

use std::time::Instant;

use hotline::cli::everything;
use hotline::service::{Service, Settings};
use hotline_persistence::pool;
use hotline_persistence::tables::tokens::{self, NewToken};
use reqwest::Client;
use serde_json::{Value, json};

use super::{Company, Postgres};

/// A service, and the keys of its companies.
pub struct Stage {
    pub service: Service,
    pub client: Client,
    pub companies: Vec<Tenant>,
}

/// A company's token and tickets.
pub struct Tenant {
    pub key: String,
    pub tickets: Vec<i64>,
}

impl Stage {
    /// Starts a service with this many companies, with this many tickets each, on a new database; `adapt` changes its
    /// settings.
    pub async fn start(
        postgres: &Postgres,
        name: &str,
        (companies, tickets): (usize, usize),
        adapt: impl FnOnce(&mut Settings),
    ) -> Self {
        let database = postgres.database(name).await;
        let db = pool::connect(database.clone());
        pool::migrate(&db).await.expect("migrate");
        let mut made = Vec::new();
        for _ in 0..companies {
            let company = Company::create(&db, tickets).await;
            let new = NewToken { name: "bench", permissions: everything(), ..NewToken::default() };
            let (_, key) = tokens::insert(&db, company.id, new).await.expect("token");
            made.push((company, key));
        }
        db.close().await;
        let mut settings = Settings { rate_per_minute: u32::MAX, ..super::http::settings(postgres, database) };
        adapt(&mut settings);
        let service = Service::start(settings).await.expect("the service starts");
        let client = hotline::tls::client().pool_max_idle_per_host(512).build().expect("a client");
        let mut stage = Self { service, client, companies: Vec::new() };
        for (company, key) in made {
            let mut tenant = Tenant { key, tickets: Vec::new() };
            for contact in &company.contacts {
                let opening = json!({"channelId": company.channel, "contactId": contact.id});
                let opened = stage.post(&tenant.key, "/tickets", &opening).await;
                tenant.tickets.push(opened["data"]["id"].as_i64().expect("a ticket"));
            }
            stage.companies.push(tenant);
        }
        stage.drain().await;
        stage
    }

    pub async fn post(&self, key: &str, path: &str, body: &Value) -> Value {
        let answer = self.client.post(self.url(path)).bearer_auth(key).json(body).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.expect("JSON")
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/api/v1{path}", self.service.address)
    }

    /// Sends a message in one of a company's tickets; returns its id, and the time of the answer.
    pub async fn send(&self, company: &Tenant, number: usize) -> (i64, Instant) {
        let ticket = company.tickets[number % company.tickets.len()];
        let send = json!({"ticketId": ticket, "type": "text", "body": format!("message {number}")});
        let sent = self.post(&company.key, "/messages", &send).await;
        let job = sent["data"]["jobId"].as_str().expect("a job");
        (job.trim_start_matches("job_").parse().expect("a number"), Instant::now())
    }

    /// Waits until everything is in the tables.
    pub async fn drain(&self) {
        super::drain(&self.service.app.engine.store().log).await;
    }
}
