//! Passes results of upstream servers to AI clients byte for byte.
//!
//! rmcp's typed results drop unknown fields. If rmcp writes the response, a raw result is therefore packed: rmcp gets an empty
//! result whose metadata contains the raw result as a string, under a random key. When rmcp writes the message, the raw result
//! replaces the empty one. The key is generated at start and never leaves the process, so no upstream server can forge it.
//! Responses to tool calls over standard output are written without rmcp, and their raw results pass it by ([`RawResult`]).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::Response;
use futures_util::TryStreamExt;
use memchr::memmem;
use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, JsonObject, MetaObject};
use rmcp::service::RequestContext;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::runs::new_handle;

/// `None` if the kernel provides no random numbers. No result is packed then.
static KEY: LazyLock<Option<String>> = LazyLock::new(|| Some(format!("lockhouse/{}", new_handle()?)));
static KEY_FINDER: LazyLock<Option<memmem::Finder<'static>>> =
    LazyLock::new(|| KEY.as_deref().map(memmem::Finder::new));

/// Returns whether a raw result may be packed in these messages. Nearly all have none.
fn has_key(messages: &[u8]) -> bool {
    KEY_FINDER.as_ref().is_some_and(|finder| finder.find(messages).is_some())
}

/// The raw result of one request, if the response is written without rmcp. An extension of the request's context.
#[derive(Clone, Default)]
pub(crate) struct RawResult(Arc<Mutex<Option<String>>>);

impl RawResult {
    /// Takes the raw result that stands for the result of the request; `None` if the latter is complete.
    pub(crate) fn take(&self) -> Option<String> {
        self.0.lock().take()
    }
}

/// Passes on a raw JSON result as the result of a request. Returns the metadata for an MCP result that is otherwise empty,
/// which stands for it in rmcp.
///
/// # Errors
/// An internal error if the kernel provides no random numbers for the key.
pub(super) fn deliver(json: String, context: &RequestContext<RoleServer>) -> Result<MetaObject, ErrorData> {
    let json = on_one_line(json);
    match context.extensions.get::<RawResult>() {
        Some(RawResult(result)) => {
            *result.lock() = Some(json);
            Ok(MetaObject::default())
        }
        None => pack(json),
    }
}

/// Replaces line breaks, because each message is one line. In valid JSON, they occur only between tokens, where a space means
/// the same.
fn on_one_line(json: String) -> String {
    let has_breaks = memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_some();
    if has_breaks { json.replace(['\n', '\r'], " ") } else { json }
}

/// Packs a raw JSON result: returns metadata that contains it as a string.
fn pack(json: String) -> Result<MetaObject, ErrorData> {
    let key = KEY.clone().ok_or_else(|| ErrorData::internal_error("no random numbers", None))?;
    Ok(MetaObject(JsonObject::from_iter([(key, json.into())])))
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
    if !has_key(message.as_bytes()) {
        return None;
    }
    let result = serde_json::from_str::<Message<'_>>(message).ok()?.result?.get();
    let packed: Packed<'_> = serde_json::from_str(result).ok()?;
    let json: String = serde_json::from_str(packed.meta.get(KEY.as_deref()?)?.get()).ok()?;
    let start = result.as_ptr() as usize - message.as_ptr() as usize;
    Some([&message[..start], &json, &message[start + result.len()..]].concat())
}

/// Unpacks the raw results in lines, which are JSON-RPC messages or server-sent events with one message each. Returns
/// `None` if no raw result is packed in them.
fn unpack_lines(lines: &[u8]) -> Option<Vec<u8>> {
    let lines = has_key(lines).then(|| std::str::from_utf8(lines).ok())??;
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

/// Writes a message as one line, with the raw result that is packed in it, if there is one.
///
/// # Errors
/// Errors of serde_json.
pub(crate) fn to_line(message: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let json = serde_json::to_vec(message)?;
    let mut line = unpack_lines(&json).unwrap_or(json);
    line.push(b'\n');
    Ok(line)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RAW: &str = r#"{"content": [ {"type":"new","é":1e400} ],"structuredContent":null}"#;

    fn packed(raw: &str) -> MetaObject {
        pack(on_one_line(raw.to_owned())).expect("random numbers")
    }

    fn message(result: &serde_json::Value) -> String {
        json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string()
    }

    fn carrying(raw: &str) -> String {
        message(&json!({"content": [], "_meta": packed(raw)}))
    }

    #[test]
    fn packed_results_are_unpacked_unchanged() {
        let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{RAW}}}"#);
        assert_eq!(unpack_message(&carrying(RAW)).as_deref(), Some(expected.as_str()));
        let packed: serde_json::Value = serde_json::from_str(&carrying(RAW)).expect("JSON");
        assert_eq!(to_line(&packed).expect("a line"), format!("{expected}\n").into_bytes());
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
        let nested = carrying(&json!({"content": [], "_meta": packed(RAW)}).to_string());
        let once = unpack_message(&nested).expect("packed");
        assert!(once.contains(KEY.as_deref().expect("a key")));
        let elsewhere = json!({"content": [{"_meta": packed(RAW)}]});
        assert_eq!(unpack_message(&message(&elsewhere)), None);
    }
}
