//! The state of a record that a caller expects before a change, so that no caller overwrites a change it has not seen.

use chrono::{DateTime, SecondsFormat, Utc};
use sqlx::{AssertSqlSafe, PgConnection};

use super::Table;
use crate::error::with_timeout;
use crate::{CompanyId, Error, Result};

/// The states in which a record may be changed. A state is identified by the record's `updated_at` in the API's format,
/// which each change increases by at least a millisecond (the trigger `hotline_moves_on`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Expected {
    /// Any state.
    #[default]
    Any,
    /// One of these states.
    OneOf(Vec<String>),
}

/// The name of a record's state: the time of its last change, as the API shows it.
pub fn state_of(updated_at: DateTime<Utc>) -> String {
    updated_at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

impl Expected {
    /// Whether a record that was changed last at this time is in an expected state.
    pub fn includes(&self, updated_at: DateTime<Utc>) -> bool {
        match self {
            Self::Any => true,
            Self::OneOf(states) => states.contains(&state_of(updated_at)),
        }
    }

    /// Locks a record until the transaction ends, and checks its state. For [`Self::Any`] it does nothing.
    ///
    /// # Errors
    /// [`Error::Changed`] when it is in another state; [`Error::NotFound`] when it does not exist.
    pub async fn lock_and_check<T: Table>(&self, db: &mut PgConnection, company: CompanyId, id: T::Id) -> Result<()> {
        if *self == Self::Any {
            return Ok(());
        }
        let select = format!("select updated_at from {} where company_id = $1 and id = $2 for no key update", T::NAME);
        let select = sqlx::query_scalar(AssertSqlSafe(select)).bind(company).bind(id).fetch_optional(db);
        let updated_at: DateTime<Utc> = with_timeout(select).await?.ok_or(Error::NotFound(T::NOUN))?;
        if self.includes(updated_at) { Ok(()) } else { Err(Error::Changed) }
    }
}
