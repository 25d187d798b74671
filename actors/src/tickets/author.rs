//! Who asks for a change of a ticket.

use hotline_persistence::tables::source::Source;
use hotline_persistence::{TokenId, UserId};

/// Who asked for a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Author {
    /// The person, where there was one.
    pub user: Option<(UserId, String)>,
    /// The token of the integration that asked.
    pub integration: Option<TokenId>,
    /// By which way it came.
    pub source: Source,
}

impl Author {
    /// An integration with the company's token.
    pub const API: Self = Self { user: None, integration: None, source: Source::Api };
    /// The contact.
    pub const CONTACT: Self = Self { user: None, integration: None, source: Source::Contact };

    /// Nobody: it follows of itself from what is set up.
    pub const AUTOMATION: Self = Self { user: None, integration: None, source: Source::Automation };
}
