//! The hooks: where the providers of phone and social channels call, `/hooks/{publicKey}`. They are outside the API,
//! because providers have no token of a company.
//!
//! `GET` answers the challenge by which a provider verifies the URL. `POST` receives what happened: messages of
//! contacts, and statuses of our messages. A call is accepted if its body is signed with the channel's app secret
//! (`signature.rs`), and answered `200` once all of its content is durable.
//!
//! # Responses
//!
//! A provider repeats a call that is not answered `200`, for days, and disables a URL that fails for long. So:
//!
//! - `200` for everything signed that was processed now or before, or can never be read: a repetition would contain the
//!   same bytes. Unreadable parts are counted in the response and in the log; the others are processed. A call of more
//!   values than its channel has memory for is one unreadable part.
//! - `503` when something cannot be processed now (the database is needed and unavailable, or the journal is full):
//!   everything already processed stays so, and the repetition adds the rest.
//! - `401` without a valid signature; nothing is stored. `404` for a key that belongs to no phone or social channel.
//!   Instead of either, `429` for an address with too many wrong guesses, but never for a call with a valid signature.
//!   `413` for a body that is larger than a provider sends.
//!
//! A call is processed to its end even if the provider disconnects: its repetition then finds it done.

mod account;
mod budget;
mod call;
mod content;
mod document;
mod downloads;
mod identity;
mod intake;
mod numbers;
mod signature;
mod social;
mod state;
mod whatsapp;
mod wrong_guesses;

use actix_web::http::header::X_CONTENT_TYPE_OPTIONS;
use actix_web::web::{self, Data};
use actix_web::{HttpMessage, HttpRequest, HttpResponse};
use hotline_actors::Refusal;
use hotline_persistence::tables::channels::{ChannelRow, ChannelType};
use hotline_persistence::tables::events::{By, act_as};
use serde_json::{Value, json};

use self::call::{AccountNewsKind, Call};
pub use self::document::{Challenge, Received};
pub use self::downloads::Downloads;
use self::intake::process_call;
pub use self::state::Hooks;
use self::wrong_guesses::GuessKind;
use crate::app::App;
use crate::metrics::Tally;
use crate::openapi::{DocumentedResponse, Operation, Table};
use crate::web::admission::auth::AcquiredPresence;
use crate::web::connections::origin::{self, Address};
use crate::web::response::schema::Schemas;
use crate::web::tenant::Tenant;
use crate::web::{ApiError, ApiResult};

/// The path of the hooks.
pub const PATH: &str = "/hooks/{publicKey}";

/// Maximum size of a challenge: a provider sends a number.
const CHALLENGE_BYTES_MAX: usize = 1024;

const CHALLENGE_TYPE: &str = "text/plain; charset=utf-8";

fn paths(table: &mut Table<'_>) {
    table.at(PATH).get("verifyHook", verify, "Verify the webhook URL for a provider").post(
        "receiveHook",
        receive,
        "Receive messages and statuses",
    );
}

/// The operations for providers; the schemas they refer to are added to `schemas`.
pub fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let mut table = Table::outside_api(schemas, "hooks", |_| "");
    paths(&mut table);
    table.finish().into_iter().flat_map(|entry| entry.operations).collect()
}

/// Registers the hooks.
pub fn configure(services: &mut web::ServiceConfig) {
    let mut schemas = Schemas::new();
    let mut table = Table::outside_api(&mut schemas, "hooks", |_| "");
    paths(&mut table);
    for entry in table.finish() {
        services.service(entry.into_resource());
    }
}

/// `GET /hooks/{publicKey}`: the provider verifies the URL.
/// <https://developers.facebook.com/docs/graph-api/webhooks/getting-started#verification-requests>
pub async fn verify(
    request: HttpRequest,
    app: Data<App>,
    hooks: Data<Hooks>,
) -> ApiResult<DocumentedResponse<Challenge>> {
    let address = caller_address(&request, &app);
    let channel = channel(&request, &app, &hooks, address)?;
    let guess = GuessKind::Token((channel.company_id, channel.id));
    hooks.wrong_guesses.check(address, guess)?;
    let (mut mode, mut token, mut challenge) = (None, None, None);
    for (name, value) in form_urlencoded::parse(request.query_string().as_bytes()) {
        match &*name {
            "hub.mode" => mode = Some(value.into_owned()),
            "hub.verify_token" => token = Some(value.into_owned()),
            "hub.challenge" => challenge = Some(value.into_owned()),
            _ => {}
        }
    }
    let expected = channel.settings()?.verify_token;
    let is_token_valid =
        expected.zip(token).is_some_and(|(expected, token)| signature::is_same_secret(&expected, &token));
    if !is_token_valid {
        let message = "the verify token is missing or invalid".to_owned();
        return Err(hooks.wrong_guesses.refuse(address, guess, ApiError { message, ..ApiError::unauthorized() }));
    }
    let challenge = challenge.filter(|challenge| challenge.len() <= CHALLENGE_BYTES_MAX);
    match (mode.as_deref(), challenge) {
        (Some("subscribe"), Some(challenge)) => {
            let no_sniffing = (X_CONTENT_TYPE_OPTIONS, "nosniff");
            Ok(HttpResponse::Ok().content_type(CHALLENGE_TYPE).insert_header(no_sniffing).body(challenge).into())
        }
        _ => Err(ApiError::bad_request("hub.mode must be `subscribe`, and hub.challenge is required")),
    }
}

