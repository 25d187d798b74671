//! Limits the size of a bucket's responses: the store's client reads lists and errors completely, however long they
//! are.

use std::pin::Pin;

use bytes::BytesMut;
use futures_util::StreamExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

use crate::tls;

/// Maximum size of a response that is not a file: a list of a thousand names has a few hundred KiB.
const RESPONSE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Creates clients with this limit.
#[derive(Debug, Default)]
pub(super) struct LimitedConnector(ReqwestConnector);

#[derive(Debug)]
struct LimitedClient(HttpClient);

/// The response exceeds the limit.
#[derive(Debug, thiserror::Error)]
#[error("the bucket's response is longer than {RESPONSE_BYTES_MAX} bytes")]
struct ResponseTooLong;

impl HttpConnector for LimitedConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        tls::install();
        Ok(HttpClient::new(LimitedClient(self.0.connect(options)?)))
    }
}

type ResponseFuture<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>;

impl HttpService for LimitedClient {
    // The signature that the trait's macro generates.
    fn call<'life0, 'async_trait>(&'life0 self, request: HttpRequest) -> ResponseFuture<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            let is_list = request.uri().query().is_some_and(|query| query.contains("list-type="));
            let is_file_request = request.method() == "GET" && !is_list;
            let response = self.0.execute(request).await?;
            if is_file_request && response.status().is_success() {
                // A file is streamed.
                return Ok(response);
            }
            let (head, body) = response.into_parts();
            let mut chunks = body.bytes_stream();
            let mut bytes = BytesMut::new();
            while let Some(chunk) = chunks.next().await {
                let chunk = chunk?;
                if bytes.len() + chunk.len() > RESPONSE_BYTES_MAX {
                    return Err(HttpError::new(HttpErrorKind::Decode, ResponseTooLong));
                }
                bytes.extend_from_slice(&chunk);
            }
            Ok(HttpResponse::from_parts(head, bytes.freeze().into()))
        })
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use object_store::client::HttpRequestBody;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Starts a server whose responses have this status and never end; returns its URL.
    async fn start_endless_server(status: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 4096]).await;
                    let head = format!("HTTP/1.1 {status}\r\ntransfer-encoding: chunked\r\n\r\n");
                    let chunk = [&b"1000\r\n"[..], &[b' '; 4096], b"\r\n"].concat();
                    let mut result = stream.write_all(head.as_bytes()).await;
                    while result.is_ok() {
                        result = stream.write_all(&chunk).await;
                    }
                });
            }
        });
        format!("http://{address}")
    }

    #[tokio::test]
    async fn only_a_file_may_exceed_the_limit() {
        // However slow the machine is, no request ends before its response is too long.
        let options = ClientOptions::new().with_allow_http(true).with_timeout_disabled();
        let client = LimitedConnector::default().connect(&options).expect("a client");
        let send = async |method: &str, url: String| {
            let mut request = HttpRequest::new(HttpRequestBody::empty());
            *request.method_mut() = method.parse().expect("a method");
            *request.uri_mut() = url.parse().expect("an address");
            client.execute(request).await
        };
        let (ok_server, error_server) =
            (start_endless_server("200 OK").await, start_endless_server("403 Forbidden").await);
        for (method, url) in [
            ("GET", format!("{ok_server}/files?list-type=2&prefix=a")),
            ("GET", format!("{error_server}/files/a")),
            ("PUT", format!("{ok_server}/files/a")),
            ("POST", format!("{error_server}/files?delete")),
            ("DELETE", format!("{ok_server}/files/a")),
        ] {
            let error = send(method, url).await.map(|response| response.status()).expect_err("too long");
            assert_eq!(error.kind(), HttpErrorKind::Decode, "{method}: {error}");
        }
        let file = send("GET", format!("{ok_server}/files/a")).await.expect("a file");
        let mut chunks = file.into_body().bytes_stream();
        let mut read = 0;
        while read < 2 * RESPONSE_BYTES_MAX {
            read += chunks.next().await.expect("more").expect("a chunk").len();
        }
    }
}
