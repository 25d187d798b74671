//! What was accepted is sent, across kills, restarts and refused tokens.

mod after_send;
mod groups;
mod kill;
mod token;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use hotline_persistence::tables::channels::{ChannelRow, ChannelType};
use reqwest::Method;
use serde_json::{Value, json};

use crate::process::{Process, keys_of, serving, with_database};
use crate::support::provider::hooks::{Phone, signature};
use crate::support::seed::{APP_SECRET, provided};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, PATIENCE, Provider, eventually, patience};

/// No rate limits, and short delays before a retry.
const FAST: &[&str] = &[
    "--rate-per-minute=0",
    "--sends-per-second=0",
    "--recipient-interval=0",
    "--send-retry-delay=5ms",
    "--send-retry-max-delay=20ms",
];

/// A service that runs as a process, with a channel whose provider is in the test and outlives it.
struct Office {
    folder: tempfile::TempDir,
    provider: Provider,
    process: Option<Process>,
    company: Company,
    channel: ChannelRow,
    api: Api,
}

impl Office {
    async fn open(account: &str) -> Self {
        let folder = prepared_folder();
        let provider = Provider::start().await;
        let process =
            Process::try_serve(folder.path(), FAST).unwrap_or_else(|log| panic!("hotline does not start: {log}"));
        let (company, channel) = with_database(folder.path(), async |db| {
            let company = Company::create(db, "Acme").await;
            let channel =
                provided(db, &keys_of(folder.path()), company.id, ChannelType::Whatsapp, account, &provider.url).await;
            (company, channel)
        })
        .await;
        let api = Api::new(process.address, &company.key);
        // A list of channels is read from the tables, but a filter by channel needs the directory to know it.
        let list = format!("/messages?channelId={}", channel.id);
        let is_known = || async { api.get(&list).await.status == 200 };
        eventually("the company is known", is_known).await;
        Self { folder, provider, process: Some(process), company, channel, api }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Kills the service, if it has not ended by itself.
    fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    fn start(&mut self) {
        let process =
            Process::try_serve(self.path(), FAST).unwrap_or_else(|log| panic!("hotline does not start: {log}"));
        self.api = Api::new(process.address, &self.company.key);
        self.process = Some(process);
    }

    /// Starts a service that reaches this failpoint without any request, and ends itself there.
    fn start_until(&self, point: &str) {
        let mut command = serving(self.path());
        let command =
            command.args(FAST).env("FAILPOINTS", format!("{point}=return")).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("hotline runs");
        let deadline = Instant::now() + patience(PATIENCE);
        let status = loop {
            if let Some(status) = child.try_wait().expect("status") {
                break status;
            }
            assert!(Instant::now() < deadline, "the point {point} is not reached");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(!status.success(), "it exited successfully instead of stopping at {point}");
    }

    /// A phone number with the id `account`, as the provider's calls name it.
    fn phone(&self, account: &str) -> Phone {
        Phone { id: account.to_owned(), number: "15550783881".to_owned() }
    }

    /// Calls the hook as the provider does, and repeats the call until it is answered with 200.
    async fn call_hook(&self, body: &Value) {
        let body = body.to_string();
        let path = format!("/hooks/{}", self.channel.public_key);
        let call = || async {
            let request = self.api.anonymous(Method::POST, &path).body(body.clone());
            let request = request.header("x-hub-signature-256", signature(APP_SECRET, body.as_bytes()));
            request.header("content-type", "application/json").send().await.is_ok_and(|reply| reply.status() == 200)
        };
        eventually("the hook answers", call).await;
    }

    async fn send(&self, number: &str, body: &str, more_fields: Value) -> String {
        let mut message = json!({"channelId": self.channel.id, "number": number, "type": "text", "body": body});
        if let (Value::Object(message), Value::Object(more)) = (&mut message, more_fields) {
            message.extend(more);
        }
        let reply = self.api.retry_while_busy(|| self.api.request(Method::POST, "/messages").json(&message)).await;
        reply.data(202)["jobId"].as_str().expect("a job").to_owned()
    }

    async fn job(&self, job: &str) -> Value {
        self.api.get(&format!("/messages/jobs/{job}")).await.data(200).clone()
    }

    async fn wait_for_status(&self, job: &str, status: &str) {
        eventually(&format!("{job} is {status}"), || async { self.job(job).await["status"] == status }).await;
    }

    /// Stops the service, which must exit cleanly.
    fn close(mut self) {
        let mut process = self.process.take().expect("it runs");
        process.terminate();
        assert!(process.wait().success(), "the stop was not clean: {}", process.log());
    }
}

/// A phone number, different for each index.
fn number(index: usize) -> String {
    format!("55119{index:08}")
}
