//! Classifies one message of an upstream server and converts it to rmcp's types. The size of a message is checked
//! before the message is parsed into a tree of values.

use std::ops::Range;

use lockhouse_base::json::{self, JsonFault};
use rmcp::RoleClient;
use rmcp::model::{CustomRequest, ErrorData, JsonRpcMessage, RequestId, ServerRequest};
use rmcp::service::RxJsonRpcMessage;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::response_id_scan::find_id;

/// Error message that Lockhouse returns in place of a result that exceeds the size limit.
pub const TOO_LARGE: &str = "lockhouse: result too large";

/// Error message that Lockhouse returns in place of an answer if the connection ended before the answer was complete.
pub const CUT_OFF: &str = "lockhouse: the answer was cut off";

pub const NOT_JSON: &str = "the server's answer is not valid JSON, or is nested too deeply";

/// Maximum size in bytes of a server's message that is parsed completely: a request, an error, or a handshake result.
/// Bound: upstream servers.
pub const TYPED_BYTES_MAX: usize = 1024 * 1024;
/// Maximum size in bytes of a notification of the server. Larger notifications are dropped; no notification of MCP
/// needs more.
/// Bound: upstream servers.
const NOTIFICATION_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of JSON values in a notification of the server. Notifications with more values are dropped.
/// Bound: upstream servers.
const NOTIFICATION_VALUES_MAX: usize = 256;
/// Maximum number of JSON values in a message that is parsed completely. The size limit alone does not suffice, because
/// two bytes of text can become a value that takes a hundred bytes of memory.
/// Bound: upstream servers.
pub const TYPED_NODES_MAX: usize = 4096;
/// Number of bytes that are charged to the server's traffic allowance for each JSON value of a completely parsed
/// message, in addition to the size of the message. The first `VALUES_FREE` values are free. Parsing takes up to 0.6 µs
/// for each value, because rmcp tries each type that the message could have.
/// Bound: upstream servers.
const VALUE_BYTES: usize = 64;
const VALUES_FREE: usize = 32;
/// Maximum size in bytes of the `id` or the `method` of a message. A server that exceeds this limit is disconnected.
/// Bound: upstream servers.
const NAME_BYTES_MAX: usize = 256;

const LONG_NAME: &str = "it sent a message whose `id` or `method` is longer than 256 bytes";

/// The method name of the placeholder that replaces a server's request that is too large or invalid. The placeholder is
/// answered with an error.
pub const REFUSED_METHOD: &str = "lockhouse/refused";

/// Maximum size in bytes of a message that is parsed on the current thread. Larger messages take milliseconds to parse,
/// and are parsed on another thread.
const LARGE_BYTES: usize = 256 * 1024;

pub type RxMessage = RxJsonRpcMessage<RoleClient>;

/// The answer to a request: the result as JSON text, or the server's error, or the error that replaces an unusable answer.
pub type JsonRpcResult = Result<String, ErrorData>;

/// A message that was received from an upstream server, by its kind.
pub enum InboundMessage {
    /// The answer of the server to Lockhouse's request with this ID.
    Answer(RequestId, JsonRpcResult),
    /// A request or notification of the server. `None` if the message is dropped, because it cannot be parsed or
    /// exceeds a limit.
    Unsolicited(Option<Box<RxMessage>>),
    /// A message that violates the protocol or a limit, so the server is disconnected. Contains the reason.
    Violation(&'static str),
}

/// The members of a JSON-RPC message that determine its kind.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// Parses a message of the server. Returns the number of bytes to charge to the server's traffic allowance, and the
/// classified message.
pub fn parse(text: Vec<u8>) -> (usize, InboundMessage) {
    let bytes = text.len();
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(&text) else {
        // If it names a request, fail that request so that its caller does not hang.
        let inbound = match find_id(&text) {
            Some(id) => InboundMessage::Answer(id, failed(NOT_JSON)),
            None => InboundMessage::Unsolicited(None),
        };
        return (bytes, inbound);
    };
    let is_long = |name: &RawValue| name.get().len() > NAME_BYTES_MAX;
    if envelope.id.is_some_and(is_long) || envelope.method.is_some_and(is_long) {
        return (bytes, InboundMessage::Violation(LONG_NAME));
    }
    let id = envelope.id.and_then(|id| serde_json::from_str::<RequestId>(id.get()).ok());
    match (envelope.method, id) {
        (Some(_), Some(id)) => {
            let (cost, request) = parse_typed(&text, TYPED_BYTES_MAX, TYPED_NODES_MAX);
            (cost, InboundMessage::Unsolicited(Some(request.unwrap_or_else(|_| refused_request(id)).into())))
        }
        (_, None) => {
            let (cost, note) = parse_typed(&text, NOTIFICATION_BYTES_MAX, NOTIFICATION_VALUES_MAX);
            (cost, InboundMessage::Unsolicited(note.ok().map(Box::new)))
        }
        (None, Some(id)) => {
            let result = envelope.result.map(RawValue::get);
            let (cost, answer) = answer_of(result.map(|result| place_in(&text, result)), text);
            (cost, InboundMessage::Answer(id, answer))
        }
    }
}

/// Parses a text as the answer to a request, whatever ID it contains.
pub fn parse_answer(text: Vec<u8>) -> JsonRpcResult {
    match serde_json::from_slice::<Envelope<'_>>(&text) {
        Ok(envelope) if envelope.method.is_none() => {
            let result = envelope.result.map(RawValue::get);
            answer_of(result.map(|result| place_in(&text, result)), text).1
        }
        _ => failed(NOT_JSON),
    }
}

