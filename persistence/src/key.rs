//! Secrets: random, and stored only as a hash.

use rand::distr::{Alphanumeric, SampleString};
use sha2::{Digest, Sha256};

/// SHA-256 of a secret. The secrets are 32 random alphanumeric characters (190 bits), so a slow hash would only cost
/// time.
pub type KeyHash = [u8; 32];

/// Characters after the prefix of every key.
pub const KEY_CHARACTERS: usize = 32;

/// A new secret: the prefix and 32 random characters.
pub fn new_key(prefix: &str) -> String {
    // `rand::rng` is a cryptographic generator, seeded and reseeded by the operating system.
    format!("{prefix}{}", Alphanumeric.sample_string(&mut rand::rng(), KEY_CHARACTERS))
}

/// The stored hash of a secret.
pub fn hash(key: &str) -> KeyHash {
    Sha256::digest(key.as_bytes()).into()
}
