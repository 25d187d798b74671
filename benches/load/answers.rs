//! Answers of Hotline, recorded once; the bare handlers return them to every request.

use reqwest::Method;
use reqwest::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::outcome::Outcome;
use crate::seed::{Api, Company};

/// A complete answer, so that a bare handler sends as many bytes as Hotline.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// One answer of each kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answers {
    pub send: Answer,
    pub open: Answer,
    /// For every change of a ticket.
    pub change: Answer,
    pub read: Answer,
    pub list_20: Answer,
    pub inbox: Answer,
    pub say: Answer,
}

impl Answers {
    /// Requests and records them. `spare` is a contact without a ticket; its new ticket is closed again.
    pub async fn record(api: &Api, company: &Company, spare: i64) -> Outcome<Self> {
        let first = company.tickets.first().ok_or("there is no ticket")?;
        let session = company.sessions.first().ok_or("there is no session")?;
        let message = json!({"ticketId": first, "type": "text", "body": "Good morning!"});
        let new = json!({"channelId": company.channel, "contactId": spare});
        let open = record(api, Method::POST, "/tickets", Some(new)).await?;
        let opened: Value = serde_json::from_str(&open.body)?;
        let close = format!("/tickets/{}/close", opened["data"]["id"]);
        let wrapup = json!({"wrapupTypeId": company.wrapup_type, "wrapupNote": "Sent a new one, free of charge."});
        let said = json!({"body": "Hello, where is my order? It should have been here on Monday.", "clientId": "0-0"});
        Ok(Self {
            send: record(api, Method::POST, "/messages", Some(message)).await?,
            open,
            change: record(api, Method::POST, &close, Some(wrapup)).await?,
            read: record(api, Method::GET, &format!("/tickets/{first}"), None).await?,
            list_20: record(api, Method::GET, "/tickets?status=open&perPage=20", None).await?,
            inbox: record(api, Method::GET, "/tickets?status=open&sort=activity&perPage=100", None).await?,
            say: record(api, Method::POST, &format!("/webchat/sessions/{session}/messages"), Some(said)).await?,
        })
    }
}

async fn record(api: &Api, method: Method, path: &str, body: Option<Value>) -> Outcome<Answer> {
    let response = api.send(method, path, body.as_ref()).await?.error_for_status()?;
    // The framework adds these headers for every server.
    let of_framework = [CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING];
    let headers = response.headers().iter().filter(|(name, _)| !of_framework.contains(name));
    let headers = headers.map(|(name, value)| Ok((name.to_string(), value.to_str()?.to_owned())));
    Ok(Answer {
        status: response.status().as_u16(),
        headers: headers.collect::<Outcome<_>>()?,
        body: response.text().await?,
    })
}
