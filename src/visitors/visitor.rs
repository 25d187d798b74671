//! The requests of a visitor's browser: opening a session, and those with the session's token.

use std::borrow::Cow;
use std::future::{Ready, ready};

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, ResponseError};
use hotline_actors::clock;
use hotline_actors::engine::Identified;
use hotline_actors::webchat::{End, SendVisitorMessage};
use hotline_persistence::key::{self, KEY_CHARACTERS};
use hotline_persistence::tables::contacts::ContactRow;
use hotline_persistence::tables::events::By;
use hotline_persistence::tables::messages::{self, MessageFilter, MessageRow};
use hotline_persistence::tables::webchat_sessions::{SessionRow, SessionStatus};
use serde_json::{Value, json};

use super::Webchat;
use super::document::describe_webchat;
use super::identity;
use super::limits::VisitorLimits;
use super::message_body::VisitorMessageBody;
use super::view::{MessageView, SessionView};
use crate::api::webchat::{
    Arrival, Filters, SessionOpener, TOKEN_PREFIX, UndeliveredMessages, VisitorContent, VisitorIdentity,
    report_delivered, visible_messages,
};
use crate::app::App;
use crate::openapi::{Access, Operation, OperationPart};
use crate::web::admission::auth::{bearer, bearer_in};
use crate::web::request::params::has_page_number;
use crate::web::request::values::FromField;
use crate::web::response::cursor::ListOwner;
use crate::web::response::head::is_head_request;
use crate::web::response::schema::Schemas;
use crate::web::{ApiError, ApiResult, Body, Created, Fields, Idempotency, Input, Json, Page, Query};

/// Maximum attempts of an identification. An attempt fails if the contact is deleted meanwhile.
const IDENTIFY_ATTEMPTS_MAX: usize = 8;

/// The caller: the visitor of one session of this webchat.
#[derive(Clone)]
pub struct Visitor(pub SessionRow);

impl FromRequest for Visitor {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        // Only the middleware sets this extension: a route without it admits no visitor.
        ready(request.extensions().get::<Self>().cloned().ok_or_else(ApiError::unauthorized))
    }
}

/// Admits holders of a token of this webchat, before the body is read.
///
/// # Errors
/// Errors of the inner service; refusals are responses.
pub async fn authenticate<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let authentication = {
        let app = request.app_data::<Data<App>>().cloned();
        let visitor_limits = request.app_data::<Data<VisitorLimits>>().cloned();
        let webchat = request.extensions().get::<Webchat>().cloned();
        let token = bearer(&request).map(str::to_owned);
        async move {
            let ((app, visitor_limits), webchat) =
                app.zip(visitor_limits).zip(webchat).ok_or_else(ApiError::not_found)?;
            let visitor = find_visitor(&app, &webchat, token.as_deref()).await?;
            let meter = visitor_limits.meter(webchat.company(), Some(&visitor.0.id), webchat.address);
            Ok::<_, ApiError>((visitor, meter))
        }
    };
    match authentication.await {
        Ok((visitor, meter)) => {
            request.extensions_mut().insert(ListOwner(visitor.0.id.to_string()));
            request.extensions_mut().insert(visitor);
            request.extensions_mut().insert(meter);
            Ok(next.call(request).await?.map_into_left_body())
        }
        Err(error) => Ok(request.into_response(error.error_response()).map_into_right_body()),
    }
}

/// The visitor with this token. The token is hashed and looked up, so it is never compared byte by byte. The token of a
/// session that ended unverified is void once its contact is verified, even by a merge: its visitor may be a different
/// person from the contact.
pub(super) async fn find_visitor(app: &App, webchat: &Webchat, token: Option<&str>) -> ApiResult<Visitor> {
    let is_well_formed =
        |token: &&str| token.len() == TOKEN_PREFIX.len() + KEY_CHARACTERS && token.starts_with(TOKEN_PREFIX);
    let token = token.filter(is_well_formed).ok_or_else(ApiError::unauthorized)?;
    let row = app.engine.sessions.by_token(webchat.company(), webchat.channel, &key::hash(token)).await?;
    let row = row.ok_or_else(ApiError::unauthorized)?;
    // An active session needs no check: it ends when its contact becomes verified.
    if row.status == SessionStatus::Ended && !row.verified {
        let contact = app.engine.contacts.get(row.company_id, row.contact_id).await?;
        if contact.is_some_and(|contact| contact.verified) {
            return Err(ApiError::unauthorized());
        }
    }
    Ok(Visitor(row))
}

