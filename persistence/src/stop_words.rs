//! Words with which contacts opt out of campaigns.

use unicode_normalization::UnicodeNormalization;

/// Maximum words of a company: each is compared with every short inbound message.
pub const WORDS_MAX: usize = 50;

/// Maximum characters of a word. A word must be the whole message, so longer messages cannot match.
pub const CHARACTERS_MAX: usize = 60;

/// Maximum bytes of a message that can match: up to four bytes per character, and as much again for accents.
const BYTES_MAX: usize = 2 * 4 * CHARACTERS_MAX;

/// The normalized form of a word: trimmed, lower case, without accents.
pub fn fold(text: &str) -> String {
    let is_accent = |c: &char| ('\u{300}'..='\u{36f}').contains(c);
    let folded: String = text.trim().nfkd().filter(|c| !is_accent(c)).flat_map(char::to_lowercase).collect();
    // The normalization of an accent without a letter is a space and the accent.
    folded.trim().to_owned()
}

/// Whether a message consists of one of these normalized words; punctuation, symbols and emoji around it do not count.
pub fn is_one_of(words: &[String], message: &str) -> bool {
    let message = message.trim();
    if message.is_empty() || message.len() > BYTES_MAX {
        return false;
    }
    let message = fold(message);
    let trimmed_message = trim_symbols(&message);
    let is_match =
        |word: &String| *word == message || (!trimmed_message.is_empty() && trim_symbols(word) == trimmed_message);
    words.iter().any(is_match)
}

/// A text from its first to its last letter or digit.
fn trim_symbols(text: &str) -> &str {
    text.trim_matches(|character: char| !character.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_must_be_the_whole_message_ignoring_case_and_accents() {
        let words = ["stop", "cancelar inscricao", "\u{1f6d1}"].map(str::to_owned);
        for message in ["STOP", " stop\n", "Stóp", "ＳＴＯＰ", "Cancelar Inscrição", "CANCELAR INSCRIC\u{327}A\u{303}O"]
        {
            assert!(is_one_of(&words, message), "{message}");
        }
        for message in [
            "STOP!",
            "Stop.",
            "\"STOP\"",
            "\u{ab}stop\u{bb}",
            "🛑 stop",
            "stop 🙏🏽",
            "¡Stop!",
            "*stop*",
            "🛑",
            "(cancelar inscrição)",
        ] {
            assert!(is_one_of(&words, message), "{message}");
        }
        for message in [
            "",
            " ",
            "!",
            "🙏",
            "stop it",
            "stop, o Zé não vem",
            "stopwatch",
            "st op",
            "s.t.o.p",
            "cancelar",
            &"stop ".repeat(100),
        ] {
            assert!(!is_one_of(&words, message), "{message}");
        }
        assert!(!is_one_of(&[], "stop") && !is_one_of(&[], ""));
        assert_eq!((fold("\u{a8}"), fold("stop\u{b4}")), (String::new(), "stop".to_owned()));
    }
}
