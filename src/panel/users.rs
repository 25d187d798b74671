//! What administrators do for the people of their company: create links to choose a password, and remove a lost second
//! factor.

use actix_web::HttpRequest;
use actix_web::web::Data;
use hotline_persistence::tables::people::links::{self, LinkKind};
use hotline_persistence::tables::people::{self, Language, PersonId, factors, sessions};
use hotline_persistence::tables::users::User;
use hotline_persistence::{Timestamp, UserId, table};
use serde::Serialize;
use utoipa::ToSchema;

use super::Panel;
use super::letters::{Recipient, Way, letter, spoken};
use super::links::PAGE;
use super::signed::Administrator;
use crate::app::App;
use crate::web::{ApiError, ApiResult, Confidential, Idempotency, Json, NoContent, PathId, ShownOnce, origin};

/// A link by which somebody chooses a password. It is sent to them by mail where that is set up, and else passed on by
/// who asked for it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// The whole address; none when it was sent.
    #[schema(example = "https://desk.example/panel/welcome#7.4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
    pub url: Option<String>,
    /// What it ends with; none when it was sent.
    #[schema(example = "7.4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
    pub token: Option<String>,
    /// To whom it was sent by mail; none where no mail is set up, or the relay has not taken it.
    #[schema(example = "ana@example.com")]
    pub sent_to: Option<String>,
    /// Until when it is good.
    pub expires_at: Timestamp,
}

impl ShownOnce for Link {
    const SECRETS: &'static [&'static str] = &["url", "token"];
}

async fn made(
    administrator: &Administrator,
    (app, panel): (&App, &Panel),
    request: &HttpRequest,
    id: UserId,
    kind: LinkKind,
) -> ApiResult<Confidential<Json<Link>>> {
    let company = administrator.company;
    check_other(administrator, id)?;
    let (token, expires_at) = links::make(app.db(company), PersonId::User(company, id), kind).await?;
    let base = match app.media.public_url() {
        Some(base) => base.to_owned(),
        None => origin::site(request, &app.trusted_proxies).unwrap_or_default(),
    };
    let url = format!("{base}{PAGE}{token}");
    let expires_at = expires_at.into();
    let link = match sent(app, panel, request, PersonId::User(company, id), (kind, &url)).await? {
        Some(sent_to) => Link { url: None, token: None, sent_to: Some(sent_to), expires_at },
        None => Link { url: Some(url), token: Some(token), sent_to: None, expires_at },
    };
    Ok(Confidential(Json::of(link)))
}

/// Whether it is somebody else. What lets a person in they change in their own account, which asks for their password.
fn check_other(administrator: &Administrator, id: UserId) -> ApiResult<()> {
    let own = administrator.signed.person();
    if own == PersonId::User(administrator.company, id) { Err(ApiError::own_account()) } else { Ok(()) }
}

/// Mails a link to its person; returns the address, or `None` when the link must be passed on by hand.
async fn sent(
    app: &App,
    panel: &Panel,
    request: &HttpRequest,
    person: PersonId,
    (kind, url): (LinkKind, &str),
) -> ApiResult<Option<String>> {
    let Some(mailer) = panel.mailer.as_ref() else { return Ok(None) };
    let Some(profile) = people::find(app.db(person.company()), person).await? else { return Ok(None) };
    if !panel.limits.may_write(person.company()) {
        tracing::warn!(company.id = %person.company(), "a letter was not sent: the company has sent all of this hour");
        return Ok(None);
    }
    let Some(place) = mailer.place() else { return Ok(None) };
    let company = app.engine.directory().company(person.company()).map(|known| known.company.name.clone());
    let to = Recipient {
        name: profile.name,
        email: profile.email.clone(),
        language: profile.language.or_else(|| spoken(request.headers())).unwrap_or(Language::English),
    };
    let way = Way { kind, company, url: url.to_owned() };
    Ok(mailer.send(place, letter(&to, &way)).await.is_ok().then_some(profile.email))
}

/// `POST /users/{userId}/invitation`: valid for 7 days; invalidates the previous link.
pub async fn invite(
    administrator: Administrator,
    app: Data<App>,
    panel: Data<Panel>,
    request: HttpRequest,
    id: PathId<UserId>,
) -> ApiResult<Confidential<Json<Link>>> {
    made(&administrator, (&app, &panel), &request, id.0, LinkKind::Invitation).await
}

/// `POST /users/{userId}/password-reset`: valid for an hour; invalidates the previous link.
pub async fn reset(
    administrator: Administrator,
    app: Data<App>,
    panel: Data<Panel>,
    request: HttpRequest,
    id: PathId<UserId>,
) -> ApiResult<Confidential<Json<Link>>> {
    made(&administrator, (&app, &panel), &request, id.0, LinkKind::Reset).await
}

/// `POST /users/{userId}/second-factor/remove`: ends all sessions of the user.
pub async fn remove_factor(
    administrator: Administrator,
    app: Data<App>,
    id: PathId<UserId>,
    once: Idempotency,
) -> ApiResult<NoContent> {
    let company = administrator.company;
    check_other(&administrator, id.0)?;
    once.transaction(app.db(company), async |db| {
        if !table::exists::<User>(&mut *db, company, id.0).await? {
            return Err(ApiError::not_found());
        }
        let person = PersonId::User(company, id.0);
        factors::remove(&mut *db, person).await?;
        sessions::end_all(db, person, None).await?;
        Ok(NoContent)
    })
    .await
}
