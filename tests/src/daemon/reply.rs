//! The server's answer to an HTTP request of a test: JSON, or a stream of events.

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::in_time;

/// A complete HTTP answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The HTTP status of the answer.
    pub status: u16,
    /// The HTTP headers of the answer.
    pub headers: HeaderMap,
    /// The body of the answer as text.
    pub body: String,
}

impl Reply {
    /// Reads an HTTP answer to its end.
    pub async fn read(response: reqwest::Response) -> Self {
        Events::new(response).whole().await
    }

    /// Returns the JSON-RPC messages of the body, which is JSON or an event stream.
    #[must_use]
    pub fn messages(&self) -> Vec<Value> {
        match self.header("content-type") {
            kind if kind.starts_with("text/event-stream") => {
                self.body.split("\n\n").filter_map(message).collect()
            }
            _ => serde_json::from_str(&self.body).into_iter().collect(),
        }
    }

    /// Returns the JSON-RPC response in the body, or `null` if there is none.
    #[must_use]
    pub fn answer(&self) -> Value {
        let is_answer = |message: &Value| message.get("result").or(message.get("error")).is_some();
        self.messages().into_iter().find(is_answer).unwrap_or_default()
    }

    /// Returns the value of an HTTP header, or an empty string if the header is missing.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// An HTTP answer whose events the test reads while they arrive. Dropping this closes the stream.
pub struct Events {
    /// The HTTP status of the answer.
    pub status: u16,
    /// The HTTP headers of the answer.
    pub headers: HeaderMap,
    body: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    read: Vec<u8>,
    is_over: bool,
}

impl Events {
    pub(super) fn new(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes_stream().map(|part| part.map(|bytes| bytes.to_vec())).boxed();
        Self { status, headers, body, read: Vec::new(), is_over: false }
    }

    /// Waits for the next JSON-RPC message and returns it; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            let end = self.read.windows(2).position(|two| two == b"\n\n");
            if let Some(end) = end {
                let event: Vec<u8> = self.read.drain(..end + 2).collect();
                if let Some(message) = message(&String::from_utf8_lossy(&event)) {
                    return Some(message);
                }
            } else if self.is_over {
                return serde_json::from_slice(&std::mem::take(&mut self.read)).ok();
            } else {
                match in_time("an event", self.body.next()).await {
                    Some(Ok(bytes)) => self.read.extend(bytes),
                    Some(Err(_)) | None => self.is_over = true,
                }
            }
        }
    }

    /// Reads the stream to its end and returns what has not been read before as a complete answer.
    pub async fn whole(mut self) -> Reply {
        let mut bytes = std::mem::take(&mut self.read);
        while let Some(Ok(part)) = in_time("an answer", self.body.next()).await {
            bytes.extend(part);
        }
        let body = String::from_utf8_lossy(&bytes).into_owned();
        Reply { status: self.status, headers: self.headers, body }
    }
}

/// Returns the JSON-RPC message in an event; `None` for events without a message, such as keep-alive events.
fn message(event: &str) -> Option<Value> {
    let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
    let data: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    serde_json::from_str(&data.join("\n")).ok()
}
