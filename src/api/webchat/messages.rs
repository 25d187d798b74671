//! Messages of a visitor session.

use std::borrow::Cow;
use std::collections::HashMap;

use actix_web::HttpRequest;
use actix_web::web::Data;
use chrono::{DateTime, Utc};
use hotline_actors::tickets::MarkDelivered;
use hotline_actors::webchat::{MarkPresent, SendVisitorMessage, ShowSession, option_title};
use hotline_actors::{Engine, FieldError};
use hotline_persistence::tables::messages::{self, ChosenOption, Direction, MessageFilter, MessageRow, MessageStatus};
use hotline_persistence::tables::webchat_sessions::SessionRow;
use hotline_persistence::{CompanyId, MessageId, SessionId, TicketId};
use serde_json::Value;

use crate::api::messages::{Message, ViewContext};
use crate::app::App;
use crate::web::request::params::{Span, has_page_number};
use crate::web::request::values::{ClientId, MessageBody, OptionId};
use crate::web::response::head::is_head_request;
use crate::web::{
    ApiError, ApiResult, Body, Caller, Created, Fields, Filter, Idempotency, Input, Page, Params, PathId, Query,
};

/// The body of `POST /webchat/sessions/{sessionId}/messages`.
pub struct VisitorMessage {
    content: MessageInput,
    client_id: Option<ClientId>,
}

enum MessageInput {
    Text(MessageBody),
    Reply { message: MessageId, option: OptionId },
}

impl Input for VisitorMessage {
    fn name() -> Cow<'static, str> {
        "SessionMessageSend".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let client_id = fields.optional("clientId");
        let reply = fields.object("reply", |fields| {
            let message = fields.required("messageId");
            let option = fields.required("id");
            Some(MessageInput::Reply { message: message?, option: option? })
        });
        let text: Option<MessageBody> = fields.optional("body");
        match (fields.has_text("body"), fields.has("reply")) {
            (false, false) => fields.refuse("body", "is required, or reply"),
            (true, true) => fields.refuse("reply", "must not be given together with body"),
            _ => {}
        }
        Some(Self { content: reply.or(text.map(MessageInput::Text))?, client_id })
    }
}

/// The content of a visitor's message, from a text or a reply.
pub(crate) struct VisitorContent {
    pub(crate) body: String,
    /// The chosen option, for the column `content`.
    pub(crate) content: Option<Value>,
    pub(crate) quoted: Option<MessageId>,
    pub(crate) client_id: Option<String>,
}

impl VisitorMessage {
    /// The content of the message; the text of a reply is the title of the chosen option.
    pub(crate) async fn resolve(self, app: &App, company: CompanyId, session: &SessionId) -> ApiResult<VisitorContent> {
        let client_id = self.client_id.map(|id| id.0);
        let (body, content, quoted) = match self.content {
            MessageInput::Text(body) => (body.0, None, None),
            MessageInput::Reply { message, option } => {
                let session = app.engine.sessions.ask(company, session, ShowSession).await?;
                let (id, title) = chosen_option(app, &session, message, &option.0).await?;
                let option = ChosenOption { id: Some(id), title: Some(title.clone()), ..ChosenOption::default() };
                (title, option.into_content(), Some(message))
            }
        };
        Ok(VisitorContent { body, content, quoted, client_id })
    }
}

/// `POST /webchat/sessions/{sessionId}/messages`.
pub async fn send_message(
    request: HttpRequest,
    caller: Caller,
    app: Data<App>,
    id: PathId<SessionId>,
    body: Body<VisitorMessage>,
    idempotency: Idempotency,
) -> ApiResult<Created<Message>> {
    let id = id.0;
    let VisitorContent { body, content, quoted, client_id } = body.0.resolve(&app, caller.company, &id).await?;
    let context = ViewContext::of(&caller, &app, &request);
    let to_response = move |message: &MessageRow| Created::of(Message::of(message.clone(), &context));
    idempotency
        .command(to_response, |attached_changes| {
            let command = SendVisitorMessage {
                body: Some(body),
                file: None,
                content,
                quoted,
                client_id,
                attached: attached_changes,
            };
            async { app.engine.sessions.ask(caller.company, &id, command).await }
        })
        .await
}

/// The id and the title, in the message with the options, of the option that a visitor chose.
async fn chosen_option(
    app: &App,
    session: &SessionRow,
    message: MessageId,
    option: &str,
) -> ApiResult<(String, String)> {
    let quoted = app.engine.reads().message(session.company_id, message).await?;
    let quoted = quoted.filter(|message| is_visible(session, message)).ok_or_else(ApiError::not_found)?;
    // Two ids may differ only in the blanks around them, so an exact match wins. Otherwise, such blanks are ignored.
    let matching = [option, option.trim()].into_iter().find_map(|id| {
        let title = option_title(quoted.interactive.as_ref()?, id)?;
        Some((id.to_owned(), title))
    });
    matching.ok_or_else(|| {
        let reason = "must be an option of the message".to_owned();
        ApiError::validation(&[FieldError { field: "reply.id".to_owned(), reason }])
    })
}

