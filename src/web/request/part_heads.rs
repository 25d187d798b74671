//! Removes control characters from the heads of the parts of a visitor's form, because the form parser refuses them: a
//! file must not be refused because of its name. The content of parts is not changed.

use bytes::Bytes;
use hotline_persistence::controls;

/// The end of the head of a part.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Filters the bytes of a form: control characters are removed from the heads of its parts.
pub(super) struct PartHeadFilter {
    /// The beginning of a head: a line with the boundary.
    boundary: Vec<u8>,
    /// How many bytes of the awaited text have matched: of `boundary`, or of `HEAD_END` in a head.
    matched: usize,
    is_in_head: bool,
}

impl PartHeadFilter {
    /// `boundary` as the content type names it.
    pub(super) fn new(boundary: &str) -> Self {
        // The first boundary may be at the very beginning, so the line end before it counts as matched.
        Self { boundary: format!("\r\n--{boundary}\r\n").into_bytes(), matched: 2, is_in_head: false }
    }

    /// Filters the next bytes. Boundaries and heads may be split between chunks.
    pub(super) fn filter(&mut self, chunk: Bytes) -> Bytes {
        let mut output: Option<Vec<u8>> = None;
        let mut position = 0;
        while let Some(rest) = chunk.get(position..).filter(|rest| !rest.is_empty()) {
            if !self.is_in_head && self.matched == 0 {
                // Only the end of a line may begin a boundary, so everything before it is passed on at once: most of a
                // form is the content of files.
                let skipped = rest.iter().position(|byte| *byte == b'\r').unwrap_or(rest.len());
                if let Some(output) = &mut output {
                    output.extend_from_slice(&rest[..skipped]);
                }
                position += skipped;
                if skipped > 0 {
                    continue;
                }
            }
            let byte = rest[0];
            position += 1;
            if self.is_in_head && is_removed(byte) {
                output.get_or_insert_with(|| chunk[..position - 1].to_vec());
                continue;
            }
            if let Some(output) = &mut output {
                output.push(byte);
            }
            self.advance(byte);
        }
        output.map_or(chunk, Bytes::from)
    }

    /// Processes a byte of the output.
    fn advance(&mut self, byte: u8) {
        let target = if self.is_in_head { HEAD_END } else { &self.boundary };
        self.matched = match target.get(self.matched) {
            Some(next) if *next == byte => self.matched + 1,
            // After a mismatch, only a `\r` can begin a new match: both texts contain `\r` only at the end of a line.
            _ => usize::from(byte == b'\r'),
        };
        if self.matched == target.len() {
            self.matched = 0;
            self.is_in_head = !self.is_in_head;
        }
    }
}

/// Whether a head must not contain the byte: a control character, or U+007F, which HTTP forbids in heads.
fn is_removed(byte: u8) -> bool {
    controls::is_refused(char::from(byte)) || byte == 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output for these bytes, passed in chunks of this size.
    fn filter_chunks(bytes: &[u8], chunk_size: usize) -> Vec<u8> {
        let mut heads = PartHeadFilter::new("xyz");
        bytes.chunks(chunk_size).flat_map(|chunk| heads.filter(Bytes::copy_from_slice(chunk))).collect()
    }

    /// A form with a file of this name, and a field.
    fn form(name: &[u8], content: &[u8]) -> Vec<u8> {
        let parts: [&[u8]; 8] = [
            b"\x05before\r\n--xyz\r\nContent-Disposition: form-data; name=\"medias\"; filename=\"",
            name,
            b".txt\"\r\nX: \ty\r\n\r\n",
            content,
            b"\r\n--xyz\r\nContent-Disposition: form-data; name=\"body\"\r\n\r\n",
            content,
            b"\r\n--xyz--\r\n",
            b"\x06 after",
        ];
        parts.concat()
    }

    #[test]
    fn only_heads_lose_control_characters_in_chunks_of_any_size() {
        let content: &[u8] = b"\x00\x01\x7f\r\n\r\n\r\r\n--xy\x02\r\n--xyzz\r\n\x03\r\n --xyz\r\n\x04";
        let input = form(b"a\x01\x00\x1f\x7fb\r\x02", content);
        let expected = form(b"ab\r", content);
        for size in 1..=input.len() {
            assert_eq!(filter_chunks(&input, size), expected, "{size}");
        }
        // A boundary at the very beginning, and one right after another.
        assert_eq!(filter_chunks(b"--xyz\r\na\x01\r\n\r\n\r\n--xyz\r\nb\x01", 3), b"--xyz\r\na\r\n\r\n\r\n--xyz\r\nb");
        // A head ends at an empty line of the output: removed characters do not count.
        assert_eq!(filter_chunks(b"--xyz\r\na\r\n\x01\r\n\x01", 1), b"--xyz\r\na\r\n\r\n\x01");
    }

    #[test]
    fn chunks_without_control_characters_are_not_copied() {
        let mut heads = PartHeadFilter::new("xyz");
        let chunk = Bytes::from_static(b"--xyz\r\nA: b\r\n\r\n\x01\r\n--xyz--\r\n");
        assert_eq!(heads.filter(chunk.clone()).as_ptr(), chunk.as_ptr());
    }
}
