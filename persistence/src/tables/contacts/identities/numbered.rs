//! The contacts of a number, for filters.

use crate::error::with_timeout;
use crate::{CompanyId, ContactId, Database, Result, phone_numbers};

/// The contacts that have or had a number, in any spelling.
pub async fn ids_by_number(db: impl Database<'_>, company: CompanyId, number: &str) -> Result<Vec<ContactId>> {
    let find = sqlx::query_scalar(
        "select id from contacts where company_id = $1 and number = any ($2)
         union select contact_id from contact_numbers where company_id = $1 and number = any ($2) and until is not null",
    );
    with_timeout(find.bind(company).bind(phone_numbers::spellings(number)).fetch_all(db)).await
}
