//! The audit log: what administrators do. An entry is written before the request is executed and completed with its
//! outcome, so nothing is done without an entry. Exports are recorded before their response is sent.

use std::net::IpAddr;

use actix_web::Error;
use actix_web::ResponseError;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use hotline_persistence::CompanyId;
use hotline_persistence::tables::audit_log::{self, NewEntry};
use hotline_persistence::tables::people::called;
use hotline_persistence::tables::people::sessions::Signed;
use serde_json::Value;

use super::{Panel, site};
use crate::app::App;
use crate::web::ApiError;

/// Maximum size of a response that is searched for the created record.
const LOOKED_INTO_BYTES_MAX: usize = 64 * 1024;

/// Serves a request, and records it if it is audited.
pub(super) async fn kept(
    app: &App,
    panel: &Panel,
    company: CompanyId,
    signed: &Signed,
    request: ServiceRequest,
    serve: impl AsyncFnOnce(ServiceRequest) -> Result<ServiceResponse<BoxBody>, Error>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let known = panel.known(&request);
    let address = site::address(request.request(), &app.trusted_proxies).map(|address: IpAddr| address.to_string());
    let entry = |action, target| NewEntry {
        actor: signed.person(),
        actor_name: called(&signed.name, &signed.email),
        address: address.as_deref(),
        action,
        target_id: target,
    };
    let Some(known) = known.filter(|known| known.is_audited) else {
        let Some(export) = known.filter(|known| known.may_be_export) else { return serve(request).await };
        let response = serve(request).await?;
        let is_export = response
            .headers()
            .get(CONTENT_TYPE)
            .map(HeaderValue::as_bytes)
            .is_some_and(|kind| kind.starts_with(b"text/csv"));
        if is_export {
            let noted = async {
                let begun = audit_log::begin(app.db(company), company, entry(&export.id, None)).await?;
                audit_log::end(app.db(company), begun, response.status().as_u16(), (None, None)).await
            };
            // An export that cannot be recorded is not delivered.
            if let Err(error) = noted.await {
                return Ok(response.into_response(ApiError::from(error).error_response()));
            }
        }
        return Ok(response);
    };
    let target = target(&request);
    let begun = match audit_log::begin(app.db(company), company, entry(&known.id, target.as_deref())).await {
        Ok(begun) => begun,
        Err(error) => return Ok(request.into_response(ApiError::from(error).error_response())),
    };
    let response = serve(request).await?;
    let (response, made) = look_into(response);
    let (id, name) = made;
    let ended = audit_log::end(app.db(company), begun, response.status().as_u16(), (id.as_deref(), name.as_deref()));
    if let Err(error) = ended.await {
        tracing::warn!(%error, company.id = %company, action = %known.id, "what became of an act is not in the audit log");
    }
    Ok(response)
}

/// The id of the record in the path.
fn target(request: &ServiceRequest) -> Option<String> {
    let path = request.match_info().as_str();
    path.split('/').find(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())).map(str::to_owned)
}

/// The id and the name of the record in the response, if there are any.
fn look_into(response: ServiceResponse<BoxBody>) -> (ServiceResponse<BoxBody>, (Option<String>, Option<String>)) {
    let (request, response) = response.into_parts();
    let (response, body) = response.into_parts();
    let (body, made) = match body.try_into_bytes() {
        Ok(bytes) if bytes.len() <= LOOKED_INTO_BYTES_MAX => {
            let made = made(&bytes);
            (BoxBody::new(bytes), made)
        }
        Ok(bytes) => (BoxBody::new(bytes), (None, None)),
        Err(body) => (body, (None, None)),
    };
    (ServiceResponse::new(request, response.set_body(body)), made)
}

fn made(bytes: &[u8]) -> (Option<String>, Option<String>) {
    let answer: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let data = &answer["data"];
    // The response of a token contains it beside its key.
    let data = if data["token"].is_object() { &data["token"] } else { data };
    (data["id"].as_i64().map(|id| id.to_string()), data["name"].as_str().map(str::to_owned))
}
