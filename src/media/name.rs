//! Normalization of file names.

use super::mime_type;

/// Maximum length of a name, as of every name in the API.
const CHARACTERS_MAX: usize = 255;

/// A name without folders and unprintable characters; a default name when nothing is left.
pub(super) fn of(declared: Option<&str>, mime_type: &str) -> String {
    let last = declared.unwrap_or_default().rsplit(['/', '\\']).next().unwrap_or_default();
    let visible: String = last.chars().filter(|character| is_visible(*character)).take(CHARACTERS_MAX).collect();
    let visible = visible.trim().trim_end_matches('.');
    if !visible.is_empty() {
        return visible.to_owned();
    }
    let extension = mime_type::extension(mime_type).map(|extension| format!(".{extension}"));
    format!("file{}", extension.unwrap_or_default())
}

/// The name with the extension of the file's type, for a picture, a sound or a video whose name has another one.
pub(super) fn with_extension_of(name: String, mime_type: &str) -> String {
    if !["image/", "audio/", "video/"].iter().any(|category| mime_type.starts_with(category)) {
        return name;
    }
    let Some(extension) = mime_type::extension(mime_type) else { return name };
    let (stem, own) = match name.rsplit_once('.') {
        Some((stem, own)) if !stem.is_empty() => (stem, own),
        _ => (name.as_str(), ""),
    };
    let is_same = own.eq_ignore_ascii_case(extension) || (extension == "jpg" && own.eq_ignore_ascii_case("jpeg"));
    if is_same { name } else { format!("{stem}.{extension}") }
}

/// Excludes control characters, which break headers and tables, and bidirectional controls, which display `gnp.exe` as
/// `exe.png`.
fn is_visible(character: char) -> bool {
    let changes_direction =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !character.is_control() && !changes_direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_could_do_harm() {
        for (declared, expected) in [
            ("photo.png", "photo.png"),
            ("../../etc/passwd", "passwd"),
            (r"C:\Users\Ana\Férias 1.png", "Férias 1.png"),
            ("a\0b\r\nc\".png", "abc\".png"),
            ("\u{202e}gnp.exe", "gnp.exe"),
            ("  notes.txt. ", "notes.txt"),
            ("", "file.png"),
            ("..", "file.png"),
            ("folder/", "file.png"),
        ] {
            assert_eq!(of(Some(declared), "image/png"), expected);
        }
        assert_eq!(of(None, "application/x-nobody-knows"), "file");
        assert_eq!(of(Some(&"ã".repeat(300)), "image/png").chars().count(), CHARACTERS_MAX);
    }

    #[test]
    fn a_files_name_has_the_extension_of_its_type() {
        for (name, mime_type, expected) in [
            ("photo.jpg", "image/png", "photo.png"),
            ("photo.JPEG", "image/jpeg", "photo.JPEG"),
            ("voice.m4a", "audio/ogg", "voice.ogg"),
            ("v.opus", "audio/ogg", "v.ogg"),
            ("picture", "image/png", "picture.png"),
            (".png", "image/png", ".png.png"),
            ("report.txt", "application/pdf", "report.txt"),
            ("scan", "image/x-nobody-knows", "scan"),
        ] {
            assert_eq!(with_extension_of(name.to_owned(), mime_type), expected, "{name} {mime_type}");
        }
    }
}
