//! Passwords of people: chosen or generated, stored only as an Argon2id hash. Machine keys are in [`crate::key`].

use std::collections::HashSet;
use std::fmt;
use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use rand::distr::{Alphanumeric, SampleString};

use crate::controls;

/// Minimum characters of a chosen password.
pub const CHARACTERS_MIN: usize = 12;

/// Maximum bytes of a password: hashing reads them all, and no person types more.
pub const BYTES_MAX: usize = 1024;

/// Characters of a generated password: 119 bits, which cannot be guessed.
const GENERATED_CHARACTERS: usize = 20;

/// Bytes of the salt, as RFC 9106 recommends.
const SALT_BYTES: usize = 16;

/// Those of the 20,000 most common passwords that are long enough, in lower case. From the list shipped with Django 5.2
/// (`django/contrib/auth/common-passwords.txt.gz`), which Royce Williams compiled from leaked passwords.
static COMMON_PASSWORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("common_passwords.txt").lines().collect());

/// Minimum characters of a part of an e-mail or a name: shorter parts occur in any word.
const PART_CHARACTERS_MIN: usize = 3;

/// Minimum letters and digits of a password besides its owner's e-mail and name: an attacker first tries e-mail and
/// name with a year and a punctuation mark.
const OWN_CHARACTERS_MIN: usize = 6;

/// Sequences of the alphabet and the keyboard. Each is cyclic: its first character follows its last.
const SEQUENCES: [&str; 5] =
    ["0123456789", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "asdfghjkl", "qwertyuiopasdfghjklzxcvbnm"];

/// A password is refused if its runs ([`has_long_runs`]) have at least this average length: those of `abcd1234dcba`
/// have it, those of words do not.
const REFUSED_RUN_CHARACTERS: usize = 4;

/// Whether a text repeats a shorter one. The last repetition may be incomplete.
fn is_repetition(text: &str) -> bool {
    let characters: Vec<char> = text.chars().collect();
    (1..=characters.len() / 2).any(|period| {
        characters.iter().zip(characters.iter().skip(period)).all(|(character, after_period)| character == after_period)
    })
}

/// The steps that lead from one character to the other: for each, the index of its sequence, and whether it goes
/// forwards. A repeated character is a step with the index after the last sequence.
fn steps(from: char, to: char) -> impl Iterator<Item = (usize, bool)> {
    let repetition = (from == to).then_some((SEQUENCES.len(), true));
    let in_sequences = SEQUENCES.iter().enumerate().filter_map(move |(index, sequence)| {
        let (from, to) = (sequence.find(from)?, sequence.find(to)?);
        let is_next = |before: usize, after: usize| (before + 1) % sequence.len() == after;
        if is_next(from, to) { Some((index, true)) } else { is_next(to, from).then_some((index, false)) }
    });
    repetition.into_iter().chain(in_sequences)
}

/// Whether the runs of a text are long on average: in a run, each character follows the previous one by the same step.
fn has_long_runs(text: &str) -> bool {
    let characters: Vec<char> = text.chars().collect();
    // The steps that fit the whole run so far; none while it has a single character.
    let (mut runs, mut run_steps) = (1, Vec::new());
    for pair in characters.windows(2) {
        let pair_steps: Vec<_> = steps(pair[0], pair[1]).collect();
        if run_steps.is_empty() && !pair_steps.is_empty() {
            run_steps = pair_steps;
            continue;
        }
        run_steps.retain(|step| pair_steps.contains(step));
        if run_steps.is_empty() {
            runs += 1;
        }
    }
    runs * REFUSED_RUN_CHARACTERS <= characters.len()
}

/// A hash that no password matches, for accounts that do not exist: checking it takes as long as for a real account.
static UNMATCHABLE_HASH: LazyLock<Option<String>> = LazyLock::new(|| Password::random().hash().ok());

