//! Recounts the figures from the rows they were derived from, while the service runs.
//!
//! The counts and the figures are compared in one snapshot, and the difference is added, so increments that the
//! persister writes meanwhile are preserved.

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::tables::messages;
use crate::{CompanyId, Error, Result};

/// Number of wrong rows in each table of figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Ticket figures.
    pub tickets: u64,
    /// Message figures.
    pub messages: u64,
    /// Wrap-up figures.
    pub wrapups: u64,
}

impl Difference {
    /// Whether every figure was correct.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A table of figures, and the query that counts it from the rows of company `$1`.
struct FigureTable {
    table: &'static str,
    key: &'static [&'static str],
    columns: &'static [&'static str],
    from_rows: &'static str,
}

const TICKETS: FigureTable = FigureTable {
    table: "report_tickets",
    key: &["dimension", "grain", "at", "key"],
    columns: &["opened", "closed", "reopened", "answered", "answer_ms", "resolution_ms"],
    from_rows: include_str!("rebuild_tickets.sql"),
};

const MESSAGES: FigureTable = FigureTable {
    table: "report_messages",
    key: &["dimension", "grain", "at", "key"],
    columns: &["inbound", "outbound", "failed"],
    from_rows: include_str!("rebuild_messages.sql"),
};

const WRAPUPS: FigureTable = FigureTable {
    table: "report_wrapups",
    key: &["grain", "at", "queue_id", "wrapup_type_id"],
    columns: &["count"],
    from_rows: include_str!("rebuild_wrapups.sql"),
};

/// Recounts the figures of a company, corrects wrong ones, and returns how many were wrong. Deleted rows (those
/// of a deleted contact, for example) no longer count. Figures from before the company's retention boundary stay
/// unchanged.
///
/// # Errors
/// When the database cannot answer, or a replay of the journal has not ended; then nothing was changed.
pub async fn rebuild(db: &mut PgConnection, company: CompanyId) -> Result<Difference> {
    let mut transaction = db.begin().await?;
    sqlx::query("set transaction isolation level repeatable read").execute(&mut *transaction).await?;
    // The recount reads all rows of the company, which takes long, and no request waits for it.
    sqlx::query("set local statement_timeout = 0").execute(&mut *transaction).await?;
    if messages::is_replay_ahead(&mut *transaction).await? {
        return Err(Error::Unavailable(
            "the journal is being replayed, or its replay failed; run this while the service is running".into(),
        ));
    }
    for table in [&TICKETS, &MESSAGES, &WRAPUPS] {
        table.compare(&mut transaction, company).await?;
    }
    transaction.commit().await?;
    // In a transaction of its own: under `repeatable read`, a figure that the persister has changed meanwhile could not
    // be updated.
    let mut transaction = db.begin().await?;
    let difference = Difference {
        tickets: TICKETS.correct(&mut transaction, company).await?,
        messages: MESSAGES.correct(&mut transaction, company).await?,
        wrapups: WRAPUPS.correct(&mut transaction, company).await?,
    };
    transaction.commit().await?;
    Ok(difference)
}

impl FigureTable {
    fn differences(&self) -> String {
        format!("{}_differences", self.table)
    }

    /// Stores the difference of each figure in a temporary table of this connection.
    async fn compare(&self, db: &mut PgConnection, company: CompanyId) -> Result<()> {
        let (table, differences, from_rows) = (self.table, self.differences(), self.from_rows);
        let key = self.key.join(", ");
        let difference =
            |column: &&str| format!("coalesce(counted.{column}, 0) - coalesce(stored.{column}, 0) as {column}");
        let column_differences = self.columns.iter().map(difference).collect::<Vec<_>>().join(", ");
        let is_different = self.columns.iter().map(|column| format!("{column} <> 0")).collect::<Vec<_>>().join(" or ");
        // A temporary table's query takes no parameters, so the company is inserted as a number.
        let from_rows = from_rows.replace("$1", &company.0.to_string());
        let statements = [
            format!("drop table if exists pg_temp.{differences}"),
            format!(
                "create temporary table {differences} as
                 select * from (
                     select {key}, {column_differences} from ({from_rows}) counted
                     full join (select * from {table} where company_id = {company}) stored using ({key})) compared
                 where ({is_different}) and at >= coalesce(
                     (select counted_from from retentions where company_id = {company}), '-infinity')"
            ),
        ];
        for statement in statements {
            sqlx::query(AssertSqlSafe(statement)).execute(&mut *db).await?;
        }
        Ok(())
    }

    /// Adds the differences, and returns how many rows of figures were wrong.
    async fn correct(&self, db: &mut PgConnection, company: CompanyId) -> Result<u64> {
        let (table, differences) = (self.table, self.differences());
        let (key, columns) = (self.key.join(", "), self.columns.join(", "));
        let assignment = |column: &&str| format!("{column} = r.{column} + excluded.{column}");
        let assignments = self.columns.iter().map(assignment).collect::<Vec<_>>().join(", ");
        let statement = format!(
            "insert into {table} as r (company_id, {key}, {columns})
             select $1, {key}, {columns} from pg_temp.{differences} order by {key}
             on conflict (company_id, {key}) do update set {assignments}"
        );
        let corrected = sqlx::query(AssertSqlSafe(statement)).bind(company).execute(db).await?;
        Ok(corrected.rows_affected())
    }
}
