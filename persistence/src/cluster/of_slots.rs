//! Whose companies a statement over many of them looks at.

use super::Slot;

/// Every company, or those of some slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfSlots(Option<Vec<i16>>);

impl OfSlots {
    /// Every company: a process alone serves all of them.
    pub fn all() -> Self {
        Self(None)
    }

    /// The companies of these slots.
    pub fn these(slots: impl IntoIterator<Item = Slot>) -> Self {
        Self(Some(slots.into_iter().map(Slot::column).collect()))
    }

    /// What is bound to the parameter of [`OfSlots::holds`].
    pub(crate) fn numbers(&self) -> Option<&[i16]> {
        self.0.as_deref()
    }

    /// The condition that a column's company is one of them. Of all companies the planner drops it: it plans for the values.
    pub(crate) fn holds(company: &str, parameter: u8) -> String {
        format!(
            "(${parameter}::smallint[] is null or {company} in (select id from companies where slot = any(${parameter})))"
        )
    }
}
