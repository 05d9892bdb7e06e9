//! A message of JSON-RPC as a body has it, counted and split before anything makes a tree of it.
//!
//! rmcp parses a message once for each kind that it could be, so that one value costs it up to 4 µs on the event loop. It
//! therefore gets an outline: the message without the arguments of `tools/call`, which are parsed here, once.

use parking_lot::Mutex;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use lockhouse_base::json::{self, DEPTH_MAX, JsonFault};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Values of an outline: rmcp takes up to 2 ms for them.
const OUTLINE_VALUES_MAX: usize = 500;
/// Of an outline.
const OUTLINE_BYTES_MAX: usize = 256 * 1024;

/// What a client's `requests` pay for besides one for each request. A unit takes the event loop 20 to 30 µs, so that large requests
/// take it no longer than the small ones that a client could send instead.
const BYTES_PER_UNIT: usize = 16 * 1024;
const ARGUMENT_VALUES_PER_UNIT: usize = 64;
const OUTLINE_VALUES_PER_UNIT: usize = 8;
/// Values of an outline that cost nothing: as many as each message needs.
const OUTLINE_VALUES_FREE: usize = 64;

/// Of JSON-RPC.
const PARSE_ERROR: i32 = -32_700;
pub(super) const INVALID_REQUEST: i32 = -32_600;

/// A message that may be passed on.
#[derive(Debug)]
pub(super) struct Message {
    /// The message with `{}` in place of [`arguments`](Self::arguments).
    pub(super) outline: Vec<u8>,
    /// Of a `tools/call`.
    pub(super) arguments: Option<Arguments>,
}

/// The arguments of one `tools/call`, in the extensions of its HTTP request. Copies are the same.
#[derive(Clone, Debug)]
pub(super) struct Arguments(Arc<Mutex<Option<JsonObject>>>);

impl Arguments {
    /// The arguments, for the first who asks.
    pub(super) fn take(&self) -> Option<JsonObject> {
        self.0.lock().take()
    }
}

/// Why a body is no message that is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MessageFault {
    #[error("the body is not valid JSON")]
    NotJson,
    #[error("batches are not taken: send each message by itself")]
    Batch,
    #[error("the message has more than {DEPTH_MAX} levels of lists and objects in each other")]
    TooDeep,
    #[error("the message has the key `$serde_json::private::RawValue`, which is not taken")]
    ReservedKey,
    #[error(
        "the message has more than {values_max} JSON values: body_values of [http.limits]. Code may have more, as text: run_code"
    )]
    TooManyValues { values_max: usize },
    #[error(
        "the message has more than {OUTLINE_VALUES_MAX} JSON values, or {} KiB, besides the arguments of tools/call",
        OUTLINE_BYTES_MAX / 1024
    )]
    LargeOutline,
}

impl MessageFault {
    /// What JSON-RPC has for it.
    pub(super) fn code(self) -> i32 {
        if self == Self::NotJson { PARSE_ERROR } else { INVALID_REQUEST }
    }

    /// Whether it is about how much there is.
    pub(super) fn is_size(self) -> bool {
        matches!(self, Self::TooManyValues { .. } | Self::LargeOutline)
    }
}

/// What a body of so many bytes costs, in units.
pub(super) fn cost_of_bytes(bytes: usize) -> u32 {
    units(bytes, BYTES_PER_UNIT)
}

fn units(amount: usize, per_unit: usize) -> u32 {
    u32::try_from(amount / per_unit).unwrap_or(u32::MAX)
}

/// What the values of a body cost, in units, and the message.
pub(super) fn parse(body: Vec<u8>, values_max: usize) -> (u32, Result<Message, MessageFault>) {
    let counted = json::count(&body, values_max);
    let free = counted.values.min(OUTLINE_VALUES_FREE);
    let split = counted.fault.map_or_else(
        || split(body, counted.values),
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
            let outline = units(outline_values.saturating_sub(free), OUTLINE_VALUES_PER_UNIT);
            let arguments = units(counted.values.saturating_sub(outline_values), ARGUMENT_VALUES_PER_UNIT);
            (outline.saturating_add(arguments), Ok(message))
        }
        // It was counted, and nothing was made of it.
        Err(fault) => (units(counted.values, ARGUMENT_VALUES_PER_UNIT), Err(fault)),
    }
}

/// The message of valid JSON, and how many values its outline has.
fn split(mut body: Vec<u8>, values: usize) -> Result<(Message, usize), MessageFault> {
    if body.trim_ascii_start().starts_with(b"[") {
        // Of 2025-03-26 alone, and gone since.
        return Err(MessageFault::Batch);
    }
    let (mut arguments, mut outline_values) = (None, values);
    if let Some(range) = arguments_range(&body)
        && let Ok(parsed) = serde_json::from_slice::<JsonObject>(&body[range.clone()])
    {
        body.splice(range, *b"{}");
        arguments = Some(Arguments(Arc::new(Mutex::new(Some(parsed)))));
        outline_values = json::count(&body, OUTLINE_VALUES_MAX + 1).values;
    }
    if outline_values > OUTLINE_VALUES_MAX || body.len() > OUTLINE_BYTES_MAX {
        return Err(MessageFault::LargeOutline);
    }
    Ok((Message { outline: body, arguments }, outline_values))
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

/// Where the arguments of a `tools/call` are. None if a name is there twice: then readers could differ about which one counts.
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
    fn the_arguments_of_a_call_are_split_off_and_nothing_else_is() {
        let arguments = r#"{ "a" : [1, "}\"", {"arguments": {}}], "é": null }"#;
        for text in [call(arguments), call(arguments).replace("params", "p\\u0061rams")] {
            let (_, message) = parse(text.clone().into_bytes(), MAX);
            let message = message.expect("a message");
            assert_eq!(String::from_utf8(message.outline).expect("UTF-8"), text.replace(arguments, "{}"));
            let taken = message.arguments.as_ref().and_then(Arguments::take).expect("arguments");
            assert_eq!(Value::Object(taken), serde_json::from_str::<Value>(arguments).expect("JSON"));
            assert!(message.arguments.as_ref().and_then(Arguments::take).is_none(), "they are there once");
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
    fn what_would_cost_much_is_refused() {
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
            // Twice the same name.
            (call(&format!(r#"{{}},"arguments":{{"x":{}}}"#, list(500))), Some(MessageFault::LargeOutline)),
            (format!("[{}]", call("{}")), Some(MessageFault::Batch)),
            (call("{"), Some(MessageFault::NotJson)),
            (call("{}") + "1", Some(MessageFault::NotJson)),
        ] {
            assert_eq!(fault(&body), expected, "{}", &body[..body.len().min(200)]);
        }
    }

    #[test]
    fn what_is_long_costs_more_than_what_is_short() {
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
