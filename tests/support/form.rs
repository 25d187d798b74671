//! `multipart/form-data`, written by hand: a test decides every byte of it, and the same bytes can be sent again.

use reqwest::{Method, RequestBuilder};

use super::{Api, Reply};

/// The boundary between the parts.
const BOUNDARY: &str = "----hotline-test-7f0c9a2e";

/// A form that is being written.
#[derive(Clone, Default)]
pub struct Form(Vec<u8>);

impl Form {
    pub fn content_type() -> String {
        format!("multipart/form-data; boundary={BOUNDARY}")
    }

    /// A field as text.
    pub fn text(self, name: &str, value: impl ToString) -> Self {
        self.part(&format!("name=\"{name}\""), None, value.to_string().as_bytes())
    }

    /// A file in `medias`.
    pub fn file(self, file_name: &str, mime_type: &str, content: &[u8]) -> Self {
        let disposition = format!("name=\"medias\"; filename=\"{file_name}\"");
        self.part(&disposition, (!mime_type.is_empty()).then_some(mime_type), content)
    }

    /// Any part.
    pub fn part(mut self, disposition: &str, mime_type: Option<&str>, content: &[u8]) -> Self {
        let mut head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n");
        if let Some(mime_type) = mime_type {
            head.push_str(&format!("Content-Type: {mime_type}\r\n"));
        }
        self.0.extend_from_slice(head.as_bytes());
        self.0.extend_from_slice(b"\r\n");
        self.0.extend_from_slice(content);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    /// The finished body, with its closing boundary.
    pub fn bytes(mut self) -> Vec<u8> {
        self.0.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        self.0
    }
}

impl Api {
    /// A form sent to `/messages`, under an idempotency key if there is one.
    pub fn form(&self, form: Form, key: Option<&str>) -> RequestBuilder {
        let request = self.request(Method::POST, "/messages").header("content-type", Form::content_type());
        let request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
        request.body(form.bytes())
    }

    pub async fn send_form(&self, form: Form) -> Reply {
        Reply::of(self.form(form, None)).await
    }
}
