//! The setup of permission profiles, for administrators.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use actix_web::web::Data;
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::profiles::{self, ProfileRow};
use hotline_persistence::{CompanyId, PgConnection, ProfileId, Timestamp};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::extractors::Administrator;
use crate::api::plain::DeletionBlocker;
use crate::api::users::administrators;
use crate::app::App;
use crate::web::admission::permissions::Permitted;
use crate::web::request::values::Name;
use crate::web::{ApiError, ApiResult, Body, Created, Fields, Idempotency, Input, Json, NoContent, PathId};

/// Users that have a profile prevent its deletion.
const USERS: DeletionBlocker =
    DeletionBlocker { state: "the profile is assigned to users", noun: "user", column: ("users", "profile_id") };

/// A permission profile with its administrative settings.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileSetup {
    /// The id.
    pub id: ProfileId,
    /// The name.
    #[schema(example = "Agent")]
    pub name: String,
    /// Allowed methods, by module.
    #[schema(example = json!({"tickets": ["GET", "POST", "PUT"]}))]
    pub permissions: BTreeMap<String, BTreeSet<String>>,
    /// Whether its users see cards assigned to others.
    #[schema(example = false)]
    pub sees_all_cards: bool,
    /// Whether its users administer the company: tokens, channels, profiles, invitations and the audit log.
    #[schema(example = false)]
    pub administers: bool,
    /// Number of users with the profile.
    #[schema(example = 3)]
    pub users: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last updated.
    pub updated_at: Timestamp,
}

async fn setup_of(db: &mut PgConnection, row: ProfileRow) -> ApiResult<ProfileSetup> {
    let users = table::count_referring(db, row.company_id, USERS.column, row.id).await?;
    Ok(ProfileSetup {
        id: row.id,
        name: row.name,
        permissions: row.permissions.0,
        sees_all_cards: row.sees_all_cards,
        administers: row.administers,
        users,
        created_at: row.created_at.into(),
        updated_at: row.updated_at.into(),
    })
}

/// `GET /profiles/{profileId}/setup`.
pub async fn show(
    administrator: Administrator,
    app: Data<App>,
    id: PathId<ProfileId>,
) -> ApiResult<Json<ProfileSetup>> {
    let company = administrator.company;
    let mut transaction = app.db(company).begin().await?;
    let db = transaction.connection()?;
    let row: Option<ProfileRow> = table::find(&mut *db, company, id.0).await?;
    Ok(Json::of(setup_of(db, row.ok_or_else(ApiError::not_found)?).await?))
}

fn read_columns(fields: &mut Fields<'_>, is_new: bool) -> Columns {
    let mut columns = Columns::default();
    let name = if is_new { fields.required::<Name>("name") } else { fields.non_null("name") };
    let permissions = if is_new { fields.required::<Permitted>("permissions") } else { fields.non_null("permissions") };
    if let Some(name) = name {
        columns.set("name", name);
    }
    if let Some(permissions) = permissions {
        columns.set("permissions", json!(permissions.0));
    }
    for field in ["seesAllCards", "administers"] {
        if let Some(value) = fields.non_null::<bool>(field) {
            columns.set(field, value);
        }
    }
    columns
}

/// The body of `POST /profiles`.
pub struct ProfileCreate(Columns);

impl Input for ProfileCreate {
    fn name() -> Cow<'static, str> {
        "ProfileCreate".into()
    }

    fn text() -> Option<String> {
        Some("A new permission profile.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self(read_columns(fields, true)))
    }
}

/// `POST /profiles`.
pub async fn create(
    administrator: Administrator,
    app: Data<App>,
    body: Body<ProfileCreate>,
    idempotency: Idempotency,
) -> ApiResult<Created<ProfileSetup>> {
    let company = administrator.company;
    idempotency
        .transaction(app.db(company), async |db| {
            let row = table::insert::<ProfileRow>(&mut *db, company, &body.0.0).await?;
            Ok(Created::of(setup_of(db, row).await?))
        })
        .await
}

/// The body of `PUT /profiles/{profileId}`.
pub struct ProfileChange(Columns);

impl Input for ProfileChange {
    fn name() -> Cow<'static, str> {
        "ProfileUpdate".into()
    }

    fn text() -> Option<String> {
        Some("Changes to a permission profile.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self(read_columns(fields, false)))
    }
}

/// Refuses the changes of this transaction if they leave the company without a profile that administers it.
async fn check_administered(db: &mut PgConnection, company: CompanyId) -> ApiResult<()> {
    if profiles::count_administering(db, company).await? > 0 {
        return Ok(());
    }
    let details = json!({"state": "last", "reason": "last_administering_profile"});
    Err(ApiError::conflict("the company must keep at least one profile that administers it", details))
}

/// `PUT /profiles/{profileId}`: takes effect with its users' next requests. An administrator of the company cannot
/// leave it without an active administrator; one of the installation may.
pub async fn update(
    administrator: Administrator,
    app: Data<App>,
    id: PathId<ProfileId>,
    body: Body<ProfileChange>,
    idempotency: Idempotency,
) -> ApiResult<Json<ProfileSetup>> {
    let company = administrator.company;
    idempotency
        .transaction(app.db(company), async |db| {
            // Serializes changes; otherwise two concurrent ones could each remove one of the last two administrators.
            profiles::lock(&mut *db, company).await?;
            let row = table::update::<ProfileRow>(&mut *db, company, id.0, &body.0.0).await?;
            check_administered(&mut *db, company).await?;
            if administrators::is_company_administrator(&administrator.signed_in) {
                administrators::check_remaining(&mut *db, company, None).await?;
            }
            Ok(Json::of(setup_of(db, row).await?))
        })
        .await
}

/// `DELETE /profiles/{profileId}`: refused while users have it.
pub async fn remove(administrator: Administrator, app: Data<App>, id: PathId<ProfileId>) -> ApiResult<NoContent> {
    let company = administrator.company;
    let mut transaction = app.db(company).begin().await?;
    let db = transaction.connection()?;
    profiles::lock(&mut *db, company).await?;
    let result = table::remove::<ProfileRow>(&mut *db, company, id.0).await;
    if result.is_err() {
        // The failed statement has aborted the transaction: the users are counted in another one.
        drop(transaction);
        return USERS.respond(result, app.db(company), company, id.0).await;
    }
    check_administered(&mut *db, company).await?;
    transaction.commit().await?;
    Ok(NoContent)
}
