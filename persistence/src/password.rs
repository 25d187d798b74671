//! Passwords of people: chosen or generated, stored only as an Argon2id hash. Machine keys are in [`crate::key`].

use std::collections::HashSet;
use std::fmt;
use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use rand::distr::{Alphanumeric, SampleString};

/// Minimum characters of a chosen password.
pub const CHARACTERS_MIN: usize = 12;

/// Maximum bytes of a password: hashing reads them all, and nobody types more.
pub const BYTES_MAX: usize = 1024;

/// Characters of a generated password: 119 bits, which cannot be guessed.
const DRAWN_CHARACTERS: usize = 20;

/// Bytes of the salt, as RFC 9106 recommends.
const SALT_BYTES: usize = 16;

/// The long enough ones among the 20,000 most common passwords, in lower case. From the list shipped with Django 5.2
/// (`django/contrib/auth/common-passwords.txt.gz`), which Royce Williams compiled from leaked passwords.
static COMMON: LazyLock<HashSet<&str>> = LazyLock::new(|| include_str!("common_passwords.txt").lines().collect());

/// A hash that no password matches, for accounts that do not exist: checking it takes as long as for a real account.
static NOBODYS: LazyLock<Option<String>> = LazyLock::new(|| Password::random().hash().ok());

/// A password that meets the rules. It is shown only to its owner, never logged.
#[derive(Clone)]
pub struct Password(String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

impl Password {
    /// Validates a password somebody chose.
    ///
    /// # Errors
    /// The violated rule, as a phrase that follows the field's name.
    pub fn chosen(text: String) -> Result<Self, String> {
        if text.chars().count() < CHARACTERS_MIN {
            return Err(format!("must have at least {CHARACTERS_MIN} characters"));
        }
        if text.len() > BYTES_MAX {
            return Err(format!("must have at most {BYTES_MAX} bytes"));
        }
        if COMMON.contains(text.to_lowercase().as_str()) {
            return Err("is one of the passwords in most use".to_owned());
        }
        Ok(Self(text))
    }

    /// Generates a password from the operating system's random source.
    pub fn random() -> Self {
        Self(Alphanumeric.sample_string(&mut rand::rng(), DRAWN_CHARACTERS))
    }

    /// The plain text, for its owner.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hash to store: a PHC string that contains salt and cost. Deliberately takes tens of milliseconds.
    ///
    /// # Errors
    /// The algorithm's error.
    pub fn hash(&self) -> Result<String, argon2::password_hash::Error> {
        let salt: [u8; SALT_BYTES] = rand::random();
        Ok(Argon2::default().hash_password_with_salt(self.0.as_bytes(), &salt)?.to_string())
    }
}

/// Whether the text is the password of this hash. An invalid hash matches nothing.
pub fn is_right(text: &str, hash: &str) -> bool {
    text.len() <= BYTES_MAX
        && PasswordHash::new(hash).is_ok_and(|hash| Argon2::default().verify_password(text.as_bytes(), &hash).is_ok())
}

/// Takes as long as [`is_right`] and always returns false: for accounts that do not exist.
pub fn is_nobodys(text: &str) -> bool {
    let _ = NOBODYS.as_deref().is_some_and(|hash| is_right(text, hash));
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_everybody_chooses_is_refused_in_any_case() {
        assert!(COMMON.len() > 100 && COMMON.iter().all(|word| word.chars().count() >= CHARACTERS_MIN));
        for common in ["qwertyuiop[]", "Password1234", "1Q2W3E4R5T6Y7U8I9O0P"] {
            let refused = Password::chosen(common.to_owned()).expect_err(common);
            assert_eq!(refused, "is one of the passwords in most use");
        }
        assert!(!is_nobodys("correct horse battery"));
    }

    #[test]
    fn only_the_password_fits_its_hash_and_no_two_hashes_are_alike() {
        let password = Password::chosen("correct horse battery".to_owned()).expect("password");
        let hash = password.hash().expect("hash");
        assert!(hash.starts_with("$argon2id$"), "{hash}");
        assert!(is_right("correct horse battery", &hash));
        assert!(!is_right("correct horse batterz", &hash));
        assert!(!is_right("correct horse battery", "no hash"));
        assert_ne!(password.hash().expect("hash"), hash);
    }

    #[test]
    fn a_short_password_is_refused_and_none_shows_in_a_log() {
        assert!(Password::chosen("elevenchars".to_owned()).is_err());
        // Counts characters, not bytes.
        assert!(Password::chosen("éééééééé".to_owned()).is_err());
        assert!(Password::chosen("a".repeat(BYTES_MAX + 1)).is_err());
        let drawn = Password::random();
        assert!(drawn.as_str().len() >= CHARACTERS_MIN);
        assert!(!format!("{drawn:?}").contains(drawn.as_str()));
    }
}
