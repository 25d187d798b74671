//! Contacts that are created implicitly, by a message to a number.

use super::ContactRef;
use super::identities::{Keys, Profile, identify};
use crate::tables::source::Source;
use crate::{CompanyId, Database, Result};

/// A contact identified by its number, with the details for its creation.
#[derive(Clone, Copy, Debug)]
pub struct ContactByNumber<'a> {
    pub number: &'a str,
    /// The name of a newly created contact; by default the number.
    pub name: Option<&'a str>,
    /// ISO 3166-1 alpha-2.
    pub country: Option<&'a str>,
}

/// Finds or creates the contact with this number, in any spelling. Concurrent calls yield the same contact.
pub async fn find_or_create_by_number(
    db: impl Database<'_>,
    company: CompanyId,
    new: ContactByNumber<'_>,
    origin: Source,
) -> Result<ContactRef> {
    let profile = Profile {
        name: new.name.unwrap_or(new.number),
        country: new.country,
        social_username: None,
        origin: origin.as_str(),
        since: crate::clock::now(),
    };
    Ok(identify(db, company, &Keys::of_number(new.number), &profile).await?.contact)
}