/// `POST /hooks/{publicKey}`: the provider reports what happened.
pub async fn receive(
    request: HttpRequest,
    app: Data<App>,
    hooks: Data<Hooks>,
    payload: web::Payload,
) -> ApiResult<DocumentedResponse<Received>> {
    let outcome = execute(&request, &app, &hooks, payload).await;
    match &outcome {
        Ok(tally) => app.metrics.hooks.add_events(tally),
        Err(_) => app.metrics.hooks.add_refused(),
    }
    outcome.map(respond)
}

async fn execute(request: &HttpRequest, app: &Data<App>, hooks: &Hooks, payload: web::Payload) -> ApiResult<Tally> {
    let address = caller_address(request, app);
    let channel = channel(request, app, hooks, address)?;
    let key = (channel.company_id, channel.id);
    request.extensions_mut().insert(Tenant(key.0));
    let permit = hooks.budget.admit(key)?;
    let bytes = permit.read(payload.into_inner()).await?;
    let secret = channel.settings()?.app_secret;
    if !secret.is_some_and(|secret| signature::is_valid(request.headers(), &bytes, &secret)) {
        let message = "the signature is missing or invalid".to_owned();
        let refusal = ApiError { message, ..ApiError::unauthorized() };
        return Err(hooks.wrong_guesses.refuse(address, GuessKind::Signature(key), refusal));
    }
    let is_parsable = permit.reserve_for_parsing(&bytes).await?;
    let organization = app.engine.directory().company(key.0).ok_or_else(ApiError::not_found)?;
    if !organization.company.active {
        return Err(ApiError::company_inactive());
    }
    // A request that has already acquired the company's presence reuses it.
    let reused = AcquiredPresence::has(request, key.0).then(|| app.engine.store().ownership().follow(key.0)).flatten();
    let presence = match reused {
        Some(presence) => presence,
        None => app.engine.enter(key.0).await?,
    };
    let (app, downloads) = (app.clone(), hooks.downloads.clone());
    let background = app.engine.background().clone();
    let outcome = background.spawn(async move {
        let (_permit, _presence) = (permit, presence);
        let call = parse_call(&channel, is_parsable.then(|| call::parse(&bytes)).flatten().as_ref());
        drop(bytes);
        let has_template_news = call.news.iter().any(|news| matches!(news.kind, AccountNewsKind::Template(_)));
        let outcome = act_as(By::ITS_CONTACT, process_call(&app.engine, &downloads, &channel, call)).await;
        if has_template_news {
            app.templates.forget(channel.company_id);
        }
        outcome
    });
    Ok(outcome.await.unwrap_or_else(|panic| Err(Refusal::Defect(panic.to_string())))?)
}

fn respond(tally: Tally) -> DocumentedResponse<Received> {
    HttpResponse::Ok().json(json!({"data": tally})).into()
}

/// Parses a call. An unreadable one counts as one unreadable part: a repetition would contain the same bytes.
fn parse_call(channel: &ChannelRow, call: Option<&Value>) -> Call {
    let object = call.and_then(|call| call.get("object")?.as_str());
    match (channel.kind, call, object) {
        (ChannelType::Whatsapp, Some(call), Some("whatsapp_business_account")) => whatsapp::parse_call(call),
        (ChannelType::Messenger, Some(call), Some("page")) => social::parse_call(call, social::MESSENGER),
        // An Instagram account that is connected through its page may be reported as either.
        (ChannelType::Instagram, Some(call), Some("instagram" | "page")) => social::parse_call(call, social::INSTAGRAM),
        (_, Some(Value::Object(_)), Some(_)) => Call { ignored: 1, ..Call::default() },
        _ => Call { unreadable: 1, ..Call::default() },
    }
}

fn caller_address(request: &HttpRequest, app: &App) -> Option<Address> {
    origin::of(request.peer_addr(), request.headers(), &app.trusted_proxies).map(Address::of)
}

/// The channel that the path names.
fn channel(request: &HttpRequest, app: &App, hooks: &Hooks, address: Option<Address>) -> ApiResult<ChannelRow> {
    let directory = app.engine.directory();
    let key = request.match_info().get("publicKey").and_then(|public_key| directory.channel(public_key));
    let channel = key.and_then(|(company, id)| directory.company(company)?.channels.get(&id).cloned());
    // A webchat has no provider.
    channel.filter(|channel| channel.kind != ChannelType::Webchat).ok_or_else(|| {
        // Only after the look-up: a caller with a known key is not limited because of callers with unknown ones.
        hooks.wrong_guesses.refuse(address, GuessKind::Key, ApiError::not_found())
    })
}
