//! Files of messages: received, stored only together with their message, and served at a secret URL.

mod form;
mod keyed;
mod lifetime;
mod served;
mod types;

use std::path::PathBuf;

use chrono::{TimeDelta, Utc};
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::support::form::Form;
use crate::support::service::TestOptions;
use crate::support::{Api, OwnApp};

pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
pub const PDF: &[u8] = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n";

/// A service in which a visitor waits for an answer.
pub struct MediaFixture {
    pub app: OwnApp,
    pub ticket: i64,
    pub contact: i64,
    pub session: String,
}

impl MediaFixture {
    pub async fn start() -> Self {
        Self::start_with(TestOptions::default()).await
    }

    pub async fn start_with(options: TestOptions) -> Self {
        let app = OwnApp::start_with(options).await;
        let (session, contact) = app.session("visitor").await;
        let message = json!({"body": "send it to me"});
        let message = app.api.post(&format!("/webchat/sessions/{session}/messages"), message).await;
        let ticket = message.data(201)["ticketId"].as_i64().expect("ticket");
        Self { app, ticket, contact: contact.0, session: session.0 }
    }

    pub fn api(&self) -> &Api {
        &self.app.api
    }

    /// The beginning of a form that sends files to the visitor.
    pub fn form(&self) -> Form {
        Form::default().text("type", "media").text("ticketId", self.ticket)
    }

    /// Sends one file, and returns its message.
    pub async fn sent(&self, file_name: &str, mime_type: &str, content: &[u8]) -> Value {
        let sent = self.api().send_form(self.form().file(file_name, mime_type, content)).await;
        let job = sent.data(202)["jobId"].as_str().expect("job").to_owned();
        let job = self.api().get(&format!("/messages/jobs/{job}")).await;
        self.message(&job.data(200)["messageId"]).await
    }

    pub async fn message(&self, id: &Value) -> Value {
        self.api().get(&format!("/messages/{id}")).await.data(200).clone()
    }

    /// The listed messages with a file.
    pub async fn media_messages(&self) -> Vec<Value> {
        self.api().all("/messages?type=media").await
    }

    /// The files that are stored.
    pub fn stored(&self) -> Vec<PathBuf> {
        self.app.stored_files()
    }

    /// The files that are still being received.
    pub fn arriving(&self) -> Vec<PathBuf> {
        self.app.arriving_files()
    }

    /// Sweeps as if it were three hours later, and removes the files that belong to no message; returns how many.
    pub async fn sweep_later(&self) -> usize {
        let app = &self.app.service.app;
        app.media.sweep(&app.engine, Utc::now() + TimeDelta::hours(3)).await.expect("the sweep")
    }

    /// Requests a file at its URL.
    pub async fn read(&self, url: &str, headers: &[(&str, &str)]) -> Served {
        self.ask(Method::GET, url, headers).await
    }

    pub async fn ask(&self, method: Method, url: &str, headers: &[(&str, &str)]) -> Served {
        let mut request = self.api().anonymous(method, url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Served { status, headers, bytes: response.bytes().await.expect("a whole body").to_vec() }
    }
}

/// The response to a request for a file.
pub struct Served {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Served {
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {:?}", self.headers)).to_str().expect("text")
    }

    /// The error code in the body.
    pub fn code(&self) -> String {
        let body: Value = serde_json::from_slice(&self.bytes).expect("JSON");
        body["error"]["code"].as_str().expect("a code").to_owned()
    }
}

/// The URL of a message's file.
#[track_caller]
pub fn url(message: &Value) -> String {
    message["media"]["url"].as_str().unwrap_or_else(|| panic!("no file: {message}")).to_owned()
}
