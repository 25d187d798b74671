//! What keeps a record from being deleted.

use hotline_actors::{Conflict, Refusal};
use hotline_persistence::table::count_referring;
use hotline_persistence::{CompanyId, Db, Error, Id, Result};

use crate::web::{ApiResult, NoContent};

/// Records that keep another one.
pub struct KeptBy {
    /// What is said of the record they keep.
    pub state: &'static str,
    /// What they are called.
    pub noun: &'static str,
    /// The table they are in, and the column that refers to the record.
    pub column: (&'static str, &'static str),
}

impl KeptBy {
    /// The answer to a `DELETE`: refused because of these, it says how many they are.
    ///
    /// # Errors
    /// When the record was not removed.
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
