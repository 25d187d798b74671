//! Counts of the cards that somebody sees.

use sqlx::{AssertSqlSafe, PgExecutor};

use crate::error::with_timeout;
use crate::table::COUNTED_MAX;
use crate::{BoardId, CompanyId, Id, Result, UserId};

/// Which cards somebody sees.
#[derive(Clone, Debug, Default)]
pub struct SeenCards {
    /// The user whose cards they see in any case; none: they see every card.
    pub of: Option<UserId>,
    /// The boards whose cards they see besides.
    pub boards: Vec<BoardId>,
}

impl SeenCards {
    /// The boards as they are bound to a statement.
    pub(super) fn board_ids(&self) -> Vec<i64> {
        self.boards.iter().map(|board| board.0).collect()
    }
}

/// Number of cards of a user that refer to a record by a column, at most [`COUNTED_MAX`].
///
/// The name becomes part of a statement, so it must come from the code.
///
/// # Errors
/// When the database cannot answer.
pub async fn count_assigned<N>(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    column: &'static str,
    id: Id<N>,
    user: UserId,
) -> Result<i64> {
    let count = format!(
        "select count(*) from (select from cards where company_id = $1 and {column} = $2 and assigned_user_id = $3
         limit {COUNTED_MAX}) counted"
    );
    with_timeout(sqlx::query_scalar(AssertSqlSafe(count)).bind(company).bind(id).bind(user).fetch_one(db)).await
}
