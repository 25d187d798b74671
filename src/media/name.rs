//! Normalization of file names.

use super::mime_type;

/// Maximum length of a name, the same as for every name in the API.
const CHARACTERS_MAX: usize = 255;

/// Removes folders and unprintable characters from a name; returns a default name if nothing is left.
pub(super) fn normalize(declared: Option<&str>, mime_type: &str) -> String {
    let last_segment = declared.unwrap_or_default().rsplit(['/', '\\']).next().unwrap_or_default();
    let visible: String =
        last_segment.chars().filter(|character| is_visible(*character)).take(CHARACTERS_MAX).collect();
    let visible = visible.trim().trim_end_matches('.');
    if !visible.is_empty() {
        return visible.to_owned();
    }
    let extension = mime_type::extension(mime_type).map(|extension| format!(".{extension}"));
    format!("file{}", extension.unwrap_or_default())
}

/// Gives the name of a picture, a sound or a video the extension of its type, unless it already has that.
pub(super) fn with_extension_of(name: String, mime_type: &str) -> String {
    if !["image/", "audio/", "video/"].iter().any(|category| mime_type.starts_with(category)) {
        return name;
    }
    let Some(extension) = mime_type::extension(mime_type) else { return name };
    let (stem, own_extension) = match name.rsplit_once('.') {
        Some((stem, own_extension)) if !stem.is_empty() => (stem, own_extension),
        _ => (name.as_str(), ""),
    };
    let is_same = own_extension.eq_ignore_ascii_case(extension)
        || (extension == "jpg" && own_extension.eq_ignore_ascii_case("jpeg"));
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
    fn names_lose_folders_and_unprintable_characters() {
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
            assert_eq!(normalize(Some(declared), "image/png"), expected);
        }
        assert_eq!(normalize(None, "application/x-nobody-knows"), "file");
        assert_eq!(normalize(Some(&"ã".repeat(300)), "image/png").chars().count(), CHARACTERS_MAX);
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
