//! The health checks (liveness and readiness), and the version.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::{Timestamp, clock};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::health::Health;
use crate::openapi::{DocumentedResponse, Operation, ResponseDescription};
use crate::telemetry::conditions::{ActiveCondition, Condition};
use crate::version;
use crate::web::response::schema::{self, Schemas};

/// The process is running.
#[derive(Serialize, ToSchema)]
pub struct Liveness {
    #[schema(example = "live")]
    pub status: &'static str,
}

/// The readiness of the service.
#[derive(Serialize, ToSchema)]
pub struct Readiness {
    /// `ready`; `degraded` if it serves while something needs attention; `starting`, `stopping` or `not ready` if it
    /// must get no requests.
    #[schema(example = "ready")]
    pub status: &'static str,
    pub parts: ReadyParts,
    /// Why it is not `ready`.
    pub reasons: Vec<ReadinessReason>,
}

/// The components of the service: each is `ready` or `not ready`.
#[derive(Serialize, ToSchema)]
pub struct ReadyParts {
    /// Whether PostgreSQL responds.
    #[schema(example = "ready")]
    pub database: &'static str,
    /// Whether changes are accepted.
    #[schema(example = "ready")]
    pub journal: &'static str,
    /// Whether accepted changes are being written to the database.
    #[schema(example = "ready")]
    pub persister: &'static str,
    /// Whether the service accepts requests; not while it is starting or stopping.
    #[schema(example = "ready")]
    pub accepting: &'static str,
}

/// Why the service is not `ready`.
#[derive(Serialize, ToSchema)]
pub struct ReadinessReason {
    /// For programs: `starting`, `stopping`, `no_lease`, `journal_filling`, or a condition that is also in the log and
    /// the metrics: `database`, `database_changes`, `database_connections`, `journal`, `connections`, `open_files`,
    /// `message_files`, `disk`, `rejected_rows`, `peer`, `shared_folder` or `node_name`. There may be more in later
    /// releases.
    #[schema(example = "database")]
    pub reason: &'static str,
    /// For people.
    #[schema(example = "PostgreSQL does not respond; active conversations continue")]
    pub message: &'static str,
    /// Since when, if that is known.
    pub since: Option<Timestamp>,
}

/// Which build this is.
#[derive(Serialize, ToSchema)]
pub struct Version {
    /// The version of the release.
    #[schema(example = "0.1.0")]
    pub version: &'static str,
    /// The commit it was built from, or `unknown`.
    #[schema(example = "5e57f6a9a1b2")]
    pub commit: &'static str,
    /// The date of that commit, or `unknown`.
    #[schema(example = "2026-11-26")]
    pub built: &'static str,
}

impl ResponseDescription for Version {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.success = (200, Some(schema::of::<Self>(schemas)));
    }
}

/// `GET /version`: which build this is.
pub async fn version() -> DocumentedResponse<Version> {
    let version = Version { version: version::VERSION, commit: version::COMMIT, built: version::BUILT };
    HttpResponse::Ok().json(version).into()
}

impl Liveness {
    /// The only value.
    pub const LIVE: Self = Self { status: "live" };
}

impl ResponseDescription for Liveness {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.success = (200, Some(schema::of::<Self>(schemas)));
    }
}

impl ResponseDescription for Readiness {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let schema = schema::of::<Self>(schemas);
        operation.success = (200, Some(schema.clone()));
        operation.other_responses.push((503, "The service must get no requests.", schema));
    }
}

/// `GET /health/live`: the process responds.
pub async fn live() -> DocumentedResponse<Liveness> {
    HttpResponse::Ok().json(Liveness::LIVE).into()
}

/// `GET /health/ready`: `200` while the service can serve active conversations, else `503`. It reads only memory.
pub async fn ready(app: Data<App>) -> DocumentedResponse<Readiness> {
    let readiness = Readiness::of(&app);
    let status = if readiness.should_get_requests() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    HttpResponse::build(status).json(readiness).into()
}

impl Readiness {
    /// The readiness before the service can serve: no component is ready yet.
    pub fn starting() -> Self {
        let not_ready = ready_word(false);
        Self {
            status: "starting",
            parts: ReadyParts { database: not_ready, journal: not_ready, persister: not_ready, accepting: not_ready },
            reasons: vec![readiness_reason("starting", "the service is starting", None)],
        }
    }

    fn of(app: &App) -> Self {
        let store = app.engine.store();
        let active = app.metrics.conditions.active();
        let is_stopping = app.is_stopping() || app.health.is_stopping();
        let (has_room, has_lease) = (store.log.has_room(), store.may_act());
        let is_ready = app.is_ready();
        let reasons =
            Self::own_reasons(app, is_stopping).chain(active.iter().map(ReadinessReason::of)).collect::<Vec<_>>();
        Self {
            status: match (is_stopping, is_ready, reasons.is_empty()) {
                (true, _, _) => "stopping",
                (false, false, _) => ready_word(false),
                (false, true, false) => "degraded",
                (false, true, true) => ready_word(true),
            },
            parts: ReadyParts {
                database: ready_word(!active.iter().any(|active| active.condition == Condition::Database)),
                journal: ready_word(has_room),
                persister: ready_word(store.log.queue().is_up() && has_lease),
                accepting: ready_word(!is_stopping),
            },
            reasons,
        }
    }

    /// The reasons that are not recorded conditions.
    fn own_reasons(app: &App, is_stopping: bool) -> impl Iterator<Item = ReadinessReason> {
        let store = app.engine.store();
        let reasons = [
            (is_stopping, "stopping", "the service is stopping"),
            // A cluster member without a lease answers no requests, so load balancers must send none.
            (!store.may_act(), "no_lease", "this process of the cluster cannot renew its lease in the database"),
            (Health::is_journal_nearly_full(&store.log), "journal_filling", "the journal is more than 80 % full"),
        ];
        let applicable = reasons.into_iter().filter(|(applies, ..)| *applies);
        applicable.map(|(_, code, message)| readiness_reason(code, message, None))
    }

    /// Whether clients should send requests here.
    fn should_get_requests(&self) -> bool {
        matches!(self.status, "ready" | "degraded")
    }
}

impl ReadinessReason {
    /// The reason for an active condition. It has no names of machines, because anyone may read it.
    fn of(active: &ActiveCondition) -> Self {
        let lasted = TimeDelta::from_std(active.lasted).unwrap_or(TimeDelta::MAX);
        let since = clock::now().checked_sub_signed(lasted);
        readiness_reason(active.condition.name(), active.condition.message(), since)
    }
}

fn readiness_reason(reason: &'static str, message: &'static str, since: Option<DateTime<Utc>>) -> ReadinessReason {
    ReadinessReason { reason, message, since: since.map(Timestamp) }
}

fn ready_word(is_ready: bool) -> &'static str {
    if is_ready { "ready" } else { "not ready" }
}
