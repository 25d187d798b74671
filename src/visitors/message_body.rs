//! The body of a visitor's `POST …/messages`: a text as JSON, or a form with one file.

use std::borrow::Cow;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use hotline_actors::FieldError;
use hotline_actors::webchat::SendVisitorMessage;
use hotline_persistence::tables::media::StoredMedia;
use hotline_persistence::tables::messages::MessageRow;
use hotline_persistence::tables::webchat_sessions::SessionRow;

use crate::api::webchat::VisitorMessage;
use crate::app::App;
use crate::media::{UnreferencedFiles, Upload};
use crate::openapi::{Operation, OperationPart, form_name, form_schema};
use crate::web::request::bounds::FILES_PART;
use crate::web::request::form;
use crate::web::request::form::BodyWithFiles;
use crate::web::request::values::{ClientId, MessageBody};
use crate::web::response::schema::Schemas;
use crate::web::{ApiError, ApiResult, Body, Fields, Input};

/// Maximum number of files per message: one, so that each has its own `clientId` and can be resent separately.
const FILES_MAX: usize = 1;

/// The content of a visitor's message.
pub(super) enum VisitorMessageBody {
    Text(VisitorMessage),
    File(Box<VisitorFile>),
}

impl FromRequest for VisitorMessageBody {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        if form::is_form(request) {
            let form = BodyWithFiles::<FileFields, FILES_MAX>::from_request(request, payload);
            return Box::pin(async move { Ok(Self::File(Box::new(VisitorFile::of(form.await?)?))) });
        }
        // Reads JSON, and refuses a body that is neither JSON nor a form.
        let text = BodyWithFiles::<VisitorMessage, FILES_MAX>::from_request(request, payload);
        Box::pin(async move { text.await.map(|text| Self::Text(text.fields)) })
    }
}

/// A text as JSON, or a form with one file and its fields.
impl OperationPart for VisitorMessageBody {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Body::<VisitorMessage>::describe(operation, schemas);
        operation.takes_files = true;
        let form = form_schema(Fields::describe::<FileFields>(), FILES_MAX);
        schemas.insert(form_name(&VisitorMessage::name()), form);
    }
}

/// The fields of a form with a file.
struct FileFields {
    body: Option<MessageBody>,
    client_id: Option<ClientId>,
}

impl Input for FileFields {
    fn name() -> Cow<'static, str> {
        "VisitorFileCaption".into()
    }
    const MAY_BE_EMPTY: bool = true;

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        if fields.has("reply") {
            fields.refuse("reply", "must not be given together with a file");
        }
        Some(Self { body: fields.optional("body"), client_id: fields.optional("clientId") })
    }
}

/// An uploaded file that is not stored yet.
pub(super) struct VisitorFile {
    upload: Upload,
    body: Option<String>,
    client_id: Option<String>,
}

impl VisitorFile {
    fn of(form: BodyWithFiles<FileFields, FILES_MAX>) -> ApiResult<Self> {
        let BodyWithFiles { fields: FileFields { body, client_id }, mut files } = form;
        let upload = files.pop().ok_or_else(|| {
            let reason = "is required: the file, in a multipart/form-data body".to_owned();
            ApiError::validation(&[FieldError { field: FILES_PART.to_owned(), reason }])
        })?;
        Ok(Self { upload, body: body.map(|body| body.0), client_id: client_id.map(|id| id.0) })
    }

    /// Stores the file and sends the message. If the message was not sent, or refers to another file, the stored file
    /// is removed.
    pub(super) async fn send(self, app: &App, session: &SessionRow) -> ApiResult<MessageRow> {
        let Self { upload, body, client_id } = self;
        let company = session.company_id;
        let stored_files = UnreferencedFiles::store(&app.media, company, vec![upload]).await?;
        let file = stored_files.files().first().cloned();
        let command = SendVisitorMessage { body, file, content: None, quoted: None, client_id, attached: None };
        // A resend returns the first message, which refers to the file of the first request.
        let is_referenced = |message: &MessageRow, file: &StoredMedia| {
            message.media.as_ref().and_then(StoredMedia::of).is_some_and(|media| media.id == file.id)
        };
        let send = async || app.engine.sessions.ask(company, &session.id, command).await;
        Ok(stored_files.attach_with(send, is_referenced).await?)
    }
}