/// Whether the visitor of this session sees the message: it belongs to this conversation, and was sent since the
/// session began or since the previous session ended. Earlier messages belong to an earlier visitor.
pub(crate) fn is_visible(session: &SessionRow, message: &MessageRow) -> bool {
    message.channel_id == session.channel_id
        && message.contact_id == session.contact_id
        && message.direction != Direction::Internal
        && message.created_at >= session.visible_since()
}

/// Filters of the list: `after` selects the messages after the given one.
pub struct Filters {
    pub(crate) after: Option<MessageId>,
    pub(crate) created: Span,
    pub(crate) updated: Span,
}

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self { after: query.filter("after"), created: query.span("created"), updated: query.span("updated") }
    }
}

/// `GET /webchat/sessions/{sessionId}/messages`. Listed messages count as delivered.
pub async fn list_messages(
    request: HttpRequest,
    caller: Caller,
    app: Data<App>,
    id: PathId<SessionId>,
    query: Query<Filters>,
) -> ApiResult<Page<Message>> {
    let Query { page, filter: Filters { after, created, updated }, .. } = query;
    let session = app.engine.sessions.ask(caller.company, &id.0, ShowSession).await?;
    let until = app.engine.sessions.visible_until(&session).await?;
    let filter = MessageFilter { updated, ..visible_messages(&session, after, created, until) };
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    let rows = messages::list(db, caller.company, &filter, page).await?;
    let undelivered = UndeliveredMessages::of(&rows.rows);
    let context = ViewContext::of(&caller, &app, &request);
    let mut response = Page::of(page, rows, |row| Message::of(row, &context));
    // The page may be truncated to a maximum of bytes only if the client's next page begins after its last message.
    let continues_from_last = page.is_by_cursor() || after.is_some() && !page.descending && !has_page_number(&request);
    let count = if continues_from_last { response.truncate_to_bytes_max()? } else { usize::MAX };
    // A `HEAD` request does not receive the messages.
    if !is_head_request(&request) {
        report_delivered(&app.engine, &session, undelivered.truncated(count));
    }
    Ok(response)
}

/// The filter for the messages that the visitor of this session sees, as in [`is_visible`]. `until`: the time up to
/// which an ended session shows messages.
pub(crate) fn visible_messages(
    session: &SessionRow,
    after: Option<MessageId>,
    (from, to): Span,
    until: Option<DateTime<Utc>>,
) -> MessageFilter {
    MessageFilter {
        contact_id: Some(session.contact_id),
        channel_id: Some(session.channel_id),
        created: (from.max(Some(session.visible_since())), to.into_iter().chain(until).min()),
        after,
        visible_to_visitor: true,
        ..MessageFilter::default()
    }
}

/// For each message of a page: its ticket and id if it is an outbound message that was not delivered yet.
pub(crate) struct UndeliveredMessages(Vec<Option<(TicketId, MessageId)>>);

impl UndeliveredMessages {
    pub(crate) fn of(rows: &[MessageRow]) -> Self {
        let is_undelivered = |row: &&MessageRow| {
            row.direction == Direction::Outbound && matches!(row.status, MessageStatus::Queued | MessageStatus::Sent)
        };
        Self(rows.iter().map(|row| Some(row).filter(is_undelivered).map(|row| (row.ticket_id, row.id))).collect())
    }

    /// Only the first `count` messages of the page: the response contains no more.
    pub(crate) fn truncated(mut self, count: usize) -> Self {
        self.0.truncate(count);
        self
    }

    /// The last undelivered message of each ticket.
    fn last_by_ticket(self) -> HashMap<TicketId, MessageId> {
        let mut last: HashMap<TicketId, MessageId> = HashMap::new();
        for (ticket, message) in self.0.into_iter().flatten() {
            let newest = last.entry(ticket).or_insert(message);
            *newest = message.max(*newest);
        }
        last
    }
}

/// Reports to the tickets that their messages were delivered, and to the session that its visitor is present. The
/// response does not wait for this: reads work while changes are refused, and the next list reports again.
pub(crate) fn report_delivered(engine: &Engine, session: &SessionRow, undelivered: UndeliveredMessages) {
    let last_messages = undelivered.last_by_ticket();
    let (company, id, since) = (session.company_id, session.id.clone(), Some(session.visible_since()));
    let engine_clone = engine.clone();
    engine.spawn_for(company, async move {
        let engine = engine_clone;
        for (ticket, up_to) in last_messages {
            if let Err(refusal) = engine.tickets.ask(company, ticket, MarkDelivered { up_to, since }).await {
                tracing::debug!(%refusal, "could not record a delivery status");
            }
        }
        if let Err(refusal) = engine.sessions.ask(company, &id, MarkPresent).await {
            tracing::debug!(%refusal, "could not record a visitor's presence");
        }
    });
}
