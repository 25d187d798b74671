//! The e-mail address that somebody signs in with.

use std::fmt;

use serde_json::{Value, json};

use super::{Email, FromField};

/// Maximum bytes of the part before the `@`, of a label of the part behind it, and of that whole part (RFC 5321, 4.5.3.1).
const LOCAL_BYTES_MAX: usize = 64;
const LABEL_BYTES_MAX: usize = 63;
const DOMAIN_BYTES_MAX: usize = 255;

/// The marks of an atom (RFC 5321, 4.1.2), beside letters and digits.
const ATOM_MARKS: &str = "!#$%&'*+-/=?^_`{|}~";

/// The address of somebody who signs in: letters go to it, and it is shown in them. It is a mailbox as RFC 5321 describes it,
/// of atoms joined by dots and a domain name; letters may be of any script (RFC 6531). Quoted names and numeric addresses,
/// which nobody has who works somewhere, are not taken, nor what mail programs read as an encoded word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInEmail(pub String);

impl FromField for SignInEmail {
    fn from_json(value: &Value) -> Result<Self, String> {
        let Email(text) = Email::from_json(value)?;
        if is_mailbox(&text) { Ok(Self(text)) } else { Err("must be an e-mail address".to_owned()) }
    }

    fn schema() -> Value {
        json!({"type": "string", "format": "email", "maxLength": 255, "example": "maria@example.com"})
    }

    const IS_TEXT: bool = true;
}

impl From<SignInEmail> for Value {
    fn from(email: SignInEmail) -> Self {
        email.0.into()
    }
}

impl fmt::Display for SignInEmail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn is_mailbox(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let is_of_atom = |character: char| character.is_alphanumeric() || ATOM_MARKS.contains(character);
    let is_atom = |atom: &str| !atom.is_empty() && atom.chars().all(is_of_atom);
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|character| character.is_alphanumeric() || character == '-')
    };
    local.len() <= LOCAL_BYTES_MAX
        && !local.starts_with("=?")
        && local.split('.').all(is_atom)
        && domain.len() <= DOMAIN_BYTES_MAX
        && domain.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_mailbox_and_nothing_that_looks_like_markup() {
        for good in [
            "a@b.co",
            "ana.souza+hotline@mail.example.com",
            "o'neil@example.com",
            "ana@localhost",
            "josé@exemplo.com.br",
            "x_1/y=z@a-b.example",
            "用户@例子.中国",
        ] {
            assert_eq!(SignInEmail::from_json(&json!(good)).map(|email| email.0), Ok(good.to_owned()));
        }
        let long_local = format!("{}@b.co", "a".repeat(65));
        let long_label = format!("a@{}.co", "b".repeat(64));
        for bad in [
            "<a@b.co>",
            "a@b.co>",
            "=?utf-8?q?x?=@b.co",
            "a@b@c.co",
            ".a@b.co",
            "a.@b.co",
            "a..b@c.co",
            "a@b..co",
            "a@.co",
            "a@b.co.",
            "a@-b.co",
            "a@b-.co",
            "a@b_c.co",
            "a@[127.0.0.1]",
            "\"a b\"@c.co",
            "\"a\"@c.co",
            "a,b@c.co",
            "a;b@c.co",
            "a:b@c.co",
            "a(b)@c.co",
            "a\\b@c.co",
            "a\u{200b}b@c.co",
            "a\u{202e}b@c.co",
            "a@b.co/x",
            "a@b.co:25",
            "a@b。co",
            &long_local,
            &long_label,
            "@b.co",
            "a@",
        ] {
            assert!(SignInEmail::from_json(&json!(bad)).is_err(), "{bad}");
        }
    }
}
