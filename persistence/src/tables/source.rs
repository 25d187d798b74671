//! The sources of changes.

use super::words;

words! {
    /// Who caused a change.
    Source {
        /// An integration, over this API.
        Api = "api",
        /// A person at the panel.
        User = "user",
        /// A chatbot.
        Bot = "bot",
        /// An automation flow.
        Automation = "automation",
        /// A mass send.
        Campaign = "campaign",
        /// A scheduled message.
        Schedule = "schedule",
        /// The contact.
        Contact = "contact",
    }
}

impl Source {
    /// Whether a message of this source that has left answers a waiting contact: one that a person, an integration or a
    /// chatbot wrote. A greeting, a campaign and a scheduled message do not: the contact still waits for somebody.
    pub fn answers(self) -> bool {
        matches!(self, Self::Api | Self::User | Self::Bot)
    }
}
