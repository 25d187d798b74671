//! The cards that are visible to a user, and counts of them.

use sqlx::{AssertSqlSafe, PgExecutor};

use crate::error::with_timeout;
use crate::table::COUNTED_MAX;
use crate::{BoardId, CompanyId, Id, Result, UserId};

/// The cards that are visible to a user.
#[derive(Clone, Debug, Default)]
pub struct VisibleCards {
    /// Cards assigned to this user are visible; `None`: every card is.
    pub assigned_to: Option<UserId>,
    /// All cards of these boards are visible too.
    pub boards: Vec<BoardId>,
}

impl VisibleCards {
    /// The boards' ids, to bind to a statement.
    pub(super) fn board_ids(&self) -> Vec<i64> {
        self.boards.iter().map(|board| board.0).collect()
    }
}

/// Number of cards that are assigned to a user and refer to a record by a column, at most [`COUNTED_MAX`].
///
/// The column becomes part of the statement's text, so its name must come from the code.
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
