//! Results as their servers wrote them, byte for byte.
//!
//! rmcp answers with typed results, which drop what they do not know. A result that is to pass as it is travels through rmcp as
//! text, in the metadata of a result that has nothing else, under a key that is drawn when Lockhouse starts and never leaves
//! it; on the way out the text takes the place of the result. No server can write that key, since none ever sees it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::Response;
use futures_util::TryStreamExt;
use rmcp::model::{JsonObject, MetaObject};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::AsyncWrite;

use crate::runs::new_handle;

static KEY: LazyLock<String> = LazyLock::new(|| format!("lockhouse/{}", new_handle()));

/// The metadata of a result in whose place this JSON goes out.
pub(super) fn packed(json: &str) -> MetaObject {
    // Between the tokens of JSON a line break is a space; within them there is none. Each message is one line.
    let json = json.replace(['\n', '\r'], " ");
    MetaObject(JsonObject::from_iter([(KEY.clone(), json.into())]))
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Packed<'a> {
    #[serde(rename = "_meta", borrow)]
    meta: HashMap<String, &'a RawValue>,
}

/// The message with the result that is packed in it, if there is one.
fn unpacked(message: &str) -> Option<String> {
    if !message.contains(KEY.as_str()) {
        return None;
    }
    let result = serde_json::from_str::<Message<'_>>(message).ok()?.result?.get();
    let packed: Packed<'_> = serde_json::from_str(result).ok()?;
    let json: String = serde_json::from_str(packed.meta.get(KEY.as_str())?.get()).ok()?;
    let start = result.as_ptr() as usize - message.as_ptr() as usize;
    Some([&message[..start], &json, &message[start + result.len()..]].concat())
}

/// Lines of messages, or of events with a message each.
fn unpacked_lines(lines: &[u8]) -> Option<Vec<u8>> {
    let lines = std::str::from_utf8(lines).ok().filter(|lines| lines.contains(KEY.as_str()))?;
    let mut unpacked_lines = String::with_capacity(lines.len());
    for line in lines.split_inclusive('\n') {
        let (field, message) = line.strip_prefix("data:").map_or(("", line), |message| ("data:", message));
        match unpacked(message) {
            Some(message) => unpacked_lines.extend([field, &message]),
            None => unpacked_lines.push_str(line),
        }
    }
    Some(unpacked_lines.into_bytes())
}

/// An answer over HTTP with its results unpacked. Each piece of a body is a whole message or event.
pub(crate) async fn unpack(response: Response) -> Response {
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    let (mut parts, body) = response.into_parts();
    let unpacked = |bytes: Bytes| unpacked_lines(&bytes).map_or(bytes, Bytes::from);
    if !is_json {
        return Response::from_parts(parts, Body::from_stream(body.into_data_stream().map_ok(unpacked)));
    }
    // It is in memory already.
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(unpacked(bytes)))
}

/// Writes lines with their results unpacked.
pub(crate) struct Unpacking<W> {
    inner: W,
    /// The line that is not whole yet.
    line: Vec<u8>,
    /// What is to be written.
    out: Vec<u8>,
    written: usize,
}

impl<W: AsyncWrite + Unpin> Unpacking<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, line: Vec::new(), out: Vec::new(), written: 0 }
    }

    fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        while self.written < self.out.len() {
            match ready!(Pin::new(&mut self.inner).poll_write(cx, &self.out[self.written..]))? {
                0 => return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        (self.out, self.written) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Unpacking<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        ready!(self.poll_out(cx))?;
        self.line.extend_from_slice(buf);
        if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let lines = std::mem::replace(&mut self.line, rest);
            self.out = unpacked_lines(&lines).unwrap_or(lines);
        }
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        ready!(self.poll_out(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        ready!(self.poll_out(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::AsyncWriteExt;

    use super::*;

    const RAW: &str = r#"{"content": [ {"type":"new","é":1e400} ],"structuredContent":null}"#;

    fn message(result: &serde_json::Value) -> String {
        json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string()
    }

    fn carrying(raw: &str) -> String {
        message(&json!({"content": [], "_meta": packed(raw)}))
    }

    #[test]
    fn what_is_packed_comes_out_as_it_was() {
        let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{RAW}}}"#);
        assert_eq!(unpacked(&carrying(RAW)).as_deref(), Some(expected.as_str()));
        let event = format!("id: 3\ndata: {}\n\n", carrying(RAW));
        let told = unpacked_lines(event.as_bytes()).expect("a packed line");
        assert_eq!(String::from_utf8(told).expect("UTF-8"), format!("id: 3\ndata: {expected}\n\n"));
        assert_eq!(unpacked(&carrying("{\n \"a\":\r\n1}")).map(|told| told.contains('\n')), Some(false));
    }

    #[test]
    fn no_server_can_write_the_key_and_what_is_in_a_result_stays_there() {
        let guess = json!({"_meta": {"lockhouse/0": RAW}});
        assert_eq!(unpacked(&message(&guess)), None);
        // Even if it could: what a server wrote is unpacked once, as text, and not again.
        let nested = carrying(&json!({"content": [], "_meta": packed(RAW)}).to_string());
        let once = unpacked(&nested).expect("packed");
        assert!(once.contains(KEY.as_str()));
        let elsewhere = json!({"content": [{"_meta": packed(RAW)}]});
        assert_eq!(unpacked(&message(&elsewhere)), None);
    }

    #[tokio::test]
    async fn lines_are_unpacked_however_they_are_written() {
        let plain = message(&json!({"tools": []}));
        let text = format!("{plain}\n{}\n{plain}\n", carrying(RAW));
        let expected = format!("{plain}\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{RAW}}}\n{plain}\n");
        for size in [1, 7, text.len()] {
            let mut written = Vec::new();
            let mut writer = Unpacking::new(&mut written);
            for piece in text.as_bytes().chunks(size) {
                writer.write_all(piece).await.expect("written");
            }
            writer.flush().await.expect("flushed");
            assert_eq!(String::from_utf8(written).expect("UTF-8"), expected, "{size}");
        }
    }
}
