//! Signatures according to Standard Webhooks.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use hotline_persistence::sealed::Secret;
use rand::Rng;
use sha2::Sha256;

/// The prefix of every secret.
const PREFIX: &str = "whsec_";

/// Size of a secret in bytes: a longer key would not make HMAC-SHA-256 stronger.
const SECRET_BYTES: usize = 32;

/// A new random secret.
pub fn new_secret() -> Secret {
    let mut bytes = [0; SECRET_BYTES];
    // `rand::rng` is a cryptographic generator, seeded and reseeded by the operating system.
    rand::rng().fill_bytes(&mut bytes);
    Secret(format!("{PREFIX}{}", BASE64_STANDARD.encode(bytes)))
}

/// The signature of a delivery: `v1,` and the HMAC of its id, time and body.
///
/// # Errors
/// When the secret is malformed; secrets from [`new_secret`] are not.
pub fn signature(secret: &Secret, id: &str, timestamp: i64, body: &[u8]) -> Result<String, String> {
    let error = || "the webhook's secret is damaged; rotate it".to_owned();
    let key = secret.0.strip_prefix(PREFIX).and_then(|key| BASE64_STANDARD.decode(key).ok());
    let key = key.filter(|key| !key.is_empty()).ok_or_else(error)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|_| error())?;
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    Ok(format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example from the specification's own libraries.
    #[test]
    fn a_signature_is_the_one_of_the_specification() {
        let secret = Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let signature = signature(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature.as_deref(), Ok("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn secrets_are_random_and_a_malformed_secret_signs_nothing() {
        let (secret, other_secret) = (new_secret(), new_secret());
        assert_ne!(secret.0, other_secret.0);
        assert_eq!(secret.0.len(), PREFIX.len() + 44);
        assert!(signature(&secret, "a", 1, b"").is_ok());
        for bad in ["", "whsec_", "whsec_!", &secret.0[6..]] {
            assert!(signature(&Secret(bad.to_owned()), "a", 1, b"x").is_err(), "{bad}");
        }
    }
}
