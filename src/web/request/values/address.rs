//! The e-mail address that a person signs in with.

use std::fmt;

use serde_json::{Value, json};

use super::{Email, FromField};

/// The e-mail address of a person who signs in: e-mails are sent to it and contain it. It is a mailbox of RFC 5321, of
/// atoms joined by dots and a domain name; letters may be of any script (RFC 6531). Quoted names and numeric addresses,
/// which employers do not use, are refused, and so are texts that mail programs read as encoded words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInEmail(pub String);

impl FromField for SignInEmail {
    fn from_json(value: &Value) -> Result<Self, String> {
        let Email(text) = Email::from_json(value)?;
        if is_plain(&text) { Ok(Self(text)) } else { Err("must be an e-mail address".to_owned()) }
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

/// Whether a mailbox has no quoted name, encoded word or numeric address, and beyond ASCII only letters and digits.
fn is_plain(mailbox: &str) -> bool {
    mailbox
        .rsplit_once('@')
        .is_some_and(|(local, domain)| !local.starts_with('"') && !local.starts_with("=?") && !domain.starts_with('['))
        && mailbox.chars().all(|character| character.is_ascii() || character.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_mailboxes_are_accepted() {
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
