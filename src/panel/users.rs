//! What administrators do for the people of their company: links by which they choose a password, and a way back for who
//! has lost the second factor.

use actix_web::HttpRequest;
use actix_web::web::Data;
use hotline_persistence::tables::people::links::{self, LinkKind};
use hotline_persistence::tables::people::{PersonId, factors, sessions};
use hotline_persistence::tables::users::User;
use hotline_persistence::{Timestamp, UserId, table};
use serde::Serialize;
use utoipa::ToSchema;

use super::signed::Administrator;
use crate::app::App;
use crate::web::{ApiError, ApiResult, Confidential, Json, NoContent, PathId, origin};

/// Where the pages read a link's token: behind `#`, which no browser sends and no proxy writes down.
const PAGE: &str = "/panel/welcome#";

/// A link by which somebody chooses a password. It is passed on by who asked for it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// The whole address.
    #[schema(example = "https://desk.example/panel/welcome#7.4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
    pub url: String,
    /// What it ends with.
    #[schema(example = "7.4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
    pub token: String,
    /// Until when it is good.
    pub expires_at: Timestamp,
}

async fn made(
    administrator: &Administrator,
    app: &App,
    request: &HttpRequest,
    id: UserId,
    kind: LinkKind,
) -> ApiResult<Confidential<Json<Link>>> {
    let company = administrator.company;
    let (token, expires_at) = links::make(app.db(company), PersonId::User(company, id), kind).await?;
    let base = match app.media.public_url() {
        Some(base) => base.to_owned(),
        None => origin::site(request, &app.trusted_proxies).unwrap_or_default(),
    };
    let url = format!("{base}{PAGE}{token}");
    Ok(Confidential(Json::of(Link { url, token, expires_at: expires_at.into() })))
}

/// `POST /users/{userId}/invitation`: good for 7 days; the link before is not any more.
pub async fn invite(
    administrator: Administrator,
    app: Data<App>,
    request: HttpRequest,
    id: PathId<UserId>,
) -> ApiResult<Confidential<Json<Link>>> {
    made(&administrator, &app, &request, id.0, LinkKind::Invitation).await
}

/// `POST /users/{userId}/password-reset`: good for an hour; the link before is not any more.
pub async fn reset(
    administrator: Administrator,
    app: Data<App>,
    request: HttpRequest,
    id: PathId<UserId>,
) -> ApiResult<Confidential<Json<Link>>> {
    made(&administrator, &app, &request, id.0, LinkKind::Reset).await
}

/// `POST /users/{userId}/second-factor/remove`: the user is signed in nowhere any more.
pub async fn remove_factor(administrator: Administrator, app: Data<App>, id: PathId<UserId>) -> ApiResult<NoContent> {
    let company = administrator.company;
    let mut change = app.db(company).begin().await?;
    let db = change.connection()?;
    if !table::exists::<User>(&mut *db, company, id.0).await? {
        return Err(ApiError::not_found());
    }
    let person = PersonId::User(company, id.0);
    factors::remove(&mut *db, person).await?;
    sessions::end_all(&mut *db, person, None).await?;
    change.commit().await?;
    Ok(NoContent)
}
