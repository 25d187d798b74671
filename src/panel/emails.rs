//! The e-mails sent to people: invitations, and links to choose a password.

use actix_web::http::header::{ACCEPT_LANGUAGE, HeaderMap};
use hotline_persistence::tables::people::Language;
use hotline_persistence::tables::people::links::LinkKind;
use unicode_normalization::char::is_combining_mark;

use crate::mail::OutgoingEmail;

/// A link of one account. An e-mail contains one link, so that it names the company and the people of no other account.
pub(super) struct AccountLink {
    pub(super) kind: LinkKind,
    /// The company's name; `None` for the installation.
    pub(super) company: Option<String>,
    pub(super) url: String,
}

/// Maximum characters of a person's or company's name in an e-mail: too few to carry spam.
const NAME_CHARACTERS_MAX: usize = 60;

/// The space and the ASCII punctuation that are allowed in names. A full stop has its own rule.
const NAME_MARKS: &str = " '-,&";

/// The recipient of an e-mail.
pub(super) struct Recipient {
    pub(super) name: String,
    pub(super) email: String,
    pub(super) language: Language,
}

/// The first supported language of the request's `Accept-Language` header.
pub(super) fn preferred_language(headers: &HeaderMap) -> Option<Language> {
    let languages = headers.get(ACCEPT_LANGUAGE)?.to_str().ok()?;
    languages.split(',').find_map(|language| match language.trim().get(..2)?.to_ascii_lowercase().as_str() {
        "en" => Some(Language::English),
        "pt" => Some(Language::Portuguese),
        "es" => Some(Language::Spanish),
        _ => None,
    })
}

