//! References that prevent a record from being deleted.

use hotline_actors::{Conflict, Refusal};
use hotline_persistence::table::count_referring;
use hotline_persistence::{CompanyId, Db, Error, Id, Result};

use crate::web::{ApiResult, NoContent};

/// Records whose references prevent a deletion.
pub struct KeptBy {
    /// The message about the referenced record.
    pub state: &'static str,
    /// The name of the referring records.
    pub noun: &'static str,
    /// Their table, and the column that refers to the record.
    pub column: (&'static str, &'static str),
}

impl KeptBy {
    /// The response to a `DELETE`. A refusal states how many records refer to it.
    ///
    /// # Errors
    /// When the record was not deleted.
    pub async fn answer<N>(
        &self,
        removed: Result<()>,
        db: Db<'_>,
        company: CompanyId,
        id: Id<N>,
    ) -> ApiResult<NoContent> {
        match removed {
            Err(Error::InUse) => {
                let by = [(self.noun, count_referring(db, company, self.column, id).await?)];
                Err(Refusal::Conflict(Conflict::used_by(self.state, "in_use", by)).into())
            }
            removed => Ok(removed.map(|()| NoContent)?),
        }
    }
}
