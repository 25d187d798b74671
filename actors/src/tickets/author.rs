//! The author of a change to a ticket.

use hotline_persistence::tables::source::Source;
use hotline_persistence::{TokenId, UserId};

/// The author of a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Author {
    /// The user, if a person made the change.
    pub user: Option<(UserId, String)>,
    /// The token of the integration that made the request.
    pub integration: Option<TokenId>,
    /// The source of the change.
    pub source: Source,
}

impl Author {
    /// An integration. For a request, the API adds the token.
    pub const API: Self = Self { user: None, integration: None, source: Source::Api };
    /// The contact.
    pub const CONTACT: Self = Self { user: None, integration: None, source: Source::Contact };

    /// An unknown person at the company, in an app of the provider or another app.
    pub const OTHER_APP: Self = Self { user: None, integration: None, source: Source::User };

    /// An automation that the company has configured, not a person.
    pub const AUTOMATION: Self = Self { user: None, integration: None, source: Source::Automation };
}
