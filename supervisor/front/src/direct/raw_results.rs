//! Passes results of upstream servers to AI clients byte for byte.
//!
//! rmcp's typed results drop unknown fields. A raw result is therefore packed: rmcp gets an empty result whose metadata
//! contains the raw result as a string, under a random key. When rmcp writes the message, the raw result replaces the
//! empty one. The key is generated at start and never leaves the process, so no upstream server can forge it.

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

/// Packs a raw JSON result: returns metadata that contains it as a string, for an MCP result that is
/// otherwise empty.
pub(super) fn pack(json: &str) -> MetaObject {
    // Each message is one line. In valid JSON, line breaks occur only between tokens, where a space means the same.
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

/// Replaces the result of a JSON-RPC message by the raw result that is packed in its metadata. Returns `None` if no raw
/// result is packed in it.
fn unpack_message(message: &str) -> Option<String> {
    if !message.contains(KEY.as_str()) {
        return None;
    }
    let result = serde_json::from_str::<Message<'_>>(message).ok()?.result?.get();
    let packed: Packed<'_> = serde_json::from_str(result).ok()?;
    let json: String = serde_json::from_str(packed.meta.get(KEY.as_str())?.get()).ok()?;
    let start = result.as_ptr() as usize - message.as_ptr() as usize;
    Some([&message[..start], &json, &message[start + result.len()..]].concat())
}

/// Unpacks the raw results in lines, which are JSON-RPC messages or server-sent events with one message each. Returns
/// `None` if no raw result is packed in them.
fn unpack_lines(lines: &[u8]) -> Option<Vec<u8>> {
    let lines = std::str::from_utf8(lines).ok().filter(|lines| lines.contains(KEY.as_str()))?;
    let mut unpacked_lines = String::with_capacity(lines.len());
    for line in lines.split_inclusive('\n') {
        let (field, message) = line.strip_prefix("data:").map_or(("", line), |message| ("data:", message));
        match unpack_message(message) {
            Some(message) => unpacked_lines.extend([field, &message]),
            None => unpacked_lines.push_str(line),
        }
    }
    Some(unpacked_lines.into_bytes())
}

/// Unpacks the raw results in the body of an HTTP response. In an event stream, each chunk of the body must be a whole
/// event.
pub(crate) async fn unpack_response(response: Response) -> Response {
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    let (mut parts, body) = response.into_parts();
    let unpacked = |bytes: Bytes| unpack_lines(&bytes).map_or(bytes, Bytes::from);
    if !is_json {
        return Response::from_parts(parts, Body::from_stream(body.into_data_stream().map_ok(unpacked)));
    }
    // rmcp has the whole response in memory already.
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(unpacked(bytes)))
}

/// A writer that unpacks the raw results in the JSON-RPC messages written to it, one message per line.
pub(crate) struct UnpackingWriter<W> {
    inner: W,
    /// The last line that was written to this writer, if it is still incomplete.
    line: Vec<u8>,
    /// Bytes of unpacked messages. The bytes from the index `written` on must still be written to `inner`.
    out: Vec<u8>,
    written: usize,
}

impl<W: AsyncWrite + Unpin> UnpackingWriter<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, line: Vec::new(), out: Vec::new(), written: 0 }
    }

    fn poll_write_out(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
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

impl<W: AsyncWrite + Unpin> AsyncWrite for UnpackingWriter<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        ready!(self.poll_write_out(cx))?;
        self.line.extend_from_slice(buf);
        if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let lines = std::mem::replace(&mut self.line, rest);
            self.out = unpack_lines(&lines).unwrap_or(lines);
        }
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        ready!(self.poll_write_out(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        ready!(self.poll_write_out(cx))?;
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
        message(&json!({"content": [], "_meta": pack(raw)}))
    }

    #[test]
    fn packed_results_are_unpacked_unchanged() {
        let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{RAW}}}"#);
        assert_eq!(unpack_message(&carrying(RAW)).as_deref(), Some(expected.as_str()));
        let event = format!("id: 3\ndata: {}\n\n", carrying(RAW));
        let unpacked = unpack_lines(event.as_bytes()).expect("a packed line");
        assert_eq!(String::from_utf8(unpacked).expect("UTF-8"), format!("id: 3\ndata: {expected}\n\n"));
        assert_eq!(
            unpack_message(&carrying("{\n \"a\":\r\n1}")).map(|unpacked| unpacked.contains('\n')),
            Some(false)
        );
    }

    #[test]
    fn upstream_servers_cannot_forge_packed_results() {
        let guess = json!({"_meta": {"lockhouse/0": RAW}});
        assert_eq!(unpack_message(&message(&guess)), None);
        // Even with the key, a server's result would be unpacked once only.
        let nested = carrying(&json!({"content": [], "_meta": pack(RAW)}).to_string());
        let once = unpack_message(&nested).expect("packed");
        assert!(once.contains(KEY.as_str()));
        let elsewhere = json!({"content": [{"_meta": pack(RAW)}]});
        assert_eq!(unpack_message(&message(&elsewhere)), None);
    }

    #[tokio::test]
    async fn lines_are_unpacked_for_any_split_into_writes() {
        let plain = message(&json!({"tools": []}));
        let text = format!("{plain}\n{}\n{plain}\n", carrying(RAW));
        let expected = format!("{plain}\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{RAW}}}\n{plain}\n");
        for size in [1, 7, text.len()] {
            let mut written = Vec::new();
            let mut writer = UnpackingWriter::new(&mut written);
            for piece in text.as_bytes().chunks(size) {
                writer.write_all(piece).await.expect("written");
            }
            writer.flush().await.expect("flushed");
            assert_eq!(String::from_utf8(written).expect("UTF-8"), expected, "{size}");
        }
    }
}
