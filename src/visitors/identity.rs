//! The signed identity of a visitor: a JSON Web Token (RFC 7519) with HMAC-SHA256 (HS256), which the company's server
//! creates with a secret of the channel.
//!
//! Only one form of the standards is accepted: the compact serialization, `alg` `HS256`, one signature. The token does
//! not choose how it is verified, and its signature is verified before its claims are parsed.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use hotline_actors::FieldError;
use hotline_actors::engine::Identified;
use hotline_persistence::tables::channels::Secret;
use hotline_persistence::tables::contacts::Visitor;
use hotline_persistence::visible_text;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::web::request::values::{ContactName, Email, ExternalId, FromField, Number};
use crate::web::{ApiError, ApiResult};

/// Maximum size of a token: three times what a name, an e-mail and a number of maximum length need.
const BYTES_MAX: usize = 4096;

/// Maximum time until a token expires, in seconds: a leaked token is valid for a day at most.
const AHEAD_MAX_S: f64 = 24.0 * 3600.0;

/// Accepted clock difference between the two servers, in seconds.
const SKEW_S: f64 = 60.0;

#[derive(Deserialize)]
struct Header {
    alg: String,
    /// Critical extensions; none are supported.
    crit: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Claims {
    sub: Option<Value>,
    exp: Option<Value>,
    nbf: Option<Value>,
    aud: Option<Value>,
    name: Option<Value>,
    email: Option<Value>,
    number: Option<Value>,
}

/// Verifies a token: it must be signed with one of the channel's secrets, be meant for the channel, and be valid now.
/// Returns the identity.
///
/// # Errors
/// `401` with the reason when it is invalid; `422` when its claims about the visitor cannot be stored.
pub fn verify(token: &str, secrets: &[Secret], public_key: &str, now: DateTime<Utc>) -> ApiResult<Identified> {
    let claims = claims_of(token, secrets).and_then(|claims| {
        check_validity(&claims, public_key, now)?;
        Ok(claims)
    });
    let claims = claims.map_err(ApiError::invalid_identity)?;
    let external_id = claims.sub.as_ref().ok_or("its `sub` is missing").and_then(|sub| {
        ExternalId::from_json(sub).map_err(|_| "its `sub` must be a single-line string of at most 255 characters")
    });
    let external_id = external_id.map_err(ApiError::invalid_identity)?.0;
    let mut errors = Vec::new();
    let name: Option<ContactName> = optional_claim("name", claims.name, &mut errors);
    let email: Option<Email> = optional_claim("email", claims.email, &mut errors);
    let number: Option<Number> = optional_claim("number", claims.number, &mut errors);
    if !errors.is_empty() {
        return Err(ApiError::validation(&errors));
    }
    let visitor = Visitor {
        name: name.map(|name| name.0),
        email: email.map(|email| email.0),
        number_country: number.as_ref().and_then(Number::country),
        number: number.map(|number| number.0),
        external_id: Some(external_id.clone()),
        ..Visitor::default()
    };
    Ok(Identified { external_id, visitor })
}

/// The claims of a token that is signed with one of these secrets.
fn claims_of(token: &str, secrets: &[Secret]) -> Result<Claims, &'static str> {
    const NOT_A_TOKEN: &str = "it is not a JSON Web Token";
    if token.len() > BYTES_MAX {
        return Err("it is too long");
    }
    let (signed_part, signature) = token.rsplit_once('.').ok_or(NOT_A_TOKEN)?;
    let (header, claims) =
        signed_part.split_once('.').filter(|(_, claims)| !claims.contains('.')).ok_or(NOT_A_TOKEN)?;
    let header: Header = decode(header).ok_or(NOT_A_TOKEN)?;
    if header.alg != "HS256" || header.crit.is_some() {
        return Err("its `alg` must be HS256, without extensions");
    }
    let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).map_err(|_| NOT_A_TOKEN)?;
    if !secrets.iter().any(|secret| is_signed_with(secret, signed_part, &signature)) {
        return Err("it is not signed with a secret of this webchat");
    }
    decode(claims).ok_or("its claims are unreadable")
}

