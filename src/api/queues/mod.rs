//! Queues: where tickets wait for the agents who work there. Plain; the directory holds them too.

mod members;

use actix_web::web::Data;
use hotline_actors::{Conflict, Leaving, Refusal};
use hotline_persistence::tables::queues::{self, Distribution, QueueFields, QueueFilter, QueueRow};
use hotline_persistence::tables::{channels, tickets};
use hotline_persistence::{CompanyId, Db, QueueId, table};
use serde::Serialize;
use utoipa::ToSchema;

pub use members::{add_user, list_users, list_wrapup_types, remove_user};

use super::directory::changed;
use crate::app::App;
use crate::web::values::{Color, Name, Search, Text};
use crate::web::{
    Answer, ApiError, Body, Caller, Created, Done, Fields, Filter, Input, Listed, Once, Params, Patch, PathId, Query,
    Shown, Timestamp,
};

/// Where tickets wait for an agent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Queue {
    pub id: QueueId,
    #[schema(example = "Support")]
    pub name: String,
    #[schema(example = "#64748b")]
    pub color: String,
    /// Sent when a contact opens a ticket in the queue.
    #[schema(example = "Hello, we are with you in a moment.")]
    pub greeting: Option<String>,
    /// How new tickets find an agent.
    pub distribution: Distribution,
    /// Whether a ticket is closed only with a wrap-up type.
    #[schema(example = true)]
    pub wrapup_required: bool,
    #[schema(example = true)]
    pub active: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl From<QueueRow> for Queue {
    fn from(row: QueueRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            color: row.color,
            greeting: row.greeting,
            distribution: row.distribution,
            wrapup_required: row.wrapup_required,
            active: row.active,
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// Filters of the list: `search` looks into the name.
pub struct Filters(QueueFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(QueueFilter {
            search: query.filter::<Search>("search").map(|text| text.0),
            active: query.filter("active"),
            created: query.span("created"),
            updated: query.span("updated"),
        })
    }
}

/// `GET /queues`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<Filters>) -> Answer<Listed<Queue>> {
    let rows = queues::list(app.db(caller.company), caller.company, &query.filter.0, query.page).await?;
    Ok(Listed::of(query.page, rows, Queue::from))
}

/// `GET /queues/{queueId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<QueueId>) -> Answer<Shown<Queue>> {
    let row: Option<QueueRow> = table::find(app.db(caller.company), caller.company, id.0).await?;
    Ok(Shown::of(row.ok_or_else(ApiError::not_found)?))
}

/// What is written beside the name.
struct Written {
    color: Option<Color>,
    greeting: Patch<Text>,
    distribution: Option<Distribution>,
    wrapup_required: Option<bool>,
    active: Option<bool>,
}

impl Written {
    fn fields(&self) -> QueueFields<'_> {
        QueueFields {
            color: self.color.as_ref().map(|color| color.0.as_str()),
            greeting: match &self.greeting {
                Patch::Absent => None,
                Patch::Null => Some(None),
                Patch::Value(text) => Some(Some(&text.0)),
            },
            distribution: self.distribution,
            wrapup_required: self.wrapup_required,
            active: self.active,
        }
    }
}

/// The body of `POST /queues`.
pub struct NewQueue {
    name: Name,
    written: Written,
}

impl Input for NewQueue {
    const NAME: &'static str = "QueueCreate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let name = fields.required("name");
        let written = Written {
            color: fields.optional("color"),
            greeting: fields.patch("greeting"),
            distribution: fields.optional("distribution"),
            wrapup_required: fields.optional("wrapupRequired"),
            active: fields.optional("active"),
        };
        Some(Self { name: name?, written })
    }
}

/// `POST /queues`. Names are unique within a company.
pub async fn create(caller: Caller, app: Data<App>, body: Body<NewQueue>, once: Once) -> Answer<Created<Queue>> {
    let NewQueue { name, written } = body.0;
    let insert = once.plain(app.db(caller.company), async |db| {
        Ok(Created::of(queues::insert(db, caller.company, &name.0, written.fields()).await?))
    });
    changed(&app, caller.company, insert).await
}

/// The body of `PUT /queues/{queueId}`.
pub struct ChangedQueue {
    name: Option<Name>,
    written: Written,
}

impl Input for ChangedQueue {
    const NAME: &'static str = "QueueUpdate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let name = fields.changed("name");
        let written = Written {
            color: fields.changed("color"),
            greeting: fields.patch("greeting"),
            distribution: fields.changed("distribution"),
            wrapup_required: fields.changed("wrapupRequired"),
            active: fields.changed("active"),
        };
        Some(Self { name, written })
    }
}

/// `PUT /queues/{queueId}`.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<QueueId>,
    body: Body<ChangedQueue>,
    once: Once,
) -> Answer<Shown<Queue>> {
    let ChangedQueue { name, written } = body.0;
    let name = name.as_ref().map(|name| name.0.as_str());
    let update = once.plain(app.db(caller.company), async |db| {
        Ok(Shown::of(queues::update(db, caller.company, id.0, name, written.fields()).await?))
    });
    changed(&app, caller.company, update).await
}

/// `DELETE /queues/{queueId}`: refused while tickets are open in it or a channel points to it. Closed tickets then
/// show no queue.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<QueueId>) -> Answer<Done> {
    check(&app, caller.company, id.0).await?;
    // Most refusals are found before anybody is kept from the queue.
    check_unused(app.engine.reads().tables(caller.company).await?, caller.company, id.0).await?;
    let remove = async |db: Db<'_>| {
        check_unused(db, caller.company, id.0).await?;
        Ok::<_, ApiError>(table::remove::<QueueRow>(db, caller.company, id.0).await?)
    };
    app.engine.leave(caller.company, Leaving::Queue(id.0), remove).await?;
    Ok(Done)
}

async fn check_unused(db: Db<'_>, company: CompanyId, id: QueueId) -> Answer<()> {
    let open = tickets::open_in(db, company, id).await?;
    let pointing = channels::of_queue(db, company, id).await?;
    let (state, reason) = match (open, pointing) {
        (0, 0) => return Ok(()),
        (0, _) => ("a channel points to the queue", "channel"),
        _ => ("the queue has open tickets", "open_tickets"),
    };
    Err(Refusal::Conflict(Conflict::used_by(state, reason, [("ticket", open), ("channel", pointing)])).into())
}

/// The queue is the company's.
async fn check(app: &App, company: CompanyId, id: QueueId) -> Answer<()> {
    let is_known = table::exists::<QueueRow>(app.db(company), company, id).await?;
    if is_known { Ok(()) } else { Err(ApiError::not_found()) }
}
