//! Determines a file's type: from its content first, then from the declared type, then from its name.

use super::error::FileError;

/// Size of a file's head: the bytes from the beginning that are examined. All signatures are within this range.
pub(super) const HEAD_BYTES: usize = 8 * 1024;

/// Maximum length of a type: RFC 6838 allows 127 on each side of the slash.
const TYPE_CHARACTERS_MAX: usize = 255;

/// What the sender of a file declares about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDeclaration {
    /// The content type.
    pub mime_type: Option<String>,
    /// The file name.
    pub file_name: Option<String>,
}

/// The type of unspecified bytes.
const OCTET_STREAM: &str = "application/octet-stream";

/// Types that say nothing about the content.
const MEANINGLESS_TYPES: &[&str] =
    &["application/octet-stream", "binary/octet-stream", "application/x-unknown", "unknown/unknown"];

/// Container formats that may hold audio or video: the first bytes do not show which.
const AUDIO_VIDEO_CONTAINERS: &[&str] = &[
    "video/mp4",
    "video/webm",
    "video/x-matroska",
    "video/quicktime",
    "video/x-ms-wmv",
    "video/mpeg",
    "video/3gpp",
    "audio/ogg",
];

/// Container formats of documents: the declared type may be more specific than the content shows.
const DOCUMENT_CONTAINERS: &[&str] =
    &["application/zip", "application/x-ole-storage", "application/gzip", "text/xml", "text/plain"];

/// Types of pictures with a fixed signature: a file without it is not of such a type, even if declared so.
const DETECTABLE_PICTURES: &[&str] = &["image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"];

/// Determines the type of a file with this head.
///
/// # Errors
/// [`FileError::TypeUnknown`] when it cannot be determined, [`FileError::TypeMismatch`] when the content does not
/// belong to the declared type's category, or is not the picture that is declared.
pub(super) fn detect(head: &[u8], declared: &FileDeclaration) -> Result<String, FileError> {
    let declared_type =
        declared.mime_type.as_deref().and_then(essence).or_else(|| type_of_name(declared.file_name.as_deref()?));
    match (type_of_content(head), declared_type) {
        // With a meaningless type or an unknown extension, the sender means unspecified bytes.
        (None, None) if declared.mime_type.as_deref().is_some_and(is_type) || has_extension(declared) => {
            Ok(OCTET_STREAM.to_owned())
        }
        (None, None) => Err(FileError::TypeUnknown),
        (None, Some(declared_type)) if DETECTABLE_PICTURES.contains(&declared_type.as_str()) => {
            Err(FileError::TypeMismatch)
        }
        (None, Some(declared_type)) => Ok(declared_type),
        (Some(content), None) => Ok(content.to_owned()),
        (Some(content), Some(declared_type)) if is_more_specific(content, &declared_type) => Ok(declared_type),
        (Some(content), Some(declared_type)) if Category::of(content) == Category::of(&declared_type) => {
            Ok(content.to_owned())
        }
        (Some(_), Some(_)) => Err(FileError::TypeMismatch),
    }
}

/// Categories of types. A difference within a category is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Category {
    Image,
    Audio,
    Video,
    Document,
}

impl Category {
    fn of(mime_type: &str) -> Self {
        match mime_type.split('/').next() {
            Some("image") => Self::Image,
            Some("audio") => Self::Audio,
            Some("video") => Self::Video,
            _ => Self::Document,
        }
    }
}

/// Whether the declared type is more specific than the content shows, and does not contradict it.
fn is_more_specific(content: &str, declared_type: &str) -> bool {
    if AUDIO_VIDEO_CONTAINERS.contains(&content) {
        let is_audio_or_video = matches!(Category::of(declared_type), Category::Audio | Category::Video);
        return is_audio_or_video && Category::of(declared_type) != Category::of(content);
    }
    if matches!(content, "text/xml" | "text/plain") && declared_type.ends_with("+xml") {
        return true; // Pictures as well: image/svg+xml.
    }
    let has_signature = infer::is_mime_supported(declared_type);
    DOCUMENT_CONTAINERS.contains(&content)
        && Category::of(declared_type) == Category::Document
        // Text that is declared as PDF is still text, but a ZIP file that is declared as a Word document may be one.
        && (content != "text/plain" || !has_signature)
}

