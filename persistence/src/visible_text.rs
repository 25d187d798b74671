//! Normalizes and compares texts by their appearance: names that look the same, letters with several encodings,
//! invisible characters.
//!
//! Names are stored without the characters that are always invisible, and in Unicode's normalization form C (except
//! contacts' names in Latin script). Unique names are compared by their appearance, so that no two of them look the
//! same. Case is not changed.

use unicode_normalization::UnicodeNormalization;

/// A name as it is stored: in normalization form C, trimmed, and without characters that are always invisible.
pub fn normalize(text: &str) -> String {
    strip_invisible(text.nfc())
}

/// A contact's name as it is stored. In Latin script it is not composed (brought into form C), only trimmed and cleared
/// of characters that are always invisible. Others are composed, because a search finds only composed letters in them.
pub fn normalize_contact_name(text: &str) -> String {
    let is_latin = |letter: char| letter < '\u{250}' || ('\u{1e00}'..'\u{1f00}').contains(&letter);
    if text.nfc().all(|letter| is_latin(letter) || is_always_invisible(letter)) {
        strip_invisible(text.chars())
    } else {
        normalize(text)
    }
}

fn strip_invisible(text: impl Iterator<Item = char>) -> String {
    let visible: String = text.filter(|character| !is_always_invisible(*character)).collect();
    let trimmed = visible.trim_matches(is_invisible_at_edge);
    if trimmed.len() == visible.len() { visible } else { trimmed.to_owned() }
}

/// The appearance by which unique names are compared: without invisible characters, and with one space for each run of
/// blanks. The database's function `hotline_looks` does the same.
pub fn appearance(name: &str) -> String {
    let mut kept: Vec<char> = Vec::with_capacity(name.len());
    // Whether the previous character is a flag or one of its tags: elsewhere, tags are invisible.
    let mut follows_flag = false;
    for character in name.chars() {
        let is_kept =
            if is_tag(character) { follows_flag } else { is_blank_or_joiner(character) || !is_invisible(character) };
        follows_flag = character == FLAG || follows_flag && is_tag(character);
        // Of several joiners in a row, only the first has an effect.
        if is_kept && !(is_joiner(character) && kept.last().copied().is_some_and(is_joiner)) {
            kept.push(character);
        }
    }
    // A joiner is part of the appearance only between two characters that it shapes.
    let joins_neighbours = |index: usize, joiner: char| {
        let is_shaped = |index: usize| kept.get(index).is_some_and(|neighbour| is_shaped_by(joiner, *neighbour));
        index > 0 && is_shaped(index - 1) && is_shaped(index + 1)
    };
    let mut output = String::with_capacity(name.len());
    for (index, character) in kept.iter().copied().enumerate() {
        if renders_blank(character) {
            if !output.is_empty() && !output.ends_with(' ') {
                output.push(' ');
            }
        } else if !is_joiner(character) || joins_neighbours(index, character) {
            output.push(character);
        }
    }
    output.truncate(output.trim_end_matches(' ').len());
    output
}

/// Whether a text has more than one line.
pub fn has_line_break(text: &str) -> bool {
    text.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
}

/// A black flag: with tags after it, the flag of a region.
const FLAG: char = '\u{1f3f4}';

const NON_JOINER: char = '\u{200c}';
const JOINER: char = '\u{200d}';

fn is_tag(character: char) -> bool {
    matches!(character, '\u{e0020}'..='\u{e007f}')
}

fn is_joiner(character: char) -> bool {
    matches!(character, NON_JOINER | JOINER)
}

fn renders_blank(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{2800}' | '\u{3164}' | '\u{ffa0}')
}

fn is_blank_or_joiner(character: char) -> bool {
    renders_blank(character) || is_joiner(character)
}

/// Whether a character is rendered differently beside this joiner.
fn is_shaped_by(joiner: char, character: char) -> bool {
    match character {
        // Scripts of South and Southeast Asia, and Mongolian.
        '\u{900}'..='\u{dff}' | '\u{f00}'..='\u{109f}' | '\u{1780}'..='\u{18af}' => true,
        // Arabic, Syriac and related scripts.
        '\u{620}'..='\u{8ff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' => joiner == NON_JOINER,
        // Symbols and emoji.
        '\u{2190}'..='\u{27ff}' | '\u{2900}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}' => joiner == JOINER,
        _ => false,
    }
}

