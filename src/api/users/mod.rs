//! Users: people's memberships in the company. Plain; also in the directory.

pub mod administrators;
mod metrics;
mod privileges;
mod write;

use actix_web::web::Data;
use hotline_actors::Removal;
use hotline_persistence::tables::cascades::Cascade;
use hotline_persistence::tables::profiles;
use hotline_persistence::tables::users::{self, User};
use hotline_persistence::{Db, UserId, table};

pub use metrics::list_metrics;
pub use write::{create, update};

use self::privileges::UserChange;
use crate::api::plain::remove_referenced;
use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller, NoContent, PathId};

/// `DELETE /users/{userId}`: ends the membership. Open tickets lose their assignee; closed tickets and history
/// keep the name.
///
/// References in tickets are removed before the row, those in cards after it. If the deletion is interrupted, even by a
/// crash, the user can be deleted again, and no ticket is assigned to a missing user. A person of the company cannot
/// remove its last administrator, and an integration cannot remove any administrator.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<UserId>) -> ApiResult<NoContent> {
    let (company, engine) = (caller.company, &app.engine);
    if !table::exists::<User>(engine.store().db(company), company, id.0).await? {
        return Err(ApiError::not_found());
    }
    privileges::check(&caller, &app, id.0).await?;
    let is_integration = caller.token().is_some();
    if is_integration {
        let mut transaction = app.db(company).begin().await?;
        privileges::check_integration(transaction.connection()?, company, id.0, UserChange::Removal).await?;
    }
    let must_keep_administrator = administrators::must_keep_last(&caller);
    if must_keep_administrator {
        // Checked early, before tickets are released. The check in the transaction of the deletion decides.
        administrators::check_remaining(app.db(company), company, Some(id.0)).await?;
    }
    let cascade = Cascade::User(id.0);
    let remove = async |db: Db<'_>| {
        engine.tickets.release(company, id.0, None, caller.author()).await?;
        hotline_persistence::fail_point!("user_released", |_| Err(ApiError::unavailable()));
        remove_referenced(db, company, cascade, async |db| {
            if must_keep_administrator || is_integration {
                profiles::lock(&mut *db, company).await?;
            }
            if is_integration {
                privileges::check_integration(&mut *db, company, id.0, UserChange::Removal).await?;
            } else {
                privileges::check_in_transaction(&caller, &mut *db, id.0).await?;
            }
            users::remove(&mut *db, company, id.0).await?;
            if must_keep_administrator { administrators::check_remaining(db, company, None).await } else { Ok(()) }
        })
        .await
    };
    engine.assignment.delete_guarded(company, Removal::User(id.0), remove).await?;
    engine.cascades.begin(company, cascade).await;
    Ok(NoContent)
}
