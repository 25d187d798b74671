//! The second factor: an authenticator app, and recovery codes for people who have lost it.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection, PgExecutor, PgPool};

use super::PersonId;
use crate::error::with_timeout;
use crate::key::hash;
use crate::sealed::{Keyring, Location};
use crate::{CompanyId, Error, Result, totp};

/// Number of recovery codes created at once.
const RECOVERY_CODES: usize = 10;

/// Characters of a recovery code without hyphens: 80 bits, so that a fast hash is sufficient.
const CODE_CHARACTERS: usize = 16;
/// Characters between two hyphens.
const CODE_GROUP: usize = 4;

/// Characters of recovery codes, without ones that look alike.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

fn location_of<'a>(person: PersonId, row: &'a str) -> Location<'a> {
    Location { column: "second_factors.secret", company: person.company(), row }
}

/// A second factor as stored.
#[derive(FromRow)]
struct FactorRow {
    secret: String,
    confirmed_at: Option<DateTime<Utc>>,
    last_step: i64,
}

async fn find(db: impl PgExecutor<'_>, person: PersonId) -> Result<Option<FactorRow>> {
    let select = sqlx::query_as(
        "select secret, confirmed_at, last_step from second_factors where company_id = $1 and person_id = $2",
    );
    with_timeout(select.bind(person.company()).bind(person.id()).fetch_optional(db)).await
}

/// Number of unused recovery codes; `None` without an active factor.
pub async fn count_unused_codes(db: impl PgExecutor<'_>, person: PersonId) -> Result<Option<i32>> {
    let select = sqlx::query_scalar(
        "select cardinality(recovery_codes) from second_factors
         where company_id = $1 and person_id = $2 and confirmed_at is not null",
    );
    with_timeout(select.bind(person.company()).bind(person.id()).fetch_optional(db)).await
}

/// Starts the setup: creates a new secret, which becomes active once it is confirmed by a code. Returns the secret.
///
/// # Errors
/// [`Error::InUse`] when a factor is active; [`Error::Key`] when the secret cannot be sealed; other errors when the
/// database cannot answer.
pub async fn begin(db: impl PgExecutor<'_>, keys: &Keyring, person: PersonId) -> Result<Vec<u8>> {
    let secret = totp::new_secret();
    let sealed = keys.seal(&location_of(person, &person.id().to_string()), &secret)?;
    let insert = sqlx::query(
        "insert into second_factors as f (company_id, person_id, secret) values ($1, $2, $3)
         on conflict (company_id, person_id) do update set secret = excluded.secret, last_step = 0
         where f.confirmed_at is null",
    );
    let result = with_timeout(insert.bind(person.company()).bind(person.id()).bind(sealed).execute(db)).await?;
    if result.rows_affected() == 0 { Err(Error::InUse) } else { Ok(secret.to_vec()) }
}

/// Checks a current code of the app and uses it up: each code works once. Returns whether it is right; false also if
/// the factor is not confirmed but `is_confirmed` requires it, or the reverse.
async fn use_code(
    db: &mut PgConnection,
    keys: &Keyring,
    person: PersonId,
    code: &str,
    now: DateTime<Utc>,
    is_confirmed: bool,
) -> Result<bool> {
    let Some(stored) = find(&mut *db, person).await? else { return Ok(false) };
    if stored.confirmed_at.is_some() != is_confirmed {
        return Ok(false);
    }
    let secret = keys.open(&location_of(person, &person.id().to_string()), &stored.secret)?;
    let Some(step) = totp::step_of(&secret, code, now, stored.last_step) else { return Ok(false) };
    // If the same code is used twice at once, only the first one succeeds.
    let update = sqlx::query(
        "update second_factors set last_step = $3 where company_id = $1 and person_id = $2 and last_step < $3",
    );
    let updated = with_timeout(update.bind(person.company()).bind(person.id()).bind(step).execute(db)).await?;
    Ok(updated.rows_affected() > 0)
}

/// Checks a code of the person's app and uses it up: each code works once. Returns whether it is right.
///
/// # Errors
/// [`Error::Key`] when the secret cannot be opened; other errors when the database cannot answer.
pub async fn use_app_code(
    db: &mut PgConnection,
    keys: &Keyring,
    person: PersonId,
    code: &str,
    now: DateTime<Utc>,
) -> Result<bool> {
    let is_confirmed = true;
    use_code(db, keys, person, code, now, is_confirmed).await
}

/// Activates the new factor with one of its codes; returns recovery codes, or `None` if the code is wrong.
///
/// # Errors
/// As [`use_app_code`].
pub async fn confirm(
    db: &mut PgConnection,
    keys: &Keyring,
    person: PersonId,
    code: &str,
    now: DateTime<Utc>,
) -> Result<Option<Vec<String>>> {
    // Without this lock, the caller could miss a session that begins at the same moment without the second factor, and
    // would not end it.
    super::lock(&mut *db, person).await?;
    let is_confirmed = false;
    if !use_code(&mut *db, keys, person, code, now, is_confirmed).await? {
        return Ok(None);
    }
    let confirm =
        sqlx::query("update second_factors set confirmed_at = now() where company_id = $1 and person_id = $2");
    with_timeout(confirm.bind(person.company()).bind(person.id()).execute(&mut *db)).await?;
    renew_codes(db, person).await
}

