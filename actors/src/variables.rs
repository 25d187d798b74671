//! Variables in texts: `{{name}}` becomes the contact's name.
//!
//! A variable is `{{`, a name, `}}`. The name contains no braces and no line break, and spaces around it are ignored.
//! Everything else is text and stays as it is. A variable that is unknown or has no value is removed. A value is
//! inserted as text: variables in it are not replaced.

use std::borrow::Cow;
use std::collections::HashMap;

use chrono::{DateTime, Timelike, Utc};
use chrono_tz::Tz;
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::tickets::TicketRow;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// The parts of a text, in order.
struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let rest = self.0;
        let mut search_from = 0;
        while let Some(offset) = rest[search_from..].find("{{") {
            let start = search_from + offset;
            let inside = &rest[start + 2..];
            match inside.find(['{', '}', '\n', '\r']) {
                Some(end) if inside[end..].starts_with("}}") && start == 0 => {
                    self.0 = &inside[end + 2..];
                    return Some(Piece::Variable(inside[..end].trim()));
                }
                Some(end) if inside[end..].starts_with("}}") => {
                    self.0 = &rest[start..];
                    return Some(Piece::Text(&rest[..start]));
                }
                // A variable may begin at a later brace.
                _ => search_from = start + 1,
            }
        }
        self.0 = "";
        (!rest.is_empty()).then_some(Piece::Text(rest))
    }
}

/// The names of the variables in a text, in order.
pub fn variable_names(text: &str) -> impl Iterator<Item = &str> {
    Pieces(text).filter_map(|piece| match piece {
        Piece::Variable(name) => Some(name),
        Piece::Text(_) => None,
    })
}

/// The text with every variable replaced by its value; `None` if it would exceed `bytes_max` bytes.
pub fn render<'v>(
    text: &str,
    bytes_max: usize,
    mut value_of: impl FnMut(&str) -> Option<Cow<'v, str>>,
) -> Option<String> {
    let mut rendered = String::with_capacity(text.len().min(bytes_max));
    for piece in Pieces(text) {
        let part = match piece {
            Piece::Text(text) => Cow::Borrowed(text),
            Piece::Variable(name) => value_of(name).unwrap_or_default(),
        };
        // Checked before it grows: a few bytes of variables may expand to very many.
        if rendered.len() + part.len() > bytes_max {
            return None;
        }
        rendered.push_str(&part);
    }
    Some(rendered)
}

/// The contact's values that a ticket does not include. A sender loads them before it renders a text that may refer to
/// them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContactValues {
    /// The e-mail address.
    pub email: Option<String>,
    /// The values of the custom fields, by key.
    pub custom: HashMap<String, String>,
}

impl ContactValues {
    /// Whether the value of this variable may be among the contact's values.
    pub fn may_include(name: &str) -> bool {
        !TICKET_VARIABLES.contains(&name)
    }
}

/// Variables whose values are in a ticket, the reference to its contact, or its company's directory.
const TICKET_VARIABLES: &[&str] =
    &["name", "firstName", "number", "ticketId", "queue", "agent", "channel", "company", "date", "time", "greeting"];

/// The values of all variables, for one ticket at one moment.
pub struct Values<'a> {
    /// The ticket's row.
    pub ticket: &'a TicketRow,
    /// Its contact.
    pub contact: &'a ContactRef,
    /// Its company's directory.
    pub organization: &'a Organization,
    /// The time at which the text is rendered.
    pub now: DateTime<Utc>,
    /// The contact's values that the ticket does not include.
    pub contact_values: &'a ContactValues,
}

