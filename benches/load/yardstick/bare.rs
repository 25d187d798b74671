//! (a) A handler and nothing else: it parses the body that Hotline parses, and answers the bytes that Hotline answered
//! once. No token, no state, no disk: what is left is actix-web, serde and the sockets.

use std::hint::black_box;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{self, Data, Json, Path, Query, ServiceConfig};
use serde::Deserialize;

use crate::answers::{Answer, Answers};
use crate::scenario::Server;

pub fn routes(services: &mut ServiceConfig) {
    services.service(
        web::scope(Server::Bare.prefix())
            .route("/messages", web::post().to(send))
            .route("/tickets", web::post().to(open))
            .route("/tickets", web::get().to(list))
            .route("/tickets/{ticketId}", web::get().to(read))
            .route("/tickets/{ticketId}/{verb}", web::post().to(change))
            .route("/webchat/sessions/{sessionId}/messages", web::post().to(say)),
    );
}

/// The fields of `POST /messages`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code)] // Parsed, as in the service; there is nothing to do with it here.
pub(super) struct Message {
    pub(super) ticket_id: i64,
    pub(super) channel_id: Option<i64>,
    pub(super) contact_id: Option<i64>,
    pub(super) number: Option<String>,
    pub(super) contact_name: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) body: String,
    pub(super) reopen_ticket: Option<bool>,
    pub(super) queue_id: Option<i64>,
    pub(super) close_ticket: Option<bool>,
    pub(super) wrapup_type_id: Option<i64>,
    pub(super) wrapup_note: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code)]
struct Ticket {
    channel_id: i64,
    contact_id: i64,
    queue_id: Option<i64>,
    user_id: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code)]
struct Change {
    wrapup_type_id: Option<i64>,
    wrapup_note: Option<String>,
    queue_id: Option<i64>,
    user_id: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code)]
struct Said {
    body: String,
    client_id: Option<String>,
}

async fn send(message: Json<Message>, answers: Data<Answers>) -> HttpResponse {
    black_box(message);
    respond(&answers.send)
}

async fn open(ticket: Json<Ticket>, answers: Data<Answers>) -> HttpResponse {
    black_box(ticket);
    respond(&answers.open)
}

async fn change(change: Json<Change>, path: Path<(i64, String)>, answers: Data<Answers>) -> HttpResponse {
    black_box((change, path));
    respond(&answers.change)
}

async fn read(path: Path<i64>, answers: Data<Answers>) -> HttpResponse {
    black_box(path);
    respond(&answers.read)
}

#[derive(Deserialize)]
struct List {
    sort: Option<String>,
}

async fn list(list: Query<List>, answers: Data<Answers>) -> HttpResponse {
    let is_inbox = list.sort.as_deref() == Some("activity");
    respond(if is_inbox { &answers.inbox } else { &answers.list_20 })
}

async fn say(said: Json<Said>, path: Path<String>, answers: Data<Answers>) -> HttpResponse {
    black_box((said, path));
    respond(&answers.say)
}

fn respond(answer: &Answer) -> HttpResponse {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = HttpResponse::build(status);
    for (name, value) in &answer.headers {
        response.append_header((name.as_str(), value.as_str()));
    }
    response.body(answer.body.clone())
}
