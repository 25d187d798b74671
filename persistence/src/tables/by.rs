//! Who caused an event.
//!
//! A live change carries its author in its rows. The author of a plain change is the author of the task that makes it
//! ([`act_as`]), so that no statement has to pass it on.

use serde::{Deserialize, Serialize};

use super::source::Source;
use super::text_enum;
use crate::{ContactId, TokenId, UserId};

text_enum! {
    /// Who caused an event: a user, an integration by its token, a bot, the contact, or Hotline itself.
    ByKind { User = "user", Integration = "integration", Bot = "bot", Contact = "contact", System = "system" }
}

/// Who caused an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct By {
    #[serde(rename = "t")]
    pub kind: ByKind,
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// Their name at that time. It may be missing for an integration, whose name is its token's.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Default for By {
    fn default() -> Self {
        Self::SYSTEM
    }
}

impl By {
    /// Hotline itself: background work, and what providers report.
    pub const SYSTEM: Self = Self { kind: ByKind::System, id: None, name: None };

    /// The contact that the changed record is or belongs to. The event takes the contact's id and name from there.
    pub const ITS_CONTACT: Self = Self { kind: ByKind::Contact, id: None, name: None };

    /// A user. An administrator of the installation, who belongs to no company, has no id.
    pub fn user(id: Option<UserId>, name: Option<String>) -> Self {
        Self { kind: ByKind::User, id: id.map(|id| id.0), name }
    }

    /// An integration.
    pub fn integration(id: TokenId) -> Self {
        Self { kind: ByKind::Integration, id: Some(id.0), name: None }
    }

    /// A contact.
    pub fn contact(id: ContactId, name: Option<String>) -> Self {
        Self { kind: ByKind::Contact, id: Some(id.0), name }
    }

    /// The author of a live change. With a token, the author is the integration, even if it acts for a user. The author
    /// of a campaign or a scheduled message is its creator; that of an automatic message, such as a greeting, is
    /// Hotline.
    pub fn author(
        user: (Option<UserId>, Option<&str>),
        integration: Option<TokenId>,
        source: Source,
        contact: (ContactId, Option<&str>),
    ) -> Self {
        let (user, name) = user;
        match (integration, source) {
            (_, Source::Automation) => Self::SYSTEM,
            (Some(token), _) => Self::integration(token),
            (None, Source::Contact) => Self::contact(contact.0, contact.1.map(str::to_owned)),
            (None, Source::Bot) => Self { kind: ByKind::Bot, ..Self::user(user, name.map(str::to_owned)) },
            (None, Source::User) => Self::user(user, name.map(str::to_owned)),
            (None, Source::Api | Source::Campaign | Source::Schedule) => match user {
                Some(_) => Self::user(user, name.map(str::to_owned)),
                None => Self::SYSTEM,
            },
        }
    }
}

tokio::task_local! {
    static TASK_AUTHOR: By;
}

/// The author of the current task's changes: [`By::SYSTEM`] outside [`act_as`].
pub fn current_author() -> By {
    TASK_AUTHOR.try_with(By::clone).unwrap_or_default()
}

/// Runs `work` with `by` as the author of its changes. Tasks that it spawns do not inherit the author.
pub fn act_as<T>(by: By, work: impl Future<Output = T>) -> impl Future<Output = T> {
    TASK_AUTHOR.scope(by, work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_author_of_a_change_depends_on_its_source_user_and_token() {
        let (user, token) = (UserId::new(3), TokenId::new(5));
        let author = |user: Option<UserId>, token, source| {
            By::author((user, user.map(|_| "Ana")), token, source, (ContactId::new(9), Some("Maria")))
        };
        let ana = By::user(Some(user), Some("Ana".to_owned()));
        for source in [Source::Api, Source::Campaign, Source::Schedule] {
            assert_eq!(author(Some(user), None, source), ana);
            assert_eq!(author(None, Some(token), source), By::integration(token));
            assert_eq!(author(Some(user), Some(token), source), By::integration(token), "the token's integration");
            assert_eq!(author(None, None, source), By::SYSTEM);
        }
        assert_eq!(author(None, None, Source::Automation), By::SYSTEM);
        assert_eq!(author(None, None, Source::Contact).kind, ByKind::Contact);
        assert_eq!(author(None, None, Source::User), By::user(None, None), "an administrator of the installation");
    }
}