/// Verifies the signature in constant time.
fn is_signed_with(secret: &Secret, signed_part: &str, signature: &[u8]) -> bool {
    // An empty secret would be known to everyone.
    let mac = (!secret.0.is_empty()).then(|| mac_of(secret, signed_part)).flatten();
    mac.is_some_and(|mac| mac.verify_slice(signature).is_ok())
}

fn mac_of(secret: &Secret, signed_part: &str) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.0.as_bytes()).ok()?;
    mac.update(signed_part.as_bytes());
    Some(mac)
}

fn decode<T: for<'de> Deserialize<'de>>(text: &str) -> Option<T> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
    // Duplicate names are refused: two parsers could use different values of them.
    serde_json::from_slice(&bytes).ok()
}

fn check_validity(claims: &Claims, public_key: &str, now: DateTime<Utc>) -> Result<(), &'static str> {
    let seconds = |time: &Value| time.as_f64().filter(|time| time.is_finite());
    let now = now.timestamp_millis() as f64 / 1000.0;
    let expires_at = claims.exp.as_ref().and_then(seconds).ok_or("its `exp` is missing or not a number of seconds")?;
    if expires_at <= now - SKEW_S {
        return Err("it has expired");
    }
    if expires_at > now + AHEAD_MAX_S + SKEW_S {
        return Err("its `exp` must be at most 24 hours ahead");
    }
    if let Some(not_before) = &claims.nbf {
        let not_before = seconds(not_before).ok_or("its `nbf` is not a number of seconds")?;
        if not_before > now + SKEW_S {
            return Err("it is not valid yet");
        }
    }
    let is_for_this_webchat = match &claims.aud {
        None | Some(Value::Null) => true,
        Some(Value::Array(audiences)) => audiences.iter().any(|audience| audience == public_key),
        Some(audience) => audience == public_key,
    };
    if is_for_this_webchat { Ok(()) } else { Err("its `aud` is not this webchat's public key") }
}

fn optional_claim<T: FromField>(name: &str, value: Option<Value>, errors: &mut Vec<FieldError>) -> Option<T> {
    let value =
        value.filter(|value| !value.is_null() && value.as_str().is_none_or(|text| !visible_text::is_blank(text)))?;
    match T::from_json(&value) {
        Ok(value) => Some(value),
        Err(reason) => {
            errors.push(FieldError { field: format!("identity.{name}"), reason });
            None
        }
    }
}

