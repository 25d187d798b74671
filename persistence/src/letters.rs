//! What texts look like: the same letters in other code points, and characters that nobody sees.
//!
//! Names are stored in Unicode's normalization form C and without characters that show nothing, so that two of them that
//! look the same are the same. Case stays as it was written.

use unicode_normalization::UnicodeNormalization;

/// A name as it is stored and compared: composed, without what nobody sees, and without blanks around it.
pub fn composed(text: &str) -> String {
    let seen: String = text.nfc().filter(|character| !is_left_out(*character)).collect();
    let trimmed = seen.trim_matches(shows_nothing_at_an_end);
    if trimmed.len() == seen.len() { seen } else { trimmed.to_owned() }
}

/// Whether a text shows nothing at all.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(shows_nothing)
}

/// Whether a character shows nothing by itself: blanks, format characters, and letters that are drawn as blanks. Some of
/// them matter between others: joiners, variation selectors, and the tags of a flag.
///
/// <https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt> (`Default_Ignorable_Code_Point`)
pub fn shows_nothing(character: char) -> bool {
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

/// Characters that show nothing wherever they are, and change nothing of their neighbours.
fn is_left_out(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{34f}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Characters that show nothing at the beginning or the end. A variation selector or a tag belongs to the emoji before it,
/// and the end of a direction to its beginning.
fn shows_nothing_at_an_end(character: char) -> bool {
    let belongs_to_another = matches!(
        character,
        '\u{180b}'..='\u{180f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    shows_nothing(character) && !belongs_to_another
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_the_same_are_the_same() {
        for twin in [
            "Ac\u{327}a\u{303}o",
            "A\u{e7}\u{e3}o\u{200b}",
            "\u{feff}A\u{e7}\u{ad}\u{e3}o",
            " Ação\u{200d} ",
            "Ação\u{3164}",
        ] {
            assert_eq!(composed(twin), "Ação", "{twin:?}");
        }
        assert_ne!(composed("AÇÃO"), composed("ação"), "case stays");
    }

    #[test]
    fn what_shapes_its_neighbours_stays() {
        // A family, a heart in colour, the flag of England, a Persian name with a joiner, a direction and its end.
        for whole in [
            "👨\u{200d}👩\u{200d}👧",
            "❤\u{fe0f}",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "علی\u{200c}رضا",
            "\u{202e}evil\u{202c}",
        ] {
            assert_eq!(composed(whole), whole);
            assert!(!is_blank(whole));
        }
    }

    #[test]
    fn what_shows_nothing_is_blank() {
        for nothing in [
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
            assert!(is_blank(nothing), "{nothing:?}");
            assert!(is_blank(&composed(nothing)), "{nothing:?}");
        }
        assert!(!is_blank("."));
    }
}
