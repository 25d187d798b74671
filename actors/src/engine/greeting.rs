//! What is written of itself when a contact opens a ticket, and what its variables stand for.

use std::time::Duration;

use hotline_persistence::tables::contacts;
use hotline_persistence::tables::custom_fields::CustomFieldType;
use hotline_persistence::tables::organization::Organization;
use hotline_persistence::{CompanyId, ContactId};

use super::Engine;
use crate::Refusal;
use crate::tickets::{Author, Open, Send, waiting_in};
use crate::variables::{ContactValues, names};

/// How long an opening waits for what its contact has for variables: a database that is away keeps no contact waiting.
const VALUES_TIME_MAX: Duration = Duration::from_secs(2);

impl Engine {
    /// What a contact who opens a ticket is greeted with, if its queue greets.
    pub(super) async fn greeting(&self, organization: &Organization, open: &Open) -> Option<Send> {
        let channel = organization.channels.get(&open.channel).filter(|_| open.author == Author::CONTACT)?;
        let queue = organization.queues.get(&open.queue.or(waiting_in(organization, channel))?)?;
        let text = queue.row.greeting.as_deref().filter(|text| !text.trim().is_empty())?;
        let mut greeting = Send::text(text, Author::AUTOMATION);
        if names(text).any(ContactValues::are_asked_for) {
            // While the database is away the greeting goes without what it holds.
            let values = tokio::time::timeout(VALUES_TIME_MAX, self.values(open.company, open.contact.id)).await;
            greeting.values = values.ok().and_then(Result::ok).unwrap_or_default();
        }
        Some(greeting)
    }

    /// What a contact has for variables. One that is gone has nothing; whoever writes to it finds that out.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is away.
    pub async fn values(&self, company: CompanyId, id: ContactId) -> Result<ContactValues, Refusal> {
        let found = contacts::find(self.core.store.db(company), company, id).await?;
        let Some(contact) = found else { return Ok(ContactValues::default()) };
        let custom = contact.custom_fields.0.into_iter().filter_map(|field| {
            let is_list = field.kind.as_deref() == Some(CustomFieldType::Multiselect.as_str());
            Some((field.key?, if is_list { enumerated(field.value) } else { field.value }))
        });
        Ok(ContactValues { email: contact.email, custom: custom.collect() })
    }
}

/// The options of a list as people write them.
fn enumerated(list: String) -> String {
    serde_json::from_str::<Vec<String>>(&list).map_or(list, |options| options.join(", "))
}
