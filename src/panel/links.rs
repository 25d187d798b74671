//! Links by which a person chooses their password.

use std::borrow::Cow;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use hotline_actors::clock;
use hotline_persistence::Timestamp;
use hotline_persistence::password::Password;
use hotline_persistence::tables::people::links::{self, LinkKind};
use hotline_persistence::tables::people::{self, Account, INSTALLATION, Language, STRANGERS, display_name};
use serde::Serialize;
use utoipa::ToSchema;

use super::audit::SignInAudit;
use super::cookie::WithCookie;
use super::emails::{AccountLink, Recipient, link_email, preferred_language};
use super::limits::account_key;
use super::values::{TypedSecret, UNAUTHENTICATED_BODY_BYTES_MAX};
use super::{Panel, device, site};
use crate::app::App;
use crate::mail::{Mailer, OutgoingEmail, QueuePermit};
use crate::web::admission::passwords;
use crate::web::connections::origin::Address;
use crate::web::request::values::Email;
use crate::web::{ApiError, ApiResult, Body, Fields, Input, Json, NoContent};

/// The page that reads a link's token from the fragment (`#`), which browsers do not send and proxies do not log.
pub(super) const LINK_PAGE: &str = "/panel/welcome#";

/// The owner of a link.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersonLink {
    /// The purpose of the link.
    pub kind: LinkKind,
    /// The person's name.
    #[schema(example = "Ana Souza")]
    pub name: String,
    /// E-mail address for signing in.
    #[schema(example = "ana@example.com")]
    pub email: String,
    /// The company's name; `null` for an administrator of the installation.
    #[schema(example = "Acme")]
    pub company_name: Option<String>,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// The body of `POST /links/read`.
pub struct LinkToken(TypedSecret);

impl Input for LinkToken {
    const BYTES_MAX: usize = UNAUTHENTICATED_BODY_BYTES_MAX;

    fn name() -> Cow<'static, str> {
        "LinkToken".into()
    }

    fn text() -> Option<String> {
        Some("The token of a link.".to_owned())
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
    let link = links::find(app.db(STRANGERS), &token).await?.ok_or_else(ApiError::link_spent)?;
    Ok(Json::of(PersonLink {
        kind: link.kind,
        name: display_name(&link.name, &link.email).to_owned(),
        email: link.email,
        company_name: link.company_name,
        expires_at: link.expires_at.into(),
    }))
}

/// The body of `POST /links/use`.
pub struct LinkUse {
    token: TypedSecret,
    password: Password,
}

impl Input for LinkUse {
    const BYTES_MAX: usize = UNAUTHENTICATED_BODY_BYTES_MAX;

    fn name() -> Cow<'static, str> {
        "LinkUse".into()
    }

    fn text() -> Option<String> {
        Some("A new password, chosen with a link.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (token, password) = (fields.required("token"), fields.required("password"));
        Some(Self { token: token?, password: password? })
    }
}

/// `POST /links/use`: works once per link. It makes the device known, so that attempts of strangers cannot lock out the
/// owner of the link.
pub async fn redeem(
    request: HttpRequest,
    app: Data<App>,
    panel: Data<Panel>,
    body: Body<LinkUse>,
) -> ApiResult<WithCookie<NoContent>> {
    panel.limits.try_from_address(site::address(&request, &app.trusted_proxies).map(Address::of))?;
    let LinkUse { token: TypedSecret(token), password } = body.0;
    let company = links::company_of(&token).ok_or_else(ApiError::link_spent)?;
    // Looked up before the password is hashed, so that an invalid token costs only a look-up.
    let link = links::find(app.db(STRANGERS), &token).await?.ok_or_else(ApiError::link_spent)?;
    passwords::check_owner(&password, "password", &link.email, &link.name)?;
    let hash = passwords::hash(company, password).await?;
    let (audit, person) = (SignInAudit::of(&app, &request, "useLink"), link.person());
    let set_password = async || {
        let mut transaction = app.db(company).begin().await?;
        let redeemed = links::redeem(transaction.connection()?, &token, &hash).await?;
        let redeemed = redeemed.ok_or_else(ApiError::link_spent)?;
        transaction.commit().await?;
        Ok(redeemed)
    };
    let name = display_name(&link.name, &link.email);
    let redeemed = audit.run((person, name), StatusCode::NO_CONTENT, set_password).await?;
    let owner = (person, redeemed.email.as_str());
    // Browsers send the device cookie only to the path for signing in, so it cannot be extended here but is replaced:
    // the device is then unknown for the other people who share it, until they sign in again.
    let device_cookie =
        device::renew_cookie(&app.engine.store().keys, owner, None, clock::now()).map_err(ApiError::internal)?;
    let is_https = site::is_https(&request, &app);
    Ok(WithCookie::unchanged(NoContent).and_device(&device_cookie, is_https))
}

