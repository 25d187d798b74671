//! The change of one field.

/// Leaves a field unchanged, clears it, or sets it.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch<T> {
    /// The field is not in the body.
    Absent,
    /// The field is `null`.
    Null,
    /// The field has a value.
    Value(T),
}

impl<T> Patch<T> {
    /// `None` when absent, `Some(None)` when `null`.
    pub fn into_option(self) -> Option<Option<T>> {
        match self {
            Self::Absent => None,
            Self::Null => Some(None),
            Self::Value(value) => Some(Some(value)),
        }
    }

    /// Maps the value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Patch<U> {
        match self {
            Self::Absent => Patch::Absent,
            Self::Null => Patch::Null,
            Self::Value(value) => Patch::Value(change(value)),
        }
    }
}
