//! Quick messages: answers that agents call up by a shortcut. Plain.

use actix_web::web::Data;
use hotline_persistence::tables::quick_messages::{self, QuickMessageFilter, QuickMessageRow};
use hotline_persistence::{QuickMessageId, table};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::web::values::{FilledText, Search, Shortcut};
use crate::web::{
    Answer, ApiError, Body, Caller, Created, Done, Fields, Filter, Input, Listed, Once, Params, PathId, Query, Shown,
    Timestamp,
};

/// An answer kept at hand under a shortcut.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct QuickMessage {
    pub id: QuickMessageId,
    #[schema(example = "/hours")]
    pub shortcut: String,
    #[schema(example = "We are open from 9 to 18.")]
    pub message: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl From<QuickMessageRow> for QuickMessage {
    fn from(row: QuickMessageRow) -> Self {
        Self {
            id: row.id,
            shortcut: row.shortcut,
            message: row.message,
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// Filters of the list: `search` looks into shortcut and message.
pub struct Filters(QuickMessageFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(QuickMessageFilter {
            search: query.filter::<Search>("search").map(|text| text.0),
            created: query.span("created"),
            updated: query.span("updated"),
        })
    }
}

/// `GET /quick-messages`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<Filters>) -> Answer<Listed<QuickMessage>> {
    let rows = quick_messages::list(app.db(caller.company), caller.company, &query.filter.0, query.page).await?;
    Ok(Listed::of(query.page, rows, QuickMessage::from))
}

/// `GET /quick-messages/{quickMessageId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<QuickMessageId>) -> Answer<Shown<QuickMessage>> {
    let row: Option<QuickMessageRow> = table::find(app.db(caller.company), caller.company, id.0).await?;
    Ok(Shown::of(row.ok_or_else(ApiError::not_found)?))
}

/// The body of `POST /quick-messages`.
pub struct NewQuickMessage {
    shortcut: Shortcut,
    message: FilledText,
}

impl Input for NewQuickMessage {
    const NAME: &'static str = "QuickMessageCreate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let shortcut = fields.required("shortcut");
        let message = fields.required("message");
        Some(Self { shortcut: shortcut?, message: message? })
    }
}

/// `POST /quick-messages`. Shortcuts are unique within a company.
pub async fn create(
    caller: Caller,
    app: Data<App>,
    body: Body<NewQuickMessage>,
    once: Once,
) -> Answer<Created<QuickMessage>> {
    let NewQuickMessage { shortcut, message } = body.0;
    once.plain(app.db(caller.company), async |db| {
        Ok(Created::of(quick_messages::insert(db, caller.company, &shortcut.0, &message.0).await?))
    })
    .await
}

/// The body of `PUT /quick-messages/{quickMessageId}`.
pub struct ChangedQuickMessage {
    shortcut: Option<Shortcut>,
    message: Option<FilledText>,
}

impl Input for ChangedQuickMessage {
    const NAME: &'static str = "QuickMessageUpdate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { shortcut: fields.changed("shortcut"), message: fields.changed("message") })
    }
}

/// `PUT /quick-messages/{quickMessageId}`.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<QuickMessageId>,
    body: Body<ChangedQuickMessage>,
    once: Once,
) -> Answer<Shown<QuickMessage>> {
    let ChangedQuickMessage { shortcut, message } = body.0;
    let shortcut = shortcut.as_ref().map(|shortcut| shortcut.0.as_str());
    let message = message.as_ref().map(|message| message.0.as_str());
    once.plain(app.db(caller.company), async |db| {
        Ok(Shown::of(quick_messages::update(db, caller.company, id.0, shortcut, message).await?))
    })
    .await
}

/// `DELETE /quick-messages/{quickMessageId}`.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<QuickMessageId>) -> Answer<Done> {
    table::remove::<QuickMessageRow>(app.db(caller.company), caller.company, id.0).await?;
    Ok(Done)
}
