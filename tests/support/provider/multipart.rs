//! As much of `multipart/form-data` as an upload needs.

use std::collections::HashMap;

use actix_web::web::Bytes;

use super::File;

/// The one file of a form, with the form's other fields; `None` if the form is malformed or has no file.
pub fn file(content_type: &str, body: &Bytes) -> Option<File> {
    let boundary = format!("--{}", content_type.strip_prefix("multipart/form-data; boundary=")?.trim_matches('"'));
    let mut fields = HashMap::new();
    let mut file = None;
    let mut rest = &body[find(body, boundary.as_bytes())? + boundary.len()..];
    while !rest.starts_with(b"--") {
        rest = rest.strip_prefix(b"\r\n")?;
        let head_end = find(rest, b"\r\n\r\n")?;
        let head = std::str::from_utf8(&rest[..head_end]).ok()?;
        rest = &rest[head_end + 4..];
        let end = find(rest, format!("\r\n{boundary}").as_bytes())?;
        let content = &rest[..end];
        rest = &rest[end + 2 + boundary.len()..];
        match parameter(head, "filename") {
            Some(file_name) => {
                let mime_type = head
                    .lines()
                    .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-type: ").map(str::to_owned));
                file = Some((file_name, mime_type.unwrap_or_default(), Bytes::copy_from_slice(content)));
            }
            None => drop(fields.insert(parameter(head, "name")?, String::from_utf8(content.to_vec()).ok()?)),
        }
    }
    file.map(|(file_name, mime_type, bytes)| File { file_name, mime_type, bytes, fields })
}

fn parameter(head: &str, name: &str) -> Option<String> {
    let (_, value) = head.split_once(&format!("; {name}=\""))?;
    Some(value.split_once('"')?.0.to_owned())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
