//! The sources of changes.

use super::text_enum;

text_enum! {
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
    /// Whether a sent message of this source answers a waiting contact: those of people, integrations and chatbots do.
    /// After a greeting, a campaign or a scheduled message the contact still waits.
    pub fn answers(self) -> bool {
        matches!(self, Self::Api | Self::User | Self::Bot)
    }
}
