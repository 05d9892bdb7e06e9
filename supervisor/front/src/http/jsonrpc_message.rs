//! Prepares the JSON-RPC message in a request body for rmcp: counts its JSON values, and splits off the arguments of
//! `tools/call`.
//!
//! rmcp parses a message once for each type that it could be, which takes up to 4 µs per JSON value on the event loop.
//! rmcp therefore gets an outline: the message without the arguments of `tools/call`. The arguments are parsed here,
//! once.

use parking_lot::Mutex;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use lockhouse_base::json::{self, DEPTH_MAX, JsonFault};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Maximum number of JSON values in an outline (a message without the arguments of `tools/call`). rmcp needs up to 2 ms
/// for them.
const OUTLINE_VALUES_MAX: usize = 500;
/// Maximum size in bytes of an outline (a message without the arguments of `tools/call`).
const OUTLINE_BYTES_MAX: usize = 256 * 1024;

/// Number of bytes of a request body that cost one unit of the client's rate limit `requests`. In addition, each
/// request costs one unit. A unit stands for 20 to 30 µs of the event loop, so a large request costs as much as the
/// small requests that the client could send instead.
const BYTES_PER_UNIT: usize = 16 * 1024;
const ARGUMENT_VALUES_PER_UNIT: usize = 64;
const OUTLINE_VALUES_PER_UNIT: usize = 8;
/// Number of JSON values of an outline that are free of charge: as many as every message needs.
const OUTLINE_VALUES_FREE: usize = 64;

/// JSON-RPC error code for invalid JSON.
const PARSE_ERROR: i32 = -32_700;
pub(super) const INVALID_REQUEST: i32 = -32_600;

/// A JSON-RPC message for rmcp, and the arguments that were split off.
#[derive(Debug)]
pub(super) struct JsonRpcMessage {
    /// The message, with `{}` in place of [`arguments`](Self::arguments).
    pub(super) outline: Vec<u8>,
    /// The arguments that were split off, if the message is a `tools/call`.
    pub(super) arguments: Option<CallArguments>,
}

/// The arguments of a `tools/call`, in the extensions of the HTTP request. Clones share the arguments.
#[derive(Clone, Debug)]
pub(super) struct CallArguments(Arc<Mutex<Option<JsonObject>>>);

impl CallArguments {
    /// Removes and returns the arguments. Returns `None` after the first call.
    pub(super) fn take(&self) -> Option<JsonObject> {
        self.0.lock().take()
    }
}

/// Why a request body is refused as a JSON-RPC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MessageFault {
    #[error("the body is not valid JSON")]
    NotJson,
    #[error("batches are not supported: send each message separately")]
    Batch,
    #[error("the message has more than {DEPTH_MAX} levels of nested lists and objects")]
    TooDeep,
    #[error("the message has the key `$serde_json::private::RawValue`, which is not allowed")]
    ReservedKey,
    #[error(
        "the message has more than {values_max} JSON values (body_values of [http.limits]); larger data can be text within the code of run_code"
    )]
    TooManyValues { values_max: usize },
    #[error(
        "the message has more than {OUTLINE_VALUES_MAX} JSON values, or {} KiB, besides the arguments of tools/call",
        OUTLINE_BYTES_MAX / 1024
    )]
    LargeOutline,
}

impl MessageFault {
    /// Returns the JSON-RPC error code of the refusal.
    pub(super) fn code(self) -> i32 {
        if self == Self::NotJson { PARSE_ERROR } else { INVALID_REQUEST }
    }

    /// Returns whether the message is refused because of its size.
    pub(super) fn is_size(self) -> bool {
        matches!(self, Self::TooManyValues { .. } | Self::LargeOutline)
    }
}

/// Returns the cost of a request body of this size, in units of the client's rate limit.
pub(super) fn cost_of_bytes(bytes: usize) -> u32 {
    to_units(bytes, BYTES_PER_UNIT)
}

fn to_units(amount: usize, per_unit: usize) -> u32 {
    u32::try_from(amount / per_unit).unwrap_or(u32::MAX)
}

/// Parses a request body, which may have at most `values_max` JSON values. Returns the cost of its JSON values, in
/// units of the client's rate limit, and the message or the reason of its refusal.
pub(super) fn parse(body: Vec<u8>, values_max: usize) -> (u32, Result<JsonRpcMessage, MessageFault>) {
    let counted = json::count(&body, values_max);
    let free = counted.values.min(OUTLINE_VALUES_FREE);
    let split = counted.fault.map_or_else(
        || split_arguments(body, counted.values),
        |fault| {
            Err(match fault {
                JsonFault::Invalid => MessageFault::NotJson,
                JsonFault::TooDeep => MessageFault::TooDeep,
                JsonFault::ReservedKey => MessageFault::ReservedKey,
                JsonFault::TooManyValues => MessageFault::TooManyValues { values_max },
            })
        },
    );
    match split {
        Ok((message, outline_values)) => {
            let outline = to_units(outline_values.saturating_sub(free), OUTLINE_VALUES_PER_UNIT);
            let arguments = to_units(counted.values.saturating_sub(outline_values), ARGUMENT_VALUES_PER_UNIT);
            (outline.saturating_add(arguments), Ok(message))
        }
        // Counting alone was paid for; nothing was parsed.
        Err(fault) => (to_units(counted.values, ARGUMENT_VALUES_PER_UNIT), Err(fault)),
    }
}

