//! Devices from which an account has been used before. They have their own limit of attempts, so that strangers who try
//! an account cannot lock out its owner. The device cookie names the account and a time, and is sealed with the
//! installation's key; the server stores nothing.

use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::sealed::{KeyError, Keyring, Location};
use hotline_persistence::tables::people::INSTALLATION;

/// How many days a device stays known without signing in; browsers limit cookies to this lifetime.
pub(super) const KNOWN_DAYS: i64 = 400;

/// The sealed value is bound to the account, ignoring the case of its e-mail.
fn place(email: &str) -> Location<'_> {
    Location { column: "devices.cookie", company: INSTALLATION, row: email }
}

/// The value of a new device cookie.
///
/// # Errors
/// When it cannot be sealed.
pub(super) fn known(keys: &Keyring, email: &str, now: DateTime<Utc>) -> Result<String, KeyError> {
    keys.seal(&place(&email.to_lowercase()), now.timestamp().to_string().as_bytes())
}

/// Whether the device cookie is valid for this account.
pub(super) fn is_known(keys: &Keyring, email: &str, shown: &str, now: DateTime<Utc>) -> bool {
    let Ok(plain) = keys.open(&place(&email.to_lowercase()), shown) else { return false };
    let since = std::str::from_utf8(&plain).ok().and_then(|text| text.parse().ok());
    let since = since.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    since.is_some_and(|since| now - since < TimeDelta::days(KNOWN_DAYS))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_device_is_known_for_its_account_and_its_time() {
        let folder = TempDir::new().expect("folder");
        let keys = Keyring::at(folder.path().join("secrets.key"));
        keys.load_or_create().expect("a key");
        let now = Utc::now();
        let shown = known(&keys, "Ana@example.com", now).expect("sealed");
        assert!(is_known(&keys, "ANA@example.com", &shown, now));
        assert!(is_known(&keys, "ana@example.com", &shown, now + TimeDelta::days(KNOWN_DAYS - 1)));
        assert!(!is_known(&keys, "ana@example.com", &shown, now + TimeDelta::days(KNOWN_DAYS + 1)));
        assert!(!is_known(&keys, "ben@example.com", &shown, now));
        assert!(!is_known(&keys, "ana@example.com", "", now));
        assert!(!is_known(&keys, "ana@example.com", &shown[..shown.len() - 2], now));
        // A value that was sealed for another purpose does not make a device known.
        let other = Location { column: "second_factors.secret", company: INSTALLATION, row: "ana@example.com" };
        let other = keys.seal(&other, now.timestamp().to_string().as_bytes()).expect("sealed");
        assert!(!is_known(&keys, "ana@example.com", &other, now));
    }
}
