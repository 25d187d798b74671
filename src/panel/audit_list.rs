//! Lists the entries of the audit log.

use actix_web::web::Data;
use hotline_persistence::tables::audit_log::{self, ActorKind, AuditEntryId, AuditFilter};
use hotline_persistence::tables::people::INSTALLATION;
use hotline_persistence::{CompanyId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::extractors::{Administrator, InstallationAdmin};
use crate::app::App;
use crate::web::request::values::Search;
use crate::web::{ApiResult, Filter, Page, Params, Query};

/// An entry of the audit log.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// The id.
    pub id: AuditEntryId,
    /// When the action started; of an export or a failed sign-in, when it was recorded.
    pub at: Timestamp,
    /// The actor.
    pub actor: AuditActor,
    /// The client's IP address.
    #[schema(example = "203.0.113.7")]
    pub address: Option<String>,
    /// The operation's id.
    #[schema(example = "createToken")]
    pub action: String,
    /// The target.
    pub target: Option<AuditTarget>,
    /// The HTTP status; `null` while it is in progress, or if the process ended before it finished.
    #[schema(example = 201)]
    pub status: Option<i16>,
}

/// The actor of an audit entry.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditActor {
    /// A user of the company, an administrator of the installation, or an integration.
    pub kind: ActorKind,
    /// The actor's id.
    #[schema(example = 7)]
    pub id: i64,
    /// The actor's name at that time.
    #[schema(example = "Ana Souza")]
    pub name: String,
}

/// The target of an action.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditTarget {
    /// The id.
    #[schema(example = "7")]
    pub id: String,
    /// The name, if the response contained one.
    #[schema(example = "Shop")]
    pub name: Option<String>,
}

/// Filters of the list: `search` matches the actor, the address and the target.
pub struct Filters(AuditFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        let action = query.filter::<Search>("action").map(|text| text.0).filter(|text| !text.is_empty());
        let search = query.filter::<Search>("search").map(|text| text.0);
        Self(AuditFilter { search, action, created: (query.filter("from"), query.filter("to")) })
    }
}

async fn list_entries(app: &App, company: CompanyId, query: Query<Filters>) -> ApiResult<Page<AuditEntry>> {
    let rows = audit_log::list(app.db(company), company, &query.filter.0, query.page).await?;
    Ok(Page::of(query.page, rows, |row| AuditEntry {
        id: row.id,
        at: row.created_at.into(),
        actor: AuditActor { kind: row.actor_kind, id: row.actor_id, name: row.actor_name },
        address: row.address,
        action: row.action,
        target: row.target_id.map(|id| AuditTarget { id, name: row.target_name }),
        status: row.status,
    }))
}

/// `GET /audit-log`.
pub async fn list(administrator: Administrator, app: Data<App>, query: Query<Filters>) -> ApiResult<Page<AuditEntry>> {
    list_entries(&app, administrator.company, query).await
}

/// `GET /installation/audit-log`.
pub async fn list_installation(
    _: InstallationAdmin,
    app: Data<App>,
    query: Query<Filters>,
) -> ApiResult<Page<AuditEntry>> {
    list_entries(&app, INSTALLATION, query).await
}