/// A text of an e-mail in English, Portuguese and Spanish.
type Translations = [&'static str; 3];

const INVITATION_SUBJECT: Translations =
    ["Your invitation to {place}", "Seu convite para {place}", "Su invitación a {place}"];
const RESET_SUBJECT: Translations = ["Reset your password", "Redefina sua senha", "Restablezca su contraseña"];
const GREETING: Translations = ["Hello {name},", "Olá, {name},", "Hola, {name}:"];
const GREETING_WITHOUT_NAME: Translations = ["Hello,", "Olá,", "Hola:"];
const INVITATION_TEXT: Translations = [
    "You have been invited to join {place}. Sign in with {email}.",
    "Você recebeu um convite para trabalhar em {place}. Seu login é {email}.",
    "Ha recibido una invitación para trabajar en {place}. Inicie sesión con {email}.",
];
const RESET_TEXT: Translations = [
    "A password reset was requested for {email}.",
    "Foi solicitada a redefinição da senha de {email}.",
    "Se ha solicitado restablecer la contraseña de {email}.",
];
const INVITATION_LINK: Translations = [
    "Choose your password for {place} within 7 days:",
    "Escolha sua senha para {place} em até 7 dias:",
    "Elija su contraseña para {place} en un plazo de 7 días:",
];
const RESET_LINK: Translations = [
    "Choose a new password for {place} within one hour:",
    "Escolha uma nova senha para {place} em até uma hora:",
    "Elija una contraseña nueva para {place} en el plazo de una hora:",
];
const CLOSING: Translations = [
    "If you did not expect this e-mail, you can ignore it.",
    "Se você não esperava este e-mail, pode ignorá-lo.",
    "Si no esperaba este correo, puede ignorarlo.",
];

/// The e-mail with this link.
pub(super) fn link_email(to: &Recipient, link: &AccountLink) -> OutgoingEmail {
    let language_index = match to.language {
        Language::English => 0,
        Language::Portuguese => 1,
        Language::Spanish => 2,
    };
    let company = sanitize_name(link.company.as_deref().unwrap_or("Hotline"));
    let name = sanitize_name(&to.name);
    let render = |texts: Translations| {
        // An e-mail address may have braces, unlike a sanitized name. It is inserted last, so that nothing in it is
        // replaced.
        texts[language_index].replace("{place}", &company).replace("{name}", &name).replace("{email}", &to.email)
    };
    let (subject, opening, link_line) = match link.kind {
        LinkKind::Invitation => (INVITATION_SUBJECT, INVITATION_TEXT, INVITATION_LINK),
        LinkKind::Reset => (RESET_SUBJECT, RESET_TEXT, RESET_LINK),
    };
    // The name may be empty after sanitizing.
    let greeting = if name.is_empty() { GREETING_WITHOUT_NAME } else { GREETING };
    let text = [render(greeting), render(opening), format!("{}\n{}", render(link_line), link.url), render(CLOSING)]
        .join("\n\n")
        + "\n";
    OutgoingEmail { to: to.email.clone(), subject: render(subject), text }
}

/// A name as it may appear in an e-mail: one short line of words. A person can choose any name, so it must not contain
/// an address or markup, or look like one: `https://evil.example` becomes words.
fn sanitize_name(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    let replaced = characters.iter().enumerate().map(|(index, character)| {
        // Mail programs turn words that are joined by full stops into links.
        let is_stop = *character == '.' && characters.get(index + 1).is_none_or(|next| next.is_whitespace());
        let is_allowed =
            is_stop || character.is_alphanumeric() || is_combining_mark(*character) || NAME_MARKS.contains(*character);
        if is_allowed { *character } else { ' ' }
    });
    let text: String = replaced.collect();
    let words = text.split_whitespace().collect::<Vec<&str>>().join(" ");
    let short: String = words.chars().take(NAME_CHARACTERS_MAX).collect();
    short.trim_matches([' ', ',', '-', '&']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipient(name: &str, language: Language) -> Recipient {
        Recipient { name: name.to_owned(), email: "ana@example.com".to_owned(), language }
    }

    fn link(kind: LinkKind, company: Option<&str>) -> AccountLink {
        let url = "https://desk.example/panel/welcome#1.a".to_owned();
        AccountLink { kind, company: company.map(str::to_owned), url }
    }

    #[test]
    fn an_email_names_its_company_and_has_no_unfilled_placeholders() {
        for (language, subject, line) in [
            (Language::English, "Reset your password", "Choose a new password for Hotline within one hour:"),
            (Language::Portuguese, "Redefina sua senha", "Escolha uma nova senha para Hotline em até uma hora:"),
            (
                Language::Spanish,
                "Restablezca su contraseña",
                "Elija una contraseña nueva para Hotline en el plazo de una hora:",
            ),
        ] {
            let reset = link_email(&recipient("Ana {place}", language), &link(LinkKind::Reset, None));
            assert_eq!((reset.to.as_str(), reset.subject.as_str()), ("ana@example.com", subject));
            let with_link = format!("{line}\nhttps://desk.example/panel/welcome#1.a\n");
            assert!(reset.text.contains(&with_link) && reset.text.contains("Ana place"), "{}", reset.text);
            assert!(!reset.text.contains('{'), "{}", reset.text);
        }
        let invited =
            link_email(&recipient("Ana", Language::English), &link(LinkKind::Invitation, Some("Acme {name} Ltd.")));
        assert_eq!(invited.subject, "Your invitation to Acme name Ltd.");
        assert!(invited.text.contains("Sign in with ana@example.com."), "{}", invited.text);
        assert!(invited.text.starts_with("Hello Ana,\n"), "{}", invited.text);
        let braced = Recipient { email: "{place}{name}@example.com".to_owned(), ..recipient("Ana", Language::English) };
        for (kind, end) in [
            (LinkKind::Invitation, "Sign in with {place}{name}@example.com.\n"),
            (LinkKind::Reset, "for {place}{name}@example.com.\n"),
        ] {
            let text = link_email(&braced, &link(kind, Some("Acme"))).text;
            assert!(text.contains(end), "{text}");
        }
        let unnamed = link_email(&recipient("<>", Language::English), &link(LinkKind::Invitation, Some("Acme")));
        assert!(unnamed.text.starts_with("Hello,\n"), "{}", unnamed.text);
    }

    #[test]
    fn a_name_in_an_email_contains_no_address_or_markup() {
        for (name, expected) in [
            ("Ana Souza", "Ana Souza"),
            ("J. R. O'Neil-Smith", "J. R. O'Neil-Smith"),
            ("Müller & Söhne, Inc.", "Müller & Söhne, Inc."),
            ("山田 太郎", "山田 太郎"),
            ("हिन्दी", "हिन्दी"),
            ("e\u{301}lise", "e\u{301}lise"),
            ("claim it at https://evil.example/x?a=1", "claim it at https evil example x a 1"),
            ("evil.example", "evil example"),
            ("www.evil.example.", "www evil example."),
            ("evil。example", "evil example"),
            ("evil．example", "evil example"),
            ("evil․example", "evil example"),
            ("a@evil.example", "a evil example"),
            ("mailto:a＠evil.example", "mailto a evil example"),
            ("<a href=\"https://evil.example\">here</a>", "a href https evil example here a"),
            ("[here](//evil.example)", "here evil example"),
            ("**bold** `code` _x_ #1", "bold code x 1"),
            ("Ana\r\nBcc: b@evil.example", "Ana Bcc b evil example"),
            ("Ana\u{202e}elpmaxe.live", "Ana elpmaxe live"),
            ("evil\u{200b}.example", "evil example"),
            ("127.0.0.1:80", "127 0 0 1 80"),
            (" - , ", ""),
        ] {
            assert_eq!(sanitize_name(name), expected, "{name}");
        }
        assert_eq!(sanitize_name(&"a".repeat(300)).chars().count(), NAME_CHARACTERS_MAX);
    }

    #[test]
    fn the_first_supported_language_is_preferred() {
        let language_of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_LANGUAGE, text.parse().expect("a header"));
            preferred_language(&headers)
        };
        assert_eq!(language_of("fr-CH, PT-br;q=0.9, en;q=0.8"), Some(Language::Portuguese));
        assert_eq!(language_of("es"), Some(Language::Spanish));
        assert_eq!((language_of("*"), language_of("é"), language_of("")), (None, None, None));
        assert_eq!(preferred_language(&HeaderMap::new()), None);
    }
}