/// A password that meets the rules. It is shown only to its owner, never logged.
#[derive(Clone)]
pub struct Password(String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

impl Password {
    /// Validates a password that a person chose.
    ///
    /// # Errors
    /// The violated rule, as a phrase that follows the field's name.
    pub fn parse(text: String) -> Result<Self, String> {
        // Sign-in also refuses such characters.
        if controls::contains_refused(&text) {
            return Err(controls::REFUSED.to_owned());
        }
        if text.chars().count() < CHARACTERS_MIN {
            return Err(format!("must have at least {CHARACTERS_MIN} characters"));
        }
        if text.len() > BYTES_MAX {
            return Err(format!("must have at most {BYTES_MAX} bytes"));
        }
        let folded = text.to_lowercase();
        if COMMON_PASSWORDS.contains(folded.as_str()) {
            return Err("is one of the most common passwords".to_owned());
        }
        if is_repetition(&folded) || has_long_runs(&folded) {
            return Err(
                "is too easy to guess: it repeats characters or follows the alphabet or the keyboard".to_owned()
            );
        }
        Ok(Self(text))
    }

    /// Checks that the password is not based on its owner's e-mail or name.
    ///
    /// # Errors
    /// The violated rule, as a phrase that follows the field's name.
    pub fn check_owner(&self, email: &str, name: &str) -> Result<(), String> {
        let (email, name) = (email.to_lowercase(), name.to_lowercase());
        let words = email.split(|character: char| !character.is_alphanumeric()).chain(name.split_whitespace());
        let mut parts: Vec<&str> = words.filter(|part| part.chars().count() >= PART_CHARACTERS_MIN).collect();
        parts.push(&email);
        // The longest first, so that a part that contains another is removed as a whole.
        parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
        let mut rest = self.0.to_lowercase();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            rest = rest.replace(part, " ");
        }
        if rest.chars().filter(|character| character.is_alphanumeric()).count() >= OWN_CHARACTERS_MIN {
            return Ok(());
        }
        Err("is too easy to guess: it is based on the e-mail address or the name".to_owned())
    }

    /// Generates a random password.
    pub fn random() -> Self {
        Self(Alphanumeric.sample_string(&mut rand::rng(), GENERATED_CHARACTERS))
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
pub fn matches_hash(text: &str, hash: &str) -> bool {
    text.len() <= BYTES_MAX
        && PasswordHash::new(hash).is_ok_and(|hash| Argon2::default().verify_password(text.as_bytes(), &hash).is_ok())
}

/// Takes as long as [`matches_hash`] and always returns false: for accounts that do not exist.
pub fn verify_unknown(text: &str) -> bool {
    let _ = UNMATCHABLE_HASH.as_deref().is_some_and(|hash| matches_hash(text, hash));
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_passwords_are_refused_in_any_case() {
        assert!(
            COMMON_PASSWORDS.len() > 100 && COMMON_PASSWORDS.iter().all(|word| word.chars().count() >= CHARACTERS_MIN)
        );
        for common in ["qwertyuiop[]", "Password1234", "1Q2W3E4R5T6Y7U8I9O0P"] {
            let refused = Password::parse(common.to_owned()).expect_err(common);
            assert_eq!(refused, "is one of the most common passwords");
        }
        assert!(!verify_unknown("correct horse battery"));
    }

    #[test]
    fn sequences_and_repetitions_are_refused() {
        for weak in [
            "123456789012",
            "098765432109",
            "passwordpassword",
            "Passw0rdPassw0rdPass",
            "aaaaaaaaaaaa",
            "abcdefghijkl",
            "qwertyuiopas",
            "qwerty123456",
            "123456abcdef",
            "aaaabbbbcccc",
            "zyxwvutsrqpo",
            "asdfghjkl123",
        ] {
            assert!(Password::parse(weak.to_owned()).is_err(), "{weak}");
        }
        for good in
            ["correct horse battery", "Tr0ub4dor&3 is it", "blue-4711-sofa!", "ananas und banane", "qx7bn2kd9wpz"]
        {
            assert!(Password::parse(good.to_owned()).is_ok(), "{good}");
        }
    }

    #[test]
    fn passwords_based_on_the_owner_are_refused() {
        let is_accepted = |text: &str| {
            let password = Password::parse(text.to_owned()).expect(text);
            password.check_owner("Ana.Souza@example.com", "Ana Souza").is_ok()
        };
        for weak in ["ana.souza@example.com", "AnaSouza2026!", "souzaexample1", "ana@example.com", "Example-Ana-12345"]
        {
            assert!(!is_accepted(weak), "{weak}");
        }
        for good in ["correct horse battery", "ana likes horses", "souza 4711 sofa blue"] {
            assert!(is_accepted(good), "{good}");
        }
        let password = Password::parse("correct horse battery".to_owned()).expect("password");
        assert!(password.check_owner("", "").is_ok());
    }

    #[test]
    fn only_the_password_matches_its_hash_and_hashes_are_salted() {
        let password = Password::parse("correct horse battery".to_owned()).expect("password");
        let hash = password.hash().expect("hash");
        assert!(hash.starts_with("$argon2id$"), "{hash}");
        assert!(matches_hash("correct horse battery", &hash));
        assert!(!matches_hash("correct horse batterz", &hash));
        assert!(!matches_hash("correct horse battery", "no hash"));
        assert_ne!(password.hash().expect("hash"), hash);
    }

    #[test]
    fn short_passwords_are_refused_and_none_is_logged() {
        assert!(Password::parse("elevenchars".to_owned()).is_err());
        assert!(Password::parse("correct\thorse battery".to_owned()).is_ok());
        for bad in ["correct\u{1}horse battery", "\u{1b}correct horse battery", "correct horse battery\u{1f}"] {
            assert_eq!(Password::parse(bad.to_owned()).expect_err(bad), controls::REFUSED);
        }
        // Eleven characters in twelve bytes.
        let short = Password::parse("élevenchars".to_owned()).expect_err("short");
        assert_eq!(short, format!("must have at least {CHARACTERS_MIN} characters"));
        let long = Password::parse("a".repeat(BYTES_MAX + 1)).expect_err("long");
        assert_eq!(long, format!("must have at most {BYTES_MAX} bytes"));
        let generated = Password::random();
        assert!(generated.as_str().len() >= CHARACTERS_MIN);
        assert!(!format!("{generated:?}").contains(generated.as_str()));
    }
}
