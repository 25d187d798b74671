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
