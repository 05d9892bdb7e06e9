//! Parses a line of the AI client on standard input. A line that is no valid message is refused with an error that has
//! the id of its request, where one can be read, since the client would otherwise wait for an answer for ever.

use lockhouse_base::json::{MessageEnds, member_value};
use lockhouse_base::line_buffer::CompleteLine;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientRequest, ErrorData, GetMeta, JsonRpcMessage, JsonRpcVersion2_0, RequestId,
};
use rmcp::service::RxJsonRpcMessage;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;

use super::tool_calls::ToolCall;
use crate::invalid_requests;

const ID: &[u8] = b"\"id\"";
const METHOD: &[u8] = b"\"method\"";
const RESULT: &[u8] = b"\"result\"";
const ERROR: &[u8] = b"\"error\"";

/// The result of parsing a line.
pub(super) enum ParsedLine {
    ToolCall(Box<ToolCall>),
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// An empty line, or a notification that this protocol does not have.
    Ignored,
    /// A line that is no valid message, with the error that answers it.
    Refused(Option<RequestId>, ErrorData),
}

/// Parses a line. `bytes_max` is the limit that a line exceeds of which only the ends are there.
pub(super) fn parse(line: &CompleteLine, bytes_max: usize) -> ParsedLine {
    match line {
        CompleteLine::Within(line) => parse_text(line),
        CompleteLine::TooLong(head, tail) => {
            let error =
                ErrorData::invalid_request(format!("the message has more than {bytes_max} bytes"), None);
            refuse(MessageEnds::new(head, tail), error)
        }
    }
}

fn parse_text(line: &[u8]) -> ParsedLine {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.is_empty() {
        return ParsedLine::Ignored;
    }
    if let Some(call) = parse_tool_call(line) {
        return ParsedLine::ToolCall(Box::new(call));
    }
    match serde_json::from_slice(line) {
        Ok(message) => match refused_request(&message) {
            Some((id, error)) => ParsedLine::Refused(Some(id), error),
            None => ParsedLine::Message(Box::new(message)),
        },
        Err(error) if matches!(error.classify(), Category::Syntax | Category::Eof) => {
            let error = ErrorData::parse_error(format!("the message is not valid JSON: {error}"), None);
            refuse(MessageEnds::of(line), error)
        }
        Err(_) if is_foreign_notification(line) => ParsedLine::Ignored,
        Err(_) => {
            let error = ErrorData::invalid_request("the message is not a valid JSON-RPC 2.0 message", None);
            refuse(MessageEnds::of(line), error)
        }
    }
}

/// Returns the id and the error of a request whose parameters are invalid; `None` for any other message.
fn refused_request(message: &RxJsonRpcMessage<RoleServer>) -> Option<(RequestId, ErrorData)> {
    let JsonRpcMessage::Request(request) = message else { return None };
    let ClientRequest::CustomRequest(custom) = &request.request else { return None };
    Some((request.id.clone(), invalid_requests::invalid_params(custom, custom.get_meta())?))
}

/// Refuses an invalid message with an error. If it is a response, fails the request of Lockhouse that it answers.
fn refuse(message: MessageEnds<'_>, error: ErrorData) -> ParsedLine {
    let id = message.members(ID).find_map(member_value);
    let has = |key| message.members(key).next().is_some();
    match id {
        Some(id) if !has(METHOD) && (has(RESULT) || has(ERROR)) => {
            ParsedLine::Message(Box::new(JsonRpcMessage::error(error, Some(id))))
        }
        id => ParsedLine::Refused(id, error),
    }
}

/// The members of a `tools/call` request.
#[derive(Deserialize)]
struct ToolCallMembers {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    #[serde(rename = "method")]
    _method: ToolCallMethod,
    params: CallToolRequestParams,
    /// A message with these members is not a request.
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
enum ToolCallMethod {
    #[serde(rename = "tools/call")]
    CallTool,
}

/// Returns the call of a line if it is a valid `tools/call` request.
fn parse_tool_call(line: &[u8]) -> Option<ToolCall> {
    memchr::memmem::find(line, b"\"tools/call\"")?;
    let members: ToolCallMembers = serde_json::from_slice(line).ok()?;
    let ToolCallMembers { id, mut params, result: None, error: None, .. } = members else { return None };
    let meta = params.meta.take();
    Some(ToolCall { id, params, meta })
}

/// Returns whether a message that rmcp could not parse is a notification of another protocol, or of another version of
/// MCP.
fn is_foreign_notification(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Notification {
        method: String,
        #[serde(rename = "id", default, deserialize_with = "is_present")]
        has_id: bool,
    }
    let notification = serde_json::from_slice::<Notification>(line).ok();
    notification.is_some_and(|message| !message.has_id && !is_known(&message.method))
}

/// Deserializes a member of any value, also `null`, as `true`.
fn is_present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

/// Returns whether a client may send this notification.
fn is_known(method: &str) -> bool {
    matches!(
        method,
        "notifications/cancelled"
            | "notifications/initialized"
            | "notifications/progress"
            | "notifications/roots/list_changed"
    )
}

#[cfg(test)]
mod tests {
    use rmcp::model::{JsonRpcRequest, RequestMetaObject};
    use serde_json::json;

