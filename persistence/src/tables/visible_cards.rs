//! Counts of the cards that a user sees.

use sqlx::{AssertSqlSafe, PgExecutor};

use crate::error::with_timeout;
use crate::table::COUNTED_MAX;
use crate::{BoardId, CompanyId, Id, Result, UserId};

/// The cards that a user sees.
#[derive(Clone, Debug, Default)]
pub struct SeenCards {
    /// The user whose own cards are always seen; `None`: every card is.
    pub of: Option<UserId>,
    /// The boards whose cards are seen as well.
    pub boards: Vec<BoardId>,
}

impl SeenCards {
    /// The boards' ids, to bind to a statement.
    pub(super) fn board_ids(&self) -> Vec<i64> {
        self.boards.iter().map(|board| board.0).collect()
    }
}

/// Number of cards of a user that refer to a record by a column, at most [`COUNTED_MAX`].
///
/// The name becomes part of a statement, so it must come from the code.
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