/// Whether a text has no visible character.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(is_invisible)
}

/// Whether a character on its own is invisible: blanks, format characters, and letters drawn as blanks. Some of
/// them matter between others: joiners, variation selectors, and the tags of a flag.
///
/// <https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt> (`Default_Ignorable_Code_Point`)
pub fn is_invisible(character: char) -> bool {
    character.is_whitespace()
        || character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Whether a character is invisible everywhere and never changes how its neighbours are rendered.
fn is_always_invisible(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{34f}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Whether a character is invisible and has no effect at the beginning or the end of a name. Other invisible
/// characters affect their neighbours even there: a variation selector or a tag changes the character before it, and a
/// mark may end the text direction that an earlier one began.
fn is_invisible_at_edge(character: char) -> bool {
    let changes_others = matches!(
        character,
        '\u{180b}'..='\u{180f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    is_invisible(character) && !changes_others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_of_one_name_are_normalized_to_the_same_text() {
        for variant in [
            "Ac\u{327}a\u{303}o",
            "A\u{e7}\u{e3}o\u{200b}",
            "\u{feff}A\u{e7}\u{ad}\u{e3}o",
            " Ação\u{200d} ",
            "Ação\u{3164}",
        ] {
            assert_eq!(normalize(variant), "Ação", "{variant:?}");
        }
        assert_ne!(normalize("AÇÃO"), normalize("ação"), "case is not changed");
        assert_eq!(normalize_contact_name(" Jose\u{301}\u{200b} "), "Jose\u{301}", "Latin: not composed");
        assert_eq!(normalize_contact_name("\u{304b}\u{3099}"), "\u{304c}", "not Latin: composed");
    }

    #[test]
    fn characters_that_shape_their_neighbours_are_not_removed() {
        // A family, a heart in colour, the flag of England, a Persian name with a joiner, a direction and its end.
        for text in [
            "👨\u{200d}👩\u{200d}👧",
            "❤\u{fe0f}",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "علی\u{200c}رضا",
            "\u{202e}evil\u{202c}",
        ] {
            assert_eq!(normalize(text), text);
            assert!(!is_blank(text));
        }
    }

    #[test]
    fn an_appearance_has_only_visible_characters() {
        for (name, expected) in [
            ("V\u{200d}I\u{200c}P", "VIP"),
            ("V\u{202e}I\u{202c}\u{2066}\u{200f}\u{200e}\u{61c}P\u{fe0f}\u{e0067}", "VIP"),
            ("\u{200f} big\u{a0} \u{3000}\u{3164}deal\u{2003} ", "big deal"),
            ("❤\u{fe0f}\u{200d}🔥", "❤\u{200d}🔥"),
            ("👨\u{200d}\u{200d}👩", "👨\u{200d}👩"),
            ("👨\u{200c}👩", "👨👩"),
            ("علی\u{200c}رضا", "علی\u{200c}رضا"),
            ("علی\u{200c} رضا\u{200c}", "علی رضا"),
            ("Ação AÇÃO", "Ação AÇÃO"),
            (" \u{200b}\u{2800}", ""),
        ] {
            assert_eq!(appearance(name), expected, "{name:?}");
        }
        let england = "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";
        assert_eq!(appearance(england), england);
        assert_eq!(appearance(&format!("{england}a\u{e0067}b")), format!("{england}ab"));
    }

    #[test]
    fn every_line_break_of_unicode_is_found() {
        for line_break in ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"] {
            assert!(has_line_break(&format!("a{line_break}b")), "{line_break:?}");
        }
        assert!(!has_line_break("a b\u{a0}c"));
    }

    #[test]
    fn a_text_of_invisible_characters_is_blank() {
        for text in [
            "",
            " \t\n",
            "\u{200b}\u{200d}",
            "\u{3164}",
            "\u{2800}",
            "\u{feff}",
            "\u{ad}",
            "\u{e0020}\u{e0041}",
            "\u{fe0f}",
        ] {
            assert!(is_blank(text), "{text:?}");
            assert!(is_blank(&normalize(text)), "{text:?}");
        }
        assert!(!is_blank("."));
    }
}
