//! Which other processes each process can reach, as it reports for the command line and the other processes.

use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use sqlx::{FromRow, PgPool};

use super::LifeRow;
use crate::Result;
use crate::cluster::LifeId;
use crate::document::Document;
use crate::error::with_timeout;

/// The report of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Report {
    /// The other processes that it checks.
    pub peers: Vec<PeerReport>,
    /// The id of its shared folder of message files, if it has one.
    pub folder: Option<String>,
}

/// Another process, and whether the reporting one can reach it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerReport {
    /// The life of the other process.
    pub life: LifeId,
    /// The node of the other process.
    pub node: String,
    /// Why it cannot be reached; `None`: it can.
    pub reason: Option<String>,
}

#[derive(FromRow)]
struct ReportedLife {
    #[sqlx(flatten)]
    life: LifeRow,
    report: Document<Report>,
    has_report: bool,
}

impl ReportedLife {
    /// The life and its report; `None` if there is none or it cannot be read.
    fn into_parts(self) -> (LifeRow, Option<Report>) {
        let report = self.report.into_option();
        if self.has_report && report.is_none() {
            tracing::warn!(
                life = %self.life.life, node = self.life.node,
                "a process's report on the others is unreadable and is ignored: the process replaces it at its next \
                 check; if this is logged again, a newer release or a person writes to `beats.report`"
            );
        }
        (self.life, report)
    }
}

/// Every life with its last heartbeat and its last report. A report is `None` if there is none or it cannot be read.
pub async fn reports(db: &PgPool) -> Result<Vec<(LifeRow, Option<Report>)>> {
    let statement = "select l.life, l.node, l.address, l.speaks, l.draining, l.began_at, b.at as beat_at, b.cores,
            (extract(epoch from clock_timestamp() - b.at) * 1000)::bigint as beat_age_ms, b.report,
            b.report is not null as has_report
        from lives l join beats b using (life) order by life";
    let rows: Vec<ReportedLife> = with_timeout(sqlx::query_as(statement).fetch_all(db)).await?;
    Ok(rows.into_iter().map(ReportedLife::into_parts).collect())
}

/// How long ago each life reported, in milliseconds.
pub async fn report_ages(db: &PgPool) -> Result<Vec<(LifeId, i64)>> {
    let statement = "select life, (extract(epoch from clock_timestamp() - reported_at) * 1000)::bigint
        from beats where reported_at is not null";
    with_timeout(sqlx::query_as(statement).fetch_all(db)).await
}

/// Saves the report of a life, in the life's own row.
pub async fn save_report(db: &PgPool, life: LifeId, report: &Report) -> Result<()> {
    let statement = "update beats set report = $2, reported_at = clock_timestamp() where life = $1";
    with_timeout(sqlx::query(statement).bind(life).bind(Json(report)).execute(db)).await.map(drop)
}
