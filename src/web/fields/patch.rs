//! What a change says of one field.

/// A field that may be left alone, cleared, or set.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch<T> {
    /// Not in the body.
    Absent,
    /// `null`.
    Null,
    /// A value.
    Value(T),
}

impl<T> Patch<T> {
    /// None when absent, `Some(None)` when null.
    pub fn into_option(self) -> Option<Option<T>> {
        match self {
            Self::Absent => None,
            Self::Null => Some(None),
            Self::Value(value) => Some(Some(value)),
        }
    }

    /// With the value changed.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Patch<U> {
        match self {
            Self::Absent => Patch::Absent,
            Self::Null => Patch::Null,
            Self::Value(value) => Patch::Value(change(value)),
        }
    }
}