impl<'a> Values<'a> {
    /// The value of a variable: a built-in one, else the contact's custom field with this key, else the company's
    /// global variable with this key.
    pub fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        let Self { ticket, contact, organization, contact_values, .. } = self;
        let borrowed = |text: &'a str| Some(Cow::Borrowed(text));
        match name {
            "name" => borrowed(&contact.name),
            "firstName" => contact.name.split_whitespace().next().map(Cow::Borrowed),
            "number" => contact.number.as_deref().map(Cow::Borrowed),
            "email" => contact_values.email.as_deref().map(Cow::Borrowed),
            "ticketId" => Some(Cow::Owned(ticket.id.to_string())),
            "queue" => {
                let queue = ticket.queue_id.and_then(|id| organization.queues.get(&id));
                queue.map(|queue| Cow::Borrowed(queue.row.name.as_str()))
            }
            "agent" => {
                let user = ticket.user_id.and_then(|id| organization.users.get(&id));
                user.map(|user| Cow::Borrowed(user.name.as_str()))
            }
            "channel" => {
                let channel = organization.channels.get(&ticket.channel_id);
                channel.map(|channel| Cow::Borrowed(channel.name.as_str()))
            }
            "company" => borrowed(&organization.company.name),
            "date" => Some(Cow::Owned(self.local_time().format("%Y-%m-%d").to_string())),
            "time" => Some(Cow::Owned(self.local_time().format("%H:%M").to_string())),
            "greeting" => borrowed(greeting(self.local_time().hour())),
            key => {
                let custom = contact_values.custom.get(key).filter(|value| !value.is_empty());
                let value = custom.or_else(|| organization.global_variables.get(key));
                value.map(|value| Cow::Borrowed(value.as_str()))
            }
        }
    }

    /// The current time in the company's time zone; UTC if the zone is unknown.
    fn local_time(&self) -> DateTime<Tz> {
        let zone = self.organization.company.time_zone.parse().unwrap_or(Tz::UTC);
        self.now.with_timezone(&zone)
    }
}

/// The greeting for this hour.
fn greeting(hour: u32) -> &'static str {
    match hour {
        5..=11 => "Good morning",
        12..=17 => "Good afternoon",
        _ => "Good evening",
    }
}

#[cfg(test)]
mod tests {
    use hotline_persistence::tables::global_variables::BUILT_IN;
    use proptest::prelude::*;

    use super::*;

