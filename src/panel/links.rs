//! Links by which a person chooses their password.

use std::borrow::Cow;

use actix_web::HttpRequest;
use actix_web::web::Data;
use hotline_persistence::Timestamp;
use hotline_persistence::password::Password;
use hotline_persistence::tables::people::called;
use hotline_persistence::tables::people::links::{self, LinkKind};
use serde::Serialize;
use utoipa::ToSchema;

use super::values::Typed;
use super::{Panel, site};
use crate::app::App;
use crate::web::origin::Address;
use crate::web::{ApiError, ApiResult, Body, Fields, Input, Json, NoContent, passwords};

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

/// `POST /links/use`: once.
pub async fn spend(
    request: HttpRequest,
    app: Data<App>,
    panel: Data<Panel>,
    body: Body<LinkUse>,
) -> ApiResult<NoContent> {
    panel.limits.try_from_address(site::address(&request, &app.trusted_proxies).map(Address::of))?;
    let LinkUse { token: Typed(token), password } = body.0;
    let company = links::company_of(&token).ok_or_else(ApiError::link_spent)?;
    let hash = passwords::hash(password).await?;
    let mut change = app.db(company).begin().await?;
    links::spend(change.connection()?, &token, &hash).await?.ok_or_else(ApiError::link_spent)?;
    change.commit().await?;
    Ok(NoContent)
}
