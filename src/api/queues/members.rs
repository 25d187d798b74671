//! Who works in a queue, and what its tickets may come to.

use actix_web::web::Data;
use hotline_actors::Leaving;
use hotline_persistence::tables::queues;
use hotline_persistence::tables::users::{self, UserFilter, UserRow};
use hotline_persistence::tables::wrapup_types::{self, WrapupTypeFilter};
use hotline_persistence::{Db, QueueId, UserId, table};

use super::{changed, check};
use crate::api::users::{MemberFilters, User};
use crate::api::wrapup_types::{LinkedFilters, WrapupType};
use crate::app::App;
use crate::web::{Answer, ApiError, Caller, Done, Listed, Once, PathId, Query};

/// `GET /queues/{queueId}/users`.
pub async fn list_users(
    caller: Caller,
    app: Data<App>,
    id: PathId<QueueId>,
    query: Query<MemberFilters>,
) -> Answer<Listed<User>> {
    check(&app, caller.company, id.0).await?;
    let filter = UserFilter { queue_id: Some(id.0), ..query.filter.0 };
    let rows = users::list(app.db(caller.company), caller.company, &filter, query.page).await?;
    Ok(Listed::of(query.page, rows, User::from))
}

/// `PUT /queues/{queueId}/users/{userId}`: being an agent of the queue already is no error.
pub async fn add_user(caller: Caller, app: Data<App>, ids: PathId<(QueueId, UserId)>, once: Once) -> Answer<Done> {
    let (queue, user) = ids.0;
    let add = once.plain(app.db(caller.company), async |db| {
        queues::add_user(db, caller.company, queue, user).await?;
        Ok(Done)
    });
    changed(&app, caller.company, add).await
}

/// `DELETE /queues/{queueId}/users/{userId}`: who does not work there is no error. The open tickets
/// they have in the queue stay there, and are nobody's.
pub async fn remove_user(caller: Caller, app: Data<App>, ids: PathId<(QueueId, UserId)>) -> Answer<Done> {
    let (queue, user) = ids.0;
    let (engine, author) = (&app.engine, caller.author());
    check(&app, caller.company, queue).await?;
    if !table::exists::<UserRow>(app.db(caller.company), caller.company, user).await? {
        return Err(ApiError::not_found());
    }
    // The row goes last: whatever stops this before leaves an agent who can be taken out again.
    let remove = async |db: Db<'_>| {
        engine.release(caller.company, user, Some(queue), author).await?;
        fail::fail_point!("member_released", |_| Err(ApiError::unavailable()));
        Ok::<_, ApiError>(queues::remove_user(db, caller.company, queue, user).await?)
    };
    engine.leave(caller.company, Leaving::Member(queue, user), remove).await?;
    Ok(Done)
}

/// `GET /queues/{queueId}/wrapup-types`.
pub async fn list_wrapup_types(
    caller: Caller,
    app: Data<App>,
    id: PathId<QueueId>,
    query: Query<LinkedFilters>,
) -> Answer<Listed<WrapupType>> {
    check(&app, caller.company, id.0).await?;
    let filter = WrapupTypeFilter { queue_id: Some(id.0), ..query.filter.0 };
    let rows = wrapup_types::list(app.db(caller.company), caller.company, &filter, query.page).await?;
    Ok(Listed::of(query.page, rows, WrapupType::from))
}
