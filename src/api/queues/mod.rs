//! Queues: where tickets wait for the agents who work there. Plain; also in the directory.

mod members;

use actix_web::web::Data;
use hotline_actors::{Conflict, Refusal, Removal};
use hotline_persistence::tables::cascades::Cascade;
use hotline_persistence::tables::queues::{Distribution, Queue};
use hotline_persistence::tables::{channels, tickets};
use hotline_persistence::{CompanyId, Db, QueueId, table};

pub use members::{add_user, list_users, list_wrapup_types, remove_user};

use super::directory::refresh_after;
use super::plain::{BodyColumns, Filters, Plain, remove_referenced};
use crate::app::App;
use crate::web::request::values::{Color, Name, Text};
use crate::web::{ApiError, ApiResult, Caller, NoContent, PathId};

impl Plain for Queue {
    const IS_IN_DIRECTORY: bool = true;

    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
        body.defaulted::<Color>("color");
        body.nullable::<Text>("greeting");
        body.defaulted::<Distribution>("distribution");
        body.defaulted::<bool>("wrapupRequired");
        body.defaulted::<bool>("active");
    }

    fn filters(list: &mut Filters<'_>) {
        list.equals::<bool>("active");
    }
}

/// `DELETE /queues/{queueId}`: refused while the queue has open tickets or a channel uses it. After the deletion, its
/// closed tickets show no queue.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<QueueId>) -> ApiResult<NoContent> {
    check_exists(&app, caller.company, id.0).await?;
    // Checked here too, so that most refusals do not make the queue inactive for a time, as `delete_guarded` does.
    check_unused(app.engine.reads().tables(caller.company).await?, caller.company, id.0).await?;
    let remove = async |db: Db<'_>| {
        check_unused(db, caller.company, id.0).await?;
        remove_referenced(db, caller.company, Cascade::Queue(id.0), async |db| {
            Ok(table::remove::<Queue>(db, caller.company, id.0).await?)
        })
        .await
    };
    app.engine.assignment.delete_guarded(caller.company, Removal::Queue(id.0), remove).await?;
    Ok(NoContent)
}

async fn check_unused(db: Db<'_>, company: CompanyId, id: QueueId) -> ApiResult<()> {
    let open_count = tickets::count_open_in_queue(db, company, id).await?;
    let channel_count = channels::count_with_queue(db, company, id).await?;
    let (state, reason) = match (open_count, channel_count) {
        (0, 0) => return Ok(()),
        (0, _) => ("a channel uses the queue", "channel"),
        _ => ("the queue has open tickets", "open_tickets"),
    };
    let referring = [("ticket", open_count), ("channel", channel_count)];
    Err(Refusal::Conflict(Conflict::used_by(state, reason, referring)).into())
}

/// Checks that the queue belongs to the company.
async fn check_exists(app: &App, company: CompanyId, id: QueueId) -> ApiResult<()> {
    let is_known = table::exists::<Queue>(app.db(company), company, id).await?;
    if is_known { Ok(()) } else { Err(ApiError::not_found()) }
}