/// The type that the content shows, if any.
fn type_of_content(head: &[u8]) -> Option<&'static str> {
    match infer::get(head).map(|kind| kind.mime_type()) {
        // Other names of the same types are normalized.
        Some("audio/m4a") => Some("audio/mp4"),
        Some("video/x-m4v") => Some("video/mp4"),
        Some("audio/opus") => Some("audio/ogg"),
        Some("audio/x-wav") => Some("audio/wav"),
        Some("audio/x-flac") => Some("audio/flac"),
        // Only EOT fonts, for which the library has no more specific type.
        Some("application/octet-stream") => None,
        Some(mime_type) => Some(mime_type),
        None => is_text(head).then_some("text/plain"),
    }
}

/// Whether these bytes are text: UTF-8 with no control characters other than those that occur in texts.
fn is_text(head: &[u8]) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The head may end within a character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    let is_allowed =
        |character: char| !character.is_control() || matches!(character, '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}');
    !text.is_empty() && text.chars().all(is_allowed)
}

/// The type for the extension of a file name, if any.
fn type_of_name(name: &str) -> Option<String> {
    mime_guess::from_path(name).first_raw().and_then(essence)
}

/// The type without its parameters; `None` when it is invalid or meaningless.
fn essence(mime_type: &str) -> Option<String> {
    let essence = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    (is_type(&essence) && !MEANINGLESS_TYPES.contains(&essence.as_str())).then_some(essence)
}

/// Whether a text has the syntax of a type.
fn is_type(text: &str) -> bool {
    let text = text.split(';').next().unwrap_or_default().trim();
    let is_word = |word: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
        !word.is_empty() && word.bytes().all(is_allowed)
    };
    let is_pair = text.split_once('/').is_some_and(|(kind, rest)| is_word(kind) && is_word(rest));
    is_pair && text.len() <= TYPE_CHARACTERS_MAX
}

/// Whether the name has an extension.
fn has_extension(declared: &FileDeclaration) -> bool {
    let name = declared.file_name.as_deref().map(std::path::Path::new);
    name.and_then(std::path::Path::extension).is_some_and(|extension| !extension.is_empty())
}

