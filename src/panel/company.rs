//! Companies: a person's own and, for administrators of the installation, all of them.

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_actors::FieldError;
use hotline_persistence::stop_words::{self, CHARACTERS_MAX, WORDS_MAX};
use hotline_persistence::tables::companies::{self, CompanyChanges, CompanyFilter, CompanyRow};
use hotline_persistence::tables::people::INSTALLATION;
use hotline_persistence::visible_text;
use hotline_persistence::{CompanyId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::extractors::{Administrator, CompanyMember, InstallationAdmin};
use crate::api::directory::refresh_after;
use crate::app::App;
use crate::web::request::calendar::Zone;
use crate::web::request::channel_values::Count;
use crate::web::request::values::{Name, Search};
use crate::web::{
    ApiError, ApiResult, Body, Created, Fields, Filter, Idempotency, Input, Json, Page, Params, Patch, PathId, Query,
};

/// A company.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Company {
    /// The id.
    pub id: CompanyId,
    /// The name.
    #[schema(example = "Acme")]
    pub name: String,
    /// Whether the company is active.
    #[schema(example = true)]
    pub active: bool,
    /// Whether the company's plan includes the API.
    #[schema(example = true)]
    pub api_enabled: bool,
    /// Requests per minute of the company's tokens; 0 for no limit; `null` for the installation's default.
    #[schema(example = 600)]
    pub rate_per_minute: Option<i32>,
    /// The company's time zone.
    #[schema(example = "America/Sao_Paulo")]
    pub time_zone: String,
    /// Words by which contacts opt out of campaigns, normalized for comparison.
    #[schema(example = json!(["stop"]))]
    pub stop_words: Vec<String>,
    /// Whether users must have a second factor.
    #[schema(example = false)]
    pub second_factor_required: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last updated.
    pub updated_at: Timestamp,
}

impl From<CompanyRow> for Company {
    fn from(row: CompanyRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            active: row.active,
            api_enabled: row.api_enabled,
            rate_per_minute: row.rate_per_minute,
            time_zone: row.time_zone,
            stop_words: row.stop_words,
            second_factor_required: row.second_factor_required,
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

async fn load_company(app: &App, id: CompanyId) -> ApiResult<Company> {
    Ok(companies::find(app.db(id), id).await?.ok_or_else(ApiError::not_found)?.into())
}

async fn update_company(
    app: &App,
    id: CompanyId,
    changes: CompanyChanges,
    idempotency: &Idempotency,
) -> ApiResult<Json<Company>> {
    let update =
        idempotency.transaction(app.db(id), async |db| Ok(Json::of(companies::update(db, id, changes).await?)));
    refresh_after(app, id, update).await
}

/// The fields that `PUT /company` and `PUT /companies/{companyId}` share.
fn read_shared_changes(fields: &mut Fields<'_>) -> CompanyChanges {
    CompanyChanges {
        name: fields.non_null::<Name>("name").map(|name| name.0),
        time_zone: fields.non_null::<Zone>("timeZone").map(|zone| zone.0.name().to_owned()),
        stop_words: read_stop_words(fields),
        second_factor_required: fields.non_null::<bool>("secondFactorRequired"),
        ..CompanyChanges::default()
    }
}

fn read_stop_words(fields: &mut Fields<'_>) -> Option<Vec<String>> {
    let names = fields.changed_list::<Name>("stopWords", WORDS_MAX)?;
    let mut words: Vec<String> = Vec::new();
    for word in names.into_iter().map(|word| stop_words::fold(&word.0)) {
        if visible_text::is_blank(&word) || word.chars().count() > CHARACTERS_MAX {
            fields.refuse("stopWords", format!("must have words of 1 to {CHARACTERS_MAX} characters"));
        }
        if !words.contains(&word) {
            words.push(word);
        }
    }
    Some(words)
}

/// `GET /company`.
pub async fn show_own(member: CompanyMember, app: Data<App>) -> ApiResult<Json<Company>> {
    Ok(Json::of(load_company(&app, member.company).await?))
}

/// The body of `PUT /company`.
pub struct OwnCompanyChange(CompanyChanges);

impl Input for OwnCompanyChange {
    fn name() -> Cow<'static, str> {
        "OwnCompanyUpdate".into()
    }

    fn text() -> Option<String> {
        Some("Changes to the company.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self(read_shared_changes(fields)))
    }
}

/// `PUT /company`. An administrator who requires a second factor must have one.
pub async fn update_own(
    administrator: Administrator,
    app: Data<App>,
    body: Body<OwnCompanyChange>,
    idempotency: Idempotency,
) -> ApiResult<Json<Company>> {
    let changes = body.0.0;
    if changes.second_factor_required == Some(true) && !administrator.signed_in.has_factor {
        let reason = "cannot be required before you set up a second factor yourself".to_owned();
        return Err(ApiError::validation(&[FieldError { field: "secondFactorRequired".to_owned(), reason }]));
    }
    update_company(&app, administrator.company, changes, &idempotency).await
}

/// Filters of the list of companies.
pub struct Filters(CompanyFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        let search = query.filter::<Search>("search").map(|text| text.0);
        let active = query.filter("active");
        Self(CompanyFilter { search, active, created: query.span("created"), updated: query.span("updated") })
    }
}

/// `GET /companies`.
pub async fn list(_: InstallationAdmin, app: Data<App>, query: Query<Filters>) -> ApiResult<Page<Company>> {
    let rows = companies::list(&app.engine.store().housekeeping, &query.filter.0, query.page).await?;
    Ok(Page::of(query.page, rows, Company::from))
}

/// Changes including the fields that only administrators of the installation may set.
struct AdminChanges(CompanyChanges);

impl AdminChanges {
    fn read(fields: &mut Fields<'_>, other_changes: CompanyChanges) -> Self {
        let rate_per_minute = match fields.patch::<Count<0>>("ratePerMinute") {
            Patch::Absent => None,
            Patch::Null => Some(None),
            Patch::Value(rate) => Some(i32::try_from(rate.0).ok()),
        };
        Self(CompanyChanges { api_enabled: fields.non_null("apiEnabled"), rate_per_minute, ..other_changes })
    }
}

/// The body of `POST /companies`.
pub struct NewCompany(String, CompanyChanges);

impl Input for NewCompany {
    fn name() -> Cow<'static, str> {
        "CompanyCreate".into()
    }

