//! A filter for statements that cover many companies.

use super::Slot;

/// Every company, or those of some slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotFilter(Option<Vec<i16>>);

impl SlotFilter {
    /// Every company, for a standalone process.
    pub fn all() -> Self {
        Self(None)
    }

    /// Only the companies of these slots.
    pub fn only(slots: impl IntoIterator<Item = Slot>) -> Self {
        Self(Some(slots.into_iter().map(Slot::column).collect()))
    }

    /// The value for the parameter of [`SlotFilter::condition`].
    pub(crate) fn numbers(&self) -> Option<&[i16]> {
        self.0.as_deref()
    }

    /// SQL condition that this filter includes the company whose id is in `column`. PostgreSQL plans for the actual
    /// parameters, so a filter for every company costs nothing.
    pub(crate) fn condition(column: &str, parameter: u8) -> String {
        format!(
            "(${parameter}::smallint[] is null or {column} in (select id from companies where slot = any(${parameter})))"
        )
    }
}
