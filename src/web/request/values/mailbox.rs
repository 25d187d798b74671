//! Validates e-mail addresses: a mailbox of RFC 5321, with the non-ASCII characters that RFC 6531 adds.

use std::net::{Ipv4Addr, Ipv6Addr};

use hotline_persistence::visible_text;

/// Maximum bytes before the `@`. <https://www.rfc-editor.org/rfc/rfc5321#section-4.5.3.1.1>
const LOCAL_BYTES_MAX: usize = 64;
/// Maximum bytes after the `@`. <https://www.rfc-editor.org/rfc/rfc5321#section-4.5.3.1.2>
const DOMAIN_BYTES_MAX: usize = 255;
/// Maximum bytes of a label of a domain. <https://www.rfc-editor.org/rfc/rfc1035#section-2.3.4>
const LABEL_BYTES_MAX: usize = 63;

/// Whether a text is an address: `local-part@domain`. <https://www.rfc-editor.org/rfc/rfc5321#section-4.1.2>
pub(super) fn is_mailbox(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(local, domain)| is_local_part(local) && is_domain(domain))
}

fn is_local_part(local: &str) -> bool {
    if local.len() > LOCAL_BYTES_MAX {
        return false;
    }
    match local.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"').is_some_and(is_quoted_content),
        None => local.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom_character)),
    }
}

fn is_atom_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(character) || is_visible_non_ascii(character)
}

/// Whether this may be inside the quotes of a local part, where a backslash escapes the next character.
fn is_quoted_content(text: &str) -> bool {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let is_valid = match character {
            '\\' => characters.next().is_some_and(|escaped| matches!(escaped, ' '..='~')),
            '"' => false,
            ' '..='~' => true,
            _ => is_visible_non_ascii(character),
        };
        if !is_valid {
            return false;
        }
    }
    true
}

fn is_domain(domain: &str) -> bool {
    if domain.len() > DOMAIN_BYTES_MAX {
        return false;
    }
    match domain.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(is_address_literal),
        None => domain.split('.').all(is_label),
    }
}

/// An IP address in place of a domain name.
fn is_address_literal(text: &str) -> bool {
    match text.split_at_checked("IPv6:".len()) {
        Some((tag, address)) if tag.eq_ignore_ascii_case("IPv6:") => address.parse::<Ipv6Addr>().is_ok(),
        _ => text.parse::<Ipv4Addr>().is_ok(),
    }
}

fn is_label(label: &str) -> bool {
    let is_label_character = |character: char| {
        // Names in some scripts contain joiners.
        let is_joiner = matches!(character, '\u{200c}' | '\u{200d}');
        character.is_ascii_alphanumeric() || character == '-' || is_joiner || is_visible_non_ascii(character)
    };
    let is_bounded = !label.is_empty() && label.len() <= LABEL_BYTES_MAX;
    is_bounded && label.chars().all(is_label_character) && !label.starts_with('-') && !label.ends_with('-')
}

fn is_visible_non_ascii(character: char) -> bool {
    !character.is_ascii() && !visible_text::is_invisible(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mailboxes_are_accepted() {
        let long = |local: usize, label: usize| format!("{}@{}.example", "a".repeat(local), "b".repeat(label));
        for valid in [
            "maria@example.com",
            "mail@köln.example",
            "用户@例子.广告",
            "a+b.c@sub.museum",
            "o'brien@x.photography",
            "mail@xn--kln-sna.example",
            "UPPER@Example.COM",
            "müller@x.example",
            "root@localhost",
            "\"a b\\\"@\"@x.example",
            "a@[192.0.2.7]",
            "a@[IPv6:2001:db8::1]",
            &long(64, 63),
        ] {
            assert!(is_mailbox(valid), "{valid}");
        }
        for invalid in [
            "",
            "plain",
            "a@",
            "@x.de",
            "a@b@c.de",
            "a b@c.de",
            "a@b c.de",
            "a@.de",
            "a@x..de",
            "a@x.de.",
            "a@-x.de",
            "a@x-.de",
            "a@x_y.de",
            ".a@x.de",
            "a.@x.de",
            "a..b@x.de",
            "<a@x.de>",
            "a@x.de>",
            "a@x.de,b@x.de",
            "a@x.de\u{2028}",
            "a\u{200b}@x.de",
            "a@x\u{ad}.de",
            "\"a@x.de",
            "\"a\"b\"@x.de",
            "a@[192.0.2]",
            "a@[x.de]",
            &long(65, 1),
            &long(1, 64),
        ] {
            assert!(!is_mailbox(invalid), "{invalid}");
        }
    }
}
