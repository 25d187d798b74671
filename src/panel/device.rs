//! Devices on which a person has signed in before. Attempts to sign in on them are counted separately, so that
//! strangers cannot lock out the owner of an account. The server stores nothing: the device cookie has a part for each
//! person, with the person, the device and the time of the last sign-in, encrypted with the installation's key and
//! bound to the e-mail.
//!
//! A person is a user of one company, or an administrator of the installation. A part does not count for another person
//! with the same e-mail, because any company's administrator can create such a user.

use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::CompanyId;
use hotline_persistence::sealed::{KeyError, Keyring, Location};
use hotline_persistence::tables::people::{INSTALLATION, PersonId};

/// How many days a device stays known after its last sign-in; browsers limit cookies to this lifetime.
pub(super) const KNOWN_DAYS: i64 = 400;

/// Maximum number of persons for whom a device is known; the cookie keeps those who signed in last. One human is a
/// separate person in each company, and a few people may share a device. Every request to sign in carries all parts.
const PERSONS_MAX: usize = 4;

/// Maximum length of one person's part of a cookie, in bytes: twice what a part needs.
const PART_BYTES_MAX: usize = 400;

/// Separates the parts of several persons; no sealed text contains it.
const SEPARATOR: char = '~';

/// The id of a device: 128 random bits, in hexadecimal. Renewing the cookie does not change it.
pub(super) type DeviceId = String;

/// A device that is known for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownDevice {
    /// The person.
    pub(super) person: PersonId,
    /// The device.
    pub(super) device: DeviceId,
}

/// What a sealed part is bound to: the e-mail, in lower case.
fn location(email: &str) -> Location<'_> {
    Location { column: "devices.cookie", company: INSTALLATION, row: email }
}

fn person_parts(cookie: &str) -> impl Iterator<Item = &str> {
    cookie.split(SEPARATOR).filter(|part| !part.is_empty() && part.len() <= PART_BYTES_MAX).take(PERSONS_MAX)
}

/// The persons with this e-mail for whom the device is known, according to the cookie.
pub(super) fn known_devices(keys: &Keyring, email: &str, cookie: Option<&str>, now: DateTime<Utc>) -> Vec<KnownDevice> {
    let email = email.to_lowercase();
    person_parts(cookie.unwrap_or_default()).filter_map(|part| open_part(keys, &email, part, now)).collect()
}

fn open_part(keys: &Keyring, email: &str, part: &str, now: DateTime<Utc>) -> Option<KnownDevice> {
    let plain = keys.open(&location(email), part).ok()?;
    let mut fields = std::str::from_utf8(&plain).ok()?.split(' ');
    let company: CompanyId = fields.next()?.parse().ok()?;
    let person = PersonId::of(company, fields.next()?.parse().ok()?);
    let device = fields.next()?.to_owned();
    let signed_in_at = DateTime::from_timestamp(fields.next()?.parse().ok()?, 0)?;
    (now - signed_in_at < TimeDelta::days(KNOWN_DAYS)).then_some(KnownDevice { person, device })
}

/// The value of the cookie after a person has signed in with this e-mail: the person's part, with the known device or a
/// new one, and then the other persons' parts of the previous cookie.
///
/// # Errors
/// When it cannot be sealed.
pub(super) fn renew_cookie(
    keys: &Keyring,
    (person, email): (PersonId, &str),
    cookie: Option<&str>,
    now: DateTime<Utc>,
) -> Result<String, KeyError> {
    let email = email.to_lowercase();
    let (mut device, mut other_parts) = (None, Vec::new());
    for part in person_parts(cookie.unwrap_or_default()) {
        match open_part(keys, &email, part, now) {
            Some(known_device) if known_device.person == person => device = Some(known_device.device),
            _ => other_parts.push(part),
        }
    }
    let device = device.unwrap_or_else(|| hex::encode(rand::random::<[u8; 16]>()));
    let plain = format!("{} {} {device} {}", person.company(), person.id(), now.timestamp());
    let own_part = keys.seal_unstored(&location(&email), plain.as_bytes())?;
    let parts = std::iter::once(own_part.as_str()).chain(other_parts.into_iter().take(PERSONS_MAX - 1));
    Ok(parts.collect::<Vec<_>>().join(&SEPARATOR.to_string()))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn user(id: i64) -> PersonId {
        PersonId::User(7.into(), id.into())
    }

    #[test]
    fn a_device_is_known_for_its_person_until_it_expires() {
        let folder = TempDir::new().expect("folder");
        let keys = Keyring::at(folder.path().join("secrets.key"));
        keys.load_or_create().expect("a key");
        let now = Utc::now();
        let ana = (user(1), "Ana@example.com");
        let cookie = renew_cookie(&keys, ana, None, now).expect("sealed");
        let known_for = |email: &str, cookie: &str, at| known_devices(&keys, email, Some(cookie), at);
        let first = known_for("ANA@example.com", &cookie, now);
        assert_eq!(first.iter().map(|known| known.person).collect::<Vec<_>>(), [user(1)]);
        assert_eq!(known_for("ana@example.com", &cookie, now + TimeDelta::days(KNOWN_DAYS - 1)), first);
        assert!(known_for("ana@example.com", &cookie, now + TimeDelta::days(KNOWN_DAYS + 1)).is_empty());
        for invalid in ["", "~", &cookie[..cookie.len() - 2], &"v".repeat(5000)] {
            assert!(known_for("ana@example.com", invalid, now).is_empty());
        }
        assert!(known_for("ben@example.com", &cookie, now).is_empty());
        // A value that was sealed for another purpose does not make a device known.
        let other_location =
            Location { column: "second_factors.secret", company: INSTALLATION, row: "ana@example.com" };
        let foreign = keys.seal(&other_location, format!("7 1 a {}", now.timestamp()).as_bytes()).expect("sealed");
        assert!(known_for("ana@example.com", &foreign, now).is_empty());
        // A renewed cookie names the same device; without its cookie, a device counts as another one.
        let renewed = renew_cookie(&keys, ana, Some(&cookie), now).expect("sealed");
        assert_eq!(known_for("ana@example.com", &renewed, now), first);
        let another = renew_cookie(&keys, ana, None, now).expect("sealed");
        assert_ne!(known_for("ana@example.com", &another, now), first);
    }

    #[test]
    fn a_device_is_known_for_the_last_few_persons() {
        let folder = TempDir::new().expect("folder");
        let keys = Keyring::at(folder.path().join("secrets.key"));
        keys.load_or_create().expect("a key");
        let now = Utc::now();
        let mut cookie = None;
        for id in 1..=6 {
            cookie = Some(renew_cookie(&keys, (user(id), "ana@example.com"), cookie.as_deref(), now).expect("sealed"));
        }
        let persons_of = |email: &str| -> Vec<PersonId> {
            known_devices(&keys, email, cookie.as_deref(), now).into_iter().map(|known| known.person).collect()
        };
        assert_eq!(persons_of("ana@example.com"), [user(6), user(5), user(4), user(3)]);
        // The parts of persons with another e-mail are kept, up to the maximum.
        let shared = renew_cookie(&keys, (user(9), "ben@example.com"), cookie.as_deref(), now).expect("sealed");
        let remaining = known_devices(&keys, "ana@example.com", Some(&shared), now);
        assert_eq!(remaining.into_iter().map(|known| known.person).collect::<Vec<_>>(), [user(6), user(5), user(4)]);
    }
}
