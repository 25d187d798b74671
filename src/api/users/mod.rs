//! Users: people's memberships in the company. Plain; also in the directory.

pub mod administered;
mod metrics;
mod rank;
mod write;

use actix_web::web::Data;
use hotline_actors::Removal;
use hotline_persistence::tables::cascades::Cascade;
use hotline_persistence::tables::profiles;
use hotline_persistence::tables::users::{self, User};
use hotline_persistence::{Db, UserId, table};

pub use metrics::list_metrics;
pub use write::{create, update};

use self::rank::Wanted;
use crate::api::plain::remove_referenced;
use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller, NoContent, PathId};

/// `DELETE /users/{userId}`: ends the membership. Open tickets lose their assignee; closed ones and history keep the name.
///
/// The row goes after what tickets show of it, and before what cards do. Whatever stops this before, a crash as well,
/// leaves a user who can be deleted again, and never a ticket that is assigned to nobody's id. A person of the company cannot
/// remove the last who administers it, and an integration nobody who does.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<UserId>) -> ApiResult<NoContent> {
    let (company, engine) = (caller.company, &app.engine);
    if !table::exists::<User>(engine.store().db(company), company, id.0).await? {
        return Err(ApiError::not_found());
    }
    rank::check(&caller, &app, id.0).await?;
    let is_token = caller.token().is_some();
    if is_token {
        let mut look = app.db(company).begin().await?;
        rank::check_untouched(look.connection()?, company, id.0, Wanted::Removal).await?;
    }
    let is_bound = administered::binds(&caller);
    if is_bound {
        // Before the tickets go. What counts is the answer when the row does.
        administered::check(app.db(company), company, Some(id.0)).await?;
    }
    let cascade = Cascade::User(id.0);
    let remove = async |db: Db<'_>| {
        engine.tickets.release(company, id.0, None, caller.author()).await?;
        hotline_persistence::fail_point!("user_released", |_| Err(ApiError::unavailable()));
        remove_referenced(db, company, cascade, async |db| {
            if is_bound || is_token {
                profiles::lock(&mut *db, company).await?;
            }
            if is_token {
                rank::check_untouched(&mut *db, company, id.0, Wanted::Removal).await?;
            }
            users::remove(&mut *db, company, id.0).await?;
            if is_bound { administered::check(db, company, None).await } else { Ok(()) }
        })
        .await
    };
    engine.assignment.delete_guarded(company, Removal::User(id.0), remove).await?;
    engine.cascades.begin(company, cascade).await;
    Ok(NoContent)
}