/// The token of an earlier session, which a browser may send; not verified yet.
pub struct EarlierToken(Option<String>);

impl FromRequest for EarlierToken {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self(bearer_in(request.headers()).map(str::to_owned))))
    }
}

impl OperationPart for Visitor {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.access = Access::Visitor;
        describe_webchat(operation);
        operation.errors.push(401);
    }
}

/// The token is optional. The 401 is for a signed identity in the body that is refused.
impl OperationPart for EarlierToken {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.access = Access::VisitorOrAnonymous;
        operation.errors.push(401);
    }
}

/// The body of `POST …/sessions`.
pub struct NewSession {
    arrival: Arrival,
    identity: Option<IdentityText>,
}

impl Input for NewSession {
    fn name() -> Cow<'static, str> {
        "VisitorArrival".into()
    }
    const MAY_BE_EMPTY: bool = true;

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let identity = fields.optional("identity");
        Some(Self { arrival: Arrival::read(fields)?, identity })
    }
}

/// The body of `POST …/identify`.
pub struct IdentifyInput(IdentityText);

impl Input for IdentifyInput {
    fn name() -> Cow<'static, str> {
        "VisitorIdentity".into()
    }
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        fields.required("identity").map(Self)
    }
}

/// A signed identity as sent, not verified yet: any string is accepted here.
pub struct IdentityText(String);

impl FromField for IdentityText {
    fn from_json(value: &Value) -> Result<Self, String> {
        value.as_str().map(|text| Self(text.trim().to_owned())).ok_or_else(|| "must be a string".to_owned())
    }

    fn schema() -> Value {
        json!({"type": "string"})
    }
}

impl IdentityText {
    fn verify(&self, webchat: &Webchat) -> ApiResult<Identified> {
        identity::verify(&self.0, &webchat.settings.identity_secrets, &webchat.public_key, clock::now())
    }
}

/// `POST …/sessions`. With a signed identity, the visitor is the person it names. Without one, the token of an earlier
/// anonymous session identifies the visitor as the one of that session.
pub async fn open(
    webchat: Webchat,
    app: Data<App>,
    earlier_token: EarlierToken,
    body: Body<NewSession>,
    idempotency: Idempotency,
) -> ApiResult<Created<SessionView>> {
    let NewSession { arrival, identity } = body.0;
    let identity = match identity {
        Some(identity) => VisitorIdentity::Identified(identity.verify(&webchat)?),
        None if webchat.settings.require_identity => {
            return Err(ApiError::invalid_identity("this webchat requires one, but none was sent"));
        }
        None => VisitorIdentity::Unknown { earlier: find_earlier_session(&app, &webchat, &earlier_token).await? },
    };
    let (company, channel) = (webchat.company(), webchat.channel);
    let opener = SessionOpener { app: &app, company, channel, identity, arrival: &arrival, idempotency: &idempotency };
    let to_response = |row: &SessionRow, _: &ContactRow, token: &str| {
        Created::of(SessionView { token: Some(token.to_owned()), ..SessionView::from(row) })
    };
    opener.open(to_response).await
}

/// The session of the token that the browser sent; `None` without a token, or with an invalid one.
async fn find_earlier_session(
    app: &App,
    webchat: &Webchat,
    earlier_token: &EarlierToken,
) -> ApiResult<Option<SessionRow>> {
    match find_visitor(app, webchat, earlier_token.0.as_deref()).await {
        Ok(Visitor(session)) => Ok(Some(session)),
        Err(error) if error.status == StatusCode::UNAUTHORIZED => Ok(None),
        Err(error) => Err(error),
    }
}

