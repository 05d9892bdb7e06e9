//! One message of a server: what it is, and what rmcp gets of it. Nothing is parsed into a tree before its size is known.

use lockhouse_base::json::{self, JsonFault};
use rmcp::RoleClient;
use rmcp::model::{CustomRequest, CustomResult, ErrorData, RequestId, ServerRequest, ServerResult};
use rmcp::service::RxJsonRpcMessage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::ids::id_in;

/// Marks an error as ours, so that the caller can tell it from the upstream's own.
pub(super) const TOO_LARGE: &str = "lockhouse: result too large";

/// The connection ended between a request and its answer.
pub(super) const CUT_OFF: &str = "lockhouse: the answer was cut off";

pub(super) const NOT_JSON: &str = "the server's answer is not valid JSON, or is nested too deeply";

/// Bytes of a message that is parsed in full: a request of the server, an error, or a result of the handshake.
pub(super) const TYPED_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a notification, and JSON values. None of those that MCP knows needs so many.
const NOTIFICATION_BYTES_MAX: usize = 64 * 1024;
const NOTIFICATION_VALUES_MAX: usize = 256;
/// JSON values in a message that is parsed in full: two bytes can become a hundred in a tree.
pub(super) const TYPED_NODES_MAX: usize = 4096;
/// Bytes that each value of a message that is parsed in full counts besides its own, above a number that costs nothing: rmcp parses
/// a message once for each kind that it could be, which takes up to 0.6 µs for a value.
const VALUE_BYTES: usize = 64;
const VALUES_FREE: usize = 32;
/// Bytes of an id or a method, as they are written. An id is repeated in the answer.
const NAME_BYTES_MAX: usize = 256;

const LONG_NAME: &str = "it sent a message whose `id` or `method` is longer than 256 bytes";

/// The method that stands for a request that is not read.
pub(super) const REFUSED_METHOD: &str = "lockhouse/refused";

/// Bytes of text above which reading it takes milliseconds, and is done on another thread.
const LARGE_BYTES: usize = 256 * 1024;

pub(super) type Received = RxJsonRpcMessage<RoleClient>;

/// What one message is.
pub(super) enum Inbound {
    /// The answer to the request with this id, if there is one.
    Answer(RequestId, Received),
    /// A request or a notification, or nothing that could be passed on.
    Unsolicited(Option<Received>),
    /// What no server may send.
    Violation(&'static str),
}

/// The parts of a message that say what it is.
#[derive(Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(borrow)]
    pub(super) method: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
}

/// Reads a message: what it costs, in bytes of its server's allowance, and what it is. `convert` makes what rmcp gets of a result,
/// or `None` where rmcp needs it typed.
pub(super) fn read(
    text: &[u8],
    convert: impl FnOnce(&RequestId, &RawValue) -> Option<ServerResult>,
) -> (usize, Inbound) {
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(text) else {
        // Where it names a request, that one must not hang.
        let inbound = match id_in(text) {
            Some(id) => Inbound::Answer(id.clone(), failed(NOT_JSON, id)),
            None => Inbound::Unsolicited(None),
        };
        return (text.len(), inbound);
    };
    let is_long = |name: &RawValue| name.get().len() > NAME_BYTES_MAX;
    if envelope.id.is_some_and(is_long) || envelope.method.is_some_and(is_long) {
        return (text.len(), Inbound::Violation(LONG_NAME));
    }
    let id = envelope.id.and_then(|id| serde_json::from_str::<RequestId>(id.get()).ok());
    match (envelope.method, id) {
        (Some(_), Some(id)) => {
            let (cost, request) = typed(text, TYPED_BYTES_MAX, TYPED_NODES_MAX);
            (cost, Inbound::Unsolicited(Some(request.unwrap_or_else(|_| refused(id)))))
        }
        (_, None) => {
            let (cost, note) = typed(text, NOTIFICATION_BYTES_MAX, NOTIFICATION_VALUES_MAX);
            (cost, Inbound::Unsolicited(note.ok()))
        }
        (None, Some(id)) => {
            let result = envelope.result.and_then(|result| convert(&id, result));
            let (cost, message) = match result {
                Some(result) => (text.len(), Received::response(result, id.clone())),
                None => {
                    let (cost, message) = typed(text, TYPED_BYTES_MAX, TYPED_NODES_MAX);
                    (cost, message.unwrap_or_else(|why| failed(why, id.clone())))
                }
            };
            (cost, Inbound::Answer(id, message))
        }
    }
}

