//! The audit log: what administrators and integrations do, and who signs in. An entry is written before the request is
//! executed, and completed with the outcome afterwards, so nothing is done without an entry. An export is recorded
//! before its response is sent. A wrong password, one that matches several memberships, and a requested password link
//! are recorded once the outcome is known.

use std::panic::{AssertUnwindSafe, resume_unwind};

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage, HttpRequest, ResponseError};
use futures_util::FutureExt;
use hotline_persistence::CompanyId;
use hotline_persistence::tables::audit_log::{self, Actor, NewEntry, RunningEntry};
use hotline_persistence::tables::events::{act_as, current_author};
use hotline_persistence::tables::people::sessions::SignedInPerson;
use hotline_persistence::tables::people::{PersonId, display_name};
use serde_json::Value;
use tracing::Instrument;

use super::operations::{AUDITED_NOUNS_OF_TOKENS, AuditRule, target};
use super::{Panel, site};
use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller};

/// Maximum size of a response that is searched for the created record.
const SEARCHED_BYTES_MAX: usize = 64 * 1024;

/// The actor of a request, its name, and the company.
pub(super) struct RequestActor<'a> {
    company: CompanyId,
    actor: Actor,
    name: &'a str,
}

impl<'a> RequestActor<'a> {
    /// A signed-in person.
    pub(super) fn of_person(company: CompanyId, signed_in: &'a SignedInPerson) -> Self {
        Self { company, actor: signed_in.person().into(), name: display_name(&signed_in.name, &signed_in.email) }
    }
}

/// Whether any operation of the API whose path begins with this noun is audited.
pub fn has_audited_operations(noun: &str) -> bool {
    AUDITED_NOUNS_OF_TOKENS.contains(&noun.trim_start_matches('/'))
}

/// Records the audited operations of integrations: the middleware that runs after
/// [`crate::web::admission::auth::admit`].
///
/// # Errors
/// Errors of the inner service; refusals are responses.
pub async fn audit_tokens<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let state = request.app_data::<Data<App>>().cloned().zip(request.app_data::<Data<Panel>>().cloned());
    let caller = request.extensions().get::<Caller>().cloned();
    let serve = async move |request: ServiceRequest| Ok::<_, Error>(next.call(request).await?.map_into_boxed_body());
    let Some(((app, panel), caller)) = state.zip(caller) else {
        let defect = ApiError::internal("an audited request has no actor");
        return Ok(request.into_response(defect.error_response()));
    };
    let Some(token) = caller.token() else { return serve(request).await };
    let actor = RequestActor { company: caller.company, actor: Actor::Token(token.row.id), name: &token.row.name };
    serve_audited(&app, &panel, actor, request, serve).await
}

/// Serves a request, and records it if it is audited. A request that was recorded before it is executed is completed,
/// and its outcome recorded, even if the client disconnects.
pub(super) async fn serve_audited(
    app: &Data<App>,
    panel: &Panel,
    request_actor: RequestActor<'_>,
    request: ServiceRequest,
    serve: impl AsyncFnOnce(ServiceRequest) -> Result<ServiceResponse<BoxBody>, Error> + 'static,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let RequestActor { company, actor, name } = request_actor;
    let address = client_address(request.request(), app);
    let entry =
        |action, target_id| NewEntry { actor, actor_name: name, address: address.as_deref(), action, target_id };
    let action = match panel.operations.audit_rule(&request) {
        AuditRule::Never => return serve(request).await,
        AuditRule::IfExport(id) => {
            let response = serve(request).await?;
            return Ok(record_export(app, company, entry(id, None), response).await);
        }
        AuditRule::Before(id) => id,
    };
    let (app, name, action) = (app.clone(), name.to_owned(), action.to_owned());
    let serve_recorded = async move {
        let target = target(request.match_info().as_str());
        let (address, target_id) = (address.as_deref(), target.as_deref());
        let entry = NewEntry { actor, actor_name: &name, address, action: &action, target_id };
        let open_entry = match audit_log::begin(app.db(company), company, entry).await {
            Ok(open_entry) => open_entry,
            Err(error) => return Ok(request.into_response(ApiError::from(error).error_response())),
        };
        // Without `catch_unwind`, the entry of an action that panics would stay without an outcome.
        let served = AssertUnwindSafe(serve(request)).catch_unwind().await;
        let served = served.map(|outcome| outcome.map(extract_created));
        record_outcome(&app, company, (open_entry, &action), &served).await;
        match served {
            Ok(outcome) => outcome.map(|(response, _)| response),
            Err(panic) => resume_unwind(panic),
        }
    };
    run_to_end(serve_recorded).await
}

/// The response with the created record, the error, or the panic.
type ServedOutcome = std::thread::Result<Result<(ServiceResponse<BoxBody>, CreatedRecord), Error>>;

/// Completes the entry of an action with its outcome. A failure to record it is only logged.
async fn record_outcome(
    app: &App,
    company: CompanyId,
    (open_entry, action): (RunningEntry, &str),
    served: &ServedOutcome,
) {
    let (status, created) = match served {
        Ok(Ok((response, created))) => (response.status(), Some(created)),
        Ok(Err(error)) => (error.as_response_error().status_code(), None),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, None),
    };
    let created_target = created.map(|created| (created.id.as_deref(), created.name.as_deref()));
    let end = audit_log::end(app.db(company), open_entry, status.as_u16(), created_target.unwrap_or_default());
    if let Err(error) = end.await {
        tracing::warn!(%error, company.id = %company, action, "could not record an action's result in the audit log");
    }
}

