//! What administrators do for the people of their company: create links to choose a password, and remove a lost second
//! factor.

use actix_web::HttpRequest;
use actix_web::web::Data;
use hotline_actors::{Conflict, Refusal};
use hotline_persistence::tables::people::links::{self, LinkKind};
use hotline_persistence::tables::people::{self, Language, Person, PersonId, factors, sessions};
use hotline_persistence::tables::users::{self, User};
use hotline_persistence::{CompanyId, Timestamp, UserId, table};
use serde::Serialize;
use utoipa::ToSchema;

use super::Panel;
use super::emails::{AccountLink, Recipient, link_email, preferred_language};
use super::extractors::Administrator;
use super::links::LINK_PAGE;
use crate::app::App;
use crate::web::connections::origin;
use crate::web::response::reply::{Confidential, HasSecrets};
use crate::web::{ApiError, ApiResult, Idempotency, Json, NoContent, PathId};

/// A link to set a password. It is e-mailed to its owner where possible; otherwise the administrator passes it on.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// The complete URL; `null` if it was sent.
    #[schema(example = "https://desk.example/panel/welcome#7.4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
    pub url: Option<String>,
    /// The token at its end; `null` if it was sent.
    #[schema(example = "7.4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
    pub token: Option<String>,
    /// The address it was e-mailed to; `null` if e-mail is not set up, or the message was not sent.
    #[schema(example = "ana@example.com")]
    pub sent_to: Option<String>,
    /// When it expires.
    pub expires_at: Timestamp,
}

impl HasSecrets for Link {
    const SECRETS: &'static [&'static str] = &["url", "token"];
}

/// Creates a link in the same transaction as the idempotency record of its response, and then sends the e-mail. A retry
/// after a crash finds the record: it creates no other link, which would revoke the one in the e-mail, and sends
/// nothing.
async fn create_link(
    administrator: &Administrator,
    (app, panel): (&App, &Panel),
    request: &HttpRequest,
    (id, kind): (UserId, LinkKind),
    idempotency: &Idempotency,
) -> ApiResult<Confidential<Json<Link>>> {
    let company = administrator.company;
    check_not_own_user(administrator, id)?;
    let person = PersonId::User(company, id);
    check_not_inactive(app, company, id)?;
    let base = match app.media.public_url() {
        Some(base) => base.to_owned(),
        None => origin::site(request, &app.trusted_proxies).unwrap_or_default(),
    };
    // Read before the link is created: if this failed afterwards, the caller would not see the link.
    let owner = match panel.mailer {
        Some(_) => people::find(app.db(company), person).await?,
        None => None,
    };
    let create = idempotency.transaction(app.db(company), async |db| {
        let (token, expires_at) = links::make(db, person, kind).await?;
        let url = Some(format!("{base}{LINK_PAGE}{token}"));
        Ok(Confidential(Json::of(Link { url, token: Some(token), sent_to: None, expires_at: expires_at.into() })))
    });
    let created: Confidential<Json<Link>> = create.await?;
    let link = &created.0.0;
    let sent_to = match (owner, &link.url) {
        (Some(owner), Some(url)) => send_link(app, panel, request, company, owner, (kind, url)).await,
        _ => None,
    };
    hotline_persistence::fail_point!("link_sent", |_| std::process::abort());
    let Some(sent_to) = sent_to else { return Ok(created) };
    let sent_link = Link { url: None, token: None, sent_to: Some(sent_to), expires_at: link.expires_at };
    let sent: Confidential<Json<Link>> = Confidential(Json::of(sent_link));
    idempotency.amend(app.db(company), &sent).await;
    Ok(sent)
}

/// Refuses the administrator's own user: people change their own credentials in their account, which requires the
/// password.
fn check_not_own_user(administrator: &Administrator, id: UserId) -> ApiResult<()> {
    let person = administrator.signed_in.person();
    if person == PersonId::User(administrator.company, id) { Err(ApiError::own_account()) } else { Ok(()) }
}

/// Refuses a user who is inactive.
fn check_not_inactive(app: &App, company: CompanyId, id: UserId) -> ApiResult<()> {
    let organization = app.engine.directory().company(company);
    let is_inactive =
        organization.is_some_and(|organization| organization.users.get(&id).is_some_and(|user| !user.active));
    if is_inactive {
        return Err(Refusal::Conflict(Conflict::of("the user is inactive", "inactive", "userId", id)).into());
    }
    Ok(())
}

/// E-mails a link to its owner; returns the address, or `None` when the link must be passed on by hand.
async fn send_link(
    app: &App,
    panel: &Panel,
    request: &HttpRequest,
    company: CompanyId,
    owner: Person,
    (kind, url): (LinkKind, &str),
) -> Option<String> {
    let mailer = panel.mailer.as_ref()?;
    if !panel.limits.take_email(company) {
        tracing::warn!(company.id = %company, "e-mail dropped: the company's hourly limit is reached");
        return None;
    }
    let permit = mailer.reserve()?;
    let name = app.engine.directory().company(company).map(|organization| organization.company.name.clone());
    let recipient = Recipient {
        name: owner.name,
        email: owner.email.clone(),
        language: owner.language.or_else(|| preferred_language(request.headers())).unwrap_or(Language::English),
    };
    let link = AccountLink { kind, company: name, url: url.to_owned() };
    mailer.send(&permit, link_email(&recipient, &link)).await.is_ok().then_some(owner.email)
}

/// `POST /users/{userId}/invitation`: valid for 7 days; invalidates the previous link.
pub async fn invite(
    administrator: Administrator,
    app: Data<App>,
    panel: Data<Panel>,
    request: HttpRequest,
    id: PathId<UserId>,
    idempotency: Idempotency,
) -> ApiResult<Confidential<Json<Link>>> {
    create_link(&administrator, (&app, &panel), &request, (id.0, LinkKind::Invitation), &idempotency).await
}

/// `POST /users/{userId}/password-reset`: valid for an hour; invalidates the previous link.
pub async fn reset_password(
    administrator: Administrator,
    app: Data<App>,
    panel: Data<Panel>,
    request: HttpRequest,
    id: PathId<UserId>,
    idempotency: Idempotency,
) -> ApiResult<Confidential<Json<Link>>> {
    create_link(&administrator, (&app, &panel), &request, (id.0, LinkKind::Reset), &idempotency).await
}

/// `POST /users/{userId}/second-factor/remove`: ends all sessions of the user.
pub async fn remove_factor(
    administrator: Administrator,
    app: Data<App>,
    id: PathId<UserId>,
    idempotency: Idempotency,
) -> ApiResult<NoContent> {
    let company = administrator.company;
    check_not_own_user(&administrator, id.0)?;
    idempotency
        .transaction(app.db(company), async |db| {
            if !table::exists::<User>(&mut *db, company, id.0).await? {
                return Err(ApiError::not_found());
            }
            // Waits until a change by the user is committed: a second factor that they have just set up is removed too.
            users::lock(&mut *db, company, id.0).await?;
            let person = PersonId::User(company, id.0);
            factors::remove(&mut *db, person).await?;
            sessions::end_all(db, person, None).await?;
            Ok(NoContent)
        })
        .await
}