/// The body of `POST /links/forgotten`.
pub struct ResetRequest(String);

impl Input for ResetRequest {
    const BYTES_MAX: usize = UNAUTHENTICATED_BODY_BYTES_MAX;

    fn name() -> Cow<'static, str> {
        "ForgottenPassword".into()
    }

    fn text() -> Option<String> {
        Some("A request for a password reset.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        fields.required::<Email>("email").map(|email| Self(email.0))
    }
}

/// `POST /links/forgotten`: answered before anything is looked up, so that neither the response nor its timing reveals
/// whether the account exists.
pub async fn request_reset(
    request: HttpRequest,
    app: Data<App>,
    panel: Data<Panel>,
    body: Body<ResetRequest>,
) -> ApiResult<NoContent> {
    panel.limits.try_from_address(site::address(&request, &app.trusted_proxies).map(Address::of))?;
    let (Some(mailer), Some(base)) = (panel.mailer.clone(), app.media.public_url()) else {
        return Err(ApiError::not_found());
    };
    let permit = mailer.reserve_unauthenticated().ok_or_else(ApiError::unavailable)?;
    let (base, language) = (base.to_owned(), preferred_language(request.headers()));
    let client_address = SignInAudit::client_address(&app, &request);
    let background = app.engine.background().clone();
    let email = body.0.0;
    background.spawn(async move {
        let _guard = panel.reset_locks.lock(account_key(&email)).await;
        send_reset_emails(&app, &panel, (&mailer, permit), &email, (&base, language), client_address).await;
    });
    Ok(NoContent)
}

/// Sends an e-mail with a link for each membership with this address: names of a company and its people never appear in
/// an e-mail of another company, and a failure in one company does not affect the others. The e-mails are sent one
/// after the other, so one permit is enough. It is held until the last audit entry is written, because a shutdown waits
/// until all permits are released.
async fn send_reset_emails(
    app: &App,
    panel: &Panel,
    (mailer, permit): (&Mailer, QueuePermit),
    email: &str,
    (base, language): (&str, Option<Language>),
    client_address: Option<String>,
) {
    let accounts = match people::accounts(&app.engine.store().housekeeping, email, None).await {
        Ok(accounts) => accounts,
        Err(error) => {
            tracing::warn!(%error, "could not find the accounts of a password reset; the person can request it again");
            return;
        }
    };
    // If the accounts are in several companies, their audit logs omit the address: a company must not learn from where
    // a person resets a password in another company.
    let client_address = client_address.filter(|_| people::are_of_one_company(&accounts));
    for account in accounts {
        let person = account.person();
        let (name, reset_email) = match create_reset_email(app, panel, account, (base, language)).await {
            Ok(Some(named_email)) => named_email,
            Ok(None) => continue,
            Err(error) => {
                let text = "could not create a password link; the person can request another one";
                tracing::warn!(%error, company.id = %person.company(), "{text}");
                continue;
            }
        };
        // `send` logs and counts failures.
        if mailer.send(&permit, reset_email).await.is_ok() {
            SignInAudit::for_address(app, client_address.clone(), "requestReset").record(person, &name, 204).await;
        }
    }
}

/// Creates a link and its e-mail, and returns the e-mail with the person's name; `None` if there is no e-mail to send.
async fn create_reset_email(
    app: &App,
    panel: &Panel,
    account: Account,
    (base, language): (&str, Option<Language>),
) -> hotline_persistence::Result<Option<(String, OutgoingEmail)>> {
    let person = account.person();
    // A new link would revoke the existing one, so none is created unless it can be sent.
    if !panel.limits.may_request_email(person.company()) {
        tracing::warn!(company.id = %person.company(), "e-mail dropped: the hourly limit of password e-mails is reached");
        return Ok(None);
    }
    let mut transaction = app.db(person.company()).begin().await?;
    let db = transaction.connection()?;
    let Some((token, kind)) = links::request_reset(&mut *db, person).await? else { return Ok(None) };
    let Some(owner) = people::find(&mut *db, person).await? else { return Ok(None) };
    // Counted before the commit: if other e-mails of the company have meanwhile used up the limit, no link is created.
    if !panel.limits.take_requested_email(person.company()) {
        return Ok(None);
    }
    transaction.commit().await?;
    let name = display_name(&owner.name, &owner.email).to_owned();
    let Account { company_id, company_name, .. } = account;
    let company = company_name.filter(|_| company_id != INSTALLATION);
    let language = owner.language.or(language).unwrap_or(Language::English);
    let to = Recipient { name: name.clone(), email: owner.email, language };
    Ok(Some((name, link_email(&to, &AccountLink { kind, company, url: format!("{base}{LINK_PAGE}{token}") }))))
}