/// Replaces the recovery codes; the old ones become invalid. `None` without an active factor.
pub async fn renew_codes(db: impl PgExecutor<'_>, person: PersonId) -> Result<Option<Vec<String>>> {
    let codes: Vec<String> = (0..RECOVERY_CODES).map(|_| new_code()).collect();
    let hashes: Vec<Vec<u8>> = codes.iter().map(|code| hash(&normalize(code)).to_vec()).collect();
    let renew = sqlx::query(
        "update second_factors set recovery_codes = $3
         where company_id = $1 and person_id = $2 and confirmed_at is not null",
    );
    let renewed = with_timeout(renew.bind(person.company()).bind(person.id()).bind(hashes).execute(db)).await?;
    Ok((renewed.rows_affected() > 0).then_some(codes))
}

fn new_code() -> String {
    let mut code = String::with_capacity(CODE_CHARACTERS + CODE_CHARACTERS / CODE_GROUP);
    let bytes: [u8; CODE_CHARACTERS] = rand::random();
    for (index, byte) in bytes.into_iter().enumerate() {
        if index > 0 && index % CODE_GROUP == 0 {
            code.push('-');
        }
        // 256 is a multiple of 32, so every character is equally likely.
        code.push(char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]));
    }
    code
}

/// A recovery code without what people may type differently: letter case and separators.
fn normalize(code: &str) -> String {
    code.chars().filter(char::is_ascii_alphanumeric).map(|character| character.to_ascii_lowercase()).collect()
}

/// Checks a recovery code and uses it up: each code works once. Returns whether it is right.
pub async fn use_recovery_code(db: impl PgExecutor<'_>, person: PersonId, code: &str) -> Result<bool> {
    let update = sqlx::query(
        "update second_factors set recovery_codes = array_remove(recovery_codes, $3)
         where company_id = $1 and person_id = $2 and confirmed_at is not null and $3 = any(recovery_codes)",
    );
    let update = update.bind(person.company()).bind(person.id()).bind(hash(&normalize(code)).to_vec());
    Ok(with_timeout(update.execute(db)).await?.rows_affected() > 0)
}

/// Removes a person's second factor; returns whether there was one.
pub async fn remove(db: impl PgExecutor<'_>, person: PersonId) -> Result<bool> {
    let remove = sqlx::query("delete from second_factors where company_id = $1 and person_id = $2");
    let removed = with_timeout(remove.bind(person.company()).bind(person.id()).execute(db)).await?;
    Ok(removed.rows_affected() > 0)
}

/// Reseals the secrets with the current key; returns their number.
///
/// # Errors
/// When the database cannot answer; [`Error::Key`] when a secret cannot be opened.
pub async fn reseal(db: &PgPool, keys: &Keyring) -> Result<u64> {
    let select =
        sqlx::query_as("select company_id, person_id, secret from second_factors order by company_id, person_id");
    let rows: Vec<(CompanyId, i64, String)> = with_timeout(select.fetch_all(db)).await?;
    let mut resealed = 0;
    for (company, id, sealed) in rows {
        let (person, row) = (PersonId::of(company, id), id.to_string());
        let new_sealed = keys.seal(&location_of(person, &row), &keys.open(&location_of(person, &row), &sealed)?)?;
        // Without `secret = $3`, this could overwrite the secret of a setup that begins meanwhile.
        let update = sqlx::query(
            "update second_factors set secret = $4 where company_id = $1 and person_id = $2 and secret = $3",
        );
        let update = update.bind(company).bind(id).bind(sealed).bind(new_sealed);
        resealed += with_timeout(update.execute(db)).await?.rows_affected();
    }
    Ok(resealed)
}

/// Removes the second factors whose secret is sealed with the key of this id; returns their number. Their owners then
/// sign in with only the password, and can set up a new factor.
///
/// # Errors
/// When the database cannot answer.
pub async fn remove_sealed_with(db: &mut PgConnection, key_id: &str) -> Result<u64> {
    let remove = sqlx::query("delete from second_factors where split_part(secret, '.', 2) = $1").bind(key_id);
    Ok(with_timeout(remove.execute(db)).await?.rows_affected())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_codes_ignore_case_and_separators() {
        let code = new_code();
        assert_eq!(code.len(), CODE_CHARACTERS + CODE_CHARACTERS / CODE_GROUP - 1, "{code}");
        assert_eq!(normalize(&code).len(), CODE_CHARACTERS);
        assert_eq!(normalize(&code.to_uppercase().replace('-', " ")), normalize(&code));
        assert_ne!(new_code(), code);
    }
}
