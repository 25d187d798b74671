//! A reader of a stream of events.

use std::time::Duration;

use futures_util::StreamExt;
use reqwest::Method;
use serde_json::Value;

use super::Api;

/// The longest wait for the next piece of a stream, which sends at least a comment every fifteen seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client that reads a stream.
pub struct Reader {
    body: futures_util::stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    text: String,
}

impl Reader {
    pub async fn open(api: &Api, query: &str, last_id: Option<i64>) -> Self {
        Self::try_open(api, query, last_id).await.expect("a stream")
    }

    /// `None` if no service opened the stream, or if it ended at once.
    pub async fn try_open(api: &Api, query: &str, last_id: Option<i64>) -> Option<Self> {
        let mut request = api.request(Method::GET, &format!("/events/stream{query}"));
        if let Some(last_id) = last_id {
            request = request.header("last-event-id", last_id.to_string());
        }
        let response = request.timeout(Duration::from_secs(600)).send().await.ok()?;
        // The company moves to another process, or no process serves it at the moment.
        if response.status() == 503 {
            return None;
        }
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        let mut reader = Self { body: response.bytes_stream().boxed(), text: String::new() };
        // Once this line has arrived, the stream is open: it gets every later event.
        assert_eq!(reader.next_block().await?, "retry: 3000");
        Some(reader)
    }

    /// The text up to the next empty line; `None` if the stream has ended.
    pub async fn next_block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.to_owned();
                self.text = rest.to_owned();
                return Some(block);
            }
            let piece =
                tokio::time::timeout(super::patience(PATIENCE), self.body.next()).await.expect("a piece in time")?;
            self.text.push_str(std::str::from_utf8(&piece.ok()?).expect("text"));
        }
    }

    /// The next event; `None` if the stream has ended.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            let block = self.next_block().await?;
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            // A comment only shows that the stream is alive.
            let Some(data) = field("data: ") else { continue };
            let event: Value = serde_json::from_str(&data).expect("JSON");
            assert_eq!(field("id: "), Some(event["id"].to_string()));
            assert_eq!(field("event: ").as_deref(), event["type"].as_str());
            return Some(event);
        }
    }

    pub async fn take(&mut self, count: usize) -> Vec<Value> {
        let mut events = Vec::new();
        while events.len() < count {
            events.push(self.next().await.expect("the stream has not ended"));
        }
        events
    }
}
