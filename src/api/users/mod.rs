//! Users: people's memberships in the company. Plain; the directory holds them too.

mod metrics;
mod write;

use actix_web::web::Data;
use hotline_actors::Leaving;
use hotline_persistence::tables::profiles::ProfileRow;
use hotline_persistence::tables::users::{self, UserFilter, UserRow};
use hotline_persistence::{Db, ProfileId, QueueId, UserId, table};
use serde::Serialize;
use utoipa::ToSchema;

pub use metrics::list_metrics;
pub use write::{create, update};

use super::named::Named;
use crate::app::App;
use crate::web::values::Search;
use crate::web::{Answer, ApiError, Caller, Done, Filter, Listed, Params, PathId, Query, Shown, Timestamp};

/// A person, as a member of the company. In another company the same person is another user.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct User {
    pub id: UserId,
    #[schema(example = "Ana Souza")]
    pub name: String,
    #[schema(example = "ana@example.com")]
    pub email: String,
    #[schema(example = true)]
    pub active: bool,
    /// What they may do.
    pub profile: Option<Named<ProfileId>>,
    /// Where they work.
    pub queues: Vec<Named<QueueId>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl From<UserRow> for User {
    fn from(row: UserRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            email: row.email,
            active: row.active,
            profile: row.profile.map(|profile| profile.0.into()),
            queues: row.queues.0.into_iter().map(Named::from).collect(),
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// Filters of a queue's agents: `search` looks into name and e-mail.
pub struct MemberFilters(pub(super) UserFilter);

impl Filter for MemberFilters {
    fn read(query: &mut Params) -> Self {
        Self(UserFilter {
            search: query.filter::<Search>("search").map(|text| text.0),
            active: query.filter("active"),
            created: query.span("created"),
            updated: query.span("updated"),
            ..UserFilter::default()
        })
    }
}

/// Filters of the list: also by queue and profile.
pub struct Filters(UserFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        let member = MemberFilters::read(query).0;
        Self(UserFilter { queue_id: query.filter("queueId"), profile_id: query.filter("profileId"), ..member })
    }
}

/// `GET /users`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<Filters>) -> Answer<Listed<User>> {
    let db = app.db(caller.company);
    let filter = &query.filter.0;
    caller.check_queue(filter.queue_id)?;
    if let Some(profile) = filter.profile_id
        && !table::exists::<ProfileRow>(db, caller.company, profile).await?
    {
        return Err(ApiError::not_found());
    }
    let rows = users::list(db, caller.company, filter, query.page).await?;
    Ok(Listed::of(query.page, rows, User::from))
}

/// `GET /users/{userId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<UserId>) -> Answer<Shown<User>> {
    let row: Option<UserRow> = table::find(app.db(caller.company), caller.company, id.0).await?;
    Ok(Shown::of(row.ok_or_else(ApiError::not_found)?))
}

/// `DELETE /users/{userId}`: ends the membership. Open tickets lose their assignee; closed ones and history keep the name.
///
/// The row goes last. Whatever stops this before, a crash as well, leaves a user who can be deleted again, and never
/// a ticket that is assigned to nobody's id.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<UserId>) -> Answer<Done> {
    let (company, engine) = (caller.company, &app.engine);
    if !table::exists::<UserRow>(engine.store().db(company), company, id.0).await? {
        return Err(ApiError::not_found());
    }
    let remove = async |db: Db<'_>| {
        engine.release(company, id.0, None, caller.author()).await?;
        fail::fail_point!("user_released", |_| Err(ApiError::unavailable()));
        Ok::<_, ApiError>(users::remove(db, company, id.0).await?)
    };
    engine.leave(company, Leaving::User(id.0), remove).await?;
    Ok(Done)
}
