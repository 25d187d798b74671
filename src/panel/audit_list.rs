//! The list of the audit log.

use actix_web::web::Data;
use hotline_persistence::tables::audit_log::{self, ActorKind, AuditEntryId, AuditFilter};
use hotline_persistence::tables::people::INSTALLATION;
use hotline_persistence::{CompanyId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::signed::{Administrator, Installer};
use crate::app::App;
use crate::web::values::Search;
use crate::web::{ApiResult, Filter, Page, Params, Query};

/// What somebody did.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Its id.
    pub id: AuditEntryId,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: AuditActor,
    /// From where.
    #[schema(example = "203.0.113.7")]
    pub address: Option<String>,
    /// What: the id of the operation.
    #[schema(example = "createToken")]
    pub action: String,
    /// To what.
    pub target: Option<AuditTarget>,
    /// What was answered; none: the process ended while it was under way.
    #[schema(example = 201)]
    pub status: Option<i16>,
}

/// Who did something.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditActor {
    /// Whether a user of the company, an administrator of the installation, or an integration.
    pub kind: ActorKind,
    /// Their id.
    #[schema(example = 7)]
    pub id: i64,
    /// What they were called.
    #[schema(example = "Ana Souza")]
    pub name: String,
}

/// What something was done to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditTarget {
    /// Its id.
    #[schema(example = "7")]
    pub id: String,
    /// What it is called, as far as the answer said so.
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

async fn page(app: &App, company: CompanyId, query: Query<Filters>) -> ApiResult<Page<AuditEntry>> {
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
    page(&app, administrator.company, query).await
}

/// `GET /installation/audit-log`.
pub async fn list_installation(_: Installer, app: Data<App>, query: Query<Filters>) -> ApiResult<Page<AuditEntry>> {
    page(&app, INSTALLATION, query).await
}
