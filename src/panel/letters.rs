//! The mails sent to people: invitations, and links to choose a password.

use actix_web::http::header::{ACCEPT_LANGUAGE, HeaderMap};
use hotline_persistence::tables::people::Language;
use hotline_persistence::tables::people::links::LinkKind;

use crate::mail::Letter;

/// A link with its kind and place.
pub(super) struct Way {
    pub(super) kind: LinkKind,
    /// `None`: the installation.
    pub(super) company: Option<String>,
    pub(super) url: String,
}

/// The recipient of a mail.
pub(super) struct Recipient {
    pub(super) name: String,
    pub(super) email: String,
    pub(super) language: Language,
}

/// The first supported language of the request's `Accept-Language` header.
pub(super) fn spoken(headers: &HeaderMap) -> Option<Language> {
    let asked = headers.get(ACCEPT_LANGUAGE)?.to_str().ok()?;
    asked.split(',').find_map(|wanted| match wanted.trim().get(..2)?.to_ascii_lowercase().as_str() {
        "en" => Some(Language::English),
        "pt" => Some(Language::Portuguese),
        "es" => Some(Language::Spanish),
        _ => None,
    })
}

/// A text of the mails in English, Portuguese and Spanish.
type Words = [&'static str; 3];

const INVITED: Words = ["Your invitation to {place}", "Seu convite para {place}", "Su invitación a {place}"];
const FORGOTTEN: Words = ["Choose a new password", "Escolha uma nova senha", "Elija una nueva contraseña"];
const HELLO: Words = ["Hello {name},", "Olá, {name}!", "Hola, {name}:"];
const WELCOME: Words = [
    "you are invited to work in {place}. You sign in with {email}.",
    "Você recebeu um convite para trabalhar em {place}. Seu login é {email}.",
    "Le han invitado a trabajar en {place}. Entrará con {email}.",
];
const ASKED: Words = [
    "a new password for {email} was asked for.",
    "Foi pedida uma nova senha para {email}.",
    "Se ha pedido una nueva contraseña para {email}.",
];
const WEEK: Words = [
    "{place}: choose a password here, within 7 days:",
    "{place}: escolha uma senha aqui, em até 7 dias:",
    "{place}: elija una contraseña aquí, en un plazo de 7 días:",
];
const HOUR: Words = [
    "{place}: choose another password here, within an hour:",
    "{place}: escolha outra senha aqui, em até uma hora:",
    "{place}: elija otra contraseña aquí, en el plazo de una hora:",
];
const UNEXPECTED: Words = [
    "If you did not expect this, do nothing: nothing changes.",
    "Se você não esperava por isso, não faça nada: nada muda.",
    "Si no esperaba este mensaje, no haga nada: nada cambia.",
];

/// The mail with these links, of which there is at least one.
pub(super) fn letter(to: &Recipient, ways: &[Way]) -> Letter {
    let at = match to.language {
        Language::English => 0,
        Language::Portuguese => 1,
        Language::Spanish => 2,
    };
    let place = |way: &Way| plain(way.company.as_deref().unwrap_or("Hotline"));
    let is_invitation = ways.iter().all(|way| way.kind == LinkKind::Invitation);
    let first = ways.first().map(place).unwrap_or_default();
    let say = |words: Words, place: &str| {
        // Text that people have typed is inserted last, so that placeholders in it are not replaced.
        let text = words[at].replace("{email}", &to.email);
        match text.split_once("{place}") {
            Some((before, after)) => format!("{before}{place}{after}"),
            None => text.replace("{name}", &plain(&to.name)),
        }
    };
    let (subject, opening) = if is_invitation { (INVITED, WELCOME) } else { (FORGOTTEN, ASKED) };
    let mut text = format!("{}\n\n{}\n", say(HELLO, ""), say(opening, &first));
    for way in ways {
        let until = if way.kind == LinkKind::Invitation { WEEK } else { HOUR };
        text.push_str(&format!("\n{}\n{}\n", say(until, &place(way)), way.url));
    }
    text.push_str(&format!("\n{}\n", say(UNEXPECTED, "")));
    Letter { to: to.email.clone(), subject: say(subject, &first), text }
}

/// A name as one line: typed text must not look like a part of the mail.
fn plain(name: &str) -> String {
    name.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ana(language: Language) -> Recipient {
        Recipient {
            name: "Ana {place}\nhttps://evil.example".to_owned(),
            email: "ana@example.com".to_owned(),
            language,
        }
    }

    #[test]
    fn a_letter_names_every_place_with_its_link_and_nothing_is_left_open() {
        let way = |kind, company: Option<&str>, url: &str| Way {
            kind,
            company: company.map(str::to_owned),
            url: url.to_owned(),
        };
        let ways = [
            way(LinkKind::Invitation, Some("Acme {name}"), "https://desk.example/panel/welcome#1.a"),
            way(LinkKind::Reset, None, "https://desk.example/panel/welcome#0.b"),
        ];
        for (language, subject, line) in [
            (Language::English, "Choose a new password", "Hotline: choose another password here, within an hour:"),
            (Language::Portuguese, "Escolha uma nova senha", "Hotline: escolha outra senha aqui, em até uma hora:"),
            (
                Language::Spanish,
                "Elija una nueva contraseña",
                "Hotline: elija otra contraseña aquí, en el plazo de una hora:",
            ),
        ] {
            let letter = letter(&ana(language), &ways);
            assert_eq!((letter.to.as_str(), letter.subject.as_str()), ("ana@example.com", subject));
            assert!(letter.text.contains(&format!("{line}\n{}\n", ways[1].url)), "{}", letter.text);
            assert!(letter.text.contains(&format!("\n{}\n", ways[0].url)), "{}", letter.text);
            assert!(
                letter.text.contains("Acme {name}: ") && letter.text.contains("Ana {place} https"),
                "{}",
                letter.text
            );
            assert!(!letter.text.contains("{email}"), "{}", letter.text);
        }
        let invited = letter(&ana(Language::English), &ways[..1]);
        assert_eq!(invited.subject, "Your invitation to Acme {name}");
        assert!(invited.text.contains("You sign in with ana@example.com."), "{}", invited.text);
    }

    #[test]
    fn the_language_is_the_first_that_is_known() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_LANGUAGE, text.parse().expect("a header"));
            spoken(&headers)
        };
        assert_eq!(of("fr-CH, PT-br;q=0.9, en;q=0.8"), Some(Language::Portuguese));
        assert_eq!(of("es"), Some(Language::Spanish));
        assert_eq!((of("*"), of("é"), of("")), (None, None, None));
        assert_eq!(spoken(&HeaderMap::new()), None);
    }
}