/// Creates a token with these claims, as the company's server would: for the demo, which has no such server. `None` if
/// the secret cannot be used.
pub fn sign(secret: &Secret, claims: &Value) -> Option<String> {
    let header = json!({"alg": "HS256", "typ": "JWT"});
    let [header, claims] = [&header, claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part.to_string()));
    let signed_part = format!("{header}.{claims}");
    let signature = mac_of(secret, &signed_part)?.finalize().into_bytes();
    Some(format!("{signed_part}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    const NOW_S: i64 = 1_700_000_000;
    const PUBLIC_KEY: &str = "ch_here";

    fn secret() -> Secret {
        Secret("ids_a secret of the channel".to_owned())
    }

    fn verify_now(token: &str, secrets: &[Secret]) -> ApiResult<Identified> {
        verify(token, secrets, PUBLIC_KEY, DateTime::from_timestamp(NOW_S, 0).expect("time"))
    }

    fn token_of(claims: &Value) -> String {
        sign(&secret(), claims).expect("signed")
    }

    /// Valid claims, with these in addition.
    fn claims_with(claims: Value) -> Value {
        let mut merged_claims = json!({"sub": "user-81", "exp": NOW_S + 3600});
        merged_claims.as_object_mut().expect("object").extend(claims.as_object().expect("object").clone());
        merged_claims
    }

    fn refusal_of(token: &str) -> String {
        let error = verify_now(token, &[secret()]).expect_err(token);
        assert_eq!((error.status.as_u16(), error.code), (401, "ERR_API_UNAUTHORIZED"), "{error}");
        error.message
    }

    #[test]
    fn a_token_without_a_type_in_its_header_is_accepted() {
        // The header is `{"alg":"HS256"}`, where `sign` also writes `typ`. The signature is that of
        // `openssl dgst -sha256 -hmac`, so that the one computed here is compared with another program's.
        let signed_part = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1c2VyLTgxIiwiZXhwIjoxNzAwMDAzNjAwfQ";
        let token = format!("{signed_part}.-1_dEyQvJCXc4V5zl51Jqry8LKyZsanDZcds1SaX27M");
        assert_eq!(verify_now(&token, &[secret()]).expect("verified").external_id, "user-81");
    }

    #[test]
    fn claims_about_the_visitor_are_normalized_and_checked() {
        let claims = json!({"name": " Maria ", "email": "maria@example.com", "number": "+55 11 98765-4321"});
        let identified = verify_now(&token_of(&claims_with(claims)), &[secret()]).expect("verified");
        let Visitor { name, email, number, number_country, external_id, .. } = identified.visitor;
        let fields = [name, email, number, number_country, external_id].map(Option::unwrap_or_default);
        assert_eq!(fields, ["Maria", "maria@example.com", "5511987654321", "BR", "user-81"]);
        let empty_claims = json!({"name": null, "email": "", "iat": NOW_S, "jti": "7", "more": {"a": 1}});
        assert_eq!(
            verify_now(&token_of(&claims_with(empty_claims)), &[secret()]).expect("verified").visitor.name,
            None
        );
        let invalid_claims = json!({"name": "a\nb", "email": "nobody", "number": 7});
        let error = verify_now(&token_of(&claims_with(invalid_claims)), &[secret()]).expect_err("refused");
        assert_eq!(error.status.as_u16(), 422);
        for field in ["identity.name", "identity.email", "identity.number"] {
            assert!(error.message.contains(field), "{error}");
        }
    }

    #[test]
    fn a_token_must_be_signed_with_one_of_the_secrets() {
        let older_secret = Secret("ids_the one before".to_owned());
        let token = token_of(&claims_with(json!({})));
        assert!(verify_now(&token, &[older_secret.clone(), secret()]).is_ok());
        assert!(verify_now(&token, std::slice::from_ref(&older_secret)).is_err());
        assert!(verify_now(&token, &[]).is_err());
        let empty_secret = Secret(String::new());
        let token = sign(&empty_secret, &claims_with(json!({}))).expect("signed");
        assert!(verify_now(&token, &[empty_secret]).is_err());
    }

    #[test]
    fn only_hs256_is_accepted() {
        let claims = BASE64_URL_SAFE_NO_PAD.encode(claims_with(json!({})).to_string());
        for header in [
            json!({"alg": "none"}),
            json!({"alg": "None"}),
            json!({"alg": "hs256"}),
            json!({"alg": "HS384"}),
            json!({"alg": "HS512"}),
            json!({"alg": "RS256"}),
            json!({"alg": ["HS256"]}),
            json!({"typ": "JWT"}),
            json!({"alg": "HS256", "crit": ["exp"]}),
        ] {
            let signed_part = format!("{}.{claims}", BASE64_URL_SAFE_NO_PAD.encode(header.to_string()));
            let mac = mac_of(&secret(), &signed_part).expect("mac").finalize().into_bytes();
            refusal_of(&format!("{signed_part}.{}", BASE64_URL_SAFE_NO_PAD.encode(mac)));
            refusal_of(&format!("{signed_part}."));
            refusal_of(&signed_part);
        }
        let duplicate_alg = BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"none","alg":"HS256"}"#);
        let signed_part = format!("{duplicate_alg}.{claims}");
        let mac = mac_of(&secret(), &signed_part).expect("mac").finalize().into_bytes();
        refusal_of(&format!("{signed_part}.{}", BASE64_URL_SAFE_NO_PAD.encode(mac)));
    }

    #[test]
    fn a_modified_token_is_refused() {
        let token = token_of(&claims_with(json!({})));
        let [header, claims, signature] = *token.split('.').collect::<Vec<_>>() else { panic!("three parts") };
        let other_claims = BASE64_URL_SAFE_NO_PAD.encode(claims_with(json!({"sub": "admin"})).to_string());
        refusal_of(&format!("{header}.{other_claims}.{signature}"));
        for end in 0..signature.len() {
            refusal_of(&format!("{header}.{claims}.{}", &signature[..end]));
        }
        refusal_of(&format!("{token}="));
        refusal_of(&format!("{token}.{signature}"));
        refusal_of(&format!(" {token}"));
        for token in ["", ".", "..", "...", "a.b.c", "vt_x", &"x".repeat(BYTES_MAX + 1)] {
            refusal_of(token);
        }
    }

    #[test]
    fn a_token_that_is_too_long_is_refused_before_it_is_parsed() {
        let large = token_of(&claims_with(json!({"more": "x".repeat(BYTES_MAX)})));
        assert!(refusal_of(&large).contains("too long"));
    }

    #[test]
    fn a_token_is_valid_for_a_day_at_most_with_a_minute_of_skew() {
        let expiring_in = |seconds: i64| token_of(&json!({"sub": "u", "exp": NOW_S + seconds}));
        for seconds in [1, 3600, -59, 24 * 3600, 24 * 3600 + 60] {
            assert!(verify_now(&expiring_in(seconds), &[secret()]).is_ok(), "{seconds}");
        }
        for (seconds, reason) in
            [(-60, "expired"), (-3600, "expired"), (24 * 3600 + 61, "24 hours"), (25 * 3600, "24 hours")]
        {
            assert!(refusal_of(&expiring_in(seconds)).contains(reason), "{seconds}");
        }
        for exp in [json!(null), json!("1700003600"), json!([]), json!(true)] {
            assert!(refusal_of(&token_of(&json!({"sub": "u", "exp": exp}))).contains("`exp`"));
        }
        assert!(refusal_of(&token_of(&json!({"sub": "u"}))).contains("`exp`"));
        assert!(verify_now(&token_of(&json!({"sub": "u", "exp": NOW_S as f64 + 10.5})), &[secret()]).is_ok());
        assert!(verify_now(&token_of(&claims_with(json!({"nbf": NOW_S + 60}))), &[secret()]).is_ok());
        assert!(refusal_of(&token_of(&claims_with(json!({"nbf": NOW_S + 61})))).contains("not valid yet"));
    }

    #[test]
    fn a_token_must_have_a_subject_and_this_audience() {
        for sub in
            [json!(null), json!(""), json!(" "), json!(81), json!("a\u{0}b"), json!("a\nb"), json!("x".repeat(256))]
        {
            assert!(refusal_of(&token_of(&claims_with(json!({"sub": sub})))).contains("`sub`"));
        }
        assert!(refusal_of(&token_of(&json!({"exp": NOW_S + 10}))).contains("`sub`"));
        for aud in [json!(PUBLIC_KEY), json!(["other", PUBLIC_KEY])] {
            assert!(verify_now(&token_of(&claims_with(json!({"aud": aud}))), &[secret()]).is_ok());
        }
        for aud in [json!("ch_there"), json!([]), json!(7)] {
            assert!(refusal_of(&token_of(&claims_with(json!({"aud": aud})))).contains("`aud`"));
        }
        let duplicate_sub = format!(r#"{{"sub":"user-81","sub":"admin","exp":{}}}"#, NOW_S + 10);
        let header = BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256"}"#);
        let signed_part = format!("{header}.{}", BASE64_URL_SAFE_NO_PAD.encode(duplicate_sub));
        let mac = mac_of(&secret(), &signed_part).expect("mac").finalize().into_bytes();
        assert!(refusal_of(&format!("{signed_part}.{}", BASE64_URL_SAFE_NO_PAD.encode(mac))).contains("claims"));
    }
}
