//! References that prevent a record from being deleted.

use hotline_actors::{Conflict, Refusal};
use hotline_persistence::table::count_referring;
use hotline_persistence::tables::visible_cards;
use hotline_persistence::{CompanyId, Db, Error, Id, Result};

use crate::web::{ApiError, ApiResult, Caller, NoContent};

/// Records whose references prevent a deletion.
pub struct DeletionBlocker {
    /// The `state` in the `409`, which says why the record cannot be deleted: for example `the board has cards`.
    pub state: &'static str,
    /// The `type` of the referring records in the `409`, which also has their number.
    pub noun: &'static str,
    /// The table of the referring records, and its column that refers to the record.
    pub column: (&'static str, &'static str),
}

impl DeletionBlocker {
    /// The response to a `DELETE`. A refusal states how many records refer to the record.
    ///
    /// # Errors
    /// When the record was not deleted.
    pub async fn respond<N>(
        &self,
        removal: Result<()>,
        db: Db<'_>,
        company: CompanyId,
        id: Id<N>,
    ) -> ApiResult<NoContent> {
        match removal {
            Err(Error::InUse) => Err(self.refusal(count_referring(db, company, self.column, id).await?)),
            removal => Ok(removal.map(|()| NoContent)?),
        }
    }

    /// Like [`Self::respond`], for a record that cards refer to. A refusal counts only cards that the caller may see.
    ///
    /// # Errors
    /// When the record was not deleted.
    pub async fn respond_for_cards<N>(
        &self,
        removal: Result<()>,
        db: Db<'_>,
        caller: &Caller,
        id: Id<N>,
    ) -> ApiResult<NoContent> {
        match (removal, caller.cards_limited_to()) {
            (Err(Error::InUse), Some(user)) => {
                Err(self.refusal(visible_cards::count_assigned(db, caller.company, self.column.1, id, user).await?))
            }
            (removal, _) => self.respond(removal, db, caller.company, id).await,
        }
    }

    fn refusal(&self, count: i64) -> ApiError {
        Refusal::Conflict(Conflict::used_by(self.state, "in_use", [(self.noun, count)])).into()
    }
}