    use super::*;

    fn rmcp_reads(line: &str) -> Option<RxJsonRpcMessage<RoleServer>> {
        serde_json::from_str(line).ok()
    }

    #[test]
    fn a_tool_call_is_read_as_rmcp_reads_it() {
        let params = json!({
            "name": "run_code",
            "arguments": {"code": "1+1", "n": 1.5},
            "_meta": {"progressToken": 7, "x": [1]},
            "requestState": "s",
        });
        for params in [params, json!({"name": "a"}), json!({"name": "a", "_meta": {}})] {
            for id in [json!(1), json!("one")] {
                let line =
                    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
                let ours = parse_tool_call(line.as_bytes()).expect(&line).into_message();
                let theirs = rmcp_reads(&line).expect(&line);
                assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
                let meta = |message: &RxJsonRpcMessage<RoleServer>| match message {
                    JsonRpcMessage::Request(JsonRpcRequest {
                        request: ClientRequest::CallToolRequest(request),
                        ..
                    }) => request.extensions.get::<RequestMetaObject>().cloned(),
                    _ => panic!("{line}"),
                };
                assert_eq!(meta(&ours), meta(&theirs), "{line}");
                assert_eq!(meta(&ours).is_some(), params.get("_meta").is_some(), "{line}");
            }
        }
    }

    #[test]
    fn other_messages_are_left_to_rmcp() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"\"tools/call\""}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        ] {
            assert!(parse_tool_call(line.as_bytes()).is_none(), "{line}");
        }
    }

    /// Returns what becomes of a line: the id and the code of the error that answers it, the id of the request of
    /// Lockhouse that it fails, or that it is neither.
    fn outcome(line: CompleteLine) -> String {
        let id = |id: Option<RequestId>| id.map_or("no id".to_owned(), |id| id.into_json_value().to_string());
        match parse(&line, 1_000) {
            ParsedLine::Refused(refused, error) => format!("{} {}", id(refused), error.code.0),
            ParsedLine::Message(message) => match *message {
                JsonRpcMessage::Error(error) => format!("fails {}", id(error.id)),
                _ => "message".to_owned(),
            },
            ParsedLine::ToolCall(_) => "tool call".to_owned(),
            ParsedLine::Ignored => "ignored".to_owned(),
        }
    }

    #[test]
    fn every_line_but_a_notification_is_answered_with_its_id_if_one_can_be_read() {
        let call = |arguments: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"a","arguments":{arguments}}}}}"#
            )
        };
        let long = "x".repeat(1_000);
        for (line, expected) in [
            (call("{}"), "tool call"),
            (call(r#""{\"code\":\"1\"}""#), "7 -32602"),
            (call("[]"), "7 -32602"),
            (call(r#"{"code":"'\ud83d'"}"#), "7 -32700"),
            (call(r#"{"code":"'\ud83d'"}"#).replace("7", "\"seven\""), "\"seven\" -32700"),
            (r#"{"params":{"a":"\ud83d"},"method":"tools/call","id":7}"#.into(), "7 -32700"),
            (call(&format!(r#"{{"code":"{long}"#)), "7 -32700"),
            (call(&format!(r#"{{"a":{}1{}}}"#, "[".repeat(200), "]".repeat(200))), "7 -32700"),
            (r#"{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{}}"#.into(), "7 -32602"),
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[]}"#.into(), "7 -32600"),
            (r#"{"jsonrpc":"2.0","id":7,"method":"nowhere"}"#.into(), "message"),
            (r#"{"id":7,"method":"ping"}"#.into(), "7 -32600"),
            (r#"{"jsonrpc":"2.0","id":7,"result":{},"method":"ping"}"#.into(), "7 -32600"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.into(), "no id -32600"),
            (r#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#.into(), "no id -32600"),
            ("no json".into(), "no id -32700"),
            // Notifications have no answer.
            (r#"{"jsonrpc":"1.0","method":"textDocument/didOpen"}"#.into(), "ignored"),
            (" \r\n".into(), "ignored"),
            // A response answers a request of Lockhouse, whose id the client may use too.
            (r#"{"jsonrpc":"2.0","id":7,"result":{"a":"\ud83d"}}"#.into(), "fails 7"),
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#.into(), "message"),
        ] {
            let shown: String = line.chars().take(120).collect();
            assert_eq!(outcome(CompleteLine::Within(line.into_bytes())), expected, "{shown}");
        }
    }

    #[test]
    fn a_line_over_the_limit_is_answered_with_its_id() {
        let start = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"#;
        let end = br#"xxx"}},"id":8,"method":"tools/call"}"#;
        for (head, tail, expected) in [
            (&start[..], &b"xxx\"}}}"[..], "7 -32600"),
            (&br#"{"params":{"name":"x"#[..], &end[..], "8 -32600"),
            (b"xxxxxx", b"xxxxx", "no id -32600"),
        ] {
            assert_eq!(outcome(CompleteLine::TooLong(head.to_vec(), tail.to_vec())), expected);
        }
    }
}