/// Returns where a part of a text is in it.
fn place_in(text: &[u8], part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// Returns the answer in a message without a method, whose result is at this place, and the number of bytes to charge for it. A
/// result remains JSON text, and where it is in memory: if results were parsed completely, a hostile one would take a hundred
/// times its size.
fn answer_of(result: Option<Range<usize>>, mut text: Vec<u8>) -> (usize, JsonRpcResult) {
    if let Some(Range { start, end }) = result {
        let bytes = text.len();
        text.truncate(end);
        text.drain(..start);
        return (bytes, String::from_utf8(text).or_else(|_| failed(NOT_JSON)));
    }
    let (cost, message) = parse_typed(&text, TYPED_BYTES_MAX, TYPED_NODES_MAX);
    let answer = match message {
        Ok(JsonRpcMessage::Error(error)) => Err(error.error),
        Ok(_) => failed(NOT_JSON),
        Err(why) => failed(why),
    };
    (cost, answer)
}

/// Parses a message completely if it is within the given limits. Returns the number of bytes to charge to the server's
/// traffic allowance, and the message. In place of a message that is invalid or exceeds a limit, returns an error text.
/// The values of a message are not charged if the message is not valid JSON or has more than `values_max` values.
fn parse_typed(text: &[u8], bytes_max: usize, values_max: usize) -> (usize, Result<RxMessage, &'static str>) {
    let counted = json::count(text, values_max);
    let of_values = match counted.fault {
        None => VALUE_BYTES * counted.values.saturating_sub(VALUES_FREE),
        Some(_) => 0,
    };
    let message = match counted.fault {
        _ if text.len() > bytes_max => Err(TOO_LARGE),
        Some(JsonFault::TooManyValues) => Err(TOO_LARGE),
        Some(JsonFault::TooDeep | JsonFault::Invalid | JsonFault::ReservedKey) => Err(NOT_JSON),
        None => serde_json::from_slice(text).map_err(|_| NOT_JSON),
    };
    (text.len() + of_values, message)
}

/// Returns the error that replaces an unusable answer.
pub fn failed(message: &'static str) -> JsonRpcResult {
    Err(ErrorData::internal_error(message, None))
}

/// Creates the placeholder that replaces a server's request that is too large or invalid.
/// Whoever handles the requests of the server answers the placeholder with an error.
fn refused_request(id: RequestId) -> RxMessage {
    RxMessage::request(ServerRequest::CustomRequest(CustomRequest::new(REFUSED_METHOD, None)), id)
}

/// Whether a text of this length in bytes is parsed on another thread.
pub fn is_large(bytes: usize) -> bool {
    bytes > LARGE_BYTES
}

/// Runs `task`, which parses a text of this length in bytes. For a large text, `task` runs on another thread,
/// so that other async tasks are not blocked. Returns `None` if `task` panicked on that thread.
pub async fn offload_if_large<T: Send + 'static>(
    bytes: usize,
    task: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match is_large(bytes) {
        true => tokio::task::spawn_blocking(task).await.ok(),
        false => Some(task()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(text: &str) -> String {
        match parse(text.into()).1 {
            InboundMessage::Answer(id, Ok(result)) => format!("answer {id}: {result}"),
            InboundMessage::Answer(id, Err(error)) => {
                format!("answer {id}: {}", serde_json::to_string(&error).expect("JSON"))
            }
            InboundMessage::Unsolicited(message) => match message {
                Some(message) => format!("unsolicited: {}", serde_json::to_string(&message).expect("JSON")),
                None => "dropped".into(),
            },
            InboundMessage::Violation(words) => words.into(),
        }
    }

    #[test]
    fn a_message_costs_what_it_takes_to_parse_it_and_one_that_is_not_parsed_costs_its_bytes() {
        let many = |count: usize| format!("[{}]", vec!["0"; count].join(","));
        let note = |data: &str| {
            format!(r#"{{"method":"notifications/message","params":{{"level":"info","data":{data}}}}}"#)
        };
        let ask = |data: &str| format!(r#"{{"id":1,"method":"ping","params":{{"_meta":{{"x":{data}}}}}}}"#);
        let error = |data: &str| format!(r#"{{"id":1,"error":{{"code":1,"message":"no","data":{data}}}}}"#);
        let result = |data: &str| format!(r#"{{"id":1,"result":{data}}}"#);
        for (text, values) in [
            (note("1"), 0),
            (note(&many(20)), 0),
            (note(&many(200)), 200 + 5 - VALUES_FREE),
            // Not parsed, but dropped.
            (note(&many(300)), 0),
            (ask("1"), 0),
            (ask(&many(4_000)), 4_000 + 6 - VALUES_FREE),
            (ask(&many(5_000)), 0),
            (error(&many(4_000)), 4_000 + 6 - VALUES_FREE),
            (result(&many(4_000)), 0),
            (many(4_000), 0),
            ("no message".into(), 0),
        ] {
            let (cost, _) = parse(text.clone().into());
            let shown: String = text.chars().take(80).collect();
            assert_eq!(cost, text.len() + values * VALUE_BYTES, "{shown}");
        }
    }

    /// The text by which these tests describe the placeholder for a request that is too large to be parsed.
    const REFUSED: &str = r#"unsolicited: {"jsonrpc":"2.0","id":1,"method":"lockhouse/refused""#;

    #[test]
    fn a_message_is_what_it_says_and_no_more_of_it_is_parsed_than_is_bounded() {
        let log = |data: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{data}}}}}"#
            )
        };
        let ask = |id: &str, more: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"{more}}}"#);
        let many = |count: usize| format!("[{}]", vec!["[]"; count].join(","));
        let long = |bytes: usize| format!("{:?}", "x".repeat(bytes));
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"a": 1.0}}"#.to_owned(), r#"answer 7: {"a": 1.0}"#),
            (
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-5,"message":"no"}}"#.into(),
                r#"answer 7: {"code":-5,"message":"no"}"#,
            ),
            (r#"{"jsonrpc":"2.0","id":7,"result":{"#.into(), "answer 7"),
            (
                format!(
                    r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":-5,"message":"no","data":{}}}}}"#,
                    many(5_000)
                ),
                "answer 7: {\"code\":-32603,\"message\":\"lockhouse: result too large\"",
            ),
            ("no message".into(), "dropped"),
            (log("1"), "unsolicited"),
            (log(&long(60_000)), "unsolicited"),
            (log(&long(70_000)), "dropped"),
            (log(&many(240)), "unsolicited"),
            (log(&many(260)), "dropped"),
            (ask("1", ""), "unsolicited"),
            (ask("\"one\"", ""), "unsolicited"),
            (ask(&long(200), ""), "unsolicited"),
            (ask(&long(300), ""), LONG_NAME),
            (ask(&many(300), ""), LONG_NAME),
            (format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, long(300)), LONG_NAME),
            (format!(r#"{{"jsonrpc":"2.0","method":{}}}"#, long(300)), LONG_NAME),
            (ask("1", &format!(r#","params":{{"_meta":{{"x":{}}}}}"#, long(500_000))), "unsolicited"),
            (ask("1", &format!(r#","params":{{"_meta":{{"x":{}}}}}"#, long(TYPED_BYTES_MAX))), REFUSED),
            (ask("1", &format!(r#","params":{{"_meta":{{"x":{}}}}}"#, many(5_000))), REFUSED),
        ] {
            let describe = describe(&text);
            let shown: String = text.chars().take(80).collect();
            assert!(
                describe.starts_with(expected),
                "{shown}: {}",
                describe.chars().take(200).collect::<String>()
            );
        }
    }
}
