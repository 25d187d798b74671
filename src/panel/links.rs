//! Links by which a person chooses their password.

use std::borrow::Cow;

use actix_web::HttpRequest;
use actix_web::web::Data;
use hotline_actors::clock;
use hotline_persistence::Timestamp;
use hotline_persistence::password::Password;
use hotline_persistence::tables::people::links::{self, LinkKind};
use hotline_persistence::tables::people::{self, Account, INSTALLATION, Language, called};
use serde::Serialize;
use utoipa::ToSchema;

use super::cookie::WithCookie;
use super::letters::{Recipient, Way, letter, spoken};
use super::values::Typed;
use super::{Panel, device, site};
use crate::app::App;
use crate::mail::Letter;
use crate::web::origin::Address;
use crate::web::values::Email;
use crate::web::{ApiError, ApiResult, Body, Fields, Input, Json, NoContent, passwords};

/// The page that reads a link's token from the fragment (`#`), which browsers do not send and proxies do not log.
pub(super) const PAGE: &str = "/panel/welcome#";

/// Whose a link is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersonLink {
    /// What it is for.
    pub kind: LinkKind,
    /// Who chooses their password by it.
    #[schema(example = "Ana Souza")]
    pub name: String,
    /// What they sign in with.
    #[schema(example = "ana@example.com")]
    pub email: String,
    /// Where they work; none of an administrator of the installation.
    #[schema(example = "Acme")]
    pub company_name: Option<String>,
    /// Until when it is good.
    pub expires_at: Timestamp,
}

/// The body of `POST /links/read`.
pub struct LinkToken(Typed);

impl Input for LinkToken {
    fn name() -> Cow<'static, str> {
        "LinkToken".into()
    }

    fn text() -> Option<String> {
        Some("What a link ends with.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        fields.required("token").map(Self)
    }
}

/// `POST /links/read`.
pub async fn read(
    request: HttpRequest,
    app: Data<App>,
    panel: Data<Panel>,
    body: Body<LinkToken>,
) -> ApiResult<Json<PersonLink>> {
    panel.limits.try_from_address(site::address(&request, &app.trusted_proxies).map(Address::of))?;
    let token = body.0.0.0;
    let company = links::company_of(&token).ok_or_else(ApiError::link_spent)?;
    let link = links::find(app.db(company), &token).await?.ok_or_else(ApiError::link_spent)?;
    Ok(Json::of(PersonLink {
        kind: link.kind,
        name: called(&link.name, &link.email).to_owned(),
        email: link.email,
        company_name: link.company_name,
        expires_at: link.expires_at.into(),
    }))
}

/// The body of `POST /links/use`.
pub struct LinkUse {
    token: Typed,
    password: Password,
}

impl Input for LinkUse {
    fn name() -> Cow<'static, str> {
        "LinkUse".into()
    }

    fn text() -> Option<String> {
        Some("The password somebody chooses by a link.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (token, password) = (fields.required("token"), fields.required("password"));
        Some(Self { token: token?, password: password? })
    }
}

/// `POST /links/use`: works once. It makes the device known, so that attempts of strangers cannot lock out the owner of
/// the link.
pub async fn spend(
    request: HttpRequest,
    app: Data<App>,
    panel: Data<Panel>,
    body: Body<LinkUse>,
) -> ApiResult<WithCookie<NoContent>> {
    panel.limits.try_from_address(site::address(&request, &app.trusted_proxies).map(Address::of))?;
    let LinkUse { token: Typed(token), password } = body.0;
    let company = links::company_of(&token).ok_or_else(ApiError::link_spent)?;
    let hash = passwords::hash(password).await?;
    let mut change = app.db(company).begin().await?;
    let link = links::spend(change.connection()?, &token, &hash).await?.ok_or_else(ApiError::link_spent)?;
    change.commit().await?;
    let shown = device::known(&app.engine.store().keys, &link.email, clock::now()).map_err(ApiError::internal)?;
    let is_https = site::is_https(&request, &app.trusted_proxies);
    Ok(WithCookie::unchanged(NoContent).and_device(&shown, is_https))
}

/// The body of `POST /links/forgotten`.
pub struct Forgotten(String);

impl Input for Forgotten {
    fn name() -> Cow<'static, str> {
        "ForgottenPassword".into()
    }

    fn text() -> Option<String> {
        Some("Who has forgotten their password.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        fields.required::<Email>("email").map(|email| Self(email.0))
    }
}

/// `POST /links/forgotten`: answered before anything is looked up, so that neither the response nor its timing reveals
/// whether the account exists.
pub async fn request(
    request: HttpRequest,
    app: Data<App>,
    panel: Data<Panel>,
    body: Body<Forgotten>,
) -> ApiResult<NoContent> {
    panel.limits.try_from_address(site::address(&request, &app.trusted_proxies).map(Address::of))?;
    let (Some(mailer), Some(base)) = (panel.mailer.clone(), app.media.public_url()) else {
        return Err(ApiError::not_found());
    };
    let place = mailer.place().ok_or_else(ApiError::unavailable)?;
    let (base, spoken) = (base.to_owned(), spoken(request.headers()));
    let background = app.engine.background().clone();
    background.spawn(async move {
        let letter = {
            let _turn = panel.reminding.lock().await;
            remind(&app, &body.0.0, (&base, spoken)).await
        };
        match letter {
            // `send` logs and counts failures.
            Ok(Some(letter)) => drop(mailer.send(place, letter).await),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "a link to choose a password was not made"),
        }
    });
    Ok(NoContent)
}

/// A mail to the person with this e-mail, with a link for each of their memberships; `None` if there is no such person.
async fn remind(
    app: &App,
    email: &str,
    (base, spoken): (&str, Option<Language>),
) -> hotline_persistence::Result<Option<Letter>> {
    let mut to = None;
    let mut ways = Vec::new();
    for account in people::accounts(&app.engine.store().housekeeping, email, None).await? {
        let person = account.person();
        let db = app.db(person.company());
        let Some((token, kind)) = links::make_again(db, person).await? else { continue };
        let Some(profile) = people::find(app.db(person.company()), person).await? else { continue };
        let Account { company_id, company_name, .. } = account;
        let company = company_name.filter(|_| company_id != INSTALLATION);
        ways.push(Way { kind, company, url: format!("{base}{PAGE}{token}") });
        to.get_or_insert_with(|| Recipient {
            name: called(&profile.name, &profile.email).to_owned(),
            email: profile.email.clone(),
            language: profile.language.or(spoken).unwrap_or(Language::English),
        });
    }
    Ok(to.map(|to| letter(&to, &ways)))
}
