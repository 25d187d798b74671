//! Users: people's memberships in the company. Plain; also in the directory.

mod metrics;
mod rank;
mod write;

use actix_web::web::Data;
use hotline_actors::Removal;
use hotline_persistence::tables::users::{self, User};
use hotline_persistence::{Db, UserId, table};

pub use metrics::list_metrics;
pub use write::{create, update};

use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller, NoContent, PathId};

/// `DELETE /users/{userId}`: ends the membership. Open tickets lose their assignee; closed tickets and history keep the
/// name.
///
/// The row is deleted last. A failure before that, even a crash, leaves a user who can be deleted again, and never a
/// ticket that is assigned to a missing user.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<UserId>) -> ApiResult<NoContent> {
    let (company, engine) = (caller.company, &app.engine);
    if !table::exists::<User>(engine.store().db(company), company, id.0).await? {
        return Err(ApiError::not_found());
    }
    rank::check(&caller, &app, id.0).await?;
    let remove = async |db: Db<'_>| {
        engine.tickets.release(company, id.0, None, caller.author()).await?;
        hotline_persistence::fail_point!("user_released", |_| Err(ApiError::unavailable()));
        Ok::<_, ApiError>(users::remove(db, company, id.0).await?)
    };
    engine.assignment.delete_guarded(company, Removal::User(id.0), remove).await?;
    Ok(NoContent)
}