/// The usual extension of a type's files.
pub(super) fn extension(mime_type: &str) -> Option<&'static str> {
    // For these, the first in alphabetical order is not the usual one.
    match mime_type {
        "image/jpeg" => Some("jpg"),
        "text/plain" => Some("txt"),
        "audio/mpeg" => Some("mp3"),
        "audio/mp4" => Some("m4a"),
        "audio/ogg" => Some("ogg"),
        "video/mp4" => Some("mp4"),
        _ => mime_guess::get_mime_extensions_str(mime_type)?.first().copied(),
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    const PDF: &[u8] = b"%PDF-1.7\n";
    const ZIP: &[u8] = b"PK\x03\x04\x14\0\0\0\0\0";
    const NOISE: &[u8] = &[0x00, 0x9c, 0xff, 0x01, 0x80, 0x00, 0x17];

    /// The head of a WebM file, video or audio, long enough to be examined.
    fn webm() -> Vec<u8> {
        let mut webm =
            b"\x1a\x45\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\xf2\x81\x04B\xf3\x81\x08B\x82\x84webm".to_vec();
        webm.resize(512, 0);
        webm
    }

    fn detect(head: &[u8], mime_type: &str, file_name: &str) -> Result<String, FileError> {
        let non_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        super::detect(head, &FileDeclaration { mime_type: non_empty(mime_type), file_name: non_empty(file_name) })
    }

    #[track_caller]
    fn assert_type(head: &[u8], mime_type: &str, file_name: &str, expected: &str) {
        assert_eq!(detect(head, mime_type, file_name).as_deref(), Ok(expected));
    }

    #[test]
    fn the_content_precedes_the_declared_type_and_the_name() {
        assert_type(PNG, "", "", "image/png");
        assert_type(PNG, "application/octet-stream", "a", "image/png");
        assert_type(PNG, "image/jpeg", "a.jpg", "image/png");
        assert_type(NOISE, "Application/X-Thing; v=1", "a.bin", "application/x-thing");
        assert_type(NOISE, "application/octet-stream", "a.mp3", "audio/mpeg");
        assert_type(NOISE, "", "a.PDF", "application/pdf");
        // Pictures of this type cannot be recognized by their first bytes.
        assert_type(NOISE, "image/x-raw", "", "image/x-raw");
        for (mime_type, file_name) in [
            ("application/octet-stream", "backup.dat"),
            ("", "backup.dat"),
            ("application/octet-stream", "a"),
            ("nonsense", "a.b"),
        ] {
            assert_type(NOISE, mime_type, file_name, "application/octet-stream");
        }
        for (mime_type, file_name) in
            [("", ""), ("", "a"), ("", ".hidden"), ("nonsense", "a"), ("a/b/c", "a."), ("no type", "")]
        {
            assert_eq!(detect(NOISE, mime_type, file_name), Err(FileError::TypeUnknown), "{mime_type} {file_name}");
        }
    }

    #[test]
    fn content_of_another_category_is_refused() {
        for (head, mime_type, file_name) in [
            (PDF, "image/png", "a.png"),
            (PDF, "", "a.png"),
            (PNG, "application/pdf", "a.pdf"),
            (PNG, "video/mp4", ""),
            (b"<!DOCTYPE html><script>".as_slice(), "image/png", ""),
            (b"hello".as_slice(), "image/jpeg", ""),
            (b"hello".as_slice(), "audio/mpeg", ""),
            (b"<?xml version=\"1.0\"?><a/>".as_slice(), "image/png", ""),
            (NOISE, "image/png", ""),
            (NOISE, "image/jpg", "a.jpg"),
            (NOISE, "", "a.webp"),
            (NOISE, "application/octet-stream", "a.gif"),
        ] {
            assert_eq!(detect(head, mime_type, file_name), Err(FileError::TypeMismatch), "{mime_type} {file_name}");
        }
    }

    #[test]
    fn a_text_has_the_declared_type_unless_that_has_a_signature() {
        assert_type(b"a,b\n1,2\n", "text/csv", "a.csv", "text/csv");
        assert_type(b"a,b\n1,2\n", "", "a.csv", "text/csv");
        assert_type(b"{\"a\":1}", "application/json", "", "application/json");
        assert_type("ação".as_bytes(), "", "", "text/plain");
        assert_type(b"hello", "application/pdf", "a.pdf", "text/plain");
        assert_type(b"<html> hello", "text/plain", "a.txt", "text/html");
        assert_type(b"<?xml version=\"1.0\"?><svg/>", "image/svg+xml", "a.svg", "image/svg+xml");
        assert_type(b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "image/svg+xml", "a.svg", "image/svg+xml");
        assert_type(b"<?xml version=\"1.0\"?><x/>", "application/xml", "a.xml", "application/xml");
    }

    #[test]
    fn a_container_has_the_declared_type() {
        let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
        assert_type(ZIP, docx, "a.docx", docx);
        assert_type(ZIP, "", "a.docx", docx);
        assert_type(ZIP, "application/zip", "", "application/zip");
        assert_type(&webm(), "audio/webm;codecs=opus", "voice.webm", "audio/webm");
        assert_type(&webm(), "video/mp4", "a.mp4", "video/webm");
        assert_eq!(detect(&webm(), "image/png", ""), Err(FileError::TypeMismatch));
    }

    #[test]
    fn a_type_has_its_usual_extension() {
        assert_eq!(extension("image/jpeg"), Some("jpg"));
        assert_eq!(extension("image/png"), Some("png"));
        assert_eq!(extension("application/x-nobody-knows"), None);
    }
}