    fn text() -> Option<String> {
        Some("A new company.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let name = fields.required::<Name>("name");
        let changes = CompanyChanges {
            time_zone: fields.optional::<Zone>("timeZone").map(|zone| zone.0.name().to_owned()),
            stop_words: read_stop_words(fields),
            second_factor_required: fields.non_null::<bool>("secondFactorRequired"),
            ..CompanyChanges::default()
        };
        let AdminChanges(changes) = AdminChanges::read(fields, changes);
        Some(Self(name?.0, changes))
    }
}

/// `POST /companies`: also creates the company's default profiles.
pub async fn create(
    _: InstallationAdmin,
    app: Data<App>,
    body: Body<NewCompany>,
    idempotency: Idempotency,
) -> ApiResult<Created<Company>> {
    let NewCompany(name, changes) = body.0;
    let insert = idempotency.transaction(app.db(INSTALLATION), async |db| {
        Ok(Created::<Company>::of(companies::insert_with(db, &name, changes).await?))
    });
    let created = insert.await?;
    app.engine.refresh(created.0.id).await;
    Ok(created)
}

/// `GET /companies/{companyId}`.
pub async fn show(_: InstallationAdmin, app: Data<App>, id: PathId<CompanyId>) -> ApiResult<Json<Company>> {
    Ok(Json::of(load_company(&app, id.0).await?))
}

/// The body of `PUT /companies/{companyId}`.
pub struct CompanyChange(CompanyChanges);

impl Input for CompanyChange {
    fn name() -> Cow<'static, str> {
        "CompanyUpdate".into()
    }

    fn text() -> Option<String> {
        Some("Changes to a company.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let changes = read_shared_changes(fields);
        let active = fields.non_null("active");
        let AdminChanges(changes) = AdminChanges::read(fields, changes);
        Some(Self(CompanyChanges { active, ..changes }))
    }
}

/// `PUT /companies/{companyId}`.
pub async fn update(
    _: InstallationAdmin,
    app: Data<App>,
    id: PathId<CompanyId>,
    body: Body<CompanyChange>,
    idempotency: Idempotency,
) -> ApiResult<Json<Company>> {
    update_company(&app, id.0, body.0.0, &idempotency).await
}
