//! The agents of a queue, and its wrap-up types.

use actix_web::web::Data;
use hotline_actors::Removal;
use hotline_persistence::table::{self, Table};
use hotline_persistence::tables::queues::Queue;
use hotline_persistence::tables::users::{self, User, WORKS_IN_QUEUE};
use hotline_persistence::tables::wrapup_types::{LINKED_TO, WrapupType};
use hotline_persistence::{Db, QueueId, UserId};

use super::{check_exists, refresh_after};
use crate::api::directory::check_links;
use crate::api::plain::Filters;
use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller, Filter, Idempotency, NoContent, Page, Params, PathId, Query};

/// The filters of both lists of a queue: its users and its wrap-up types.
pub struct QueueListFilter(table::Filter);

impl Filter for QueueListFilter {
    fn read(query: &mut Params) -> Self {
        Self(Filters::read(query, |list| list.equals::<bool>("active")))
    }
}

/// `GET /queues/{queueId}/users`.
pub async fn list_users(
    caller: Caller,
    app: Data<App>,
    id: PathId<QueueId>,
    query: Query<QueueListFilter>,
) -> ApiResult<Page<User>> {
    list_related(&caller, &app, id.0, query, WORKS_IN_QUEUE).await
}

/// `GET /queues/{queueId}/wrapup-types`.
pub async fn list_wrapup_types(
    caller: Caller,
    app: Data<App>,
    id: PathId<QueueId>,
    query: Query<QueueListFilter>,
) -> ApiResult<Page<WrapupType>> {
    list_related(&caller, &app, id.0, query, LINKED_TO).await
}

/// The rows that are linked to a queue; `relation` is the query for [`table::Filter::has_related`].
async fn list_related<T: Table>(
    caller: &Caller,
    app: &App,
    id: QueueId,
    query: Query<QueueListFilter>,
    relation: &'static str,
) -> ApiResult<Page<T>> {
    let mut filter = query.filter.0;
    filter.has_related::<Queue>(relation, id.0);
    let rows = table::list(app.db(caller.company), caller.company, &filter, query.page).await?;
    Ok(Page::of(query.page, rows, |row| row))
}

/// `PUT /queues/{queueId}/users/{userId}`: adding an agent again is not an error.
pub async fn add_user(
    caller: Caller,
    app: Data<App>,
    ids: PathId<(QueueId, UserId)>,
    idempotency: Idempotency,
) -> ApiResult<NoContent> {
    let (queue, user) = ids.0;
    let add = idempotency.transaction(app.db(caller.company), async |db| {
        // The user, then the link, then the queue, which the foreign key locks: as in a change of the user's queues and
        // in a deletion of the queue. Another order could deadlock.
        users::lock(&mut *db, caller.company, user).await?;
        if users::QUEUES.add(&mut *db, caller.company, user, queue).await? {
            table::touch::<User>(&mut *db, caller.company, user).await?;
            check_links(db, caller.company, &users::QUEUES).await?;
        }
        Ok(NoContent)
    });
    refresh_after(&app, caller.company, add).await
}

/// `DELETE /queues/{queueId}/users/{userId}`: removing someone who is not an agent of the queue is not an error. The
/// agent's open tickets stay in the queue, unassigned.
pub async fn remove_user(caller: Caller, app: Data<App>, ids: PathId<(QueueId, UserId)>) -> ApiResult<NoContent> {
    let (queue, user) = ids.0;
    let (engine, author) = (&app.engine, caller.author());
    check_exists(&app, caller.company, queue).await?;
    if !table::exists::<User>(app.db(caller.company), caller.company, user).await? {
        return Err(ApiError::not_found());
    }
    // The membership is deleted last, so that after any earlier failure the request can be repeated.
    let remove = async |db: Db<'_>| {
        engine.tickets.release(caller.company, user, Some(queue), author).await?;
        hotline_persistence::fail_point!("member_released", |_| Err(ApiError::unavailable()));
        let mut transaction = db.begin().await?;
        // Before the link, as in `add_user`: another order could deadlock.
        users::lock(transaction.connection()?, caller.company, user).await?;
        if users::QUEUES.remove(transaction.connection()?, caller.company, user, queue).await? {
            table::touch::<User>(transaction.connection()?, caller.company, user).await?;
        }
        Ok::<_, ApiError>(transaction.commit().await?)
    };
    engine.assignment.delete_guarded(caller.company, Removal::Member(queue, user), remove).await?;
    Ok(NoContent)
}