/// Splits the arguments of a `tools/call` off a body of valid JSON with `values` JSON values. Returns the message and
/// the number of JSON values in its outline.
fn split_arguments(mut body: Vec<u8>, values: usize) -> Result<(JsonRpcMessage, usize), MessageFault> {
    if body.trim_ascii_start().starts_with(b"[") {
        // Batches exist in protocol version 2025-03-26 only.
        return Err(MessageFault::Batch);
    }
    let (mut arguments, mut outline_values) = (None, values);
    if let Some(range) = arguments_range(&body)
        && let Ok(parsed) = serde_json::from_slice::<JsonObject>(&body[range.clone()])
    {
        body.splice(range, *b"{}");
        arguments = Some(CallArguments(Arc::new(Mutex::new(Some(parsed)))));
        outline_values = json::count(&body, OUTLINE_VALUES_MAX + 1).values;
    }
    if outline_values > OUTLINE_VALUES_MAX || body.len() > OUTLINE_BYTES_MAX {
        return Err(MessageFault::LargeOutline);
    }
    Ok((JsonRpcMessage { outline: body, arguments }, outline_values))
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Returns the byte range of the arguments in a `tools/call` message. Returns `None` for other messages, and if a key
/// occurs twice, because parsers differ about which one counts.
fn arguments_range(message: &[u8]) -> Option<Range<usize>> {
    let request: Request<'_> = serde_json::from_slice(message).ok()?;
    let arguments = request.params.arguments.filter(|_| request.method == "tools/call")?.get();
    let start = arguments.as_ptr() as usize - message.as_ptr() as usize;
    Some(start..start + arguments.len())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const MAX: usize = 10_000;

    fn fault(body: &str) -> Option<MessageFault> {
        parse(body.as_bytes().to_vec(), MAX).1.err()
    }

    fn call(arguments: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"params":{{"arguments":{arguments},"name":"x"}},"method":"tools/call"}}"#
        )
    }

    #[test]
    fn only_tools_call_arguments_are_split_off() {
        let arguments = r#"{ "a" : [1, "}\"", {"arguments": {}}], "é": null }"#;
        for text in [call(arguments), call(arguments).replace("params", "p\\u0061rams")] {
            let (_, message) = parse(text.clone().into_bytes(), MAX);
            let message = message.expect("a message");
            assert_eq!(String::from_utf8(message.outline).expect("UTF-8"), text.replace(arguments, "{}"));
            let taken = message.arguments.as_ref().and_then(CallArguments::take).expect("arguments");
            assert_eq!(Value::Object(taken), serde_json::from_str::<Value>(arguments).expect("JSON"));
            assert!(
                message.arguments.as_ref().and_then(CallArguments::take).is_none(),
                "they are there once"
            );
        }
        for whole in [
            call("null"),
            call("[{}]"),
            call(r#"{},"arguments":{"b":1}"#),
            call("{}").replace("tools/call", "prompts/get"),
            json!({"jsonrpc": "2.0", "id": 1, "result": {"arguments": {"a": 1}}}).to_string(),
        ] {
            let (_, message) = parse(whole.clone().into_bytes(), MAX);
            let message = message.expect("a message");
            assert_eq!((message.outline, message.arguments.is_none()), (whole.into_bytes(), true));
        }
    }

    #[test]
    fn expensive_messages_are_refused() {
        let list = |values: usize| format!("[0{}]", ",0".repeat(values - 1));
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let in_arguments = |json: String| call(&format!(r#"{{"x":{json}}}"#));
        let in_meta =
            |json: String| call("{}").replace("\"name\"", &format!("\"_meta\":{{\"x\":{json}}},\"name\""));
        let long = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
        let too_many = Some(MessageFault::TooManyValues { values_max: MAX });
        for (body, expected) in [
            (in_arguments(list(9_900)), None),
            (in_arguments(list(MAX)), too_many),
            (in_arguments(long(1_000_000)), None),
            (in_arguments(nested(90)), None),
            (in_arguments(nested(100)), Some(MessageFault::TooDeep)),
            (
                in_arguments(r#"{"$serde_json::private::RawValue":"[0]"}"#.into()),
                Some(MessageFault::ReservedKey),
            ),
            (
                in_meta(r#"{"\u0024serde_json::private::RawValue":"[0]"}"#.into()),
                Some(MessageFault::ReservedKey),
            ),
            (in_meta(list(480)), None),
            (in_meta(list(500)), Some(MessageFault::LargeOutline)),
            (in_meta(long(250_000)), None),
            (in_meta(long(270_000)), Some(MessageFault::LargeOutline)),
            (in_meta(list(MAX)), too_many),
            // The key "arguments" twice.
            (call(&format!(r#"{{}},"arguments":{{"x":{}}}"#, list(500))), Some(MessageFault::LargeOutline)),
            (format!("[{}]", call("{}")), Some(MessageFault::Batch)),
            (call("{"), Some(MessageFault::NotJson)),
            (call("{}") + "1", Some(MessageFault::NotJson)),
        ] {
            assert_eq!(fault(&body), expected, "{}", &body[..body.len().min(200)]);
        }
    }

    #[test]
    fn large_messages_cost_more_than_small_ones() {
        let cost = |body: &str| cost_of_bytes(body.len()) + parse(body.as_bytes().to_vec(), MAX).0;
        let list = |values: usize| format!(r#"{{"x":[0{}]}}"#, ",0".repeat(values - 1));
        let program = |bytes: usize| format!(r#"{{"code":"{}"}}"#, "x".repeat(bytes));
        assert_eq!([cost(&call("{}")), cost(&call(&program(10_000)))], [0, 0]);
        assert_eq!([cost(&call(&program(256 * 1024))), cost(&call(&list(6_400)))], [16, 100]);
        let meta = call("{}").replace("\"name\"", &format!("\"_meta\":{},\"name\"", list(464)));
        assert_eq!(cost(&meta), 51);
        assert!(cost(&list(MAX)) >= 150, "who sends too much pays for it");
    }
}
