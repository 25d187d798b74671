//! Verifies that a call comes from the provider, which signs the bytes of the body with the app secret.
//! <https://developers.facebook.com/docs/messenger-platform/webhooks#validate-payloads>

use actix_web::http::header::{HeaderMap, HeaderName};
use hmac::{Hmac, KeyInit, Mac};
use hotline_persistence::key;
use hotline_persistence::tables::channels::Secret;
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The header of the signature.
pub(super) const HEADER: HeaderName = HeaderName::from_static("x-hub-signature-256");

/// Whether the signature matches this secret and exactly these bytes. The comparison takes constant time.
pub(super) fn is_valid(headers: &HeaderMap, body: &[u8], secret: &Secret) -> bool {
    // An empty secret would be known to everyone.
    if secret.0.is_empty() {
        return false;
    }
    let signature = headers.get(HEADER).and_then(|header| header.to_str().ok()?.strip_prefix("sha256="));
    let Some(signature) = signature.and_then(|digits| hex::decode(digits).ok()) else { return false };
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.0.as_bytes()) else { return false };
    mac.update(body);
    mac.verify_slice(&signature).is_ok()
}

/// Whether two secrets are equal. Compares their hashes, which have the same length, in constant time.
pub(super) fn is_same_secret(secret: &Secret, candidate: &str) -> bool {
    !secret.0.is_empty() && bool::from(key::hash(&secret.0).ct_eq(&key::hash(candidate)))
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn is_signed(signature: &str, body: &[u8], secret: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_str(signature).expect("header"));
        is_valid(&headers, body, &Secret(secret.to_owned()))
    }

    #[test]
    fn a_signature_matches_only_its_bytes_and_its_secret() {
        // RFC 4231, test case 2.
        let (secret, body) = ("Jefe", b"what do ya want for nothing?");
        let good = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert!(is_signed(good, body, secret));
        assert!(is_signed(&good.to_uppercase().replace("SHA256", "sha256"), body, secret));
        assert!(!is_signed(good, b"what do ya want for nothing!", secret));
        assert!(!is_signed(good, body, "jefe"));
        assert!(!is_signed(&good.replace("sha256=", "sha1="), body, secret));
        assert!(!is_signed(&good[..good.len() - 2], body, secret));
        for bad in ["", "sha256=", "sha256=zz", "5bdcc146"] {
            assert!(!is_signed(bad, body, secret), "{bad}");
        }
        // HMAC-SHA256 with an empty key over nothing.
        let empty = "sha256=b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad";
        assert!(!is_signed(empty, b"", ""));
        assert!(!is_valid(&HeaderMap::new(), body, &Secret(secret.to_owned())));
    }

    #[test]
    fn only_the_same_token_is_accepted_and_no_empty_one() {
        let secret = Secret("verify me".to_owned());
        assert!(is_same_secret(&secret, "verify me"));
        assert!(
            !is_same_secret(&secret, "verify m")
                && !is_same_secret(&secret, "")
                && !is_same_secret(&Secret(String::new()), "")
        );
    }
}