/// What a message costs its server, in bytes, and the message as rmcp types it, if that costs us little. An error says in words of ours
/// why it is not. What is not parsed costs its bytes alone.
pub(super) fn typed(
    text: &[u8],
    bytes_max: usize,
    values_max: usize,
) -> (usize, Result<Received, &'static str>) {
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

/// A result as text: parsed in full, a hostile one would take a hundred times its size.
pub(super) fn raw(result: &RawValue) -> ServerResult {
    ServerResult::CustomResult(CustomResult(Value::String(result.get().to_owned())))
}

pub(super) fn failed(message: &'static str, id: RequestId) -> Received {
    Received::error(ErrorData::internal_error(message, None), Some(id))
}

/// A request in place of one that is not read: [`Host`](super::host::Host) answers it with an error.
fn refused(id: RequestId) -> Received {
    Received::request(ServerRequest::CustomRequest(CustomRequest::new(REFUSED_METHOD, None)), id)
}

/// Whether so much text is read on another thread.
pub(super) fn is_large(bytes: usize) -> bool {
    bytes > LARGE_BYTES
}

/// Reads text of this length: on another thread if it is large, so that nobody else waits meanwhile.
pub(super) async fn reading<T: Send + 'static>(
    bytes: usize,
    read: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match is_large(bytes) {
        true => tokio::task::spawn_blocking(read).await.ok(),
        false => Some(read()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_text(_: &RequestId, result: &RawValue) -> Option<ServerResult> {
        Some(raw(result))
    }

    fn told(text: &str) -> String {
        match read(text.as_bytes(), as_text).1 {
            Inbound::Answer(id, message) => {
                format!("answer {id}: {}", serde_json::to_string(&message).expect("JSON"))
            }
            Inbound::Unsolicited(message) => match message {
                Some(message) => format!("unsolicited: {}", serde_json::to_string(&message).expect("JSON")),
                None => "dropped".into(),
            },
            Inbound::Violation(words) => words.into(),
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
            // Dropped.
            (note(&many(300)), 0),
            (ask("1"), 0),
            (ask(&many(4_000)), 4_000 + 6 - VALUES_FREE),
            (ask(&many(5_000)), 0),
            (error(&many(4_000)), 4_000 + 6 - VALUES_FREE),
            (result(&many(4_000)), 0),
            (many(4_000), 0),
            ("no message".into(), 0),
        ] {
            let (cost, _) = read(text.as_bytes(), as_text);
            let shown: String = text.chars().take(80).collect();
            assert_eq!(cost, text.len() + values * VALUE_BYTES, "{shown}");
        }
    }

    /// In place of a request that is too large.
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
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"a": 1.0}}"#.to_owned(),
                r#"answer 7: {"jsonrpc":"2.0","id":7,"result":"{\"a\": 1.0}"}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-5,"message":"no"}}"#.into(),
                r#"answer 7: {"jsonrpc":"2.0","id":7,"error":{"code":-5"#,
            ),
            (r#"{"jsonrpc":"2.0","id":7,"result":{"#.into(), "answer 7"),
            (
                format!(
                    r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":-5,"message":"no","data":{}}}}}"#,
                    many(5_000)
                ),
                "answer 7: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32603,\"message\":\"lockhouse: result too large\"",
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
            let told = told(&text);
            let shown: String = text.chars().take(80).collect();
            assert!(told.starts_with(expected), "{shown}: {}", told.chars().take(200).collect::<String>());
        }
    }
}