    fn value_of(name: &str) -> Option<Cow<'static, str>> {
        match name {
            "name" => Some(Cow::Borrowed("Zoe")),
            "sly" => Some(Cow::Borrowed("{{name}}")),
            "half" => Some(Cow::Borrowed("{{")),
            "braces" => Some(Cow::Borrowed("}}")),
            "empty" => Some(Cow::Borrowed("")),
            _ => None,
        }
    }

    fn rendered(text: &str) -> String {
        render(text, usize::MAX, value_of).expect("no limit")
    }

    #[test]
    fn a_variable_is_replaced_by_its_value_and_an_unknown_one_by_nothing() {
        for (text, expected) in [
            ("", ""),
            ("hello", "hello"),
            ("{{name}}", "Zoe"),
            ("Hello {{name}}!", "Hello Zoe!"),
            ("{{ name }}{{\tname}}", "ZoeZoe"),
            ("a{{unknown}}b{{empty}}c", "abc"),
            ("{{}}|{{  }}", "|"),
            ("{{Name}} {{NAME}}", " "),
            ("{{nome do cliente}}", ""),
            ("é{{name}}é", "éZoeé"),
        ] {
            assert_eq!(rendered(text), expected, "{text}");
        }
    }

    #[test]
    fn other_braces_stay_unchanged() {
        for text in [
            "{{unknown",
            "}}",
            "{ {name} }",
            "{name}",
            "{{na{me}}",
            "{{na\nme}}",
            "{{na}me}}",
            "{{name}",
            "{{{{",
            "a}}b{{",
        ] {
            assert_eq!(rendered(text), text);
        }
        // The innermost braces count.
        assert_eq!(rendered("{{{name}}}"), "{Zoe}");
        assert_eq!(rendered("{{ {{name}} }}"), "{{ Zoe }}");
        assert_eq!(rendered("{{a\n{{name}}"), "{{a\nZoe");
    }

    #[test]
    fn a_value_is_not_rendered_again() {
        assert_eq!(rendered("{{sly}}"), "{{name}}");
        assert_eq!(rendered("{{half}}name{{braces}}"), "{{name}}");
    }

    #[test]
    fn a_text_beyond_the_limit_is_none() {
        assert_eq!(render("{{name}}{{name}}", 6, value_of).as_deref(), Some("ZoeZoe"));
        assert_eq!(render("{{name}}{{name}}", 5, value_of), None);
        // Rendering stops at the limit, long before the text takes gigabytes.
        let large = "x".repeat(1 << 20);
        let calls = std::cell::Cell::new(0);
        let value = |_: &str| {
            calls.set(calls.get() + 1);
            Some(Cow::Borrowed(large.as_str()))
        };
        assert_eq!(render(&"{{x}}".repeat(10_000), 1 << 20, value), None);
        assert_eq!(calls.get(), 2);
    }

    #[test]
    fn the_greeting_depends_on_the_hour() {
        let greetings: Vec<&str> = (0..24).map(greeting).collect();
        assert!(greetings[..5].iter().chain(&greetings[18..]).all(|greeting| *greeting == "Good evening"));
        assert!(greetings[5..12].iter().all(|greeting| *greeting == "Good morning"));
        assert!(greetings[12..18].iter().all(|greeting| *greeting == "Good afternoon"));
    }

    #[test]
    fn the_ticket_has_the_values_of_all_built_in_variables_except_email() {
        assert!(TICKET_VARIABLES.iter().all(|name| BUILT_IN.contains(name)));
        let of_contact: Vec<_> = BUILT_IN.iter().filter(|name| ContactValues::may_include(name)).collect();
        assert_eq!(of_contact, [&"email"]);
        assert!(ContactValues::may_include("shoeSize"));
    }

    /// Texts full of braces and names.
    fn texts() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec![
            "{",
            "}",
            "{{",
            "}}",
            "{{name}}",
            "{{sly}}",
            "{{unknown}}",
            " ",
            "\n",
            "name",
            "é",
            "😀",
        ]);
        prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn the_pieces_of_a_text_add_up_to_it(text in texts()) {
            let mut rest = text.as_str();
            for piece in Pieces(&text) {
                match piece {
                    Piece::Text(part) => {
                        prop_assert!(!part.is_empty());
                        rest = rest.strip_prefix(part).expect("the next part");
                    }
                    Piece::Variable(name) => {
                        let is_name = !name.contains(['{', '}', '\n', '\r']);
                        prop_assert!(is_name);
                        let inside = rest.strip_prefix("{{").expect("it begins").trim_start();
                        rest = inside.strip_prefix(name).expect("its name").trim_start();
                        rest = rest.strip_prefix("}}").expect("it ends");
                    }
                }
            }
            prop_assert_eq!(rest, "");
        }

        #[test]
        fn a_text_without_variables_is_unchanged(text in any::<String>()) {
            if variable_names(&text).next().is_none() {
                prop_assert_eq!(rendered(&text), text);
            }
        }

        #[test]
        fn variables_with_their_own_text_as_value_restore_the_text(text in texts()) {
            // Only the spaces around names are lost, so the texts are compared without spaces.
            let own = |name: &str| Some(Cow::Owned(format!("{{{{{name}}}}}")));
            let restored = render(&text, usize::MAX, own).expect("no limit");
            prop_assert_eq!(restored.replace([' '], ""), text.replace([' '], ""));
        }

        #[test]
        fn a_text_within_the_limit_is_rendered_in_full(text in texts(), bytes_max in 0_usize..80) {
            let whole = rendered(&text);
            let expected = (whole.len() <= bytes_max).then_some(whole);
            prop_assert_eq!(render(&text, bytes_max, value_of), expected);
        }
    }
}
