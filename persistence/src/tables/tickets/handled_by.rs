//! The app that handles a conversation in place of Hotline. A ticket has only a pointer to it, because few tickets have
//! such an app.

use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgTypeInfo, PgValueRef};
use sqlx::{Decode, Postgres, Type, ValueRef};

/// The other app that handles a conversation, if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HandledBy(Option<Box<OtherApp>>);

/// Another app that is connected to the company's account at the provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OtherApp {
    /// The provider's id of it; empty if unknown.
    id: Box<str>,
}

impl HandledBy {
    /// Another app, by the provider's id of it; `None` if the id is unknown.
    pub fn app(id: Option<&str>) -> Self {
        Self(Some(Box::new(OtherApp { id: id.unwrap_or_default().into() })))
    }

    /// Whether no other app handles the conversation.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// The id of the other app: `None` without such an app, `Some(None)` if its id is unknown.
    pub fn as_app(&self) -> Option<Option<&str>> {
        self.as_column().map(|id| Some(id).filter(|id| !id.is_empty()))
    }

    /// The value of the column: empty for an app whose id is unknown.
    pub(super) fn as_column(&self) -> Option<&str> {
        self.0.as_ref().map(|app| &*app.id)
    }
}

impl Type<Postgres> for HandledBy {
    fn type_info() -> PgTypeInfo {
        <str as Type<Postgres>>::type_info()
    }

    fn compatible(ty: &PgTypeInfo) -> bool {
        <str as Type<Postgres>>::compatible(ty)
    }
}

impl<'r> Decode<'r, Postgres> for HandledBy {
    fn decode(value: PgValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
        if value.is_null() {
            return Ok(Self::default());
        }
        Ok(Self::app(Some(<&str as Decode<'r, Postgres>>::decode(value)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_app_an_unknown_app_and_a_known_app_fit_in_one_pointer() {
        assert_eq!(size_of::<HandledBy>(), size_of::<usize>());
        assert_eq!(HandledBy::default().as_app(), None);
        assert_eq!(HandledBy::app(None).as_app(), Some(None));
        assert_eq!(HandledBy::app(Some("7")).as_app(), Some(Some("7")));
    }
}