/// Runs work to its end, even if the request is dropped meanwhile.
async fn run_to_end(
    work: impl Future<Output = Result<ServiceResponse<BoxBody>, Error>> + 'static,
) -> Result<ServiceResponse<BoxBody>, Error> {
    // A spawned task does not inherit the author of the changes.
    let work = act_as(current_author(), work);
    match actix_web::rt::spawn(work.in_current_span()).await {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(error) => Err(ApiError::internal(error).into()),
        },
    }
}

/// Records a response that is an export. If it cannot be recorded, it is not sent.
async fn record_export(
    app: &App,
    company: CompanyId,
    entry: NewEntry<'_>,
    response: ServiceResponse<BoxBody>,
) -> ServiceResponse<BoxBody> {
    let content_type = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !content_type.is_some_and(|content_type| content_type.starts_with(b"text/csv")) {
        return response;
    }
    match audit_log::record(app.db(company), company, entry, response.status().as_u16()).await {
        Ok(()) => response,
        Err(error) => response.into_response(ApiError::from(error).error_response()),
    }
}

/// The client's address.
fn client_address(request: &HttpRequest, app: &App) -> Option<String> {
    site::address(request, &app.trusted_proxies).map(|address| address.to_string())
}

/// Records sign-ins, sign-outs and password links.
pub(super) struct SignInAudit<'a> {
    app: &'a App,
    address: Option<String>,
    action: &'static str,
}

impl<'a> SignInAudit<'a> {
    /// For a request with this action.
    pub(super) fn of(app: &'a App, request: &HttpRequest, action: &'static str) -> Self {
        Self { app, address: client_address(request, app), action }
    }

    /// For an action that runs after the response to a request from this address.
    pub(super) fn for_address(app: &'a App, address: Option<String>, action: &'static str) -> Self {
        Self { app, address, action }
    }

    /// The client's address, for [`SignInAudit::for_address`].
    pub(super) fn client_address(app: &App, request: &HttpRequest) -> Option<String> {
        client_address(request, app)
    }

    fn entry<'e>(&'e self, person: PersonId, name: &'e str) -> NewEntry<'e> {
        let address = self.address.as_deref();
        NewEntry { actor: person.into(), actor_name: name, address, action: self.action, target_id: None }
    }

    /// Records the start of the action, executes it with `work`, and records the outcome: the status `success`, or that
    /// of the error. A panic of `work` is recorded as a 500.
    ///
    /// # Errors
    /// Any error of `work`; or when the start cannot be recorded, in which case `work` does not run.
    pub(super) async fn run<T>(
        &self,
        (person, name): (PersonId, &str),
        success: StatusCode,
        work: impl AsyncFnOnce() -> ApiResult<T>,
    ) -> ApiResult<T> {
        let company = person.company();
        let open_entry = audit_log::begin(self.app.db(company), company, self.entry(person, name)).await?;
        let outcome = AssertUnwindSafe(work()).catch_unwind().await;
        let status = match &outcome {
            Ok(Ok(_)) => success,
            Ok(Err(error)) => error.status,
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let end = audit_log::end(self.app.db(company), open_entry, status.as_u16(), (None, None));
        if let Err(error) = end.await {
            tracing::warn!(%error, action = self.action, "could not record an action's result in the audit log");
        }
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Records an action that has already been executed, or had no effect; failures to record it are only logged.
    pub(super) async fn record(&self, person: PersonId, name: &str, status: u16) {
        let company = person.company();
        let recording = audit_log::record(self.app.db(company), company, self.entry(person, name), status);
        if let Err(error) = recording.await {
            tracing::warn!(%error, action = self.action, "could not record an action in the audit log");
        }
    }
}

/// The created record that a response contains.
#[derive(Default)]
struct CreatedRecord {
    id: Option<String>,
    name: Option<String>,
}

/// Reads the created record from a response, and returns the response unchanged.
fn extract_created(response: ServiceResponse<BoxBody>) -> (ServiceResponse<BoxBody>, CreatedRecord) {
    let (request, response) = response.into_parts();
    let (response, body) = response.into_parts();
    let (body, created) = match body.try_into_bytes() {
        Ok(bytes) if bytes.len() <= SEARCHED_BYTES_MAX => {
            let created = created_record(&bytes);
            (BoxBody::new(bytes), created)
        }
        Ok(bytes) => (BoxBody::new(bytes), CreatedRecord::default()),
        Err(body) => (body, CreatedRecord::default()),
    };
    (ServiceResponse::new(request, response.set_body(body)), created)
}

fn created_record(bytes: &[u8]) -> CreatedRecord {
    let response: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let data = &response["data"];
    // The response to the creation of a token contains the token beside its key.
    let data = if data["token"].is_object() { &data["token"] } else { data };
    let id = data["id"].as_i64().map(|id| id.to_string());
    CreatedRecord { id, name: data["name"].as_str().map(str::to_owned) }
}
