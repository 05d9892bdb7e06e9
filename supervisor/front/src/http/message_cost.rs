//! Parses the message in a request body, and charges its client for its JSON values.

use lockhouse_base::json::{self, DEPTH_MAX, JsonFault};
use lockhouse_mcp::server::client_message::{ClientMessage, InvalidMessage};
use rmcp::model::ErrorData;

/// Number of bytes of a request body, and of its JSON values, that cost one unit of the client's rate limit `requests`. In
/// addition, each request costs one unit. A unit stands for 20 to 30 µs of the event loop, so a large request costs as much as
/// the small requests that the client could send instead.
const BYTES_PER_UNIT: usize = 16 * 1024;
const VALUES_PER_UNIT: usize = 64;

/// Why a request body is refused.
#[derive(Debug, thiserror::Error)]
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
    /// It is JSON, but no message.
    #[error("{}", .0.error.message)]
    Invalid(InvalidMessage),
}

impl MessageFault {
    /// Returns whether the message is refused because of its size.
    pub(super) fn is_size(&self) -> bool {
        matches!(self, Self::TooManyValues { .. })
    }
}

impl From<MessageFault> for InvalidMessage {
    fn from(fault: MessageFault) -> Self {
        let message = fault.to_string();
        match fault {
            MessageFault::Invalid(invalid) => invalid,
            MessageFault::NotJson => {
                Self { id: None, error: Box::new(ErrorData::parse_error(message, None)) }
            }
            _ => Self { id: None, error: Box::new(ErrorData::invalid_request(message, None)) },
        }
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
pub(super) fn parse_message(body: &[u8], values_max: usize) -> (u32, Result<ClientMessage, MessageFault>) {
    let counted = json::count(body, values_max);
    let message = match counted.fault {
        None if body.trim_ascii_start().starts_with(b"[") => Err(MessageFault::Batch),
        None => ClientMessage::parse(body).map_err(MessageFault::Invalid),
        Some(JsonFault::Invalid) => Err(MessageFault::NotJson),
        Some(JsonFault::TooDeep) => Err(MessageFault::TooDeep),
        Some(JsonFault::ReservedKey) => Err(MessageFault::ReservedKey),
        Some(JsonFault::TooManyValues) => Err(MessageFault::TooManyValues { values_max }),
    };
    (to_units(counted.values, VALUES_PER_UNIT), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 10_000;

    fn fault(body: &str) -> String {
        parse_message(body.as_bytes(), MAX).1.err().map(|fault| fault.to_string()).unwrap_or_default()
    }

    fn call(arguments: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"params":{{"arguments":{arguments},"name":"x"}},"method":"tools/call"}}"#
        )
    }

    #[test]
    fn expensive_messages_are_refused() {
        let list = |values: usize| format!("[0{}]", ",0".repeat(values - 1));
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let in_arguments = |json: String| call(&format!(r#"{{"x":{json}}}"#));
        let in_meta =
            |json: String| call("{}").replace("\"name\"", &format!("\"_meta\":{{\"x\":{json}}},\"name\""));
        let long = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
        let too_many = MessageFault::TooManyValues { values_max: MAX }.to_string();
        for (body, expected) in [
            (in_arguments(list(9_900)), String::new()),
            (in_arguments(list(MAX)), too_many.clone()),
            (in_arguments(long(1_000_000)), String::new()),
            (in_arguments(nested(90)), String::new()),
            (in_arguments(nested(100)), MessageFault::TooDeep.to_string()),
            (
                in_arguments(r#"{"$serde_json::private::RawValue":"[0]"}"#.into()),
                MessageFault::ReservedKey.to_string(),
            ),
            (
                in_meta(r#"{"\u0024serde_json::private::RawValue":"[0]"}"#.into()),
                MessageFault::ReservedKey.to_string(),
            ),
            (in_meta(list(9_900)), String::new()),
            (in_meta(list(MAX)), too_many),
            (format!("[{}]", call("{}")), MessageFault::Batch.to_string()),
            (call("{"), MessageFault::NotJson.to_string()),
            (call("{}") + "1", MessageFault::NotJson.to_string()),
            (r#"{"id":1}"#.into(), "the message is not a valid JSON-RPC 2.0 message".into()),
        ] {
            assert_eq!(fault(&body), expected, "{}", &body[..body.len().min(200)]);
        }
    }

    #[test]
    fn large_messages_cost_more_than_small_ones() {
        let cost = |body: &str| cost_of_bytes(body.len()) + parse_message(body.as_bytes(), MAX).0;
        let list = |values: usize| format!(r#"{{"x":[0{}]}}"#, ",0".repeat(values - 1));
        let program = |bytes: usize| format!(r#"{{"code":"{}"}}"#, "x".repeat(bytes));
        assert_eq!([cost(&call("{}")), cost(&call(&program(10_000)))], [0, 0]);
        assert_eq!([cost(&call(&program(256 * 1024))), cost(&call(&list(6_400)))], [16, 100]);
        assert!(cost(&list(MAX)) >= 150, "who sends too much pays for it");
    }
}