/// `POST …/identify`. Repeating it has the same result.
pub async fn identify(
    visitor: Visitor,
    webchat: Webchat,
    app: Data<App>,
    body: Body<IdentifyInput>,
) -> ApiResult<Json<SessionView>> {
    let identity = body.0.0.verify(&webchat)?;
    for _ in 1..IDENTIFY_ATTEMPTS_MAX {
        match sign_in(&visitor.0, &app, &identity).await {
            // The contact was deleted at this very moment: the next attempt creates another contact for the identity.
            Err(error) if error.status == StatusCode::NOT_FOUND => {}
            outcome => return outcome,
        }
    }
    sign_in(&visitor.0, &app, &identity).await
}

async fn sign_in(session: &SessionRow, app: &App, identity: &Identified) -> ApiResult<Json<SessionView>> {
    let token = key::new_key(TOKEN_PREFIX);
    let (row, is_opened_by_token) = app.engine.sessions.identify(session, identity, key::hash(&token)).await?;
    let view = SessionView { token: is_opened_by_token.then_some(token), ..SessionView::from(&row) };
    Ok(Json::of(view))
}

/// `GET …/session`.
pub async fn show(visitor: Visitor) -> ApiResult<Json<SessionView>> {
    Ok(Json::of(&visitor.0))
}

/// `POST …/messages`. Unlike in the API, a resend is recognized by its `clientId`.
pub async fn send_message(
    visitor: Visitor,
    app: Data<App>,
    body: VisitorMessageBody,
) -> ApiResult<Created<MessageView>> {
    let session = visitor.0;
    let message = match body {
        VisitorMessageBody::Text(message) => {
            let VisitorContent { body, content, quoted, client_id } =
                message.resolve(&app, session.company_id, &session.id).await?;
            let command =
                SendVisitorMessage { body: Some(body), file: None, content, quoted, client_id, attached: None };
            app.engine.sessions.ask(session.company_id, &session.id, command).await?
        }
        VisitorMessageBody::File(file) => file.send(&app, &session).await?,
    };
    Ok(Created::of(MessageView::of(&message, &session.id, app.media.links())))
}

/// `GET …/messages`. Listed messages count as delivered.
pub async fn list_messages(
    request: HttpRequest,
    visitor: Visitor,
    app: Data<App>,
    query: Query<Filters>,
) -> ApiResult<Page<MessageView>> {
    let Query { page, filter: Filters { after, created, updated }, .. } = query;
    let session = visitor.0;
    let until = app.engine.sessions.visible_until(&session).await?;
    let filter = MessageFilter { updated, ..visible_messages(&session, after, created, until) };
    let db = app.engine.reads().acknowledged_tables(session.company_id).await?;
    let listed = messages::list(db, session.company_id, &filter, page).await?;
    let undelivered = UndeliveredMessages::of(&listed.rows);
    let mut response = Page::of(page, listed, |row: MessageRow| MessageView::of(&row, &session.id, app.media.links()));
    let may_be_truncated = page.is_by_cursor() || after.is_some() && !page.descending && !has_page_number(&request);
    let count = if may_be_truncated { response.truncate_to_bytes_max()? } else { usize::MAX };
    // A `HEAD` request does not receive the messages.
    if !is_head_request(&request) {
        report_delivered(&app.engine, &session, undelivered.truncated(count));
    }
    Ok(response)
}

/// `POST …/end`. Ending a session again is not an error.
pub async fn end(visitor: Visitor, app: Data<App>) -> ApiResult<Json<SessionView>> {
    let session = visitor.0;
    let end = End { idle_since: None, attached: None, by: By::ITS_CONTACT };
    let row = app.engine.sessions.ask(session.company_id, &session.id, end).await?;
    Ok(Json::of(&row))
}
