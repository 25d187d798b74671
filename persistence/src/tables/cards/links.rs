//! A card's links to contacts, the lock of its ticket, and its custom values.

use sqlx::PgConnection;

use super::CardId;
use crate::error::with_timeout;
use crate::table::Links;
use crate::tables::custom_fields::{CARD_VALUES, CustomFieldId};
use crate::{CompanyId, Result, TicketId, noun};

/// The contacts of a card. A contact that is being deleted keeps its links until its cascade removes them in steps
/// ([`crate::tables::cascades`]); a change of the card's contacts leaves them.
pub const CONTACTS: Links<noun::Card, noun::Contact> = Links::new("card_contacts", "card_id", "contact_id")
    .replacing("contact_id <> all (array(select id from cascades where company_id = $1 and noun = 'contact'))");

/// Sets values of custom fields and deletes those that are `None`; all others stay.
///
/// # Errors
/// [`crate::Error::NotFound`] when a custom field does not exist.
pub async fn set_custom_values(
    db: &mut PgConnection,
    company: CompanyId,
    card: CardId,
    values: &[(CustomFieldId, Option<String>)],
) -> Result<()> {
    let values: Vec<_> = values.iter().map(|(field, value)| (card, *field, value.clone())).collect();
    CARD_VALUES.set(db, company, &values).await
}

/// Locks a ticket and its contact against deletion until the transaction ends; returns whether the company has it.
pub async fn lock_ticket(db: &mut PgConnection, company: CompanyId, ticket: TicketId) -> Result<bool> {
    let lock = sqlx::query(
        "select from tickets t join contacts c on c.company_id = t.company_id and c.id = t.contact_id
         where t.company_id = $1 and t.id = $2 for key share of c, t",
    );
    Ok(with_timeout(lock.bind(company).bind(ticket).fetch_optional(db)).await?.is_some())
}
