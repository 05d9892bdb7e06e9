//! The parts of Lockhouse's own messages that HTTP headers repeat.

use std::borrow::Cow;

use data_encoding::BASE64;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::header_parameters::HeaderTools;

/// The header with the protocol version of a request.
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// What surrounds a value in Base64.
const BASE64_PREFIX: &str = "=?base64?";
const BASE64_SUFFIX: &str = "?=";

/// The beginning of a message to the server.
#[derive(Debug, Default, Deserialize)]
pub(super) struct RequestHead<'a> {
    /// `None` for an answer to a request of the server.
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Parameters<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parameters<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow)]
    task_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Metadata<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata<'a> {
    /// Present from protocol version 2026-07-28 on, which has no sessions.
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    protocol_version: Option<Cow<'a, str>>,
}

impl<'a> RequestHead<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Self {
        serde_json::from_slice(message).unwrap_or_default()
    }

    pub(super) fn method(&self) -> &str {
        self.method.as_deref().unwrap_or_default()
    }

    /// Whether the request belongs to the handshake, which has no session yet.
    pub(super) fn is_handshake(&self) -> bool {
        matches!(self.method(), "initialize" | "server/discover")
    }

    /// Whether the request has protocol version 2026-07-28 or a newer one.
    pub(super) fn is_modern(&self) -> bool {
        self.params.meta.protocol_version.is_some()
    }

    /// Returns the protocol version of a request with its own.
    pub(super) fn protocol_version(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(self.params.meta.protocol_version.as_deref()?).ok()
    }

    /// Adds the headers that repeat parts of a request from protocol version 2026-07-28 on. `tools` are the tools with
    /// arguments among them.
    pub(super) fn add_headers(&self, headers: &mut HeaderMap, tools: &HeaderTools) {
        let Parameters { name, uri, task_id, arguments, .. } = &self.params;
        let mut add = |header: HeaderName, value: &str| {
            if let Some(value) = header_value(value) {
                headers.insert(header, value);
            }
        };
        add(METHOD, self.method());
        let named = match self.method() {
            "tools/call" | "prompts/get" => name,
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => uri,
            "tasks/get" | "tasks/update" | "tasks/cancel" => task_id,
            _ => &None,
        };
        if let Some(named) = named {
            add(NAME, named);
        }
        if let ("tools/call", Some(name), Some(arguments)) = (self.method(), name, arguments) {
            for (header, value) in tools.values(name, arguments) {
                add(header, &value);
            }
        }
    }
}

/// Returns a text as the value of a header: in Base64 if HTTP would not transmit it unchanged.
fn header_value(text: &str) -> Option<HeaderValue> {
    let is_encoded = text.starts_with(BASE64_PREFIX) && text.ends_with(BASE64_SUFFIX);
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim() == text && !is_encoded;
    if is_plain {
        return HeaderValue::from_str(text).ok();
    }
    HeaderValue::from_str(&format!("{BASE64_PREFIX}{}{BASE64_SUFFIX}", BASE64.encode(text.as_bytes()))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_repeat_what_a_request_names() {
        let tools = HeaderTools::default();
        let page = r#"{"tools":[{"name":"t","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"},
            "b":{"properties":{"c":{"type":"integer","x-mcp-header":"C"}}}}}}]}"#;
        assert_eq!(tools.accept(page.to_owned()), page);
        let call = |name: &str, arguments: &str| {
            format!(r#"{{"method":"tools/call","params":{{"name":{name},"arguments":{arguments}}}}}"#)
        };
        for (message, expected) in [
            (call("\"t\"", "{}"), "mcp-method: tools/call, mcp-name: t"),
            (
                call("\"t\"", r#"{"a":"x\ny","b":{"c":7}}"#),
                "mcp-method: tools/call, mcp-name: t, mcp-param-a: =?base64?eAp5?=, mcp-param-c: 7",
            ),
            (call("\"t\"", r#"{"a":null,"b":{"c":[7]}}"#), "mcp-method: tools/call, mcp-name: t"),
            (call("\"ü\"", r#"{"a":"x"}"#), "mcp-method: tools/call, mcp-name: =?base64?w7w=?="),
            (call("\" t\"", "{}"), "mcp-method: tools/call, mcp-name: =?base64?IHQ=?="),
            (call("\"=?base64?x?=\"", "{}"), "mcp-method: tools/call, mcp-name: =?base64?PT9iYXNlNjQ/eD89?="),
            (
                r#"{"method":"resources/read","params":{"uri":"a://b"}}"#.to_owned(),
                "mcp-method: resources/read, mcp-name: a://b",
            ),
            (r#"{"method":"tools/list","params":{"name":"n"}}"#.to_owned(), "mcp-method: tools/list"),
            (r#"{"method":"ping"}"#.to_owned(), "mcp-method: ping"),
        ] {
            let mut headers = HeaderMap::new();
            RequestHead::parse(message.as_bytes()).add_headers(&mut headers, &tools);
            let mut headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")))
                .collect();
            headers.sort();
            assert_eq!(headers.join(", "), expected, "{message}");
        }
    }
}
